/* history_index.h - the records of jobs that have ended, and the keys to find them
 *
 * Owns     the keys of TABLE_PAST and the record of a job in TABLE_HISTORY.
 * Touches  memory only.
 * Used by  state/model (writes, forgets), flow/history (reads).
 *
 * A job's record is its object as it was last seen. Five entries point at it, each
 * without a value of its own: by its end, and by its user, queue, name and state, each of
 * these in the order of the ends. So the newest of one user are neighbors, and a list can
 * continue from any of them without having kept anything open. An element of an array is found by
 * its own number as well: TABLE_ELEMENT has the key of its record.
 */
#ifndef GPUQD_STATE_RECORD_HISTORY_INDEX_H
#define GPUQD_STATE_RECORD_HISTORY_INDEX_H

#include "gpuqd/state/model.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/record/change.h"
#include "gpuqd/state/event.h"
#include "libgpuq/val.h"

#define PAST_ENTRIES 5 /* of one job */
#define PAST_TAIL_BYTES 16 /* bytes of a key behind letter and word: end, id, index */

enum past_by {
	PAST_BY_END = 'e', /* its word is "" */
	PAST_BY_USER = 'u',
	PAST_BY_QUEUE = 'q',
	PAST_BY_NAME = 'n',
	PAST_BY_STATE = 's', /* its long word */
};

/* Write the prefix of the keys of all jobs with that word. out: CHANGE_KEY_BYTES_MAX bytes, as
 * below; return the length. */
size_t history_prefix(unsigned char *out, enum past_by by, const char *word);
/* Write the key of one entry; INT64_MAX for end_us and a key of { UINT32_MAX, INT32_MAX } give one
 * above all. */
size_t history_key(unsigned char *out, enum past_by by, const char *word, int64_t end_us,
		   struct job_key job);
/* Step to the greatest key below this one, in place. */
void history_key_before(unsigned char *key, size_t n);
/* Read the key of an entry. False: it is not one. */
bool history_key_read(const unsigned char *key, size_t n, int64_t *end_us, struct job_key *job);

/* Write the key of a job's record in TABLE_HISTORY. A job has one record, with the cluster of its
 * last attempt. */
size_t history_record_key(unsigned char *out, struct job_key job);
/* Return the job of a history record. */
struct job_key history_key_of_job(const struct gpuq_val *job);

/* Add the entries of a record; the record itself is up to the caller. */
void history_index_entry(struct batch *out, const struct gpuq_val *job);
/* Remove record and entries, and whatever else is kept for the job. */
void history_forget(struct batch *out, const struct gpuq_val *job);

void history_record(struct model *m, const struct job *j, struct batch *out);

#endif
