/* twin.h - a second model, made on a thread from what is stored
 *
 * Owns     a copy of what the store does not hold, made on the loop.
 * Touches  the store (reads); the model (once, on the loop).
 * Used by  flow/advise/whatif (to try things on), rpc/method/m_export.
 *
 * Copying the model in memory would hold the loop; the store can be read beside it and shows one
 * moment, whatever is written meanwhile. A twin therefore holds what was durable.
 */
#ifndef GPUQD_FLOW_ADVISE_TWIN_H
#define GPUQD_FLOW_ADVISE_TWIN_H

#include <stdint.h>

#include "gpuqd/state/model.h"
#include "libgpuq/err.h"

struct journal;
struct twin;

/* Make a twin; on the loop, when everything applied is durable. Returns 0 or GPUQ_ENOMEM. */
int twin_new(const struct journal *j, struct twin **out, struct gpuq_err *err);
void twin_free(struct twin *t); /* NULL is allowed */

/* Load the model; on any thread, at most once. *out is the caller's, for model_free(); it has the
 * state of the moment of twin_new(). */
int twin_load(struct twin *t, struct model **out, struct gpuq_err *err);

#endif
