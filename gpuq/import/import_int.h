/* import_int.h - what an import is while it is made; inside of import_kueue.c and import_queues.c
 *
 * Owns     struct import and struct object.
 * Touches  memory only.
 */
#ifndef GPUQ_IMPORT_IMPORT_INT_H
#define GPUQ_IMPORT_IMPORT_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "gpuq/import/import_kueue.h"
#include "libgpuq/buf.h"

/* One object of Kueue. */
struct object {
	const char *file, *kind, *name, *namespace_;
	const struct gpuq_val *v, *spec;
	const char *called; /* the queue's name here */
	const struct object *
		config; /* by which nodes of a ResourceFlavor are provisioned; NULL = they are not */
	bool used; /* an AdmissionCheck that a queue names */
};

struct import {
	struct gpuq_arena *a;
	struct object *items;
	size_t n, room;
	struct gpuq_val *site, *flavors, *pools, *qos, *queues;
	import_note_fn note;
	void *arg;
	bool plain; /* no ResourceFlavor has labels: devices have no flavors, quotas are numbers */
	struct gpuq_val *shapes; /* pools of --pools */
	struct gpuq_val *spread; /* flavors that these have, and Kueue has not */
	bool has_shapes; /* one of them has nodes that a check provisions */
	struct gpuq_buf comment; /* what is to be filled in; of the caller */
	struct left_out {
		struct gpuq_val *names; /* other resources than devices that have quotas */
		const struct object *last;
		const struct object *first; /* where, and in how many objects */
		const struct gpuq_val *at;
		size_t n;
	} left;
	bool again; /* what is read was read before: its notes have been reported */
	struct gpuq_err *err;
};

/* Tell of a field without a counterpart; where v has no place, the object's is reported. */
void import_note(struct import *im, const struct object *o, const struct gpuq_val *v,
		 const char *path, const char *why);
int import_fail(struct import *im, const struct object *o, const struct gpuq_val *v,
		const char *path, const char *what);

/* NULL: there is none. */
struct object *import_find(const struct import *im, const char *kind, const char *name);
/* A new member of a list, with this name. */
struct gpuq_val *import_member(struct import *im, struct gpuq_val *list, const char *name);
/* Unless it is empty. */
void import_put_map(struct import *im, struct gpuq_val *to, const char *key, struct gpuq_val *map);
/* The cohort above a Cohort or ClusterQueue; NULL = none. */
const char *import_cohort(const struct object *o);

bool import_is_gpu(const char *resource);
bool import_has_labels(const struct object *flavor);
/* Return the tolerations of a flavor, which pods on its nodes get; NULL = it has none, or o is NULL. */
const struct gpuq_val *import_tolerations(const struct object *o);
/* Give them to its pool, unless that has some. */
void import_tolerate(struct import *im, struct gpuq_val *pool, const struct object *flavor);
/* True if a member of the list has the name. */
bool import_has_name(const struct gpuq_val *list, const char *name);

/* The queue of a Cohort, ClusterQueue or LocalQueue; all have their names. */
int import_queue(struct import *im, const struct object *o);

#endif
