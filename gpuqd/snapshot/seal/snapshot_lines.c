#include "gpuqd/snapshot/seal/snapshot_lines.h"

#include <string.h>

#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/snapshot/snapshot_build.h"

/* Sealing: pending jobs as runs of jobs that differ in their age alone, and the other jobs. A cycle
 * then evaluates runs, of which there are few, and the jobs whose turn comes. */

/* Every field of a pending job that affects its scheduling, except how long it has been pending. */
struct likeness {
	uint32_t usage; /* its queue and user */
	uint32_t request, n_evicted_day, gate_object, capset;
	uint8_t held, gate, preemptible, none; /* none: 0, since it is hashed byte by byte */
	int64_t charge_milli, priority, nice, boost, fixed_priority;
	int64_t begin_us, deadline_us, walltime_us, walltime_min_us;
	int64_t wait_from_us; /* 0 = it may use all of its flavors */
	uint32_t wait_at, none_more; /* none_more: 0 */
};

/* Intermediate data of building the lines. */
struct lining {
	struct snapshot *s;
	struct gpuq_arena *mem; /* of the tables */
	struct gpuq_arena keys;
	struct intern likes, objects; /* kinds of jobs; names of what gates them */
	uint32_t *n_asking; /* by request: pending jobs */
	uint32_t *newest; /* by likeness: the last run of it */
	uint32_t room_newest;
	struct likeness *last; /* by queue: of its last job, in newest order */
	uint32_t *last_run; /* by queue: where that one is; SNAP_NONE */
	uint32_t *tail; /* by queue: its last run */
};

/* Grow a table of *room items to at least n; its content is kept. False: no memory. */
static bool widen(struct gpuq_arena *mem, void *table, uint32_t *room, uint32_t n, size_t size)
{
	void **items = table;
	uint32_t more = *room ? *room : 64;
	void *p;

	if (n <= *room)
		return true;
	while (more < n)
		more *= 2;
	p = gpuq_arena_calloc(mem, more, size);
	if (!p)
		return false;
	if (*room)
		memcpy(p, *items, *room * size);
	*items = p;
	*room = more;
	return true;
}

/* Set what jobs of one queue must have in common to be decided as one run; a name of what gates
 * them counts by its number. False without memory. */
static bool likeness_of(struct lining *l, const struct snap_job *j, struct likeness *out)
{
	int64_t next;

	memset(out, 0, sizeof(*out));
	out->usage = j->usage;
	out->request = j->request;
	out->n_evicted_day = j->n_evicted_day;
	out->held = j->held;
	out->gate = j->gate;
	out->preemptible = j->preemptible;
	out->priority = j->priority;
	out->nice = j->nice;
	out->capset = j->capset;
	out->charge_milli = j->charge_milli;
	out->boost = j->boost;
	out->begin_us = j->begin_us;
	out->deadline_us = j->deadline_us;
	out->walltime_us = j->walltime_us;
	out->walltime_min_us = j->walltime_min_us;
	out->fixed_priority = j->fixed_priority;
	if (l->s->requests[j->request].wait_ix_us &&
	    snap_flavors_open(l->s, j, &next) < l->s->requests[j->request].n_flavor_ix) {
		out->wait_at = j->wait_at;
		out->wait_from_us = j->wait_from_us;
	}
	if (j->gate_object && *j->gate_object)
		out->gate_object =
			intern(&l->objects, j->gate_object, strlen(j->gate_object), NULL) + 1;
	return out->gate_object != INTERN_FAILED + 1 || !j->gate_object || !*j->gate_object;
}

/* True if it must be evaluated alone: arrays, throttles, nominated placements and nodes to avoid
 * are particular to one job, and so is a request that no other pending job has. */
static bool stands_alone(const struct lining *l, const struct snap_job *j)
{
	return l->n_asking[j->request] < 2 || j->n_ranges > 0 || j->throttle > 0 ||
	       j->n_promises > 0 || j->n_exclude > 0;
}

/* True if it is no older than the last of the run, so that it follows it whatever the weights
 * are. */
static bool comes_after(const struct snapshot *s, const struct snap_run *r, uint32_t job)
{
	const struct snap_job *last = &s->jobs[r->last], *j = &s->jobs[job];

	return j->eligible_us >= last->eligible_us && j->submit_us >= last->submit_us;
}

/* Open a new run with that job in it; SNAP_NONE = no memory. */
static uint32_t open_run(struct lining *l, uint32_t job)
{
	struct snap_lines *lines = &l->s->lines;
	const uint32_t q = l->s->jobs[job].queue, run = lines->n_runs;

	if (!widen(l->mem, &lines->runs, &lines->room_runs, run + 1, sizeof(*lines->runs)))
		return SNAP_NONE;
	lines->runs[run] = (struct snap_run){ job, job, 1, SNAP_NONE };
	if (lines->first_run[q] == SNAP_NONE)
		lines->first_run[q] = run;
	else
		lines->runs[l->tail[q]].next = run;
	l->tail[q] = run;
	lines->n_runs++;
	return run;
}

/* Append a job to a run. */
static void join_run(struct snap_lines *lines, uint32_t run, uint32_t job)
{
	struct snap_run *r = &lines->runs[run];

	lines->behind[r->last] = job;
	r->last = job;
	r->n_jobs++;
}

/* Find the run that the job may join; SNAP_NONE = none yet. *newest = where the next job of its
 * kind looks for one, NULL for a job that is evaluated alone. */
static bool find_run(struct lining *l, uint32_t job, uint32_t *run, uint32_t **newest)
{
	const struct snap_job *j = &l->s->jobs[job];
	struct likeness like;
	uint32_t number;

	*run = SNAP_NONE;
	*newest = NULL;
	if (stands_alone(l, j))
		return true;
	if (!likeness_of(l, j, &like))
		return false;
	/* Most are like the previous job of their queue. */
	if (l->last_run[j->queue] != SNAP_NONE &&
	    memcmp(&l->last[j->queue], &like, sizeof(like)) == 0) {
		number = l->last_run[j->queue];
	} else {
		number = intern(&l->likes, &like, sizeof(like), NULL);
		if (number == INTERN_FAILED ||
		    !widen(&l->keys, &l->newest, &l->room_newest, number + 1, sizeof(*l->newest)))
			return false;
		l->last[j->queue] = like;
		l->last_run[j->queue] = number;
	}
	*newest = &l->newest[number];
	*run = **newest ? **newest - 1 : SNAP_NONE;
	return true;
}

/* Put a job into the run of its kind if it comes behind all of it, else open one: within a run the
 * order of service is the order of the list. */
static bool line_up(struct lining *l, uint32_t job)
{
	struct snap_lines *lines = &l->s->lines;
	uint32_t run, *newest;

	lines->behind[job] = SNAP_NONE;
	if (!find_run(l, job, &run, &newest))
		return false;
	if (run != SNAP_NONE && comes_after(l->s, &lines->runs[run], job)) {
		join_run(lines, run, job);
	} else {
		run = open_run(l, job);
		if (run == SNAP_NONE)
			return false;
		if (newest)
			*newest = run + 1;
	}
	lines->run_of[job] = run;
	return true;
}

/* Number the entries of an array, which are adjacent, if the array has a throttle. */
static void number_array(struct snapshot *s, uint32_t job, uint32_t *first)
{
	struct snap_lines *lines = &s->lines;

	if (s->jobs[job].key.id != s->jobs[*first].key.id)
		*first = job;
	lines->array_of[job] = *first == job ? SNAP_NONE : lines->array_of[job - 1];
	if (s->jobs[job].throttle == 0 || lines->array_of[job] != SNAP_NONE)
		return;
	for (uint32_t i = *first; i <= job; i++)
		lines->array_of[i] = lines->n_arrays;
	lines->n_arrays++;
}

/* True if something of the job may start. */
static bool is_waiting(const struct snap_job *j)
{
	return j->state == SNAP_PENDING && j->n_waiting > 0;
}

/* Get the tables that have an entry for each job or queue. Those for jobs are an eighth larger
 * than needed, since a kept snapshot is lined up again with a few more. */
static bool make_room(struct lining *l)
{
	struct snapshot *s = l->s;
	struct snap_lines *lines = &s->lines;
	uint32_t n_single = 0;

	if (!lines->first_run)
		lines->first_run =
			gpuq_arena_calloc(l->mem, s->n_queues, sizeof(*lines->first_run));
	if (lines->room_jobs < s->n_jobs) {
		uint32_t *tables[4];
		const uint32_t room = s->n_jobs + s->n_jobs / 8;

		for (int i = 0; i < 4; i++) {
			tables[i] = gpuq_arena_calloc(l->mem, room, sizeof(*tables[i]));
			if (!tables[i])
				return false;
		}
		lines->run_of = tables[0];
		lines->behind = tables[1];
		lines->busy = tables[2];
		lines->array_of = tables[3];
		lines->room_jobs = room;
	}
	l->n_asking = gpuq_arena_calloc(&l->keys, s->n_requests, sizeof(*l->n_asking));
	l->last = gpuq_arena_calloc(&l->keys, s->n_queues, sizeof(*l->last));
	l->last_run = gpuq_arena_calloc(&l->keys, s->n_queues, sizeof(*l->last_run));
	l->tail = gpuq_arena_calloc(&l->keys, s->n_queues, sizeof(*l->tail));
	if (!lines->first_run || !l->n_asking || !l->last || !l->last_run || !l->tail)
		return false;
	for (uint32_t q = 0; q < s->n_queues; q++)
		lines->first_run[q] = l->last_run[q] = SNAP_NONE;
	for (uint32_t i = 0; i < s->n_jobs; i++)
		l->n_asking[s->jobs[i].request] += is_waiting(&s->jobs[i]);
	for (uint32_t i = 0; i < s->n_requests; i++)
		n_single += l->n_asking[i] == 1;
	if (!widen(l->mem, &lines->runs, &lines->room_runs, n_single, sizeof(*lines->runs)))
		return false;
	lines->n_runs = lines->n_busy = lines->n_arrays = 0;
	return true;
}

bool snapshot_line_up(struct snapshot *s, struct gpuq_arena *mem)
{
	struct lining l = { .s = s, .mem = mem };
	struct snap_lines *lines = &s->lines;
	uint32_t first = 0;
	bool ok;

	l.likes.arena = l.objects.arena = &l.keys;
	ok = make_room(&l);
	for (uint32_t i = 0; ok && i < s->n_jobs; i++) {
		const struct snap_job *j = &s->jobs[i];

		number_array(s, i, &first);
		lines->run_of[i] = SNAP_NONE;
		if (j->state != SNAP_PENDING || j->n_promises > 0)
			lines->busy[lines->n_busy++] = i;
		if (is_waiting(j))
			ok = line_up(&l, i);
	}
	intern_done(&l.likes);
	intern_done(&l.objects);
	gpuq_arena_done(&l.keys);
	return ok;
}

int snapshot_seal_lines(struct seal *w)
{
	return snapshot_line_up(w->s, &w->s->arena) ? 0 : gpuq_no_memory(w->err);
}
