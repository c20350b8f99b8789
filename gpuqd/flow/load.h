/* load.h - loading a model from the store
 *
 * Owns     nothing.
 * Touches  the store (reads committed records).
 * Used by  daemon.c (at the start, and after no space), audit.c (gpuqd --audit), flow/advise/twin
 *          (a copy to try changes on).
 */
#ifndef GPUQD_FLOW_LOAD_H
#define GPUQD_FLOW_LOAD_H

#include "gpuqd/state/model.h"
#include "libgpuq/err.h"

struct store;

/* Load all records of st into an empty model. Returns 0 or the error of record_load() or
 * store_each(); after an error the model is only good for model_free(). */
int load_records(struct store *st, struct model *m, struct gpuq_err *err);

#endif
