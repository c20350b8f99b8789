#include "gpuqd/sched/cycle_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot_pack.h"

#define MAGIC "gpuq-cycle"
#define VERSION 1

void cycle_text(const struct snapshot *s, const struct plan *p, struct gpuq_buf *out)
{
	char key[32];

	plan_print(s, p, out);
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];

		if (a->kind != PLAN_EVICT && a->kind != PLAN_SHRINK && a->kind != PLAN_MOVE)
			continue;
		gpuq_buf_printf(out, "leaves %s", plan_key_print(a->key, key, sizeof(key)));
		gpuq_buf_printf(out, " cause=%s rule=%s", gpuq_cause_word(a->cause),
				a->rule ? a->rule : "-");
		if (a->claimant != SNAP_NONE)
			gpuq_buf_printf(out, " for=%s",
					plan_key_print(s->jobs[a->claimant].key, key, sizeof(key)));
		gpuq_buf_addc(out, '\n');
	}
	for (uint32_t q = 0; p->fair_share && q < s->n_queues; q++) {
		gpuq_buf_printf(out, "share %s", s->queues[q].name);
		for (uint32_t r = 0; r < s->n_flavors; r++)
			gpuq_buf_printf(out, " %s=%" PRId64, s->flavors[r].name,
					p->fair_share[(size_t)q * s->n_res + r]);
		gpuq_buf_addc(out, '\n');
	}
	if (p->wake_us != GPUQ_UNLIMITED)
		gpuq_buf_printf(out, "wake %" PRId64 "\n", p->wake_us);
}

void cycle_text_now(const char *text, size_t n, struct gpuq_buf *out)
{
	static const char mark[] = "rule=";
	const char *const end = text + n;

	while (text < end) {
		const char *p = text;
		char old[64], now[256];

		while (p < end && *p != ' ' && *p != '\n')
			p++;
		if ((size_t)(p - text) > strlen(mark) && memcmp(text, mark, strlen(mark)) == 0) {
			text += strlen(mark);
			snprintf(old, sizeof(old), "%.*s", (int)(p - text), text);
			gpuq_rules_now(old, now, sizeof(now));
			gpuq_buf_printf(out, "%s%s", mark, now);
		} else {
			gpuq_buf_add(out, text, (size_t)(p - text));
		}
		if (p < end)
			gpuq_buf_addc(out, *p++);
		text = p;
	}
}

void cycle_record_write(struct gpuq_buf *out, const char *release, uint64_t number,
			const struct gpuq_buf *packed, const char *plan, size_t plan_len)
{
	varint_array(out, 6);
	varint_str(out, MAGIC);
	varint_int(out, VERSION);
	varint_str(out, release);
	varint_int(out, (int64_t)number);
	gpuq_buf_add(out, packed->data, packed->len);
	varint_bin(out, plan, plan_len);
	out->failed |= packed->failed;
}

int cycle_record_read(struct rec *r, struct cycle_record *out, struct gpuq_err *err)
{
	const uint32_t n = rec_get_array(r);
	size_t len;
	const char *s = rec_get_str(r, &len);
	int64_t version;
	int rc;

	if (r->bad || n < 6 || !s || len != strlen(MAGIC) || memcmp(s, MAGIC, len) != 0) {
		r->bad = true;
		return gpuq_fail(err, GPUQ_ECORRUPT,
				 "expected a record of a cycle, as gpuqd "
				 "writes with record_dir");
	}
	version = rec_get_int(r);
	if (version != VERSION) {
		r->bad = true;
		return gpuq_fail(err, GPUQ_EVERSION,
				 "written in version %" PRId64 " of the form of cycles; this "
				 "release reads version %d",
				 version, VERSION);
	}
	s = rec_get_str(r, &len);
	if (len >= sizeof(out->release))
		len = sizeof(out->release) - 1;
	if (len)
		memcpy(out->release, s, len);
	out->release[len] = '\0';
	out->number = (uint64_t)rec_get_int(r);
	rc = r->bad ? gpuq_fail(err, GPUQ_ECORRUPT, "the record is incomplete")
		    : snapshot_unpack(r, &out->snapshot, err);
	if (rc < 0)
		return rc;
	out->plan = rec_get_str(r, &out->plan_len);
	for (uint32_t i = 6; i < n && !r->bad; i++)
		varint_skip(r);
	if (!r->bad && out->plan)
		return 0;
	r->bad = true;
	snapshot_free(out->snapshot);
	return gpuq_fail(err, GPUQ_ECORRUPT, "the record is incomplete");
}
