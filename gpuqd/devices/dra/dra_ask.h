/* dra_ask.h - the devices that claims of a job request
 *
 * Used by  flow/admit, snapshot/, flow/bind, cluster/kube.
 */
#ifndef GPUQD_DEVICES_DRA_DRA_ASK_H
#define GPUQD_DEVICES_DRA_DRA_ASK_H

#include "gpuqd/devices/dra/dra_cards.h"

/* Make the request of a claim that gpuqd makes itself: of a class, or of alternatives. It borrows from
 * the claim. False: no memory. */
bool dra_spec_of(struct gpuq_arena *a, const struct gpuq_claim *c, struct dra_spec *out);

enum dra_found { DRA_FOUND, DRA_MISSING };
/* Find the request of a claim, in an object that it names or in the job; *claim: the object that pods
 * share, NULL = each pod has one of its own. It borrows from the ledger until that changes. */
enum dra_found dra_find(const struct dra *d, const struct gpuq_claim *c, const char *namespace_,
			struct gpuq_arena *a, struct dra_spec *out, const struct dra_claim **claim);

/* True if an earlier claim of the group names the same object: its devices are the same as well. */
bool dra_named_before(const struct gpuq_group *g, size_t at);

/* Return how many devices claims together are charged on a node that is otherwise idle, where all of its devices
 * are requested; 0 = they do not fit there. */
int64_t dra_devices_on(const struct dra *d, const char *node, const struct dra_spec *const *specs,
		       size_t n, const struct gpuq_strlist *classes);

/* Return how many devices it is charged: of alternatives the most. *all is set if it takes all of a
 * node. */
int64_t dra_devices_of(const struct dra_spec *s, const struct gpuq_strlist *classes, bool *all);
/* The same, of alternatives the least. */
int64_t dra_least_of(const struct dra_spec *s, const struct gpuq_strlist *classes);

#endif
