/* layouts.h - layouts of MIG instances that the nodes of a pool may be given
 *
 * Owns     the form of `mig` of a pool in a site file, and its checks.
 * Touches  memory only.
 * Used by  site/site.c, snapshot/ (nodes that may be cut), flow/cut (has them cut).
 *
 * A layout is named as NVIDIA's MIG manager has it: all-1g.10gb cuts every card of a node into as many
 * instances of the profile as it has room for, all-disabled leaves whole cards.
 */
#ifndef GPUQD_SITE_LAYOUTS_H
#define GPUQD_SITE_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/schema.h"

struct site_layouts {
	bool manager; /* the nodes have a MIG manager, which gpuqd may instruct */
	struct gpuq_strlist names; /* of layouts, in order of preference */
	int64_t timeout_us; /* in which a node must have its layout */
	int64_t again_us; /* in which no node gets the same layout again */
};

extern const struct gpuq_schema site_layouts_schema;

/* Return the profile of a layout; "" = whole devices, NULL: it is none of the two forms. */
const char *layouts_profile(const char *name);

/* True if gpuqd may have nodes cut. */
bool layouts_are_on(const struct site_layouts *l);

#endif
