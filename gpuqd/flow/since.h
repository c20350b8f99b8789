/* since.h - what has changed since a snapshot was taken
 *
 * Owns     a bit for each job and node of the snapshot.
 * Touches  the model, to look at it.
 * Used by  schedule.c, whose cycles decide in one turn of the loop and act in another.
 *
 * A plan speaks of the world as its snapshot had it. What happens until it is carried out takes
 * part of it away: a job was held, a node is drained. Actions that rest on such a job or node are
 * dropped, and decided again; the others stand, because nothing but a plan gives places away.
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
	const struct snapshot *sn; /* NULL = it has not been sealed */
	/* What has changed until then. */
	struct job_key *early_jobs;
	char **early_nodes;
	size_t n_early_jobs, n_early_nodes;
	uint64_t *jobs, *nodes; /* of the snapshot: those that have changed */
	uint64_t n_node_changes; /* model.n_node_changes, as far as they were noted */
	bool all; /* what every decision rests on has changed: the site, say */
};

/* Watch from now on what becomes of the objects of a snapshot that is taken in this turn; which it
 * is, once it has been sealed. False: no memory. */
void since_begin(struct since *s, const struct journal *j);
bool since_sealed(struct since *s, const struct snapshot *sn);
void since_end(struct since *s);

/* That has just been applied. own: it is part of the plan that is being carried out. */
void since_note(struct since *s, const struct event *ev, bool own);

/* Is all that the action rests on as it was? */
bool since_stands(const struct since *s, const struct plan *p, const struct plan_action *a);

#endif
