/* view_used.h - what a job used, as clients see it
 *
 * Touches  memory only.
 * Used by  view_job.c.
 */
#ifndef GPUQD_STATE_VIEW_VIEW_USED_H
#define GPUQD_STATE_VIEW_VIEW_USED_H

#include <stdbool.h>

#include "libgpuq/val.h"

struct used;

/* Return what the last attempt used, in a; null for what is not known. hint: its owner is to be told if the request
 * was far off. */
struct gpuq_val *view_used(struct gpuq_arena *a, const struct used *s, bool hint);

#endif
