#include "gpuqd/flow/report/export_queue.h"

#include <stdlib.h>

#include "gpuqd/state/usage.h"
#include "libgpuq/units.h"

void export_queue(struct export *x, uint32_t ix)
{
	const struct snap_queue *q = &x->s->queues[ix];
	const struct snap_share *shares = x->s->shares + (size_t)ix * x->s->n_res;
	struct gpuq_val *v = export_add(x, "queues");
	struct gpuq_val *quota = gpuq_map(x->a), *limit = gpuq_map(x->a), *lend = gpuq_map(x->a);
	bool lends_all = true;

	export_str(x, v, "name", q->name);
	export_str(x, v, "parent", q->parent == SNAP_NONE ? "root" : x->s->queues[q->parent].name);
	for (uint32_t f = 0; f < x->s->n_flavors; f++) {
		export_devices(x, quota, x->s->flavors[f].name, shares[f].quota);
		export_devices(x, limit, x->s->flavors[f].name, shares[f].limit);
		export_devices(x, lend, x->s->flavors[f].name, shares[f].lend);
		lends_all &= shares[f].lend == GPUQ_UNLIMITED;
	}
	export_put(x, v, "quota", quota);
	export_put(x, v, "limit", limit);
	if (!lends_all)
		export_put(x, v, "lend_limit", lend);
#define X(kind, member, key, scenario, dflt, recorded, how, names, ...)                            \
	EXPORT_##kind(x, v, scenario, q->member, names);
	POLICY_QUEUE_KEYS(X)
#undef X
	if (q->spread)
		export_put(x, v, "spread", gpuq_bool(x->a, true));
	if (q->usage_micro)
		export_milli(x, v, "usage", q->usage_micro / 1000);
	if (q->budget_gpu_ms != GPUQ_UNLIMITED) {
		export_milli(x, v, "budget_gpu_min", q->budget_gpu_ms / 60);
		export_milli(x, v, "budget_used_gpu_min", q->budget_used_gpu_ms / 60);
		export_str(x, v, "budget_mode", q->budget_hard ? "hard" : "soft");
	}
	if (q->user_max_running != GPUQ_UNLIMITED)
		export_int(x, v, "user_max_running", q->user_max_running);
	if (q->max_running != GPUQ_UNLIMITED)
		export_int(x, v, "max_running", q->max_running);
	if (q->user_max_gpus_milli != GPUQ_UNLIMITED)
		export_milli(x, v, "user_max_gpus", q->user_max_gpus_milli);
	if (q->job_max_gpus_milli != GPUQ_UNLIMITED)
		export_milli(x, v, "job_max_gpus", q->job_max_gpus_milli);
	if (q->max_gpus_milli != GPUQ_UNLIMITED)
		export_milli(x, v, "max_gpus", q->max_gpus_milli);
}

/* ---- users ---- */

/* Return the usage that gpuq-sim adds for a running job by itself, in the snapshot's unit. */
static uint64_t used_by(const struct export *x, const struct snap_job *j)
{
	int64_t milli = 0;

	if (j->state != SNAP_RUNNING || j->start_us >= x->s->config.now_us)
		return 0;
	for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++)
		milli += (int64_t)x->s->allocs[i].n_devices * x->s->allocs[i].milli;
	return (uint64_t)(usage_of(milli, x->s->config.now_us - j->start_us,
				   x->m->policy.usage_half_life_us) >>
			  SNAP_USED_SHIFT);
}

void export_users(struct export *x)
{
	const struct snapshot *s = x->s;
	uint64_t *running = calloc(s->n_usages + 1, sizeof(*running));

	if (!running)
		abort();
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i].usage < s->n_usages)
			running[s->jobs[i].usage] += used_by(x, &s->jobs[i]);
	for (uint32_t i = 0; i < s->n_usages; i++) {
		const struct snap_usage *u = &s->usages[i];
		const uint64_t used = u->used > running[i] ? u->used - running[i] : 0;
		struct gpuq_val *v;

		/* Below a thousandth of a GPU-second. */
		if (used >> (32 - SNAP_USED_SHIFT - 10) == 0)
			continue;
		v = export_add(x, "users");
		export_str(x, v, "name", s->users[u->user]);
		export_str(x, v, "queue", s->queues[u->queue].name);
		export_milli(x, v, "used",
			     (int64_t)((fixed_u128)used * 1000 >> (32 - SNAP_USED_SHIFT)));
	}
	free(running);
}
