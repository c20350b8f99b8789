/* cycle_record.h - one scheduling cycle as bytes: its snapshot and its plan
 *
 * Owns     the form of those bytes, and of the text by which two plans are compared.
 * Touches  memory only.
 * Used by  flow/schedule (writes), gpuq-sim replay (reads), tests.
 *
 * A record is one MessagePack array: "gpuq-cycle", the version of this form (1), the release that
 * wrote it, the number of the cycle, the snapshot (snapshot_pack.h), the plan as text. A file is a
 * sequence of records. */
#ifndef GPUQD_SCHED_CYCLE_RECORD_H
#define GPUQD_SCHED_CYCLE_RECORD_H

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/util/varint.h"

struct cycle_record {
	char release[64];
	uint64_t number;
	struct snapshot *snapshot; /* not sealed; free it */
	const char *plan; /* borrowed from the bytes, not terminated */
	size_t plan_len;
};

/* Append all that a plan decided, line by line: its actions (plan_print), for each eviction the
 * preemptor and the rule, the reasons, and the fair share of every queue. */
void cycle_text(const struct snapshot *s, const struct plan *p, struct gpuq_buf *out);
/* Append a text that cycle_text() of an earlier build made, with the current names of rules. */
void cycle_text_now(const char *text, size_t n, struct gpuq_buf *out);

/* Append a record. packed: from snapshot_pack(). */
void cycle_record_write(struct gpuq_buf *out, const char *release, uint64_t number,
			const struct gpuq_buf *packed, const char *plan, size_t plan_len);

/* Read the next record of r. Returns 0; GPUQ_EVERSION (a form that this release does not know),
 * GPUQ_ECORRUPT, GPUQ_ENOMEM; then r cannot be read any further. */
int cycle_record_read(struct rec *r, struct cycle_record *out, struct gpuq_err *err);

#endif
