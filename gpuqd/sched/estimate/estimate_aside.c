/* Only the front of a long queue is simulated: jobs further back enter as it grows shorter. */
#include "gpuqd/sched/estimate/estimate_int.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/util/amount.h"

/* A queue's front requests this many times the capacity of the cluster, so that its length shows
 * neither in fair shares nor in what is left for others. */
#define TIMES_CAPACITY 2

/* A number of jobs of a queue, and what they request. */
struct front {
	uint32_t n; /* jobs */
	int64_t gpus_milli, cpu_milli, memory_bytes;
};

struct aside {
	struct priority_turn *turns; /* by queue and turn; before at[queue] all have entered */
	uint32_t *at, *end; /* by queue: its turns */
	struct front *fronts; /* by queue: pending jobs that have entered; recounted each time */
	struct front most; /* the cluster's capacity, and more; 0 = it is not counted */
	bool *is_in; /* by job of the original: false = it is left out */
	uint32_t *coming; /* room for all */
	uint32_t n_left; /* that have yet to enter */
	bool is_cut; /* those that are left out are no longer in the table */
};

/* Compare indexes. */
static int by_number(const void *x, const void *y)
{
	const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return a < b ? -1 : a > b;
}

/* Arrays, jobs with nominated places, and jobs that wait for a time of day stay in the table. */
static bool may_stand_aside(const struct lived *l, const struct snap_job *j)
{
	return j->state == SNAP_PENDING && j->n_waiting == 1 && j->n_ranges == 0 &&
	       j->key.index < 0 && j->n_promises == 0 &&
	       (j->held || j->gate != GPUQ_R_NONE || j->begin_us <= l->from->config.now_us);
}

/* True if the job is held, or waits for something unforeseeable: it does not start as long as this
 * lasts. */
static bool never_comes(const struct snap_job *j)
{
	return j->held || j->gate != GPUQ_R_NONE;
}

/* ---- rebuilding the table ---- */

/* True if a job stays among those that are simulated. */
static bool stays(const struct lived *l, uint32_t i)
{
	const struct snap_job *j = &l->s.jobs[i];
	const uint32_t origin = l->lives[i].origin;

	/* A job that has ended is removed with the others, unless it is an array's element. */
	if (j->state == SNAP_PENDING && j->n_waiting == 0 && j->n_ranges == 0 && j->key.index < 0)
		return false;
	return l->aside->is_in[origin] || j->state != SNAP_PENDING || !may_stand_aside(l, j);
}

static bool comes_first(struct snap_key a, struct snap_key b)
{
	return a.id != b.id ? a.id < b.id : a.index < b.index;
}

/* Rebuild the table from the jobs that stay and the n that enter, ordered by key as the table
 * is. */
static int rebuild(struct lived *l, const uint32_t *coming, uint32_t n)
{
	struct snapshot *s = &l->s;
	const uint32_t room = s->n_jobs + n + 64;
	struct snap_job *jobs = estimate_lived_copy(l, NULL, 0, room, sizeof(*jobs));
	struct life *lives = estimate_lived_copy(l, NULL, 0, room, sizeof(*lives));
	uint32_t *moved = estimate_lived_copy(l, NULL, 0, s->n_jobs + 1, sizeof(*moved));
	uint32_t to = 0, c = 0;

	if (!jobs || !lives || !moved)
		return gpuq_no_memory(l->err);
	for (uint32_t i = 0; i <= s->n_jobs; i++) {
		while (c < n && (i == s->n_jobs ||
				 comes_first(l->from->jobs[coming[c]].key, s->jobs[i].key))) {
			jobs[to] = l->from->jobs[coming[c]];
			lives[to] = (struct life){ .origin = coming[c], .end_us = GPUQ_UNLIMITED };
			l->now_of[coming[c++]] = to++;
		}
		if (i == s->n_jobs)
			break;
		if (!stays(l, i)) {
			if (l->now_of[l->lives[i].origin] == i)
				l->now_of[l->lives[i].origin] = SNAP_NONE;
			continue;
		}
		jobs[to] = s->jobs[i];
		lives[to] = l->lives[i];
		moved[i] = to;
		if (l->now_of[lives[to].origin] == i)
			l->now_of[lives[to].origin] = to;
		to++;
	}
	for (uint32_t i = 0; i < s->n_promises; i++)
		s->promises[i].job = moved[s->promises[i].job];
	s->jobs = jobs;
	l->lives = lives;
	s->n_jobs = to;
	l->room_jobs = room;
	return 0;
}

/* ---- jobs that enter ---- */

/* Return how much of a queue's pending work is simulated at once: some times what the cluster has.
 * Jobs behind that cannot start soon, and each costs time in every cycle. */
static struct front most_of(const struct snapshot *s, uint32_t n)
{
	struct front most = { .n = n };
	const int64_t cpu = s->capacity[snap_cpu(s)], memory = s->capacity[snap_memory(s)];

	for (uint32_t f = 0; f < s->n_flavors; f++)
		most.gpus_milli = amount_sum(most.gpus_milli, s->capacity[f]);
	most.gpus_milli = amount_times(most.gpus_milli, TIMES_CAPACITY);
	most.cpu_milli = cpu == GPUQ_UNLIMITED ? 0 : amount_times(cpu, TIMES_CAPACITY);
	most.memory_bytes = memory == GPUQ_UNLIMITED ? 0 : amount_times(memory, TIMES_CAPACITY);
	return most;
}

/* Add a job to the front of its queue. */
static void join(struct front *f, const struct snapshot *s, const struct snap_job *j)
{
	const struct snap_request *r = &s->requests[j->request];

	f->n++;
	f->gpus_milli = amount_sum(f->gpus_milli, r->gpus_milli);
	f->cpu_milli = amount_sum(f->cpu_milli, r->cpu_milli);
	f->memory_bytes = amount_sum(f->memory_bytes, r->memory_bytes);
}

/* True if the front has at least 1 / parts of its target. One resource that is requested more often
 * than it exists is enough: not all of them can start. */
static bool has(const struct front *f, const struct front *most, int parts)
{
	return f->n >= most->n / parts &&
	       ((most->gpus_milli && f->gpus_milli >= most->gpus_milli / parts) ||
		(most->cpu_milli && f->cpu_milli >= most->cpu_milli / parts) ||
		(most->memory_bytes && f->memory_bytes >= most->memory_bytes / parts));
}

/* Take jobs from queues whose front is less than half of its target. Returns how many. */
static uint32_t fill_fronts(struct lived *l)
{
	struct aside *a = l->aside;
	uint32_t n = 0;

	for (uint32_t q = 0; q < l->s.n_queues; q++) {
		struct front *f = &a->fronts[q];

		if (has(f, &a->most, 2))
			continue;
		while (a->at[q] < a->end[q] && !has(f, &a->most, 1)) {
			const uint32_t origin = a->turns[a->at[q]++].job;

			a->is_in[origin] = true;
			join(f, l->from, &l->from->jobs[origin]);
			a->coming[n++] = origin;
		}
	}
	a->n_left -= n;
	return n;
}

/* Count anew how much of each queue is among the simulated jobs. */
static void count_fronts(struct lived *l)
{
	const struct snapshot *s = &l->s;
	struct aside *a = l->aside;

	memset(a->fronts, 0, s->n_queues * sizeof(*a->fronts));
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct snap_job *j = &s->jobs[i];

		if (j->state == SNAP_PENDING && j->n_waiting > 0 && !never_comes(j) &&
		    a->is_in[l->lives[i].origin])
			join(&a->fronts[j->queue], s, j);
	}
}

/* ---- interface ---- */

/* Sort those that may stand aside by queue and turn, so that the next of a queue is one step away.
 */
static void line_up(struct lived *l, const struct priority *p)
{
	const struct snapshot *s = &l->s;
	struct aside *a = l->aside;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct snap_job *j = &s->jobs[i];

		a->is_in[i] = !may_stand_aside(l, j);
		if (!a->is_in[i] && !never_comes(j))
			a->turns[n++] = priority_turn_of(p, i);
	}
	priority_sort(a->turns, n);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t q = a->turns[i].queue;

		if (i == 0 || a->turns[i - 1].queue != q)
			a->at[q] = i;
		a->end[q] = i + 1;
	}
	a->n_left = n;
}

int estimate_aside_begin(struct lived *l, const struct priority *p)
{
	const struct snapshot *s = &l->s;
	struct aside *a;

	if (l->config->front == 0 || s->n_jobs <= 2 * l->config->front)
		return 0;
	a = estimate_lived_copy(l, NULL, 0, 1, sizeof(*a));
	if (!a)
		return gpuq_no_memory(l->err);
	a->turns = estimate_lived_copy(l, NULL, 0, s->n_jobs, sizeof(*a->turns));
	a->coming = estimate_lived_copy(l, NULL, 0, s->n_jobs, sizeof(*a->coming));
	a->is_in = estimate_lived_copy(l, NULL, 0, s->n_jobs, sizeof(*a->is_in));
	a->at = estimate_lived_copy(l, NULL, 0, s->n_queues, sizeof(*a->at));
	a->end = estimate_lived_copy(l, NULL, 0, s->n_queues, sizeof(*a->end));
	a->fronts = estimate_lived_copy(l, NULL, 0, s->n_queues, sizeof(*a->fronts));
	if (!a->turns || !a->coming || !a->is_in || !a->at || !a->end || !a->fronts)
		return gpuq_no_memory(l->err);
	a->most = most_of(s, l->config->front);
	l->aside = a;
	line_up(l, p);
	fill_fronts(l); /* they are in the table, which is cut once this plan is carried out */
	return 0;
}

int estimate_aside_renew(struct lived *l, bool *renewed)
{
	struct aside *a = l->aside;
	uint32_t n = 0;

	*renewed = false;
	if (!a || (a->is_cut && a->n_left == 0))
		return 0;
	if (a->is_cut) {
		count_fronts(l);
		n = fill_fronts(l);
		if (n == 0)
			return 0;
		qsort(a->coming, n, sizeof(*a->coming), by_number);
	}
	a->is_cut = *renewed = true;
	return rebuild(l, a->coming, n);
}
