/* plan.get: when and where jobs would start, what they would relocate or preempt, and their
 * cost. */
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/state/model.h"
#include "gpuqd/site/price.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/admit/submit.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/rpc/method/m_start.h"
#include "libgpuq/spec.h"
#include "libgpuq/units.h"

struct plan_params {
	struct gpuq_val *specs, *context;
};

static const struct gpuq_field plan_fields[] = {
	P(plan_params, "specs", GPUQ_K_VAL, specs, .flags = GPUQ_F_REQUIRED,
	  .doc = "normalised job specs"),
	P(plan_params, "context", GPUQ_K_VAL, context,
	  .doc = "context of the submission, for specs without one"),
	P_END,
};
const struct gpuq_schema p_plan_get = P_SCHEMA(plan_params, plan_fields);

struct planning {
	struct methods *m;
	struct rpc_call *c;
	struct gpuq_val *jobs; /* as a dry run of a submission shows them */
	const struct start_guest *guests;
	uint32_t n;
	uint64_t ticket;
	/* Then each of its flavors by itself: all jobs with the first one, with the second one... */
	uint32_t flavor; /* of the question under way, from 1; 0 = with all of them */
	struct start_guest *alone; /* the jobs with that one */
	int64_t *opens_us; /* by job: how long it waits before it uses that one */
	struct gpuq_val *plans;
};
#define FLAVORS_MAX 8u /* that are asked about */

/* ---- what it would cost ---- */

static int64_t rate_milli(const struct model *m, const char *flavor)
{
	site_each(site_flavor, m->site->flavors, f)
		if (strcmp(f->name, flavor) == 0)
			return f->rate_milli;
	return 1000;
}

static struct gpuq_val *minutes(struct gpuq_arena *a, double n)
{
	return gpuq_real(a, (double)(int64_t)(n * 100 + (n < 0 ? -0.5 : 0.5)) / 100);
}

/* Return the budget of the nearest queue that has one. */
static struct gpuq_val *budget_val(const struct planning *x, struct gpuq_arena *a,
				   const char *queue)
{
	const struct model *m = journal_model(x->m->j);
	const struct queue *q = model_find_queue(m, queue);
	struct spent *spent = gpuq_arena_calloc(a, m->n_queues, sizeof(*spent));
	struct gpuq_val *v;
	double left;

	while (q && (!q->budget || q->budget->gpu_minutes == GPUQ_UNLIMITED))
		q = q->parent;
	if (!q || !spent)
		return gpuq_null(a);
	budget_spending(m, loop_now_us(journal_loop(x->m->j)), spent);
	left = (double)q->budget->gpu_minutes +
	       (double)(spent[q->ix].granted_ms - spent[q->ix].used_ms) / 60000;
	v = gpuq_map(a);
	gpuq_put(a, v, "queue", gpuq_str(a, q->name));
	gpuq_put(a, v, "gpu_minutes", gpuq_int(a, q->budget->gpu_minutes));
	gpuq_put(a, v, "left_gpu_minutes", minutes(a, left));
	gpuq_put(a, v, "hard", gpuq_bool(a, q->budget->mode == 1));
	return v;
}

/* The charge for a device: the rate of its flavor, and its price in its pool. */
struct tariff {
	int64_t rate_milli, price_micro;
};

static bool may_use(const struct start_guest *g, const char *flavor)
{
	return gpuq_strlist_passes(&g->spec->flavors, flavor);
}

/* Return the tariff of the estimated placement; if that is unknown, the highest of all that it
 * may use. */
static struct tariff tariff_of(const struct model *m, const struct start_guest *g,
			       const struct start_answer *s)
{
	struct tariff t = { 0 };

	node_each(m, n) {
		if (n->gone || n->n_devices == 0 ||
		    (s->n_pods ? strcmp(n->name, s->pods[0].node) != 0 : !may_use(g, n->flavor)))
			continue;
		if (rate_milli(m, n->flavor) > t.rate_milli)
			t.rate_milli = rate_milli(m, n->flavor);
		if (price_micro(m->site, n->pool, n->flavor) > t.price_micro)
			t.price_micro = price_micro(m->site, n->pool, n->flavor);
	}
	site_each(site_pool, m->site->pools, p) {
		if (s->n_pods || !site_pool_grows(p) || !may_use(g, p->flavor))
			continue;
		if (rate_milli(m, p->flavor) > t.rate_milli)
			t.rate_milli = rate_milli(m, p->flavor);
		if (price_micro(m->site, p->name, p->flavor) > t.price_micro)
			t.price_micro = price_micro(m->site, p->name, p->flavor);
	}
	if (t.rate_milli == 0)
		t.rate_milli = rate_milli(m, s->flavor);
	return t;
}

static void put_money(const struct planning *x, struct gpuq_arena *a, struct gpuq_val *v,
		      int64_t micro, double gpu_us)
{
	const struct model *m = journal_model(x->m->j);
	const bool known = micro > 0 && gpu_us < (double)(INT64_MAX / 2);

	gpuq_put(a, v, "money",
		 known ? gpuq_real(a, (double)price_cost(micro, (int64_t)gpu_us) / 1000000)
		       : gpuq_null(a));
	gpuq_put(a, v, "currency",
		 known && m->site->currency ? gpuq_str(a, m->site->currency) : gpuq_null(a));
}

/* At most: its whole time limit on all its devices. */
static struct gpuq_val *cost_val(const struct planning *x, struct gpuq_arena *a,
				 const struct start_guest *g, const struct start_answer *s)
{
	const double elements = g->spec->array.n_ranges ? (double)g->spec->array.size : 1;
	const double gpus = (double)gpuq_spec_gpus_milli(g->spec) / 1000 * elements;
	const double min = (double)g->time_limit_us / (60.0 * (double)GPUQ_US_PER_S);
	const struct model *m = journal_model(x->m->j);
	const struct site_qos *qos = site_qos_find(m->site, g->qos);
	const struct tariff t = tariff_of(m, g, s);
	const double rate =
		(double)t.rate_milli / 1000 * (double)(qos ? qos->usage_factor_milli : 1000) / 1000;
	struct gpuq_val *v = gpuq_map(a);
	double lost = 0;

	for (uint32_t k = 0; k < s->n_victims; k++)
		lost += (double)s->victims[k].lost_gpu_ms / 3600000;
	gpuq_put(a, v, "lost_gpu_hours", gpuq_real(a, lost));
	if (g->time_limit_us == GPUQ_UNLIMITED) {
		gpuq_put(a, v, "gpu_hours", gpuq_null(a));
		gpuq_put(a, v, "gpu_minutes", gpuq_null(a));
		gpuq_put(a, v, "money", gpuq_null(a));
		gpuq_put(a, v, "currency", gpuq_null(a));
	} else {
		gpuq_put(a, v, "gpu_hours", minutes(a, gpus * min / 60));
		gpuq_put(a, v, "gpu_minutes", minutes(a, gpus * min * rate));
		put_money(x, a, v, t.price_micro, gpus * (double)g->time_limit_us);
	}
	gpuq_put(a, v, "budget", budget_val(x, a, g->queue));
	return v;
}

/* ---- each flavor by itself ---- */

static bool grows(const struct site *s, const char *flavor)
{
	site_each(site_pool, s->pools, p)
		if (site_pool_grows(p) && strcmp(p->flavor, flavor) == 0)
			return true;
	return false;
}

/* Return the flavor of that number; NULL = it uses fewer. */
static const char *flavor_of(const struct planning *x, uint32_t job, uint32_t ix)
{
	const struct site *site = journal_model(x->m->j)->site;
	const struct gpuq_strlist *named = &x->guests[job].spec->flavors;
	const size_t n = named->n ? named->n : site->flavors.n;

	/* There is more to be told of a single one where its nodes would be requested. */
	if ((n < 2 && !(named->n && grows(site, named->items[0]))) || ix >= n ||
	    ix >= FLAVORS_MAX || gpuq_spec_gpus_milli(x->guests[job].spec) == 0)
		return NULL;
	return named->n ? named->items[ix]
			: ((const struct site_flavor *)site->flavors.items)[ix].name;
}

/* Have the job use that flavor alone, from when it would. */
static bool restrict_to(struct planning *x, struct gpuq_arena *a, uint32_t job, const char *flavor)
{
	const struct gpuq_spec *from = x->guests[job].spec;
	const int64_t now = loop_wall_us(journal_loop(x->m->j));
	struct gpuq_spec *spec = gpuq_arena_alloc(a, sizeof(*spec));
	struct gpuq_flavor_rule *rule = gpuq_arena_calloc(a, 1, sizeof(*rule));
	const char **names = gpuq_arena_calloc(a, 1, sizeof(*names));

	if (!spec || !rule || !names)
		return false;
	*spec = *from;
	names[0] = flavor;
	spec->flavors = (struct gpuq_strlist){ names, 1 };
	spec->flavor_rules = NULL;
	x->opens_us[job] = 0;
	for (uint32_t k = 0; from->flavor_rules && k + 1 < x->flavor; k++)
		x->opens_us[job] += from->flavor_rules[k].for_us;
	if (from->flavor_rules && from->flavor_rules[x->flavor - 1].max_price_micro) {
		rule->max_price_micro = from->flavor_rules[x->flavor - 1].max_price_micro;
		spec->flavor_rules = rule;
	}
	if (x->opens_us[job] && spec->begin_us < now + x->opens_us[job])
		spec->begin_us = now + x->opens_us[job];
	x->alone[job].spec = spec;
	return true;
}

/* Add the pool that would request nodes of the flavor, and how long its requests took. */
static void put_pool(const struct model *m, struct gpuq_arena *a, struct gpuq_val *v,
		     const char *flavor)
{
	const struct site_pool *cheapest = NULL;
	const struct ask_pool *known;
	int64_t wait;

	site_each(site_pool, m->site->pools, p)
		if (site_pool_grows(p) && strcmp(p->flavor, flavor) == 0 &&
		    (!cheapest || price_micro(m->site, p->name, flavor) <
					  price_micro(m->site, cheapest->name, flavor)))
			cheapest = p;
	known = cheapest ? ask_pool_find(m, cheapest->name) : NULL;
	gpuq_put(a, v, "pool", cheapest ? gpuq_str(a, cheapest->name) : gpuq_null(a));
	wait = known ? ask_pool_wait_s(known, 50) : -1;
	gpuq_put(a, v, "wait_p50_s", wait >= 0 ? gpuq_int(a, wait) : gpuq_null(a));
	wait = known ? ask_pool_wait_s(known, 90) : -1;
	gpuq_put(a, v, "wait_p90_s", wait >= 0 ? gpuq_int(a, wait) : gpuq_null(a));
}

static bool next_flavor(struct planning *x);

static void on_flavor(void *arg, int rc, const struct start_answer *answers, uint32_t n,
		      const struct start_assumed *assumed, const struct gpuq_err *failed)
{
	struct planning *x = arg;
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *v;

	if (rc < 0) {
		rpc_fail(x->c, failed);
		return;
	}
	for (uint32_t i = 0; i < n && i < x->n; i++) {
		const char *flavor = flavor_of(x, i, x->flavor - 1);
		struct gpuq_val *plan = x->plans->items[i], *list = gpuq_get(plan, "flavors");
		struct gpuq_val *one;

		if (!flavor || answers[i].rc != 0)
			continue;
		if (!list)
			list = gpuq_put(a, plan, "flavors", gpuq_list(a));
		one = gpuq_add(a, list, gpuq_map(a));
		gpuq_put(a, one, "flavor", gpuq_str(a, flavor));
		gpuq_put(a, one, "waited_s", gpuq_int(a, x->opens_us[i] / GPUQ_US_PER_S));
		gpuq_put(a, one, "start", start_val(a, &answers[i], assumed));
		gpuq_put(a, one, "cost", cost_val(x, a, &x->alone[i], &answers[i]));
		put_pool(journal_model(x->m->j), a, one, flavor);
	}
	if (next_flavor(x))
		return;
	v = gpuq_map(a);
	gpuq_put(a, v, "plans", x->plans);
	rpc_reply(x->c, v);
}

/* Ask about the next flavor. False: that was all. */
static bool next_flavor(struct planning *x)
{
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool any = false;

	x->alone = gpuq_arena_calloc(a, x->n, sizeof(*x->alone));
	x->opens_us = gpuq_arena_calloc(a, x->n, sizeof(*x->opens_us));
	if (!x->alone || !x->opens_us)
		return false;
	x->flavor++;
	for (uint32_t i = 0; i < x->n; i++) {
		const char *flavor = flavor_of(x, i, x->flavor - 1);

		x->alone[i] = x->guests[i];
		if (flavor && !restrict_to(x, a, i, flavor))
			return false;
		any |= flavor != NULL;
	}
	return any && estimator_ask(x->m->estimator, NULL, 0, x->alone, x->n, on_flavor, x,
				    &x->ticket, &err) == 0;
}

/* ---- the reply ---- */

static void on_estimate(void *arg, int rc, const struct start_answer *answers, uint32_t n,
			const struct start_assumed *assumed, const struct gpuq_err *failed)
{
	struct planning *x = arg;
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a);

	if (rc < 0) {
		rpc_fail(x->c, failed);
		return;
	}
	for (uint32_t i = 0; i < n && i < x->n; i++) {
		struct gpuq_val *one = gpuq_map(a), *start;

		start = answers[i].rc == 0 ? start_val(a, &answers[i], assumed) : gpuq_null(a);
		if (answers[i].rc == 0)
			gpuq_put(a, start, "record",
				 start_record_val(a, x->m->estimator, x->guests[i].queue));
		gpuq_put(a, one, "job", x->jobs->items[i]);
		gpuq_put(a, one, "start", start);
		gpuq_put(a, one, "cost",
			 answers[i].rc == 0 ? cost_val(x, a, &x->guests[i], &answers[i])
					    : gpuq_null(a));
		gpuq_add(a, list, one);
	}
	x->plans = gpuq_put(a, v, "plans", list);
	if (!next_flavor(x))
		rpc_reply(x->c, v);
}

static void on_closed(void *arg, int why)
{
	struct planning *x = arg;
	struct gpuq_err err;

	estimator_forget(x->m->estimator, x->ticket);
	gpuq_fail(&err, why, "cancelled");
	rpc_fail(x->c, &err);
}

int m_plan_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct plan_params *p = params;
	const struct submit_who who = peer_who(m, c);
	struct gpuq_arena *a = rpc_call_arena(c);
	struct planning *x = gpuq_arena_alloc(a, sizeof(*x));
	struct submit_result checked;
	int rc;

	for (uint32_t i = 0; p->context && p->specs->type == GPUQ_LIST && i < p->specs->n; i++)
		if (p->specs->items[i]->type == GPUQ_MAP &&
		    !gpuq_get(p->specs->items[i], "context"))
			gpuq_put(a, p->specs->items[i], "context", p->context);
	rc = submit_jobs(m->j, m->cluster, &who, p->specs, NULL, 0, true, a, &checked, err);
	if (rc < 0)
		return rc;
	if (checked.n_guests > ESTIMATE_JOBS_MAX)
		return gpuq_fail_field(err, GPUQ_EINVAL, "specs", "expected at most %u jobs",
				       (unsigned)ESTIMATE_JOBS_MAX);
	if (!x)
		return gpuq_no_memory(err);
	*x = (struct planning){ .m = m,
				.c = c,
				.jobs = checked.jobs,
				.guests = checked.guests,
				.n = checked.n_guests };
	rc = estimator_ask(m->estimator, NULL, 0, x->guests, x->n, on_estimate, x, &x->ticket, err);
	if (rc == 0)
		rpc_call_watch(c, NULL, on_closed, x);
	return rc;
}
