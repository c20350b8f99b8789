/* known.h - objects of the cluster, as last reported
 *
 * Owns     a small record for each pod and node: enough to report it as gone when a
 *          complete list does not name it any more.
 * Touches  memory only.
 * Used by  watch.c, logs.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_KNOWN_H
#define GPUQD_CLUSTER_KUBE_WATCH_KNOWN_H

#include <stddef.h>
#include <stdint.h>

#include "gpuqd/cluster/cluster.h"

struct known;

struct known_thing {
	const char *namespace_, *name; /* namespace "" for a node */
	const char *uid, *token, *node;
	enum pod_phase phase;
	uint64_t list; /* number of the last list or watch that named it */
};

struct known *known_new(void); /* NULL: no memory */
void known_free(struct known *k);

/* NULL when it is not known. Valid until it is set or dropped. */
const struct known_thing *known_find(const struct known *k, const char *namespace_,
				     const char *name);

/* Add or replace; strings are copied. 0 or GPUQ_ENOMEM. */
int known_set(struct known *k, const struct known_thing *t);

void known_drop(struct known *k, const char *namespace_, const char *name);

/* Call fn for each whose list number is not `list`, then drop it. */
void known_sweep(struct known *k, uint64_t list, void (*fn)(void *arg, const struct known_thing *t),
		 void *arg);

/* Call fn for each whose list number is not `list`; fn may drop that one. */
void known_missing(struct known *k, uint64_t list,
		   void (*fn)(void *arg, const struct known_thing *t), void *arg);

/* Call fn for each; it changes nothing. */
void known_each(const struct known *k, void (*fn)(void *arg, const struct known_thing *t),
		void *arg);

size_t known_count(const struct known *k);

#endif
