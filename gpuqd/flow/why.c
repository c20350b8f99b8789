#include "gpuqd/flow/why.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/amount.h"
#include "gpuqd/core/sched.h"
#include "gpuqd/core/snapshot_pack.h"
#include "gpuqd/core/view.h"
#include "gpuqd/flow/why_change.h"
#include "libgpuq/units.h"

#define AHEAD_MAX 10u

/* ---- in the line of its queue ---- */

/* The terms by name, as they count towards the total. */
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

/* What puts one before the other most. Equal sums: who was submitted first. */
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

struct waiting {
	const struct snapshot *s;
	uint32_t job;
	uint64_t key;
};

static int by_line(const void *x, const void *y)
{
	const struct waiting *a = x, *b = y;
	const struct snap_job *p = &a->s->jobs[a->job], *q = &b->s->jobs[b->job];

	if (a->key != b->key)
		return a->key > b->key ? -1 : 1;
	if (p->submit_us != q->submit_us)
		return p->submit_us < q->submit_us ? -1 : 1;
	return a->job < b->job ? -1 : a->job > b->job;
}

static void put_line(struct why_case *c, struct gpuq_val *v)
{
	const struct snapshot *s = c->s;
	struct waiting *line = gpuq_arena_calloc(c->a, s->n_jobs + 1, sizeof(*line));
	struct gpuq_val *ahead = gpuq_list(c->a), *own;
	struct priority_terms mine, other;
	uint32_t n = 0, at = 0;

	for (uint32_t i = 0; line && i < s->n_jobs; i++)
		if (s->jobs[i].n_waiting && s->jobs[i].queue == s->jobs[c->job].queue)
			line[n++] = (struct waiting){ s, i, priority_key(c->p->priority, i) };
	if (!line || n == 0)
		return;
	qsort(line, n, sizeof(*line), by_line);
	while (at < n && line[at].job != c->job)
		at++;
	priority_terms(c->p->priority, c->job, &mine);
	for (uint32_t i = at; i-- > 0 && at - i <= AHEAD_MAX;) {
		struct gpuq_val *one = why_job(c->a, s, line[i].job);
		const char *by;
		int64_t points;

		priority_terms(c->p->priority, line[i].job, &other);
		by = deciding(&other, &mine, &points);
		gpuq_put(c->a, one, "priority", gpuq_int(c->a, other.total));
		gpuq_put(c->a, one, "by", gpuq_str(c->a, by));
		gpuq_put(c->a, one, "points", gpuq_int(c->a, points));
		gpuq_add(c->a, ahead, one);
	}
	own = priority_terms_val(c->a, &mine);
	gpuq_put(c->a, own, "total", gpuq_int(c->a, mine.total));
	gpuq_put(c->a, v, "place", gpuq_int(c->a, at + 1));
	gpuq_put(c->a, v, "waiting", gpuq_int(c->a, n));
	gpuq_put(c->a, v, "terms", own);
	gpuq_put(c->a, v, "ahead", ahead);
}

/* ---- among the queues ---- */

/* The sum over the flavors that the job may use; those of which there is nothing say
 * nothing, as long as there are others. */
static int64_t over_flavors(const struct why_case *c, const int64_t *first, size_t step)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[c->job].request];
	bool any = false;
	int64_t sum = 0;

	for (uint32_t i = 0; i < r->n_flavor_ix; i++)
		any |= c->s->capacity[r->flavor_ix[i]] > 0;
	for (uint32_t i = 0; i < r->n_flavor_ix; i++)
		if (!any || c->s->capacity[r->flavor_ix[i]] > 0)
			sum = amount_sum(sum, first[r->flavor_ix[i] * step]);
	return sum;
}

static struct gpuq_val *queue_val(const struct why_case *c, uint32_t q, uint32_t waiting)
{
	const struct snapshot *s = c->s;
	const size_t at = (size_t)q * s->n_res;
	const struct snap_share *share = &s->shares[at];
	const size_t step = sizeof(*share) / sizeof(int64_t);
	struct gpuq_val *v = gpuq_map(c->a);

	gpuq_put(c->a, v, "name", gpuq_str(c->a, s->queues[q].name));
	gpuq_put(c->a, v, "depth", gpuq_int(c->a, s->queues[q].depth));
	gpuq_put(c->a, v, "waiting", gpuq_int(c->a, waiting));
	gpuq_put(c->a, v, "allocated",
		 view_devices(c->a, over_flavors(c, &c->p->allocated[at], 1)));
	gpuq_put(c->a, v, "fair_share",
		 view_devices(c->a, over_flavors(c, &c->p->fair_share[at], 1)));
	gpuq_put(c->a, v, "quota", view_devices(c->a, over_flavors(c, &share->quota, step)));
	gpuq_put(c->a, v, "limit", view_devices(c->a, over_flavors(c, &share->limit, step)));
	return v;
}

/* A tree, children behind their parent; SNAP_NONE: below the root. */
static void put_below(const struct why_case *c, uint32_t parent, const uint32_t *waiting,
		      struct gpuq_val *list)
{
	for (uint32_t q = parent == SNAP_NONE ? 0 : parent + 1; q < c->s->n_queues; q++) {
		if (c->s->queues[q].parent != parent || !waiting[q])
			continue;
		gpuq_add(c->a, list, queue_val(c, q, waiting[q]));
		put_below(c, q, waiting, list);
	}
}

static void put_queues(struct why_case *c, struct gpuq_val *v)
{
	const struct snapshot *s = c->s;
	uint32_t *waiting = gpuq_arena_calloc(c->a, s->n_queues + 1, sizeof(*waiting));
	struct gpuq_val *list = gpuq_list(c->a);

	for (uint32_t i = 0; waiting && i < s->n_jobs; i++)
		waiting[s->jobs[i].queue] += s->jobs[i].n_waiting;
	/* Children stand behind their parents. */
	for (uint32_t q = s->n_queues; waiting && q-- > 0;)
		if (s->queues[q].parent != SNAP_NONE)
			waiting[s->queues[q].parent] += waiting[q];
	if (waiting)
		put_below(c, SNAP_NONE, waiting, list);
	gpuq_put(c->a, v, "queues", list);
}

/* ---- what would happen now ---- */

static void put_next(struct why_case *c, struct gpuq_val *v)
{
	static const char *const outcomes[] = { "wait", "wait", "start", "claim" };
	const enum why_outcome out = why_outcome_of(c->p, c->tries->key);
	struct gpuq_val *victims = gpuq_list(c->a);

	gpuq_put(c->a, v, "next", gpuq_str(c->a, outcomes[out]));
	for (uint32_t i = 0; i < c->p->n_actions; i++) {
		const struct plan_action *a = &c->p->actions[i];
		struct gpuq_val *one;

		if ((a->kind != PLAN_EVICT && a->kind != PLAN_SHRINK && a->kind != PLAN_MOVE) ||
		    a->claimant != c->job)
			continue;
		one = why_job(c->a, c->s, a->job);
		gpuq_put(c->a, one, "cause", gpuq_str(c->a, gpuq_cause_word(a->cause)));
		gpuq_put(c->a, one, "rule", gpuq_str(c->a, a->rule ? a->rule : ""));
		gpuq_add(c->a, victims, one);
	}
	gpuq_put(c->a, v, "victims", victims);
}

static struct gpuq_val *explain(struct why_case *c)
{
	struct gpuq_val *v = gpuq_map(c->a);
	const bool waits = why_outcome_of(c->p, c->tries->key) == WHY_WAITS;

	put_next(c, v);
	put_line(c, v);
	put_queues(c, v);
	/* Whoever has places already waits for those who leave them, and nothing helps. */
	gpuq_put(c->a, v, "changes",
		 waits && !c->s->jobs[c->job].n_promises ? why_changes(c) : gpuq_list(c->a));
	gpuq_put(c->a, v, "tries", gpuq_int(c->a, c->tries->n));
	gpuq_put(c->a, v, "cut_short", gpuq_bool(c->a, c->tries->cut_short));
	return v;
}

int why_explain(const struct why_question *q, struct gpuq_arena *mem, struct gpuq_val **out,
		struct gpuq_err *err)
{
	struct rec r = { (const unsigned char *)q->packed->data,
			 (const unsigned char *)q->packed->data + q->packed->len, false };
	struct gpuq_arena scratch = GPUQ_ARENA_INIT(0);
	struct why_tries tries = { .packed = q->packed,
				   .key = q->key,
				   .stop = q->stop,
				   .stop_arg = q->stop_arg,
				   .err = err };
	struct why_case c = { .tries = &tries, .a = mem };
	struct snapshot *s = NULL;
	struct gpuq_val *v = NULL;
	struct plan p;
	int rc = snapshot_unpack(&r, &s, err);

	if (rc == 0)
		rc = snapshot_seal(s, err);
	if (rc == 0) {
		c.job = why_find(s, q->key);
		if (c.job == SNAP_NONE || s->jobs[c.job].state != SNAP_PENDING)
			rc = gpuq_fail(err, GPUQ_ENOENT, "the job does not wait");
	}
	if (rc == 0)
		rc = sched_cycle(s, &scratch, &p, err);
	if (rc == 0) {
		c.s = s;
		c.p = &p;
		tries.most = why_most_tries(s);
		v = explain(&c);
		rc = tries.rc;
	}
	if (rc == 0)
		*out = v;
	snapshot_free(s);
	gpuq_arena_done(&scratch);
	return rc;
}
