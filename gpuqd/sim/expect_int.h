/* expect_int.h - shared by the files that judge expectations
 *
 * Used by  expect*.c only.
 */
#ifndef GPUQD_SIM_EXPECT_INT_H
#define GPUQD_SIM_EXPECT_INT_H

#include "gpuqd/sim/outcome.h"

struct judge {
	struct world *w;
	const struct gpuq_val *outcome;
	bool stable;
	struct gpuq_arena *arena;
	struct gpuq_buf *out; /* NULL while alternatives are tried */
	unsigned failed;
};

/* Report a key that does not hold; got may be NULL. */
void judge_differs(struct judge *j, const char *key, const struct gpuq_val *want,
		   const struct gpuq_val *got);
/* Return a number; for anything else (NULL, too) one that equals no number. */
double judge_number(const struct gpuq_val *v);

/* Expectations of the cluster as a whole (expect_world.c). */
void judge_devices(struct judge *j, const char *key, const struct gpuq_val *want);
void judge_capacity(struct judge *j, const char *key, const struct gpuq_val *want);
void judge_pools(struct judge *j, const char *key, const struct gpuq_val *want);
void judge_preempted_from(struct judge *j, const char *key, const struct gpuq_val *want);
void judge_preempted_gpus(struct judge *j, const char *key, const struct gpuq_val *want);

#endif
