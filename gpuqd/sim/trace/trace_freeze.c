#include "gpuqd/sim/trace/trace_core.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/snapshot/snapshot_jobs.h"
#include "gpuqd/snapshot/snapshot_lines.h"
#include "gpuqd/util/sort.h"

/* State -> snapshot. */

#define USED_SHIFT 12 /* usage in a snapshot has the unit 2^-20 GPU-seconds */
#define HOUR_US (3600 * GPUQ_US_PER_S)

/* ---- what is constant: nodes, queues, requests, users ---- */

/* A job with more devices than a node is a gang on the fewest nodes: whole nodes and a rest. */
static uint32_t add_request(const struct core *c, struct snapshot *s, uint32_t gpus)
{
	const uint32_t whole = c->site.gpus_per_node;
	struct snap_group groups[2] = {
		{ .name = "main",
		  .pods_min = 1,
		  .pods_max = 1,
		  .gpus_milli = gpus * INT64_C(1000) },
	};
	struct snap_request r = { .groups = groups, .n_groups = 1 };

	if (gpus > whole) {
		groups[0].pods_min = groups[0].pods_max = gpus / whole;
		groups[0].gpus_milli = whole * INT64_C(1000);
		groups[1] = (struct snap_group){ .name = "rest",
						 .pods_min = 1,
						 .pods_max = 1,
						 .gpus_milli = gpus % whole * INT64_C(1000) };
		r.n_groups = gpus % whole ? 2 : 1;
	}
	return snapshot_add_request(s, &r);
}

static void add_queues(const struct core *c, struct snapshot *s)
{
	for (uint32_t i = 0; i < c->t->queues.n; i++) {
		struct snap_share shares[3];
		struct snap_queue q;

		snapshot_queue_default(&q);
		for (int r = 0; r < 3; r++)
			snapshot_share_default(&shares[r]);
		shares[0].quota = GPUQ_UNLIMITED;
		q.name = trace_queue(c->t, i);
		q.age = i; /* so that queues keep their numbers when sealed */
		q.shares = shares;
		snapshot_add_queue(s, &q);
	}
}

/* Users' handles equal their numbers; queues and users without a job so far are left out. */
static void add_users(const struct core *c, struct snapshot *s)
{
	for (uint32_t i = 0; i < c->t->users.n; i++)
		snapshot_user(s, c->t->users.keys[i].bytes);
	for (uint32_t i = 0; i < c->n_accounts; i++)
		if (c->accounts[i].seen)
			snapshot_add_usage(s, c->accounts[i].queue, c->accounts[i].user, 0);
}

static uint32_t find_usage(const struct snapshot *s, const struct account *a)
{
	uint32_t lo = 0, hi = s->n_usages;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;
		const struct snap_usage *u = &s->usages[mid];

		if (u->queue < a->queue || (u->queue == a->queue && u->user < a->user))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int make(struct core *c, struct gpuq_err *err)
{
	struct snapshot *s;
	int rc;

	snapshot_free(c->s);
	c->s = NULL;
	c->room_jobs = c->room_allocs = c->room_promises = 0;
	s = snapshot_new(&c->config);
	if (!s)
		return gpuq_no_memory(err);
	snapshot_add_flavor(s, "gpu", 0);
	add_queues(c, s);
	add_users(c, s);
	for (uint32_t i = 0; i < c->site.n_nodes; i++) {
		struct snap_node n;

		snapshot_node_default(&n);
		n.name = c->node_names[i];
		n.flavor = 0;
		n.n_devices = c->site.gpus_per_node;
		snapshot_add_node(s, &n);
	}
	for (uint32_t k = 0; k < c->n_kinds; k++)
		c->kinds[k].request = add_request(c, s, c->kinds[k].gpus);
	rc = snapshot_seal(s, err);
	if (rc < 0) {
		snapshot_free(s);
		return rc;
	}
	for (uint32_t i = 0; i < c->n_accounts; i++)
		c->accounts[i].usage = c->accounts[i].seen ? find_usage(s, &c->accounts[i]) : NONE;
	c->s = s;
	return 0;
}

/* ---- what changes ---- */

static void tell_claims(struct core *c, int64_t now_us)
{
	while (c->first_claim < c->n_claims && c->claims[c->first_claim].at_us <= now_us - HOUR_US)
		c->first_claim++;
	for (uint32_t i = 0; i < c->s->n_queues; i++)
		c->s->queues[i].n_claims_hour = 0;
	for (uint32_t k = c->first_claim; k < c->n_claims; k++)
		c->s->queues[c->claims[k].against].n_claims_hour++;
}

static void tell_usage(struct core *c, int64_t now_us)
{
	for (uint32_t i = 0; i < c->n_accounts; i++) {
		const struct account *a = &c->accounts[i];

		if (a->usage != NONE)
			c->s->usages[a->usage].used =
				a->used.at_us || a->used.rate_milli
					? (uint64_t)(usage_at(&a->used, now_us, c->half_life_us) >>
						     USED_SHIFT)
					: 0;
	}
}

static void fill_job(const struct core *c, uint32_t job, int64_t now_us, struct snap_job *out)
{
	const struct trace_job *in = &c->t->jobs[job];
	const struct job_state *state = &c->jobs[job];
	const uint32_t last = c->log->last_attempt[job];
	const struct kind *kind = &c->kinds[state->kind];

	snapshot_job_default(out);
	out->key.id = job + 1;
	out->queue = in->queue;
	out->request = kind->request;
	out->user = in->user;
	out->submit_us = out->eligible_us = in->submit_us;
	out->walltime_us = in->estimate_us;
	out->preemptible = in->preemptible;
	out->gate_object = "";
	out->usage = c->accounts[kind->account].usage;
	if (last == NONE)
		return;
	out->attempt = c->log->attempts[last].number - 1;
	if (state->evicted_for != NONE) {
		out->evicted_us = state->evicted_us;
		out->evicted_for = state->evicted_for;
		out->n_evicted_day = core_evictions(c, job, now_us - DAY_US);
	}
}

/* Grow a table that the snapshot has from malloc to n items. */
static bool grow(void *table, size_t size, uint32_t *room, uint32_t n)
{
	void **items = table, *bigger;

	if (n <= *room)
		return true;
	bigger = realloc(*items, 2 * (size_t)n * size);
	if (!bigger)
		return false;
	*items = bigger;
	*room = 2 * n;
	return true;
}

static void add_pods(struct snap_alloc *table, uint32_t *n, const struct holding *h, uint32_t job)
{
	for (uint32_t i = 0; i < h->n_pods; i++) {
		table[*n] = h->pods[i];
		table[(*n)++].job = job;
	}
}

/* Its entry while it runs changes only in how often it was evicted. */
static int add_running(struct core *c, uint32_t job, int64_t now_us, struct gpuq_err *err)
{
	struct job_state *state = &c->jobs[job];
	struct snapshot *s = c->s;
	struct snap_job *j = &s->jobs[s->n_jobs];

	if (!state->running) {
		state->running = malloc(sizeof(*state->running));
		if (!state->running)
			return gpuq_no_memory(err);
		fill_job(c, job, now_us, state->running);
		state->running->state = SNAP_RUNNING;
		state->running->start_us = c->log->attempts[c->log->last_attempt[job]].start_us;
	}
	*j = *state->running;
	j->usage = c->accounts[c->kinds[state->kind].account].usage;
	if (state->evicted_for != NONE)
		j->n_evicted_day = core_evictions(c, job, now_us - DAY_US);
	j->alloc_first = s->n_allocs;
	j->n_allocs = state->held.n_pods;
	add_pods(s->allocs, &s->n_allocs, &state->held, s->n_jobs++);
	return 0;
}

/* n_rest: the entry stands for this many of its kind; 0 = only for the job. */
static int add_waiting(struct core *c, uint32_t job, uint32_t n_rest, int64_t now_us,
		       struct gpuq_err *err)
{
	const struct job_state *state = &c->jobs[job];
	struct snapshot *s = c->s;
	struct snap_job *j = &s->jobs[s->n_jobs];

	fill_job(c, job, now_us, j);
	j->n_waiting = 1;
	if (n_rest > 0) {
		struct snap_range *range = gpuq_arena_calloc(&c->mem, 1, sizeof(*range));

		if (!range)
			return gpuq_no_memory(err);
		*range = (struct snap_range){ 0, (int32_t)n_rest - 1, 1 };
		j->ranges = range;
		j->n_ranges = 1;
		j->n_waiting = n_rest;
	} else {
		j->promise_first = s->n_promises;
		j->n_promises = state->promised.n_pods;
		add_pods(s->promises, &s->n_promises, &state->promised, s->n_jobs);
	}
	s->n_jobs++;
	return 0;
}

/* Choose the entries of pending jobs: the job in the upper half; in the lower half how many it
 * stands for, 0 = itself. */
static uint32_t pick_waiting(struct core *c, uint32_t most)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_kinds; i++) {
		const struct kind *k = &c->kinds[i];
		uint32_t shown = 0;

		for (uint32_t job = k->first; job != NONE; job = c->jobs[job].after) {
			const bool rest = shown == most && k->n - shown > 1;

			c->order[n] = n;
			c->entries[n++] = (uint64_t)job << 32 | (rest ? k->n - shown : 0);
			if (rest)
				break;
			shown += shown < most;
		}
	}
	return n;
}

static int cmp_entry(const void *ctx, uint32_t x, uint32_t y)
{
	const uint64_t *entries = ctx;

	return entries[x] < entries[y] ? -1 : entries[x] > entries[y];
}

static bool make_room(struct core *c, uint32_t n_waiting)
{
	uint32_t n_held = 0, n_promised = 0;

	for (uint32_t i = 0; i < c->n_running; i++)
		n_held += c->jobs[c->running[i]].held.n_pods;
	for (uint32_t i = 0; i < n_waiting; i++)
		n_promised += c->jobs[c->entries[i] >> 32].promised.n_pods;
	return grow(&c->s->jobs, sizeof(*c->s->jobs), &c->room_jobs, c->n_running + n_waiting) &&
	       grow(&c->s->allocs, sizeof(*c->s->allocs), &c->room_allocs, n_held) &&
	       grow(&c->s->promises, sizeof(*c->s->promises), &c->room_promises, n_promised);
}

/* Write the entries in order of job numbers. */
static int tell_jobs(struct core *c, int64_t now_us, uint32_t most, struct gpuq_err *err)
{
	const uint32_t n = pick_waiting(c, most);
	uint32_t r = 0;
	int rc = 0;

	if (!make_room(c, n))
		return gpuq_no_memory(err);
	sort_ix(c->order, c->order_scratch, n, cmp_entry, c->entries);
	c->s->n_jobs = c->s->n_allocs = c->s->n_promises = 0;
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		const uint64_t entry = c->entries[c->order[i]];
		const uint32_t job = (uint32_t)(entry >> 32);

		for (; rc == 0 && r < c->n_running && c->running[r] < job; r++)
			rc = add_running(c, c->running[r], now_us, err);
		if (rc == 0)
			rc = add_waiting(c, job, (uint32_t)entry, now_us, err);
	}
	for (; rc == 0 && r < c->n_running; r++)
		rc = add_running(c, c->running[r], now_us, err);
	return rc;
}

int core_freeze(struct core *c, int64_t now_us, uint32_t most, struct gpuq_err *err)
{
	int rc = 0;

	if (!c->s || c->someone_new)
		rc = make(c, err);
	if (rc < 0)
		return rc;
	c->someone_new = false;
	c->s->config.now_us = now_us;
	tell_claims(c, now_us);
	tell_usage(c, now_us);
	rc = tell_jobs(c, now_us, most, err);
	if (rc == 0 && !snapshot_line_up(c->s, &c->s->arena))
		rc = gpuq_no_memory(err);
	if (rc == 0)
		snapshot_derive_free(c->s);
	return rc;
}
