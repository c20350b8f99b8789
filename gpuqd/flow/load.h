/* load.h - everything that is stored, as a model
 *
 * Owns     nothing.
 * Touches  the store (reads committed records).
 * Used by  daemon.c (at the start, and after no space), flow/advise/whatif (a copy to try things on).
 */
#ifndef GPUQD_FLOW_LOAD_H
#define GPUQD_FLOW_LOAD_H

#include "gpuqd/state/model.h"
#include "libgpuq/err.h"

struct store;

/* All records of st into an empty model. Returns 0 or what record_load() and store_each()
 * return; the model is then good for model_free() only. */
int load_records(struct store *st, struct model *m, struct gpuq_err *err);

#endif
