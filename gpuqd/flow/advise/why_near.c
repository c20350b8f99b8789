#include "gpuqd/flow/advise/why_near.h"

#include "gpuqd/snapshot/snapshot_pack.h"
#include "gpuqd/sched/quota/priority.h"
#include "libgpuq/limits.h"

/* Pending jobs: up to FEW all are kept; else at most these of its own queue, and of all others
 * together. */
#define FEW 512u
#define OWN_MOST 160u
#define OTHERS_MOST 256u
#define OTHERS_LEAST 4u /* of each of them */

struct near {
	const struct snapshot *s;
	const struct plan *p;
	uint32_t job;
	bool *keep; /* by job of s */
	int64_t *more_milli; /* by job of s: devices that those after it request; mostly 0 */
	struct gpuq_arena mem;
};

static int64_t asks_milli(const struct snapshot *s, uint32_t job)
{
	const struct snap_job *j = &s->jobs[job];

	return s->requests[j->request].gpus_milli * j->n_waiting;
}

/* Mark the jobs that are kept whatever their rank. Returns the number of the others. */
static uint32_t mark(struct near *x)
{
	uint32_t n = 0;

	x->keep[x->job] = true;
	for (uint32_t i = 0; i < x->p->n_actions; i++) {
		const struct plan_action *a = &x->p->actions[i];

		x->keep[a->job] = true;
		if (a->claimant != SNAP_NONE)
			x->keep[a->claimant] = true;
	}
	for (uint32_t i = 0; i < x->s->n_jobs; i++) {
		const struct snap_job *j = &x->s->jobs[i];

		x->keep[i] |= j->state != SNAP_PENDING || j->n_allocs > 0 || j->n_promises > 0;
		n += !x->keep[i];
	}
	return n;
}

/* Keep the first ones of a queue, by rank. Held or gated jobs may rank before them and request
 * nothing now: they are not among them. */
static void keep_first(struct near *x, const struct priority_turn *all, uint32_t n, uint32_t most)
{
	uint32_t last = SNAP_NONE;
	int64_t *more;

	for (uint32_t i = 0, kept = 0; i < n; i++) {
		if (kept++ < most) {
			x->keep[all[i].job] = true;
			if (x->s->requests[x->s->jobs[all[i].job].request].gpus_milli > 0)
				last = all[i].job;
			continue;
		}
		if (last == SNAP_NONE)
			return;
		more = &x->more_milli[last];
		*more += asks_milli(x->s, all[i].job);
	}
}

static bool asks_now(const struct snapshot *s, const struct snap_job *j)
{
	return !j->held && j->gate == GPUQ_R_NONE && j->begin_us <= s->config.now_us;
}

static int choose(struct near *x, uint32_t n, struct gpuq_err *err)
{
	struct priority_turn *all = gpuq_arena_calloc(&x->mem, (size_t)n + 1, sizeof(*all));
	uint32_t k = 0, n_queues = 0, most;

	if (!all)
		return gpuq_no_memory(err);
	for (uint32_t i = 0; i < x->s->n_jobs; i++) {
		const struct snap_job *j = &x->s->jobs[i];

		if (!x->keep[i] && asks_now(x->s, j))
			all[k++] = priority_turn_of(x->p->priority, i);
	}
	priority_sort(all, k);
	for (uint32_t i = 0; i < k; i++)
		n_queues += i == 0 || all[i].queue != all[i - 1].queue;
	most = n_queues ? OTHERS_MOST / n_queues : 0;
	most = most > OTHERS_LEAST ? most : OTHERS_LEAST;
	for (uint32_t i = 0, end; i < k; i = end) {
		for (end = i; end < k && all[end].queue == all[i].queue; end++)
			;
		keep_first(x, all + i, end - i,
			   all[i].queue == x->s->jobs[x->job].queue ? OWN_MOST : most);
	}
	return 0;
}

/* Extend an entry by as many elements as more_milli holds. */
static int lengthen(struct near *x, struct snap_job *j, int64_t more_milli, int64_t one_milli)
{
	struct snap_range *r = gpuq_arena_calloc(&x->mem, 1, sizeof(*r));
	const int64_t n = more_milli / one_milli;

	if (!r)
		return GPUQ_ENOMEM;
	*r = (struct snap_range){ 0, (int32_t)(n < GPUQ_ARRAY_INDEX_MAX ? n : GPUQ_ARRAY_INDEX_MAX),
				  1 };
	j->ranges = r;
	j->n_ranges = 1;
	return 0;
}

/* Reduce a state that is not sealed, where jobs may have another order, to what is kept. */
static int cut(struct near *x, struct snapshot *u, struct gpuq_err *err)
{
	uint32_t *request_at =
		gpuq_arena_calloc(&x->mem, (size_t)u->n_requests + 1, sizeof(*request_at));
	uint32_t *job_at = gpuq_arena_calloc(&x->mem, (size_t)u->n_jobs + 1, sizeof(*job_at));
	uint32_t n_jobs = 0, n_requests = 0;
	int rc = 0;

	if (!request_at || !job_at)
		return gpuq_no_memory(err);
	for (uint32_t i = 0; i < u->n_jobs; i++) {
		struct snap_job *j = &u->jobs[i];
		const uint32_t at = snapshot_find_job(x->s, j->key);

		if (at == SNAP_NONE || !x->keep[at])
			continue;
		if (x->more_milli[at] && j->n_ranges == 0 && !j->throttle && at != x->job)
			rc |= lengthen(x, j, x->more_milli[at],
				       x->s->requests[x->s->jobs[at].request].gpus_milli);
		request_at[j->request] = 1;
		job_at[i] = n_jobs;
		u->jobs[n_jobs++] = *j;
	}
	for (uint32_t i = 0; i < u->n_requests; i++) {
		if (!request_at[i])
			continue;
		request_at[i] = n_requests;
		u->requests[n_requests++] = u->requests[i];
	}
	u->n_jobs = n_jobs;
	u->n_requests = n_requests;
	for (uint32_t i = 0; i < n_jobs; i++)
		u->jobs[i].request = request_at[u->jobs[i].request];
	for (uint32_t i = 0; i < u->n_allocs; i++)
		u->allocs[i].job = job_at[u->allocs[i].job];
	for (uint32_t i = 0; i < u->n_promises; i++)
		u->promises[i].job = job_at[u->promises[i].job];
	return rc == 0 ? 0 : gpuq_no_memory(err);
}

static int pack_part(struct near *x, const struct gpuq_buf *packed, struct gpuq_buf *near,
		     uint32_t *n_objects, struct gpuq_err *err)
{
	struct rec r = { (const unsigned char *)packed->data,
			 (const unsigned char *)packed->data + packed->len, false };
	struct snapshot *u = NULL;
	int rc = snapshot_unpack(&r, &u, err);

	if (rc == 0)
		rc = cut(x, u, err);
	if (rc == 0) {
		*n_objects = u->n_jobs + u->n_allocs + u->n_nodes;
		snapshot_pack(u, near);
		if (near->failed)
			rc = gpuq_no_memory(err);
	}
	snapshot_free(u);
	return rc;
}

int why_near(const struct snapshot *s, const struct plan *p, uint32_t job,
	     const struct gpuq_buf *packed, struct gpuq_buf *near, uint32_t *n_objects,
	     struct gpuq_err *err)
{
	struct near x = { .s = s, .p = p, .job = job, .mem = GPUQ_ARENA_INIT(0) };
	uint32_t n;
	int rc = 0;

	*n_objects = s->n_jobs + s->n_allocs + s->n_nodes;
	x.keep = gpuq_arena_calloc(&x.mem, (size_t)s->n_jobs + 1, sizeof(*x.keep));
	x.more_milli = gpuq_arena_calloc(&x.mem, (size_t)s->n_jobs + 1, sizeof(*x.more_milli));
	if (!x.keep || !x.more_milli) {
		gpuq_arena_done(&x.mem);
		return gpuq_no_memory(err);
	}
	n = mark(&x);
	if (n > FEW)
		rc = choose(&x, n, err);
	if (rc == 0 && n > FEW)
		rc = pack_part(&x, packed, near, n_objects, err);
	gpuq_arena_done(&x.mem);
	return rc;
}
