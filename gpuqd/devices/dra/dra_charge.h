/* dra_charge.h - how much of devices claims are charged
 *
 * Owns     the weights of requests, kept until slices or classes change.
 * Used by  flow/admit, snapshot/, flow/bind.
 *
 * A device counts 1, and a part of a card its share of it (dra_cards.h): of the devices that a request
 * selects, on any node, the largest share. A pod whose devices are parts, and together less than a card, is
 * charged their sum and has all of them of one card; else it is charged 1 for each.
 */
#ifndef GPUQD_DEVICES_DRA_DRA_CHARGE_H
#define GPUQD_DEVICES_DRA_DRA_CHARGE_H

#include "gpuqd/devices/dra/dra_ask.h"

/* Return what claims of a pod together are charged, in thousandths: of alternatives the most, or the least. Requests for
 * all devices of a node are left out. */
int64_t dra_charge(const struct dra *d, const struct dra_spec *const *specs, size_t n,
		   const struct gpuq_strlist *classes, bool least);

/* The same of n specs in a row, at most GPUQ_CLAIMS_MAX: the most. */
int64_t dra_charge_all(const struct dra *d, const struct dra_spec *specs, size_t n,
		       const struct gpuq_strlist *classes);

#endif
