/* Jobs by user, queue, state and array: lists through the jobs themselves, in order of arrival, so
 * that a query for few jobs of many does not visit all of them. */
#include "gpuqd/state/model_int.h"

#include <stdlib.h>
#include <string.h>

struct owner {
	UT_hash_handle hh;
	struct job *jobs; /* its pending and running ones */
	const char *user; /* interned, like that of its jobs */
	struct stored stored;
};

struct family {
	UT_hash_handle hh;
	uint32_t id; /* of the array */
	struct job *elements; /* those that have a job of their own */
};

/* Return the jobs of a user, whose name is interned: the pointer is the key. */
static struct owner *owner_find(const struct model *m, const char *user)
{
	struct owner *o = NULL;

	HASH_FIND_PTR(m->owners, &user, o);
	return o;
}

/* Return the jobs of a user, made on first use. Submissions come in runs of one user, so the last
 * one is kept. */
static struct owner *owner_get(struct model *m, const char *user)
{
	struct owner *o = m->last_owner;

	if (o && o->user == user)
		return o; /* the same as of the previous job */
	o = m->last_owner = owner_find(m, user);
	if (o)
		return o;
	o = m->last_owner = must(calloc(1, sizeof(*o)));
	o->user = user;
	HASH_ADD_PTR(m->owners, user, o);
	return o;
}

/* Return what is known of the array with this id; NULL if none of its jobs exists. */
static struct family *family_find(const struct model *m, uint32_t id)
{
	struct family *f = NULL;

	HASH_FIND(hh, m->families, &id, sizeof(id), f);
	return f;
}

/* The same, made on first use. */
static struct family *family_get(struct model *m, uint32_t id)
{
	struct family *f = family_find(m, id);

	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		abort();
	f->id = id;
	HASH_ADD(hh, m->families, id, sizeof(f->id), f);
	return f;
}

/* Append as utlist does: the first one's `prev` is the last one. */
static void kin_add(struct family *f, struct job *j)
{
	struct life *own = job_life(j);

	if (!f->elements) {
		f->elements = own->kin_prev = j;
		return;
	}
	own->kin_prev = f->elements->life->kin_prev;
	job_life(own->kin_prev)->kin_next = j;
	job_life(f->elements)->kin_prev = j;
}

/* Take an element out of the list of its array; `prev' of the first is the last. */
static void kin_remove(struct family *f, const struct job *j)
{
	struct job *prev = j->life->kin_prev, *next = j->life->kin_next;

	if (f->elements == j)
		f->elements = next;
	else
		job_life(prev)->kin_next = next;
	if (next)
		job_life(next)->kin_prev = prev;
	else if (f->elements)
		job_life(f->elements)->kin_prev = prev;
}

void index_stored(struct model *m, const struct job *j, int sign)
{
	struct owner *o = j->key.index < 0 && !j->ended ? owner_get(m, j->user) : NULL;

	if (!o)
		return;
	o->stored.n_jobs += sign;
	o->stored.bytes += sign * (int64_t)j->spec_bytes;
}

struct stored index_stored_of(const struct model *m, const char *user)
{
	const char *known = model_interned(m, user);
	const struct owner *o = known ? owner_find(m, known) : NULL;

	return o ? o->stored : (struct stored){ 0, 0 };
}

void index_add(struct model *m, struct job *j)
{
	struct owner *o = owner_get(m, j->user);

	index_stored(m, j, 1);

	DL_APPEND2(o->jobs, j, user_prev, user_next);
	DL_APPEND2(j->queue->jobs, j, queue_prev, queue_next);
	DL_APPEND2(m->jobs_by_state[j->state], j, state_prev, state_next);
	if (j->key.index >= 0)
		kin_add(family_get(m, j->key.id), j);
}

void index_remove(struct model *m, struct job *j)
{
	struct owner *o = owner_find(m, j->user);

	index_stored(m, j, -1);
	DL_DELETE2(o->jobs, j, user_prev, user_next);
	if (!o->jobs) {
		if (m->last_owner == o)
			m->last_owner = NULL;
		HASH_DEL(m->owners, o);
		free(o);
	}
	DL_DELETE2(j->queue->jobs, j, queue_prev, queue_next);
	DL_DELETE2(m->jobs_by_state[j->state], j, state_prev, state_next);
	if (j->key.index >= 0) {
		struct family *f = family_find(m, j->key.id);

		kin_remove(f, j);
		if (!f->elements) {
			HASH_DEL(m->families, f);
			free(f);
		}
	}
}

void index_state(struct model *m, struct job *j, enum gpuq_job_state s)
{
	DL_DELETE2(m->jobs_by_state[j->state], j, state_prev, state_next);
	j->state = s;
	DL_APPEND2(m->jobs_by_state[s], j, state_prev, state_next);
}

void index_queue(struct job *j, struct queue *q)
{
	DL_DELETE2(j->queue->jobs, j, queue_prev, queue_next);
	j->queue = q;
	DL_APPEND2(q->jobs, j, queue_prev, queue_next);
}

struct job *index_of_user(const struct model *m, const char *user)
{
	const char *known = model_interned(m, user);
	const struct owner *o = known ? owner_find(m, known) : NULL;

	return o ? o->jobs : NULL;
}

struct job *index_elements(const struct model *m, uint32_t id)
{
	const struct family *f = family_find(m, id);

	return f ? f->elements : NULL;
}
