/* yaml_alias.h - anchors, aliases and merge keys, as Kubernetes' tools read them
 *
 * Owns     the anchors of the document that is being read.
 * Touches  memory only.
 * Used by  yaml.c.
 *
 * An alias becomes a copy of its anchor's value, so that a tree stays a tree: its values count
 * towards the limit of the file, which is why short text cannot become a huge job.
 */
#ifndef LIBGPUQ_YAML_ALIAS_H
#define LIBGPUQ_YAML_ALIAS_H

#include "libgpuq/arena.h"
#include "libgpuq/val.h"

struct yaml_anchors {
	struct gpuq_val *map; /* name to value, the latest last; NULL = none yet */
	unsigned aliases; /* of the file */
};

/* Remember v under name; false without memory. A document begins with none. */
bool yaml_anchor_set(struct yaml_anchors *x, struct gpuq_arena *a, const char *name,
		     struct gpuq_val *v);
struct gpuq_val *yaml_anchor_get(const struct yaml_anchors *x, const char *name);

/* Count the values of v and its levels; nothing is deeper than the reader allows. */
size_t yaml_size(const struct gpuq_val *v, unsigned *levels);

/* Add to map the pairs of from, a map or a list of maps, whose keys it lacks: its own pairs win,
 * then the earlier map. Returns 0, GPUQ_EINVAL (not maps), GPUQ_ETOOBIG (more than GPUQ_MAP_MAX
 * pairs) or GPUQ_ENOMEM. */
int yaml_merge(struct gpuq_arena *a, struct gpuq_val *map, const struct gpuq_val *from);

#endif
