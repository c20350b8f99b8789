/* snapshot_take_objects.h - requests as the cluster makes them in the namespace of a queue
 *
 * Owns     what was computed for pairs of a request and a queue, for one snapshot.
 * Touches  memory only.
 * Used by  snapshot_take.c.
 *
 * The same request is another one in another namespace: a LimitRange gives its containers
 * requests, admission adds containers, its claims are other claims. The snapshot then has a request
 * of its own for it, so that the scheduler knows nothing of namespaces, claims and runtimes: only
 * amounts, terms over labels, and jobs that have to wait.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_OBJECTS_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_OBJECTS_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"

struct snap_objects;

/* A request in a queue. */
struct snap_variant {
	uint32_t request; /* its handle; SNAP_NONE = not added yet */
	uint8_t gate; /* GPUQ_R_NONE, or why jobs with it cannot start */
	const char *
		gate_object; /* the claim or the runtime; lives as long as the request and the arena */
};

/* CPU and memory of one pod of a group. */
struct snap_amounts {
	int64_t cpu_milli, memory_bytes;
};

/* NULL: no memory. The result and all that it returns live in mem, but for a table. */
struct snap_objects *snapshot_objects_new(const struct model *m, struct gpuq_arena *mem);
void snapshot_objects_done(struct snap_objects *o); /* NULL is fine */

/* True if the request names claims or a runtime: it has a variant in each queue. */
bool snapshot_objects_named(const struct request_spec *spec);
/* Return the variant of a request for jobs of q; NULL = the request as it is. A new one has to be
 * added to the snapshot: snapshot_objects_group() for each group. r NULL: of a job that was not
 * submitted, not kept for others. */
struct snap_variant *snapshot_objects_of(struct snap_objects *o, const struct queue *q,
					 const struct request_spec *spec, const struct request *r);
/* Apply what the namespace of q, the runtime and volumes add to the group. */
void snapshot_objects_group(struct snap_objects *o, const struct queue *q,
			    const struct request_group *g, struct snap_group *out);
/* Add a license to the snapshot for each claim which one pod can be using at a time: before all requests. */
void snapshot_objects_licenses(struct snap_objects *o, struct snapshot *s);
/* Add what one start takes of those to needs, which has room for each volume of the spec. */
void snapshot_objects_needs(const struct snap_objects *o, const struct queue *q,
			    const struct request_spec *spec, struct snap_license_need *needs,
			    uint32_t *n_needs);
/* Return how many volumes the groups of the spec name. */
size_t snapshot_objects_volumes(const struct request_spec *spec);
struct snap_claims *snapshot_objects_claims(struct snap_objects *o);
/* Return by group what a pod of the live job takes, as far as the cluster has reported; NULL = as
 * the request or its variant says. */
const struct snap_amounts *snapshot_objects_taken(struct snap_objects *o, const struct job *j);

#endif
