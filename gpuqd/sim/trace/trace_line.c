#include "gpuqd/sim/trace/trace_line.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/util/sort.h"

#define RANK_US (300 * GPUQ_US_PER_S)

bool trace_line_init(struct trace_line *l, const struct trace *t)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct intern kinds = INTERN_INIT(&mem);
	bool ok;

	*l = (struct trace_line){ .t = t };
	l->jobs = calloc(t->n_jobs + 1, sizeof(*l->jobs));
	l->kinds = calloc(t->n_jobs + 1, sizeof(*l->kinds));
	l->order = calloc(t->n_jobs + 1, sizeof(*l->order));
	l->scratch = calloc(t->n_jobs + 1, sizeof(*l->scratch));
	l->points = calloc(t->n_jobs + 1, sizeof(*l->points));
	l->picked = calloc(t->n_jobs + 1, sizeof(*l->picked));
	l->entries = calloc(t->n_jobs + 1, sizeof(*l->entries));
	ok = l->jobs && l->kinds && l->order && l->scratch && l->points && l->picked && l->entries;
	for (uint32_t i = 0; ok && i < t->n_jobs; i++) {
		const struct trace_job *j = &t->jobs[i];
		const uint32_t key[] = { j->queue, j->user, j->gpus, j->preemptible };
		const uint32_t k = intern(&kinds, key, sizeof(key), NULL);

		ok = k != INTERN_FAILED;
		if (!ok)
			break;
		l->jobs[i].kind = k;
		l->kinds[k] = (struct trace_kind){ TRACE_NONE, TRACE_NONE, 0 };
	}
	l->n_kinds = kinds.n;
	intern_done(&kinds);
	gpuq_arena_done(&mem);
	return ok;
}

void trace_line_done(struct trace_line *l)
{
	free(l->jobs);
	free(l->kinds);
	free(l->order);
	free(l->scratch);
	free(l->points);
	free(l->picked);
	free(l->entries);
	memset(l, 0, sizeof(*l));
}

void trace_line_enter(struct trace_line *l, uint32_t job, bool evicted)
{
	struct trace_kind *k = &l->kinds[l->jobs[job].kind];
	const uint32_t before = evicted ? TRACE_NONE : k->last;
	const uint32_t after = evicted ? k->first : TRACE_NONE;

	l->jobs[job].n_evictions += evicted;
	l->jobs[job].before = before;
	l->jobs[job].after = after;
	*(before == TRACE_NONE ? &k->first : &l->jobs[before].after) = job;
	*(after == TRACE_NONE ? &k->last : &l->jobs[after].before) = job;
	k->n++;
	l->n++;
}

void trace_line_leave(struct trace_line *l, uint32_t job)
{
	struct trace_kind *k = &l->kinds[l->jobs[job].kind];
	const uint32_t before = l->jobs[job].before, after = l->jobs[job].after;

	*(before == TRACE_NONE ? &k->first : &l->jobs[before].after) = after;
	*(after == TRACE_NONE ? &k->last : &l->jobs[after].before) = before;
	k->n--;
	l->n--;
}

static int cmp_points(const void *ctx, uint32_t x, uint32_t y)
{
	const int64_t *points = ctx;
	const int d = sort_i64(points[y], points[x]);

	return d ? d : sort_i64(x, y); /* jobs are numbered in order of arrival */
}

/* Sort the jobs of a kind in order of service; all other terms are equal within it. */
static void rank(struct trace_line *l, struct trace_kind *k, const struct snap_weights *w,
		 int64_t now_us)
{
	uint32_t n = 0;

	for (uint32_t job = k->first; job != TRACE_NONE; job = l->jobs[job].after) {
		const struct trace_job *j = &l->t->jobs[job];

		l->points[job] = priority_of_wait(w, now_us - j->submit_us, j->estimate_us,
						  l->jobs[job].n_evictions);
		l->order[n++] = job;
	}
	if (n < 2)
		return;
	sort_ix(l->order, l->scratch, n, cmp_points, l->points);
	k->first = l->order[0];
	k->last = l->order[n - 1];
	for (uint32_t at = 0; at < n; at++) {
		l->jobs[l->order[at]].before = at ? l->order[at - 1] : TRACE_NONE;
		l->jobs[l->order[at]].after = at + 1 < n ? l->order[at + 1] : TRACE_NONE;
	}
}

void trace_line_rank(struct trace_line *l, const struct snap_weights *w, int64_t now_us)
{
	if (now_us - l->ranked_us < RANK_US)
		return;
	l->ranked_us = now_us;
	for (uint32_t i = 0; i < l->n_kinds; i++)
		rank(l, &l->kinds[i], w, now_us);
}

static int cmp_entry(const void *ctx, uint32_t x, uint32_t y)
{
	const struct keep_pending *entries = ctx;

	return sort_i64(entries[x].id, entries[y].id);
}

uint32_t trace_line_pick(struct trace_line *l, uint32_t most)
{
	struct keep_pending *all = l->picked;
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n_kinds; i++) {
		const struct trace_kind *k = &l->kinds[i];
		uint32_t shown = 0;

		for (uint32_t job = k->first; job != TRACE_NONE; job = l->jobs[job].after) {
			const bool rest = shown == most && k->n - shown > 1;

			l->order[n] = n;
			all[n++] = (struct keep_pending){ job + 1, rest ? k->n - shown : 0 };
			if (rest)
				break;
			shown += shown < most;
		}
	}
	sort_ix(l->order, l->scratch, n, cmp_entry, all);
	for (uint32_t i = 0; i < n; i++)
		l->entries[i] = all[l->order[i]];
	return n;
}

/* A job without an entry is behind `most` that are alike, more than there are GPUs: one of those did
 * not start. If it found no room, those behind it find none. If a start reservation kept it from
 * starting, a shorter one behind it might have started: only if something is free once there is a
 * start reservation. */
bool trace_line_exact(const struct trace_line *l, const struct plan *p, uint32_t most,
		      uint32_t n_free)
{
	uint32_t left = n_free;
	bool omitted = false, planned = false;

	for (uint32_t k = 0; k < l->n_kinds; k++)
		omitted |= l->kinds[k].n > most;
	for (uint32_t i = 0; omitted && i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];

		if (a->kind == PLAN_RESERVE) {
			planned = true;
			continue;
		}
		if (a->kind != PLAN_PLACE || planned || a->key.index >= 0)
			return false;
		left -= l->t->jobs[a->key.id - 1].gpus;
	}
	return !omitted || left == 0;
}
