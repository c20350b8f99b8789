/* objects.h - what the cluster adds to pods, and what ties them to nodes
 *
 * Owns     the last fact of each LimitRange, RuntimeClass, claim, volume and StorageClass; the
 *          devices of resource.k8s.io; what
 *          admission added to pods of each queue. Not stored: reported anew after a start.
 * Touches  memory only.
 * Used by  state/row.c (events), snapshot/ (placement), flow/ (binding), flow/advise/twin.
 *
 * A kind is known once a complete list of it has been reported, and off again where gpuqd has no
 * right to read it: then nothing is concluded from an object that is missing.
 */
#ifndef GPUQD_STATE_OBJECTS_OBJECTS_H
#define GPUQD_STATE_OBJECTS_OBJECTS_H

#include "gpuqd/state/objects/object.h"
#include "libgpuq/arena.h"

struct objects;

struct objects *objects_new(void); /* NULL: no memory */
void objects_free(struct objects *o); /* NULL is fine */
struct objects *objects_copy(const struct objects *o); /* NULL: no memory */

/* False: nothing changes. */
bool objects_seen(struct objects *o, const struct object_fact *f);
bool objects_gone(struct objects *o, enum object_kind kind, const char *namespace_,
		  const char *name);
/* Without known, those of that kind are forgotten; why: the words of the cluster for that, NULL = none. home: the
 * namespace of queues that name none. */
void objects_known(struct objects *o, enum object_kind kind, bool known, const char *why,
		   const char *home);
bool objects_is_known(const struct objects *o, enum object_kind kind);
size_t objects_count(const struct objects *o, enum object_kind kind);

/* NULL = there is none. namespace_ "" is that of queues that name none. */
const struct object_fact *objects_find(const struct objects *o, enum object_kind kind,
				       const char *namespace_, const char *name);

/* Return the namespace itself: for that of queues which name none, gpuqd's own. */
const char *objects_namespace(const struct objects *o, const char *namespace_);
/* Return what gpuqd may not do to allocate claims of devices, an API group or a resource; NULL = it may do all.
 * *words: those of the cluster for it; NULL = none. */
const char *objects_claims_lack(const struct objects *o, const char **words);
/* The devices that the cluster has as objects. */
const struct dra *objects_dra(const struct objects *o);

/* ---- requests ---- */

/* Requests of the pods of a group, and where they are made. */
struct objects_pod {
	const char *queue, *namespace_;
	const char *runtime_class; /* "" or NULL = none */
	int64_t cpu_milli, memory_bytes; /* of the pod */
};

/* Add the namespace's defaults, for a pod that requests nothing, and the runtime's overhead. */
void objects_add_known(const struct objects *o, struct objects_pod *p);
/* Put the countable resources of a pod that requests those of has, with the defaults and the overhead
 * added: all but those of objects_defaults(), and devices. Returns how many, at most room. */
size_t objects_add_amounts(const struct objects *o, const struct objects_pod *p,
			   const struct gpuq_amount *has, size_t n_has, struct gpuq_amount *out,
			   size_t room);
/* Put the names of the extended resources, devices included, that the apiserver would give a container of the
 * namespace which does not name them. Pods name them as 0: what a pod takes of them is what its job
 * requests, whichever of its containers does. Names live as long as the objects. False: no memory. */
bool objects_defaults(const struct objects *o, const char *namespace_, struct gpuq_arena *a,
		      struct gpuq_strlist *out);
/* Add the same, and what the queue's pods were given beyond it lately. */
void objects_add(const struct objects *o, struct objects_pod *p);
/* True if objects_add() changes some pod of that queue, whatever its runtime. */
bool objects_adds(const struct objects *o, const char *queue, const char *namespace_);
/* Learn what admission (sidecars, policies) added to a pod of the queue. False: no news. */
bool objects_learn(struct objects *o, const char *queue, int64_t cpu_milli, int64_t memory_bytes);
bool objects_would_learn(const struct objects *o, const char *queue, int64_t cpu_milli,
			 int64_t memory_bytes);
bool objects_has_learnt(const struct objects *o, const char *queue); /* even that it was nothing */

/* ---- claims ---- */

enum objects_claim {
	OBJECTS_CLAIM_FREE, /* no restriction, or nothing is known of claims */
	OBJECTS_CLAIM_TIED, /* bound to a volume whose nodes are restricted */
	OBJECTS_CLAIM_MISSING, /* there is no such claim, or its volume is lost */
	OBJECTS_CLAIM_UNBOUND, /* it is being bound, whatever its pods; or gpuqd may not bind it */
	OBJECTS_CLAIM_WAITS, /* it will be bound once a node is selected for its pod */
	/* As WAITS, to one of the volumes that are there: gpuqd chooses it with the node. */
	OBJECTS_CLAIM_CHOOSES,
};

/* *volume, which says on which nodes: of a tied claim; of one that waits, the volume that it is to have, or
 * its class. Else NULL. */
enum objects_claim objects_claim(const struct objects *o, const char *namespace_, const char *name,
				 const struct object_fact **volume);
/* Return the next volume, after NULL the first, that a claim which chooses may have; NULL = no other. */
const struct object_fact *objects_volume(const struct objects *o, const char *namespace_,
					 const char *name, const struct object_fact *after);
/* Return those of which one pod can be using each (ReadWriteOncePod), by namespace and name, in the arena; n: how many. */
const struct object_fact **objects_one_pod(const struct objects *o, struct gpuq_arena *a,
					   size_t *n);
/* True if one pod alone can be using that claim at a time. */
bool objects_is_one_pod(const struct objects *o, const char *namespace_, const char *name);
/* True if claims can be followed until they are bound, and pods be bound then. */
bool objects_may_bind(const struct objects *o);
/* True if the node is one of those that the volume, or the runtime, allows. */
bool objects_fits(const struct object_fact *f, const char *node, const struct gpuq_strmap *labels);

#endif
