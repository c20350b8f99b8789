/* request.h - what a class of jobs asks of the cluster, once for all of them
 *
 * Owns     struct request: the scheduling half of a spec, shared by every job that
 *          asks for the same.
 * Touches  memory only.
 * Used by  state/model (interns them), snapshot/snapshot (equivalence classes).
 *
 * 100,000 alike jobs have one request. Two requests are the same when the bytes of
 * their normalised trees are.
 */
#ifndef GPUQD_STATE_RECORD_REQUEST_H
#define GPUQD_STATE_RECORD_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/spec.h"

struct request {
	UT_hash_handle hh_bytes, hh_id;
	uint32_t id; /* lasting; given by the model */
	uint32_t n_jobs; /* that use it */
	uint32_t snap_ix; /* handle in the snapshot being taken */
	bool dirty;
	struct gpuq_arena arena;
	struct gpuq_spec spec; /* groups' resources and constraints, flavors, licenses; no more */
	unsigned char *bytes;
	size_t len;
	uint32_t n_pods; /* of one start: sum of pods_min */
	int64_t gpus_milli; /* of one start */
};

/* The bytes of the scheduling half of spec, appended to out. */
int request_encode(const struct gpuq_spec *spec, struct gpuq_buf *out, struct gpuq_err *err);

/* A request from its bytes; on the heap, request_free(). */
int request_decode(const void *bytes, size_t n, struct request **out, struct gpuq_err *err);
/* The same from a spec that outlives it, whatever a job file may say; bytes tell it from others. */
struct request *request_borrow(const struct gpuq_spec *spec, const void *bytes, size_t n);
void request_free(struct request *r);

#endif
