/* pod_env.h - the variables of a pod, while they are collected
 *
 * Owns     nothing: map and strings are the caller's, or live in the arena.
 * Touches  memory only.
 * Used by  flow/order (fills it), flow/env/slurm_env (adds to it).
 */
#ifndef GPUQD_FLOW_ENV_POD_ENV_H
#define GPUQD_FLOW_ENV_POD_ENV_H

#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/schema.h"

#define POD_ENV_MAX 160 /* variables; more are dropped */

struct pod_env {
	struct gpuq_arena *a;
	struct gpuq_strmap *map; /* room for POD_ENV_MAX */
};

/* Add a variable; val NULL adds none. Neither is copied. */
void pod_env_set(struct pod_env *e, const char *key, const char *val);
void pod_env_set_int(struct pod_env *e, const char *key, int64_t i);
const char *pod_env_get(const struct pod_env *e, const char *key); /* NULL = not set */

#endif
