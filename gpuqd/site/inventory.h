/* inventory.h - what the site says of nodes' devices and resources, beside the nodes themselves
 *
 * Owns     the schema of `inventory` and the check of `gres`.
 * Touches  memory only.
 * Used by  site.c, state/inventory.c (nodes), flow/admit (jobs).
 */
#ifndef GPUQD_SITE_INVENTORY_H
#define GPUQD_SITE_INVENTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/schema.h"

struct site;
struct site_flavor;
struct site_pool;
struct gpuq_group;

/* Devices of nodes, for those that do not report them; where both say it, the smaller number holds. */
struct site_inventory {
	struct gpuq_strmap selector; /* node labels; all must match */
	const char *product; /* NULL = not given */
	int64_t memory_bytes, cards, replicas; /* of a device; devices; of each; 0 = not given */
};

extern const struct gpuq_schema site_inventory_schema;

/* True if the labels have all pairs of the selector. */
bool inventory_selects(const struct gpuq_strmap *selector, const struct gpuq_strmap *labels);
/* The first entry that selects a node; NULL = none. */
const struct site_inventory *inventory_of(const struct site *s, const struct gpuq_strmap *labels);

/* The resource that a gres of scripts stands for; NULL = the site has none of that name. */
const char *inventory_gres(const struct site *s, const char *name);
/* Returns 0, or blames an entry of gres that maps no resource that can be counted. */
int inventory_gres_check(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s);

/* The first flavor whose devices are that resource; NULL = none. */
const struct site_flavor *inventory_flavor(const struct site *s, const char *resource);
/* True if the resource stands for devices: without being told, or by a flavor of the site. */
bool inventory_is_device(const struct site *s, const char *resource);
/* True for the names of NVIDIA's devices: whole ones, and replicas of one. */
bool inventory_names_nvidia(const char *resource);
/* Names of all devices but NVIDIA's, those of the site's flavors included, NULL-terminated, in the arena; NULL =
 * no memory. */
const char *const *inventory_others(const struct site *s, struct gpuq_arena *a);
/* Return the resource of the devices of nodes that the pool could get; NULL = they are NVIDIA's, or none come. */
const char *inventory_comes(const struct site *s, const struct site_pool *p);
/* True if containers of a manifest request NVIDIA's devices, in whatever dialect. */
bool inventory_is_nvidia(const struct site *s, const struct gpuq_group *g);
/* True if devices may be offered as that resource. */
bool inventory_may_be_device(const char *resource);

#endif
