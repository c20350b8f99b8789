/* view.h - the model's objects as people and programs see them
 *
 * Owns     the JSON names of model.md section 6.
 * Touches  memory only; reads the model, never changes it.
 * Used by  rpc/ (answers), core/record (a finished job's record is its last view).
 *
 * Instants are int64 microseconds, or null; the client prints them for people.
 */
#ifndef GPUQD_CORE_VIEW_H
#define GPUQD_CORE_VIEW_H

#include "gpuqd/core/model.h"
#include "libgpuq/val.h"

/* Devices as people count them, from thousandths: whole numbers stay integers;
 * GPUQ_UNLIMITED is "unlimited". */
struct gpuq_val *view_devices(struct gpuq_arena *a, int64_t milli);
/* Null for NULL and "". */
struct gpuq_val *view_word(struct gpuq_arena *a, const char *s);

/* Trees in a; NULL when it is exhausted. now_us is for what still counts up. */
struct gpuq_val *view_job(struct gpuq_arena *a, const struct model *m, const struct job *j,
			  int64_t now_us);
/* A job that was not stored (a dry run): id and state are null. */
struct gpuq_val *view_spec(struct gpuq_arena *a, const struct gpuq_spec *spec, const char *user,
			   int64_t time_limit_us);
struct gpuq_val *view_node(struct gpuq_arena *a, const struct model *m, const struct node *n);
struct gpuq_val *view_queue(struct gpuq_arena *a, const struct model *m, const struct queue *q,
			    int64_t used_ms); /* of model_spending() */
/* Devices by what they are, jobs by state; {gpus, devices, jobs}. */
struct gpuq_val *view_status(struct gpuq_arena *a, const struct model *m, int64_t now_us);

#endif
