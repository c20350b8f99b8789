/* publish.h - what a cycle found out about waiting jobs, into the model
 *
 * Owns     nothing. Touches the journal.
 * Used by  schedule.c, after every cycle.
 *
 * With 100,000 jobs that wait, next to nothing changes for nearly all of them from one
 * cycle to the next: an event is made only for what does.
 */
#ifndef GPUQD_FLOW_PUBLISH_H
#define GPUQD_FLOW_PUBLISH_H

#include "gpuqd/state/model.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"

struct journal;

#define TELL_FACTS_MAX 16

/* Reasons as the model takes them; jobs that are alike have the same. */
struct told {
	const struct plan_reason *from;
	struct reason_fact facts[TELL_FACTS_MAX];
	size_t n;
};

/* Where jobs were found last. */
struct finger {
	uint32_t next; /* one behind the last that stands by itself */
	const struct alike *alike; /* and the entry of the others that are like this */
	uint32_t rest;
};

/* Under way: a loop that is not to be held long tells some in each turn. */
struct tell {
	struct journal *journal;
	const struct snapshot *sn;
	const struct plan *p;
	int64_t *planned_us; /* by entry */
	uint32_t n_left; /* jobs to look at, from readers.walk on */
	struct told told;
	struct finger finger;
};

/* Reasons, priority and planned start of every job of the snapshot that still waits with the
 * plan, where the model knows something else. Snapshot, plan and mem must outlive the telling.
 * What was not told of the plan before is told first. */
void tell_begin(struct tell *t, struct journal *j, const struct snapshot *sn, const struct plan *p,
		struct gpuq_arena *mem);
/* Look at so many jobs; true = at all. */
bool tell_some(struct tell *t, uint32_t most);
/* At all of them at once. */
void tell_jobs(struct journal *j, const struct snapshot *sn, const struct plan *p,
	       struct gpuq_arena *mem);

#endif
