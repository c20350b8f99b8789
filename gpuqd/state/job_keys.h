/* job_keys.h - a growing list of job numbers
 *
 * Owns     one allocation per list; { 0 } is an empty one.
 * Used by  code that first finds jobs and acts on them later, when they may have changed.
 */
#ifndef GPUQD_STATE_JOB_KEYS_H
#define GPUQD_STATE_JOB_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpuqd/state/event.h"

struct job_keys {
	struct job_key *items;
	size_t n, room;
	bool failed; /* out of memory: the list is incomplete */
};

/* Compare by id, an array (index -1) before its elements: < 0, 0, > 0. */
int job_key_cmp(struct job_key a, struct job_key b);

bool job_keys_add(struct job_keys *k, struct job_key key); /* false: out of memory */
void job_keys_sort(struct job_keys *k); /* in the order of job_key_cmp(), each once */
bool job_keys_has(const struct job_keys *k, struct job_key key); /* k must be sorted */
void job_keys_done(struct job_keys *k); /* leaves an empty list */

#endif
