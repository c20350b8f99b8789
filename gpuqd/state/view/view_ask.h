/* view_ask.h - the request for nodes that a job waits for, as clients see it
 *
 * Owns     the members of a job's provisioning in gpuq-json(5).
 * Touches  memory only; reads the model, never changes it.
 * Used by  view_job.c, rpc/method/m_site_pools.c.
 */
#ifndef GPUQD_STATE_VIEW_VIEW_ASK_H
#define GPUQD_STATE_VIEW_VIEW_ASK_H

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

struct ask_pool;

/* Return the request for nodes that a pending job waits for; null = there is none; NULL when a is exhausted. */
struct gpuq_val *view_ask(struct gpuq_arena *a, const struct model *m, const struct job *j);
/* Put what is known of how long requests of a pool took into v; known may be NULL. */
void view_ask_waits(struct gpuq_arena *a, struct gpuq_val *v, const struct ask_pool *known);

#endif
