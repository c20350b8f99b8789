/* since.h - changes since a snapshot was taken
 *
 * Owns     a bit for each job and node of the snapshot.
 * Touches  the model, reads only.
 * Used by  schedule.c, whose cycles decide in one turn of the loop and act in another.
 *
 * A plan is based on its snapshot. Events until it is carried out may invalidate parts of it: a job
 * was held, a node is drained. Actions that depend on such a job or node are dropped, and decided
 * again; the others remain valid, because only a plan allocates places.
 */
#ifndef GPUQD_FLOW_SINCE_H
#define GPUQD_FLOW_SINCE_H

#include <stdbool.h>

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/model.h"

struct journal;

struct since {
	const struct journal *j; /* NULL = nothing is watched */
	const struct snapshot *sn; /* NULL = not sealed yet */
	/* Changes before it was sealed. */
	struct job_key *early_jobs;
	char **early_nodes;
	size_t n_early_jobs, n_early_nodes, room_early_jobs, room_early_nodes;
	uint64_t *jobs, *nodes; /* of the snapshot: those that have changed */
	uint64_t n_node_changes; /* model.n_node_changes, as far as noted */
	bool all; /* the basis of every decision has changed: the site, say */
};

/* Watch from now on the objects of a snapshot that is taken in this turn; it is passed once it has
 * been sealed. */
void since_begin(struct since *s, const struct journal *j);
/* False: no memory. */
bool since_sealed(struct since *s, const struct snapshot *sn);
void since_end(struct since *s);

/* Note an event that has just been applied. own: it is part of the plan that is being carried
 * out. */
void since_note(struct since *s, const struct event *ev, bool own);

/* True if all that the action depends on is unchanged. */
bool since_stands(const struct since *s, const struct plan *p, const struct plan_action *a);

#endif
