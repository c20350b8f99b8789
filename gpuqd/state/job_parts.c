/* The parts of a job that are shared with others, or allocated only when needed. */
#include "gpuqd/state/notes/jobnote.h"
#include "gpuqd/state/model_int.h"

#include <stdlib.h>
#include <string.h>

#define REASONS_MAX 16

const struct life life_none = { .flavor = "", .exit_code = -1, .outcome_exit = -1 };
static const struct outlook outlook_none;

struct job *job_new(struct model *m, struct job_key key)
{
	struct job *j = must(calloc(1, sizeof(*j)));

	(void)m;
	j->key = key;
	j->user = j->qos = "";
	j->life = &life_none;
	j->outlook = &outlook_none;
	return j;
}

/* ---- its life ---- */

struct life *job_life(struct job *j)
{
	struct life *own;

	if (j->life != &life_none)
		return (struct life *)(uintptr_t)j->life; /* allocated here, and its own */
	own = must(malloc(sizeof(*own)));
	*own = life_none;
	j->life = own;
	return own;
}

void job_set_life(struct job *j, const struct life *l)
{
	if (memcmp(l, &life_none, sizeof(*l)) != 0)
		*job_life(j) = *l;
}

/* Release what a started job has beside the rest; all jobs that never ran share life_none. */
static void life_free(const struct life *l)
{
	if (l == &life_none)
		return;
	for (uint32_t i = 0; i < l->n_evictions; i++)
		free(l->evictions[i].why);
	free(l->evictions);
	free(l->apart);
	free(l->avoids);
	free(l->blocked);
	free(l->trouble);
	free(l->rejected);
	free(l->load);
	free(l->used);
	free(l->message);
	free(l->token);
	free((void *)(uintptr_t)l);
}

/* ---- its name, and its owner's wishes ---- */

static const char *shared_text(struct model *m, const char *text)
{
	return text && *text ? blob_get(&m->shared, text, strlen(text) + 1) : NULL;
}

void job_set_labels(struct model *m, struct job *j, const char *labels)
{
	const char *old = j->labels;

	j->labels = shared_text(m, labels);
	blob_put(&m->shared, old);
}

void job_set_notes(struct model *m, struct job *j, const char *notes)
{
	const char *old = j->notes, *owner, *pods;
	size_t n_owner = 0, n_pods = 0;

	j->notes = shared_text(m, notes);
	blob_put(&m->shared, old);
	if (m->origins)
		origin_drop(&m->origins, j->key.id);
	owner = jobnote_find(j->notes, JOBNOTE_ORIGIN, &n_owner);
	if (owner && j->key.index < 0) {
		pods = jobnote_find(j->notes, JOBNOTE_PODS, &n_pods);
		origin_add(&m->origins, j->key.id, owner, n_owner, pods ? pods : "", n_pods);
	}
}

void job_set_wish(struct model *m, struct job *j, const struct wish *w)
{
	const struct job *last = m->jobs ? m->jobs->prev : NULL;
	const struct wish *old = j->wish;

	/* Most have the same wishes as the previous one. */
	if (last && memcmp(last->wish, w, sizeof(*w)) == 0)
		j->wish = blob_more(last->wish);
	else
		j->wish = blob_get(&m->shared, w, sizeof(*w));
	blob_put(&m->shared, old);
}

void job_wish_add_exit(struct wish *w, uint8_t code)
{
	w->retry_exits[code / 64] |= UINT64_C(1) << code % 64;
}

bool job_wish_has_exit(const struct wish *w, int code)
{
	return code >= 0 && code < 256 && (w->retry_exits[code / 64] >> code % 64 & 1);
}

/* ---- the last cycle's outlook ---- */

bool job_has_reasons(const struct job *j, const struct reason_fact *items, size_t n)
{
	const struct outlook *o = j->outlook;
	bool same = n == o->n_reasons;

	for (size_t i = 0; i < n && same; i++)
		same = items[i].code == o->reasons[i].code && items[i].have == o->reasons[i].have &&
		       items[i].need == o->reasons[i].need && items[i].ask == o->reasons[i].ask &&
		       strcmp(items[i].object ? items[i].object : "", o->reasons[i].object) == 0;
	return same;
}

/* Release an outlook; equal jobs share one, and those without any share outlook_none. */
static void put_outlook(struct model *m, const struct outlook *o)
{
	if (o != &outlook_none)
		blob_put(&m->shared, o);
}

/* Take the reasons; those that it had already keep their times. */
static void fill_reasons(struct model *m, const struct outlook *old,
			 const struct reason_fact *items, size_t n, int64_t at_us,
			 struct reason *out)
{
	for (size_t i = 0; i < n; i++) {
		out[i].code = (uint16_t)items[i].code;
		out[i].unit = (uint16_t)items[i].unit;
		out[i].ask = items[i].ask;
		out[i].object = model_intern(m, items[i].object);
		out[i].have = items[i].have;
		out[i].need = items[i].need;
		out[i].since_us = at_us;
		for (size_t k = 0; k < old->n_reasons; k++)
			if (old->reasons[k].code == out[i].code &&
			    old->reasons[k].object == out[i].object)
				out[i].since_us = old->reasons[k].since_us;
	}
}

void job_set_outlook(struct model *m, struct job *j, const struct outlook *o,
		     const struct reason_fact *items, size_t n, int64_t at_us)
{
	union {
		struct outlook o;
		unsigned char room[sizeof(struct outlook) + REASONS_MAX * sizeof(struct reason)];
	} fresh;
	const struct outlook *old = j->outlook;

	if (n > REASONS_MAX)
		n = REASONS_MAX;
	memset(&fresh, 0, sizeof(fresh)); /* compared byte by byte, as reasons are */
	fresh.o.planned_us = o->planned_us;
	fresh.o.terms = o->terms;
	fresh.o.ranked = o->ranked;
	fresh.o.n_reasons = (uint8_t)n;
	if (job_has_reasons(j, items, n))
		memcpy(fresh.o.reasons, old->reasons, n * sizeof(old->reasons[0]));
	else
		fill_reasons(m, old, items, n, at_us, fresh.o.reasons);
	j->outlook = blob_get(&m->shared, &fresh, sizeof(fresh.o) + n * sizeof(struct reason));
	put_outlook(m, old);
}

void job_set_reasons(struct model *m, struct job *j, const struct reason_fact *items, size_t n,
		     int64_t at_us)
{
	if (!job_has_reasons(j, items, n))
		job_set_outlook(m, j, j->outlook, items, n, at_us);
}

/* ---- all parts ---- */

void job_parts_like(struct model *m, struct job *j, const struct job *from)
{
	struct outlook as_is = *from->outlook;

	j->name = blob_more(from->name);
	j->labels = blob_more(from->labels);
	j->notes = blob_more(from->notes);
	j->wish = blob_more(from->wish);
	as_is.ranked = false; /* that belongs to the other job */
	as_is.planned_us = 0;
	job_set_outlook(m, j, &as_is, NULL, 0, 0);
}

void job_parts_free(struct model *m, struct job *j)
{
	life_free(j->life);
	put_outlook(m, j->outlook);
	blob_put(&m->shared, j->wish);
	blob_put(&m->shared, j->labels);
	blob_put(&m->shared, j->notes);
	blob_put(&m->shared, j->name);
}

/* ---- trouble ---- */

void job_clear_trouble(struct job *j)
{
	if (!j->life->trouble)
		return;
	free(j->life->trouble);
	job_life(j)->trouble = NULL;
}

/* ---- refusals of kubelets ---- */

void job_note_rejected(struct job *j, const char *node, bool named)
{
	struct rejected *r = j->life->rejected;
	uint32_t i = 0;

	if (!r)
		r = job_life(j)->rejected = must(calloc(1, sizeof(*r)));
	if (named) {
		r->n_named++;
		return;
	}
	r->n_named = 0;
	r->n++;
	while (i < r->n_nodes && r->nodes[i] != node)
		i++;
	if (i == r->n_nodes && i < REJECTED_NODES)
		r->nodes[r->n_nodes++] = node;
}

void job_clear_rejected(struct job *j)
{
	if (!j->life->rejected)
		return;
	free(j->life->rejected);
	job_life(j)->rejected = NULL;
}
