#include "gpuqd/sched/quota/priority.h"

#include <stdlib.h>

#include "gpuqd/util/amount.h"
#include "gpuqd/sched/quota/fairtree.h"
#include "gpuqd/util/fixed.h"

#define EXEMPT_RUNTIMES 4
#define STRETCH_LEAST_US (3600 * GPUQ_US_PER_S)

struct priority *priority_new(const struct snapshot *s, struct gpuq_arena *mem)
{
	struct priority *p = gpuq_arena_calloc(mem, 1, sizeof(*p));

	if (!p)
		return NULL;
	p->s = s;
	p->ranks = fairtree_ranks(s, mem);
	for (uint32_t f = 0; f < s->n_flavors; f++)
		p->gpus_milli = amount_sum(p->gpus_milli, s->capacity[f]);
	return p->ranks ? p : NULL;
}

/* Return weight x part / whole, at most weight; all >= 0. */
static int64_t part_of(int64_t weight, int64_t part, int64_t whole)
{
	if (weight <= 0 || part <= 0 || whole <= 0)
		return 0;
	return part >= whole
		       ? weight
		       : (int64_t)fixed_part((uint64_t)weight, (uint64_t)part, (uint64_t)whole);
}

/* Return the points for the time pending. */
static int64_t age(const struct snap_weights *w, int64_t waited_us, uint32_t n_evicted)
{
	int64_t step;

	if (n_evicted == 0)
		return part_of(w->age, waited_us, w->max_age_us);
	/* Each preemption counts as pending time. */
	step = amount_times(w->max_age_us / 1000, w->evict_step_milli);
	return part_of(w->age,
		       amount_sum(waited_us > 0 ? waited_us : 0, amount_times(step, n_evicted)),
		       w->max_age_us);
}

/* A job that requests little time is to be pending for a short time: this keeps the slowdowns of
 * short and long jobs alike. It grows in whole steps, so that jobs submitted one after the other
 * are not reordered all the time. Source: the expansion factor of batch systems; see also D.
 * Feitelson, "Metrics for parallel job scheduling and their convergence", 2001. */
static int64_t stretch(const struct snap_weights *w, int64_t waited_us, int64_t walltime_us)
{
	const int64_t by = walltime_us > STRETCH_LEAST_US ? walltime_us : STRETCH_LEAST_US;
	const int64_t times = waited_us > 0 ? waited_us / by : 0;

	if (walltime_us == GPUQ_UNLIMITED)
		return 0;
	return amount_times(w->stretch, times < PRIORITY_STRETCHES ? times : PRIORITY_STRETCHES);
}

int64_t priority_of_wait(const struct snap_weights *w, int64_t waited_us, int64_t walltime_us,
			 uint32_t n_evicted)
{
	return amount_sum(age(w, waited_us, n_evicted), stretch(w, waited_us, walltime_us));
}

/* Return weight x class / full, in either direction. Stops at a quarter of the largest number, so
 * that terms can be added. */
static int64_t qos(const struct snap_weights *w, int64_t cls)
{
	const uint64_t size = cls < 0 ? -(uint64_t)cls : (uint64_t)cls;
	const fixed_u128 x = (fixed_u128)(uint64_t)w->qos * size;
	const uint64_t full = (uint64_t)w->qos_full;
	const int64_t points = x >> 61 >= full ? INT64_C(1) << 61 : (int64_t)fixed_div(x, full);

	return cls < 0 ? -points : points;
}

void priority_terms_since(const struct priority *p, uint32_t job, int64_t eligible_us,
			  struct priority_terms *out)
{
	const struct snapshot *s = p->s;
	const struct snap_job *j = &s->jobs[job];
	const struct snap_weights *w = &s->config.weights;
	const int64_t waited = amount_less(s->config.now_us, eligible_us);
	struct priority_terms t = { .boost = j->boost, .nice = j->nice };

	if (j->fixed_priority) {
		t.nice = 0;
		t.boost = t.total = amount_sum(j->fixed_priority, j->boost);
		*out = t;
		return;
	}
	t.age = age(w, waited, j->n_evicted_day);
	t.stretch = stretch(w, waited, j->walltime_us);
	/* Starving jobs come first in their queue, in order of arrival. */
	if (s->config.starve_us && waited > s->config.starve_us && waited > j->walltime_us)
		t.stretch = amount_times(w->stretch, PRIORITY_STRETCHES);
	t.fair_share = part_of(w->fair_share, p->ranks[j->usage], s->n_usages);
	t.size = part_of(w->size, s->requests[j->request].gpus_milli, p->gpus_milli);
	t.qos = qos(w, j->priority);
	t.total = amount_sum(amount_sum(t.age, t.fair_share), amount_sum(t.size, t.qos));
	t.total = amount_sum(t.total, t.stretch);
	if (__builtin_add_overflow(t.total, t.boost, &t.total))
		t.total = t.boost > 0 ? INT64_MAX : INT64_MIN;
	if (__builtin_sub_overflow(t.total, t.nice, &t.total))
		t.total = t.nice > 0 ? INT64_MIN : INT64_MAX;
	*out = t;
}

void priority_terms(const struct priority *p, uint32_t job, struct priority_terms *out)
{
	priority_terms_since(p, job, p->s->jobs[job].eligible_us, out);
}

struct gpuq_val *priority_terms_val(struct gpuq_arena *a, const struct priority_terms *t)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "age", gpuq_int(a, t->age));
	gpuq_put(a, v, "fairshare", gpuq_int(a, t->fair_share));
	gpuq_put(a, v, "size", gpuq_int(a, t->size));
	gpuq_put(a, v, "qos", gpuq_int(a, t->qos));
	gpuq_put(a, v, "stretch", gpuq_int(a, t->stretch));
	gpuq_put(a, v, "boost", gpuq_int(a, t->boost));
	gpuq_put(a, v, "nice", gpuq_int(a, t->nice));
	return v;
}

uint64_t priority_key(const struct priority *p, uint32_t job)
{
	struct priority_terms t;

	priority_terms(p, job, &t);
	return (uint64_t)t.total ^ UINT64_C(1) << 63;
}

struct priority_turn priority_turn_of(const struct priority *p, uint32_t job)
{
	const struct snap_job *j = &p->s->jobs[job];

	return (struct priority_turn){ job, j->queue, priority_key(p, job), j->submit_us };
}

/* Compare by queue, priority, time of submission and at last by index, so that no two are equal. */
static int by_turn(const void *x, const void *y)
{
	const struct priority_turn *a = x, *b = y;

	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	if (a->key != b->key)
		return a->key > b->key ? -1 : 1;
	if (a->submit_us != b->submit_us)
		return a->submit_us < b->submit_us ? -1 : 1;
	return a->job < b->job ? -1 : a->job > b->job;
}

void priority_sort(struct priority_turn *turns, size_t n)
{
	if (n)
		qsort(turns, n, sizeof(*turns), by_turn);
}

bool priority_exempt(const struct snapshot *s, uint32_t job, int64_t min_runtime_us)
{
	const struct snap_job *j = &s->jobs[job];
	const int64_t most = s->config.exempt_evictions;

	if (most == 0 || j->n_evicted_day < most)
		return false;
	if (min_runtime_us <= 0 || j->start_us == 0)
		return true;
	return amount_less(s->config.now_us, j->start_us) <
	       amount_times(min_runtime_us, EXEMPT_RUNTIMES);
}
