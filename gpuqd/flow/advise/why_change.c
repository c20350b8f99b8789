#include "gpuqd/flow/advise/why_change.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/view/view.h"
#include "gpuqd/util/amount.h"
#include "libgpuq/units.h"

#define ENDS_MAX 512u /* running jobs that are evaluated */
#define MOVES_MAX 12u
#define ALONE_MAX 8u
#define SPARED_MAX 8u
#define FLAVORS_MAX 6u

static const char *const words[N_WHY_KINDS] = { "lift",   "gpus", "pods", "amount",
						"flavor", "time", "end",  "move" };

int64_t why_ends_us(const struct snap_job *j)
{
	return amount_later(amount_later(j->start_us, j->walltime_us), j->grace_us);
}

static int64_t holds(const struct snapshot *s, uint32_t job)
{
	const struct snap_job *j = &s->jobs[job];
	int64_t milli = 0;

	for (uint32_t i = 0; i < j->n_allocs; i++)
		milli += (int64_t)s->allocs[j->alloc_first + i].n_devices *
			 s->allocs[j->alloc_first + i].milli;
	return milli;
}

struct gpuq_val *why_job(struct gpuq_arena *a, const struct snapshot *s, uint32_t job)
{
	const struct snap_job *j = &s->jobs[job];
	const int64_t end_us = why_ends_us(j);
	struct gpuq_val *v = gpuq_map(a);
	char id[32];

	gpuq_put(a, v, "job", gpuq_str(a, plan_key_print(j->key, id, sizeof(id))));
	gpuq_put(a, v, "user", gpuq_str(a, s->users[j->user]));
	gpuq_put(a, v, "queue", gpuq_str(a, s->queues[j->queue].name));
	gpuq_put(a, v, "gpus",
		 view_devices(a, j->n_allocs ? holds(s, job) : s->requests[j->request].gpus_milli));
	if (j->state != SNAP_PENDING)
		gpuq_put(a, v, "end_time",
			 end_us == GPUQ_UNLIMITED ? gpuq_null(a) : gpuq_int(a, end_us));
	return v;
}

static bool helps(enum why_outcome out)
{
	return out == WHY_STARTS || out == WHY_CLAIMS;
}

/* Return the outcome of a change that will be reported: one found on a part of the state is
 * confirmed on the whole state first. */
static enum why_outcome confirmed(struct why_case *c, const struct why_change *change,
				  enum why_outcome out)
{
	return helps(out) && c->tries->near ? why_confirm(c->tries, change) : out;
}

/* Return a change that works as a map for the caller to fill; NULL: it does not work. */
static struct gpuq_val *told(struct why_case *c, const struct why_change *change,
			     enum why_outcome found)
{
	const enum why_outcome out = confirmed(c, change, found);
	struct gpuq_val *v;

	if (!helps(out))
		return NULL;
	v = gpuq_map(c->a);
	gpuq_put(c->a, v, "change", gpuq_str(c->a, words[change->kind]));
	gpuq_put(c->a, v, "how", gpuq_str(c->a, out == WHY_STARTS ? "now" : "claim"));
	return v;
}

static struct gpuq_val *works(struct why_case *c, const struct why_change *change)
{
	return told(c, change, why_try(c->tries, change));
}

/* ---- obstacles that can be removed ---- */

static bool can_lift(enum gpuq_reason code)
{
	switch (code) {
	case GPUQ_R_RESOURCES:
	case GPUQ_R_PRIORITY:
	case GPUQ_R_FAIR_SHARE:
	case GPUQ_R_DEADLINE:
	case GPUQ_R_UNSATISFIABLE:
	case GPUQ_R_FRAGMENTED:
	case GPUQ_R_VICTIMS:
	case GPUQ_R_PROVISIONING:
	case GPUQ_R_MIG_LAYOUT:
	case GPUQ_R_STARTING:
	case GPUQ_R_NOT_EVALUATED:
	case GPUQ_R_NODES_AVOIDED:
	case GPUQ_R_NONE:
		return false;
	default:
		return true;
	}
}

static void lifts(struct why_case *c, struct gpuq_val *list)
{
	const struct plan_reason *first;
	const uint32_t n = plan_reasons(c->s, c->p, c->job, &first);

	for (uint32_t i = 0; i < n; i++) {
		const struct plan_reason *r = &first[i];
		struct why_change change = { .kind = WHY_LIFT, .code = r->code };
		struct gpuq_val *v;

		if (!can_lift(r->code))
			continue;
		v = works(c, &change);
		if (!v)
			continue;
		gpuq_put(c->a, v, "code", gpuq_str(c->a, gpuq_reason_word(r->code)));
		gpuq_put(c->a, v, "object",
			 *r->object ? gpuq_str(c->a, r->object) : gpuq_null(c->a));
		gpuq_put(c->a, v, "who", gpuq_str(c->a, gpuq_reason_who(r->code)));
		gpuq_add(c->a, list, v);
	}
}

/* ---- what its owner can change ---- */

/* Return the largest n in [1, n) that works; *found: its map. */
static int64_t largest(struct why_case *c, enum why_kind kind, int64_t n, int64_t unit,
		       struct gpuq_val **found)
{
	enum why_outcome best = WHY_WAITS;
	int64_t lo = 0, hi = n;

	for (int64_t at = 1; hi - lo > 1; at = lo + (hi - lo) / 2) {
		const struct why_change change = { .kind = kind, .n = at * unit };
		const enum why_outcome out = why_try(c->tries, &change);

		if (helps(out)) {
			best = out;
			lo = at;
		} else if (at == 1) {
			break; /* not even the smallest works */
		} else {
			hi = at;
		}
	}
	*found = told(c, &(struct why_change){ .kind = kind, .n = lo * unit }, best);
	return lo;
}

static void sizes(struct why_case *c, struct gpuq_val *list)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[c->job].request];
	const struct snap_group *g = &r->groups[0];
	struct gpuq_val *v;
	int64_t n;

	if (r->n_groups != 1)
		return;
	if (g->pods_min > 1 && !g->n_slices && !g->unit_pods) {
		n = largest(c, WHY_PODS, g->pods_min, 1, &v);
		if (v) {
			gpuq_put(c->a, v, "from", gpuq_int(c->a, g->pods_min));
			gpuq_put(c->a, v, "to", gpuq_int(c->a, n));
			gpuq_add(c->a, list, v);
		}
	}
	if (g->gpus_milli > SNAP_MILLI && !snap_group_parts(g) && !g->mig) {
		n = largest(c, WHY_GPUS, g->gpus_milli / SNAP_MILLI, SNAP_MILLI, &v);
		if (v) {
			gpuq_put(c->a, v, "from", view_devices(c->a, g->gpus_milli));
			gpuq_put(c->a, v, "to", gpuq_int(c->a, n));
			gpuq_add(c->a, list, v);
		}
	}
}

/* Return an amount as people would request it: whole cores and GiB, where there is one. */
static int64_t rounded(int64_t n, enum plan_unit unit)
{
	const int64_t coarse = unit == PLAN_CPU ? 1000 : unit == PLAN_BYTES ? INT64_C(1) << 30 : 1;
	const int64_t fine = unit == PLAN_BYTES ? INT64_C(1) << 20 : 1;

	return n >= coarse ? n - n % coarse : n - n % fine;
}

static struct gpuq_val *counted(struct why_case *c, int64_t n, enum plan_unit unit)
{
	return unit == PLAN_CPU ? view_devices(c->a, n) : gpuq_int(c->a, n);
}

/* A pod that requests more of something than a node has, or has free, may request that. */
static void amounts(struct why_case *c, struct gpuq_val *list)
{
	const struct snap_request *request = &c->s->requests[c->s->jobs[c->job].request];
	const struct plan_reason *first;
	const uint32_t n = plan_reasons(c->s, c->p, c->job, &first);

	for (uint32_t i = 0; i < n && request->n_groups == 1; i++) {
		const struct plan_reason *r = &first[i];
		const int64_t asked = why_amount_of(&request->groups[0], r->object);
		const struct why_change change = { .kind = WHY_AMOUNT,
						   .name = r->object,
						   .n = rounded(r->have, r->unit) };
		struct gpuq_val *v;

		/* Other figures are of all its pods together. */
		if (asked == 0 || r->need != asked || change.n <= 0 || change.n >= asked)
			continue;
		v = works(c, &change);
		if (!v)
			continue;
		gpuq_put(c->a, v, "object", gpuq_str(c->a, r->object));
		gpuq_put(c->a, v, "unit", gpuq_str(c->a, gpuq_unit_word((enum gpuq_unit)r->unit)));
		gpuq_put(c->a, v, "from", counted(c, asked, r->unit));
		gpuq_put(c->a, v, "to", counted(c, change.n, r->unit));
		gpuq_add(c->a, list, v);
	}
}

static bool names_flavor(const struct snap_request *r, uint32_t flavor)
{
	for (uint32_t i = 0; i < r->n_flavor_ix; i++)
		if (r->flavor_ix[i] == flavor)
			return true;
	return false;
}

static void flavors(struct why_case *c, struct gpuq_val *list)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[c->job].request];
	uint32_t n = 0;

	for (uint32_t f = 0; r->gpus_milli && f < c->s->n_flavors && n < FLAVORS_MAX; f++) {
		const struct why_change change = { .kind = WHY_FLAVOR,
						   .name = c->s->flavors[f].name };
		struct gpuq_val *v;

		if (names_flavor(r, f) || c->s->capacity[f] == 0)
			continue;
		n++;
		v = works(c, &change);
		if (!v)
			continue;
		gpuq_put(c->a, v, "to", gpuq_str(c->a, change.name));
		gpuq_add(c->a, list, v);
	}
}

/* A short job can be backfilled: find the longest of these times that works. */
static void times(struct why_case *c, struct gpuq_val *list)
{
	static const int64_t minutes[] = { 24 * 60, 8 * 60, 4 * 60, 60, 15, 5 };
	const int64_t now = c->s->jobs[c->job].walltime_us;

	for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
		const struct why_change change = { .kind = WHY_TIME,
						   .n = minutes[i] * 60 * GPUQ_US_PER_S };
		struct gpuq_val *v = change.n < now ? works(c, &change) : NULL;

		if (!v)
			continue;
		gpuq_put(c->a, v, "to_s", gpuq_int(c->a, minutes[i] * 60));
		gpuq_add(c->a, list, v);
		return;
	}
}

/* ---- what others can do ---- */

struct running {
	uint32_t job;
	int64_t end_us, milli;
};

static int by_end(const void *x, const void *y)
{
	const struct running *a = x, *b = y;

	if (a->end_us != b->end_us)
		return a->end_us < b->end_us ? -1 : 1;
	if (a->milli != b->milli)
		return a->milli < b->milli ? -1 : 1;
	return a->job < b->job ? -1 : a->job > b->job;
}

static int by_size(const void *x, const void *y)
{
	const struct running *a = x, *b = y;

	if (a->milli != b->milli)
		return a->milli > b->milli ? -1 : 1;
	return by_end(x, y);
}

/* True if it holds devices that the job could use. */
static bool in_the_way(const struct why_case *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = &c->s->requests[c->s->jobs[c->job].request];

	for (uint32_t i = 0; i < j->n_allocs; i++) {
		const struct snap_alloc *al = &c->s->allocs[j->alloc_first + i];

		if (r->gpus_milli == 0)
			return true;
		if (al->n_devices && names_flavor(r, c->s->nodes[al->node].flavor))
			return true;
	}
	return false;
}

static struct running *who_runs(struct why_case *c, uint32_t *n)
{
	struct running *all = gpuq_arena_calloc(c->a, c->s->n_jobs + 1, sizeof(*all));

	*n = 0;
	for (uint32_t i = 0; all && i < c->s->n_jobs; i++)
		if (c->s->jobs[i].state != SNAP_PENDING && in_the_way(c, i))
			all[(*n)++] =
				(struct running){ i, why_ends_us(&c->s->jobs[i]), holds(c->s, i) };
	if (all && *n)
		qsort(all, *n, sizeof(*all), by_end);
	if (*n > ENDS_MAX)
		*n = ENDS_MAX;
	return all;
}

static void keys_of(const struct why_case *c, const struct running *r, uint32_t n,
		    struct snap_key *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = c->s->jobs[r[i].job].key;
}

/* Return the change that ends the first n of r; keys: room for them. */
static struct why_change ending(const struct why_case *c, const struct running *r, uint32_t n,
				struct snap_key *keys)
{
	keys_of(c, r, n, keys);
	return (struct why_change){ .kind = WHY_END, .keys = keys, .n_keys = n };
}

static enum why_outcome ended(struct why_case *c, const struct running *r, uint32_t n,
			      struct snap_key *keys)
{
	const struct why_change change = ending(c, r, n, keys);

	return why_try(c->tries, &change);
}

/* True if it was added, that is, if it works on the whole state as well. */
static bool add_end(struct why_case *c, struct gpuq_val *list, enum why_outcome found,
		    const struct running *r, uint32_t n, struct snap_key *keys)
{
	const struct why_change change = ending(c, r, n, keys);
	struct gpuq_val *v = told(c, &change, found), *jobs;
	int64_t at_us = 0;

	if (!v)
		return false;
	jobs = gpuq_list(c->a);
	for (uint32_t i = 0; i < n; i++) {
		gpuq_add(c->a, jobs, why_job(c->a, c->s, r[i].job));
		at_us = r[i].end_us > at_us ? r[i].end_us : at_us;
	}
	gpuq_put(c->a, v, "jobs", jobs);
	gpuq_put(c->a, v, "end_time",
		 at_us == GPUQ_UNLIMITED ? gpuq_null(c->a) : gpuq_int(c->a, at_us));
	gpuq_add(c->a, list, v);
	return true;
}

/* Drop those of the first n that need not end; the last one must. Returns how many are left. */
static uint32_t spare(struct why_case *c, struct running *r, uint32_t n, struct snap_key *keys,
		      enum why_outcome *best)
{
	for (uint32_t i = 0, tried = 0; i + 1 < n && tried < SPARED_MAX; tried++) {
		const struct running one = r[i];
		enum why_outcome still;

		memmove(&r[i], &r[i + 1], (n - i - 1) * sizeof(*r));
		still = ended(c, r, n - 1, keys);
		if (helps(still)) {
			*best = still;
			n--;
			continue;
		}
		memmove(&r[i + 1], &r[i], (n - i - 1) * sizeof(*r));
		r[i++] = one;
	}
	return n;
}

/* Find how many must end, in the order of their ends, until it starts. Then try larger jobs one by
 * one. */
static void ends(struct why_case *c, struct gpuq_val *list)
{
	uint32_t n, lo = 0, hi, n_alone = 0;
	struct running *r = who_runs(c, &n);
	struct snap_key *keys = gpuq_arena_calloc(c->a, (size_t)n + 1, sizeof(*keys));
	enum why_outcome out, best;
	uint32_t last = SNAP_NONE;

	if (!r || !keys || n == 0)
		return;
	best = ended(c, r, n, keys);
	if (!helps(best))
		return;
	for (hi = n; hi - lo > 1;) {
		const uint32_t mid = lo + (hi - lo) / 2;

		out = ended(c, r, mid, keys);
		if (helps(out)) {
			best = out;
			hi = mid;
		} else {
			lo = mid;
		}
	}
	/* Only the first hi are evaluated from here; spare() reorders within them. */
	hi = spare(c, r, hi, keys, &best);
	add_end(c, list, best, r, hi, keys);
	if (hi == 1)
		return;
	last = r[hi - 1].job;
	qsort(r, n, sizeof(*r), by_size);
	for (uint32_t i = 0; i < n && n_alone < ALONE_MAX; i++, n_alone++) {
		if (r[i].job == last)
			continue;
		out = ended(c, &r[i], 1, keys);
		if (helps(out) && add_end(c, list, out, &r[i], 1, keys))
			return;
	}
}

/* Look for a small job that fragments a large hole. */
static void moves(struct why_case *c, struct gpuq_val *list)
{
	uint32_t n, tried = 0;
	struct running *r = who_runs(c, &n);

	for (uint32_t i = 0; r && i < n; i++)
		r[i].milli = -r[i].milli;
	if (r && n)
		qsort(r, n, sizeof(*r), by_size);
	for (uint32_t i = 0; r && i < n && tried < MOVES_MAX; i++) {
		const struct snap_job *j = &c->s->jobs[r[i].job];
		const struct why_change change = { .kind = WHY_MOVE, .keys = &j->key, .n_keys = 1 };
		struct gpuq_val *v, *jobs;

		if (j->state != SNAP_RUNNING || !j->preemptible)
			continue;
		tried++;
		v = works(c, &change);
		if (!v)
			continue;
		jobs = gpuq_list(c->a);
		gpuq_add(c->a, jobs, why_job(c->a, c->s, r[i].job));
		gpuq_put(c->a, v, "jobs", jobs);
		gpuq_add(c->a, list, v);
		return;
	}
}

/* ---- all of them ---- */

struct gpuq_val *why_changes(struct why_case *c)
{
	static void (*const kinds[])(struct why_case * c, struct gpuq_val * list) = {
		lifts, flavors, amounts, sizes, times, moves, ends,
	};
	struct gpuq_val *list = gpuq_list(c->a);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		/* An obstacle that can be removed needs no further search. */
		if (i == 1 && list && list->n)
			break;
		kinds[i](c, list);
	}
	return list;
}
