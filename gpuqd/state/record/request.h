/* request.h - what a class of jobs requests of the cluster, once for all of them
 *
 * Owns     struct request: the scheduling half of a spec, shared by every job that
 *          requests the same.
 * Touches  memory only.
 * Used by  state/model (interns them), snapshot/snapshot (equivalence classes).
 *
 * 100,000 equivalent jobs have one request. Two requests are the same when the bytes of
 * their normalised trees are. 100,000 different jobs have as many requests, so a request
 * is one block of what scheduling needs, constraints on its nodes included: it is no larger where
 * only amounts are requested.
 */
#ifndef GPUQD_STATE_RECORD_REQUEST_H
#define GPUQD_STATE_RECORD_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "gpuqd/util/table.h"
#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/spec.h"

/* As the members of struct gpuq_group of the same names. */
struct request_group {
	const char *name, *mig;
	const struct gpuq_group *where; /* NULL = no constraint on its nodes */
	int64_t pods_min, pods_max, gpus_milli, gpu_memory_bytes, gpu_cores, cpu_milli,
		memory_bytes;
	const struct gpuq_amount *resources;
	uint32_t n_resources;
	bool mig_ok;
	bool chosen; /* its claims have the choice; in snapshots alone */
	struct gpuq_alternatives choice;
	struct gpuq_strlist mig_more;
};

/* As the members of struct gpuq_spec of the same names. */
struct request_spec {
	struct gpuq_strlist flavors;
	const struct gpuq_flavor_rule *flavor_rules;
	struct gpuq_strmap licenses;
	const struct request_group *groups;
	uint32_t n_groups;
	bool exclusive;
	uint8_t isolation; /* at least; enum gpuq_isolation */
	uint8_t spot; /* enum gpuq_spot */
};

struct request {
	struct request *prev, *next; /* in the model's list */
	uint32_t id; /* permanent; assigned by the model */
	uint32_t n_jobs; /* jobs that use it */
	uint32_t snap_ix; /* handle in the snapshot being taken */
	uint32_t early_ix; /* the same in a snapshot begun before it is taken (snapshot_early) */
	uint64_t early_turn; /* turn of that snapshot; 0 = it is in none */
	uint32_t n_pods; /* of one start: sum of pods_min */
	int64_t gpus_milli; /* of one start */
	uint32_t len;
	bool dirty; /* to be written */
	bool as_written; /* of a scenario (event.h): not stored */
	const unsigned char *bytes;
	struct request_spec spec; /* what the scheduler and limits read of it */
};

/* All requests of a model: found by id and by bytes. */
struct requests {
	struct request *list; /* in order of arrival */
	struct slots by_id, by_bytes;
};

struct request *request_find(const struct requests *all, uint32_t id);
struct request *request_find_bytes(const struct requests *all, const void *bytes, size_t n);
void request_add(struct requests *all, struct request *r);
void request_remove(struct requests *all, struct request *r); /* frees it */
void request_expect(struct requests *all, size_t n); /* make room for that many */
void request_done(struct requests *all);

/* Extract the request of a spec, groups in a; all else is borrowed. False: no memory. */
bool request_spec_of(struct gpuq_arena *a, const struct gpuq_spec *spec, struct request_spec *out);

/* Expand a request's group; what it points to belongs to the request. */
void request_group_of(const struct request_group *g, struct gpuq_group *out);

/* Append the bytes of the scheduling half of spec to out. */
int request_encode(const struct gpuq_spec *spec, struct gpuq_buf *out, struct gpuq_err *err);

/* Decode a request from its bytes; on the heap, for request_add(). */
int request_decode(const void *bytes, size_t n, struct request **out, struct gpuq_err *err);
/* Make a request of a spec that outlives it, beyond what a job file may say; bytes identify it, and
 * `where` points into the spec. */
struct request *request_borrow(const struct gpuq_spec *spec, const void *bytes, size_t n);
/* As request_decode(), faster where it is much like the last one added. */
int request_decode_after(const struct requests *all, const void *bytes, size_t n,
			 struct request **out, struct gpuq_err *err);

#endif
