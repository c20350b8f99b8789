/* claim_part.h - MIG instances, and other parts of cards, that are had by claims
 *
 * Touches  memory only; reads the model, never changes it.
 * Used by  state/view.
 */
#ifndef GPUQD_STATE_CUTS_CLAIM_PART_H
#define GPUQD_STATE_CUTS_CLAIM_PART_H

#include "gpuqd/state/model.h"

struct claim_part {
	size_t card; /* index of its device on the node */
	const char *profile; /* of an instance; NULL = another part */
	int64_t milli; /* of its card */
	int64_t memory_mib; /* -1 = not known */
	const struct pod *pod; /* of gpuq's that has it; NULL = it is free, or another's */
	bool used;
};

/* List the parts of a node's devices that are allocated, and of cards that are cut already those that are free, in the
 * arena. Returns how many. */
size_t claim_part_list(const struct model *m, const struct node *n, struct gpuq_arena *a,
		       struct claim_part **out);

#endif
