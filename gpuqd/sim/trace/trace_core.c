#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/policy.h"
#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/util/sort.h"
#include "gpuqd/sim/trace/trace_core.h"

/* The policy `default`: every decision is one of sched_cycle() on a snapshot, as in gpuqd. A victim
 * is gone at once, and its work is lost: no trace records when its jobs wrote checkpoints.
 *
 * A replay takes hundreds of thousands of cycles, and tens of thousands of jobs may be pending.
 * Among jobs that are alike (same queue, user, size and kind) only the first ones in order of
 * service are entries of their own; the others are one entry like a job array. When the order is
 * fresh this does not change decisions, see exact(); where many of a kind are pending they are
 * ordered again every RANK_US. */

#define CYCLES_MAX 16 /* at one instant, until no job is evicted any more */
#define RANK_US (300 * GPUQ_US_PER_S)

static void core_done(void *self)
{
	struct core *c = self;

	for (uint32_t i = 0; c->jobs && i < c->t->n_jobs; i++) {
		free(c->jobs[i].held.pods);
		free(c->jobs[i].promised.pods);
		free(c->jobs[i].running);
	}
	free(c->jobs);
	free(c->kinds);
	free(c->order);
	free(c->order_scratch);
	free(c->entries);
	snapshot_free(c->s);
	free(c->points);
	free(c->accounts);
	free(c->running);
	free(c->claims);
	free(c->node_names);
	gpuq_arena_done(&c->mem);
	free(c);
}

static bool sort_kinds(struct core *c)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct intern kinds = INTERN_INIT(&mem), accounts = INTERN_INIT(&mem);
	bool failed = false;

	c->kinds = calloc(c->t->n_jobs, sizeof(*c->kinds));
	c->accounts = calloc(c->t->n_jobs, sizeof(*c->accounts));
	for (uint32_t i = 0; i < c->t->n_jobs && c->kinds && c->accounts && !failed; i++) {
		const struct trace_job *j = &c->t->jobs[i];
		const uint32_t key[] = { j->queue, j->user, j->gpus, j->preemptible };
		const uint32_t k = intern(&kinds, key, sizeof(key), NULL);
		const uint32_t a = intern(&accounts, key, 2 * sizeof(key[0]), NULL);

		failed = k == INTERN_FAILED || a == INTERN_FAILED;
		if (failed)
			break;
		c->jobs[i].kind = k;
		c->kinds[k] = (struct kind){ NONE, NONE, 0, NONE, j->gpus, j->queue, j->user, a };
		c->accounts[a] =
			(struct account){ .queue = j->queue, .user = j->user, .usage = NONE };
	}
	c->n_kinds = kinds.n;
	c->n_accounts = accounts.n;
	intern_done(&kinds);
	intern_done(&accounts);
	gpuq_arena_done(&mem);
	return !failed && c->kinds && c->accounts;
}

static void *core_make(const struct trace *t, const struct trace_site *site, struct trace_log *l,
		       int variant)
{
	struct core *c = calloc(1, sizeof(*c));

	(void)variant;
	if (!c)
		return NULL;
	c->t = t;
	c->site = *site;
	c->log = l;
	snapshot_config_default(&c->config);
	c->jobs = calloc(t->n_jobs, sizeof(*c->jobs));
	c->running = malloc(t->n_jobs * sizeof(*c->running));
	c->node_names = calloc(site->n_nodes, sizeof(*c->node_names));
	c->order = malloc(t->n_jobs * sizeof(*c->order));
	c->order_scratch = malloc(t->n_jobs * sizeof(*c->order_scratch));
	c->entries = malloc(t->n_jobs * sizeof(*c->entries));
	c->points = malloc(t->n_jobs * sizeof(*c->points));
	c->half_life_us = policy_default().usage_half_life_us;
	if (!c->jobs || !c->running || !c->node_names || !c->order || !c->order_scratch ||
	    !c->points || !c->entries || !sort_kinds(c)) {
		core_done(c);
		return NULL;
	}
	for (uint32_t i = 0; i < t->n_jobs; i++)
		c->jobs[i].evicted_for = NONE;
	c->n_free = site->n_nodes * site->gpus_per_node;
	/* Padded, so that names sort like numbers. */
	for (uint32_t i = 0; i < site->n_nodes; i++)
		snprintf(c->node_names[i], sizeof(*c->node_names), "n%06u", i + 1);
	return c;
}

/* Append the job to the pending ones of its kind; an evicted job goes first, so that it is always
 * an entry of its own. */
static void enter_line(struct core *c, uint32_t job)
{
	struct kind *k = &c->kinds[c->jobs[job].kind];
	const bool first = c->log->last_attempt[job] != NONE;
	const uint32_t before = first ? NONE : k->last, after = first ? k->first : NONE;

	c->jobs[job].before = before;
	c->jobs[job].after = after;
	*(before == NONE ? &k->first : &c->jobs[before].after) = job;
	*(after == NONE ? &k->last : &c->jobs[after].before) = job;
	k->n++;
	c->n_waiting++;
}

static void leave_line(struct core *c, uint32_t job)
{
	struct kind *k = &c->kinds[c->jobs[job].kind];
	const uint32_t before = c->jobs[job].before, after = c->jobs[job].after;

	*(before == NONE ? &k->first : &c->jobs[before].after) = after;
	*(after == NONE ? &k->last : &c->jobs[after].before) = before;
	k->n--;
	c->n_waiting--;
}

/* Return the job's place in running, or where it would be inserted. */
static uint32_t seat_of(const struct core *c, uint32_t job)
{
	uint32_t lo = 0, hi = c->n_running;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (c->running[mid] < job)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct usage_account *account_of(struct core *c, uint32_t job)
{
	return &c->accounts[c->kinds[c->jobs[job].kind].account].used;
}

static void enter_nodes(struct core *c, uint32_t job, int64_t now_us)
{
	const uint32_t at = seat_of(c, job);

	memmove(&c->running[at + 1], &c->running[at], (c->n_running++ - at) * sizeof(job));
	c->running[at] = job;
	c->n_free -= c->t->jobs[job].gpus;
	usage_begin(account_of(c, job), c->t->jobs[job].gpus * INT64_C(1000), now_us, now_us,
		    c->half_life_us);
}

static void leave_nodes(struct core *c, uint32_t job, int64_t now_us)
{
	const uint32_t at = seat_of(c, job);

	memmove(&c->running[at], &c->running[at + 1], (--c->n_running - at) * sizeof(job));
	c->n_free += c->t->jobs[job].gpus;
	free(c->jobs[job].running);
	c->jobs[job].running = NULL;
	usage_end(account_of(c, job), c->t->jobs[job].gpus * INT64_C(1000), now_us, now_us,
		  c->half_life_us);
}

static void let_go(struct holding *h)
{
	free(h->pods);
	*h = (struct holding){ 0 };
}

static void core_arrived(void *self, uint32_t job)
{
	struct core *c = self;
	struct account *a = &c->accounts[c->kinds[c->jobs[job].kind].account];

	c->someone_new |= !a->seen;
	a->seen = true;
	enter_line(c, job);
}

static void core_ended(void *self, uint32_t attempt, int64_t now_us)
{
	struct core *c = self;
	const uint32_t job = c->log->attempts[attempt].job;

	leave_nodes(c, job, now_us);
	let_go(&c->jobs[job].held);
	let_go(&c->jobs[job].promised);
}

uint32_t core_evictions(const struct core *c, uint32_t job, int64_t since_us)
{
	uint32_t n = 0;

	for (uint32_t a = c->log->last_attempt[job]; a != NONE; a = c->log->attempts[a].previous)
		n += c->log->attempts[a].evicted && c->log->attempts[a].end_us > since_us;
	return n;
}

static int cmp_points(const void *ctx, uint32_t x, uint32_t y)
{
	const int64_t *points = ctx;
	const int d = sort_i64(points[y], points[x]);

	return d ? d : sort_i64(x, y); /* jobs are numbered in order of arrival */
}

/* Sort the pending jobs of each kind in order of service; all other terms are equal within a
 * kind. */
static void rank_lines(struct core *c, int64_t now_us)
{
	c->ranked_us = now_us;
	for (uint32_t i = 0; i < c->n_kinds; i++) {
		struct kind *k = &c->kinds[i];
		uint32_t n = 0;

		for (uint32_t job = k->first; job != NONE; job = c->jobs[job].after) {
			const struct trace_job *j = &c->t->jobs[job];

			c->points[job] = priority_of_wait(&c->config.weights, now_us - j->submit_us,
							  j->estimate_us,
							  core_evictions(c, job, now_us - DAY_US));
			c->order[n++] = job;
		}
		if (n < 2)
			continue;
		sort_ix(c->order, c->order_scratch, n, cmp_points, c->points);
		k->first = c->order[0];
		k->last = c->order[n - 1];
		for (uint32_t at = 0; at < n; at++) {
			c->jobs[c->order[at]].before = at ? c->order[at - 1] : NONE;
			c->jobs[c->order[at]].after = at + 1 < n ? c->order[at + 1] : NONE;
		}
	}
}

/* ---- plan -> state ---- */

static int hold(const struct plan *p, const struct plan_action *a, struct holding *out,
		struct gpuq_err *err)
{
	uint32_t n_devices = 0, *devices;

	for (uint32_t i = 0; i < a->n_pods; i++)
		n_devices += p->pods[a->pod_first + i].n_devices;
	let_go(out);
	out->pods = malloc(a->n_pods * sizeof(*out->pods) + n_devices * sizeof(*devices) + 1);
	if (!out->pods)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a replay");
	devices = (uint32_t *)(out->pods + a->n_pods);
	out->n_pods = a->n_pods;
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *pod = &p->pods[a->pod_first + i];

		memcpy(devices, &p->devices[pod->device_first], pod->n_devices * sizeof(*devices));
		out->pods[i] = (struct snap_alloc){ .node = pod->node,
						    .group = pod->group,
						    .index = pod->index,
						    .devices = devices,
						    .n_devices = pod->n_devices,
						    .milli = pod->milli };
		devices += pod->n_devices;
	}
	return 0;
}

static int start(struct core *c, const struct plan *p, const struct plan_action *a, int64_t now_us,
		 struct gpuq_err *err)
{
	const uint32_t job = a->key.id - 1;
	struct trace_place *places = malloc((a->n_pods + 1) * sizeof(*places));
	int rc = places ? 0 : gpuq_fail(err, GPUQ_ENOMEM, "no memory for a replay");

	let_go(&c->jobs[job].promised);
	if (rc == 0)
		rc = hold(p, a, &c->jobs[job].held, err);
	for (uint32_t i = 0; rc == 0 && i < a->n_pods; i++)
		places[i] = (struct trace_place){ c->jobs[job].held.pods[i].node,
						  c->jobs[job].held.pods[i].n_devices };
	if (rc == 0) {
		leave_line(c, job);
		enter_nodes(c, job, now_us);
		trace_log_start(c->log, job, now_us, places, a->n_pods);
	}
	free(places);
	return rc;
}

static int note_claim(struct core *c, uint32_t against, uint32_t by, int64_t now_us,
		      struct gpuq_err *err)
{
	for (uint32_t k = c->n_claims; k-- > c->first_claim && c->claims[k].at_us == now_us;)
		if (c->claims[k].against == against && c->claims[k].by == by)
			return 0;
	if (c->n_claims == c->room_claims) {
		const uint32_t bigger = c->room_claims ? 2 * c->room_claims : 256;
		struct claim *claims = realloc(c->claims, bigger * sizeof(*claims));

		if (!claims)
			return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a replay");
		c->claims = claims;
		c->room_claims = bigger;
	}
	c->claims[c->n_claims++] = (struct claim){ now_us, against, by };
	return 0;
}

/* Evict a job: its pods are gone at once; its nominated placements stay. */
static int evict(struct core *c, const struct snapshot *s, const struct plan_action *a,
		 int64_t now_us, struct gpuq_err *err)
{
	const uint32_t job = a->key.id - 1;
	const uint32_t by = a->claimant == SNAP_NONE ? job : s->jobs[a->claimant].key.id - 1;
	const uint32_t queue = c->t->jobs[job].queue, claiming = c->t->jobs[by].queue;

	if (c->jobs[job].held.n_pods == 0)
		return 0;
	trace_log_evict(c->log, c->log->last_attempt[job], now_us);
	let_go(&c->jobs[job].held);
	leave_nodes(c, job, now_us);
	enter_line(c, job);
	if (claiming == queue)
		return 0;
	c->jobs[job].evicted_us = now_us;
	c->jobs[job].evicted_for = claiming;
	return note_claim(c, queue, by, now_us, err);
}

static int apply(struct core *c, const struct snapshot *s, const struct plan *p, int64_t now_us,
		 bool *again, struct gpuq_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];
		struct job_state *job = &c->jobs[a->key.id - 1];

		switch (a->kind) {
		case PLAN_PLACE:
			rc = start(c, p, a, now_us, err);
			break;
		case PLAN_NOMINATE:
			rc = hold(p, a, &job->promised, err);
			break;
		case PLAN_RELEASE:
			let_go(&job->promised);
			break;
		case PLAN_MOVE:
			rc = evict(c, s, a, now_us, err);
			if (rc == 0)
				rc = hold(p, a, &job->promised, err);
			*again = true;
			break;
		case PLAN_EVICT:
			rc = evict(c, s, a, now_us, err);
			*again = true;
			break;
		case PLAN_SHRINK: /* no job of a trace is elastic */
		case PLAN_GROW:
		case PLAN_RESERVE:
			break;
		}
	}
	return rc;
}

/* True if the decision would be the same with every job as an entry of its own. A job without one
 * is behind `most` that are alike, more than there are GPUs: one of those did not start. If it
 * found no room, those behind it find none. If a start reservation kept it from starting, a shorter
 * one behind it might have started: only if something is free once there is a start reservation. */
static bool exact(const struct core *c, const struct plan *p, uint32_t most)
{
	uint32_t left = c->n_free;
	bool omitted = false, planned = false;

	for (uint32_t k = 0; k < c->n_kinds; k++)
		omitted |= c->kinds[k].n > most;
	for (uint32_t i = 0; omitted && i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];

		if (a->kind == PLAN_RESERVE) {
			planned = true;
			continue;
		}
		if (a->kind != PLAN_PLACE || planned || a->key.index >= 0)
			return false;
		left -= c->t->jobs[a->key.id - 1].gpus;
	}
	return !omitted || left == 0;
}

static int cycle(struct core *c, int64_t now_us, int64_t *wake_us, bool *again,
		 struct gpuq_err *err)
{
	const uint32_t least = c->n_free + (uint32_t)c->config.backfill_depth + 1;
	uint32_t most = c->shown > least ? c->shown : least;
	struct plan p = { 0 };
	int rc;

	for (;; most *= 4) {
		gpuq_arena_reset(&c->mem);
		c->shown = most;
		rc = core_freeze(c, now_us, most, err);
		if (rc == 0)
			rc = sched_cycle(c->s, &c->mem, &p, err);
		if (rc < 0 || exact(c, &p, most))
			break;
	}
	c->shown -= c->shown / 16;
	if (rc == 0)
		rc = apply(c, c->s, &p, now_us, again, err);
	if (rc == 0)
		*wake_us = p.wake_us;
	return rc;
}

static int core_decide(void *self, int64_t now_us, int64_t *wake_us, struct gpuq_err *err)
{
	struct core *c = self;
	bool again = true;
	int rc = 0;

	/* Queues have no quotas, so there is no reclaim, and jobs have one priority class, so there
	 * is no preemption: without a free GPU no job can start. */
	if (c->n_free == 0)
		return 0;
	if (now_us - c->ranked_us >= RANK_US)
		rank_lines(c, now_us);
	for (int i = 0; rc == 0 && again && c->n_waiting && i < CYCLES_MAX; i++) {
		again = false;
		rc = cycle(c, now_us, wake_us, &again, err);
	}
	return rc;
}

const struct trace_policy trace_core = { core_make, core_done, core_arrived, core_ended,
					 core_decide };
