#include "gpuqd/sim/world_int.h"
#include "gpuqd/sim/world_cuts.h"
#include "gpuqd/site/layouts.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/amount.h"

/* A case's queues, flavors and nodes as a site and facts of gpuqd's model. */

#define DAY_US (86400 * GPUQ_US_PER_S)
/* Without decay, use is measured by what the cluster gives in a month. */
#define WINDOW_US (30 * DAY_US)

static const char *const weight_words[] = { "age", "fairshare", "size", "qos", "stretch", NULL };

static int read_weights(struct world *w, struct gpuq_err *err)
{
	const struct gpuq_strmap *in = &w->c->config.priority_weights;
	int64_t *const to[] = { &w->weights.age, &w->weights.fair_share, &w->weights.size,
				&w->weights.qos, &w->weights.stretch };

	snapshot_weights_default(&w->weights);
	/* A case with weights omits this one by not naming it. */
	if (in->n)
		w->weights.stretch = 0;
	for (size_t i = 0; i < in->n; i++) {
		char *end;
		long long points = strtoll(in->vals[i], &end, 10);
		int k = 0;

		while (weight_words[k] && strcmp(weight_words[k], in->keys[i]) != 0)
			k++;
		if (!weight_words[k])
			return gpuq_fail_field(
				err, GPUQ_EINVAL, "config",
				"priority_weights.%s: expected age, fairshare, size, qos or "
				"stretch",
				in->keys[i]);
		if (end == in->vals[i] || *end || points < 0 || points > 1000000000000)
			return gpuq_fail_field(
				err, GPUQ_EINVAL, "config",
				"priority_weights.%s: expected points from 0 to 10^12",
				in->keys[i]);
		*to[k] = points;
		w->weighs_classes |= k == 3;
	}
	return 0;
}

/* ---- the site ---- */

static bool list(struct site *s, struct gpuq_objects *out, size_t n, size_t size)
{
	out->items = gpuq_arena_calloc(&s->arena, n ? n : 1, size);
	out->n = n;
	return out->items != NULL;
}

/* Return the amount for one flavor; SC_ABSENT = none is given. */
static int64_t amount(const struct sc_amounts *a, const char *flavor)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->flavors[i], flavor) == 0)
			return a->amounts[i];
	return a->all;
}

static int64_t or_unlimited(int64_t milli)
{
	return milli == SC_ABSENT || milli < 0 ? GPUQ_UNLIMITED : milli;
}

/* Make an amount by flavor, of those that are given. */
static bool new_amount(const struct world *w, struct site *s, struct site_amount *out)
{
	out->given = out->per_flavor = true;
	out->flavors = gpuq_arena_calloc(&s->arena, w->n_flavors, sizeof(*out->flavors));
	out->amounts = gpuq_arena_calloc(&s->arena, w->n_flavors, sizeof(*out->amounts));
	return out->flavors && out->amounts;
}

static void say(struct site_amount *out, const char *flavor, int64_t milli)
{
	out->flavors[out->n] = flavor;
	out->amounts[out->n++] = milli;
}

static bool set_amounts(const struct world *w, struct site *s, const struct sc_queue *in,
			struct site_queue *q)
{
	if (!new_amount(w, s, &q->quota) || !new_amount(w, s, &q->limit) ||
	    !new_amount(w, s, &q->lend) || !new_amount(w, s, &q->shared_quota))
		return false;
	for (uint32_t f = 0; f < w->n_flavors; f++) {
		const char *flavor = w->flavors[f];
		const int64_t quota = amount(&in->quota, flavor);
		const int64_t shared = amount(&in->shared_quota, flavor);
		const int64_t borrow = amount(&in->borrow_limit, flavor);
		int64_t limit = or_unlimited(amount(&in->limit, flavor));

		if (quota != SC_ABSENT)
			say(&q->quota, flavor, or_unlimited(quota));
		if (shared != SC_ABSENT && shared > 0)
			say(&q->shared_quota, flavor, shared);
		if (borrow != SC_ABSENT && borrow >= 0 && quota != SC_ABSENT && quota >= 0 &&
		    quota + borrow < limit)
			limit = quota + borrow;
		say(&q->limit, flavor, limit);
		say(&q->lend, flavor, or_unlimited(amount(&in->lend_limit, flavor)));
	}
	return true;
}

int64_t world_runtime(const struct world *w, int64_t t, int64_t absent)
{
	return t == SC_ABSENT || t < 0 ? absent : world_us(w, t);
}

static int64_t whole(int64_t milli)
{
	return milli == SC_ABSENT || milli < 0 ? GPUQ_UNLIMITED : milli / 1000;
}

static bool set_queue(const struct world *w, struct site *s, const struct sc_queue *in,
		      struct site_queue *q)
{
	*q = (struct site_queue){
		.name = in->name,
		.parent = in->parent && strcmp(in->parent, "root") != 0 ? in->parent : NULL,
		.policy = in->policy,
		.idle_us = world_runtime(w, in->idle_limit, 0),
		.max_spot_preemptions = in->max_spot_preemptions / 1000,
		.max_running = { whole(in->user_max_running), GPUQ_UNLIMITED,
				 whole(in->max_running) },
		.max_gpus = { whole(in->user_max_gpus), whole(in->job_max_gpus),
			      whole(in->max_gpus) },
		.max_submitted = { GPUQ_UNLIMITED, GPUQ_UNLIMITED, GPUQ_UNLIMITED },
		.start = "direct",
	};
	if (!set_amounts(w, s, in, q))
		return false;
	if (in->budget_gpu_min == SC_ABSENT || in->budget_gpu_min < 0)
		return true;
	q->budget = gpuq_arena_calloc(&s->arena, 1, sizeof(*q->budget));
	if (!q->budget)
		return false;
	q->budget->gpu_minutes = in->budget_gpu_min / 1000;
	q->budget->user_gpu_minutes = GPUQ_UNLIMITED;
	q->budget->mode = in->budget_mode ? in->budget_mode - 1 == SC_BUDGET_HARD
					  : w->c->config.budget_mode == SC_BUDGET_HARD;
	return true;
}

/* Make a class for every kind of job that needs one; the names are those of world_qos(). */
static bool set_qos(struct world *w, struct site *s)
{
	const struct gpuq_objects *lists[] = { &w->c->running, &w->c->pending };
	size_t n = w->c->running.n + w->c->pending.n + w->c->n_steps, at = 0;
	struct site_qos *all;

	if (!list(s, &s->qos, n, sizeof(*all)))
		return false;
	all = s->qos.items;
	for (size_t i = 0; i < n; i++) {
		const struct sc_job *j;
		size_t k = 0;

		if (i < w->c->running.n)
			j = &((const struct sc_job *)lists[0]->items)[i];
		else if (i - w->c->running.n < w->c->pending.n)
			j = &((const struct sc_job *)lists[1]->items)[i - w->c->running.n];
		else
			j = w->c->steps[i - w->c->running.n - w->c->pending.n].submit;
		if (!j)
			continue;
		while (k < at &&
		       !(all[k].priority == j->priority && all[k].preemptible == j->preemptible &&
			 all[k].usage_factor_milli == j->usage_factor))
			k++;
		if (k < at)
			continue;
		all[at] = (struct site_qos){
			.name = world_qos(w, j),
			.preemptible = j->preemptible,
			.priority = j->priority,
			.usage_factor_milli = j->usage_factor,
			.max_running = { GPUQ_UNLIMITED, GPUQ_UNLIMITED, GPUQ_UNLIMITED },
			.max_gpus = { GPUQ_UNLIMITED, GPUQ_UNLIMITED, GPUQ_UNLIMITED },
			.max_submitted = { GPUQ_UNLIMITED, GPUQ_UNLIMITED, GPUQ_UNLIMITED },
		};
		if (!all[at++].name)
			return false;
	}
	s->qos.n = at;
	return true;
}

const char *world_qos(struct world *w, const struct sc_job *j)
{
	return gpuq_arena_printf(&w->arena, "%lld-%lld-%d", (long long)j->priority,
				 (long long)j->usage_factor, j->preemptible);
}

static bool set_reservations(const struct world *w, struct site *s)
{
	const struct sc_reservation *in = w->c->config.reservations.items;
	static const char *const maintenance[] = { "maintenance" };
	struct site_reservation *out;

	if (!list(s, &s->reservations, w->c->config.reservations.n, sizeof(*out)))
		return false;
	out = s->reservations.items;
	for (size_t i = 0; i < s->reservations.n; i++, in++) {
		out[i] = (struct site_reservation){
			.name = in->name,
			.queue = in->queue,
			.start_us = world_at(w, in->start),
			.duration_us = world_us(w, in->duration),
			.gpus_milli = in->gpus,
			.every_us = world_us(w, in->every),
			.release_after_us = world_us(w, in->release_after),
			.nodes = in->nodes,
			.at_end = in->at_end,
		};
		if (in->node) {
			const char **names =
				gpuq_arena_calloc(&s->arena, in->nodes.n + 1, sizeof(*names));

			if (!names)
				return false;
			for (size_t k = 0; k < in->nodes.n; k++)
				names[k] = in->nodes.items[k];
			names[in->nodes.n] = in->node;
			out[i].nodes = (struct gpuq_strlist){ names, in->nodes.n + 1 };
		}
		if (in->kind == SC_MAINTENANCE || !in->queue)
			out[i].flags =
				(struct gpuq_strlist){ (const char **)(uintptr_t)maintenance, 1 };
	}
	return true;
}

/* Add the pools with what the site says of them. Nodes know their pool: no selector finds one. */
static struct site_layouts *layouts_of(const struct world *w, struct site *s,
				       const struct sc_layouts *in)
{
	struct site_layouts *out = gpuq_arena_calloc(&s->arena, 1, sizeof(*out));

	if (out)
		*out = (struct site_layouts){ .manager = in->manager,
					      .names = in->names,
					      .timeout_us = GPUQ_UNLIMITED,
					      .again_us = in->again == SC_ABSENT
								  ? 3600 * GPUQ_US_PER_S
								  : world_us(w, in->again) };
	return out;
}

static bool set_pools(struct world *w, struct site *s)
{
	static const char *const keys[] = { WORLD_POOL_LABEL };
	const struct sc_pool *in = w->c->pools.items;

	if (!list(s, &s->pools, w->c->pools.n, sizeof(struct site_pool)))
		return false;
	for (size_t i = 0; i < w->c->pools.n; i++) {
		struct site_pool *p = &((struct site_pool *)s->pools.items)[i];
		const char **vals = gpuq_arena_calloc(&s->arena, 1, sizeof(*vals));

		if (!vals)
			return false;
		vals[0] = in[i].name;
		p->name = in[i].name;
		/* Nodes that are there keep their own. */
		p->flavor = in[i].flavor ? in[i].flavor : in[i].max ? "default" : NULL;
		p->mig = in[i].mig ? layouts_of(w, s, in[i].mig) : NULL;
		if (in[i].mig && !p->mig)
			return false;
		p->selector = (struct gpuq_strmap){ (const char **)(uintptr_t)keys, vals, 1 };
		p->spot = in[i].spot;
		p->price.given = in[i].price > 0;
		p->price.micro[0] = p->price.micro[1] = in[i].price * 1000;
	}
	return true;
}

static struct site *make_site(struct world *w)
{
	struct site *s = calloc(1, sizeof(*s));
	bool ok;

	if (!s)
		return NULL;
	s->version = 1;
	s->max_submitted = s->max_stored_bytes = GPUQ_UNLIMITED;
	s->topology = w->c->config.topology_levels;
	ok = list(s, &s->flavors, w->n_flavors, sizeof(struct site_flavor)) &&
	     list(s, &s->licenses, w->n_licenses, sizeof(struct site_license)) &&
	     list(s, &s->queues, w->n_queues, sizeof(struct site_queue)) && set_qos(w, s) &&
	     set_reservations(w, s);
	for (uint32_t f = 0; ok && f < w->n_flavors; f++)
		((struct site_flavor *)s->flavors.items)[f] =
			(struct site_flavor){ .name = w->flavors[f],
					      .match = { .product = w->flavors[f] },
					      .rate_milli = 1000 };
	for (uint32_t l = 0; ok && l < w->n_licenses; l++)
		((struct site_license *)s->licenses.items)[l] =
			(struct site_license){ w->licenses[l], w->license_counts[l] };
	for (uint32_t q = 0; ok && q < w->n_queues; q++)
		ok = set_queue(w, s, &w->queues[q], &((struct site_queue *)s->queues.items)[q]);
	ok = ok && set_pools(w, s);
	if (!ok) {
		site_free(s);
		return NULL;
	}
	return s;
}

/* ---- nodes ---- */

int world_node_event(struct world *w, const struct sim_node *n, struct gpuq_err *err)
{
	const struct sc_node *spec = n->spec;
	const uint32_t n_devices = (uint32_t)(spec->gpus / 1000);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct device_fact *devices = gpuq_arena_calloc(&mem, n_devices + 1, sizeof(*devices));
	struct taint_fact *taints = gpuq_arena_calloc(&mem, spec->taints.n + 1, sizeof(*taints));
	struct mig_fact *mig = gpuq_arena_calloc(&mem, spec->mig.n + 1, sizeof(*mig));
	const struct snap_taint *in = spec->taints.items;
	const size_t n_labels = spec->labels.n;
	const char **words = gpuq_arena_calloc(&mem, 2 * (n_labels + 1), sizeof(*words));
	struct node_fact fact = {
		.name = n->name,
		.labels = spec->labels,
		.taints = taints,
		.n_taints = spec->taints.n,
		.cpu_milli = spec->cpu == SC_ABSENT ? GPUQ_UNLIMITED : spec->cpu / 1000,
		.memory_bytes =
			spec->mem_mb == SC_ABSENT ? GPUQ_UNLIMITED : spec->mem_mb / 1000 << 20,
		.max_pods = spec->max_pods == SC_ABSENT ? GPUQ_UNLIMITED : spec->max_pods / 1000,
		.devices = devices,
		.n_devices = n_devices,
		.replicas = (uint32_t)(spec->replicas / 1000),
		.links = spec->links.n ? spec->links.items : NULL,
		.numa = spec->numa.n ? spec->numa.items : NULL,
		.mig = mig,
		.n_mig = spec->mig.n < SC_MIG_MAX ? spec->mig.n : SC_MIG_MAX,
		.ready = n->state != SNAP_DOWN,
		.unschedulable = n->state == SNAP_DRAINED,
		.note = "",
	};
	struct event ev = { .type = EV_NODE_SEEN, .node = &fact };
	int rc;

	fact.resources = scenario_resources(&mem, &spec->resources, &fact.n_resources);
	if (words && n->pool != SNAP_NONE) {
		for (size_t i = 0; i < n_labels; i++) {
			words[i] = spec->labels.keys[i];
			words[n_labels + 1 + i] = spec->labels.vals[i];
		}
		words[n_labels] = WORLD_POOL_LABEL;
		words[2 * n_labels + 1] = spec->pool;
		fact.labels = (struct gpuq_strmap){ words, words + n_labels + 1, n_labels + 1 };
	}
	if (!devices || !taints || !mig || !fact.resources) {
		gpuq_arena_done(&mem);
		return gpuq_no_memory(err);
	}
	for (uint32_t d = 0; d < n_devices; d++)
		devices[d] = (struct device_fact){ "", spec->flavor ? spec->flavor : "default",
						   spec->gpu_mem_mb / 1000, true };
	for (size_t i = 0; i < spec->taints.n; i++)
		taints[i] = (struct taint_fact){ in[i].key, in[i].value, in[i].effect, false };
	for (size_t i = 0; i < fact.n_mig; i++)
		mig[i] = (struct mig_fact){ spec->mig.keys[i],
					    (uint32_t)strtoul(spec->mig.vals[i], NULL, 10) };
	rc = world_cuts_fact(w, n, &mem, &fact) ? world_event(w, &ev, err) : gpuq_no_memory(err);
	if (rc == 0 && n->state == SNAP_SUSPECT) {
		ev = (struct event){ .type = EV_NODE_FROZEN };
		ev.drain.name = n->name;
		ev.drain.on = true;
		rc = world_event(w, &ev, err);
	}
	gpuq_arena_done(&mem);
	return rc;
}

/* ---- past use ---- */

static int64_t cluster_milli(const struct world *w)
{
	int64_t milli = 0;

	for (uint32_t n = 0; n < w->n_nodes; n++)
		milli += world_node_exists(&w->nodes[n]) ? w->nodes[n].spec->gpus : 0;
	return milli;
}

/* Return a number of thousandths of what the cluster gives. */
static usage_q32 part_of_cluster(const struct world *w, int64_t milli)
{
	const usage_q32 all = usage_of(cluster_milli(w), w->half_life_us ? INT64_MAX : WINDOW_US,
				       w->half_life_us);

	return usage_scaled(all, milli);
}

int world_make_past(struct world *w, struct gpuq_err *err)
{
	const struct sc_user *users = w->c->users.items;
	struct spent *spent = gpuq_arena_calloc(&w->arena, w->m->n_queues, sizeof(*spent));

	w->spent_before_ms =
		gpuq_arena_calloc(&w->arena, w->m->n_queues, sizeof(*w->spent_before_ms));
	if (!spent || !w->spent_before_ms)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < w->c->users.n; i++) {
		const char *queue = users[i].queue ? users[i].queue : w->queues[0].name;
		usage_q32 used;

		if (!world_queue(w, queue)) {
			gpuq_fail_field(err, GPUQ_EINVAL, "queue", "no queue is named %s", queue);
			return scenario_within(err, "users", i);
		}
		used = part_of_cluster(w, users[i].usage) +
		       ((usage_q32)(uint64_t)users[i].used << 32) / 1000;
		account_set(w->m, queue, users[i].name, used, w->now_us);
	}
	/* The budget spent when the case begins includes use by running jobs. */
	budget_spending(w->m, w->now_us, spent);
	for (uint32_t q = 0; q < w->m->n_queues; q++) {
		const struct sc_queue *in = world_queue(w, w->m->queues[q]->name);

		w->spent_before_ms[q] = in->budget_used_gpu_min * 60 - spent[q].used_ms;
	}
	return 0;
}

/* ---- the policy ---- */

static void set_policy(const struct world *w, struct policy *p)
{
	const struct sc_config *c = &w->c->config;

	p->usage_half_life_us = w->half_life_us;
	p->usage_k_milli = c->usage_k;
	if (c->idle_window != SC_ABSENT && c->idle_window > 0)
		p->idle_window_us = world_us(w, c->idle_window);
	p->sched = c->sched;
}

/* ---- the whole model ---- */

int world_make_model(struct world *w, struct gpuq_err *err)
{
	const int64_t h = w->c->config.usage_half_life;
	struct site *s;
	int rc = read_weights(w, err);

	if (rc < 0)
		return rc;
	w->half_life_us = h == SC_ABSENT ? 7 * DAY_US : h < 0 ? 0 : world_us(w, h);
	w->made_us = w->now_us;
	w->m = model_new("00000000");
	s = w->m ? make_site(w) : NULL;
	if (!s)
		return gpuq_no_memory(err);
	set_policy(w, &w->m->policy);
	queue_set_site(w->m, s);
	for (uint32_t n = 0; rc == 0 && n < w->n_nodes; n++)
		if (world_node_exists(&w->nodes[n]))
			rc = world_node_event(w, &w->nodes[n], err);
	return rc;
}
