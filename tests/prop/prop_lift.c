#include <stdlib.h>
#include <string.h>

#include "libgpuq/names.h"
#include "tests/prop/prop_world.h"

#define ANY 99

/* Remove every other job and foreign use, and put nodes in service. An array would be in its own
 * way, and reasons of several groups apply to each group separately. */
static bool make_room(struct prop_case *pc, int job)
{
	for (int j = 0; j < PROP_JOBS; j++)
		pc->jobs[j].there = j == job;
	for (int n = 0; n < PROP_NODES; n++)
		pc->nodes[n].foreign = pc->nodes[n].state = 0;
	return pc->jobs[job].size == 0 && pc->jobs[job].n_groups == 1;
}

/* Remove the obstacle that the reason names. False: that is not possible here. */
static bool lift(struct prop_case *pc, int job, const struct plan_reason *why)
{
	struct prop_queue *q = why->object[0] == 'q' ? &pc->queues[atoi(why->object + 1)] : NULL;

	switch ((enum gpuq_reason)why->code) {
	case GPUQ_R_LIMIT_QUEUE:
		if (q)
			q->limit[0] = q->limit[1] = ANY;
		return q;
	case GPUQ_R_QUOTA:
		if (q) {
			q->quota[0] = q->quota[1] = ANY;
			q->lend = -1;
		}
		return q;
	case GPUQ_R_LIMIT_USER:
		for (int i = 0; i < PROP_QUEUES; i++)
			pc->queues[i].user_jobs = 0;
		return true;
	case GPUQ_R_QUEUE_STOPPED:
		if (q)
			q->stopped = false;
		return q;
	case GPUQ_R_HELD_USER:
		pc->jobs[job].held = false;
		return true;
	case GPUQ_R_ARRAY_LIMIT:
		pc->jobs[job].throttle = 0;
		return true;
	case GPUQ_R_RESOURCES:
	case GPUQ_R_FRAGMENTED:
	case GPUQ_R_NODES_UNAVAILABLE:
		return make_room(pc, job);
	default:
		return false;
	}
}

static const struct plan_reason *first_reason(const struct snapshot *s, const struct plan *p,
					      int job)
{
	const struct plan_reason *why;

	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i].key.id == (uint32_t)job + 1 && plan_reasons(s, p, i, &why))
			return why;
	return NULL;
}

void check_lifted(struct world *w, const struct snapshot *s, const struct plan *p, int job)
{
	static struct prop_case pc;
	static struct world other;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct plan_reason *why = first_reason(s, p, job), *still;
	struct snapshot *t;
	struct plan p2;

	pc = *w->pc;
	if (!why || !lift(&pc, job, why))
		return;
	other = *w;
	other.pc = &pc;
	t = world_build(&other, NULL);
	if (other.wrong[0] || sched_cycle(t, &mem, &p2, &err) < 0)
		wrong(w, "lifted: %s%s", other.wrong, err.text);
	still = w->wrong[0] ? NULL : first_reason(t, &p2, job);
	if (still && still->code == why->code && strcmp(still->object, why->object) == 0)
		wrong(w, "26: without its first reason, %s of %s, job %d still has it",
		      gpuq_reason_word((enum gpuq_reason)why->code), why->object, job + 1);
	snapshot_free(t);
	gpuq_arena_done(&mem);
}
