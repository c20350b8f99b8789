#include "gpuqd/sched/estimate/estimate_int.h"

#include <string.h>

#include "gpuqd/snapshot/seal/snapshot_lines.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/snapshot/seal/snapshot_jobs.h"

/* How jobs live in the copy that an estimate changes: a second, smaller lifecycle beside the
 * state's, without history, charges and faults, since an estimate runs many cycles. The property
 * test prop_time checks that the starts it predicts are those that happen. */

void *estimate_lived_copy(struct lived *l, const void *items, size_t n, size_t room, size_t size)
{
	void *p = gpuq_arena_calloc(l->mem, room ? room : 1, size);

	if (p && n)
		memcpy(p, items, n * size);
	return p;
}

/* ---- the copy ---- */

/* Return when a job ends that started at its start_us: after the run time given for it, at the
 * latest at its time limit. */
static int64_t runs_until(const struct lived *l, uint32_t job)
{
	const struct snap_job *j = &l->s.jobs[job];
	const int64_t most = amount_later(j->walltime_us, j->grace_us);
	int64_t run = l->config->run_us ? l->config->run_us[l->lives[job].origin] : most;

	return amount_later(j->start_us, run < most ? run : most);
}

/* Begin the lives of jobs that hold pods now. Work that is past its time, or was signalled, ends
 * soon. */
static int begin_lives(struct lived *l)
{
	l->soon_us = l->s.config.now_us + 60 * GPUQ_US_PER_S;
	for (uint32_t i = 0; i < l->s.n_jobs; i++) {
		struct snap_job *j = &l->s.jobs[i];
		struct life *life = &l->lives[i];

		life->origin = l->now_of[i] = i;
		if (j->state == SNAP_PENDING)
			continue;
		life->n_pods = j->n_allocs;
		life->pods = estimate_lived_copy(l, &l->s.allocs[j->alloc_first], j->n_allocs,
						 j->n_allocs, sizeof(*life->pods));
		if (!life->pods)
			return gpuq_no_memory(l->err);
		life->end_us = runs_until(l, i);
		if (j->state == SNAP_LEAVING || life->end_us <= l->s.config.now_us)
			life->end_us = l->soon_us;
		for (uint32_t p = 0; p < life->n_pods; p++)
			life->shrinks |= j->state == SNAP_RUNNING && life->pods[p].releasing;
	}
	return 0;
}

int estimate_lived_begin(struct lived *l)
{
	const struct snapshot *from = l->from;
	struct snapshot *s = &l->s;

	*s = *from;
	/* The copy owns nothing of the original, and changes only the tables copied below. */
	s->arena = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
	s->builder = NULL;
	s->lines = (struct snap_lines){ 0 };
	s->config.reclaim = s->config.consolidation = false;
	l->room_jobs = from->n_jobs + 64;
	l->room_allocs = from->n_allocs + 64;
	s->jobs = estimate_lived_copy(l, from->jobs, from->n_jobs, l->room_jobs, sizeof(*s->jobs));
	s->allocs = estimate_lived_copy(l, from->allocs, from->n_allocs, l->room_allocs,
					sizeof(*s->allocs));
	s->promises = estimate_lived_copy(l, from->promises, from->n_promises, from->n_promises,
					  sizeof(*s->promises));
	s->nodes = estimate_lived_copy(l, from->nodes, from->n_nodes, from->n_nodes,
				       sizeof(*s->nodes));
	s->devices = estimate_lived_copy(l, from->devices, from->n_devices, from->n_devices,
					 sizeof(*s->devices));
	s->extra_free = estimate_lived_copy(l, from->extra_free, from->n_nodes * from->n_extras,
					    from->n_nodes * from->n_extras, sizeof(*s->extra_free));
	s->licenses = estimate_lived_copy(l, from->licenses, from->n_licenses, from->n_licenses,
					  sizeof(*s->licenses));
	l->lives = estimate_lived_copy(l, NULL, 0, l->room_jobs, sizeof(*l->lives));
	l->now_of = estimate_lived_copy(l, NULL, 0, from->n_jobs, sizeof(*l->now_of));
	if (!s->jobs || !s->allocs || !s->promises || !s->nodes || !s->devices || !s->extra_free ||
	    !s->licenses || !l->lives || !l->now_of)
		return gpuq_no_memory(l->err);
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		struct snap_job *j = &s->jobs[i];

		if (j->n_ranges == 0)
			continue;
		j->ranges = estimate_lived_copy(l, j->ranges, j->n_ranges, j->n_ranges,
						sizeof(*j->ranges));
		if (!j->ranges)
			return gpuq_no_memory(l->err);
	}
	return snapshot_line_up(s, l->mem) ? begin_lives(l) : gpuq_no_memory(l->err);
}

/* Recompute the table of pods and free capacity after jobs have started or ended. */
int estimate_lived_settle(struct lived *l)
{
	struct snapshot *s = &l->s;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++)
		n += l->lives[i].n_pods;
	if (n > l->room_allocs) {
		l->room_allocs = 2 * n;
		s->allocs = gpuq_arena_calloc(l->mem, l->room_allocs, sizeof(*s->allocs));
		if (!s->allocs)
			return gpuq_no_memory(l->err);
	}
	if (!snapshot_line_up(s, l->mem))
		return gpuq_no_memory(l->err);
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

/* Take the licenses of a job (sign 1), or release them (-1). */
static void use_licenses(struct lived *l, uint32_t job, int64_t sign)
{
	const struct snap_request *r = &l->s.requests[l->s.jobs[job].request];

	for (uint32_t i = 0; i < r->n_licenses; i++)
		l->s.licenses[r->licenses[i].license].used += sign * r->licenses[i].count;
}

/* Nothing of it is pending, and nothing runs: it is not evaluated any more. */
void estimate_lived_end(struct lived *l, uint32_t job)
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

void estimate_lived_drop_promises(struct lived *l, uint32_t job)
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

/* Return an entry for one element that starts: one that is used up, or a new one after its array.
 * SNAP_NONE = no memory. */
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
		s->jobs =
			estimate_lived_copy(l, s->jobs, s->n_jobs, l->room_jobs, sizeof(*s->jobs));
		l->lives = estimate_lived_copy(l, l->lives, s->n_jobs, l->room_jobs,
					       sizeof(*l->lives));
		if (!s->jobs || !l->lives)
			return SNAP_NONE;
	}
	/* Jobs stay sorted by id and element, so those behind it move up by one. */
	memmove(&s->jobs[at + 1], &s->jobs[at], (s->n_jobs - at) * sizeof(*s->jobs));
	memmove(&l->lives[at + 1], &l->lives[at], (s->n_jobs - at) * sizeof(*l->lives));
	s->n_jobs++;
	for (uint32_t i = 0; i < l->from->n_jobs; i++)
		l->now_of[i] += l->now_of[i] != SNAP_NONE && l->now_of[i] >= at;
	for (uint32_t i = 0; i < s->n_promises; i++)
		s->promises[i].job += s->promises[i].job >= at;
	return at;
}

/* The first element is not pending any more. */
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

int estimate_lived_grow(struct lived *l, uint32_t job, const struct plan *p,
			const struct plan_action *a)
{
	struct life *life = &l->lives[job];
	struct snap_alloc *pods = estimate_lived_copy(l, life->pods, life->n_pods,
						      life->n_pods + a->n_pods, sizeof(*pods));

	if (!pods)
		return gpuq_no_memory(l->err);
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *pod = &p->pods[a->pod_first + i];
		const uint32_t *devices =
			estimate_lived_copy(l, &p->devices[pod->device_first], pod->n_devices,
					    pod->n_devices, sizeof(*devices));
		const struct snap_group *g =
			&l->s.requests[l->s.jobs[job].request].groups[pod->group];

		if (!devices)
			return gpuq_no_memory(l->err);
		pods[life->n_pods + i] = (struct snap_alloc){
			.node = pod->node,
			.group = pod->group,
			.index = pod->index,
			.devices = devices,
			.n_devices = pod->n_devices,
			.milli = pod->milli,
			.device_memory_bytes = snap_memory_up(g->gpu_memory_bytes,
							      l->s.nodes[pod->node].unit_bytes)
		};
	}
	life->pods = pods;
	life->n_pods += a->n_pods;
	return 0;
}

int estimate_lived_start(struct lived *l, uint32_t job, const struct plan *p,
			 const struct plan_action *a, uint32_t *to)
{
	struct snap_job *j = &l->s.jobs[job];

	estimate_lived_drop_promises(l, job);
	/* An element of an array starts in an entry of its own. */
	if (j->n_ranges > 0) {
		const uint32_t at = new_element(l, job);

		if (at == SNAP_NONE)
			return gpuq_no_memory(l->err);
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
	j->request = a->request;
	j->n_waiting = 0;
	j->start_us = l->s.config.now_us;
	j->yield_us = a->yield_us;
	if (a->walltime_us)
		j->walltime_us = a->walltime_us;
	use_licenses(l, job, 1);
	l->lives[job].end_us = runs_until(l, job);
	*to = job;
	return estimate_lived_grow(l, job, p, a);
}

void estimate_lived_evict(struct lived *l, uint32_t job)
{
	struct snap_job *j = &l->s.jobs[job];
	const struct snap_job *was = &l->from->jobs[l->lives[job].origin];

	use_licenses(l, job, -1);
	j->state = SNAP_PENDING;
	j->request = was->request;
	j->n_waiting = 1;
	j->start_us = j->yield_us = 0;
	/* A shortened time limit was for that attempt only. */
	j->walltime_us = was->walltime_asked_us ? was->walltime_asked_us : was->walltime_us;
	l->lives[job] = (struct life){ .origin = l->lives[job].origin, .end_us = GPUQ_UNLIMITED };
}

void estimate_lived_shrink(struct lived *l, uint32_t job, const struct plan *p,
			   const struct plan_action *a)
{
	struct life *life = &l->lives[job];
	uint32_t kept = 0, gone = 0;

	for (uint32_t i = 0; i < life->n_pods; i++) {
		/* Both lists are in ascending order of index. */
		while (gone < a->n_pods && p->pods[a->pod_first + gone].index < life->pods[i].index)
			gone++;
		if (gone == a->n_pods || p->pods[a->pod_first + gone].index != life->pods[i].index)
			life->pods[kept++] = life->pods[i];
	}
	life->n_pods = kept;
	l->s.jobs[job].shrunk_us = l->s.config.now_us;
}

void estimate_lived_shed(struct lived *l, uint32_t job)
{
	struct life *life = &l->lives[job];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < life->n_pods; i++)
		if (!life->pods[i].releasing)
			life->pods[kept++] = life->pods[i];
	life->n_pods = kept;
	life->shrinks = false;
}

int estimate_lived_move(struct lived *l, uint32_t job, const struct plan *p,
			const struct plan_action *a)
{
	l->lives[job].n_pods = 0;
	l->s.jobs[job].start_us = l->s.config.now_us;
	l->lives[job].end_us = runs_until(l, job);
	return estimate_lived_grow(l, job, p, a);
}
