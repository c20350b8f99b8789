/* equivalent.h - pending jobs that differ in their age alone
 *
 * Owns     the common key of such jobs, for as long as there is one.
 * Touches  memory only.
 * Used by  the files of state/, which clear the key of a job that changes; snapshot_take.c and
 *          flow/publish.c, which then need not evaluate each of a hundred thousand jobs.
 *
 * Only plain jobs are equivalent: a job that has been started before, is part of an array, has
 * a dependency, a begin time or a deadline, or is blocked from outside is evaluated by itself. So is
 * the only job with its request, at no cost.
 */
#ifndef GPUQD_STATE_EQUIVALENT_H
#define GPUQD_STATE_EQUIVALENT_H

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

struct model;
struct job;

struct alike_key {
	const void *queue, *request, *user, *qos; /* of the model, compared by address */
	int64_t time_limit_us, time_min_us, nice, fixed_priority, grace_us;
	uint32_t attempt, held; /* held: one bit a kind of hold */
};

/* Entries of equivalent jobs in a snapshot that does not show all of them: how many have their own
 * and how many share one, which has the id of the first of those. */
struct alike_shown {
	uint64_t turn; /* of which snapshot: readers.alike_turn */
	uint32_t n_shown, n_rest, rest_id;
	uint32_t rest; /* handle of that entry */
	bool odd; /* some have entries of their own because they follow younger ones */
	/* The maxima so far. */
	int64_t eligible_us, submit_us;
	uint32_t id;
};

/* The reader of a snapshot. A cycle's entries hold until the next cycle. */
enum alike_reader { ALIKE_CYCLE, ALIKE_QUESTION, N_ALIKE_READERS };

struct alike {
	UT_hash_handle hh;
	struct alike_key key;
	uint32_t n_jobs; /* pending ones of this key */
	struct alike_shown shown[N_ALIKE_READERS]; /* what each reader was shown last */
};

/* Scratch data that readers of the model keep in it: not part of the state, and never stored. The
 * model removes jobs here that leave or change. */
struct readers {
	struct alike *alike_by_key;
	uint64_t alike_turn[N_ALIKE_READERS]; /* of the last snapshot that did not show all */
	uint64_t early_turn; /* of the last snapshot that was begun early */
	/* The next and the last job of a snapshot that is taken in steps; NULL. */
	struct job *take_next, *take_last;
	struct job *walk; /* where a walk over all jobs continues in the next turn; NULL */
};

/* Return the key that the job shares with others; NULL = it is to be evaluated by itself. The key
 * is kept with the job, which is otherwise unchanged. */
struct alike *equivalent_of(const struct model *m, const struct job *j);
/* Note whether the last cycle could not start the job: job.settled, kept in the same way. */
void equivalent_settle(const struct job *j, bool settled);
/* Clear the key: the job has changed. */
void equivalent_forget(struct model *m, struct job *j);
/* True if the keys of all jobs are those that would be computed anew. For tests. */
bool equivalent_holds(const struct model *m);

#endif
