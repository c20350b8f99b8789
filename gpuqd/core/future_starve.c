#include "gpuqd/core/amount.h"
#include "gpuqd/core/future.h"

#include "gpuqd/core/sort.h"

/* Jobs that have waited too long have their planned starts before all others, by how
 * long they wait: then what is small and comes often cannot keep what is large waiting
 * for ever. The one that waits longest for a flavor has its planned start however large
 * it is, so each of them has one in the end: no later than starve_us and, for each that
 * waits longer, once what a job may run at most. Further ones, as many as others may have
 * planned starts, together have a small part of the flavor: more of them would leave no gap
 * for anything else on a crowded cluster.
 * A job that is more than the share of its queue has no such right where it would stand on
 * what others are owed and ask for. */

#define FURTHER_PART 8 /* one in so many devices is planned for further ones */

struct line {
	const struct snapshot *s;
	uint32_t *jobs; /* a heap, the youngest on top; then in order */
	uint32_t n, room;
};

static int64_t waits_since(const struct snap_job *j)
{
	return j->begin_us > j->eligible_us ? j->begin_us : j->eligible_us;
}

void future_note_waiting(struct cycle *c, uint32_t job)
{
	if (c->s->config.now_us - waits_since(&c->s->jobs[job]) > c->s->config.starve_us)
		c->any_starving = true;
}

/* < 0: x has waited longer */
static int cmp_wait(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_job *jobs = ctx;
	int d = sort_i64(waits_since(&jobs[x]), waits_since(&jobs[y]));

	return d ? d : sort_i64(x, y);
}

static void sift_down(struct line *l, uint32_t at)
{
	for (;;) {
		const uint32_t job = l->jobs[at];
		uint32_t top = at;

		for (uint32_t kid = 2 * at + 1; kid <= 2 * at + 2 && kid < l->n; kid++)
			if (cmp_wait(l->s->jobs, l->jobs[kid], l->jobs[top]) > 0)
				top = kid;
		if (top == at)
			return;
		l->jobs[at] = l->jobs[top];
		l->jobs[top] = job;
		at = top;
	}
}

/* Keep the longest waiting ones. */
static void offer(struct line *l, uint32_t job)
{
	if (l->n < l->room) {
		l->jobs[l->n++] = job;
		for (uint32_t i = l->n == l->room ? l->n / 2 : 0; i-- > 0;)
			sift_down(l, i);
	} else if (cmp_wait(l->s->jobs, job, l->jobs[0]) < 0) {
		l->jobs[0] = job;
		sift_down(l, 0);
	}
}

/* For so long, and for longer than it may run: on a busy cluster many jobs of days wait a
 * day, and planned starts for all of them would leave no gap for the short ones. */
static bool is_starving(const struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t waited = amount_less(c->s->config.now_us, waits_since(j));

	return j->state == SNAP_PENDING && cycle_class(c, job) != SNAP_NONE && j->n_promises == 0 &&
	       waited > c->s->config.starve_us &&
	       (j->walltime_us == GPUQ_UNLIMITED || waited > j->walltime_us);
}

/* What others are owed of the flavor and ask for: queues beside its own, and beside those
 * above it. */
static int64_t owed_to_others(const struct cycle *c, uint32_t queue, uint32_t flavor)
{
	const uint32_t parent = c->s->queues[queue].parent;
	int64_t sum = 0;

	for (uint32_t q = 0; q < c->s->n_queues; q++) {
		const size_t at = (size_t)q * c->s->n_res + flavor;
		const int64_t quota = c->s->shares[at].quota;

		if (q != queue && c->s->queues[q].parent == parent)
			sum = amount_sum(sum, quota < c->demand[at] ? quota : c->demand[at]);
	}
	return parent == SNAP_NONE ? sum : amount_sum(sum, owed_to_others(c, parent, flavor));
}

/* May it have a planned start before all others on that flavor? */
static bool has_right(const struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t need = c->s->requests[j->request].gpus_milli;
	const struct future *f = c->future;

	if (flavor == SNAP_NONE)
		return f->n_starving[c->s->n_flavors] < c->s->config.backfill_depth;
	if (c->fair[(size_t)j->queue * c->s->n_res + flavor] < need &&
	    amount_sum(owed_to_others(c, j->queue, flavor), need) > c->s->capacity[flavor])
		return false;
	return f->n_starving[flavor] == 0 ||
	       (f->n_starving[flavor] < c->s->config.backfill_depth &&
		f->starving_milli[flavor] + need <= c->s->capacity[flavor] / FURTHER_PART);
}

static void plan_one(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = &c->s->requests[j->request];
	const uint32_t n = r->gpus_milli > 0 ? r->n_flavor_ix : 1;

	for (uint32_t i = 0; i < n && !c->failed; i++) {
		const uint32_t flavor = r->gpus_milli > 0 ? r->flavor_ix[i] : SNAP_NONE;
		struct plan_reason why;

		if (!has_right(c, job, flavor))
			continue;
		if (ledger_admits(c, job, flavor, &why) && future_plan(c, job, flavor, true))
			return;
	}
}

void future_starving(struct cycle *c)
{
	struct line l = { .s = c->s };
	uint32_t *scratch;

	if (c->s->config.backfill_depth == 0 || !c->any_starving)
		return;
	for (uint32_t i = 0; i < c->s->n_jobs; i++)
		l.room += is_starving(c, i);
	if (l.room == 0 || !future_look_ahead(c))
		return;
	if (l.room > c->s->config.max_job_test)
		l.room = c->s->config.max_job_test;
	l.jobs = cycle_alloc(c, l.room, sizeof(*l.jobs));
	scratch = cycle_alloc(c, l.room, sizeof(*scratch));
	if (c->failed)
		return;
	for (uint32_t i = 0; l.room > 0 && i < c->s->n_jobs; i++)
		if (is_starving(c, i))
			offer(&l, i);
	sort_ix(l.jobs, scratch, l.n, cmp_wait, c->s->jobs);
	for (uint32_t i = 0; i < l.n && !c->failed; i++) {
		gpuq_arena_reset(&c->scratch);
		plan_one(c, l.jobs[i]);
	}
}
