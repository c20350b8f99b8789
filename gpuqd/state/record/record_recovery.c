/* An unfinished restore from an older copy, as stored bytes. Positions are fixed for ever: append,
 * never insert (varint.h). */
#include "gpuqd/state/record/record_recovery.h"

#include <string.h>

#include "gpuqd/state/record/record.h"
#include "gpuqd/state/record/record_int.h"

void record_recovery(const struct model *m, struct batch *out)
{
	const struct recovery *r = &m->recovery;
	struct gpuq_buf b = GPUQ_BUF_INIT;

	varint_array(&b, 6);
	varint_int(&b, r->since_us);
	varint_int(&b, r->copied_us);
	varint_int(&b, r->floor);
	varint_bool(&b, r->listed);
	varint_int(&b, r->n_adopted);
	varint_int(&b, r->listed_us);
	record_put(out, TABLE_META, (const unsigned char *)RECOVERY_KEY, strlen(RECOVERY_KEY), &b);
}

int record_load_recovery(struct model *m, struct rec *r, struct gpuq_err *err)
{
	struct recovery got;

	rec_get_row(r, 6);
	got.since_us = rec_get_int(r);
	got.copied_us = rec_get_int(r);
	got.floor = (uint32_t)rec_get_int(r);
	got.listed = varint_get_bool(r);
	got.n_adopted = (uint32_t)rec_get_int(r);
	got.listed_us = rec_get_int(r);
	if (r->bad)
		return gpuq_fail(err, GPUQ_ECORRUPT, "the state of the recovery is incomplete");
	m->recovery = got;
	return 0;
}
