#include "gpuqd/sched/timeline/reservations_end.h"

#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/sched/timeline/timeline_int.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/sort.h"

/* The end of a reservation: jobs that would run beyond it are signalled before, their grace period
 * ahead, and no such job starts in it any more. That a job ran there is seen from its placement and its
 * nodes alone, so that the answer is the same after a restart, and after the reservation was moved.
 * Devices of an amount are no particular ones: of the jobs that count for it the first are in it. */

#define LEAST_US (30 * GPUQ_US_PER_S) /* a signal earlier than that, whatever the grace period */
#define WORTH_US (60 * GPUQ_US_PER_S) /* no job starts that must be signalled sooner */
#define SLACK_US (60 * GPUQ_US_PER_S) /* a job that ends so shortly after ends in time */

struct job_end {
	int64_t end_us, signal_us; /* end 0 = it is in no reservation that ends it */
};

static const struct snap_reservation *slice(const struct cycle *c, uint32_t i)
{
	return &c->s->reservations[i];
}

/* Return when the job is signalled; no more than half of the reservation before its end. */
static int64_t signal_us(const struct cycle *c, uint32_t i, uint32_t job)
{
	const struct snap_reservation *r = slice(c, i);
	const int64_t half = (r->end_us - r->start_us) / 2;
	const int64_t own = c->s->jobs[job].grace_us;
	int64_t grace = own > LEAST_US ? own : LEAST_US;

	grace = grace < half ? grace : half;
	return r->end_us - grace;
}

/* Return from when on no job starts that would run beyond the end. */
static int64_t closes_us(const struct cycle *c, uint32_t i, uint32_t job)
{
	const struct snap_reservation *r = slice(c, i);
	const int64_t at = signal_us(c, i, job) - WORTH_US;

	return at > r->start_us ? at : r->start_us + (r->end_us - r->start_us) / 2;
}

/* True if a job that runs from t on ends by itself before the reservation does. */
static bool in_time(const struct cycle *c, uint32_t i, int64_t t, int64_t walltime_us)
{
	return amount_later(t, walltime_us) <= amount_sum(slice(c, i)->end_us, SLACK_US);
}

bool reservations_admits(const struct cycle *c, uint32_t reservation, uint32_t job, int64_t t)
{
	return reservations_owns(c, reservation, job) &&
	       (!slice(c, reservation)->ends_jobs || t < closes_us(c, reservation, job) ||
		in_time(c, reservation, t, timeline_walltime(c, job, t)));
}

static int64_t placed_us(const struct snap_job *j)
{
	return j->placed_us ? j->placed_us : j->start_us;
}

/* True if a pod of the job is in what the reservation keeps; all: if they all are. */
static bool holds(const struct cycle *c, uint32_t i, uint32_t job, bool all)
{
	const struct snap_job *j = &c->s->jobs[job];
	uint32_t n = 0;

	for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++)
		n += reservations_has(c, i, &c->s->allocs[a]);
	return all ? n > 0 && n == j->n_allocs : n > 0;
}

/* True if the job was started in the reservation. */
static bool started_in(const struct cycle *c, uint32_t i, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];

	return j->state == SNAP_RUNNING && placed_us(j) >= slice(c, i)->start_us &&
	       placed_us(j) < closes_us(c, i, job) && reservations_owns(c, i, job) &&
	       holds(c, i, job, false);
}

/* Return a reservation of whole nodes that keeps the job's nodes for it beyond that end; SNAP_NONE =
 * none does. Recurring ones may follow each other without a gap. */
static uint32_t continues_in(const struct cycle *c, uint32_t job, int64_t end_us)
{
	for (uint32_t k = 0; k < c->s->n_reservations; k++) {
		const struct snap_reservation *r = slice(c, k);

		if (r->gpus_milli == 0 && r->start_us <= end_us && r->end_us > end_us &&
		    reservations_owns(c, k, job) && holds(c, k, job, true))
			return k;
	}
	return SNAP_NONE;
}

/* Note the end of a job that was started in the reservation. The last one counts. */
static void note(const struct cycle *c, struct job_end *ends, uint32_t i, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t from = j->starting ? c->s->config.now_us : j->start_us;
	uint32_t next;

	while ((next = continues_in(c, job, slice(c, i)->end_us)) != SNAP_NONE)
		i = next;
	if (!slice(c, i)->ends_jobs || in_time(c, i, from, j->walltime_us))
		ends[job] = (struct job_end){ GPUQ_UNLIMITED, GPUQ_UNLIMITED };
	else if (slice(c, i)->end_us > ends[job].end_us)
		ends[job] = (struct job_end){ slice(c, i)->end_us, signal_us(c, i, job) };
}

/* Note the ends of the jobs of one reservation. */
static void note_all(struct cycle *c, struct job_end *ends, uint32_t i)
{
	const uint32_t n_busy = c->s->lines.n_busy;
	struct sort_pair *in = cycle_scratch(c, 2 * (size_t)n_busy, sizeof(*in));
	int64_t left = slice(c, i)->gpus_milli / SNAP_MILLI;
	uint32_t n = 0;

	for (uint32_t k = 0; in && k < n_busy; k++) {
		const uint32_t job = c->s->lines.busy[k];

		if (started_in(c, i, job))
			in[n++] = (struct sort_pair){ (uint64_t)placed_us(&c->s->jobs[job]), job };
	}
	if (!in || n == 0)
		return;
	sort_pairs(in, in + n_busy, n);
	for (uint32_t k = 0; k < n && (slice(c, i)->gpus_milli == 0 || left > 0); k++) {
		const struct snap_job *j = &c->s->jobs[in[k].ix];

		note(c, ends, i, in[k].ix);
		for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++)
			if (reservations_has(c, i, &c->s->allocs[a]))
				left -= c->s->allocs[a].n_devices;
	}
}

void reservations_find_ends(struct cycle *c)
{
	struct job_end *ends = NULL;

	for (uint32_t i = 0; i < c->s->n_reservations && !c->failed; i++) {
		const struct snap_reservation *r = slice(c, i);

		if (!r->ends_jobs || r->maintenance || r->start_us > c->s->config.now_us)
			continue;
		if (!ends)
			ends = cycle_alloc(c, c->s->n_jobs, sizeof(*ends));
		if (ends)
			note_all(c, ends, i);
	}
	c->timeline->future->job_ends = ends;
}

/* Return its end; NULL = no reservation ends it. */
static const struct job_end *end_of(const struct cycle *c, uint32_t job)
{
	const struct job_end *e = c->timeline->future->job_ends;

	return e && e[job].end_us != 0 && e[job].end_us != GPUQ_UNLIMITED ? &e[job] : NULL;
}

int64_t reservations_ends(const struct cycle *c, uint32_t job)
{
	const struct job_end *e = end_of(c, job);

	return e ? e->end_us : GPUQ_UNLIMITED;
}

void reservations_end(struct cycle *c)
{
	for (uint32_t k = 0; c->timeline->future->job_ends && k < c->s->lines.n_busy && !c->failed;
	     k++) {
		const uint32_t job = c->s->lines.busy[k];
		const struct job_end *e = end_of(c, job);

		if (!e || timeline_leaves(c, job))
			continue;
		if (e->signal_us > c->s->config.now_us) {
			timeline_wake(c, e->signal_us);
			continue;
		}
		timeline_evict(c, job, GPUQ_CAUSE_DRAIN, SNAP_NONE,
			       gpuq_rule_word(GPUQ_RULE_RESERVATION_ENDS));
		c->timeline->future->stale = true;
	}
}
