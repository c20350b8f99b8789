#include "gpuqd/sched/quota/caps.h"

#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/quota/holdings_int.h"

/* Caps: limits on what several jobs hold together, in addition to the limits of their queues. */

struct cap_use {
	int64_t running, gpus_milli, held_ms; /* held: what running jobs may still use */
};

/* Return the caps of the job, up to the first SNAP_NONE. */
static const uint32_t *caps_of(const struct cycle *c, uint32_t job)
{
	static const uint32_t none[] = { SNAP_NONE };
	const uint32_t set = c->s->jobs[job].capset;

	return !c->holdings->caps || set == SNAP_NONE ? none : c->s->capsets[set].caps;
}

/* Count the elements of each array that run, are ending or have a nominated placement. */
static void count_arrays(struct cycle *c)
{
	const struct snap_lines *lines = &c->s->lines;
	uint32_t *running = cycle_alloc(c, lines->n_arrays, sizeof(*running));

	c->holdings->array_running = running;
	for (uint32_t i = 0; !c->failed && lines->n_arrays && i < lines->n_busy; i++) {
		const uint32_t job = lines->busy[i];

		if (lines->array_of[job] != SNAP_NONE && c->s->jobs[job].key.index >= 0 &&
		    (c->s->jobs[job].state != SNAP_PENDING || bits_has(c->promised, job)))
			running[lines->array_of[job]]++;
	}
}

void caps_init(struct cycle *c)
{
	if (c->s->n_caps && !c->failed)
		c->holdings->caps = cycle_alloc(c, c->s->n_caps, sizeof(*c->holdings->caps));
	count_arrays(c);
}

void caps_array_starts(struct cycle *c, uint32_t job)
{
	c->holdings->array_running[c->s->lines.array_of[job]]++;
}

void caps_count(struct cycle *c, uint32_t job, int64_t gpus_milli, bool starts)
{
	const uint32_t *caps = caps_of(c, job);

	for (int i = 0; i < SNAP_CAPS_MAX && caps[i] != SNAP_NONE; i++) {
		struct cap_use *u = &c->holdings->caps[caps[i]];

		u->running += starts;
		u->gpus_milli = amount_sum(u->gpus_milli, gpus_milli);
	}
}

void caps_hold(struct cycle *c, uint32_t job, int64_t gpu_ms)
{
	const uint32_t *caps = caps_of(c, job);

	for (int i = 0; i < SNAP_CAPS_MAX && caps[i] != SNAP_NONE; i++) {
		struct cap_use *u = &c->holdings->caps[caps[i]];

		u->held_ms = amount_sum(u->held_ms, gpu_ms);
	}
}

/* Say by which cap the job is kept pending; a cap that is exceeded already has 0 left. Returns
 * false. */
static bool refuse(struct plan_reason *why, const struct snap_cap *cap, enum gpuq_reason code,
		   enum plan_unit unit, int64_t have, int64_t need)
{
	why->code = code;
	why->unit = unit;
	why->object = cap->name;
	why->have = have > 0 ? have : 0;
	why->need = need;
	return false;
}

/* Return how much of a limit is left; an absent one has no end. */
static int64_t left_of(int64_t limit, int64_t used)
{
	return limit == GPUQ_UNLIMITED ? limit : amount_less(limit, used);
}

bool caps_admit(struct cycle *c, uint32_t job, int64_t gpus_milli, bool starts,
		struct plan_reason *why)
{
	const uint32_t *caps = caps_of(c, job);

	for (int i = 0; i < SNAP_CAPS_MAX && caps[i] != SNAP_NONE; i++) {
		const struct snap_cap *cap = &c->s->caps[caps[i]];
		const struct cap_use *u = &c->holdings->caps[caps[i]];
		const int64_t jobs = left_of(cap->max_running, u->running);
		const int64_t gpus =
			left_of(holdings_allowed(c, cap->max_gpus_milli), u->gpus_milli);

		if (starts && gpus_milli > holdings_allowed(c, cap->job_max_gpus_milli))
			return refuse(why, cap, GPUQ_R_LIMIT_JOB, PLAN_GPUS,
				      cap->job_max_gpus_milli, gpus_milli);
		if (starts && jobs < 1)
			return refuse(why, cap, (enum gpuq_reason)cap->code, PLAN_COUNT, jobs, 1);
		if (gpus_milli > 0 && gpus < gpus_milli)
			return refuse(why, cap, (enum gpuq_reason)cap->code, PLAN_GPUS, gpus,
				      gpus_milli);
	}
	return true;
}

bool caps_afford(struct cycle *c, uint32_t job, int64_t gpu_ms, struct plan_reason *why)
{
	const uint32_t *caps = caps_of(c, job);

	for (int i = 0; i < SNAP_CAPS_MAX && caps[i] != SNAP_NONE; i++) {
		const struct snap_cap *cap = &c->s->caps[caps[i]];
		const int64_t left = left_of(cap->left_gpu_ms, c->holdings->caps[caps[i]].held_ms);
		const bool ever = gpu_ms <= cap->left_gpu_ms;

		if (cap->left_gpu_ms == GPUQ_UNLIMITED || gpu_ms <= left)
			continue;
		return refuse(why, cap, ever ? GPUQ_R_BUDGET_COMMITTED : GPUQ_R_BUDGET, PLAN_COUNT,
			      (ever ? left : cap->left_gpu_ms) / MS_PER_MINUTE,
			      gpu_ms == GPUQ_UNLIMITED
				      ? gpu_ms
				      : (gpu_ms + MS_PER_MINUTE - 1) / MS_PER_MINUTE);
	}
	return true;
}

bool caps_array_full(struct cycle *c, uint32_t job, struct plan_reason *why)
{
	const struct snap_job *j = &c->s->jobs[job];
	int64_t running;

	if (j->throttle == 0)
		return false;
	running = c->holdings->array_running[c->s->lines.array_of[job]];
	if (running < j->throttle)
		return false;
	*why = (struct plan_reason){ .code = GPUQ_R_ARRAY_LIMIT,
				     .unit = PLAN_COUNT,
				     .have = j->throttle,
				     .need = running + 1,
				     .object = "" };
	return true;
}
