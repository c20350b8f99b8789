/* object.h - objects of a cluster that change what pods request, or where they may run
 *
 * Owns     the structs only. Touches nothing.
 * Used by  cluster/ (fills them), state/event, objects.h.
 *
 * A fact is complete, as those of state/fact.h are: it replaces the previous one of the same kind,
 * namespace and name. Strings are never NULL.
 */
#ifndef GPUQD_STATE_OBJECTS_OBJECT_H
#define GPUQD_STATE_OBJECTS_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/devices/dra/dra.h"
#include "libgpuq/spec.h"

enum object_kind {
	OBJECT_LIMITS, /* defaults of a namespace's containers (LimitRange) */
	OBJECT_RUNTIME, /* RuntimeClass */
	OBJECT_CLAIM, /* PersistentVolumeClaim */
	OBJECT_VOLUME, /* PersistentVolume */
	OBJECT_CLASS, /* StorageClass */
	OBJECT_UNHEALTHY, /* ConfigMap of gpushare: the cards of a node that are not to be used */
	/* Kinds of resource.k8s.io; their facts are in dra. */
	OBJECT_SLICE,
	OBJECT_DEVICE_CLASS,
	OBJECT_DEVICE_CLAIM,
	OBJECT_DEVICE_TEMPLATE,
	/* No object: known while gpuqd may select the node of a claim and bind a pod to it. */
	OBJECT_BINDING,
	OBJECT_ALLOCATING, /* the same, while it may allocate claims of devices */
	N_OBJECT_KINDS
};

#define ACCESS_WRITE_ONCE 1u /* from one node */
#define ACCESS_READ_MANY 2u
#define ACCESS_WRITE_MANY 4u
#define ACCESS_ONE_POD 8u

enum claim_state { CLAIM_PENDING, CLAIM_BOUND, CLAIM_LOST };

struct object_fact {
	enum object_kind kind; /* what it is: a claim, a volume, a class */
	const char *namespace_; /* "" of a kind without namespaces */
	const char *name;
	/* LIMITS: requests of a container that has none of its own; 0 = no default.
	 * RUNTIME: the overhead of a pod, beyond the requests of its containers. */
	int64_t cpu_milli, memory_bytes;
	/* LIMITS, RUNTIME: the same of all other resources, by name, devices included. */
	const struct gpuq_amount *amounts;
	size_t n_amounts;
	/* RUNTIME, VOLUME, CLASS: the nodes, one of the terms; n_required 0 = any. */
	const struct gpuq_term *required;
	size_t n_required; /* terms of its affinity; 0 = any node */
	/* RUNTIME: taints that its pods tolerate as well. */
	const struct gpuq_toleration *tolerations;
	size_t n_tolerations;
	/* CLAIM */
	enum claim_state state;
	const char *volume; /* when bound, or while it is being bound to that one; else "" */
	/* CLAIM: its labels decide as well which volume it may have: the cluster chooses. */
	bool selects;
	/* CLAIM, VOLUME */
	const char *class_; /* its StorageClass; "" none */
	int64_t size_bytes; /* requested, or there */
	unsigned modes; /* of access: ACCESS_ */
	bool block; /* a device, not a file system */
	/* VOLUME: no claim has it, and none is to have it. */
	bool unclaimed;
	/* Node on which an unbound claim is to be provisioned; "" none. UNHEALTHY: numbers of cards, "0,2". */
	const char *selected;
	/* CLASS: claims of it are bound once a node is selected for their first pod; and to volumes that are
	 * there already, as its driver makes none. Its nodes are in required. */
	bool waits, makes_none;
	union dra_fact dra; /* of the kinds from SLICE on */
};

/* Before the name of a RuntimeClass that a reason names. */
#define OBJECT_RUNTIME_PREFIX "runtimeclass/"

/* The ConfigMap of a node, and where it is. */
#define OBJECT_UNHEALTHY_PREFIX "unhealthy-gpu-"
#define OBJECT_UNHEALTHY_NAMESPACE "kube-system"

/* True if the ledger of devices/dra keeps objects of that kind. */
static inline bool object_is_dra(enum object_kind kind)
{
	return kind >= OBJECT_SLICE && kind <= OBJECT_DEVICE_TEMPLATE;
}

#endif
