/* publish.h - results of a cycle about pending jobs, into the model
 *
 * Owns     nothing. Touches the journal.
 * Used by  schedule.c, after every cycle.
 *
 * With 100,000 pending jobs next to nothing changes for nearly all of them from one cycle to the
 * next: an event is made only for what changes.
 */
#ifndef GPUQD_FLOW_PUBLISH_H
#define GPUQD_FLOW_PUBLISH_H

#include "gpuqd/state/model.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"

struct journal;

#define TELL_FACTS_MAX 16

/* Reasons in the model's form; jobs that are alike have the same. */
struct told {
	const struct plan_reason *from;
	struct reason_fact facts[TELL_FACTS_MAX];
	size_t n;
};

/* Where jobs were found last. */
struct finger {
	uint32_t next; /* after the last entry of its own */
	const struct alike *alike; /* and the entry shared by the jobs like this one */
	uint32_t rest;
};

/* In progress: a loop that must not be held long reports a part in each turn. */
struct tell {
	struct journal *journal;
	const struct snapshot *sn;
	const struct plan *p;
	int64_t *planned_us; /* by entry */
	bool part;
	uint32_t n_left; /* jobs left, from readers.walk on */
	struct told told;
	struct finger finger;
};

/* Report reasons, priority and planned start of every job of the snapshot that stays pending under
 * the plan, where the model has other values; those without a start reservation are settled then.
 * part: the snapshot lacks the jobs that are settled, and nothing is reported of them. Snapshot, plan
 * and mem must outlive the report. An unfinished report of the plan before is completed first. */
void tell_begin(struct tell *t, struct journal *j, const struct snapshot *sn, const struct plan *p,
		bool part, struct gpuq_arena *mem);
/* Process this many jobs; true = done. */
bool tell_some(struct tell *t, uint32_t most);
/* Process all of them at once. */
void tell_jobs(struct journal *j, const struct snapshot *sn, const struct plan *p,
	       struct gpuq_arena *mem);

#endif
