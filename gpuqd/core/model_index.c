/* Jobs by user, queue, state and array: lists that go through the jobs themselves, in the
 * order in which they came. What they are for: whoever asks for few jobs of many does not
 * look at all of them. */
#include "gpuqd/core/model_int.h"

#include <stdlib.h>
#include <string.h>

struct owner {
	UT_hash_handle hh;
	struct job *jobs;
	char name[];
};

struct family {
	UT_hash_handle hh;
	uint32_t id;
	struct job *elements;
};

static struct owner *owner_find(const struct model *m, const char *user)
{
	struct owner *o = NULL;

	HASH_FIND_STR(m->owners, user, o);
	return o;
}

static struct owner *owner_get(struct model *m, const char *user)
{
	struct owner *o = owner_find(m, user);
	const size_t n = strlen(user);

	if (o)
		return o;
	o = calloc(1, sizeof(*o) + n + 1);
	if (!o)
		abort(); /* the ledger is on disk: a restart is the recovery */
	memcpy(o->name, user, n);
	HASH_ADD_STR(m->owners, name, o);
	return o;
}

static struct family *family_find(const struct model *m, uint32_t id)
{
	struct family *f = NULL;

	HASH_FIND(hh, m->families, &id, sizeof(id), f);
	return f;
}

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

void index_add(struct model *m, struct job *j)
{
	struct owner *o = owner_get(m, j->user);

	DL_APPEND2(o->jobs, j, user_prev, user_next);
	DL_APPEND2(j->queue->jobs, j, queue_prev, queue_next);
	DL_APPEND2(m->jobs_by_state[j->state], j, state_prev, state_next);
	if (j->key.index >= 0) {
		struct family *f = family_get(m, j->key.id);

		DL_APPEND2(f->elements, j, kin_prev, kin_next);
	}
}

void index_remove(struct model *m, struct job *j)
{
	struct owner *o = owner_find(m, j->user);

	DL_DELETE2(o->jobs, j, user_prev, user_next);
	if (!o->jobs) {
		HASH_DEL(m->owners, o);
		free(o);
	}
	DL_DELETE2(j->queue->jobs, j, queue_prev, queue_next);
	DL_DELETE2(m->jobs_by_state[j->state], j, state_prev, state_next);
	if (j->key.index >= 0) {
		struct family *f = family_find(m, j->key.id);

		DL_DELETE2(f->elements, j, kin_prev, kin_next);
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

struct job *jobs_of_user(const struct model *m, const char *user)
{
	const struct owner *o = owner_find(m, user);

	return o ? o->jobs : NULL;
}

struct job *jobs_elements(const struct model *m, uint32_t id)
{
	const struct family *f = family_find(m, id);

	return f ? f->elements : NULL;
}
