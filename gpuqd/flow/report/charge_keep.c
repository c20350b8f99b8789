#include "gpuqd/flow/report/charge_keep.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/util/civil.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/read.h"

#define PIECE 500 /* records at once */

struct oldest {
	struct charge_key keys[PIECE];
	size_t n;
	uint32_t before; /* days as the keys have them */
};

static int on_record(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		     size_t val_len)
{
	struct oldest *o = arg;
	uint32_t day;

	(void)val, (void)val_len;
	if (key_len < CHARGE_KEY_BYTES || key_len > sizeof(o->keys[0].bytes))
		return 0;
	day = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
	if (day >= o->before)
		return 1;
	memcpy(o->keys[o->n].bytes, key, key_len);
	o->keys[o->n++].len = (uint8_t)key_len;
	return o->n == PIECE;
}

bool charge_keep_some(struct journal *j, int64_t keep_us)
{
	const int64_t first = clock_day(journal_model(j), loop_now_us(journal_loop(j)) - keep_us);
	struct event ev = { .type = EV_CHARGES_EXPIRED };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct oldest *o;
	bool more;

	if (keep_us == 0 || journal_read_only(j))
		return false;
	o = calloc(1, sizeof(*o));
	if (!o)
		return false;
	o->before = (uint32_t)civil_number(first);
	if (store_each(journal_store(j), TABLE_CHARGE, NULL, 0, NULL, 0, false, 0, on_record, o,
		       &err) < 0)
		log_err("ledger.keep", "error=%s", LOGS(err.text));
	more = o->n == PIECE;
	ev.charges.first_day = first;
	ev.charges.keys = o->keys;
	ev.charges.n = o->n;
	if (o->n && journal_apply(j, &ev, &err) < 0) {
		log_err("ledger.keep", "error=%s", LOGS(err.text));
		more = false;
	} else if (o->n) {
		log_info("ledger.keep", "forgotten=%zu", o->n);
	}
	free(o);
	return more;
}
