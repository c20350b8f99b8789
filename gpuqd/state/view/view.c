#include "gpuqd/state/view/view.h"

#include "gpuqd/util/amount.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/devices/backend.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/state/view/cards.h"
#include "gpuqd/state/view/census.h"
#include "gpuqd/state/joblabel.h"
#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/snapshot/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"

struct gpuq_val *view_instant(struct gpuq_arena *a, int64_t us)
{
	return us > 0 ? gpuq_int(a, us) : gpuq_null(a);
}

struct gpuq_val *view_word(struct gpuq_arena *a, const char *s)
{
	return s && *s ? gpuq_str(a, s) : gpuq_null(a);
}

struct gpuq_val *view_devices(struct gpuq_arena *a, int64_t milli)
{
	if (milli == GPUQ_UNLIMITED)
		return gpuq_str(a, "unlimited");
	return milli % 1000 == 0 ? gpuq_int(a, milli / 1000) : gpuq_real(a, (double)milli / 1000);
}

const char *view_key(struct gpuq_arena *a, struct job_key key)
{
	return key.index >= 0 ? gpuq_arena_printf(a, "%u_%d", key.id, key.index)
			      : gpuq_arena_printf(a, "%u", key.id);
}

struct gpuq_val *view_spec(struct gpuq_arena *a, const struct gpuq_spec *spec, const char *user,
			   int64_t time_limit_us)
{
	/* A job that does not exist yet has all the keys of a job, so that programs can read both
	 * alike. */
	static const char *const nulls[] = { "reason",       "submit_time",   "start_time",
					     "end_time",     "eligible_time", "exit_code",
					     "flavor",       "promise",       "priority_terms",
					     "planned_time", "message",       "end_cause",
					     "use" };
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
	gpuq_put(a, v, "gpus", view_devices(a, cost_of_spec(spec)));
	gpuq_put(a, v, "gpu_seconds", gpuq_int(a, 0));
	view_spec_facts(a, v, spec);
	return v;
}

/* Return the pods that hold instances of a node. */
static struct gpuq_val *view_holder(struct gpuq_arena *a, const struct pod *p, int64_t count)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "job", gpuq_str(a, view_key(a, p->job->key)));
	gpuq_put(a, v, "pod", gpuq_int(a, p->index));
	gpuq_put(a, v, "user", gpuq_str(a, p->job->user));
	gpuq_put(a, v, "queue", gpuq_str(a, p->job->queue->name));
	gpuq_put(a, v, "count", gpuq_int(a, count));
	gpuq_put(a, v, "milli", gpuq_int(a, p->gpus_milli));
	return v;
}

/* Return the instances of MIG profiles: how many there are, and how many are free. */
static struct gpuq_val *view_mig(struct gpuq_arena *a, const struct node *n)
{
	struct gpuq_val *list = gpuq_list(a);

	for (size_t i = 0; i < n->fact.n_mig; i++) {
		const struct mig_fact *f = &n->fact.mig[i];
		/* Instances are not assigned by gpuqd: they are counted by profile. */
		int64_t left = (int64_t)f->count - n->foreign_mig[i];
		struct gpuq_val *v = gpuq_map(a), *pods = gpuq_list(a);
		const struct pod *p;

		DL_FOREACH2(n->pods, p, node_next) {
			const struct request_group *g = &p->job->request->spec.groups[p->group];

			if (!model_pod_takes(p) || !g->mig ||
			    !gpuq_profile_same(g->mig, f->profile))
				continue;
			left -= g->gpus_milli / 1000;
			gpuq_add(a, pods, view_holder(a, p, g->gpus_milli / 1000));
		}
		gpuq_put(a, v, "profile", gpuq_str(a, f->profile));
		gpuq_put(a, v, "count", gpuq_int(a, f->count));
		gpuq_put(a, v, "free", gpuq_int(a, left > 0 && !n->gone ? left : 0));
		gpuq_put(a, v, "foreign", gpuq_int(a, n->foreign_mig[i]));
		gpuq_put(a, v, "milli", gpuq_int(a, cost_of_profile(f->profile)));
		gpuq_put(a, v, "pods", pods);
		gpuq_add(a, list, v);
	}
	return list;
}

/* Return the countable resources of a node: {name: {total, free}}. */
static struct gpuq_val *view_resources(struct gpuq_arena *a, const struct node *n)
{
	struct gpuq_val *map = gpuq_map(a);

	for (size_t i = 0; i < n->fact.n_resources; i++) {
		const struct gpuq_amount *f = &n->fact.resources[i];
		int64_t left = f->count - n->foreign_amounts[i];
		struct gpuq_val *v = gpuq_map(a);
		const struct pod *p;

		DL_FOREACH2(n->pods, p, node_next) {
			const struct request_group *g = &p->job->request->spec.groups[p->group];

			if (model_pod_takes(p))
				left -= gpuq_amounts_get(g->resources, g->n_resources, f->name);
		}
		gpuq_put(a, v, "total", gpuq_int(a, f->count));
		gpuq_put(a, v, "free", gpuq_int(a, left > 0 && !n->gone ? left : 0));
		gpuq_put(a, map, f->name, v);
	}
	return map;
}

/* Return those of all nodes together. */
static struct gpuq_val *view_all_resources(struct gpuq_arena *a, const struct model *m)
{
	struct gpuq_val *all = gpuq_map(a);

	node_each(m, n) {
		const struct gpuq_val *one = n->gone ? NULL : view_resources(a, n);

		for (uint32_t i = 0; one && i < one->n; i++) {
			const struct gpuq_val *from = one->pairs[i].val;
			struct gpuq_val *to = gpuq_get(all, one->pairs[i].key);

			if (!to)
				to = gpuq_put(a, all, one->pairs[i].key, gpuq_map(a));
			gpuq_set(a, to, "total",
				 gpuq_int(a, gpuq_get_int(to, "total", 0) +
						     gpuq_get_int(from, "total", 0)));
			gpuq_set(a, to, "free",
				 gpuq_int(a, gpuq_get_int(to, "free", 0) +
						     gpuq_get_int(from, "free", 0)));
		}
	}
	return all;
}

/* Return the user of a device, and the amount it uses. */
static struct gpuq_val *view_tenant(struct gpuq_arena *a, const struct pod *p,
				    const struct device *d)
{
	const int64_t milli = p->gpus_milli / p->n_devices;
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "job", gpuq_str(a, view_key(a, p->job->key)));
	gpuq_put(a, v, "pod", gpuq_int(a, p->index));
	gpuq_put(a, v, "user", gpuq_str(a, p->job->user));
	gpuq_put(a, v, "queue", gpuq_str(a, p->job->queue->name));
	gpuq_put(a, v, "milli", gpuq_int(a, milli));
	gpuq_put(a, v, "memory_mib",
		 d->memory_mib ? gpuq_int(a, d->memory_mib * milli / 1000) : gpuq_null(a));
	return v;
}

/* Return why a node is not healthy; NULL: it is. */
static const char *node_cause(const struct node *n)
{
	int64_t milli;
	const char *lacks;

	/* The cause that has to be removed first is reported. */
	if (n->gone)
		return "gone; its pods may still run";
	if (n->drain && n->drain_why && *n->drain_why)
		return n->drain_why;
	if (n->fact.note && *n->fact.note)
		return n->fact.note;
	if (!n->fact.ready)
		return "not ready";
	if (n->drain)
		return "drained by an operator";
	if (n->ill)
		return n->ill;
	if (n->fact.unschedulable)
		return "marked unschedulable in the cluster";
	if (n->frozen)
		return n->frozen_why;
	if (n->suspect)
		return "pods failed there of late";
	lacks = accounting_node_stranded(n, &milli);
	return !lacks                         ? NULL
	       : strcmp(lacks, "cpu") == 0    ? "no free core for its free devices"
	       : strcmp(lacks, "memory") == 0 ? "no free memory for its free devices"
					      : "no free pod slot for its free devices";
}

/* Put which reservation it is, and its end; its times are wall time. */
static void put_reservation(struct gpuq_arena *a, const struct model *m, struct gpuq_val *v,
			    const struct site_reservation *r, int64_t now_us)
{
	const int64_t start_us = site_reservation_start(r, walltime_of(now_us, m->ahead_us));
	const int64_t end_us = amount_sum(start_us, r->duration_us);

	gpuq_put(a, v, "name", gpuq_str(a, r->name));
	gpuq_put(a, v, "end_time",
		 end_us == GPUQ_UNLIMITED ? gpuq_null(a)
					  : gpuq_int(a, walltime_to_ledger(end_us, m->ahead_us)));
}

static struct gpuq_val *view_reservation(struct gpuq_arena *a, const struct model *m,
					 const struct site_reservation *r, int64_t now_us)
{
	struct gpuq_val *v = r ? gpuq_map(a) : gpuq_null(a);

	if (r)
		put_reservation(a, m, v, r, now_us);
	return v;
}

/* Return how its devices are handed out; NULL = it has none, or any part of them. */
static const char *sharing_of(const struct node *n)
{
	return n->backend ? n->backend->word : n->fact.n_mig ? "mig" : NULL;
}

struct gpuq_val *view_node(struct gpuq_arena *a, const struct model *m, const struct node *n,
			   int64_t now_us)
{
	const struct site_reservation *reserved = census_reservation(m, n, now_us);
	const enum gpuq_node_state state = node_state(n);
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a), *labels = gpuq_map(a);
	struct census_slot *slots = gpuq_arena_calloc(a, n->n_devices + 1, sizeof(*slots));
	const struct cards cards = cards_of(n);
	int64_t free_milli = 0, cpu_milli, memory_bytes, slots_left;

	if (!slots || !v)
		return NULL;
	census_slots(n, slots);
	for (uint32_t i = 0; i < n->n_devices; i++) {
		const struct device *d = &n->devices[i];
		struct gpuq_val *dv = gpuq_map(a), *jobs = gpuq_list(a), *pods = gpuq_list(a);
		int64_t left = 1000 - slots[i].taken_milli;
		const int64_t taken = left < 0 ? 1000 : slots[i].taken_milli;
		const struct pod *p;

		/* Nothing can start there, whatever is not in use. */
		if (left < 0 || !d->healthy || n->gone)
			left = 0;
		free_milli += left;
		gpuq_put(a, dv, "index", gpuq_int(a, i));
		gpuq_put(a, dv, "uuid", view_word(a, d->uuid));
		gpuq_put(a, dv, "product", view_word(a, d->product));
		gpuq_put(a, dv, "memory_mib",
			 d->memory_mib ? gpuq_int(a, d->memory_mib) : gpuq_null(a));
		gpuq_put(a, dv, "free_milli", gpuq_int(a, left));
		gpuq_put(a, dv, "free_memory_mib",
			 d->memory_mib ? gpuq_int(a, d->memory_mib * left / 1000) : gpuq_null(a));
		DL_FOREACH2(n->pods, p, node_next)
			for (uint32_t k = 0; model_pod_takes(p) && k < p->n_devices; k++)
				if (p->devices[k] == i) {
					gpuq_add(a, jobs, gpuq_str(a, view_key(a, p->job->key)));
					gpuq_add(a, pods, view_tenant(a, p, d));
				}
		gpuq_put(a, dv, "used_memory_mib",
			 d->memory_mib ? gpuq_int(a, d->memory_mib * taken / 1000) : gpuq_null(a));
		gpuq_put(a, dv, "jobs", jobs);
		gpuq_put(a, dv, "pods", pods);
		gpuq_put(a, dv, "state",
			 gpuq_str(a, n->gone           ? "lost"
				     : !d->healthy     ? "unhealthy"
				     : left == 1000    ? "free"
				     : left > 0        ? "shared"
				     : jobs && jobs->n ? "allocated"
						       : "foreign"));
		gpuq_add(a, list, dv);
	}
	gpuq_put(a, v, "name", gpuq_str(a, n->name));
	gpuq_put(a, v, "pool", gpuq_str(a, n->pool));
	gpuq_put(a, v, "flavor", n->n_devices ? gpuq_str(a, n->flavor) : gpuq_null(a));
	gpuq_put(a, v, "state",
		 gpuq_str(a, gpuq_node_state_word(state == GPUQ_NODE_IDLE && reserved
							  ? GPUQ_NODE_RESERVED
							  : state)));
	gpuq_put(a, v, "reservation", view_reservation(a, m, reserved, now_us));
	gpuq_put(a, v, "gpus", gpuq_int(a, n->n_devices + cards.total_milli / 1000));
	gpuq_put(a, v, "free_gpus",
		 view_devices(a, free_milli + (n->gone ? 0 : cards.cut_milli - cards.taken_milli)));
	gpuq_put(a, v, "cpu_milli", gpuq_int(a, n->fact.cpu_milli));
	gpuq_put(a, v, "memory_mib", gpuq_int(a, n->fact.memory_bytes >> 20));
	accounting_node_left(n, &cpu_milli, &memory_bytes, &slots_left);
	gpuq_put(a, v, "free_cpu_milli", gpuq_int(a, cpu_milli > 0 ? cpu_milli : 0));
	gpuq_put(a, v, "free_memory_mib", gpuq_int(a, memory_bytes > 0 ? memory_bytes >> 20 : 0));
	gpuq_put(a, v, "foreign_pods", gpuq_int(a, n->foreign_pods));
	gpuq_put(a, v, "foreign_gpus", view_devices(a, n->foreign_gpus_milli));
	gpuq_put(a, v, "cause", view_word(a, node_cause(n)));
	gpuq_put(a, v, "note",
		 view_word(a, n->frozen  ? n->frozen_why
			      : n->drain ? n->drain_why
			      : n->ill   ? n->ill
					 : n->fact.note));
	gpuq_put(a, v, "inventory", n->odd ? gpuq_str(a, n->odd) : gpuq_null(a));
	gpuq_put(a, v, "last_seen", view_instant(a, n->seen_us));
	for (size_t i = 0; i < n->fact.labels.n; i++)
		gpuq_put(a, labels, n->fact.labels.keys[i], gpuq_str(a, n->fact.labels.vals[i]));
	gpuq_put(a, v, "labels", labels);
	gpuq_put(a, v, "sharing", view_word(a, sharing_of(n)));
	gpuq_put(a, v, "replicas",
		 n->fact.replicas > 1 ? gpuq_int(a, n->fact.replicas) : gpuq_null(a));
	gpuq_put(a, v, "devices", list);
	if (n->fact.n_mig)
		gpuq_put(a, v, "mig", view_mig(a, n));
	gpuq_put(a, v, "resources", view_resources(a, n));
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

struct gpuq_val *view_queue(struct gpuq_arena *a, const struct model *m, const struct queue *q,
			    int64_t used_ms)
{
	struct gpuq_val *v = gpuq_map(a);
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
	gpuq_put(a, v, "weight",
		 q->site->weight_milli % 1000 ? gpuq_real(a, (double)q->site->weight_milli / 1000)
					      : gpuq_int(a, q->site->weight_milli / 1000));
	gpuq_put(a, v, "fair_share",
		 q->fair_milli < 0 ? gpuq_null(a) : view_devices(a, q->fair_milli));
	gpuq_put(a, v, "allocated", view_devices(a, allocated));
	gpuq_put(a, v, "held", view_devices(a, held));
	gpuq_put(a, v, "pending_jobs", gpuq_int(a, pending));
	gpuq_put(a, v, "running_jobs", gpuq_int(a, running));
	gpuq_put(a, v, "budget_gpu_minutes",
		 q->budget && q->budget->gpu_minutes != GPUQ_UNLIMITED
			 ? gpuq_int(a, q->budget->gpu_minutes)
			 : gpuq_null(a));
	gpuq_put(a, v, "used_gpu_minutes", gpuq_real(a, (double)(used_ms / 6) / 10000));
	view_times(a, v, q);
	gpuq_put(a, v, "namespace", view_word(a, q->site->namespace_));
	gpuq_put(a, v, "state",
		 gpuq_str(a, q->site->stopped && q->site->closed ? "stopped,closed"
			     : q->site->stopped                  ? "stopped"
			     : q->site->closed                   ? "closed"
								 : "open"));
	return v;
}

struct gpuq_val *view_status(struct gpuq_arena *a, const struct model *m, int64_t now_us)
{
	struct gpuq_val *v = gpuq_map(a), *d = gpuq_map(a), *jobs = gpuq_map(a),
			*frozen = gpuq_list(a), *why = gpuq_map(a), *reserved = gpuq_list(a);
	const struct site_reservation *r = m->site->reservations.items;
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
	gpuq_put(a, v, "resources", view_all_resources(a, m));
	for (size_t i = 0; i < m->site->reservations.n; i++) {
		struct gpuq_val *one = gpuq_map(a);

		if (all.idle_milli[i] == 0)
			continue;
		put_reservation(a, m, one, &r[i], now_us);
		gpuq_put(a, one, "gpus", view_devices(a, all.idle_milli[i]));
		gpuq_add(a, reserved, one);
	}
	gpuq_put(a, v, "reserved", reserved);
	for (int i = 0; i < N_GPUQ_JOB_STATES; i++)
		gpuq_put(a, jobs, gpuq_job_state_word((enum gpuq_job_state)i),
			 gpuq_int(a, m->n_jobs_by_state[i]));
	gpuq_put(a, v, "jobs", jobs);
	node_each(m, n)
		if (n->frozen)
			gpuq_add(a, frozen, gpuq_str(a, n->name));
	gpuq_put(a, v, "frozen_nodes", frozen);
	return v;
}
