#include "gpuqd/flow/advise/why_try.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_pack.h"
#include "libgpuq/units.h"

#define TRIES_MOST 80u
#define TRIES_LEAST 6u
/* Objects that all tries of one question may visit together: seconds of one core. */
#define OBJECTS_MOST 4000000u

/* Enough to rank before all others in a queue, and far from the largest number. */
#define FIRST_BOOST (INT64_C(1) << 40)

uint32_t why_most_tries(uint32_t n_objects)
{
	const uint32_t n = OBJECTS_MOST / (n_objects + 1);

	return n > TRIES_MOST ? TRIES_MOST : n < TRIES_LEAST ? TRIES_LEAST : n;
}

uint32_t why_find(const struct snapshot *s, struct snap_key key)
{
	uint32_t array = SNAP_NONE;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct snap_job *j = &s->jobs[i];

		if (j->key.id != key.id)
			continue;
		if (j->key.index == key.index)
			return i;
		/* True for an element that is still pending with the others. */
		for (uint32_t k = 0; key.index >= 0 && k < j->n_ranges; k++)
			if (key.index >= j->ranges[k].first && key.index <= j->ranges[k].last &&
			    (key.index - j->ranges[k].first) % j->ranges[k].step == 0)
				array = i;
	}
	return array;
}

enum why_outcome why_outcome_of(const struct plan *p, struct snap_key key)
{
	enum why_outcome out = WHY_WAITS;

	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];

		if (a->key.id != key.id || (key.index >= 0 && a->key.index != key.index))
			continue;
		if (a->kind == PLAN_PLACE)
			return WHY_STARTS;
		if (a->kind == PLAN_NOMINATE)
			out = WHY_CLAIMS;
	}
	return out;
}

/* ---- changes, before the snapshot is sealed ---- */

/* Return where a group has an amount that is no further resource; NULL. */
static int64_t *amount_at(struct snap_group *g, const char *name)
{
	if (strcmp(name, "cpu") == 0)
		return &g->cpu_milli;
	if (strcmp(name, "memory") == 0)
		return &g->memory_bytes;
	return strcmp(name, "gpu_memory") == 0 ? &g->gpu_memory_bytes : NULL;
}

int64_t why_amount_of(const struct snap_group *g, const char *name)
{
	const int64_t *at = amount_at((struct snap_group *)(uintptr_t)g, name);

	return at ? *at : gpuq_amounts_get(g->resources, g->n_resources, name);
}

/* Change an amount of the group, whose further resources are copied for that to `room`. */
static void change_amount(struct snap_group *g, struct gpuq_amount *room,
			  const struct why_change *c)
{
	int64_t *at = amount_at(g, c->name);

	if (at) {
		*at = c->n;
		return;
	}
	for (size_t i = 0; i < g->n_resources; i++) {
		room[i] = g->resources[i];
		if (strcmp(room[i].name, c->name) == 0)
			room[i].count = c->n;
	}
	g->resources = room;
}

static void change_request(struct snapshot *s, struct snap_job *j, const struct why_change *c)
{
	struct snap_request r = s->requests[j->request];
	struct snap_group *groups = calloc(r.n_groups, sizeof(*groups));
	struct gpuq_amount room[GPUQ_RESOURCES_MAX];
	uint32_t handle;

	if (!groups)
		return; /* the try then shows the job as it is */
	memcpy(groups, r.groups, r.n_groups * sizeof(*groups));
	r.groups = groups;
	if (c->kind == WHY_GPUS) {
		groups[0].gpus_milli = c->n;
	} else if (c->kind == WHY_PODS) {
		groups[0].pods_min = (uint32_t)c->n;
		groups[0].pods_max = (uint32_t)c->n;
	} else if (c->kind == WHY_AMOUNT) {
		change_amount(&groups[0], room, c);
	} else {
		r.flavors = &c->name;
		r.n_flavors = 1;
	}
	handle = snapshot_add_request(s, &r);
	if (handle != SNAP_NONE)
		j->request = handle;
	free(groups);
}

static void give_up(struct snapshot *s, uint32_t job)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->n_allocs; i++)
		if (s->allocs[i].job != job)
			s->allocs[kept++] = s->allocs[i];
	s->n_allocs = kept;
	kept = 0;
	for (uint32_t i = 0; i < s->n_promises; i++)
		if (s->promises[i].job != job)
			s->promises[kept++] = s->promises[i];
	s->n_promises = kept;
	s->jobs[job].state = SNAP_PENDING;
	s->jobs[job].start_us = s->jobs[job].yield_us = 0;
	s->jobs[job].starting = false;
}

static void change_jobs(struct snapshot *s, struct snap_job *j, const struct why_change *c)
{
	for (uint32_t i = 0; i < c->n_keys; i++) {
		const uint32_t other = why_find(s, c->keys[i]);

		if (other == SNAP_NONE || s->jobs[other].state == SNAP_PENDING)
			continue;
		give_up(s, other);
		if (c->kind == WHY_MOVE) {
			s->jobs[other].boost = FIRST_BOOST;
			s->jobs[other].begin_us = 0;
		} else {
			s->jobs[other].held = SNAP_HELD_ADMIN;
		}
	}
	if (c->kind == WHY_MOVE)
		j->boost = 2 * FIRST_BOOST;
}

/* Lift the limits of the queue and those above it. */
static void lift_queues(struct snapshot *s, uint32_t queue, enum gpuq_reason code)
{
	for (uint32_t up = queue, next; up != SNAP_NONE; up = next) {
		struct snap_queue *q = &s->queues[up];

		if (code == GPUQ_R_QUEUE_STOPPED)
			q->stopped = false;
		if (code == GPUQ_R_LIMIT_QUEUE || code == GPUQ_R_QUOTA) {
			q->max_running = q->max_gpus_milli = GPUQ_UNLIMITED;
			for (uint32_t r = 0; r < s->n_res; r++) {
				struct snap_share *share = &s->shares[(size_t)up * s->n_res + r];

				share->limit = GPUQ_UNLIMITED;
				if (code == GPUQ_R_QUOTA)
					share->quota = GPUQ_UNLIMITED;
			}
		}
		if (code == GPUQ_R_LIMIT_USER)
			q->user_max_running = q->user_max_gpus_milli = GPUQ_UNLIMITED;
		if (code == GPUQ_R_LIMIT_JOB)
			q->job_max_gpus_milli = GPUQ_UNLIMITED;
		if (code == GPUQ_R_BUDGET || code == GPUQ_R_BUDGET_COMMITTED)
			q->budget_gpu_ms = GPUQ_UNLIMITED;
		next = q->parent_name ? snapshot_find_queue(s, q->parent_name) : SNAP_NONE;
	}
}

/* Lift the limits that it shares with jobs of its qos, user and groups. */
static void lift_caps(struct snapshot *s, uint32_t set, enum gpuq_reason code)
{
	for (uint32_t i = 0; set != SNAP_NONE && i < SNAP_CAPS_MAX; i++) {
		const uint32_t ix = s->capsets[set].caps[i];
		struct snap_cap *cap = ix == SNAP_NONE ? NULL : &s->caps[ix];

		if (cap && cap->code == (int)code)
			cap->max_running = cap->max_gpus_milli = GPUQ_UNLIMITED;
		if (cap && code == GPUQ_R_LIMIT_JOB)
			cap->job_max_gpus_milli = GPUQ_UNLIMITED;
		if (cap && (code == GPUQ_R_BUDGET || code == GPUQ_R_BUDGET_COMMITTED))
			cap->left_gpu_ms = GPUQ_UNLIMITED;
	}
}

static void lift(struct snapshot *s, struct snap_job *j, enum gpuq_reason code)
{
	switch (code) {
	case GPUQ_R_HELD_USER:
	case GPUQ_R_HELD_ADMIN:
	case GPUQ_R_HELD_RETRIES:
	case GPUQ_R_RESTORED_UNKNOWN:
		j->held = 0;
		break;
	case GPUQ_R_BEGIN_TIME:
		j->begin_us = 0;
		break;
	case GPUQ_R_DEPENDENCY:
	case GPUQ_R_DEPENDENCY_NEVER:
	case GPUQ_R_NAMESPACE_QUOTA:
	case GPUQ_R_CLUSTER_REFUSED:
	case GPUQ_R_RECOVERING:
	case GPUQ_R_FENCED:
	case GPUQ_R_VOLUME_NOT_FOUND:
	case GPUQ_R_VOLUME_PENDING:
	case GPUQ_R_DEVICE_CLAIM:
		j->gate = GPUQ_R_NONE;
		break;
	case GPUQ_R_ARRAY_LIMIT:
		j->throttle = 0;
		break;
	case GPUQ_R_RESERVATION:
		s->n_reservations = 0;
		break;
	case GPUQ_R_LICENSE:
	case GPUQ_R_VOLUME_IN_USE:
		for (uint32_t i = 0; i < s->n_licenses; i++)
			s->licenses[i].count = INT64_MAX / 4;
		break;
	case GPUQ_R_CLAIM_SPARE:
		s->config.claim_spare_milli = GPUQ_UNLIMITED;
		break;
	case GPUQ_R_NODES_UNAVAILABLE:
		for (uint32_t i = 0; i < s->n_nodes; i++)
			if (!s->nodes[i].made_up && s->nodes[i].state < SNAP_ASKED)
				s->nodes[i].state = SNAP_READY;
		break;
	default:
		lift_queues(s, j->queue, code);
		lift_caps(s, j->capset, code);
	}
}

static void apply(struct snapshot *s, uint32_t job, const struct why_change *c)
{
	struct snap_job *j = &s->jobs[job];

	switch (c->kind) {
	case WHY_LIFT:
		lift(s, j, c->code);
		break;
	case WHY_TIME:
		j->walltime_us = c->n;
		break;
	case WHY_END:
	case WHY_MOVE:
		change_jobs(s, j, c);
		break;
	default:
		change_request(s, j, c);
	}
}

/* Return the outcome; a job to be moved must have new places. */
static enum why_outcome judge(const struct plan *p, const struct why_tries *t,
			      const struct why_change *c)
{
	const enum why_outcome out = why_outcome_of(p, t->key);

	if (c->kind != WHY_MOVE)
		return out;
	return out == WHY_STARTS && why_outcome_of(p, c->keys[0]) == WHY_STARTS ? WHY_STARTS
										: WHY_WAITS;
}

static enum why_outcome run_cycle(struct why_tries *t, const struct gpuq_buf *packed,
				  const struct why_change *change)
{
	struct rec r = { (const unsigned char *)packed->data,
			 (const unsigned char *)packed->data + packed->len, false };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	enum why_outcome out = WHY_NOT_TRIED;
	struct snapshot *s = NULL;
	struct plan p;
	uint32_t job;

	t->rc = snapshot_unpack(&r, &s, t->err);
	if (t->rc == 0) {
		job = why_find(s, t->key);
		if (job != SNAP_NONE)
			apply(s, job, change);
		t->rc = snapshot_seal(s, t->err);
	}
	if (t->rc == 0)
		t->rc = sched_cycle(s, &mem, &p, t->err);
	if (t->rc == 0)
		out = judge(&p, t, change);
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return out;
}

enum why_outcome why_try(struct why_tries *t, const struct why_change *change)
{
	if (t->rc != 0)
		return WHY_NOT_TRIED;
	if (t->n >= t->most || (t->stop && t->stop(t->stop_arg))) {
		t->cut_short = true;
		return WHY_NOT_TRIED;
	}
	t->n++;
	return run_cycle(t, t->near ? t->near : t->packed, change);
}

enum why_outcome why_confirm(struct why_tries *t, const struct why_change *change)
{
	return t->rc != 0 ? WHY_NOT_TRIED : run_cycle(t, t->packed, change);
}
