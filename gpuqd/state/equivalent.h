/* equivalent.h - waiting jobs that differ in their age alone
 *
 * Owns     what such jobs have in common, for as long as there is one.
 * Touches  memory only.
 * Used by  the files of state/, which forgets it of a job that changes; snapshot/snapshot_take.c and flow/publish.c,
 *          which then need not look at each of a hundred thousand jobs by itself.
 *
 * Plain jobs alone are alike: what has begun before, is part of an array, waits for
 * others, for a time or for something outside, or has a deadline is looked at by itself.
 */
#ifndef GPUQD_STATE_EQUIVALENT_H
#define GPUQD_STATE_EQUIVALENT_H

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

struct model;
struct job;

struct alike_key {
	const void *queue, *request, *user, *qos; /* of the model, told apart by address */
	int64_t time_limit_us, time_min_us, nice, fixed_priority, grace_us;
	uint32_t attempt, held;
};

/* Of a snapshot that does not show all of them: how many stand there by themselves and how
 * many in one entry, which has the id of the first of those. */
struct alike_shown {
	uint64_t turn; /* of which snapshot: readers.alike_turn */
	uint32_t n_shown, n_rest, rest_id;
	uint32_t rest; /* handle of that entry */
	bool odd; /* some stand by themselves that came behind younger ones */
	/* The youngest so far. */
	int64_t eligible_us, submit_us;
	uint32_t id;
};

/* Whom a snapshot is for. What a cycle was shown counts until the next one. */
enum alike_reader { ALIKE_CYCLE, ALIKE_QUESTION, N_ALIKE_READERS };

struct alike {
	UT_hash_handle hh;
	struct alike_key key;
	uint32_t n_jobs;
	struct alike_shown shown[N_ALIKE_READERS];
};

/* What those who only look at the model keep in it: no part of what is so, and never stored. The
 * model lets go of jobs here that leave or change. */
struct readers {
	struct alike *alike_by_key;
	uint64_t alike_turn[N_ALIKE_READERS]; /* of the last snapshot that did not show all */
	uint64_t early_turn; /* of the last snapshot that was begun early */
	struct job *walk; /* where a walk over all jobs goes on that takes several turns; NULL */
};

/* What the job has in common with others; NULL = it is to be looked at by itself. What
 * was found out is kept with the job, which is otherwise as it was. */
struct alike *equivalent_of(const struct model *m, const struct job *j);
/* Something about it changed. */
void equivalent_forget(struct model *m, struct job *j);
/* Is what is known of all jobs what would be found out anew? For tests. */
bool equivalent_holds(const struct model *m);

#endif
