/* snapshot_taking.h - a snapshot while it is being taken from the model
 *
 * Owns     struct taking; what it borrows from the model holds until its site or a node changes.
 * Touches  memory only.
 * Used by  snapshot_take*.c only.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKING_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKING_H

#include <string.h>

#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/snapshot/snapshot_take_more.h"
#include "libgpuq/arena.h"

struct snap_amounts;
struct snap_caps;
struct snap_objects;

struct ask;

/* A node that has come for an ask: asks/ask.h. */
struct taking_came {
	const char *name; /* interned */
	const struct ask *ask;
	bool stale;
};

/* State of building a snapshot from the model. */
struct taking {
	const struct model *m;
	struct snapshot *s;
	int64_t now_us; /* the time of the cycle */
	uint32_t *queue_of; /* by queue ix */
	uint32_t n_flavors;
	const char **flavors; /* names, by flavor */
	/* By flavor: since when requests for its nodes have failed, and no node of it is there; 0 or GPUQ_UNLIMITED =
	 * not so. NULL = of none. */
	int64_t *closed_us;
	struct snap_caps *caps;
	struct gpuq_arena mem; /* of this taking */
	struct gpuq_arena scratch; /* of the request being added */
	bool spread; /* some pool spreads */
	bool *packs; /* by flavor: some node of it is in a pool that packs its nodes */
	bool by_kind; /* the site has no flavors: a flavor that a job names is a kind */
	struct gpuq_strlist kinds; /* of the nodes' devices, each once; interned */
	bool has_spot, has_price; /* some pool of the site is spot; something has a price */
	bool has_others; /* some node's devices are not NVIDIA's */
	bool has_claims; /* some node's devices are those of claims */
	bool few; /* only `most` of equivalent jobs have entries of their own; false: all */
	uint32_t most;
	enum alike_reader reader;
	const struct snapshot_more *more; /* NULL = the model knows all */
	struct snap_objects *objects; /* NULL = no job is taken */
	struct snap_profiles *profiles; /* snapshot_choices.c; NULL = not needed yet */
	uint64_t early; /* requests with this turn are in the snapshot already; 0 = none is */
	uint32_t early_at; /* id of the last of them */
	struct taking_came *came;
	uint32_t n_came;
	bool part; /* without settled jobs, and requests that no other job has */
};

#define MORE(t, fn, ...)                                                                           \
	do {                                                                                       \
		if ((t)->more && (t)->more->fn)                                                    \
			(t)->more->fn((t)->more->arg, __VA_ARGS__);                                \
	} while (0)

/* True if the names are of kinds, not of flavors. */
bool snapshot_take_by_kind(const struct taking *t, const struct gpuq_strlist *flavors);
/* Add a request and return its handle. of: the request that it is the spec of; NULL = a guest's. in:
 * as jobs of that queue make it; NULL = as it is. taken: by group, what its pods take; NULL = not
 * known. */
uint32_t snapshot_take_request(struct taking *t, const struct request_spec *spec,
			       const struct request *of, const struct queue *in,
			       const struct snap_amounts *taken);
/* Add a request as it is; SNAP_NONE where all of its jobs have variants of it. */
uint32_t snapshot_take_base(struct taking *t, const struct request *r);

/* Add the jobs of the model, at once or, after snapshot_take_jobs_begin(), some in each call: true = that
 * was all. Between calls jobs may change, come and go: each is added as it is when it is reached,
 * and those that came after the beginning are left to the next snapshot. */
void snapshot_take_jobs(struct taking *t);
void snapshot_take_jobs_begin(struct taking *t);
bool snapshot_take_jobs_go_on(struct taking *t, uint32_t most);

/* Take all but the jobs: the users of all jobs have their usage, and t has the sealed snapshot with
 * the places of queues, nodes and requests in it. t has a model and a time. */
int snapshot_take_empty(struct taking *t, struct gpuq_err *err);

/* Fill in what a job is in the snapshot, but its usage. holds: it has pods that hold devices. False:
 * it is not in the snapshot. */
bool snapshot_take_entry(struct taking *t, const struct job *j, struct snap_job *out, bool *holds);
/* Fill in a pod that holds devices, or one of a nominated placement; but its job. False: no
 * memory. */
bool snapshot_take_pod(struct taking *t, const struct pod *p, struct snap_alloc *out);
bool snapshot_take_promised(struct taking *t, const struct promise *promise, uint32_t index,
			    struct snap_alloc *out);

/* Return the handle of a flavor; SNAP_NONE = the site has no such flavor. */
static inline uint32_t snapshot_taking_flavor(const struct taking *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_flavors; i++)
		if (strcmp(t->flavors[i], name) == 0)
			return i;
	return SNAP_NONE;
}

#endif
