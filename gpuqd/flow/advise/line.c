#include "gpuqd/flow/advise/line.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/amount.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/state/view/view.h"
#include "libgpuq/spec.h"

#define AHEAD_MAX 10u

bool line_has(const struct job *j)
{
	return j->state == GPUQ_JOB_PENDING && j->outlook->ranked &&
	       !(j->array && j->array->n_waiting == 0);
}

void line_stand(const struct job *j, struct line_place *out)
{
	*out = (struct line_place){ j->key, j->queue->ix, j->outlook->terms.total, j->submit_us, 0,
				    0 };
}

int line_cmp(const struct line_place *a, const struct line_place *b)
{
	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	if (a->submit_us != b->submit_us)
		return a->submit_us < b->submit_us ? -1 : 1;
	if (a->key.id != b->key.id)
		return a->key.id < b->key.id ? -1 : 1;
	return a->key.index == b->key.index ? 0 : a->key.index < b->key.index ? -1 : 1;
}

static int by_place(const void *a, const void *b)
{
	return line_cmp(a, b);
}

void line_number(struct line_place *all, size_t n)
{
	if (n)
		qsort(all, n, sizeof(*all), by_place);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && all[end].queue == all[i].queue; end++)
			all[end].place = (uint32_t)(end - i) + 1;
		for (size_t k = i; k < end; k++)
			all[k].of = (uint32_t)(end - i);
	}
}

/* ---- one job's ---- */

/* The terms by name, with their part in the total. */
static const struct {
	const char *name;
	size_t offset;
	int sign;
} terms[] = {
	{ "qos", offsetof(struct priority_terms, qos), 1 },
	{ "fairshare", offsetof(struct priority_terms, fair_share), 1 },
	{ "age", offsetof(struct priority_terms, age), 1 },
	{ "stretch", offsetof(struct priority_terms, stretch), 1 },
	{ "size", offsetof(struct priority_terms, size), 1 },
	{ "boost", offsetof(struct priority_terms, boost), 1 },
	{ "nice", offsetof(struct priority_terms, nice), -1 },
};

static int64_t term(const struct priority_terms *t, size_t i)
{
	return terms[i].sign * *(const int64_t *)((const char *)t + terms[i].offset);
}

/* Return the term that contributes most to the order. Equal sums: the earlier submission. */
static const char *deciding(const struct priority_terms *first, const struct priority_terms *then,
			    int64_t *points)
{
	const char *name = "submit";

	*points = 0;
	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
		const int64_t more = amount_less(term(first, i), term(then, i));

		if (first->total != then->total && more > *points) {
			*points = more;
			name = terms[i].name;
		}
	}
	return name;
}

static struct gpuq_val *view_ahead(struct gpuq_arena *a, const struct job *j,
				   const struct job *mine)
{
	const struct snap_key key = { j->key.id, j->key.index };
	struct gpuq_val *v = gpuq_map(a);
	int64_t points;
	const char *by = deciding(&j->outlook->terms, &mine->outlook->terms, &points);
	char id[32];

	gpuq_put(a, v, "job", gpuq_str(a, plan_key_print(key, id, sizeof(id))));
	gpuq_put(a, v, "user", gpuq_str(a, j->user));
	gpuq_put(a, v, "queue", gpuq_str(a, j->queue->name));
	gpuq_put(a, v, "gpus", view_devices(a, j->request->gpus_milli));
	gpuq_put(a, v, "priority", gpuq_int(a, j->outlook->terms.total));
	gpuq_put(a, v, "by", gpuq_str(a, by));
	gpuq_put(a, v, "points", gpuq_int(a, points));
	return v;
}

/* The nearest jobs before it, the closest of them first. */
struct nearest {
	struct line_place places[AHEAD_MAX];
	const struct job *jobs[AHEAD_MAX];
	uint32_t n;
};

static void note_nearest(struct nearest *x, const struct line_place *p, const struct job *j)
{
	uint32_t at = x->n < AHEAD_MAX ? x->n++ : AHEAD_MAX;

	while (at > 0 && line_cmp(p, &x->places[at - 1]) > 0)
		at--;
	if (at == AHEAD_MAX)
		return;
	memmove(&x->places[at + 1], &x->places[at], (x->n - 1 - at) * sizeof(*x->places));
	memmove(&x->jobs[at + 1], &x->jobs[at], (x->n - 1 - at) * sizeof(*x->jobs));
	x->places[at] = *p;
	x->jobs[at] = j;
}

struct gpuq_val *line_view(const struct job *j, struct gpuq_arena *a)
{
	const bool known = line_has(j);
	struct gpuq_val *v = gpuq_map(a), *ahead = gpuq_list(a), *own = NULL;
	struct nearest near = { .n = 0 };
	struct line_place mine, other;
	uint32_t place = 1, waiting = 0;
	const struct job *it;

	line_stand(j, &mine);
	DL_FOREACH2(j->queue->jobs, it, queue_next) {
		if (!known || !line_has(it))
			continue;
		waiting++;
		line_stand(it, &other);
		if (line_cmp(&other, &mine) >= 0)
			continue;
		place++;
		note_nearest(&near, &other, it);
	}
	for (uint32_t i = 0; i < near.n; i++)
		gpuq_add(a, ahead, view_ahead(a, near.jobs[i], j));
	if (known) {
		own = priority_terms_val(a, &j->outlook->terms);
		gpuq_put(a, own, "total", gpuq_int(a, j->outlook->terms.total));
	}
	gpuq_put(a, v, "place", known ? gpuq_int(a, place) : gpuq_null(a));
	gpuq_put(a, v, "waiting", known ? gpuq_int(a, waiting) : gpuq_null(a));
	gpuq_put(a, v, "terms", known ? own : gpuq_null(a));
	gpuq_put(a, v, "ahead", ahead);
	return v;
}
