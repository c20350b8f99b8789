/* dra_choice.h - alternatives of claims, of which a placement decides on one
 *
 * Used by  flow/admit, snapshot/, flow/bind.
 *
 * Requests with alternatives are served one after the other, in the order of the claims; of the combinations
 * the first has the first alternative of each, and the next another one of the last request. A choice is one
 * of them, or neighbours that are charged the same.
 */
#ifndef GPUQD_DEVICES_DRA_DRA_CHOICE_H
#define GPUQD_DEVICES_DRA_DRA_CHOICE_H

#include "gpuqd/devices/dra/dra_charge.h"
#include "libgpuq/limits.h"

#define DRA_CHOICES_MAX GPUQ_MIG_TRIES_MAX

struct dra_choice {
	struct gpuq_alternatives is;
	int64_t milli; /* of devices, that a pod is charged */
};

/* List the choices of claims, in order of preference; of a claim that is allocated only those with the alternative
 * that it got. A single one, which is none of them, where they have no alternatives. mixes: the claims are those of several pods, which need not have the same one. The last may be
 * whichever there are: for pods that mix, or as there is no room for more, and then charged as the largest. Returns how many; 0 = no claim counts, one is not there, or some take all of a node. */
uint32_t dra_choices(const struct dra *d, const struct gpuq_claim *claims, size_t n_claims,
		     const char *namespace_, const struct gpuq_strlist *classes, bool mixes,
		     struct dra_choice out[DRA_CHOICES_MAX]);

/* Return the one that charges most, of n > 0. */
const struct dra_choice *dra_choice_most(const struct dra_choice *all, uint32_t n);

/* Leave the claims, all of a pod, only the alternatives of the choice. out: room for n. False: they have no such,
 * or no memory. */
bool dra_choose(const struct dra_spec *const *specs, size_t n, struct gpuq_alternatives choice,
		struct gpuq_arena *a, struct dra_spec *out);

/* True if an allocated claim has alternatives that the spec, of it, still has. */
bool dra_chosen(const struct dra_claim *c, const struct dra_spec *spec);

#endif
