#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/amount.h"
#include "gpuqd/sim/world_int.h"

/* What was used in a world: by users in their queues, as it fades; by queues, for shares
 * and budgets. What a case says holds at its `now`; from then on running jobs add to it.
 * The same arithmetic as the daemon's (state/usage.h). */

#define DAY_US (86400 * GPUQ_US_PER_S)
/* Where nothing is forgotten, use is measured by what the cluster gives in a month. */
#define WINDOW_US (30 * DAY_US)
#define STEPS 256 /* of a half-life: shares are looked at again after each */

static const char *const weight_words[] = { "age", "fairshare", "size", "qos", "stretch", NULL };

static int read_weights(struct world *w, struct gpuq_err *err)
{
	const struct gpuq_strmap *in = &w->c->config.priority_weights;
	int64_t *const to[] = { &w->weights.age, &w->weights.fair_share, &w->weights.size,
				&w->weights.qos, &w->weights.stretch };

	snapshot_weights_default(&w->weights);
	/* Who says what counts leaves this out by not naming it. */
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

static uint32_t queue_ix(const struct world *w, const char *name)
{
	uint32_t q = 0;

	while (q < w->n_queues && strcmp(w->queues[q].name, name) != 0)
		q++;
	return q;
}

static struct sim_use *use_of(struct world *w, uint32_t queue, const char *user,
			      struct gpuq_err *err)
{
	struct sim_use *u;

	for (uint32_t i = 0; i < w->n_uses; i++)
		if (w->uses[i].queue == queue && strcmp(w->uses[i].user, user) == 0)
			return &w->uses[i];
	u = world_append(w, &w->uses, &w->n_uses, &w->room_uses, sizeof(*w->uses), err);
	if (u)
		*u = (struct sim_use){ .queue = queue, .user = user };
	return u;
}

static int64_t held_milli(const struct sim_job *j)
{
	int64_t milli = 0;

	for (uint32_t t = 0; j->state == SIM_RUNNING && t < j->n_tasks; t++)
		milli += (int64_t)j->tasks[t].n_devices * j->tasks[t].milli;
	return milli;
}

static int64_t cluster_milli(const struct world *w)
{
	int64_t milli = 0;

	for (uint32_t n = 0; n < w->n_nodes; n++)
		milli += w->nodes[n].spec->gpus;
	return milli;
}

/* So many thousandths of what the cluster gives. */
static usage_q32 part_of_cluster(const struct world *w, int64_t milli)
{
	const usage_q32 all = usage_of(cluster_milli(w), w->half_life_us ? INT64_MAX : WINDOW_US,
				       w->half_life_us);

	return usage_scaled(all, milli);
}

int world_make_usage(struct world *w, struct gpuq_err *err)
{
	const struct sc_user *users = w->c->users.items;
	const int64_t h = w->c->config.usage_half_life;
	int rc = read_weights(w, err);

	w->half_life_us = h == SC_ABSENT ? 7 * DAY_US : h < 0 ? 0 : world_us(w, h);
	w->used = gpuq_arena_calloc(&w->arena, w->n_queues, sizeof(*w->used));
	w->spent_us = gpuq_arena_calloc(&w->arena, w->n_queues, sizeof(*w->spent_us));
	w->parents = gpuq_arena_calloc(&w->arena, w->n_queues, sizeof(*w->parents));
	w->made_us = w->now_us;
	if (rc == 0 && (!w->used || !w->spent_us || !w->parents))
		rc = world_no_memory(err);
	for (uint32_t q = 0; rc == 0 && q < w->n_queues; q++) {
		const char *parent = w->queues[q].parent;

		w->parents[q] =
			parent && strcmp(parent, "root") != 0 ? queue_ix(w, parent) : w->n_queues;
	}
	for (size_t i = 0; rc == 0 && i < w->c->users.n; i++) {
		const uint32_t q = queue_ix(w, users[i].queue ? users[i].queue : w->queues[0].name);
		struct sim_use *u;

		if (q == w->n_queues) {
			gpuq_fail_field(err, GPUQ_EINVAL, "queue", "no queue is named %s",
					users[i].queue);
			return scenario_within(err, "users", i);
		}
		u = use_of(w, q, users[i].name, err);
		if (!u)
			return GPUQ_ENOMEM;
		u->used += part_of_cluster(w, users[i].usage) +
			   ((usage_q32)(uint64_t)users[i].used << 32) / 1000;
	}
	/* What runs when the case begins has run since its start. */
	for (uint32_t i = 0; rc == 0 && i < w->n_jobs; i++) {
		const struct sim_job *j = &w->jobs[i];
		const int64_t milli = held_milli(j);
		struct sim_use *u;

		if (milli == 0 || j->start_us >= w->now_us)
			continue;
		u = use_of(w, queue_ix(w, j->queue), world_template(w, j)->spec->user, err);
		if (!u)
			return GPUQ_ENOMEM;
		u->used += usage_of(milli, w->now_us - j->start_us, w->half_life_us);
	}
	return rc;
}

int world_pass(struct world *w, int64_t to_us, struct gpuq_err *err)
{
	const int64_t dt = to_us - w->now_us;

	for (uint32_t i = 0; i < w->n_uses; i++)
		w->uses[i].used = usage_left(w->uses[i].used, dt, w->half_life_us);
	for (uint32_t q = 0; q < w->n_queues; q++)
		w->used[q] = usage_left(w->used[q], dt, w->half_life_us);
	for (uint32_t i = 0; i < w->n_jobs; i++) {
		const struct sim_job *j = &w->jobs[i];
		const int64_t milli = held_milli(j);
		const uint32_t q = milli ? queue_ix(w, j->queue) : 0;
		const usage_q32 more = usage_of(milli, dt, w->half_life_us);
		struct sim_use *u;

		if (milli == 0)
			continue;
		u = use_of(w, q, world_template(w, j)->spec->user, err);
		if (!u)
			return GPUQ_ENOMEM;
		u->used += more;
		w->used[q] += more;
		w->spent_us[q] = amount_sum(
			w->spent_us[q],
			amount_times(milli * world_template(w, j)->spec->usage_factor / 1000,
				     dt / 1000));
	}
	world_idle_pass(w, to_us);
	w->now_us = to_us;
	return 0;
}

static bool below(const struct world *w, uint32_t q, uint32_t top)
{
	/* A circle is refused when the snapshot is sealed, which comes later. */
	for (uint32_t depth = 0; q < w->n_queues && depth <= w->n_queues; depth++) {
		if (q == top)
			return true;
		q = w->parents[q];
	}
	return false;
}

void world_fill_usage(const struct world *w, uint32_t queue, struct snap_queue *out)
{
	const struct sc_queue *in = &w->queues[queue];
	const int64_t budget = in->budget_gpu_min;
	usage_q32 used = 0;
	int64_t spent_us = 0;

	for (uint32_t q = 0; q < w->n_queues; q++) {
		if (!below(w, q, queue))
			continue;
		used += w->used[q];
		spent_us = amount_sum(spent_us, w->spent_us[q]);
	}
	out->usage_micro = (int64_t)usage_left((usage_q32)(uint64_t)(in->usage * 1000),
					       w->now_us - w->made_us, w->half_life_us) +
			   usage_micro(used, cluster_milli(w), w->half_life_us, WINDOW_US);
	if (budget == SC_ABSENT || budget < 0)
		return;
	out->budget_gpu_ms = budget * 60;
	out->budget_used_gpu_ms = amount_sum(in->budget_used_gpu_min * 60, spent_us / 1000);
	out->budget_hard = in->budget_mode ? in->budget_mode - 1 == SC_BUDGET_HARD
					   : w->c->config.budget_mode == SC_BUDGET_HARD;
}

void world_add_usages(const struct world *w, struct snapshot *s)
{
	for (uint32_t i = 0; i < w->n_uses; i++)
		snapshot_add_usage(s, w->uses[i].queue, snapshot_user(s, w->uses[i].user),
				   (uint64_t)(w->uses[i].used >> SNAP_USED_SHIFT));
}

/* Where the case weighs classes, the highest of its jobs has all the points. Priorities
 * of jobs are thousandths here. */
static struct snap_weights weights_of(const struct world *w)
{
	struct snap_weights out = w->weights;

	out.qos_full = 1000;
	for (uint32_t i = 0; w->weighs_classes && i < w->n_jobs; i++) {
		const int64_t p = w->jobs[i].priority, size = p < 0 ? -p : p;

		out.qos_full = size > out.qos_full ? size : out.qos_full;
	}
	return out;
}

void world_set_policy(const struct world *w, struct snap_config *c)
{
	c->weights = weights_of(w);
	c->usage_k_milli = w->c->config.usage_k;
	c->usage_step_us = w->half_life_us / STEPS;
	if (w->half_life_us && c->usage_step_us < GPUQ_US_PER_S)
		c->usage_step_us = GPUQ_US_PER_S;
}
