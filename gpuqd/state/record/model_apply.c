#include "gpuqd/state/record/model_apply.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/model_int.h"
#include "gpuqd/state/record/history_index.h"
#include "gpuqd/state/record/record.h"
#include "gpuqd/state/record/record_int.h"
#include "gpuqd/state/record/record_recovery.h"
#include "gpuqd/state/record/record_job.h"
#include "gpuqd/state/record/record_usage.h"
#include "gpuqd/state/view/joblog.h"
#include "gpuqd/state/view/notice.h"

/* ---- records of an event ---- */

/* Encode what one mark of the state requests. */
static void write_mark(struct model *m, const struct mark *k)
{
	switch (k->kind) {
	case MARK_STARTED:
		joblog_started(m, k->job, k->number, k->at_us);
		break;
	case MARK_ENDED:
		joblog_ended(m, k->job, k->number);
		break;
	case MARK_NOTICE:
		notice_write(m, k->job, k->number, k->cause);
		break;
	case MARK_KEY:
		record_key(m, k->key, &m->direct);
		break;
	case MARK_CHARGES:
		record_charges(m, k->charges, &m->direct);
		break;
	case MARK_DONE: /* once all others are written */
		break;
	}
}

/* Note how the job ended, for as long as history may not have it. */
static void note_departed(struct model *m, const struct job *j)
{
	struct departed *d = &m->departed;

	if (d->n == d->room) {
		d->room = d->room ? 2 * d->room : 16;
		d->items = must(realloc(d->items, d->room * sizeof(*d->items)));
	}
	d->items[d->n].key = j->key;
	d->items[d->n++].state = j->state;
}

bool model_departed(const struct model *m, struct job_key key, enum gpuq_job_state *state)
{
	const struct departed *d = &m->departed;

	for (size_t i = d->n; i > 0; i--) {
		const struct job_key k = d->items[i - 1].key;

		if (k.id != key.id || k.index != key.index)
			continue;
		*state = d->items[i - 1].state;
		return true;
	}
	return false;
}

/* Forget those of the batch that was collected before this one: it is durable by now. */
static void departed_collected(struct departed *d)
{
	d->n -= d->n_collected;
	memmove(d->items, d->items + d->n_collected, d->n * sizeof(*d->items));
	d->n_collected = d->n;
}

/* Remove the job from memory. An array may go with the last of its elements. */
static void let_go(struct model *m, struct job_key key)
{
	struct job *j = model_find_job(m, key);

	while (j && job_is_done(m, j)) {
		history_record(m, j, &m->direct);
		if (m->has_besides && !j->nothing_beside && (j->life->token || j->array) &&
		    !model_is_adopted(m, j))
			record_beside(j, &m->direct);
		note_departed(m, j);
		j = job_depart(m, j);
	}
}

/* Encode all marks in their order. Jobs that are done go last, since entries of their log are
 * written from them; what they mark while they go follows. */
static void write_marks(struct model *m)
{
	const size_t n = m->marks.n;

	for (size_t i = 0; i < n; i++)
		write_mark(m, &m->marks.items[i]);
	for (size_t i = 0; i < n; i++)
		if (m->marks.items[i].kind == MARK_DONE)
			let_go(m, m->marks.items[i].done);
	for (size_t i = n; i < m->marks.n; i++) /* marks that the jobs added when they went */
		write_mark(m, &m->marks.items[i]);
	marks_clear(m);
}

int model_apply(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct joblog_entry log;
	int rc;

	joblog_begin(m, ev, &log);
	rc = model_change(m, ev, err);
	write_marks(m);
	if (ev->type == EV_HISTORY_EXPIRED)
		for (size_t i = 0; i < ev->expired.n; i++)
			history_forget(&m->direct, ev->expired.jobs[i]);
	joblog_end(m, &log, rc == 0);
	return rc;
}

int model_apply_unrecorded(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	const int rc = model_change(m, ev, err);
	struct pod *p;

	for (size_t i = 0; i < m->marks.n; i++) {
		struct job *j = m->marks.items[i].kind == MARK_DONE
					? model_find_job(m, m->marks.items[i].done)
					: NULL;

		while (j && job_is_done(m, j))
			j = job_depart(m, j);
	}
	marks_clear(m);
	for (uint32_t i = 0; i < m->n_dirty_jobs; i++) {
		if (!m->dirty_jobs[i])
			continue;
		DL_FOREACH2(m->dirty_jobs[i]->pods, p, job_next)
			p->dirty = false;
		m->dirty_jobs[i]->dirty = false;
	}
	m->n_dirty_jobs = 0;
	if (m->direct.n)
		change_batch_done(&m->direct);
	return rc;
}

/* ---- stored objects ---- */

void model_collect(struct model *m, struct batch *out)
{
	struct pod *p;
	struct usage *u;
	struct account *a;

	if (m->departed.n)
		departed_collected(&m->departed);
	/* Objects that left memory come first: a name may be in use again since. */
	for (size_t i = 0; i < m->direct.n; i++) {
		const struct change *c = &m->direct.items[i];

		change_batch_put(out, c->table, c->key, c->key_len, c->val, c->val_len);
	}
	out->failed |= m->direct.failed;
	if (m->direct.n)
		change_batch_done(&m->direct);
	for (uint32_t i = 0; i < m->n_dirty_jobs; i++) {
		struct job *j = m->dirty_jobs[i];

		if (!j)
			continue;
		if (j->request->dirty) {
			record_request(m, j->request, out);
			j->request->dirty = false;
		}
		record_job(m, j, out);
		DL_FOREACH2(j->pods, p, job_next)
			if (p->dirty) {
				record_pod(m, p, out);
				p->dirty = false;
			}
		j->dirty = false;
	}
	m->n_dirty_jobs = 0;
	for (struct node *n = m->nodes_dirty ? m->nodes : NULL; n; n = n->hh.next)
		if (n->dirty) {
			record_node(m, n, out);
			n->dirty = false;
		}
	for (u = m->usages_dirty ? m->usages : NULL; u; u = u->hh.next)
		if (u->dirty) {
			record_usage(m, u, out);
			u->dirty = false;
		}
	while ((a = m->dirty_accounts) != NULL) {
		m->dirty_accounts = a->dirty_next;
		a->dirty = false;
		record_account(a, out);
	}
	if (m->site_dirty)
		record_site(m, out);
	if (m->meta_dirty)
		record_meta(m, out);
	if (m->recovery_dirty)
		record_recovery(m, out);
	m->recovery_dirty = false;
	m->site_dirty = m->meta_dirty = m->nodes_dirty = m->usages_dirty = false;
}
