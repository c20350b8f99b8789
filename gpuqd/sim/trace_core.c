#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/sched.h"
#include "gpuqd/sim/trace.h"

/* The policy `default`: every decision is one of sched_cycle() on a snapshot, as in
 * gpuqd. Who has to leave leaves at once, and its work is lost: no trace says when its
 * jobs wrote checkpoints. */

#define NONE UINT32_MAX
#define CYCLES_MAX 16 /* at one instant, until nobody leaves any more */
#define DAY_US (86400 * GPUQ_US_PER_S)
#define HOUR_US (3600 * GPUQ_US_PER_S)

/* What a job holds, pod by pod, or is promised. */
struct holding {
	struct snap_alloc *pods; /* malloc'ed, devices behind them */
	uint32_t n_pods;
};

struct job_state {
	struct holding held, promised;
	uint32_t seat; /* in waiting or running */
	int64_t evicted_us;
	uint32_t evicted_for; /* queue; NONE = never */
};

/* A claim on another queue's jobs. */
struct claim {
	int64_t at_us;
	uint32_t against; /* queue */
	uint32_t by; /* job */
};

struct core {
	const struct trace *t;
	struct trace_site site;
	struct trace_log *log;
	struct snap_config config;
	struct job_state *jobs;
	uint32_t *waiting, *running; /* jobs, in no order */
	uint32_t n_waiting, n_running;
	struct claim *claims;
	uint32_t n_claims, room_claims, first_claim; /* first: older ones do not count */
	char (*node_names)[16];
	struct gpuq_arena mem; /* of a cycle */
};

static void core_done(void *self)
{
	struct core *c = self;

	for (uint32_t i = 0; c->jobs && i < c->t->n_jobs; i++) {
		free(c->jobs[i].held.pods);
		free(c->jobs[i].promised.pods);
	}
	free(c->jobs);
	free(c->waiting);
	free(c->running);
	free(c->claims);
	free(c->node_names);
	gpuq_arena_done(&c->mem);
	free(c);
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
	snap_config_default(&c->config);
	c->jobs = calloc(t->n_jobs, sizeof(*c->jobs));
	c->waiting = malloc(t->n_jobs * sizeof(*c->waiting));
	c->running = malloc(t->n_jobs * sizeof(*c->running));
	c->node_names = calloc(site->n_nodes, sizeof(*c->node_names));
	if (!c->jobs || !c->waiting || !c->running || !c->node_names) {
		core_done(c);
		return NULL;
	}
	for (uint32_t i = 0; i < t->n_jobs; i++)
		c->jobs[i].evicted_for = NONE;
	/* Padded, so that the order of names is that of numbers. */
	for (uint32_t i = 0; i < site->n_nodes; i++)
		snprintf(c->node_names[i], sizeof(*c->node_names), "n%06u", i + 1);
	return c;
}

static void enter(struct core *c, uint32_t *set, uint32_t *n, uint32_t job)
{
	c->jobs[job].seat = *n;
	set[(*n)++] = job;
}

static void leave(struct core *c, uint32_t *set, uint32_t *n, uint32_t job)
{
	const uint32_t at = c->jobs[job].seat, last = set[--*n];

	set[at] = last;
	c->jobs[last].seat = at;
}

static void let_go(struct holding *h)
{
	free(h->pods);
	*h = (struct holding){ 0 };
}

static void core_arrived(void *self, uint32_t job)
{
	struct core *c = self;

	enter(c, c->waiting, &c->n_waiting, job);
}

static void core_ended(void *self, uint32_t attempt, int64_t now_us)
{
	struct core *c = self;
	const uint32_t job = c->log->attempts[attempt].job;

	(void)now_us;
	leave(c, c->running, &c->n_running, job);
	let_go(&c->jobs[job].held);
	let_go(&c->jobs[job].promised);
}

/* ---- state -> snapshot ---- */

/* More devices than a node has are a gang on the fewest nodes: whole ones and a rest. */
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

static void add_queues(struct core *c, struct snapshot *s, int64_t now_us)
{
	while (c->first_claim < c->n_claims && c->claims[c->first_claim].at_us <= now_us - HOUR_US)
		c->first_claim++;
	for (uint32_t i = 0; i < c->t->queues.n; i++) {
		struct snap_share shares[3];
		struct snap_queue q;

		snap_queue_default(&q);
		for (int r = 0; r < 3; r++)
			snap_share_default(&shares[r]);
		shares[0].quota = GPUQ_UNLIMITED;
		q.name = trace_queue(c->t, i);
		q.age = i;
		q.shares = shares;
		for (uint32_t k = c->first_claim; k < c->n_claims; k++)
			q.n_claims_hour += c->claims[k].against == i;
		snapshot_add_queue(s, &q);
	}
}

static uint32_t evictions_since(const struct core *c, uint32_t job, int64_t since_us)
{
	uint32_t n = 0;

	for (uint32_t a = c->log->last_attempt[job]; a != NONE; a = c->log->attempts[a].previous)
		n += c->log->attempts[a].evicted && c->log->attempts[a].end_us > since_us;
	return n;
}

static void add_pods(struct snapshot *s, const struct holding *h, uint32_t handle, bool promised)
{
	for (uint32_t i = 0; i < h->n_pods; i++) {
		struct snap_alloc a = h->pods[i];

		a.job = handle;
		if (promised)
			snapshot_add_promise(s, &a);
		else
			snapshot_add_alloc(s, &a);
	}
}

/* What of a job does not change: made once for each size and kind. */
static void add_job(struct core *c, struct snapshot *s, uint32_t job, uint32_t *requests,
		    uint32_t user, int64_t now_us)
{
	const struct trace_job *in = &c->t->jobs[job];
	const struct job_state *state = &c->jobs[job];
	const uint32_t last = c->log->last_attempt[job];
	struct snap_job j;
	uint32_t handle;

	snap_job_default(&j);
	j.key.id = job + 1;
	j.queue = in->queue;
	j.user = user;
	j.submit_us = in->submit_us;
	j.walltime_us = in->estimate_us;
	j.preemptible = in->preemptible;
	if (state->held.n_pods) {
		j.state = SNAP_RUNNING;
		j.start_us = c->log->attempts[last].start_us;
	}
	if (state->evicted_for != NONE) {
		j.evicted_us = state->evicted_us;
		j.evicted_for = state->evicted_for;
		j.n_evicted_day = evictions_since(c, job, now_us - DAY_US);
	}
	if (last != NONE)
		j.attempt = c->log->attempts[last].number - 1;
	/* Jobs of one size are alike: ask for its handle once. */
	if (in->gpus < 64 && requests[in->gpus] != NONE) {
		j.request = requests[in->gpus];
	} else {
		j.request = add_request(c, s, in->gpus);
		if (in->gpus < 64)
			requests[in->gpus] = j.request;
	}
	handle = snapshot_add_job(s, &j);
	add_pods(s, &state->held, handle, false);
	add_pods(s, &state->promised, handle, true);
}

static struct snapshot *freeze(struct core *c, int64_t now_us, struct gpuq_err *err)
{
	uint32_t requests[64], user;
	struct snapshot *s;

	c->config.now_us = now_us;
	s = snapshot_new(&c->config);
	if (!s) {
		gpuq_fail(err, GPUQ_ENOMEM, "no memory for a snapshot");
		return NULL;
	}
	memset(requests, 0xff, sizeof(requests));
	snapshot_add_flavor(s, "gpu", 0);
	user = snapshot_user(s, "user");
	add_queues(c, s, now_us);
	for (uint32_t i = 0; i < c->site.n_nodes; i++) {
		struct snap_node n;

		snap_node_default(&n);
		n.name = c->node_names[i];
		n.flavor = 0;
		n.n_devices = c->site.gpus_per_node;
		snapshot_add_node(s, &n);
	}
	for (uint32_t i = 0; i < c->n_running; i++)
		add_job(c, s, c->running[i], requests, user, now_us);
	for (uint32_t i = 0; i < c->n_waiting; i++)
		add_job(c, s, c->waiting[i], requests, user, now_us);
	if (snapshot_seal(s, err) < 0) {
		snapshot_free(s);
		return NULL;
	}
	return s;
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
		leave(c, c->waiting, &c->n_waiting, job);
		enter(c, c->running, &c->n_running, job);
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

/* Its pods are gone at once; what it was promised it keeps. */
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
	leave(c, c->running, &c->n_running, job);
	enter(c, c->waiting, &c->n_waiting, job);
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

static int core_decide(void *self, int64_t now_us, int64_t *wake_us, struct gpuq_err *err)
{
	struct core *c = self;
	bool again = true;
	int rc = 0;

	for (int i = 0; rc == 0 && again && c->n_waiting && i < CYCLES_MAX; i++) {
		struct snapshot *s = freeze(c, now_us, err);
		struct plan p = { 0 };

		again = false;
		if (!s)
			return err->code;
		rc = sched_cycle(s, &c->mem, &p, err);
		if (rc == 0)
			rc = apply(c, s, &p, now_us, &again, err);
		if (rc == 0)
			*wake_us = p.wake_us;
		snapshot_free(s);
		gpuq_arena_reset(&c->mem);
	}
	return rc;
}

const struct trace_policy trace_core = { core_make, core_done, core_arrived, core_ended,
					 core_decide };
