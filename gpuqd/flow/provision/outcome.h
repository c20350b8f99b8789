/* outcome.h - how an attempt to get nodes ends, and what follows
 *
 * Owns     nothing.
 * Touches  the model through the journal.
 * Used by  asker.c.
 *
 * An attempt that failed is made again after a pause; after the last one its pool is left alone for the longest
 * pause, with all pools of the same quota if that is used up. */
#ifndef GPUQD_FLOW_PROVISION_OUTCOME_H
#define GPUQD_FLOW_PROVISION_OUTCOME_H

#include "gpuqd/flow/provision/verdict.h"

struct event;
struct journal;

/* Apply an event of the ask, of its present attempt unless it names one. */
void outcome_apply(struct journal *j, struct event *ev, const struct ask *a);
/* No job needs it any more; message: why. */
void outcome_end(struct journal *j, const struct ask *a, const char *message);
void outcome_fail(struct journal *j, const struct ask *a, const struct verdict_of *v);
/* The same for a reason of our own. */
void outcome_fail_as(struct journal *j, const struct ask *a, enum verdict what,
		     const char *message);
/* Requeue the jobs that were placed on its nodes and of which no pod was created; `why` is shown. Returns their
 * number. */
uint32_t outcome_withdraw(struct journal *j, const struct ask *a, const char *why);
/* Its request is gone, and not by us. */
void outcome_lost(struct journal *j, const struct ask *a);

#endif
