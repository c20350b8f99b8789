#include "gpuqd/state/view/view.h"
#include "gpuqd/flow/advise/why_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/carry/claim_text.h"
#include "libgpuq/limits.h"

#define STARTS_MAX 4096u
#define CLAIMS_MAX 512u
#define SIDES_MAX 4u
#define VICTIMS_MAX 16u
#define NAMES_MAX 8u /* of each list, of one job */

typedef char name[GPUQ_NAME_BYTES_MAX + 1];

struct started {
	struct snap_key key;
	int64_t at_us, eligible_us, yield_us;
	int64_t allocated, fair_share, quota;
	uint32_t n_behind;
	bool backfilled;
	struct snap_key ahead_of; /* the first start reservation where it starts, */
	int64_t ahead_us; /* and when; 0 = none */
	name queue, flavor;
};

struct side {
	name queue;
	int64_t before, after, fair_share, quota;
};

struct victim {
	struct snap_key key;
	enum gpuq_cause cause;
	char rule[CLAIM_RULES_MAX];
};

struct claimed {
	struct snap_key key;
	int64_t at_us, need;
	uint32_t passed[N_PLAN_PASSED];
	uint32_t n_sides, n_victims;
	name flavor;
	struct side sides[SIDES_MAX];
	struct victim victims[VICTIMS_MAX];
};

/* Rings: the n-th entry is at n modulo their size. */
struct why_log {
	struct started starts[STARTS_MAX];
	struct claimed claims[CLAIMS_MAX];
	uint64_t n_starts, n_claims;
};

struct why_log *why_log_new(void)
{
	return calloc(1, sizeof(struct why_log));
}

void why_log_free(struct why_log *l)
{
	free(l);
}

static void copy_name(name out, const char *s)
{
	snprintf(out, sizeof(name), "%s", s);
}

static uint32_t waiting_in(const struct snapshot *s, uint32_t queue)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i].queue == queue)
			n += s->jobs[i].n_waiting;
	return n;
}

static bool share_a_node(const struct plan *p, const struct plan_action *a,
			 const struct plan_action *b)
{
	for (uint32_t i = 0; i < a->n_pods; i++)
		for (uint32_t k = 0; k < b->n_pods; k++)
			if (p->pods[a->pod_first + i].node == p->pods[b->pod_first + k].node)
				return true;
	return false;
}

/* Note the earliest start reservation on the same nodes, which it was backfilled ahead of. */
static void note_ahead(struct started *e, const struct plan *p, const struct plan_action *a)
{
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *r = &p->actions[i];

		if (r->kind != PLAN_RESERVE || (e->ahead_us && e->ahead_us <= r->start_us) ||
		    !share_a_node(p, a, r))
			continue;
		e->ahead_of = r->key;
		e->ahead_us = r->start_us;
	}
}

static void note_start(struct why_log *l, const struct snapshot *s, const struct plan *p,
		       const struct plan_action *a)
{
	struct started *e = &l->starts[l->n_starts++ % STARTS_MAX];
	const struct snap_job *j = &s->jobs[a->job];
	const size_t at =
		(size_t)j->queue * s->n_res + (a->flavor == SNAP_NONE ? snap_cpu(s) : a->flavor);

	*e = (struct started){ .key = a->key,
			       .at_us = s->config.now_us,
			       .eligible_us = j->eligible_us,
			       .yield_us = a->yield_us,
			       .backfilled = a->backfilled,
			       .allocated = p->allocated[at],
			       .fair_share = p->fair_share[at],
			       .quota = s->shares[at].quota,
			       .n_behind = waiting_in(s, j->queue) };
	e->n_behind -= e->n_behind > 0; /* the job itself */
	note_ahead(e, p, a);
	copy_name(e->queue, s->queues[j->queue].name);
	copy_name(e->flavor, a->flavor == SNAP_NONE ? "" : s->flavors[a->flavor].name);
}

static void note_claim(struct why_log *l, const struct snapshot *s, const struct plan *p,
		       const struct plan_claim *c)
{
	struct claimed *e = &l->claims[l->n_claims++ % CLAIMS_MAX];

	*e = (struct claimed){ .key = c->key, .at_us = s->config.now_us, .need = c->need };
	memcpy(e->passed, c->passed, sizeof(e->passed));
	copy_name(e->flavor, c->flavor == SNAP_NONE ? "" : s->flavors[c->flavor].name);
	for (uint32_t i = 0; i < c->n_sides && i < SIDES_MAX; i++) {
		const struct plan_side *side = &p->claim_sides[c->side_first + i];
		struct side *out = &e->sides[e->n_sides++];

		copy_name(out->queue, s->queues[side->queue].name);
		out->before = side->before;
		out->after = side->after;
		out->fair_share = side->fair_share;
		out->quota = side->quota;
	}
	for (uint32_t i = 0; i < p->n_actions && e->n_victims < VICTIMS_MAX; i++) {
		const struct plan_action *a = &p->actions[i];
		struct victim *out = &e->victims[e->n_victims];

		if (a->claimant != c->job ||
		    (a->kind != PLAN_EVICT && a->kind != PLAN_SHRINK && a->kind != PLAN_MOVE))
			continue;
		out->key = a->key;
		out->cause = a->cause;
		snprintf(out->rule, sizeof(out->rule), "%s", a->rule ? a->rule : "");
		e->n_victims++;
	}
}

void why_log_note(struct why_log *l, const struct snapshot *s, const struct plan *p)
{
	/* Recording a start takes a pass over all jobs: not for thousands that start at once, most
	 * of which the ring would drop again. */
	for (uint32_t i = 0, n = 0; i < p->n_actions && n < 256; i++)
		if (p->actions[i].kind == PLAN_PLACE) {
			note_start(l, s, p, &p->actions[i]);
			n++;
		}
	for (uint32_t i = 0; i < p->n_claims; i++)
		note_claim(l, s, p, &p->claims[i]);
}

/* ---- reading ---- */

static bool is(struct snap_key key, struct job_key job)
{
	return key.id == job.id && (job.index < 0 || key.index == job.index);
}

static struct gpuq_val *view_start(struct gpuq_arena *a, const struct started *e)
{
	struct gpuq_val *v = gpuq_map(a);
	char id[32];

	gpuq_put(a, v, "job", gpuq_str(a, plan_key_print(e->key, id, sizeof(id))));
	gpuq_put(a, v, "decided_time", gpuq_int(a, e->at_us));
	gpuq_put(a, v, "waited_s", gpuq_int(a, (e->at_us - e->eligible_us) / 1000000));
	gpuq_put(a, v, "backfilled", gpuq_bool(a, e->backfilled));
	gpuq_put(a, v, "ahead_of",
		 e->ahead_us ? gpuq_str(a, plan_key_print(e->ahead_of, id, sizeof(id)))
			     : gpuq_null(a));
	gpuq_put(a, v, "planned_time", e->ahead_us ? gpuq_int(a, e->ahead_us) : gpuq_null(a));
	gpuq_put(a, v, "yield_time", e->yield_us ? gpuq_int(a, e->yield_us) : gpuq_null(a));
	gpuq_put(a, v, "queue", gpuq_str(a, e->queue));
	gpuq_put(a, v, "jobs_behind", gpuq_int(a, e->n_behind));
	gpuq_put(a, v, "flavor", *e->flavor ? gpuq_str(a, e->flavor) : gpuq_null(a));
	if (!*e->flavor)
		return v;
	gpuq_put(a, v, "allocated", view_devices(a, e->allocated));
	gpuq_put(a, v, "fair_share", view_devices(a, e->fair_share));
	gpuq_put(a, v, "quota", view_devices(a, e->quota));
	return v;
}

static struct gpuq_val *view_claim(struct gpuq_arena *a, const struct claimed *e)
{
	static const char *const passed[N_PLAN_PASSED] = { "firm", "busy", "shielded",
							   "not_needed" };
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a), *counts = gpuq_map(a);
	char id[32];

	gpuq_put(a, v, "decided_time", gpuq_int(a, e->at_us));
	gpuq_put(a, v, "job", gpuq_str(a, plan_key_print(e->key, id, sizeof(id))));
	gpuq_put(a, v, "flavor", *e->flavor ? gpuq_str(a, e->flavor) : gpuq_null(a));
	gpuq_put(a, v, "need", view_devices(a, e->need));
	for (uint32_t i = 0; i < e->n_sides; i++) {
		const struct side *s = &e->sides[i];
		struct gpuq_val *one = gpuq_map(a);

		gpuq_put(a, one, "queue", gpuq_str(a, s->queue));
		gpuq_put(a, one, "before", view_devices(a, s->before));
		gpuq_put(a, one, "after", view_devices(a, s->after));
		gpuq_put(a, one, "fair_share", view_devices(a, s->fair_share));
		gpuq_put(a, one, "quota", view_devices(a, s->quota));
		gpuq_add(a, list, one);
	}
	gpuq_put(a, v, "sides", list);
	for (int i = 0; i < N_PLAN_PASSED; i++)
		gpuq_put(a, counts, passed[i], gpuq_int(a, e->passed[i]));
	gpuq_put(a, v, "passed", counts);
	list = gpuq_list(a);
	for (uint32_t i = 0; i < e->n_victims; i++) {
		struct gpuq_val *one = gpuq_map(a);

		gpuq_put(a, one, "job",
			 gpuq_str(a, plan_key_print(e->victims[i].key, id, sizeof(id))));
		gpuq_put(a, one, "cause", gpuq_str(a, gpuq_cause_word(e->victims[i].cause)));
		gpuq_put(a, one, "rule", gpuq_str(a, e->victims[i].rule));
		gpuq_add(a, list, one);
	}
	gpuq_put(a, v, "victims", list);
	return v;
}

static bool concerns(const struct claimed *e, struct job_key key)
{
	bool yes = is(e->key, key);

	for (uint32_t i = 0; i < e->n_victims; i++)
		yes |= is(e->victims[i].key, key);
	return yes;
}

void why_log_put(const struct why_log *l, struct job_key key, struct gpuq_arena *a,
		 struct gpuq_val *v)
{
	struct gpuq_val *starts = gpuq_list(a), *claims = gpuq_list(a);

	for (uint64_t n = l->n_starts, left = STARTS_MAX;
	     n-- > 0 && left-- > 0 && starts && starts->n < NAMES_MAX;)
		if (is(l->starts[n % STARTS_MAX].key, key))
			gpuq_add(a, starts, view_start(a, &l->starts[n % STARTS_MAX]));
	for (uint64_t n = l->n_claims, left = CLAIMS_MAX;
	     n-- > 0 && left-- > 0 && claims && claims->n < NAMES_MAX;)
		if (concerns(&l->claims[n % CLAIMS_MAX], key))
			gpuq_add(a, claims, view_claim(a, &l->claims[n % CLAIMS_MAX]));
	gpuq_put(a, v, "starts", starts);
	gpuq_put(a, v, "claims", claims);
}
