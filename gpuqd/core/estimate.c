#include "gpuqd/core/estimate.h"

#include "gpuqd/core/amount.h"
#include <string.h>

#include "gpuqd/core/sched.h"
#include "gpuqd/core/snapshot_build.h"

/* The snapshot that is lived on is a copy whose tables of jobs, pods, nodes and devices
 * are its own; everything else is shared with the original. A job that has ended stays
 * in the table as one of which nothing waits, so that indexes hold. Elements of arrays
 * that start get entries of their own, right behind their array. */

#define CYCLES_AT_ONCE 10 /* until the same moment has nothing more to give */

/* What the table of jobs does not say. */
struct life {
	uint32_t origin; /* job of the original snapshot */
	int64_t end_us; /* of what runs or leaves; GPUQ_UNLIMITED = never */
	struct snap_alloc *pods;
	uint32_t n_pods;
};

struct lived {
	const struct snapshot *from;
	const struct estimate_config *config;
	struct gpuq_arena *mem;
	struct snapshot s;
	struct life *lives; /* by job of s */
	uint32_t room_jobs, room_allocs;
	uint32_t *now_of; /* by job of the original: its index in s */
	struct estimate *out;
	uint32_t n_out, n_left;
	struct gpuq_err *err;
};

static int no_memory(const struct lived *l)
{
	return gpuq_fail(l->err, GPUQ_ENOMEM, "no memory for an estimate");
}

static void *copy(struct lived *l, const void *items, size_t n, size_t room, size_t size)
{
	void *p = gpuq_arena_calloc(l->mem, room ? room : 1, size);

	if (p && n)
		memcpy(p, items, n * size);
	return p;
}

/* ---- the copy ---- */

static int64_t runs_until(const struct lived *l, uint32_t job)
{
	const struct snap_job *j = &l->s.jobs[job];
	const int64_t most = amount_later(j->walltime_us, j->grace_us);
	int64_t run = l->config->run_us ? l->config->run_us[l->lives[job].origin] : most;

	return amount_later(j->start_us, run < most ? run : most);
}

static int begin_lives(struct lived *l)
{
	const int64_t soon = l->s.config.now_us + 60 * GPUQ_US_PER_S;

	for (uint32_t i = 0; i < l->s.n_jobs; i++) {
		struct snap_job *j = &l->s.jobs[i];
		struct life *life = &l->lives[i];

		life->origin = l->now_of[i] = i;
		if (j->state == SNAP_PENDING)
			continue;
		life->n_pods = j->n_allocs;
		life->pods = copy(l, &l->s.allocs[j->alloc_first], j->n_allocs, j->n_allocs,
				  sizeof(*life->pods));
		if (!life->pods)
			return no_memory(l);
		life->end_us = runs_until(l, i);
		if (j->state == SNAP_LEAVING || life->end_us <= l->s.config.now_us)
			life->end_us = soon;
	}
	return 0;
}

static int copy_snapshot(struct lived *l)
{
	const struct snapshot *from = l->from;
	struct snapshot *s = &l->s;

	*s = *from;
	s->arena = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
	s->builder = NULL;
	s->lines = (struct snap_lines){ 0 };
	s->config.reclaim = s->config.consolidation = false;
	l->room_jobs = from->n_jobs + 64;
	l->room_allocs = from->n_allocs + 64;
	s->jobs = copy(l, from->jobs, from->n_jobs, l->room_jobs, sizeof(*s->jobs));
	s->allocs = copy(l, from->allocs, from->n_allocs, l->room_allocs, sizeof(*s->allocs));
	s->promises =
		copy(l, from->promises, from->n_promises, from->n_promises, sizeof(*s->promises));
	s->nodes = copy(l, from->nodes, from->n_nodes, from->n_nodes, sizeof(*s->nodes));
	s->devices = copy(l, from->devices, from->n_devices, from->n_devices, sizeof(*s->devices));
	s->mig_free = copy(l, from->mig_free, from->n_nodes * from->n_profiles,
			   from->n_nodes * from->n_profiles, sizeof(*s->mig_free));
	s->licenses =
		copy(l, from->licenses, from->n_licenses, from->n_licenses, sizeof(*s->licenses));
	l->lives = copy(l, NULL, 0, l->room_jobs, sizeof(*l->lives));
	l->now_of = copy(l, NULL, 0, from->n_jobs, sizeof(*l->now_of));
	if (!s->jobs || !s->allocs || !s->promises || !s->nodes || !s->devices || !s->mig_free ||
	    !s->licenses || !l->lives || !l->now_of)
		return no_memory(l);
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		struct snap_job *j = &s->jobs[i];

		if (j->n_ranges == 0)
			continue;
		j->ranges = copy(l, j->ranges, j->n_ranges, j->n_ranges, sizeof(*j->ranges));
		if (!j->ranges)
			return no_memory(l);
	}
	return snapshot_line_up(s, l->mem) ? begin_lives(l) : no_memory(l);
}

/* The table of pods, and what is free, after jobs have started or ended. */
static int settle(struct lived *l)
{
	struct snapshot *s = &l->s;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++)
		n += l->lives[i].n_pods;
	if (n > l->room_allocs) {
		l->room_allocs = 2 * n;
		s->allocs = gpuq_arena_calloc(l->mem, l->room_allocs, sizeof(*s->allocs));
		if (!s->allocs)
			return no_memory(l);
	}
	if (!snapshot_line_up(s, l->mem))
		return no_memory(l);
	s->n_allocs = 0;
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct life *life = &l->lives[i];

		s->jobs[i].alloc_first = s->n_allocs;
		s->jobs[i].n_allocs = life->n_pods;
		for (uint32_t p = 0; p < life->n_pods; p++) {
			s->allocs[s->n_allocs] = life->pods[p];
			s->allocs[s->n_allocs++].job = i;
		}
	}
	snapshot_derive_free(s);
	return 0;
}

/* ---- jobs begin and end ---- */

static void use_licenses(struct lived *l, uint32_t job, int64_t sign)
{
	const struct snap_request *r = &l->s.requests[l->s.jobs[job].request];

	for (uint32_t i = 0; i < r->n_licenses; i++)
		l->s.licenses[r->licenses[i].license].used += sign * r->licenses[i].count;
}

/* Nothing of it waits, and nothing runs: it is looked at no more. */
static void end_job(struct lived *l, uint32_t job)
{
	struct snap_job *j = &l->s.jobs[job];

	if (j->state != SNAP_PENDING)
		use_licenses(l, job, -1);
	j->state = SNAP_PENDING;
	j->n_waiting = 0;
	j->held = SNAP_HELD_ADMIN;
	j->yield_us = 0;
	l->lives[job] = (struct life){ .origin = l->lives[job].origin, .end_us = GPUQ_UNLIMITED };
}

static void drop_promises(struct lived *l, uint32_t job)
{
	struct snapshot *s = &l->s;
	uint32_t kept = 0;

	if (s->jobs[job].n_promises == 0)
		return;
	for (uint32_t i = 0; i < s->n_promises; i++)
		if (s->promises[i].job != job)
			s->promises[kept++] = s->promises[i];
	s->n_promises = kept;
	s->jobs[job].n_promises = 0;
	for (uint32_t i = kept; i-- > 0;)
		s->jobs[s->promises[i].job].promise_first = i;
}

/* The entry of one element that starts: one that is used up, or a new one behind its
 * array. SNAP_NONE = no memory. */
static uint32_t new_element(struct lived *l, uint32_t array)
{
	struct snapshot *s = &l->s;
	uint32_t at = array + 1;

	for (; at < s->n_jobs && s->jobs[at].key.id == s->jobs[array].key.id; at++)
		if (s->jobs[at].key.index >= 0 && s->jobs[at].state == SNAP_PENDING &&
		    s->jobs[at].n_waiting == 0)
			return at;
	if (s->n_jobs == l->room_jobs) {
		l->room_jobs *= 2;
		s->jobs = copy(l, s->jobs, s->n_jobs, l->room_jobs, sizeof(*s->jobs));
		l->lives = copy(l, l->lives, s->n_jobs, l->room_jobs, sizeof(*l->lives));
		if (!s->jobs || !l->lives)
			return SNAP_NONE;
	}
	memmove(&s->jobs[at + 1], &s->jobs[at], (s->n_jobs - at) * sizeof(*s->jobs));
	memmove(&l->lives[at + 1], &l->lives[at], (s->n_jobs - at) * sizeof(*l->lives));
	s->n_jobs++;
	for (uint32_t i = 0; i < l->from->n_jobs; i++)
		l->now_of[i] += l->now_of[i] >= at;
	for (uint32_t i = 0; i < s->n_promises; i++)
		s->promises[i].job += s->promises[i].job >= at;
	return at;
}

/* The first element is none that waits any more. */
static void take_element(struct snap_job *array)
{
	struct snap_range *r = (struct snap_range *)array->ranges;

	r->first += r->step;
	if (r->first > r->last) {
		array->ranges++;
		array->n_ranges--;
	}
	if (--array->n_waiting == 0)
		array->held = SNAP_HELD_ADMIN;
}

/* Pods of an action behind the n that the job has. */
static int add_pods(struct lived *l, uint32_t job, const struct plan *p,
		    const struct plan_action *a)
{
	struct life *life = &l->lives[job];
	struct snap_alloc *pods =
		copy(l, life->pods, life->n_pods, life->n_pods + a->n_pods, sizeof(*pods));

	if (!pods)
		return no_memory(l);
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *pod = &p->pods[a->pod_first + i];
		const uint32_t *devices = copy(l, &p->devices[pod->device_first], pod->n_devices,
					       pod->n_devices, sizeof(*devices));
		const struct snap_group *g =
			&l->s.requests[l->s.jobs[job].request].groups[pod->group];

		if (!devices)
			return no_memory(l);
		pods[life->n_pods + i] =
			(struct snap_alloc){ .node = pod->node,
					     .group = pod->group,
					     .index = pod->index,
					     .devices = devices,
					     .n_devices = pod->n_devices,
					     .milli = pod->milli,
					     .device_memory_bytes = g->gpu_memory_bytes };
	}
	life->pods = pods;
	life->n_pods += a->n_pods;
	return 0;
}

static int start_job(struct lived *l, uint32_t job, const struct plan *p,
		     const struct plan_action *a)
{
	struct snap_job *j = &l->s.jobs[job];

	drop_promises(l, job);
	if (j->n_ranges > 0) {
		const uint32_t at = new_element(l, job);

		if (at == SNAP_NONE)
			return no_memory(l);
		j = &l->s.jobs[at];
		*j = l->s.jobs[job];
		l->lives[at] = (struct life){ .origin = l->lives[job].origin };
		j->n_promises = 0;
		j->key.index = a->key.index;
		j->ranges = NULL;
		j->n_ranges = 0;
		take_element(&l->s.jobs[job]);
		job = at;
	}
	j->state = SNAP_RUNNING;
	j->n_waiting = 0;
	j->start_us = l->s.config.now_us;
	j->yield_us = a->yield_us;
	use_licenses(l, job, 1);
	l->lives[job].end_us = runs_until(l, job);
	return add_pods(l, job, p, a);
}

static void evict_job(struct lived *l, uint32_t job)
{
	struct snap_job *j = &l->s.jobs[job];

	use_licenses(l, job, -1);
	j->state = SNAP_PENDING;
	j->n_waiting = 1;
	j->start_us = j->yield_us = 0;
	l->lives[job] = (struct life){ .origin = l->lives[job].origin, .end_us = GPUQ_UNLIMITED };
}

/* ---- what was asked for ---- */

static bool same_reason(const struct plan_reason *x, const struct plan_reason *y)
{
	return x->code == y->code && strcmp(x->object, y->object) == 0;
}

static int note_reason(struct lived *l, struct estimate *e, const struct plan_reason *why)
{
	const uint32_t n = e->n_changes;
	struct estimate_change *changes;

	if (n > 0 && same_reason(&e->changes[n - 1].why, why))
		return 0;
	/* Room in powers of two. */
	if ((n & (n - 1)) == 0) {
		changes = copy(l, e->changes, n, n ? 2 * (size_t)n : 1, sizeof(*changes));
		if (!changes)
			return no_memory(l);
		e->changes = changes;
	}
	e->changes[n] = (struct estimate_change){ l->s.config.now_us, *why };
	e->changes[n].why.object = gpuq_arena_strdup(l->mem, why->object);
	e->n_changes++;
	return e->changes[n].why.object ? 0 : no_memory(l);
}

static const struct plan_reason *reason_of(const struct snapshot *s, const struct plan *p,
					   uint32_t job)
{
	const struct plan_reason *why;

	return plan_reasons(s, p, job, &why) ? why : NULL;
}

static int note_all(struct lived *l, const struct plan *p)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < l->n_out; i++) {
		const struct plan_reason *why = reason_of(&l->s, p, l->now_of[l->out[i].job]);

		if (l->out[i].start_us == GPUQ_UNLIMITED && why)
			rc = note_reason(l, &l->out[i], why);
	}
	return rc;
}

static void note_start(struct lived *l, uint32_t origin)
{
	for (uint32_t i = 0; i < l->n_out; i++) {
		if (l->out[i].job != origin || l->out[i].start_us != GPUQ_UNLIMITED)
			continue;
		l->out[i].start_us = l->s.config.now_us;
		l->n_left--;
	}
}

/* ---- time ---- */

static int cmp_action(const void *ctx, uint32_t x, uint32_t y)
{
	const struct plan_action *a = ctx;

	return a[x].job != a[y].job ? sort_i64(a[y].job, a[x].job) : sort_i64(x, y);
}

static int apply_one(struct lived *l, const struct plan *p, const struct plan_action *a,
		     bool *changed)
{
	const bool runs = l->s.jobs[a->job].state == SNAP_RUNNING;

	switch (a->kind) {
	case PLAN_PLACE:
		note_start(l, l->lives[a->job].origin);
		*changed = true;
		return start_job(l, a->job, p, a);
	case PLAN_GROW:
		*changed |= runs;
		return runs ? add_pods(l, a->job, p, a) : 0;
	case PLAN_EVICT:
		*changed |= runs;
		if (runs)
			evict_job(l, a->job);
		return 0;
	case PLAN_RELEASE:
		drop_promises(l, a->job);
		return 0;
	default: /* nobody is told to leave for a claim here */
		return 0;
	}
}

/* Those that stand behind others first: an element that gets an entry of its own moves
 * the indexes of all behind it. */
static int apply(struct lived *l, const struct plan *p, bool *changed)
{
	uint32_t *ix = copy(l, NULL, 0, p->n_actions, sizeof(*ix));
	uint32_t *scratch = copy(l, NULL, 0, p->n_actions, sizeof(*scratch));
	int rc = 0;

	if (!ix || !scratch)
		return no_memory(l);
	for (uint32_t i = 0; i < p->n_actions; i++)
		ix[i] = i;
	sort_ix(ix, scratch, p->n_actions, cmp_action, p->actions);
	for (uint32_t i = 0; rc == 0 && i < p->n_actions; i++)
		rc = apply_one(l, p, &p->actions[ix[i]], changed);
	return rc;
}

static int one_cycle(struct lived *l, bool *changed, int64_t *wake_us)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct plan p;
	int rc = sched_cycle(&l->s, &mem, &p, l->err);

	*changed = false;
	if (rc == 0)
		rc = note_all(l, &p);
	if (rc == 0)
		rc = apply(l, &p, changed);
	if (rc == 0 && *changed)
		rc = settle(l);
	if (rc == 0)
		*wake_us = p.wake_us;
	gpuq_arena_done(&mem);
	return rc;
}

static int64_t next_event(const struct lived *l, int64_t wake_us)
{
	const int64_t now = l->s.config.now_us;
	int64_t next = wake_us > now ? wake_us : GPUQ_UNLIMITED;

	for (uint32_t i = 0; i < l->s.n_jobs; i++)
		if (l->s.jobs[i].state != SNAP_PENDING && l->lives[i].end_us < next)
			next = l->lives[i].end_us;
	return next;
}

static int advance(struct lived *l, int64_t to_us)
{
	l->s.config.now_us = to_us;
	for (uint32_t i = 0; i < l->s.n_jobs; i++)
		if (l->s.jobs[i].state != SNAP_PENDING && l->lives[i].end_us <= to_us)
			end_job(l, i);
	return settle(l);
}

static int live(struct lived *l)
{
	const uint32_t max = l->config->max_events ? l->config->max_events : ESTIMATE_EVENTS_MAX;
	int64_t wake_us = GPUQ_UNLIMITED;
	int rc = 0;

	for (uint32_t events = 0; rc == 0 && l->n_left > 0 && events < max; events++) {
		bool changed = true;
		int64_t next;

		for (int i = 0; rc == 0 && changed && l->n_left > 0 && i < CYCLES_AT_ONCE; i++)
			rc = one_cycle(l, &changed, &wake_us);
		next = next_event(l, wake_us);
		if (next == GPUQ_UNLIMITED)
			break;
		if (rc == 0 && l->n_left > 0)
			rc = advance(l, next);
	}
	return rc;
}

int estimate_starts(const struct snapshot *s, const struct estimate_config *config,
		    const uint32_t *jobs, uint32_t n, struct gpuq_arena *mem, struct estimate *out,
		    struct gpuq_err *err)
{
	struct lived l = {
		.from = s, .config = config, .mem = mem, .n_out = n, .n_left = n, .err = err
	};
	int rc;

	if (!s->sealed)
		return gpuq_fail(err, GPUQ_EINVAL, "the snapshot has not been sealed");
	for (uint32_t i = 0; i < n; i++)
		if (jobs[i] >= s->n_jobs || s->jobs[jobs[i]].state != SNAP_PENDING)
			return gpuq_fail(err, GPUQ_EINVAL, "an estimate for a job that waits not");
	l.out = copy(&l, NULL, 0, n, sizeof(*l.out));
	if (!l.out)
		return no_memory(&l);
	for (uint32_t i = 0; i < n; i++)
		l.out[i] = (struct estimate){ .job = jobs[i], .start_us = GPUQ_UNLIMITED };
	rc = copy_snapshot(&l);
	if (rc == 0)
		rc = live(&l);
	if (rc == 0 && n > 0)
		memcpy(out, l.out, n * sizeof(*out));
	return rc;
}
