/* history.h - jobs that have ended and left memory
 *
 * Owns     nothing. Touches the store (reads committed records).
 * Used by  flow/admit/submit (dependencies), rpc methods (job.get, job.wait, job.logs). Lists are
 * history_scan.h's. */
#ifndef GPUQD_FLOW_HISTORY_H
#define GPUQD_FLOW_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct store;

/* Return the job object in a record; NULL: it is none. */
struct gpuq_val *history_read(struct gpuq_arena *a, const void *bytes, size_t n);

/* Return the job object in its last state, or NULL. */
struct gpuq_val *history_job(struct store *st, struct job_key key, struct gpuq_arena *a);

/* Append the records of a job (its elements, too), at most max of them, in order of index, as job
 * objects. Returns how many were added to list. */
int history_jobs(struct store *st, uint32_t id, size_t max, struct gpuq_arena *a,
		 struct gpuq_val *list);

/* Find the ended element of an array that had this number of its own. Returns false: there is none. */
bool history_element(struct store *st, uint32_t number, struct job_key *key);

/* Get the state in which it ended. Returns 0 or GPUQ_ENOENT. */
int history_state(struct store *st, struct job_key key, enum gpuq_job_state *state);

#endif
