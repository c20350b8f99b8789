#include "gpuqd/state/equivalent.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/model.h"
#include "gpuqd/state/model_int.h"

/* True if it has never been placed, nor delayed by anything. */
static bool is_untouched(const struct life *l)
{
	return l->n_evictions == 0 && !l->promise && !l->avoids && !l->blocked &&
	       l->not_before_us == 0 && l->start_us == 0 && l->placed_us == 0 && l->leave_us == 0 &&
	       l->shrunk_us == 0 && l->short_us == 0 && l->outcome == GPUQ_JOB_PENDING;
}

static bool is_plain(const struct job *j)
{
	return j->state == GPUQ_JOB_PENDING && !j->ended && j->key.index < 0 && !j->array &&
	       !j->deps && !j->pods && j->wish->begin_us == 0 && j->wish->deadline_us == 0 &&
	       j->queue && j->request && is_untouched(j->life);
}

/* True if no other job has its request: it is like no other, and needs no key. */
static bool is_single(const struct job *j)
{
	return j->request && j->request->n_jobs < 2;
}

/* Return what two pending jobs must have in common to be decided together. Whatever the scheduler
 * reads of a job belongs here: a member that is missing would give both the verdict of one. */
static struct alike_key key_of(const struct job *j)
{
	struct alike_key key;

	memset(&key, 0, sizeof(key)); /* hashed byte by byte */
	key.queue = j->queue;
	key.request = j->request;
	key.user = j->user;
	key.qos = j->qos;
	key.time_limit_us = j->time_limit_us;
	key.time_min_us = j->wish->time_min_us;
	key.nice = j->wish->nice;
	key.fixed_priority = j->wish->fixed_priority;
	key.grace_us = j->wish->grace_us;
	key.attempt = j->attempt;
	key.held = (uint32_t)(j->held_user | j->held_admin << 1 | j->held_retries << 2 |
			      j->held_restore << 3);
	return key;
}

struct alike *equivalent_of(const struct model *m, const struct job *j)
{
	struct job *own =
		(struct job *)(uintptr_t)j; /* of the model, which readers keep notes in */
	struct alike_key key;
	struct alike *a = NULL;

	if (j->alike || is_single(j) || !is_plain(j))
		return j->alike;
	key = key_of(j);
	/* Most are like the previous one. */
	if (j->prev && j->prev->alike && memcmp(&j->prev->alike->key, &key, sizeof(key)) == 0)
		a = j->prev->alike;
	else
		HASH_FIND(hh, m->readers->alike_by_key, &key, sizeof(key), a);
	if (!a) {
		a = must(calloc(1, sizeof(*a)));
		a->key = key;
		HASH_ADD(hh, m->readers->alike_by_key, key, sizeof(a->key), a);
	}
	a->n_jobs++;
	return own->alike = a;
}

void equivalent_settle(const struct job *j, bool settled)
{
	((struct job *)(uintptr_t)j)->settled = settled;
}

void equivalent_forget(struct model *m, struct job *j)
{
	struct alike *a = j->alike;

	j->alike = NULL;
	if (!a || --a->n_jobs > 0)
		return;
	HASH_DEL(m->readers->alike_by_key, a);
	free(a);
}

bool equivalent_holds(const struct model *m)
{
	uint32_t n = 0, n_known = 0;

	job_each(m, j) {
		const struct alike_key key = key_of(j);

		if (j->alike && (!is_plain(j) || memcmp(&j->alike->key, &key, sizeof(key)) != 0))
			return false;
		n += j->alike != NULL;
	}
	for (const struct alike *a = m->readers->alike_by_key; a; a = a->hh.next)
		n_known += a->n_jobs;
	return n == n_known;
}
