/* walls.h - what the pods of a queue may mount, which pod policy they keep to, and how isolated they are
 *
 * Owns     struct site_walls, and how it follows from the keys of a queue and those above it.
 * Touches  nothing.
 * Used by  flow (fills it for a job), cluster (checks and creates pods by it).
 */
#ifndef GPUQD_SITE_WALLS_H
#define GPUQD_SITE_WALLS_H

#include <stdbool.h>

#include "libgpuq/schema.h"

struct site;
struct site_queue;

/* Objects of one kind, by name. */
struct site_mounts {
	enum {
		WALL_ANY,
		WALL_OWNER,
		WALL_LIST
	} kind; /* any object; those with the owner's label; those that globs name */
	struct gpuq_strlist globs; /* of WALL_LIST; they live as long as the site */
};

struct site_walls {
	const char *pod_policy; /* baseline, restricted or privileged */
	struct site_mounts secrets, config_maps, volume_claims;
	bool tokens; /* tokens of the service account */
};

/* Keys that are absent in the queue are those of the queue above; tokens are allowed where one of them
 * says so. At the top pod_policy is that of the site, mounts are any, and secrets are owner where the
 * queues of the namespace let in more than one user. */
void walls_of_queue(const struct site *s, const char *queue, struct site_walls *out);

/* Derive one_user of all queues of a site that was read. GPUQ_ENOMEM. */
int walls_settle(struct site *s, struct gpuq_err *err);

/* Check the form of a key: any, owner, or globs. NULL = well, else what is expected. */
const char *walls_check(const struct gpuq_strlist *l);

/* Refuse a queue that demands less isolation than one above it, which counts for its jobs as well. Earlier versions
 * stored such, without effect. None is what a queue demands that says nothing. */
int walls_check_isolation(struct gpuq_reader *r, const struct gpuq_val *v, struct site *s,
			  size_t i);

#endif
