/* view_val.h - the values of which the views of objects consist
 *
 * Touches  memory only.
 * Used by  state/view, rpc/method.
 */
#ifndef GPUQD_STATE_VIEW_VIEW_VAL_H
#define GPUQD_STATE_VIEW_VIEW_VAL_H

#include <stdint.h>

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

/* Return devices from thousandths: whole numbers stay integers; GPUQ_UNLIMITED is "unlimited". */
struct gpuq_val *view_devices(struct gpuq_arena *a, int64_t milli);
/* Return a string; null for NULL and "". */
struct gpuq_val *view_word(struct gpuq_arena *a, const char *s);
/* A MIG profile as jobs name it. */
struct gpuq_val *view_profile(struct gpuq_arena *a, const char *profile);
/* Return the word of an isolation; null for ISOLATION_NO_DEVICES. */
struct gpuq_val *view_isolation(struct gpuq_arena *a, int isolation);
struct gpuq_val *view_instant(struct gpuq_arena *a, int64_t us); /* null for 0 */
/* Return "17" or "17_3"; NULL when the arena is exhausted. */
const char *view_key(struct gpuq_arena *a, struct job_key key);

#endif
