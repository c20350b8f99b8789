/* kinds.h - the resource types that the fake apiserver serves
 *
 * Owns     one table: a row is a type, and whatever holds for every type
 *          (paths, discovery, list and watch, deletion) is read from its row.
 */
#ifndef FAKEKUBE_KINDS_H
#define FAKEKUBE_KINDS_H

#include <stdbool.h>
#include <stddef.h>

struct obj;
struct watcher;

struct kind {
	const char *plural, *name; /* "pods", "Pod" */
	const char *group, *version; /* "" is the core group */
	bool namespaced;

	/* Filled by kinds_init(). */
	char api_version[40];
	char prefix[96]; /* {"kind":"Pod","apiVersion":"v1", */
	size_t prefix_len;

	/* Data of the store and the watches, by type. */
	struct obj *objs; /* hash by "ns/name", or "name" */
	struct watcher *watchers;
};

enum kind_ix {
	KIND_PODS,
	KIND_NODES,
	KIND_CONFIGMAPS,
	KIND_SERVICES,
	KIND_EVENTS,
	KIND_NAMESPACES,
	KIND_QUOTAS,
	KIND_LIMITRANGES,
	KIND_SERVICEACCOUNTS,
	KIND_EVENTS_V1,
	KIND_LEASES,
	KIND_PRIORITYCLASSES,
	KIND_PDBS,
	KIND_JOBS,
	KIND_COUNT
};

extern struct kind kinds[KIND_COUNT];

void kinds_init(void);
/* The type of a path's group, version and plural; NULL if there is none. */
struct kind *kind_find(const char *group, const char *version, const char *plural);
/* Is any type of that group and version served? */
bool kind_of_group(const char *group, const char *version);
/* The first type of that plural, in any group; NULL if there is none. */
struct kind *kind_by_plural(const char *plural);

#endif
