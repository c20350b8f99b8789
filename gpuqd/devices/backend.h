/* backend.h - systems that allocate the devices of a node, a row each
 *
 * Owns     their names, keys and numbers, and the table of them. Touches memory only: keys of pods
 *          are taken and returned as data.
 * Used by  cluster/kube (reads nodes and pods, writes pods), snapshot/snapshot_take (placement),
 *          flow/admit (what can be served), state/node (pools that name a backend).
 *
 * A node says by the label SHARE_LABEL which backend it has; the cluster's side sets it, from the
 * resources that the node offers. A node without the label offers any part of a device.
 */
#ifndef GPUQD_DEVICES_BACKEND_H
#define GPUQD_DEVICES_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/names.h"
#include "libgpuq/spec.h"

#define SHARE_LABEL "gpuq.io/sharing"
/* The label that names the resource of devices which are not NVIDIA's, set likewise. */
#define SHARE_DEVICES "gpuq.io/devices"

/* Which pods of a node may be under way at a time, from their creation until the plugin has served
 * them. */
enum backend_turn {
	TURN_MANY, /* all of them */
	TURN_EQUAL, /* one of each amount: the plugin distinguishes pods by it */
	TURN_NODE, /* one */
	TURN_LOCK /* one, which the lock of the node names: devices/hami.h */
};

/* The trouble of a pod that its node's plugin does not serve. */
#define BACKEND_TROUBLE "DevicePlugin"
/* The trouble of one that is not created, since its node's plugin gave the planned devices to other pods. */
#define BACKEND_NO_ROOM "DeviceRoom"
/* See backend_seen.unserved. */
#define UNSERVED_NODE INT64_C(-1)
#define UNSERVED_LOCK INT64_C(-2) /* the same, and it has the lock of its node */

/* The largest that the nodes of one backend offer. */
struct backend_shape {
	uint32_t n_nodes; /* 0 = the cluster has none of them */
	int64_t device_mib; /* of the largest device; 0 = not known */
};

/* One pod on one node. */
struct backend_ask {
	const struct gpuq_group *group;
	const char *node;
	const char *resource; /* of the node's devices */
	const int *devices; /* indexes, ascending */
	const char *const *uuids; /* of them; NULL = not known */
	size_t n_devices;
	int64_t device_mib; /* of one device of the node */
	int64_t milli; /* of each device */
	int64_t now_us;
	uint32_t attempt; /* from 0 */
	size_t n_init, n_containers; /* of the pod */
	size_t at; /* the container that has the devices */
};

struct backend_word {
	const char *key, *value; /* of an annotation; in the arena, or static */
};

#define BACKEND_LIMITS_MAX 3
#define BACKEND_NOTES_MAX 8

/* Free of one device, or wanted of it. */
struct backend_room {
	int64_t milli, mib;
};

/* Means by which the plugin finds the pod and its devices. */
struct backend_place {
	struct gpuq_amount limits[BACKEND_LIMITS_MAX]; /* of the container that has the devices */
	size_t n_limits;
	struct backend_word notes[BACKEND_NOTES_MAX]; /* annotations */
	size_t n_notes;
	struct backend_word label; /* key NULL = none */
	int64_t units; /* by which TURN_EQUAL distinguishes pods */
	struct backend_room want; /* for choose: of all of its devices together */
};

/* Devices of a pod, as it reports them. */
struct backend_seen {
	const int *devices; /* indexes, ascending, each once; in the arena */
	size_t n_devices; /* 0 = not reported */
	struct gpuq_strlist uuids; /* of them, where those are told instead */
	/* Names that pods give as UUIDs of devices which this one holds for them. */
	struct gpuq_strlist holds;
	int64_t gpus_milli; /* of all of them; 0 = not reported */
	int64_t memory_bytes; /* of each; 0 = not reported */
	int64_t memory_units; /* of all of them, where its node tells what a unit is; 0 = none */
	/* Not served by the plugin yet: units as in backend_place, or UNSERVED_*; 0 = served. */
	int64_t unserved;
	bool failed; /* nor will it be */
	bool chosen; /* by the plugin of its node, from what is free there */
};

struct backend {
	const char *word; /* of SHARE_LABEL */
	const char *pool; /* `sharing` of the pools that have such nodes */
	const char *title; /* for people */
	bool by_replica; /* parts are replicas of one size */
	bool by_memory; /* parts are memory alone */
	bool closed; /* another scheduler may allocate its devices: gpuqd does only if a pool says so */
	bool parts; /* it serves parts of devices */
	enum gpuq_isolation isolates; /* parts of one device, or those of its replicas */
	bool decided; /* a pod has the devices that gpuqd planned; else the node chooses */
	enum backend_turn turn;
	int64_t unit_mib; /* amounts of memory are multiples of it; 0 = of any size */
	uint32_t slots; /* pods that a device can have at a time; 0 = no limit of the backend's */

	/* validate: true if pods of g can be on its nodes; and whether one of them is large enough
	 * (GPUQ_ERANGE, and why not). NULL = always. */
	bool (*takes)(const struct gpuq_group *g);
	int (*validate)(const struct gpuq_group *g, const struct backend_shape *s,
			struct gpuq_err *err);
	/* place: GPUQ_EINVAL when the devices cannot hold it. NULL = it is requested as it is. */
	int (*place)(const struct backend *b, const struct backend_ask *ask, struct gpuq_arena *a,
		     struct backend_place *out, struct gpuq_err *err);
	/* choose: the first device that the plugin will choose for a pod that wants so much, by what is free of
	 * the n devices of its node; -1 = none, the pod would be refused. NULL = it does not choose.
	 * The choice is written under `index` and the number of the container; with `demand` on the pod the plugin
	 * refuses it when it chooses another. */
	int (*choose)(struct backend_room want, const struct backend_room *devices, size_t n);
	const char *index, *demand;
	/* observe: fill in what the annotations of a pod report, and leave the rest as it is. asks: the
	 * words of dialects that its containers request. NULL = pods tell nothing. */
	int (*observe)(const struct gpuq_strmap *notes, const struct gpuq_amount *asks,
		       size_t n_asks, struct gpuq_arena *a, struct backend_seen *out);
};

/* By the label's value; NULL for "" and for words that are not ours. */
const struct backend *backend_of(const char *word);

/* Words of nodes on which a pod of g cannot be, NULL-terminated, in the arena; NULL = on any. claims:
 * there are nodes with devices of claims. */
const char *const *backend_barred(const struct gpuq_group *g, bool claims, struct gpuq_arena *a);

/* True if a pod of g takes devices of NVIDIA's only: it cannot be on nodes with a label SHARE_DEVICES that
 * names others. flavors: it names the kinds of device that it takes. */
bool backend_wants_nvidia(const struct gpuq_group *g, bool flavors);

/* True if nodes with that label ("" none) and that number of MIG instances belong into a pool whose
 * `sharing` is so called. */
bool backend_fits_pool(const char *pool, const char *word, size_t n_mig);

/* True if pods of g can be on nodes of a pool whose `sharing` is so called, as far as that tells. */
bool backend_pool_takes(const char *pool, const struct gpuq_group *g);
/* Return the word that nodes of such a pool have; "" = not known before they are there. */
const char *backend_pool_word(const char *pool);

/* Return the MiB of a device of device_mib that a part of so many thousandths gets there, or one with an amount of
 * memory (0 = in proportion). b NULL = no system gives it. */
int64_t backend_gives_mib(const struct backend *b, int64_t memory_bytes, int64_t milli,
			  int64_t device_mib);

/* True if the group requests parts of devices, by any of its keys. */
bool backend_shares(const struct gpuq_group *g);

/* Return the isolation of parts of one device on the nodes of a pool whose `sharing` is so called, at
 * least. */
enum gpuq_isolation backend_pool_isolates(const char *pool);

/* Check a group against the nodes that there are: shape_of tells of each backend. Returns 0 where a
 * backend with nodes may serve it, or none has any; GPUQ_ERANGE, and why none of them ever will. */
typedef void (*backend_shape_fn)(void *arg, const struct backend *b, struct backend_shape *out);
int backend_validate(const struct gpuq_group *g, backend_shape_fn shape_of, void *arg,
		     struct gpuq_err *err);

/* Place a pod on a node with this label. Returns 0 with *which = NULL where it is requested as it is. */
int backend_place(const char *word, const struct backend_ask *ask, struct gpuq_arena *a,
		  const struct backend **which, struct backend_place *out, struct gpuq_err *err);

/* Read what the annotations of a pod report of its devices. Returns 0; GPUQ_ENOMEM. */
int backend_observe(const struct gpuq_strmap *notes, const struct gpuq_amount *asks, size_t n_asks,
		    struct gpuq_arena *a, struct backend_seen *out);

/* Read "3,0,2": ascending, each once, in the arena. n 0: it is no such list, or too long a one. Returns 0;
 * GPUQ_ENOMEM. */
int backend_indexes(const char *text, struct gpuq_arena *a, const int **out, size_t *n);
/* Read "a,b" in the arena; out is empty before, and stays so for more than `most`. Empty words are none. Returns 0;
 * GPUQ_ENOMEM. */
int backend_words(const char *text, size_t most, struct gpuq_arena *a, struct gpuq_strlist *out);

#endif
