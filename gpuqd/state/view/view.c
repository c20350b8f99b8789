#include "gpuqd/state/view/view_node.h"

#include "gpuqd/util/amount.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/devices/backend.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/state/view/cards.h"
#include "gpuqd/state/view/census.h"
#include "gpuqd/state/notes/joblabel.h"
#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/state/takes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"

struct gpuq_val *view_spec(struct gpuq_arena *a, const struct gpuq_spec *spec, const char *user,
			   int64_t time_limit_us)
{
	/* A job that does not exist yet has all the keys of a job, so that programs can read both
	 * alike. */
	static const char *const nulls[] = { "reason",       "submit_time",   "start_time",
					     "end_time",     "eligible_time", "exit_code",
					     "flavor",       "promise",       "priority_terms",
					     "planned_time", "message",       "end_cause",
					     "use",          "used" };
	static const char *const lists[] = { "reasons", "pods", "evictions", "avoids" };
	struct gpuq_val *v = gpuq_map(a), *ar = gpuq_null(a);
	char *labels = joblabel_take(spec);

	if (spec->array.n_ranges) {
		struct gpuq_buf text = GPUQ_BUF_INIT;

		gpuq_array_print(&spec->array, &text);
		ar = gpuq_map(a);
		gpuq_put(a, ar, "indices", gpuq_str(a, gpuq_buf_str(&text)));
		gpuq_put(a, ar, "size", gpuq_int(a, spec->array.size));
		gpuq_put(a, ar, "throttle",
			 spec->array.throttle ? gpuq_int(a, spec->array.throttle) : gpuq_null(a));
		gpuq_buf_done(&text);
	}
	gpuq_put(a, v, "id", gpuq_null(a));
	gpuq_put(a, v, "array_index", gpuq_null(a));
	gpuq_put(a, v, "element_id", gpuq_null(a));
	gpuq_put(a, v, "array", ar);
	gpuq_put(a, v, "name", gpuq_str(a, spec->name));
	gpuq_put(a, v, "user", gpuq_str(a, user));
	gpuq_put(a, v, "queue", gpuq_str(a, spec->queue));
	gpuq_put(a, v, "account", view_word(a, spec->account));
	gpuq_put(a, v, "qos", view_word(a, spec->qos));
	gpuq_put(a, v, "labels", joblabel_view(a, labels));
	free(labels);
	gpuq_put(a, v, "state", gpuq_null(a));
	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		gpuq_put(a, v, nulls[i], gpuq_null(a));
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		gpuq_put(a, v, lists[i], gpuq_list(a));
	gpuq_put(a, v, "time_limit_s",
		 time_limit_us == GPUQ_UNLIMITED ? gpuq_null(a)
						 : gpuq_int(a, time_limit_us / GPUQ_US_PER_S));
	gpuq_put(a, v, "time_min_s",
		 spec->time_min_us ? gpuq_int(a, spec->time_min_us / GPUQ_US_PER_S) : gpuq_null(a));
	gpuq_put(a, v, "attempt", gpuq_int(a, 0));
	gpuq_put(a, v, "priority", gpuq_int(a, 0));
	gpuq_put(a, v, "pod_count", gpuq_int(a, gpuq_spec_pods(spec)));
	gpuq_put(a, v, "gpus", view_devices(a, cost_of_spec(spec, 0)));
	gpuq_put(a, v, "gpu_seconds", gpuq_int(a, 0));
	view_spec_facts(a, v, spec);
	return v;
}

/* True if q is `top`, or below it. */
static bool queue_under(const struct queue *q, const struct queue *top)
{
	for (; q; q = q->parent)
		if (q == top)
			return true;
	return false;
}

/* Return an amount of the site: one number, or one for each flavor that it names; dflt where it
 * names none. */
static struct gpuq_val *view_amount(struct gpuq_arena *a, const struct site_amount *am,
				    int64_t dflt)
{
	struct gpuq_val *v;

	if (!am->given)
		return view_devices(a, dflt);
	if (!am->per_flavor)
		return view_devices(a, am->all);
	v = gpuq_map(a);
	for (size_t i = 0; i < am->n; i++)
		gpuq_put(a, v, am->flavors[i], view_devices(a, am->amounts[i]));
	return v;
}

/* Return a queue's quota in a flavor: that of the site, or else the sum of its children's quotas
 * and what they share. */
static int64_t quota_of(const struct model *m, const struct queue *q, const char *flavor)
{
	const int64_t own = site_amount_of(&q->site->quota, flavor, -1);
	int64_t sum = site_amount_of(&q->site->shared_quota, flavor, 0);

	if (own >= 0)
		return own;
	if (queue_is_free(m, q))
		return GPUQ_UNLIMITED;
	for (uint32_t i = 0; i < m->n_queues; i++)
		if (m->queues[i]->parent == q)
			sum = amount_sum(sum, quota_of(m, m->queues[i], flavor));
	return sum;
}

/* Return the quota of a queue: one number where neither it nor any queue below it distinguishes
 * flavors. */
static struct gpuq_val *view_quota(struct gpuq_arena *a, const struct model *m,
				   const struct queue *q)
{
	struct gpuq_val *v;
	bool by_flavor = false;

	if (q->site->quota.given)
		return view_amount(a, &q->site->quota, 0);
	if (queue_is_free(m, q))
		return view_devices(a, GPUQ_UNLIMITED);
	for (uint32_t i = 0; i < m->n_queues; i++) {
		const struct site_queue *s = m->queues[i]->site;

		by_flavor |= queue_under(m->queues[i], q) &&
			     (s->quota.per_flavor || s->shared_quota.per_flavor);
	}
	if (!by_flavor)
		return view_devices(a, quota_of(m, q, "default"));
	v = gpuq_map(a);
	site_each(site_flavor, m->site->flavors, f)
		gpuq_put(a, v, f->name, view_devices(a, quota_of(m, q, f->name)));
	if (!gpuq_get(v, "default") && quota_of(m, q, "default"))
		gpuq_put(a, v, "default", view_devices(a, quota_of(m, q, "default")));
	return v;
}

/* Add the walltimes of its jobs, as inherited from it and the queues above it. */
static void view_times(struct gpuq_arena *a, struct gpuq_val *v, const struct queue *q)
{
	int64_t dflt_us = 0, max_us = 0;

	for (; q; q = q->parent) {
		if (!dflt_us)
			dflt_us = q->site->default_time_us;
		/* The default is that of the nearest queue; the maximum is the smallest on the
		 * path. */
		if (q->site->max_time_us && (!max_us || q->site->max_time_us < max_us))
			max_us = q->site->max_time_us;
	}
	gpuq_put(a, v, "default_time_s",
		 dflt_us && dflt_us != GPUQ_UNLIMITED ? gpuq_int(a, dflt_us / GPUQ_US_PER_S)
						      : gpuq_null(a));
	gpuq_put(a, v, "max_time_s",
		 max_us && max_us != GPUQ_UNLIMITED ? gpuq_int(a, max_us / GPUQ_US_PER_S)
						    : gpuq_null(a));
}

/* True if there are devices of several flavors: an amount that is one number is that of each. */
static bool several_flavors(const struct model *m)
{
	const char *first = NULL;

	node_each(m, n) {
		if (n->n_devices == 0 && n->fact.n_mig == 0)
			continue;
		if (first && strcmp(first, n->flavor) != 0)
			return true;
		first = n->flavor;
	}
	return false;
}

static void add_held(struct gpuq_arena *a, struct gpuq_val **by_queue, const struct queue *q,
		     const char *name, int64_t count)
{
	for (; name && q; q = q->parent)
		gpuq_set(a, by_queue[q->ix], name,
			 gpuq_int(a, gpuq_get_int(by_queue[q->ix], name, 0) + count));
}

struct gpuq_val **view_queue_resources(struct gpuq_arena *a, const struct model *m)
{
	struct gpuq_val **out = gpuq_arena_calloc(a, m->n_queues + 1, sizeof(struct gpuq_val *));
	const struct pod *p;

	for (uint32_t i = 0; out && i < m->n_queues; i++)
		out[i] = gpuq_map(a);
	node_each(m, n) {
		DL_FOREACH2(n->pods, p, node_next) {
			const struct request_group *g = &p->job->request->spec.groups[p->group];
			struct gpuq_amount all[GPUQ_RESOURCES_MAX];
			/* As on its node. */
			const size_t n_all = takes_amounts(m, p->job->queue, g, all);
			char profile[GPUQ_PROFILE_ROOM];

			for (size_t i = 0; out && model_pod_takes(p) && i < n_all; i++)
				add_held(a, out, p->job->queue, all[i].name, all[i].count);
			if (out && model_pod_takes(p) && model_pod_mig(p))
				add_held(a, out, p->job->queue,
					 gpuq_arena_printf(
						 a, GPUQ_RESOURCE_MIG "%s",
						 gpuq_profile_name(model_pod_mig(p), profile)),
					 model_pod_instances(p));
		}
	}
	return out;
}

struct gpuq_val *view_queue(struct gpuq_arena *a, const struct model *m, const struct queue *q,
			    int64_t used_ms, struct gpuq_val *resources)
{
	struct gpuq_val *v = gpuq_map(a);
	const enum gpuq_isolation isolation = model_queue_isolation(q);
	int64_t allocated = 0, held = 0, pending = 0, running = 0;

	/* The figures of a queue include those of all queues below it. */
	for (uint32_t i = 0; i < m->n_queues; i++) {
		const struct queue *c = m->queues[i];

		if (!queue_under(c, q))
			continue;
		allocated += c->allocated_milli;
		held += c->held_milli;
		pending += c->n_pending;
		running += c->n_running;
	}
	gpuq_put(a, v, "name", gpuq_str(a, q->name));
	gpuq_put(a, v, "parent", q->parent ? gpuq_str(a, q->parent->name) : gpuq_null(a));
	gpuq_put(a, v, "quota", view_quota(a, m, q));
	gpuq_put(a, v, "limit", view_amount(a, &q->site->limit, GPUQ_UNLIMITED));
	gpuq_put(a, v, "each_flavor", gpuq_bool(a, several_flavors(m)));
	gpuq_put(a, v, "weight",
		 q->site->weight_milli % 1000 ? gpuq_real(a, (double)q->site->weight_milli / 1000)
					      : gpuq_int(a, q->site->weight_milli / 1000));
	gpuq_put(a, v, "fair_share",
		 q->fair_milli < 0 ? gpuq_null(a) : view_devices(a, q->fair_milli));
	gpuq_put(a, v, "allocated", view_devices(a, allocated));
	gpuq_put(a, v, "held", view_devices(a, held));
	gpuq_put(a, v, "resources", resources ? resources : gpuq_map(a));
	gpuq_put(a, v, "pending_jobs", gpuq_int(a, pending));
	gpuq_put(a, v, "running_jobs", gpuq_int(a, running));
	gpuq_put(a, v, "budget_gpu_minutes",
		 q->budget && q->budget->gpu_minutes != GPUQ_UNLIMITED
			 ? gpuq_int(a, q->budget->gpu_minutes)
			 : gpuq_null(a));
	gpuq_put(a, v, "used_gpu_minutes", gpuq_real(a, (double)(used_ms / 6) / 10000));
	view_times(a, v, q);
	gpuq_put(a, v, "isolation",
		 isolation == GPUQ_ISOLATION_NONE ? gpuq_null(a)
						  : view_isolation(a, (int)isolation));
	gpuq_put(a, v, "namespace", view_word(a, q->site->namespace_));
	gpuq_put(a, v, "state",
		 gpuq_str(a, q->site->stopped && q->site->closed ? "stopped,closed"
			     : q->site->stopped                  ? "stopped"
			     : q->site->closed                   ? "closed"
								 : "open"));
	return v;
}

/* Count the pending jobs that wait for requested nodes: they are shown in a state of their own. */
static int64_t count_provisioning(const struct model *m)
{
	const struct job *j;
	int64_t n = 0;

	DL_FOREACH2(m->jobs_by_state[GPUQ_JOB_PENDING], j, state_next)
		n += view_job_state(j) == GPUQ_JOB_PROVISIONING;
	return n;
}

struct gpuq_val *view_status(struct gpuq_arena *a, const struct model *m, int64_t now_us)
{
	struct gpuq_val *v = gpuq_map(a), *d = gpuq_map(a), *jobs = gpuq_map(a),
			*frozen = gpuq_list(a), *why = gpuq_map(a), *reserved = gpuq_list(a);
	const struct site_reservation *r = m->site->reservations.items;
	const int64_t provisioning = count_provisioning(m);
	struct census all;

	if (!census_take(m, now_us, a, &all))
		return NULL;
	gpuq_put(a, v, "gpus", view_devices(a, all.total_milli));
	for (int i = 0; i < N_CENSUS_KINDS; i++)
		gpuq_put(a, d, census_words[i], view_devices(a, all.milli[i]));
	gpuq_put(a, v, "devices", d);
	for (int i = 0; i < N_CENSUS_CAUSES; i++)
		if (all.stranded_milli[i])
			gpuq_put(a, why, census_causes[i], view_devices(a, all.stranded_milli[i]));
	gpuq_put(a, v, "stranded_by", why);
	gpuq_put(a, v, "resources", view_node_resources(a, m, now_us));
	for (size_t i = 0; i < m->site->reservations.n; i++) {
		struct gpuq_val *one = gpuq_map(a);

		if (all.idle_milli[i] == 0)
			continue;
		view_node_put_reservation(a, m, one, &r[i], now_us);
		gpuq_put(a, one, "gpus", view_devices(a, all.idle_milli[i]));
		gpuq_add(a, reserved, one);
	}
	gpuq_put(a, v, "reserved", reserved);
	gpuq_put(a, v, "refusing", view_refusing(a, m, NULL, now_us));
	for (int i = 0; i < N_GPUQ_JOB_STATES; i++) {
		int64_t n = m->n_jobs_by_state[i];

		if (i == GPUQ_JOB_PENDING)
			n -= provisioning;
		else if (i == GPUQ_JOB_PROVISIONING)
			n = provisioning;
		gpuq_put(a, jobs, gpuq_job_state_word((enum gpuq_job_state)i), gpuq_int(a, n));
	}
	gpuq_put(a, v, "jobs", jobs);
	node_each(m, n)
		if (n->frozen)
			gpuq_add(a, frozen, gpuq_str(a, n->name));
	gpuq_put(a, v, "frozen_nodes", frozen);
	return v;
}
