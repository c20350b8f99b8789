/* history_index.h - what is kept of jobs that have ended, and where to find it
 *
 * Owns     the keys of TABLE_PAST and the record of a job in TABLE_HISTORY.
 * Touches  memory only.
 * Used by  state/model (writes, forgets), flow/history (reads).
 *
 * A job's record is its object as it was last seen. Five entries point at it, each
 * without a value of its own: by its end, and by its user, queue, name and state, each of
 * these in the order of the ends. So the newest of one user are neighbours, and a list can
 * go on from any of them without having kept anything open.
 */
#ifndef GPUQD_STATE_RECORD_HISTORY_INDEX_H
#define GPUQD_STATE_RECORD_HISTORY_INDEX_H

#include "gpuqd/state/model_int.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/record/change.h"
#include "gpuqd/state/event.h"
#include "libgpuq/val.h"

#define PAST_ENTRIES 5 /* of one job */
#define PAST_TAIL_BYTES 16 /* of a key, behind letter and word: end, id, index */

enum past_by {
	PAST_BY_END = 'e', /* its word is "" */
	PAST_BY_USER = 'u',
	PAST_BY_QUEUE = 'q',
	PAST_BY_NAME = 'n',
	PAST_BY_STATE = 's', /* its long word */
};

/* What the keys of all jobs with that word begin with. out: CHANGE_KEY_BYTES_MAX bytes, as
 * below; returns the length. */
size_t history_prefix(unsigned char *out, enum past_by by, const char *word);
/* The key of one of them; INT64_MAX for end_us and a key of { UINT32_MAX, INT32_MAX } give
 * one above all. */
size_t history_key(unsigned char *out, enum past_by by, const char *word, int64_t end_us,
		   struct job_key job);
/* The greatest key below this one, in place. */
void history_key_before(unsigned char *key, size_t n);
/* False: it is no key of an entry. */
bool history_key_read(const unsigned char *key, size_t n, int64_t *end_us, struct job_key *job);

/* The key of a job's record in TABLE_HISTORY. There is one record of a job, with the cluster
 * that its last attempt was given. */
size_t history_record_key(unsigned char *out, struct job_key job);
/* The job that a record of the history is about. */
struct job_key history_key_of_job(const struct gpuq_val *job);

/* Add the entries of a record; the record itself is the caller's. */
void history_index_entry(struct batch *out, const struct gpuq_val *job);
/* Take record and entries away, and what else is kept for the job's sake. */
void history_forget(struct batch *out, const struct gpuq_val *job);

void history_record(struct model *m, const struct job *j, struct batch *out);

#endif
