/* request.h - what a class of jobs asks of the cluster, once for all of them
 *
 * Owns     struct request: the scheduling half of a spec, shared by every job that
 *          asks for the same.
 * Touches  memory only.
 * Used by  state/model (interns them), snapshot/snapshot (equivalence classes).
 *
 * 100,000 alike jobs have one request. Two requests are the same when the bytes of
 * their normalised trees are. As many that are all different have as many, so a request
 * is one block of what scheduling needs: it takes no more where nothing but amounts is asked.
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

/* As those of struct gpuq_group that have the same names. */
struct request_group {
	const char *name, *mig;
	const struct gpuq_group *where; /* NULL = nothing says where it may run */
	int64_t pods_min, pods_max, gpus_milli, gpu_memory_bytes, gpu_cores, cpu_milli,
		memory_bytes;
};

/* As those of struct gpuq_spec that have the same names. */
struct request_spec {
	struct gpuq_strlist flavors;
	struct gpuq_strmap licenses;
	const struct request_group *groups;
	uint32_t n_groups;
	bool exclusive;
};

struct request {
	struct request *prev, *next; /* of the model's */
	uint32_t id; /* lasting; given by the model */
	uint32_t n_jobs; /* that use it */
	uint32_t snap_ix; /* handle in the snapshot being taken */
	uint32_t early_ix; /* the same in one that is begun before it is taken (snapshot_early) */
	uint64_t early_turn; /* of that one; 0 = it is in none */
	uint32_t n_pods; /* of one start: sum of pods_min */
	int64_t gpus_milli; /* of one start */
	uint32_t len;
	bool dirty;
	bool as_written; /* of a scenario (event.h): not stored */
	const unsigned char *bytes;
	struct request_spec spec;
	struct gpuq_arena arena; /* of what groups' `where` point to; mostly empty */
};

/* All of a model's: found by id and by bytes. */
struct requests {
	struct request *list; /* in the order in which they came */
	struct slots by_id, by_bytes;
};

struct request *request_find(const struct requests *all, uint32_t id);
struct request *request_find_bytes(const struct requests *all, const void *bytes, size_t n);
void request_add(struct requests *all, struct request *r);
void request_remove(struct requests *all, struct request *r); /* frees it */
void request_expect(struct requests *all, size_t n); /* so many are going to come */
void request_done(struct requests *all);

/* What a request of that spec would hold, groups in a; all else is borrowed. False: no memory. */
bool request_spec_of(struct gpuq_arena *a, const struct gpuq_spec *spec, struct request_spec *out);

/* All of a group that a request keeps of it; what it points to is the request's. */
void request_group_of(const struct request_group *g, struct gpuq_group *out);

/* The bytes of the scheduling half of spec, appended to out. */
int request_encode(const struct gpuq_spec *spec, struct gpuq_buf *out, struct gpuq_err *err);

/* A request from its bytes; on the heap, for request_add(). */
int request_decode(const void *bytes, size_t n, struct request **out, struct gpuq_err *err);
/* The same from a spec that outlives it, whatever a job file may say; bytes tell it from others. */
struct request *request_borrow(const struct gpuq_spec *spec, const void *bytes, size_t n);
/* The same, sooner where it is much like the last one that was added. */
int request_decode_after(const struct requests *all, const void *bytes, size_t n,
			 struct request **out, struct gpuq_err *err);

#endif
