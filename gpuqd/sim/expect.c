#include "gpuqd/sim/expect_int.h"

#include <stdlib.h>
#include <string.h>

/* Judging expectations. Every key is a row: its name, and the function that evaluates it. Lists of
 * jobs are sets; numbers are compared to a thousandth. */

static void judge_all(struct judge *j, const struct gpuq_val *expect);

void judge_differs(struct judge *j, const char *key, const struct gpuq_val *want,
		   const struct gpuq_val *got)
{
	j->failed++;
	if (!j->out)
		return;
	gpuq_buf_printf(j->out, "  %s: expected ", key);
	gpuq_json_write(j->out, want, 0);
	gpuq_buf_adds(j->out, ", is ");
	if (got)
		gpuq_json_write(j->out, got, 0);
	else
		gpuq_buf_adds(j->out, "nothing");
	gpuq_buf_addc(j->out, '\n');
}

/* ---- comparing ---- */

double judge_number(const struct gpuq_val *v)
{
	if (!v || (v->type != GPUQ_INT && v->type != GPUQ_REAL))
		return -1e300;
	return v->type == GPUQ_INT ? (double)v->i : v->d;
}

static bool same_number(const struct gpuq_val *x, const struct gpuq_val *y)
{
	const double d = judge_number(x) - judge_number(y);

	return d > -0.0005 && d < 0.0005 && judge_number(x) > -1e299;
}

static const char *as_text(const struct gpuq_val *v)
{
	if (!v)
		return "";
	return v->type == GPUQ_STR ? v->s : v->src ? v->src : "";
}

static bool same(const struct gpuq_val *want, const struct gpuq_val *got)
{
	if (want->type == GPUQ_NULL)
		return !got || got->type == GPUQ_NULL;
	if (want->type == GPUQ_INT || want->type == GPUQ_REAL)
		return same_number(want, got);
	if (want->type == GPUQ_BOOL)
		return got && got->type == GPUQ_BOOL && got->b == want->b;
	return got && strcmp(as_text(want), as_text(got)) == 0;
}

/* Scenarios may use the rule names of earlier builds. */
static bool same_member(const char *key, const struct gpuq_val *want, const struct gpuq_val *got)
{
	char now[128];

	if (strcmp(key, "rule") != 0 || !got)
		return same(want, got);
	gpuq_rules_now(as_text(want), now, sizeof(now));
	return strcmp(now, as_text(got)) == 0;
}

static bool contains(const struct gpuq_val *list, const struct gpuq_val *item)
{
	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++)
		if (strcmp(as_text(list->items[i]), as_text(item)) == 0)
			return true;
	return false;
}

/* True if equal as sets. A single name stands for a list of one. */
static bool same_set(const struct gpuq_val *want, const struct gpuq_val *got)
{
	if (want->type == GPUQ_NULL)
		return !got || got->n == 0;
	if (want->type != GPUQ_LIST)
		return got && got->n == 1 && contains(got, want);
	for (uint32_t i = 0; i < want->n; i++)
		if (!contains(got, want->items[i]))
			return false;
	for (uint32_t i = 0; got && i < got->n; i++)
		if (!contains(want, got->items[i]))
			return false;
	return true;
}

/* ---- one function per key ---- */

typedef void (*judge_fn)(struct judge *j, const char *key, const struct gpuq_val *want);

static void judge_list(struct judge *j, const char *key, const struct gpuq_val *want)
{
	const struct gpuq_val *got = gpuq_get(j->outcome, key);

	if (!same_set(want, got))
		judge_differs(j, key, want, got);
}

static struct gpuq_val *nodes_of(struct judge *j, const struct gpuq_val *job)
{
	const struct gpuq_val *places = gpuq_get(job, "placement");
	struct gpuq_val *list = gpuq_list(j->arena);

	for (uint32_t i = 0; places && i < places->n; i++)
		gpuq_add(j->arena, list, gpuq_get(places->items[i], "node"));
	return list;
}

static int by_text(const void *x, const void *y)
{
	return strcmp(as_text(*(struct gpuq_val *const *)x), as_text(*(struct gpuq_val *const *)y));
}

/* Compare node names, task by task in any order, or each node once. */
static bool same_nodes(struct judge *j, const struct gpuq_val *want, const struct gpuq_val *job)
{
	struct gpuq_val *got = nodes_of(j, job), *sorted;

	if (want->type != GPUQ_LIST || !got)
		return got && same_set(want, got);
	if (want->n != got->n || want->n == 0)
		return same_set(want, got);
	sorted = gpuq_val_copy(j->arena, want);
	if (!sorted)
		return false;
	qsort(sorted->items, sorted->n, sizeof(*sorted->items), by_text);
	qsort(got->items, got->n, sizeof(*got->items), by_text);
	for (uint32_t i = 0; i < got->n; i++)
		if (by_text(&sorted->items[i], &got->items[i]) != 0)
			return false;
	return true;
}

/* True if all tasks are on nodes with one value of the label (or on one node). */
static bool same_domain(struct judge *j, const char *label, const struct gpuq_val *job)
{
	const struct gpuq_val *nodes = nodes_of(j, job);
	const char *first = NULL;

	for (uint32_t i = 0; nodes && i < nodes->n; i++) {
		const uint32_t n = world_node(j->w, as_text(nodes->items[i]));
		const struct gpuq_strmap *labels = &j->w->nodes[n].spec->labels;
		const char *value = j->w->nodes[n].name;

		for (size_t k = 0; k < labels->n; k++)
			if (strcmp(labels->keys[k], label) == 0)
				value = labels->vals[k];
		if (first && strcmp(first, value) != 0)
			return false;
		first = value;
	}
	return first != NULL;
}

/* Count the tasks of each role (or group) that have a place. */
static struct gpuq_val *count_by(struct judge *j, const struct gpuq_val *job, const char *what)
{
	const struct gpuq_val *places = gpuq_get(job, "placement");
	struct gpuq_val *map = gpuq_map(j->arena);

	for (uint32_t i = 0; places && i < places->n; i++) {
		const char *name = gpuq_get_str(places->items[i], what, "");

		gpuq_set(j->arena, map, name, gpuq_int(j->arena, gpuq_get_int(map, name, 0) + 1));
	}
	return map;
}

static int64_t groups_complete(struct judge *j, const char *name, const struct gpuq_val *job)
{
	struct sim_job *sim = world_job(j->w, name);
	const struct gpuq_val *placed = count_by(j, job, "group");
	const struct sc_job *spec;
	const struct sc_tasks *tasks;
	int64_t n = 0;

	if (!sim)
		return -1;
	spec = world_template(j->w, sim)->spec;
	tasks = spec->tasks.items;
	for (size_t i = 0; i < spec->tasks.n; i++)
		if (tasks[i].group &&
		    gpuq_get_int(placed, tasks[i].group, 0) * 1000 >= tasks[i].count)
			n++;
	if (n == 0 && spec->group_size != SC_ABSENT && spec->group_size >= 1000)
		n = gpuq_get_int(job, "tasks", 0) / (spec->group_size / 1000);
	return n;
}

static bool detail_holds(struct judge *j, const char *name, const char *key,
			 const struct gpuq_val *want, const struct gpuq_val *job)
{
	if (strcmp(key, "nodes") == 0)
		return same_nodes(j, want, job);
	if (strcmp(key, "same") == 0)
		return want->type == GPUQ_BOOL ? same_domain(j, "", job) == want->b
					       : same_domain(j, as_text(want), job);
	if (strcmp(key, "groups_complete") == 0)
		return judge_number(want) == (double)groups_complete(j, name, job);
	if (strcmp(key, "roles") == 0) {
		const struct gpuq_val *got = count_by(j, job, "role");

		for (uint32_t i = 0; i < want->n; i++)
			if (judge_number(want->pairs[i].val) !=
			    (double)gpuq_get_int(got, want->pairs[i].key, 0))
				return false;
		return true;
	}
	return same(want, gpuq_get(job, key));
}

static void judge_detail(struct judge *j, const char *key, const struct gpuq_val *want)
{
	const struct gpuq_val *jobs = gpuq_get(j->outcome, "jobs");

	for (uint32_t i = 0; want->type == GPUQ_MAP && i < want->n; i++) {
		const struct gpuq_pair *p = &want->pairs[i];
		const struct gpuq_val *job = gpuq_get(jobs, p->key);

		for (uint32_t k = 0; p->val->type == GPUQ_MAP && k < p->val->n; k++)
			if (!job || !detail_holds(j, p->key, p->val->pairs[k].key,
						  p->val->pairs[k].val, job))
				judge_differs(j, p->key, p->val, job);
	}
	(void)key;
}

static void judge_groups(struct judge *j, const char *key, const struct gpuq_val *want)
{
	const struct gpuq_val *jobs = gpuq_get(j->outcome, "jobs");

	for (uint32_t i = 0; want->type == GPUQ_LIST && i < want->n; i++) {
		const struct gpuq_val *g = want->items[i], *of = gpuq_get(g, "of");
		const char *state = gpuq_get_str(g, "state", "started");
		const char *rest = gpuq_get_str(g, "rest", NULL);
		int64_t n = 0, others = 0;

		for (uint32_t k = 0; of && of->type == GPUQ_LIST && k < of->n; k++) {
			const char *is =
				gpuq_get_str(gpuq_get(jobs, as_text(of->items[k])), "state", "");

			n += strcmp(is, state) == 0;
			others += strcmp(is, state) != 0 && rest && strcmp(is, rest) != 0;
		}
		if (n != gpuq_get_int(g, "count", -1) || others > 0)
			judge_differs(j, key, g, gpuq_int(j->arena, n));
	}
}

static void judge_any(struct judge *j, const char *key, const struct gpuq_val *want)
{
	for (uint32_t i = 0; want->type == GPUQ_LIST && i < want->n; i++) {
		struct judge one = *j;

		one.out = NULL;
		one.failed = 0;
		judge_all(&one, want->items[i]);
		if (one.failed == 0)
			return;
	}
	judge_differs(j, key, want, gpuq_get(j->outcome, "jobs"));
}

/* Compare a number by queue: allocated, fair_share. */
static void judge_queues(struct judge *j, const char *key, const struct gpuq_val *want)
{
	const struct gpuq_val *queues = gpuq_get(j->outcome, "queues");

	for (uint32_t i = 0; want->type == GPUQ_MAP && i < want->n; i++) {
		const struct gpuq_val *got = gpuq_get(gpuq_get(queues, want->pairs[i].key), key);

		if (!same(want->pairs[i].val, got))
			judge_differs(j, key, want, queues);
	}
}

static void judge_count(struct judge *j, const char *key, const struct gpuq_val *want)
{
	const bool started = strcmp(key, "started_min") == 0;
	const bool moved = strcmp(key, "moved_total") == 0;
	const struct gpuq_val *list = gpuq_get(j->outcome, started ? "started"
							   : moved ? "moves"
								   : "preempted");
	const double n = list ? list->n : 0;
	bool holds = n == judge_number(want);

	if (started)
		holds = n >= judge_number(want);
	if (strcmp(key, "preempted_total_max") == 0)
		holds = n <= judge_number(want);
	if (!holds)
		judge_differs(j, key, want, list);
}

static void judge_planned(struct judge *j, const char *key, const struct gpuq_val *want)
{
	for (uint32_t i = 0; want->type == GPUQ_MAP && i < want->n; i++) {
		const struct gpuq_val *job =
			gpuq_get(gpuq_get(j->outcome, "jobs"), want->pairs[i].key);

		if (!same(want->pairs[i].val, gpuq_get(job, "planned_start")))
			judge_differs(j, key, want, job);
	}
}

static void judge_estimate(struct judge *j, const char *key, const struct gpuq_val *want)
{
	for (uint32_t i = 0; want->type == GPUQ_MAP && i < want->n; i++) {
		const struct gpuq_val *job =
			gpuq_get(gpuq_get(j->outcome, "jobs"), want->pairs[i].key);

		if (!same(want->pairs[i].val, gpuq_get(gpuq_get(job, "estimate"), "start")))
			judge_differs(j, key, want, job);
	}
}

/* True if the reason matches. A code: that of the first reason. A list: all codes, in any order. A
 * map: fields of the first. */
static bool reason_holds(const struct gpuq_val *want, const struct gpuq_val *reasons)
{
	const struct gpuq_val *first = reasons && reasons->n ? reasons->items[0] : NULL;

	if (want->type == GPUQ_LIST) {
		for (uint32_t i = 0; i < want->n; i++) {
			bool found = false;

			for (uint32_t k = 0; reasons && k < reasons->n; k++)
				found |= same(want->items[i], gpuq_get(reasons->items[k], "code"));
			if (!found)
				return false;
		}
		return true;
	}
	if (want->type != GPUQ_MAP)
		return same(want, gpuq_get(first, "code"));
	for (uint32_t i = 0; i < want->n; i++)
		if (!same(want->pairs[i].val, gpuq_get(first, want->pairs[i].key)))
			return false;
	return first != NULL;
}

static void judge_reason(struct judge *j, const char *key, const struct gpuq_val *want)
{
	for (uint32_t i = 0; want->type == GPUQ_MAP && i < want->n; i++) {
		const struct gpuq_val *job =
			gpuq_get(gpuq_get(j->outcome, "jobs"), want->pairs[i].key);
		const struct gpuq_val *got = gpuq_get(job, "reasons");

		if (!reason_holds(want->pairs[i].val, got))
			judge_differs(j, want->pairs[i].key, want->pairs[i].val, got);
	}
	(void)key;
}

/* Compare the bounds that ended a search for a job, as a set of words. */
static void judge_bounds(struct judge *j, const char *key, const struct gpuq_val *want)
{
	for (uint32_t i = 0; i < want->n; i++) {
		const struct gpuq_val *job =
			gpuq_get(gpuq_get(j->outcome, "jobs"), want->pairs[i].key);
		const struct gpuq_val *all = gpuq_get(job, "bounds");
		struct gpuq_val *got = gpuq_list(j->arena);

		for (uint32_t k = 0; all && k < all->n; k++)
			gpuq_add(j->arena, got, gpuq_get(all->items[k], "bound"));
		if (!same_set(want->pairs[i].val, got))
			judge_differs(j, key, want, got);
	}
}

/* Check that each wanted map is part of some entry of the list: of evictions, of moves. */
static void judge_entries(struct judge *j, const char *key, const struct gpuq_val *want)
{
	const struct gpuq_val *got = gpuq_get(j->outcome, key);

	for (uint32_t i = 0; want->type == GPUQ_LIST && i < want->n; i++) {
		const struct gpuq_val *one = want->items[i];
		bool found = false;

		for (uint32_t k = 0; got && k < got->n && !found; k++) {
			found = true;
			for (uint32_t p = 0; one->type == GPUQ_MAP && p < one->n; p++)
				found &= same_member(one->pairs[p].key, one->pairs[p].val,
						     gpuq_get(got->items[k], one->pairs[p].key));
		}
		if (!found)
			judge_differs(j, key, one, got);
	}
}

/* Compare how jobs ended and why. */
static void judge_ended(struct judge *j, const char *key, const struct gpuq_val *want)
{
	const struct gpuq_val *got = gpuq_get(j->outcome, key);

	for (uint32_t i = 0; want->type == GPUQ_MAP && i < want->n; i++)
		if (!same(want->pairs[i].val, gpuq_get(got, want->pairs[i].key)))
			judge_differs(j, key, want, got);
}

/* An expected error did not occur: a refused case is never judged here. */
static void judge_error(struct judge *j, const char *key, const struct gpuq_val *want)
{
	judge_differs(j, key, want, NULL);
}

static void judge_stable(struct judge *j, const char *key, const struct gpuq_val *want)
{
	if (want->type != GPUQ_BOOL || want->b != j->stable)
		judge_differs(j, key, want, gpuq_bool(j->arena, j->stable));
}

/* A key that cannot be judged does not hold. */
static void judge_nonsense(struct judge *j, const char *key, const char *why)
{
	j->failed++;
	if (j->out)
		gpuq_buf_printf(j->out, "  %s: %s\n", key, why);
}

static const struct {
	const char *key;
	judge_fn fn;
	enum gpuq_type is; /* required type; GPUQ_NULL: the function checks it */
} rows[] = {
	{ "started", judge_list, GPUQ_NULL },
	{ "running", judge_list, GPUQ_NULL },
	{ "preempted", judge_list, GPUQ_NULL },
	{ "pending", judge_list, GPUQ_NULL },
	{ "shrunk", judge_list, GPUQ_NULL },
	{ "grown", judge_list, GPUQ_NULL },
	{ "detail", judge_detail, GPUQ_MAP },
	{ "groups", judge_groups, GPUQ_LIST },
	{ "any_of", judge_any, GPUQ_LIST },
	{ "allocated", judge_queues, GPUQ_MAP },
	{ "fair_share", judge_queues, GPUQ_MAP },
	{ "preempted_from", judge_preempted_from, GPUQ_MAP },
	{ "preempted_total", judge_count, GPUQ_NULL },
	{ "preempted_total_max", judge_count, GPUQ_NULL },
	{ "preempted_gpus_min", judge_preempted_gpus, GPUQ_NULL },
	{ "moved_total", judge_count, GPUQ_NULL },
	{ "node_free_sorted", judge_devices, GPUQ_NULL },
	{ "gpu_used_sorted", judge_devices, GPUQ_NULL },
	{ "started_min", judge_count, GPUQ_NULL },
	{ "planned_start", judge_planned, GPUQ_MAP },
	{ "estimate", judge_estimate, GPUQ_MAP },
	{ "reason", judge_reason, GPUQ_MAP },
	{ "bounds", judge_bounds, GPUQ_MAP },
	{ "ended", judge_ended, GPUQ_MAP },
	{ "end_cause", judge_ended, GPUQ_MAP },
	{ "nodes", judge_pools, GPUQ_MAP },
	{ "asked", judge_pools, GPUQ_MAP },
	{ "requests", judge_pools, GPUQ_MAP },
	{ "evictions", judge_entries, GPUQ_LIST },
	{ "moves", judge_entries, GPUQ_LIST },
	{ "error", judge_error, GPUQ_NULL },
	{ "capacity_safe", judge_capacity, GPUQ_NULL },
	{ "stable", judge_stable, GPUQ_NULL },
};

static void judge_all(struct judge *j, const struct gpuq_val *expect)
{
	for (uint32_t i = 0; expect && expect->type == GPUQ_MAP && i < expect->n; i++) {
		const struct gpuq_pair *p = &expect->pairs[i];
		size_t r = 0;

		while (r < sizeof(rows) / sizeof(rows[0]) && strcmp(rows[r].key, p->key) != 0)
			r++;
		if (r == sizeof(rows) / sizeof(rows[0]))
			judge_nonsense(j, p->key, "no check is known for this key");
		else if (rows[r].is == GPUQ_MAP && p->val->type != GPUQ_MAP)
			judge_nonsense(j, p->key, "expected a map");
		else if (rows[r].is == GPUQ_LIST && p->val->type != GPUQ_LIST)
			judge_nonsense(j, p->key, "expected a list");
		else
			rows[r].fn(j, p->key, p->val);
	}
}

unsigned expect_judge(struct world *w, const struct gpuq_val *expect,
		      const struct gpuq_val *outcome, bool stable, struct gpuq_buf *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct judge j = {
		.w = w, .outcome = outcome, .stable = stable, .arena = &mem, .out = out
	};

	judge_all(&j, expect);
	gpuq_arena_done(&mem);
	return j.failed;
}
