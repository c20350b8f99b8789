#include "gpuqd/sim/trace/trace_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/carry/carry.h"
#include "gpuqd/carry/obey.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/sched/timeline/timeline.h"
#include "gpuqd/sim/trace/trace_line.h"
#include "gpuqd/snapshot/snapshot_keep.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/record/model_apply.h"

/* A victim is gone at once, and its work is lost: no trace records when its jobs wrote checkpoints.
 * A job runs for its duration, whatever its estimate was. */

#define CYCLES_MAX 16 /* at one instant, until no job is evicted any more */
#define EXIT_TERMINATED 143
/* The model's zero is "not yet", a trace may begin there: its clock is so far ahead of the trace's.
 * A multiple of seven days, so that half-lives and days begin where the trace's 0 is. */
#define BASE_US (INT64_C(5200) * 7 * 86400 * GPUQ_US_PER_S)
#define FLAVOR "default"

struct core {
	const struct trace *t;
	struct trace_site site;
	struct trace_log *log;
	struct model *m;
	struct snapshot_keep *keep;
	struct trace_line line;
	struct gpuq_arena specs; /* what jobs of each size request, borrowed by the model */
	struct gpuq_spec **by_size; /* by number of GPUs; NULL = no job requests this many */
	struct snap_config config;
	uint32_t n_free; /* GPUs */
	uint32_t shown; /* entries of their own per kind: enough the last time */
	struct gpuq_arena mem; /* of a cycle */
	int64_t now_us; /* of the model */
	bool again; /* this cycle evicted */
	int rc; /* of what happens while a plan is carried out */
	struct gpuq_err *err;
};

static void core_done(void *self)
{
	struct core *c = self;

	snapshot_keep_free(c->keep);
	model_free(c->m);
	trace_line_done(&c->line);
	gpuq_arena_done(&c->specs);
	gpuq_arena_done(&c->mem);
	free(c);
}

static int apply(struct core *c, struct event *ev, struct gpuq_err *err)
{
	const uint32_t job = ev->job.id ? ev->job.id : ev->pod.job.id;
	int rc;

	ev->at_us = c->now_us;
	rc = model_apply_unrecorded(c->m, ev, err);
	if (rc == 0 && job && !snapshot_keep_changed(c->keep, job))
		rc = gpuq_no_memory(err);
	return rc;
}

static int apply_fn(void *arg, struct event *ev, struct gpuq_err *err)
{
	return apply(arg, ev, err);
}

/* ---- the site ---- */

static const struct site_cap no_cap = { GPUQ_UNLIMITED, GPUQ_UNLIMITED, GPUQ_UNLIMITED };

static void *items(struct site *s, struct gpuq_objects *out, size_t n, size_t size)
{
	out->items = gpuq_arena_calloc(&s->arena, n, size);
	out->n = n;
	return out->items;
}

static const char *qos_of(bool preemptible)
{
	return preemptible ? "preemptible" : "normal";
}

/* Queues without quotas, one flavor, and two classes of jobs. */
static struct site *make_site(const struct trace *t)
{
	struct site *s = calloc(1, sizeof(*s));
	struct site_flavor *flavor = s ? items(s, &s->flavors, 1, sizeof(*flavor)) : NULL;
	struct site_queue *queues = s ? items(s, &s->queues, t->queues.n, sizeof(*queues)) : NULL;
	struct site_qos *qos = s ? items(s, &s->qos, 2, sizeof(*qos)) : NULL;

	if (!flavor || !queues || !qos) {
		site_free(s);
		return NULL;
	}
	s->version = 1;
	s->max_submitted = s->max_stored_bytes = GPUQ_UNLIMITED;
	*flavor = (struct site_flavor){ .name = FLAVOR,
					.match = { .product = FLAVOR },
					.rate_milli = 1000 };
	for (int i = 0; i < 2; i++)
		qos[i] = (struct site_qos){ .name = qos_of(i),
					    .preemptible = i,
					    .usage_factor_milli = 1000,
					    .max_running = no_cap,
					    .max_gpus = no_cap,
					    .max_submitted = no_cap };
	for (uint32_t i = 0; i < t->queues.n; i++)
		queues[i] = (struct site_queue){ .name = trace_queue(t, i),
						 .policy = policy_queue_default(),
						 .quota = { .given = true, .all = GPUQ_UNLIMITED },
						 .max_running = no_cap,
						 .max_gpus = no_cap,
						 .max_submitted = no_cap,
						 .start = "direct" };
	return s;
}

static int make_nodes(struct core *c, struct gpuq_err *err)
{
	const uint32_t n_devices = c->site.gpus_per_node;
	struct device_fact *devices = gpuq_arena_calloc(&c->mem, n_devices, sizeof(*devices));
	char name[16];
	int rc = devices ? 0 : gpuq_no_memory(err);

	for (uint32_t d = 0; rc == 0 && d < n_devices; d++)
		devices[d] = (struct device_fact){ "", FLAVOR, 0, true };
	/* Padded, so that names sort like numbers: a node of the snapshot is that of the trace. */
	for (uint32_t i = 0; rc == 0 && i < c->site.n_nodes; i++) {
		struct node_fact fact = {
			.name = name,
			.cpu_milli = GPUQ_UNLIMITED,
			.memory_bytes = GPUQ_UNLIMITED,
			.max_pods = GPUQ_UNLIMITED,
			.devices = devices,
			.n_devices = n_devices,
			.ready = true,
			.note = "",
		};
		struct event ev = { .type = EV_NODE_SEEN, .node = &fact };

		snprintf(name, sizeof(name), "n%06u", i + 1);
		rc = apply(c, &ev, err);
	}
	return rc;
}

/* A job with more devices than a node is a gang on the fewest nodes: whole nodes and a rest. */
static bool make_spec(struct core *c, uint32_t gpus)
{
	const uint32_t whole = c->site.gpus_per_node;
	struct gpuq_spec *spec = gpuq_arena_calloc(&c->specs, 1, sizeof(*spec));
	struct gpuq_group *groups = gpuq_arena_calloc(&c->specs, 2, sizeof(*groups));

	if (!spec || !groups)
		return false;
	c->by_size[gpus] = spec;
	*spec = (struct gpuq_spec){ .groups = groups, .n_groups = 1, .requeue = true };
	groups[0] = (struct gpuq_group){
		.name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = gpus * INT64_C(1000)
	};
	if (gpus <= whole)
		return true;
	groups[0].pods_min = groups[0].pods_max = gpus / whole;
	groups[0].gpus_milli = whole * INT64_C(1000);
	groups[1] = (struct gpuq_group){ .name = "rest",
					 .pods_min = 1,
					 .pods_max = 1,
					 .gpus_milli = gpus % whole * INT64_C(1000) };
	spec->n_groups = gpus % whole ? 2 : 1;
	return true;
}

static bool make_specs(struct core *c)
{
	uint32_t most = 0;
	bool ok = true;

	for (uint32_t i = 0; i < c->t->n_jobs; i++)
		most = c->t->jobs[i].gpus > most ? c->t->jobs[i].gpus : most;
	c->by_size = gpuq_arena_calloc(&c->specs, (size_t)most + 1, sizeof(*c->by_size));
	if (!c->by_size)
		return false;
	for (uint32_t i = 0; ok && i < c->t->n_jobs; i++)
		ok = c->by_size[c->t->jobs[i].gpus] || make_spec(c, c->t->jobs[i].gpus);
	return ok;
}

static void *core_make(const struct trace *t, const struct trace_site *site, struct trace_log *l,
		       int variant)
{
	struct core *c = calloc(1, sizeof(*c));
	const struct policy policy = policy_default();
	struct site *s = NULL;

	(void)variant;
	if (!c)
		return NULL;
	c->t = t;
	c->site = *site;
	c->log = l;
	c->now_us = BASE_US;
	c->n_free = site->n_nodes * site->gpus_per_node;
	snapshot_config_default(&c->config);
	c->m = model_new("00000000");
	c->keep = c->m ? snapshot_keep_new(c->m) : NULL;
	if (c->keep && trace_line_init(&c->line, t) && make_specs(c))
		s = make_site(t);
	if (!s) {
		core_done(c);
		return NULL;
	}
	model_set_policy(c->m, &policy);
	queue_set_site(c->m, s);
	if (make_nodes(c, NULL) == 0)
		return c;
	core_done(c);
	return NULL;
}

/* ---- what happens ---- */

static int core_arrived(void *self, uint32_t job, struct gpuq_err *err)
{
	struct core *c = self;
	const struct trace_job *j = &c->t->jobs[job];
	struct event ev = { .type = EV_JOB_SUBMITTED, .job = { job + 1, -1 } };

	c->now_us = BASE_US + j->submit_us;
	ev.submitted.spec = c->by_size[j->gpus];
	ev.submitted.spec_bytes = "";
	ev.submitted.request_bytes = &j->gpus;
	ev.submitted.request_len = sizeof(j->gpus);
	ev.submitted.as_written = true;
	ev.submitted.user = c->t->users.keys[j->user].bytes;
	ev.submitted.queue = trace_queue(c->t, j->queue);
	ev.submitted.qos = qos_of(j->preemptible);
	ev.submitted.time_limit_us = j->estimate_us;
	trace_line_enter(&c->line, job, false);
	return apply(c, &ev, err);
}

/* End all pods of a job; of one that was evicted it is pending again. */
static int end(struct core *c, uint32_t job, int exit_code, struct gpuq_err *err)
{
	const struct obey_to to = { apply_fn, c };
	const struct job *j = model_find_job(c->m, (struct job_key){ job + 1, -1 });

	c->n_free += c->t->jobs[job].gpus;
	return j ? obey_end(&to, j, true, exit_code, err)
		 : gpuq_fail(err, GPUQ_EINTERNAL, "job %s is not there", c->t->jobs[job].id);
}

static int core_ended(void *self, uint32_t attempt, int64_t now_us, struct gpuq_err *err)
{
	struct core *c = self;

	c->now_us = BASE_US + now_us;
	return end(c, c->log->attempts[attempt].job, 0, err);
}

static void token(char out[33])
{
	memset(out, '0', 32);
	out[32] = '\0';
}

static int start(struct core *c, uint32_t job, struct gpuq_err *err)
{
	const struct obey_to to = { apply_fn, c };
	const struct job *j = model_find_job(c->m, (struct job_key){ job + 1, -1 });
	struct trace_place *places;
	const struct pod *p;
	uint32_t n = 0;
	int rc = obey_start(&to, j, err);

	if (rc < 0)
		return rc;
	DL_FOREACH2(j->pods, p, job_next)
		n += model_pod_takes(p);
	places = gpuq_arena_calloc(&c->mem, n, sizeof(*places));
	if (!places)
		return gpuq_no_memory(err);
	n = 0;
	DL_FOREACH2(j->pods, p, job_next)
		if (model_pod_takes(p))
			places[n++] = (struct trace_place){ p->node->snap_ix, p->n_devices };
	trace_line_leave(&c->line, job);
	c->n_free -= c->t->jobs[job].gpus;
	trace_log_start(c->log, job, c->now_us - BASE_US, places, n);
	return 0;
}

static int evict(struct core *c, uint32_t job, struct gpuq_err *err)
{
	const int rc = end(c, job, EXIT_TERMINATED, err);

	trace_log_evict(c->log, c->log->last_attempt[job], c->now_us - BASE_US);
	trace_line_enter(&c->line, job, true);
	c->again = true;
	return rc;
}

static void on_news(void *arg, enum carry_news news, const struct plan_action *a,
		    const struct event *ev, const struct gpuq_err *err)
{
	struct core *c = arg;

	(void)ev;
	if (c->rc < 0)
		return;
	switch (news) {
	case CARRY_PLACED:
		c->rc = start(c, a->key.id - 1, c->err);
		break;
	case CARRY_EVICTED:
		c->rc = evict(c, a->key.id - 1, c->err);
		break;
	case CARRY_STALE:
		c->rc = gpuq_fail(c->err, GPUQ_EINTERNAL, "job %s: its claim cannot be carried out",
				  c->t->jobs[a->key.id - 1].id);
		break;
	case CARRY_REFUSED:
		*c->err = *err;
		c->rc = err->code;
		break;
	default:
		break;
	}
}

/* ---- cycles ---- */

static int cycle(struct core *c, int64_t *wake_us, struct gpuq_err *err)
{
	const uint32_t least = c->n_free + (uint32_t)timeline_depth(&c->config) + 1;
	const struct carry_to to = { .apply = apply_fn, .token = token, .news = on_news, .arg = c };
	uint32_t most = c->shown > least ? c->shown : least;
	struct snapshot *s = NULL;
	struct plan p = { 0 };
	int rc;

	for (;; most *= 4) {
		gpuq_arena_reset(&c->mem);
		c->shown = most;
		rc = snapshot_keep_take(c->keep, c->now_us, c->line.entries,
					trace_line_pick(&c->line, most), &s, err);
		if (rc == 0)
			rc = sched_cycle(s, &c->mem, &p, err);
		if (rc < 0 || trace_line_exact(&c->line, &p, most, c->n_free))
			break;
	}
	c->shown -= c->shown / 16;
	if (rc < 0)
		return rc;
	c->rc = 0;
	c->err = err;
	carry_plan(&to, c->m, s, &p, &c->mem);
	*wake_us = p.wake_us == GPUQ_UNLIMITED ? p.wake_us : p.wake_us - BASE_US;
	return c->rc;
}

static int core_decide(void *self, int64_t now_us, int64_t *wake_us, struct gpuq_err *err)
{
	struct core *c = self;
	int rc = 0;

	c->now_us = BASE_US + now_us;
	/* Queues have no quotas, so there is no reclaim, and jobs have one priority class, so there
	 * is no preemption: without a free GPU no job can start. */
	if (c->n_free == 0)
		return 0;
	trace_line_rank(&c->line, &c->config.weights, now_us);
	c->again = true;
	for (int i = 0; rc == 0 && c->again && c->line.n && i < CYCLES_MAX; i++) {
		c->again = false;
		rc = cycle(c, wake_us, err);
	}
	return rc;
}

const struct trace_policy trace_core = { core_make, core_done, core_arrived, core_ended,
					 core_decide };
