/* toleration.h - the form of a toleration: of a job, and of a pool's nodes
 *
 * Owns     nothing; the schema is in spec_place.c.
 * Touches  memory only.
 * Used by  spec/; site/ and sched/place/feasibility.c of gpuqd.
 */
#ifndef LIBGPUQ_SPEC_TOLERATION_H
#define LIBGPUQ_SPEC_TOLERATION_H

#include <stdbool.h>
#include <string.h>

#include "libgpuq/schema.h"
#include "libgpuq/spec.h"

extern const struct gpuq_schema gpuq_toleration_schema; /* of a struct gpuq_toleration */

/* True if it tolerates the taint, by the rules of Kubernetes. */
static inline bool gpuq_tolerates(const struct gpuq_toleration *t, const char *key,
				  const char *value, const char *effect)
{
	const bool any_key = !t->key || !*t->key;

	if (t->effect && *t->effect && strcmp(t->effect, effect) != 0)
		return false;
	if (any_key || strcmp(t->key, key) != 0)
		return any_key && t->exists;
	return t->exists || strcmp(t->value ? t->value : "", value) == 0;
}

#endif
