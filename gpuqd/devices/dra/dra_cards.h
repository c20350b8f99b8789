/* dra_cards.h - the devices of ResourceSlices that quotas count
 *
 * Owns     which of them are devices of a node: those of drivers for GPUs, and of classes that a flavor
 *          names; of devices that share counters the largest, whose parts the others are.
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

/* True if pods without tolerations get it. */
bool dra_is_well(const struct dra_device *d);

/* Return the attribute or capacity that its driver so calls; NULL = there is none. */
const struct dra_word *dra_own_word(const struct dra_at *at, bool capacity, const char *name);

#endif
