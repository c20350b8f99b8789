#include "gpuqd/snapshot/snapshot_take_past.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/util/require.h"
#include "libgpuq/units.h"

#define HOUR_US (3600 * GPUQ_US_PER_S)
#define DAY_US (24 * HOUR_US)
#define CLAIMS_MOST 1024 /* distinct ones in the last hour: far above any bound on them */

const uint32_t *snapshot_claims(const struct model *m, int64_t now_us, struct gpuq_arena *mem)
{
	struct taken {
		uint32_t queue;
		const char *by; /* interned */
		int64_t at_us;
	} *seen = NULL;
	uint32_t *n_claims = gpuq_arena_calloc(mem, m->n_queues + 1, sizeof(*n_claims));
	uint32_t n = 0;

	if (!n_claims || m->evicted_us <= now_us - HOUR_US)
		return n_claims;
	job_each(m, j) {
		for (uint32_t i = j->life->n_evictions; i-- > 0;) {
			const struct eviction *e = &j->life->evictions[i];

			if (e->at_us <= now_us - HOUR_US)
				break; /* in chronological order */
			if (e->cause != GPUQ_CAUSE_RECLAIM ||
			    strcmp(e->rule, gpuq_rule_word(GPUQ_RULE_RECLAIM_QUOTA)) == 0)
				continue;
			if (!seen)
				seen = gpuq_arena_calloc(mem, CLAIMS_MOST, sizeof(*seen));
			for (const struct queue *q = j->queue; q && seen; q = q->parent) {
				uint32_t k = 0;

				while (k < n && !(seen[k].queue == q->ix && seen[k].by == e->by &&
						  seen[k].at_us == e->at_us))
					k++;
				if (k < n || n == CLAIMS_MOST)
					continue;
				seen[n++] = (struct taken){ q->ix, e->by, e->at_us };
				n_claims[q->ix]++;
			}
		}
	}
	return n_claims;
}

void snapshot_losses(const struct snap_past *t, struct snapshot *s)
{
	uint32_t n = 0;

	if (t->m->evicted_us <= t->now_us - HOUR_US)
		return;
	job_each(t->m, j) {
		for (uint32_t i = j->life->n_evictions; i-- > 0 && n < SNAP_LOSSES_MOST;) {
			const struct eviction *e = &j->life->evictions[i];
			const struct queue *by =
				*e->by_queue ? model_find_queue(t->m, e->by_queue) : NULL;
			struct snap_loss l = { .at_us = e->at_us,
					       .job = { j->key.id, j->key.index },
					       .by = { 0, -1 } };

			if (e->at_us <= t->now_us - HOUR_US)
				break; /* in chronological order */
			if (e->cause != GPUQ_CAUSE_RECLAIM || !by ||
			    sscanf(e->by, "%" SCNu32 "_%" SCNd32, &l.by.id, &l.by.index) < 1)
				continue;
			l.queue = t->queue_of[j->queue->ix];
			l.by_queue = t->queue_of[by->ix];
			n += snapshot_add_loss(s, &l);
		}
	}
}

/* True if the job still avoids the node. */
static bool is_avoided(const struct job *j, const struct node *n, int64_t now_us)
{
	for (uint32_t i = 0; i < j->life->avoids->n; i++)
		if (j->life->avoids->items[i].until_us > now_us &&
		    j->life->avoids->items[i].node == n->name)
			return true;
	return false;
}

/* True if one of the group's terms holds for the labels of the node. */
static bool is_wanted(const struct gpuq_group *g, const struct node *n)
{
	for (size_t t = 0; t < g->n_required; t++) {
		const struct gpuq_term *term = &g->required[t];
		size_t i = 0;

		while (i < term->n &&
		       require_holds(&term->all[i],
				     strcmp(term->all[i].key, REQUIRE_NAME_KEY) == 0
					     ? n->name
					     : gpuq_strmap_get(&n->fact.labels, term->all[i].key)))
			i++;
		if (i == term->n)
			return true;
	}
	return g->n_required == 0;
}

/* True if the node is one on which pods of the group may be, and its devices are shared as they request. barred:
 * backend_barred(). */
static bool may_be_on(const struct node *n, const struct gpuq_group *g, const char *const *barred)
{
	const int64_t mib = n->n_devices ? n->devices[0].memory_mib : 0;

	if (n->closed || (g->nodes.n && !gpuq_strlist_has(&g->nodes, n->name)) ||
	    gpuq_strlist_has(&g->exclude, n->name) || !is_wanted(g, n) ||
	    (mib > 0 && g->gpu_memory_bytes >> 20 > mib))
		return false;
	for (; barred && *barred; barred++)
		if (n->backend && strcmp(n->backend->word, *barred) == 0)
			return false;
	return true;
}

/* True if nodes like this one, none of which failed the job, could meet its request now. Otherwise
 * it takes any node. */
static bool has_others(const struct snap_past *t, const struct job *j, const struct node *like)
{
	const struct request_spec *spec = &j->request->spec;
	const struct request_group *largest = &spec->groups[0];
	const char *const *barred;
	int64_t most, n_pods = 0;
	struct gpuq_group g;

	for (size_t i = 1; i < spec->n_groups; i++)
		if (spec->groups[i].gpus_milli > largest->gpus_milli)
			largest = &spec->groups[i];
	most = largest->gpus_milli;
	request_group_of(largest, &g);
	barred = backend_barred(&g, true, t->mem);
	for (const struct node *n = t->m->nodes; n; n = n->hh.next) {
		int64_t left = (int64_t)n->n_devices * SNAP_MILLI - n->foreign_gpus_milli;
		const struct pod *p;

		if (n->gone || !n->fact.ready || n->drain || n->fact.unschedulable || n->ill ||
		    n->backoff_until_us > t->now_us || strcmp(n->flavor, like->flavor) != 0 ||
		    is_avoided(j, n, t->now_us) || !may_be_on(n, &g, barred))
			continue;
		if (most == 0)
			return true;
		DL_FOREACH2(n->pods, p, node_next)
			left -= model_pod_takes(p) ? p->gpus_milli : 0;
		n_pods += left > 0 ? left / most : 0;
		if (n_pods >= model_job_pods(j))
			return true;
	}
	return false;
}

/* Add a node, once; there is room. */
static void exclude_node(uint32_t *exclude, uint32_t *n, uint32_t node)
{
	for (uint32_t i = 0; i < *n; i++)
		if (exclude[i] == node)
			return;
	exclude[(*n)++] = node;
}

/* Exclude the nodes that the job avoids, unless no other could run it. A job that runs is not moved
 * to a node that may refuse it: what it waits for elsewhere it has where it is. */
static void take_avoided(const struct snap_past *t, const struct job *j, struct snap_job *sj)
{
	const uint32_t n_doubtful = model_job_is_live(j) ? t->n_doubtful : 0,
		       n_avoids = j->life->avoids ? j->life->avoids->n : 0;
	uint32_t *exclude = n_doubtful + n_avoids ? gpuq_arena_calloc(t->mem, n_doubtful + n_avoids,
								      sizeof(*exclude))
						  : NULL;

	for (uint32_t i = 0; exclude && i < n_doubtful; i++)
		if (node_is_doubtful_for(t->doubtful[i], j))
			exclude_node(exclude, &sj->n_exclude, t->doubtful[i]->snap_ix);
	for (uint32_t i = 0; exclude && i < n_avoids; i++) {
		const struct avoided *a = &j->life->avoids->items[i];
		const struct node *n = model_find_node(t->m, a->node);

		if (n && job_avoids_until(j, a) > t->now_us && has_others(t, j, n))
			exclude_node(exclude, &sj->n_exclude, n->snap_ix);
	}
	sj->exclude = exclude;
}

int64_t snapshot_avoided_end(const struct model *m, int64_t now_us)
{
	const struct job *j;
	int64_t next = GPUQ_UNLIMITED;

	if (m->n_avoiding == 0) /* nearly always */
		return next;
	DL_FOREACH2(m->jobs_by_state[GPUQ_JOB_PENDING], j, state_next)
		for (uint32_t i = 0; j->life->avoids && i < j->life->avoids->n; i++) {
			const int64_t end_us = job_avoids_until(j, &j->life->avoids->items[i]);

			if (end_us > now_us && end_us < next)
				next = end_us;
		}
	return next;
}

/* Fill in its evictions: the loss, the claimant's queue, and how often recently. */
static void take_evictions(const struct snap_past *t, const struct job *j, struct snap_job *sj)
{
	for (uint32_t i = 0; i < j->life->n_evictions; i++) {
		const struct eviction *e = &j->life->evictions[i];
		const struct queue *for_queue =
			*e->by_queue ? model_find_queue(t->m, e->by_queue) : NULL;
		bool today = e->at_us > t->now_us - DAY_US;

		if (e->cause == GPUQ_CAUSE_RECLAIM && for_queue) {
			sj->evicted_us = e->at_us;
			sj->evicted_for = t->queue_of[for_queue->ix];
		}
		sj->n_evicted_day +=
			today && (e->cause == GPUQ_CAUSE_RECLAIM || e->cause == GPUQ_CAUSE_PREEMPT);
		sj->n_moved_day += today && e->cause == GPUQ_CAUSE_CONSOLIDATE;
	}
}

void snapshot_past_fill(const struct snap_past *t, const struct job *j, struct snap_job *sj)
{
	take_evictions(t, j, sj);
	sj->grace_us = job_evicted_us(t->m, j);
	sj->yield_us = model_job_is_live(j) ? j->life->yield_us : 0;
	take_avoided(t, j, sj);
	sj->short_us = j->life->short_us;
	sj->returns = j->life->leave_us && !j->cancel_asked &&
		      (j->life->leave_cause == GPUQ_CAUSE_REQUEUE ||
		       (j->wish->requeue && j->life->leave_cause != GPUQ_CAUSE_LIMIT &&
			j->life->leave_cause != GPUQ_CAUSE_IDLE));
	/* A job of which some pods have succeeded no longer grows; its missing pods would look like
	 * a shrink. */
	sj->shrunk_us = j->state == GPUQ_JOB_COMPLETING ? t->now_us : j->life->shrunk_us;
	if (j->wish->checkpoint_every_us > 0 && j->life->start_us &&
	    t->now_us - j->life->start_us >= j->wish->checkpoint_every_us)
		sj->checkpoint_us =
			t->now_us - (t->now_us - j->life->start_us) % j->wish->checkpoint_every_us;
}
