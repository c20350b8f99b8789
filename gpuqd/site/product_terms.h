/* product_terms.h - terms over nodes that require a kind of devices
 *
 * Owns     nothing; results are in the caller's arena.
 * Touches  memory only.
 * Used by  snapshot/snapshot_take.
 *
 * Where the site has no flavors, all devices are of the flavor `default`, and a job that names flavors
 * means kinds. It gets a requirement instead, on a label that nodes have in snapshots only.
 */
#ifndef GPUQD_SITE_PRODUCT_TERMS_H
#define GPUQD_SITE_PRODUCT_TERMS_H

#include "libgpuq/arena.h"
#include "libgpuq/spec.h"

#define PRODUCT_LABEL "gpuq.io/kind"

struct product_terms {
	struct gpuq_term *items;
	size_t n;
};

/* Add to each required term that the kind is one of those that names mean, of all n kinds; none: the
 * term holds nowhere. Unchanged where memory is out. */
void product_require(const struct gpuq_strlist *kinds, const struct gpuq_strlist *names,
		     struct gpuq_arena *a, struct product_terms *required);
/* Prefer earlier names to later ones, above all other preferences. */
void product_prefer(const struct gpuq_strlist *kinds, const struct gpuq_strlist *names,
		    struct gpuq_arena *a, struct product_terms *preferred);

#endif
