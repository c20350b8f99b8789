/* dra_cards.h - the devices of ResourceSlices that quotas count
 *
 * Owns     which of them are devices of a node: those of drivers for GPUs, and of classes that a flavor
 *          names; of devices that share counters, or of a card and its MIG instances, the largest, whose parts
 *          the others are; how much of it they are.
 * Used by  state/node_offer, snapshot/, flow/bind.
 */
#ifndef GPUQD_DEVICES_DRA_DRA_CARDS_H
#define GPUQD_DEVICES_DRA_DRA_CARDS_H

#include "gpuqd/devices/dra/dra.h"

/* True for names of drivers and classes such as gpu.nvidia.com. */
bool dra_is_usual(const char *name);

/* True if devices of the class count in quotas. classes: those that flavors name. */
bool dra_counts(const char *class_, const struct gpuq_strlist *classes);

/* List the devices of a node; their index is the place in the list. *odd as in dra_node(). */
size_t dra_cards(const struct dra *d, const char *node, const struct gpuq_strlist *classes,
		 struct gpuq_arena *a, struct dra_at **out, const char **odd);

/* The same of n devices that dra_node() listed. */
size_t dra_cards_among(const struct dra *d, const struct dra_at *all, size_t n,
		       const struct gpuq_strlist *classes, struct gpuq_arena *a,
		       struct dra_at **out);

/* Return the index of the card that a device is, or is a part of; n = of none. */
size_t dra_card_of(const struct dra_at *cards, size_t n, const struct dra_slice *slice,
		   const struct dra_device *device);

/* Copy to `out` what a pod can have that has parts of that card alone, of n devices: they, and what is of no card. Returns
 * how many. */
size_t dra_cards_one(const struct dra_at *cards, size_t n_cards, size_t card,
		     const struct dra_at *all, size_t n, struct dra_at *out);

/* Return the UUID of the card of a MIG instance, and its profile; "" = it is none, or does not tell. */
const char *dra_parent(const struct dra_at *at);
const char *dra_profile(const struct dra_at *at);
/* True if a device of the slice may be a part of a card. */
bool dra_may_be_part(const struct dra_slice *s);
/* Return the thousandths of its card that a device is, rounded down: of a MIG instance its slices of compute, of other
 * parts what they take of the counters; 1000 = it is no part. */
int64_t dra_part_milli(const struct dra_at *cards, size_t n, const struct dra_at *at);

/* True if pods without tolerations get it. */
bool dra_is_well(const struct dra_device *d);

/* Return the attribute or capacity that its driver so calls; NULL = there is none. */
const struct dra_word *dra_own_word(const struct dra_at *at, bool capacity, const char *name);

#endif
