#include <stdlib.h>
#include <string.h>

#include "gpuqd/sim/trace/trace_log.h"

/* The record of a replay, and the clock: a heap of running attempts by end. */

#define NONE UINT32_MAX

int trace_log_init(struct trace_log *l, const struct trace *t, struct gpuq_err *err)
{
	*l = (struct trace_log){ .trace = t };
	l->last_attempt = malloc((t->n_jobs + 1) * sizeof(*l->last_attempt));
	if (!l->last_attempt)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a trace of %u jobs", t->n_jobs);
	memset(l->last_attempt, 0xff, t->n_jobs * sizeof(*l->last_attempt));
	return 0;
}

void trace_log_done(struct trace_log *l)
{
	free(l->attempts);
	free(l->places);
	free(l->last_attempt);
	free(l->heap);
	*l = (struct trace_log){ 0 };
}

static bool make_room(struct trace_log *l, void *table, uint32_t n, uint32_t *room, size_t size)
{
	void **items = table;
	uint32_t bigger = *room ? *room : 1024;
	void *p;

	if (n <= *room)
		return true;
	while (bigger < n)
		bigger *= 2;
	p = l->failed ? NULL : realloc(*items, bigger * size);
	if (!p) {
		l->failed = true;
		return false;
	}
	*items = p;
	*room = bigger;
	return true;
}

static bool sooner(const struct trace_log *l, uint32_t x, uint32_t y)
{
	const struct trace_attempt *a = &l->attempts[x], *b = &l->attempts[y];

	return a->end_us != b->end_us ? a->end_us < b->end_us : a->job < b->job;
}

static void seat(struct trace_log *l, uint32_t at, uint32_t attempt)
{
	l->heap[at] = attempt;
	l->attempts[attempt].seat = at;
}

static void sift(struct trace_log *l, uint32_t at)
{
	const uint32_t attempt = l->heap[at];
	uint32_t kid;

	for (; at > 0 && sooner(l, attempt, l->heap[(at - 1) / 2]); at = (at - 1) / 2)
		seat(l, at, l->heap[(at - 1) / 2]);
	for (; (kid = 2 * at + 1) < l->n_heap; at = kid) {
		if (kid + 1 < l->n_heap && sooner(l, l->heap[kid + 1], l->heap[kid]))
			kid++;
		if (!sooner(l, l->heap[kid], attempt))
			break;
		seat(l, at, l->heap[kid]);
	}
	seat(l, at, attempt);
}

static void unseat(struct trace_log *l, uint32_t attempt)
{
	const uint32_t at = l->attempts[attempt].seat, last = l->heap[--l->n_heap];

	l->attempts[attempt].running = false;
	if (last == attempt)
		return;
	seat(l, at, last);
	sift(l, at);
}

uint32_t trace_log_start(struct trace_log *l, uint32_t job, int64_t now_us,
			 const struct trace_place *places, uint32_t n_places)
{
	const uint32_t previous = l->last_attempt[job];

	if (!make_room(l, &l->attempts, l->n_attempts + 1, &l->room_attempts,
		       sizeof(*l->attempts)) ||
	    !make_room(l, &l->places, l->n_places + n_places, &l->room_places,
		       sizeof(*l->places)) ||
	    !make_room(l, &l->heap, l->n_heap + 1, &l->room_heap, sizeof(*l->heap)))
		return NONE;
	l->attempts[l->n_attempts] = (struct trace_attempt){
		.job = job,
		.number = previous == NONE ? 1 : l->attempts[previous].number + 1,
		.previous = previous,
		.place_first = l->n_places,
		.n_places = n_places,
		.start_us = now_us,
		.end_us = now_us + l->trace->jobs[job].duration_us,
		.running = true,
	};
	memcpy(&l->places[l->n_places], places, n_places * sizeof(*places));
	l->n_places += n_places;
	l->last_attempt[job] = l->n_attempts;
	l->heap[l->n_heap] = l->n_attempts;
	l->attempts[l->n_attempts].seat = l->n_heap++;
	sift(l, l->n_heap - 1);
	return l->n_attempts++;
}

void trace_log_evict(struct trace_log *l, uint32_t attempt, int64_t now_us)
{
	unseat(l, attempt);
	l->attempts[attempt].evicted = true;
	l->attempts[attempt].end_us = now_us;
	l->n_evictions++;
}

int64_t trace_log_next_end(const struct trace_log *l)
{
	return l->n_heap ? l->attempts[l->heap[0]].end_us : GPUQ_UNLIMITED;
}

uint32_t trace_log_take_ended(struct trace_log *l, int64_t now_us)
{
	uint32_t attempt;

	if (trace_log_next_end(l) > now_us || l->n_heap == 0)
		return NONE;
	attempt = l->heap[0];
	unseat(l, attempt);
	l->n_completed++;
	return attempt;
}

int trace_replay(const struct trace *t, const struct trace_site *site,
		 const struct trace_policy *policy, int variant, trace_progress_fn progress,
		 struct trace_log *l, struct gpuq_err *err)
{
	void *self = policy->make(t, site, l, variant);
	int64_t wake = GPUQ_UNLIMITED;
	uint32_t next = 0;
	int rc = 0;

	if (!self)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a replay");
	while (rc == 0 && l->n_completed < t->n_jobs) {
		int64_t now = trace_log_next_end(l);
		uint32_t attempt;

		if (next < t->n_jobs && t->jobs[next].submit_us < now)
			now = t->jobs[next].submit_us;
		if (wake < now)
			now = wake;
		if (now == GPUQ_UNLIMITED) {
			rc = gpuq_fail(err, GPUQ_EINTERNAL,
				       "%u of %u jobs are pending and nothing runs",
				       t->n_jobs - l->n_completed, t->n_jobs);
			break;
		}
		while (rc == 0 && (attempt = trace_log_take_ended(l, now)) != NONE)
			rc = policy->ended(self, attempt, now, err);
		while (rc == 0 && next < t->n_jobs && t->jobs[next].submit_us <= now)
			rc = policy->arrived(self, next++, err);
		wake = GPUQ_UNLIMITED;
		if (rc == 0)
			rc = policy->decide(self, now, &wake, err);
		if (rc == 0 && l->failed)
			rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory for a replay");
		/* A policy that asks to be woken at once would stop the clock. */
		if (wake <= now)
			wake = GPUQ_UNLIMITED;
		if (progress)
			progress(l, now);
	}
	policy->done(self);
	return rc;
}
