/* twin.h - a second model, made on a thread from what is stored
 *
 * Owns     what the store does not hold, taken down on the loop.
 * Touches  the store (reads); the model (once, on the loop).
 * Used by  flow/advise/whatif (to try things on), rpc/method/m_export.
 *
 * Taking down what is in memory would hold the loop; the store can be read beside it, and
 * shows one moment, whatever is written meanwhile. So a twin knows what was durable.
 */
#ifndef GPUQD_FLOW_ADVISE_TWIN_H
#define GPUQD_FLOW_ADVISE_TWIN_H

#include <stdint.h>

#include "gpuqd/state/model.h"
#include "libgpuq/err.h"

struct journal;
struct twin;

/* On the loop, when everything applied is durable. Returns 0 or GPUQ_ENOMEM. */
int twin_new(const struct journal *j, struct twin **out, struct gpuq_err *err);
void twin_free(struct twin *t); /* NULL is allowed */

/* On any thread, at most once: *out is the caller's, for model_free(). What is applied to it is
 * of the moment twin_new() was called at. */
int twin_load(struct twin *t, struct model **out, struct gpuq_err *err);

#endif
