#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sim/trace/trace_peers.h"

/* Textbook policies as a baseline for the default, independent of the scheduler core: a job of up
 * to a node goes to the node where it leaves the least free, a larger one to whole nodes and the
 * rest likewise; there are no evictions.
 *   fifo       in order of arrival; a job that does not fit blocks all behind it
 *   easy       the same with backfill: others may start if that does not delay the first
 *   fair-easy  easy, with jobs of the queue with the least past use first; use decays with
 *              a half-life of seven days
 * Source: D. Lifka, "The ANL/IBM SP Scheduling System", 1995. */

#define NONE UINT32_MAX
#define HALF_LIFE_US (7 * 86400.0 * 1e6)
#define OVERRUN_US (60 * GPUQ_US_PER_S) /* a job past its estimate is assumed to end then */

/* Pending jobs in order of arrival: a linked list, since most are removed at its head. */
struct line {
	uint32_t first, last;
};

/* A running attempt, by its estimated end. */
struct release {
	int64_t end_us;
	uint32_t attempt;
};

struct peers {
	const struct trace *t;
	struct trace_site site;
	struct trace_log *log;
	enum trace_peer kind;
	uint32_t *free_gpus; /* by node */
	uint32_t *later; /* by node: scratch, free at a future time */
	uint32_t *spare; /* by node: beyond the start reservation, from its time on */
	uint32_t n_free;
	struct line *lines; /* by queue; one for all unless queues are served fairly */
	uint32_t n_lines;
	uint32_t *next; /* by job: the next in its line */
	uint32_t *order; /* of lines */
	double *used, *running; /* by line: decayed GPU-microseconds; GPUs in use now */
	int64_t used_at_us;
	struct release *releases; /* by end */
	uint32_t n_releases;
	struct trace_place *places; /* of the current job */
	uint32_t n_places;
	/* The start reservation of the first blocked job. */
	bool planned;
	int64_t planned_us;
};

static void peers_done(void *self)
{
	struct peers *p = self;

	free(p->free_gpus);
	free(p->later);
	free(p->spare);
	free(p->lines);
	free(p->next);
	free(p->order);
	free(p->used);
	free(p->running);
	free(p->releases);
	free(p->places);
	free(p);
}

static void *peers_make(const struct trace *t, const struct trace_site *site, struct trace_log *l,
			int variant)
{
	struct peers *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->t = t;
	p->site = *site;
	p->log = l;
	p->kind = (enum trace_peer)variant;
	p->n_lines = p->kind == TRACE_FAIR_EASY ? t->queues.n : 1;
	p->free_gpus = calloc(site->n_nodes, sizeof(*p->free_gpus));
	p->later = calloc(site->n_nodes, sizeof(*p->later));
	p->spare = calloc(site->n_nodes, sizeof(*p->spare));
	p->lines = calloc(p->n_lines, sizeof(*p->lines));
	p->next = calloc(t->n_jobs, sizeof(*p->next));
	p->order = calloc(p->n_lines, sizeof(*p->order));
	p->used = calloc(p->n_lines, sizeof(*p->used));
	p->running = calloc(p->n_lines, sizeof(*p->running));
	p->releases = calloc(t->n_jobs, sizeof(*p->releases));
	p->places = calloc(site->n_nodes, sizeof(*p->places));
	if (!p->free_gpus || !p->later || !p->spare || !p->lines || !p->next || !p->order ||
	    !p->used || !p->running || !p->releases || !p->places) {
		peers_done(p);
		return NULL;
	}
	for (uint32_t i = 0; i < site->n_nodes; i++)
		p->free_gpus[i] = site->gpus_per_node;
	p->n_free = site->n_nodes * site->gpus_per_node;
	for (uint32_t i = 0; i < p->n_lines; i++)
		p->lines[i] = (struct line){ NONE, NONE };
	return p;
}

static uint32_t line_of(const struct peers *p, uint32_t job)
{
	return p->n_lines > 1 ? p->t->jobs[job].queue : 0;
}

static int peers_arrived(void *self, uint32_t job, struct gpuq_err *err)
{
	struct peers *p = self;
	struct line *l = &p->lines[line_of(p, job)];

	(void)err;
	p->next[job] = NONE;
	if (l->first == NONE)
		l->first = job;
	else
		p->next[l->last] = job;
	l->last = job;
	return 0;
}

/* Bring the use of lines up to date. g GPUs held from t to t + d add g h / ln 2 (1 - 2^(-d/h)). */
static void decay(struct peers *p, int64_t now_us)
{
	const double d = (double)(now_us - p->used_at_us), f = exp2(-d / HALF_LIFE_US);

	if (now_us == p->used_at_us)
		return;
	for (uint32_t i = 0; i < p->n_lines; i++)
		p->used[i] = p->used[i] * f + p->running[i] * HALF_LIFE_US / M_LN2 * (1 - f);
	p->used_at_us = now_us;
}

/* Return the first release that ends at t or later. */
static uint32_t release_at(const struct peers *p, int64_t t)
{
	uint32_t lo = 0, hi = p->n_releases;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (p->releases[mid].end_us < t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int64_t estimated_end(const struct peers *p, uint32_t attempt)
{
	const struct trace_attempt *a = &p->log->attempts[attempt];
	const int64_t estimate = p->t->jobs[a->job].estimate_us;

	return estimate == GPUQ_UNLIMITED ? GPUQ_UNLIMITED : a->start_us + estimate;
}

static int peers_ended(void *self, uint32_t attempt, int64_t now_us, struct gpuq_err *err)
{
	struct peers *p = self;
	const struct trace_attempt *a = &p->log->attempts[attempt];
	uint32_t at = release_at(p, estimated_end(p, attempt));

	(void)err;
	decay(p, now_us);
	p->running[line_of(p, a->job)] -= p->t->jobs[a->job].gpus;
	for (uint32_t i = 0; i < a->n_places; i++) {
		const struct trace_place *place = &p->log->places[a->place_first + i];

		p->free_gpus[place->node] += place->gpus;
		p->n_free += place->gpus;
	}
	while (p->releases[at].attempt != attempt)
		at++;
	p->n_releases--;
	memmove(&p->releases[at], &p->releases[at + 1],
		(p->n_releases - at) * sizeof(*p->releases));
	return 0;
}

/* ---- places ---- */

/* Return the node with the least room that fits; of equals the lowest. */
static uint32_t tightest(const struct peers *p, const uint32_t *room, uint32_t gpus)
{
	uint32_t best = NONE;

	for (uint32_t n = 0; n < p->site.n_nodes; n++) {
		if (room[n] < gpus || (best != NONE && room[n] >= room[best]))
			continue;
		best = n;
		if (room[n] == gpus)
			break;
	}
	return best;
}

/* Find places for a job; room is left as it was. */
static bool find_places(struct peers *p, uint32_t *room, uint32_t gpus)
{
	const uint32_t whole = p->site.gpus_per_node;

	p->n_places = 0;
	while (gpus > 0) {
		const uint32_t take = gpus > whole ? whole : gpus, node = tightest(p, room, take);

		if (node == NONE)
			break;
		p->places[p->n_places++] = (struct trace_place){ node, take };
		room[node] -= take;
		gpus -= take;
	}
	for (uint32_t i = 0; i < p->n_places; i++)
		room[p->places[i].node] += p->places[i].gpus;
	return gpus == 0;
}

static void start(struct peers *p, uint32_t job, int64_t now_us)
{
	const uint32_t attempt = trace_log_start(p->log, job, now_us, p->places, p->n_places);
	int64_t end;
	uint32_t at;

	if (attempt == NONE)
		return;
	end = estimated_end(p, attempt);
	at = release_at(p, end);
	memmove(&p->releases[at + 1], &p->releases[at],
		(p->n_releases - at) * sizeof(*p->releases));
	p->releases[at] = (struct release){ end, attempt };
	p->n_releases++;
	p->running[line_of(p, job)] += p->t->jobs[job].gpus;
	for (uint32_t i = 0; i < p->n_places; i++) {
		p->free_gpus[p->places[i].node] -= p->places[i].gpus;
		p->n_free -= p->places[i].gpus;
		if (p->planned && end > p->planned_us)
			p->spare[p->places[i].node] -= p->places[i].gpus;
	}
}

/* Make the start reservation: when the job could start if no other did, and what would be left over
 * then. */
static void plan(struct peers *p, uint32_t job, int64_t now_us)
{
	const uint32_t gpus = p->t->jobs[job].gpus;
	uint32_t n = p->n_free;

	memcpy(p->later, p->free_gpus, p->site.n_nodes * sizeof(*p->later));
	for (uint32_t i = 0; i < p->n_releases && p->releases[i].end_us != GPUQ_UNLIMITED;) {
		const int64_t t = p->releases[i].end_us;

		for (; i < p->n_releases && p->releases[i].end_us == t; i++) {
			const struct trace_attempt *a = &p->log->attempts[p->releases[i].attempt];

			for (uint32_t k = 0; k < a->n_places; k++) {
				p->later[p->log->places[a->place_first + k].node] +=
					p->log->places[a->place_first + k].gpus;
				n += p->log->places[a->place_first + k].gpus;
			}
		}
		if (n < gpus || !find_places(p, p->later, gpus))
			continue;
		p->planned = true;
		p->planned_us = t > now_us ? t : now_us + OVERRUN_US;
		memcpy(p->spare, p->later, p->site.n_nodes * sizeof(*p->spare));
		for (uint32_t k = 0; k < p->n_places; k++)
			p->spare[p->places[k].node] -= p->places[k].gpus;
		return;
	}
}

/* Find places for a job that do not delay the start reservation. */
static bool find_beside(struct peers *p, uint32_t job, int64_t now_us)
{
	const struct trace_job *j = &p->t->jobs[job];
	const int64_t estimate = j->estimate_us;

	if (!p->planned || (estimate != GPUQ_UNLIMITED && now_us + estimate <= p->planned_us))
		return find_places(p, p->free_gpus, j->gpus);
	for (uint32_t n = 0; n < p->site.n_nodes; n++)
		p->later[n] = p->free_gpus[n] < p->spare[n] ? p->free_gpus[n] : p->spare[n];
	return find_places(p, p->later, j->gpus);
}

static void order_lines(struct peers *p)
{
	for (uint32_t i = 0; i < p->n_lines; i++) {
		uint32_t at = i;

		for (; at > 0 && p->used[p->order[at - 1]] > p->used[i]; at--)
			p->order[at] = p->order[at - 1];
		p->order[at] = i;
	}
}

static int peers_decide(void *self, int64_t now_us, int64_t *wake_us, struct gpuq_err *err)
{
	struct peers *p = self;
	bool blocked = false;

	(void)wake_us;
	(void)err;
	decay(p, now_us);
	order_lines(p);
	p->planned = false;
	for (uint32_t i = 0; i < p->n_lines && p->n_free > 0; i++) {
		struct line *l = &p->lines[p->order[i]];
		uint32_t before = NONE;

		for (uint32_t job = l->first; job != NONE && p->n_free > 0; job = p->next[job]) {
			const uint32_t gpus = p->t->jobs[job].gpus;

			if (gpus <= p->n_free && find_beside(p, job, now_us)) {
				if (before == NONE)
					l->first = p->next[job];
				else
					p->next[before] = p->next[job];
				if (l->last == job)
					l->last = before;
				start(p, job, now_us);
				continue;
			}
			before = job;
			if (blocked)
				continue;
			blocked = true;
			if (p->kind == TRACE_FIFO)
				return 0;
			plan(p, job, now_us);
		}
	}
	return 0;
}

const struct trace_policy trace_peers = { peers_make, peers_done, peers_arrived, peers_ended,
					  peers_decide };
