#include "gpuqd/site/quotas.h"
#include "gpuqd/state/model_int.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

/* Queues follow the site: a new site is applied as one event, and counters of queues, which are
 * not stored, are counted anew when the tree changes. */

/* Return the queue of that name; NULL = there is none. */
static struct queue *find_in(struct queue **qs, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(qs[i]->name, name) == 0)
			return qs[i];
	return NULL;
}

/* Add queues in the order of the file, parents pulled before their children. */
static void add_queue(struct model *m, struct site *s, const struct site_queue *sq,
		      struct queue **out, uint32_t *n)
{
	struct queue *q, *parent = NULL;

	if (find_in(out, *n, sq->name))
		return;
	if (sq->parent) {
		add_queue(m, s, site_queue_find(s, sq->parent), out, n);
		parent = find_in(out, *n, sq->parent);
	}
	q = calloc(1, sizeof(*q));
	if (!q)
		abort();
	q->name = model_intern(m, sq->name);
	q->site = sq;
	q->parent = parent;
	q->fair_milli = -1;
	q->ix = *n;
	out[(*n)++] = q;
	if (parent)
		parent->n_children++;
}

/* Recount the counters from the jobs; a new tree starts from zero. */
static void queues_recount(struct model *m, struct queue **queues, uint32_t n)
{
	struct pod *p;

	for (uint32_t i = 0; i < n; i++)
		queues[i]->n_pending = queues[i]->n_running = queues[i]->n_unknown =
			queues[i]->n_recovered = 0;
	job_each(m, j) {
		j->queue->n_unknown += j->held_restore && !j->ended;
		j->queue->n_recovered += j->recovered && !j->ended;
		if (model_job_is_live(j))
			j->queue->n_running++;
		else if (!j->ended)
			j->queue->n_pending += j->array ? (uint32_t)j->array->n_waiting : 1;
		j->queue->held_milli += job_promise_milli(j->life->promise);
		DL_FOREACH2(j->pods, p, job_next)
			if (model_pod_takes(p))
				j->queue->allocated_milli += p->gpus_milli;
	}
}

void queue_set_site(struct model *m, struct site *s)
{
	uint32_t n = 0;
	struct queue **queues = calloc(s->queues.n ? s->queues.n : 1, sizeof(*queues));
	struct queue **now; /* by the index that it had */

	if (!queues)
		abort();
	site_each(site_queue, s->queues, sq)
		add_queue(m, s, sq, queues, &n);
	for (uint32_t i = 0; i < n; i++)
		/* The default budget is for leaves: a queue above others would count their use
		 * again. */
		queues[i]->budget = queues[i]->site->budget ? queues[i]->site->budget
				    : queues[i]->n_children ? NULL
							    : s->default_budget;
	now = calloc(m->n_queues + 1, sizeof(*now));
	if (!now)
		abort();
	for (uint32_t i = 0; i < m->n_queues; i++)
		now[i] = find_in(queues, n, m->queues[i]->name);
	job_each_rw(m, j) {
		equivalent_forget(m, j);
		index_queue(j, now[j->queue->ix]);
	}
	free(now);
	queues_recount(m, queues, n);
	for (uint32_t i = 0; i < m->n_queues; i++) {
		free(m->queues[i]->refused);
		free(m->queues[i]);
	}
	free(m->queues);
	site_free(m->site);
	m->queues = queues;
	m->n_queues = n;
	m->site = s;
	m->site_dirty = true;
	node_settle_all(m);
}

int queue_apply_granted(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	const struct queue *q = model_find_queue(m, ev->granted.name);

	if (!q)
		return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %s", ev->granted.name);
	if (!q->budget || q->budget->gpu_minutes == GPUQ_UNLIMITED)
		return gpuq_fail(err, GPUQ_EINVAL, "queue %s has no budget", q->name);
	if (q->budget->half_life_us)
		account_grant(m, q, ev->granted.gpu_minutes * 60 * GPUQ_US_PER_S, ev->at_us);
	else
		accounting_charge_grant(m, q->name, ev->granted.gpu_minutes * 60 * GPUQ_US_PER_S);
	return 0;
}

int queue_apply_refused(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct queue *q = model_find_queue(m, ev->queue_refused.name);
	const char *words = ev->queue_refused.words ? ev->queue_refused.words : "";

	if (!q)
		return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %s", ev->queue_refused.name);
	free(q->refused);
	q->refused = NULL;
	if (!ev->queue_refused.object)
		return 0;
	q->refused = must(malloc(sizeof(*q->refused) + strlen(words) + 1));
	q->refused->object = model_intern(m, ev->queue_refused.object);
	q->refused->since_us = ev->at_us;
	memcpy(q->refused->words, words, strlen(words) + 1);
	return 0;
}

int queue_apply_share(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct queue *q = model_find_queue(m, ev->share.name);

	if (!q)
		return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %s", ev->share.name);
	q->fair_milli = ev->share.fair_milli;
	return 0;
}

/* Put a site in place of the one there is, with what is kept by its queues. */
static void change_site(struct model *m, struct site *s, int64_t now_us)
{
	account_site_changing(m, now_us);
	queue_set_site(m, s);
	m->site_generation++;
	m->meta_dirty = true;
	accounting_charge_site_changed(m);
	account_site_changed(m, now_us);
}

int queue_apply_site(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	static const struct gpuq_mp_limits lim = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
						   GPUQ_MSG_ITEMS_MAX };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v;
	struct site *s = NULL;
	int rc;

	rc = gpuq_mp_read(&mem, &lim, ev->site.bytes, ev->site.len, &v, err);
	if (rc == 0)
		rc = site_read_stored(v, ev->at_us, &s, err);
	gpuq_arena_done(&mem);
	if (rc == 0)
		rc = queue_site_allowed(m, s, err);
	if (rc == 0) {
		change_site(m, s, ev->at_us);
	} else {
		site_free(s);
	}
	return rc;
}

bool queue_is_free(const struct model *m, const struct queue *q)
{
	return quotas_is_bare_default(q->site) &&
	       (m->default_spared || quotas_default_is_free(m->site));
}

/* Settle a database from before the rule of `default`, or end the time for which that was spared. */
int queue_apply_default(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct site_queue *q;
	struct gpuq_val *tree;
	struct site *s = NULL;
	int rc = 0;

	if (m->default_from_us < 0) {
		tree = quotas_upgrade(&mem, m->site);
		if (tree)
			rc = site_read_stored(tree, ev->at_us, &s, err);
		if (s)
			change_site(m, s, ev->at_us);
		q = rc == 0 ? site_queue_find(m->site, QUOTAS_DEFAULT) : NULL;
		m->default_spared =
			q && quotas_is_bare_default(q) && !quotas_default_is_free(m->site) && s;
		m->default_from_us = m->default_spared ? ev->at_us + QUOTAS_SPARE_US : 0;
	} else {
		m->default_spared = false;
		m->site_generation++;
	}
	gpuq_arena_done(&mem);
	m->meta_dirty = true;
	return rc;
}
