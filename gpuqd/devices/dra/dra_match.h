/* dra_match.h - what a class selects, and a request tolerates
 *
 * Used by  dra_cards.c, dra_charge.c, snapshot/claims.
 */
#ifndef GPUQD_DEVICES_DRA_DRA_MATCH_H
#define GPUQD_DEVICES_DRA_DRA_MATCH_H

#include "gpuqd/devices/dra/dra.h"

/* Mark the devices that the class selects; none where it is not there, or cannot be read. */
void dra_class_selects(const struct dra *d, const char *class_, const struct dra_at *devices,
		       size_t n_devices, struct gpuq_arena *a, bool *selects);

/* Mark the devices that an option selects, whatever their taints. False: its class is not there, or cannot be read. */
bool dra_option_selects(const struct dra *d, const struct dra_option *o,
			const struct dra_at *devices, size_t n_devices, struct gpuq_arena *a,
			bool *selects);

/* True if gpuqd knows the device, and a request of this option tolerates its taints. */
bool dra_tolerates(const struct dra_option *o, const struct dra_device *d);

#endif
