/* Use and budgets: usage.list, report.get, queue.grant. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/util/civil.h"
#include "gpuqd/sched/quota/fairtree.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/report/ledger_report.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/state/view/view.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

static struct gpuq_val *word(struct gpuq_arena *a, const char *s)
{
	return s && *s ? gpuq_str(a, s) : gpuq_null(a);
}

/* Whole numbers stay integers. */
static struct gpuq_val *parts(struct gpuq_arena *a, int64_t n, int64_t of)
{
	return n % of == 0 ? gpuq_int(a, n / of) : gpuq_real(a, (double)n / (double)of);
}

/* ---- report.get ---- */

struct report_params {
	int64_t since_us, until_us;
	struct gpuq_strlist by, users, queues, isolations;
};

static const struct gpuq_field report_fields[] = {
	P(report_params, "since_us", GPUQ_K_INT, since_us, .min = 0, .max = INT64_MAX),
	P(report_params, "until_us", GPUQ_K_INT, until_us, .min = 0, .max = INT64_MAX),
	P(report_params, "by", GPUQ_K_STRLIST, by),
	P(report_params, "users", GPUQ_K_STRLIST, users),
	P(report_params, "queues", GPUQ_K_STRLIST, queues),
	P(report_params, "isolations", GPUQ_K_STRLIST, isolations),
	P_END,
};
const struct gpuq_schema p_report_get = P_SCHEMA(report_params, report_fields);

struct reporting {
	struct methods *m;
	struct rpc_call *c;
	struct ledger_report *r;
	unsigned by;
	bool closed;
};

static int read_by(const struct gpuq_strlist *words, unsigned *by, struct gpuq_err *err)
{
	static const char *const names[] = { "user", "queue", "flavor", "day", "isolation", NULL };

	*by = words->n ? 0 : REPORT_BY_USER | REPORT_BY_QUEUE | REPORT_BY_FLAVOR;
	for (size_t i = 0; i < words->n; i++) {
		int k = 0;

		while (names[k] && strcmp(names[k], words->items[i]) != 0)
			k++;
		if (!names[k])
			return gpuq_fail_field(err, GPUQ_EINVAL, "by",
					       "%s: expected user, queue, flavor, isolation or day",
					       words->items[i]);
		*by |= 1u << k;
	}
	return 0;
}

static int read_isolations(const struct gpuq_strlist *words, unsigned *out, struct gpuq_err *err)
{
	*out = 0;
	for (size_t i = 0; i < words->n; i++) {
		int k = 0;

		while (gpuq_isolations[k] && strcmp(gpuq_isolations[k], words->items[i]) != 0)
			k++;
		if (!gpuq_isolations[k])
			return gpuq_fail_field(err, GPUQ_EINVAL, "isolations",
					       "%s: expected exclusive, mig, mps, memory-limited, "
					       "time-slice or none",
					       words->items[i]);
		*out |= 1u << k;
	}
	return 0;
}

/* Null for what is not known, and of no pod. */
static struct gpuq_val *view_used(struct gpuq_arena *a, const struct used_sum *s)
{
	struct gpuq_val *v;

	if (!accounting_knows_used(s))
		return gpuq_null(a);
	v = gpuq_map(a);
	gpuq_put(a, v, "cpu_ms", s->n_cpu ? gpuq_int(a, s->cpu_us / 1000) : gpuq_null(a));
	gpuq_put(a, v, "memory_bytes",
		 s->memory_bytes ? gpuq_int(a, s->memory_bytes) : gpuq_null(a));
	gpuq_put(a, v, "gpu_percent",
		 s->measured_us ? gpuq_real(a, 100 * (double)s->busy_us / (double)s->measured_us)
				: gpuq_null(a));
	return v;
}

static struct gpuq_val *view_row(struct gpuq_arena *a, const struct ledger_row *r, unsigned by,
				 int64_t total_us, const char *currency)
{
	static const struct {
		const char *key;
		enum charge kind;
	} waste[] = { { "evicted", CHARGE_EVICTED },
		      { "starting", CHARGE_STARTING },
		      { "held", CHARGE_HELD },
		      { "stranded", CHARGE_STRANDED },
		      { "fragmented", CHARGE_FRAGMENTED } };
	struct gpuq_val *v = gpuq_map(a), *w = gpuq_map(a), *resources = gpuq_map(a);
	const struct civil_date d = civil_date(r->day == INT64_MIN ? 0 : r->day);

	gpuq_put(a, v, "user", word(a, r->user));
	gpuq_put(a, v, "queue", word(a, r->queue));
	gpuq_put(a, v, "flavor", word(a, r->flavor));
	if (by & REPORT_BY_ISOLATION)
		gpuq_put(a, v, "isolation", view_isolation(a, r->isolation));
	if (r->day != INT64_MIN)
		gpuq_put(a, v, "day",
			 gpuq_str(a, gpuq_arena_printf(a, "%04" PRId64 "-%02d-%02d", d.year,
						       d.month, d.day)));
	gpuq_put(a, v, "gpu_seconds", parts(a, r->us[CHARGE_USED], GPUQ_US_PER_S));
	gpuq_put(a, v, "refunded_gpu_seconds", parts(a, r->us[CHARGE_REFUNDED], GPUQ_US_PER_S));
	for (size_t i = 0; i < sizeof(waste) / sizeof(waste[0]); i++)
		gpuq_put(a, w, waste[i].key, parts(a, r->us[waste[i].kind], GPUQ_US_PER_S));
	gpuq_put(a, v, "wasted_gpu_seconds", w);
	gpuq_put(a, v, "share",
		 gpuq_real(a, total_us ? (double)r->us[CHARGE_USED] / (double)total_us : 0));
	for (const struct ledger_amount *of = r->amounts; of; of = of->next)
		gpuq_put(a, resources, of->name, parts(a, of->us, GPUQ_US_PER_S));
	gpuq_put(a, v, "resource_seconds", resources);
	gpuq_put(a, v, "pods", gpuq_int(a, r->n_pods));
	gpuq_put(a, v, "used", view_used(a, &r->used));
	gpuq_put(a, v, "cost",
		 currency || r->cost_micro ? parts(a, r->cost_micro, 1000000) : gpuq_null(a));
	gpuq_put(a, v, "currency", word(a, currency));
	return v;
}

static void report_end(struct reporting *x)
{
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *list = gpuq_list(a);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct ledger_row *const *rows;
	int64_t total = 0;
	size_t n;

	rows = ledger_report_rows(x->r, &n);
	for (size_t i = 0; rows && i < n; i++)
		total += rows[i]->us[CHARGE_USED];
	for (size_t i = 0; rows && i < n; i++)
		gpuq_add(
			a, list,
			view_row(a, rows[i], x->by, total, journal_model(x->m->j)->site->currency));
	ledger_report_free(x->r);
	if (!rows || rpc_send_items(x->c, list, &err) < 0) {
		gpuq_no_memory(&err);
		rpc_fail(x->c, &err);
	}
}

static void report_step(void *arg)
{
	struct reporting *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = x->closed ? gpuq_fail(&err, GPUQ_ECANCELED, "cancelled")
			   : ledger_report_step(x->r, journal_model(x->m->j), &err);

	if (rc > 0 && loop_after(journal_loop(x->m->j), 0, report_step, x))
		return;
	if (rc == 0) {
		report_end(x);
		return;
	}
	if (rc > 0)
		gpuq_no_memory(&err);
	ledger_report_free(x->r);
	rpc_fail(x->c, &err);
}

static void report_begin(void *arg, int rc, const struct gpuq_err *err)
{
	struct reporting *x = arg;

	if (rc < 0) {
		ledger_report_free(x->r);
		rpc_fail(x->c, err);
		return;
	}
	report_step(x);
}

static void report_closed(void *arg, int why)
{
	struct reporting *x = arg;

	(void)why;
	x->closed = true;
}

int m_report_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct report_params *p = params;
	struct reporting *x = gpuq_arena_calloc(rpc_call_arena(c), 1, sizeof(*x));
	struct ledger_report_opts o = { .now_us = loop_now_us(journal_loop(m->j)) };
	int64_t first, next;
	int rc = read_by(&p->by, &o.by, err);

	if (rc == 0)
		rc = read_isolations(&p->isolations, &o.isolations, err);
	if (rc < 0)
		return rc;
	civil_period(CIVIL_MONTH, clock_day(journal_model(m->j), o.now_us), &first, &next);
	o.since_us = p->since_us ? p->since_us : clock_day_begins(journal_model(m->j), first);
	o.until_us = p->until_us ? p->until_us : o.now_us;
	o.users = &p->users;
	o.queues = &p->queues;
	if (o.until_us < o.since_us)
		return gpuq_fail_field(err, GPUQ_EINVAL, "until_us", "the end is before the start");
	if (x)
		x->r = ledger_report_new(journal_model(m->j), journal_store(m->j), &o);
	if (!x || !x->r)
		return gpuq_no_memory(err);
	x->m = m;
	x->c = c;
	x->by = o.by;
	rpc_call_watch(c, NULL, report_closed, x);
	journal_after(m->j, report_begin, x);
	return 0;
}

/* ---- usage.list ---- */

struct usage_params {
	struct gpuq_strlist names, users;
};

static const struct gpuq_field usage_fields[] = {
	P(usage_params, "names", GPUQ_K_STRLIST, names),
	P(usage_params, "users", GPUQ_K_STRLIST, users),
	P_END,
};
const struct gpuq_schema p_usage_list = P_SCHEMA(usage_params, usage_fields);

static struct gpuq_val *minutes(struct gpuq_arena *a, int64_t ms)
{
	return ms == GPUQ_UNLIMITED ? gpuq_null(a) : parts(a, ms / 6, 10000);
}

struct budget_now {
	const struct site_budget *b; /* NULL = none */
	int64_t gpu_minutes; /* GPUQ_UNLIMITED = not limited */
	struct spent spent;
	int64_t committed_ms;
};

static void put_budget(struct gpuq_arena *a, struct gpuq_val *v, const struct budget_now *n)
{
	static const char *const periods[] = { "none", "day", "week", "month", "quarter", "year" };
	const bool any = n->b && n->gpu_minutes != GPUQ_UNLIMITED;
	const int64_t all = any ? n->gpu_minutes * 60000 + n->spent.granted_ms : 0;
	const int64_t left = all - n->spent.used_ms;

	gpuq_put(a, v, "budget_gpu_minutes", any ? gpuq_int(a, n->gpu_minutes) : gpuq_null(a));
	gpuq_put(a, v, "granted_gpu_minutes", minutes(a, n->spent.granted_ms));
	gpuq_put(a, v, "used_gpu_minutes", minutes(a, n->spent.used_ms));
	gpuq_put(a, v, "committed_gpu_minutes", minutes(a, n->committed_ms));
	/* Below 0: what was used beyond it. */
	gpuq_put(a, v, "left_gpu_minutes", any ? parts(a, left / 6, 10000) : gpuq_null(a));
	gpuq_put(a, v, "mode", any ? gpuq_str(a, n->b->mode ? "hard" : "soft") : gpuq_null(a));
	gpuq_put(a, v, "period",
		 any && !n->b->half_life_us ? gpuq_str(a, periods[n->b->period]) : gpuq_null(a));
	gpuq_put(a, v, "half_life_s",
		 any && n->b->half_life_us ? gpuq_int(a, n->b->half_life_us / GPUQ_US_PER_S)
					   : gpuq_null(a));
	gpuq_put(a, v, "reset_time",
		 any && n->spent.reset_us ? gpuq_int(a, n->spent.reset_us) : gpuq_null(a));
	gpuq_put(a, v, "over_budget", gpuq_bool(a, any && left <= 0));
}

static void put_money(struct gpuq_arena *a, struct gpuq_val *v, const struct model *m,
		      const struct queue *q, const char *user, int64_t now_us)
{
	const char *currency = m->site->currency;
	const int64_t micro = budget_cost_micro(m, q, user, now_us);

	gpuq_put(a, v, "cost", currency || micro ? parts(a, micro, 1000000) : gpuq_null(a));
	gpuq_put(a, v, "currency", word(a, currency));
}

/* The queue's, else the nearest above that gives a part to each user; NULL. */
static const struct queue *purse_of(const struct queue *q)
{
	while (q && (!q->budget || q->budget->user_gpu_minutes == GPUQ_UNLIMITED))
		q = q->parent;
	return q;
}

/* Decayed device-seconds are in the snapshot's accounts: u NULL = the user has no account there. */
static struct gpuq_val *view_user(struct gpuq_arena *a, const struct model *m,
				  const struct queue *q, const char *user,
				  const struct snap_usage *u, double factor,
				  const struct spent *spent, int64_t now_us)
{
	const struct queue *b = purse_of(q);
	struct gpuq_val *v = gpuq_map(a);
	struct budget_now n = { .gpu_minutes = GPUQ_UNLIMITED };

	if (b) {
		n.b = b->budget;
		n.gpu_minutes = b->budget->user_gpu_minutes;
		n.spent.reset_us = spent[b->ix].reset_us;
	}
	n.spent.used_ms = budget_user_spent_ms(m, b ? b : q, user, now_us);
	n.committed_ms = budget_committed_ms(m, b ? b : q, user, now_us);
	gpuq_put(a, v, "queue", gpuq_str(a, q->name));
	gpuq_put(a, v, "user", gpuq_str(a, user));
	put_budget(a, v, &n);
	gpuq_put(a, v, "decayed_gpu_seconds",
		 gpuq_real(a, u ? (double)(u->used >> 10) / (double)(1 << 10) : 0));
	gpuq_put(a, v, "factor", u ? gpuq_real(a, factor) : gpuq_null(a));
	put_money(a, v, m, q, user, now_us);
	return v;
}

/* Add users with use in q, and requested users that may have a budget. */
static void add_users(struct gpuq_arena *a, struct gpuq_val *list, const struct model *m,
		      const struct queue *q, const struct snapshot *s, const uint32_t *ranks,
		      const struct gpuq_strlist *users, const struct spent *spent, int64_t now_us)
{
	bool *seen = gpuq_arena_calloc(a, users->n + 1, sizeof(*seen));

	for (uint32_t k = 0; k < s->n_usages; k++) {
		const char *user = s->users[s->usages[k].user];

		if (strcmp(s->queues[s->usages[k].queue].name, q->name) != 0 ||
		    !gpuq_strlist_passes(users, user))
			continue;
		for (size_t i = 0; seen && i < users->n; i++)
			seen[i] |= strcmp(users->items[i], user) == 0;
		gpuq_add(a, list,
			 view_user(a, m, q, user, &s->usages[k],
				   (double)ranks[k] / (double)s->n_usages, spent, now_us));
	}
	for (size_t i = 0; seen && i < users->n; i++)
		if (!seen[i] && q->n_children == 0 && purse_of(q) &&
		    access_submit(m, q, users->items[i], NULL, false))
			gpuq_add(a, list,
				 view_user(a, m, q, users->items[i], NULL, 0, spent, now_us));
}

static struct gpuq_val *view_of_queue(struct gpuq_arena *a, const struct model *m,
				      const struct queue *q, const struct snapshot *s,
				      const struct spent *spent, int64_t now_us)
{
	struct gpuq_val *v = gpuq_map(a);
	const struct budget_now n = { q->budget,
				      q->budget ? q->budget->gpu_minutes : GPUQ_UNLIMITED, *spent,
				      budget_committed_ms(m, q, NULL, now_us) };
	uint64_t used = 0;

	for (uint32_t i = 0; i < s->n_usages; i++) {
		const char *name = s->queues[s->usages[i].queue].name;

		for (const struct queue *up = model_find_queue(m, name); up; up = up->parent)
			used += up == q ? s->usages[i].used : 0;
	}
	gpuq_put(a, v, "queue", gpuq_str(a, q->name));
	gpuq_put(a, v, "user", gpuq_null(a));
	put_budget(a, v, &n);
	gpuq_put(a, v, "decayed_gpu_seconds",
		 gpuq_real(a, (double)(used >> 10) / (double)(1 << 10)));
	gpuq_put(a, v, "factor", gpuq_null(a));
	put_money(a, v, m, q, NULL, now_us);
	return v;
}

int m_usage_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct usage_params *p = params;
	const struct model *model = journal_model(m->j);
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *list = gpuq_list(a);
	const int64_t now = loop_now_us(journal_loop(m->j));
	struct spent *spent = gpuq_arena_calloc(a, model->n_queues, sizeof(*spent));
	const uint32_t *ranks;
	struct snapshot *s;
	int rc;

	for (size_t i = 0; i < p->names.n; i++)
		if (!model_find_queue(model, p->names.items[i]))
			return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %s",
					 p->names.items[i]);
	if (!spent)
		return gpuq_no_memory(err);
	rc = snapshot_take_usage(model, now, &s, err);
	if (rc < 0)
		return rc;
	budget_spending(model, now, spent);
	ranks = fairtree_ranks(s, a);
	for (uint32_t i = 0; i < model->n_queues && ranks; i++) {
		const struct queue *q = model->queues[i];

		if (!gpuq_strlist_passes(&p->names, q->name))
			continue;
		if (!p->users.n)
			gpuq_add(a, list, view_of_queue(a, model, q, s, &spent[i], now));
		add_users(a, list, model, q, s, ranks, &p->users, spent, now);
	}
	snapshot_free(s);
	return ranks ? rpc_send_items(c, list, err) : gpuq_no_memory(err);
}

/* ---- queue.grant ---- */

struct grant_params {
	const char *name, *why;
	int64_t gpu_minutes;
	bool dry_run;
};

static const struct gpuq_field grant_fields[] = {
	P(grant_params, "name", GPUQ_K_STR, name, .flags = GPUQ_F_REQUIRED),
	P(grant_params, "gpu_minutes", GPUQ_K_INT, gpu_minutes, .flags = GPUQ_F_REQUIRED,
	  .min = -GPUQ_GRANT_MINUTES_MAX, .max = GPUQ_GRANT_MINUTES_MAX),
	P(grant_params, "why", GPUQ_K_STR, why, .max = 1024),
	P(grant_params, "dry_run", GPUQ_K_BOOL, dry_run),
	P_END,
};
const struct gpuq_schema p_queue_grant = P_SCHEMA(grant_params, grant_fields);

int m_queue_grant(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct grant_params *p = params;
	const struct model *model = journal_model(m->j);
	struct gpuq_arena *a = rpc_call_arena(c);
	const struct queue *q = model_find_queue(model, p->name);
	const char *who = rpc_call_peer(c)->user;
	struct event ev = { .type = EV_QUEUE_GRANTED };
	struct audit_note note = { .who = who, .action = "queue.granted", .kind = "queue" };
	struct gpuq_val *v = gpuq_map(a);
	struct spent *spent;
	int rc = 0;

	if (!q)
		return gpuq_fail_field(err, GPUQ_ENOENT, "name", "no queue is named %s", p->name);
	/* Minutes of a queue are granted by managers of the queues above, not by its own. */
	if (!access_manage(model, q->parent, who, peer_is_operator(c)))
		return gpuq_fail(err, GPUQ_EPERM,
				 "only operators and managers of a queue above may grant "
				 "minutes to queue %s",
				 q->name);
	if (!q->budget || q->budget->gpu_minutes == GPUQ_UNLIMITED)
		return gpuq_fail(err, GPUQ_EINVAL, "queue %s has no budget", q->name);
	ev.granted.name = q->name;
	ev.granted.gpu_minutes = p->gpu_minutes;
	ev.granted.why = p->why ? p->why : "";
	ev.granted.who = who;
	if (!p->dry_run)
		rc = journal_apply(m->j, &ev, err);
	if (rc < 0)
		return rc;
	note.name = note.queue = q->name;
	note.note = p->why && *p->why ? p->why : NULL;
	note.after = gpuq_int(a, p->gpu_minutes);
	if (!p->dry_run)
		rc = audit_add(m->j, &note, err);
	if (rc < 0)
		return rc;
	if (!p->dry_run)
		log_info("queue.granted", "queue=%s gpu_minutes=%" PRId64 " user=%s why=%s",
			 q->name, p->gpu_minutes, LOGS(who), LOGS(ev.granted.why));
	spent = gpuq_arena_calloc(a, model->n_queues, sizeof(*spent));
	if (!spent)
		return gpuq_no_memory(err);
	budget_spending(model, loop_now_us(journal_loop(m->j)), spent);
	if (p->dry_run)
		spent[q->ix].granted_ms += p->gpu_minutes * 60 * 1000;
	gpuq_put(a, v, "queue", gpuq_str(a, q->name));
	gpuq_put(a, v, "budget_gpu_minutes", gpuq_int(a, q->budget->gpu_minutes));
	gpuq_put(a, v, "granted_gpu_minutes", minutes(a, spent[q->ix].granted_ms));
	gpuq_put(a, v, "used_gpu_minutes", minutes(a, spent[q->ix].used_ms));
	rpc_reply(c, v);
	return 0;
}
