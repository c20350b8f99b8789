/* pod_keys.h - what the site, a queue and a flavor give the pods of jobs: volumes, env, workdir, image
 *
 * Owns     struct site_pod_keys, and how its keys add up.
 * Touches  memory only.
 * Used by  site.c (rows of the file), flow/admit (checks a job with them), flow/order (pods).
 *
 * The job's own value wins, then the flavor's, the queue's, that of the queues above it, and the site's.
 * Variables add up by name, volumes by the path that they are mounted at. Pod templates of manifests are
 * taken as they are.
 */
#ifndef GPUQD_SITE_POD_KEYS_H
#define GPUQD_SITE_POD_KEYS_H

#include "libgpuq/schema.h"
#include "libgpuq/spec.h"

struct site;

struct site_pod_keys {
	const char *image, *workdir; /* NULL = not given */
	struct gpuq_strmap env;
	struct gpuq_objects volumes; /* struct gpuq_volume; %u, %q and %g in path and sub_path */
};

/* Check the keys of one object: marks that are known, paths without "..". v is its map. */
int pod_keys_check(struct gpuq_reader *r, const struct gpuq_val *v, const struct site_pod_keys *k);

/* Return the first volume that is a directory of the node; NULL = none. */
const struct gpuq_volume *pod_keys_host(const struct site_pod_keys *k);

/* True if pods of both queues get the same from their queues and sites. Keys that add up to the same in
 * another order count as different. */
bool pod_keys_same(const struct site *s, const char *queue, const struct site *other_site,
		   const char *other_queue);

/* The queue, user and flavor of the pods. */
struct pod_keys_for {
	const char *queue, *user;
	const char *flavor; /* "" = not decided yet */
	bool local; /* processes of this machine: no volumes, and they run where they were submitted */
};

/* Return the directory where a job runs that carries its own files, in a: --chdir counts from that of its submission in
 * the copy, and may lead out of it. NULL: no memory. */
const char *pod_keys_in_code(struct gpuq_arena *a, const struct gpuq_spec *spec);

/* Return a spec with what the site adds to it, in a; it shares what is unchanged with the one given.
 * GPUQ_EINVAL: the user's name, or the user's group, cannot be part of a path. GPUQ_ENOMEM. */
int pod_keys_merge(const struct site *s, const struct pod_keys_for *f, const struct gpuq_spec *spec,
		   struct gpuq_arena *a, struct gpuq_spec *out, struct gpuq_err *err);

#endif
