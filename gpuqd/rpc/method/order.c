/* Which jobs come first in an order that was requested: of very many that match, those few that
 * will be examined. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/rpc/method/m_int.h"

#define WORDS_MAX 6
#define FIRST_MAX 10000 /* beyond, all are sent */

#define ABSENT INT64_MAX /* behind all others, as the lists of gpuq have it */

static int64_t instant(int64_t us)
{
	return us > 0 ? us : ABSENT;
}

#define BY(name, value)                                                                            \
	static int64_t by_##name(const struct job *j)                                              \
	{                                                                                          \
		return value;                                                                      \
	}
/* Elements stand behind what is left of their array. */
BY(id, (int64_t)j->key.id << 24 | (j->key.index + 1))
BY(state, (int64_t)j->state)
BY(priority, j->outlook->terms.total)
BY(attempt, (int64_t)j->attempt)
BY(submit_time, instant(j->submit_us))
BY(eligible_time, instant(j->eligible_us))
BY(start_time, instant(j->life->start_us))
BY(time_limit_s, j->time_limit_us)

static const struct {
	const char *name;
	int64_t (*of)(const struct job *j);
} words[] = {
	{ "id", by_id },
	{ "state", by_state },
	{ "priority", by_priority },
	{ "attempt", by_attempt },
	{ "submit_time", by_submit_time },
	{ "eligible_time", by_eligible_time },
	{ "start_time", by_start_time },
	{ "time_limit_s", by_time_limit_s },
};

struct placed {
	int64_t v[WORDS_MAX + 1]; /* less is sooner */
	struct job_key key;
};

struct job_order {
	struct {
		int64_t (*of)(const struct job *j);
		bool down;
	} by[WORDS_MAX + 1];
	uint32_t n_by;
	struct placed *heap; /* the last of those that are kept on top */
	size_t n, first;
};

static bool add_word(struct job_order *o, const char *word)
{
	const bool down = *word == '-';

	for (size_t i = 0; o->n_by <= WORDS_MAX && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].name, word + down) != 0)
			continue;
		o->by[o->n_by].of = words[i].of;
		o->by[o->n_by++].down = down;
		return true;
	}
	return false;
}

struct job_order *job_order_new(struct gpuq_arena *a, const struct gpuq_strlist *by, int64_t first)
{
	struct job_order *o;

	if (first <= 0 || first > FIRST_MAX || by->n == 0)
		return NULL;
	o = gpuq_arena_calloc(a, 1, sizeof(*o));
	if (o)
		o->heap = gpuq_arena_calloc(a, (size_t)first, sizeof(*o->heap));
	if (!o || !o->heap)
		return NULL;
	o->first = (size_t)first;
	for (size_t i = 0; i < by->n; i++)
		if (!add_word(o, by->items[i]))
			return NULL;
	return add_word(o, "id") ? o : NULL;
}

static bool before(const struct job_order *o, const struct placed *x, const struct placed *y)
{
	for (uint32_t i = 0; i < o->n_by; i++)
		if (x->v[i] != y->v[i])
			return x->v[i] < y->v[i];
	return false;
}

/* x where it belongs: i is free, and all below it come sooner than its own place's. */
static void sink(struct job_order *o, size_t i, const struct placed *x)
{
	for (size_t k = 2 * i + 1; k < o->n; i = k, k = 2 * i + 1) {
		if (k + 1 < o->n && before(o, &o->heap[k], &o->heap[k + 1]))
			k++;
		if (!before(o, x, &o->heap[k]))
			break;
		o->heap[i] = o->heap[k];
	}
	o->heap[i] = *x;
}

void job_order_take(struct job_order *o, const struct job *j)
{
	struct placed x = { .key = j->key };

	for (uint32_t i = 0; i < o->n_by; i++) {
		const int64_t v = o->by[i].of(j);

		x.v[i] = o->by[i].down ? ~v : v; /* ~: down, without an overflow */
	}
	if (o->n < o->first) {
		size_t i = o->n++;

		for (; i > 0 && before(o, &o->heap[(i - 1) / 2], &x); i = (i - 1) / 2)
			o->heap[i] = o->heap[(i - 1) / 2];
		o->heap[i] = x;
	} else if (before(o, &x, &o->heap[0])) {
		sink(o, 0, &x);
	}
}

size_t job_order_n(const struct job_order *o)
{
	return o->n;
}

struct job_key job_order_key(const struct job_order *o, size_t i)
{
	return o->heap[i].key;
}
