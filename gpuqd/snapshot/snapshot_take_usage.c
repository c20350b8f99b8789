#include "gpuqd/snapshot/snapshot_take_usage.h"

#include "gpuqd/site/policy.h"
#include "gpuqd/util/amount.h"
#include "libgpuq/units.h"

/* Without decay, past usage is measured against the cluster's capacity in a month. */
#define WINDOW_US (30 * 24 * 3600 * GPUQ_US_PER_S)
/* Steps of a half-life: usage changes by a third of a percent in one. */
#define STEPS 256
#define STEP_LEAST_US (60 * GPUQ_US_PER_S)

/* Add the usage of a user's queue to it and to all above it. */
static bool add_to_queues(void *arg, struct queue *q, const char *user, usage_q32 used)
{
	struct queue_usage *out = arg;

	for (const struct queue *up = q; *user && up; up = up->parent)
		out[up->ix].used += used;
	return true;
}

/* Return the devices that are present, healthy or not: usage is measured against them. */
static int64_t cluster_milli(const struct model *m)
{
	int64_t n = 0;

	node_each(m, node)
		n += node->gone ? 0 : node->n_devices;
	return n * SNAP_MILLI;
}

struct queue_usage *snapshot_queue_usage(const struct model *m, int64_t now_us,
					 struct gpuq_arena *mem)
{
	const size_t n = m->n_queues;
	struct queue_usage *out = gpuq_arena_calloc(mem, n, sizeof(*out));
	struct spent *spent = gpuq_arena_calloc(mem, n, sizeof(*spent));
	const int64_t cluster = cluster_milli(m);
	bool budgets = false;

	if (!out || !spent)
		return NULL;
	for (size_t i = 0; i < n; i++)
		budgets |= m->queues[i]->budget != NULL;
	if (budgets)
		budget_spending(m, now_us, spent);
	for (size_t i = 0; i < n; i++) {
		out[i].cluster_milli = cluster;
		out[i].spent = spent[i];
	}
	if (m->policy.usage_k_milli)
		account_each(m, now_us, add_to_queues, out);
	return out;
}

void snapshot_wake(struct snap_config *c, int64_t at_us)
{
	if (c->wake_us == 0 || at_us < c->wake_us)
		c->wake_us = at_us;
}

void snapshot_fill_usage(const struct model *m, const struct queue *q, const struct queue_usage *u,
			 struct snap_config *c, struct snap_queue *out)
{
	const struct site_budget *b = q->budget;

	if (m->policy.usage_k_milli)
		out->usage_micro = usage_micro(u->used, u->cluster_milli,
					       m->policy.usage_half_life_us, WINDOW_US);
	if (!b)
		return;
	if (b->half_life_us)
		snapshot_wake(c, amount_sum(c->now_us, b->half_life_us / STEPS > STEP_LEAST_US
							       ? b->half_life_us / STEPS
							       : STEP_LEAST_US));
	if (b->gpu_minutes == GPUQ_UNLIMITED)
		return;
	out->budget_gpu_ms = b->gpu_minutes * 60000 + u->spent.granted_ms;
	if (out->budget_gpu_ms < 0)
		out->budget_gpu_ms = 0;
	out->budget_used_gpu_ms = u->spent.used_ms;
	out->budget_reset_us = u->spent.reset_us;
	out->budget_hard = b->mode == 1;
}

struct adding {
	struct snapshot *s;
	const uint32_t *queue_of;
};

/* Add it for the user, at the scale of snapshots. */
static bool add_user(void *arg, struct queue *q, const char *user, usage_q32 used)
{
	const struct adding *a = arg;

	return !*user || snapshot_add_usage(a->s, a->queue_of[q->ix], snapshot_user(a->s, user),
					    (uint64_t)(used >> SNAP_USED_SHIFT));
}

void snapshot_add_usages(const struct model *m, int64_t now_us, const uint32_t *queue_of,
			 struct snapshot *s)
{
	struct adding a = { s, queue_of };

	account_each(m, now_us, add_user, &a);
}

void snapshot_set_policy(const struct model *m, struct snap_config *c)
{
	const struct policy *p = &m->policy;
	struct snap_weights *w = &c->weights;

	c->sched = p->sched;
	c->usage_k_milli = p->usage_k_milli;
	c->usage_step_us = p->usage_half_life_us / STEPS;
	if (p->usage_half_life_us && c->usage_step_us < STEP_LEAST_US)
		c->usage_step_us = STEP_LEAST_US;
	w->max_age_us = p->weights.max_age_us;
	if (p->weights.age != POLICY_DEFAULT)
		w->age = p->weights.age;
	if (p->weights.fair_share != POLICY_DEFAULT)
		w->fair_share = p->weights.fair_share;
	if (p->weights.size != POLICY_DEFAULT)
		w->size = p->weights.size;
	if (p->weights.stretch != POLICY_DEFAULT)
		w->stretch = p->weights.stretch;
	if (p->weights.qos == POLICY_DEFAULT)
		return;
	w->qos = p->weights.qos;
	w->qos_full = 1;
	site_each(site_qos, m->site->qos, q) {
		const int64_t size = q->priority < 0 ? -q->priority : q->priority;

		w->qos_full = size > w->qos_full ? size : w->qos_full;
	}
}
