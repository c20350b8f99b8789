#include "gpuqd/sched/quota/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/sched/quota/cycle.h"

const char *plan_bound_word(enum plan_bounded what)
{
#define X(sym, word, stopped, counted) word,
	static const char *const words[] = { GPUQ_BOUNDS(X) };
#undef X

	return words[what];
}

const int64_t *plan_fair_told(const struct snapshot *s, const struct plan *p, uint32_t queue,
			      struct gpuq_arena *a)
{
	const int64_t *fair = &p->fair_share[(size_t)queue * s->n_res];
	int64_t *out = gpuq_arena_calloc(a, s->n_flavors + 1, sizeof(*out));

	for (uint32_t f = 0; out && f < s->n_flavors; f++) {
		const int64_t has = s->flavors[f].devices_milli;

		out[f] = p->fair_sum && p->fair_sum[f] > has && has >= 0
				 ? (int64_t)((__int128)fair[f] * has / p->fair_sum[f])
				 : fair[f];
	}
	return out;
}

const char *plan_key_print(struct snap_key key, char *out, size_t room)
{
	if (key.index < 0)
		snprintf(out, room, "%" PRIu32, key.id);
	else
		snprintf(out, room, "%" PRIu32 "_%" PRId32, key.id, key.index);
	return out;
}

/* Print the devices of a pod, successive ones as a range: [0-3,6]. */
static void print_devices(const struct plan *p, const struct plan_pod *pod, struct gpuq_buf *out)
{
	const uint32_t *d = &p->devices[pod->device_first];

	gpuq_buf_addc(out, '[');
	for (uint32_t i = 0; i < pod->n_devices; i++) {
		uint32_t last = i;

		while (last + 1 < pod->n_devices && d[last + 1] == d[last] + 1)
			last++;
		gpuq_buf_printf(out, i ? ",%" PRIu32 : "%" PRIu32, d[i]);
		if (last > i)
			gpuq_buf_printf(out, "-%" PRIu32, d[last]);
		i = last;
	}
	gpuq_buf_addc(out, ']');
	if (pod->milli != SNAP_MILLI)
		gpuq_buf_printf(out, "x%" PRId32 "m", pod->milli);
}

/* Print an action, on one line. */
static void print_action(const struct snapshot *s, const struct plan *p,
			 const struct plan_action *a, struct gpuq_buf *out)
{
	static const char *const verbs[] = {
		[PLAN_PLACE] = "place",     [PLAN_NOMINATE] = "nominate", [PLAN_EVICT] = "evict",
		[PLAN_SHRINK] = "shrink",   [PLAN_GROW] = "grow",         [PLAN_MOVE] = "move",
		[PLAN_RESERVE] = "reserve", [PLAN_RELEASE] = "release",
	};
	char key[32];

	gpuq_buf_printf(out, "%s %s", verbs[a->kind], plan_key_print(a->key, key, sizeof(key)));
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *pod = &p->pods[a->pod_first + i];

		gpuq_buf_printf(out, "%s%s", i ? " " : " on ", s->nodes[pod->node].name);
		if (pod->n_devices)
			print_devices(p, pod, out);
	}
	if (a->kind == PLAN_RESERVE)
		gpuq_buf_printf(out, " at %" PRId64, a->start_us);
	if (a->walltime_us)
		gpuq_buf_printf(out, " for %" PRId64, a->walltime_us);
	gpuq_buf_addc(out, '\n');
}

uint32_t plan_reasons(const struct snapshot *s, const struct plan *p, uint32_t job,
		      const struct plan_reason **first)
{
	const struct snap_job *j = &s->jobs[job];
	const uint32_t run = s->lines.run_of[job];
	struct plan_why why = { 0, 0 };

	/* Reasons of its own come before those of the run of equal jobs that it is in. */
	if (p->why_of_job[job].n)
		why = p->why_of_job[job];
	else if (run != SNAP_NONE && p->started[job] < j->n_waiting)
		why = p->why_of_run[run];
	*first = &p->reasons[why.first];
	return why.n;
}

/* Print a request for nodes, on one line. */
static void print_ask(const struct plan_ask *a, struct gpuq_buf *out)
{
	char key[32];

	gpuq_buf_printf(out, a->ask ? "asked %s nodes=%u request=%u" : "ask %s nodes=%u", a->pool,
			a->n_nodes, a->ask);
	if (a->job == SNAP_NONE)
		gpuq_buf_adds(out, " for none\n");
	else
		gpuq_buf_printf(out, " for %s jobs=%u\n", plan_key_print(a->key, key, sizeof(key)),
				a->n_jobs);
}

/* Print a reason of a pending job, on one line. */
static void print_reason(const struct snapshot *s, uint32_t job, const struct plan_reason *r,
			 struct gpuq_buf *out)
{
	char key[32];

	gpuq_buf_printf(out, "wait %s %s", plan_key_print(s->jobs[job].key, key, sizeof(key)),
			gpuq_reason_word(r->code));
	if (r->object && *r->object)
		gpuq_buf_printf(out, " %s", r->object);
	if (r->have || r->need)
		gpuq_buf_printf(out, " have=%" PRId64 " need=%" PRId64, r->have, r->need);
	gpuq_buf_addc(out, '\n');
}

void plan_print(const struct snapshot *s, const struct plan *p, struct gpuq_buf *out)
{
	for (uint32_t i = 0; i < p->n_actions; i++)
		print_action(s, p, &p->actions[i], out);
	for (uint32_t i = 0; i < p->n_asks; i++)
		print_ask(&p->asks[i], out);
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct plan_reason *why;
		const uint32_t n = plan_reasons(s, p, i, &why);

		for (uint32_t k = 0; k < n; k++)
			print_reason(s, i, &why[k], out);
	}
}

bool plan_bound_concerns(const struct snapshot *s, const struct plan *p, const struct plan_bound *b,
			 uint32_t job)
{
	const struct snap_job *j = &s->jobs[job];

	for (uint32_t i = 0; b->job == SNAP_NONE && i < p->n_actions; i++)
		if (p->actions[i].kind == PLAN_RESERVE && p->actions[i].job == job)
			return false;
	return b->job == SNAP_NONE || b->job == job ||
	       (s->jobs[b->job].request == j->request && s->jobs[b->job].queue == j->queue);
}

bool plan_few_enough(const struct snapshot *s, const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_actions; i++)
		if (s->jobs[p->actions[i].job].alike)
			return false;
	return true;
}

/* ---- while it grows ---- */

/* Return the k-th pending element of an array, or -1 for a job that is not an array. */
static int32_t nth_waiting(const struct snap_job *j, uint32_t k)
{
	if (j->n_ranges == 0)
		return j->key.index;
	for (uint32_t r = 0; r < j->n_ranges; r++) {
		const struct snap_range *range = &j->ranges[r];
		const uint32_t n = (uint32_t)((range->last - range->first) / range->step) + 1;

		if (k < n)
			return range->first + (int32_t)k * range->step;
		k -= n;
	}
	return -1;
}

int32_t plan_next_element(const struct cycle *c, uint32_t job)
{
	return nth_waiting(&c->s->jobs[job], c->plan.started[job]);
}

struct plan_action *plan_emit_places(struct cycle *c, enum plan_kind kind, uint32_t job,
				     struct snap_key key, uint32_t flavor)
{
	struct plan_action *a = PLAN_PUSH(c, actions, 1);
	struct plan_pod *pods = PLAN_PUSH(c, pods, c->places.n_pods);
	const uint32_t device_first = c->plan.n_devices;
	uint32_t *devices = PLAN_PUSH(c, devices, c->places.n_devices);
	uint32_t first = UINT32_MAX;

	if (!a || !pods || !devices)
		return NULL;
	if (c->places.n_devices)
		memcpy(devices, c->places.devices, c->places.n_devices * sizeof(*devices));
	for (uint32_t i = 0; i < c->places.n_pods; i++)
		/* Pods are placed in any order, and listed by index; growth begins beyond 0. */
		first = c->places.pods[i].index < first ? c->places.pods[i].index : first;
	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const struct place *p = &c->places.pods[i];

		pods[p->index - first] = (struct plan_pod){
			.group = p->group,
			.index = p->index,
			.node = p->node,
			.device_first = device_first + p->device_first,
			.n_devices = p->n_devices,
			.milli = p->n_devices ? p->milli : 0,
		};
	}
	*a = (struct plan_action){
		.kind = kind,
		.job = job,
		.request = cycle_request_ix(c, job),
		.key = key,
		.flavor = flavor,
		.pod_first = c->plan.n_pods - c->places.n_pods,
		.n_pods = c->places.n_pods,
		.start_us = c->s->config.now_us,
		.claimant = SNAP_NONE,
	};
	return a;
}
