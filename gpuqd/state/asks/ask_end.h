/* ask_end.h - attempts end before their nodes are taken away
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  flow/dispatch.c, snapshot/, the asks; tests.
 *
 * A cloud takes the nodes of a request back some time after it made them, and kills what runs there. An
 * attempt is told before: by the grace period of its checkpoint, and 30 s at least. Where its own time limit
 * would have come within the time that a node may need to boot, that is its time limit; a job with more, or
 * with none, is requeued. */
#ifndef GPUQD_STATE_ASKS_ASK_END_H
#define GPUQD_STATE_ASKS_ASK_END_H

#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/model.h"

#define ASK_END_LEAST_US INT64_C(30000000) /* by which it is told before, at least */

/* Return when the attempt must be told; GPUQ_UNLIMITED = its nodes have no end that is known. */
int64_t ask_end_signal_us(const struct model *m, const struct job *j);
/* True if it is to be told now: *ev is the event, whose text is written to `why`. */
bool ask_end_due(const struct model *m, const struct job *j, int64_t now_us, struct event *ev,
		 char *why, size_t room);

/* True if a node of the attempt is being taken away: then *ev tells it to leave, as above. */
bool ask_node_taken(const struct model *m, const struct job *j, struct event *ev, char *why,
		    size_t room);
/* True if some pod of the attempt was on a node of a spot pool: what it lost there, its cloud took. */
bool ask_spot_lost(const struct model *m, const struct job *j);
/* True if its attempt is on nodes that were requested for a time, which no other job may cut short. */
bool ask_job_is_spared(const struct model *m, const struct job *j);
/* Note when the nodes of an attempt are taken away. */
void ask_set_ends(struct model *m, const struct ask *a);

#endif
