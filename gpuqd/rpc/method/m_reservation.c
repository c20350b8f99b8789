/* reservation.list: the calendar as it stands. reservation.report: what became of reservations between two
 * instants. */
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/site/site_merge.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/recur.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/units.h"
#include "gpuqd/flow/report/reserved.h"
#include "gpuqd/util/civil.h"

/* ---- the calendar ---- */

#define DAY_US (86400 * GPUQ_US_PER_S)
#define DAYS_MAX 366
#define OCCURRENCES_MAX 1000 /* of one reservation */

struct calendar_params {
	struct gpuq_strlist names;
	int64_t days; /* that the calendar shows, from now; 0 = no calendar */
};

static const struct gpuq_field calendar_fields[] = {
	P(calendar_params, "names", GPUQ_K_STRLIST, names),
	P(calendar_params, "days", GPUQ_K_INT, days, .min = 0, .max = DAYS_MAX),
	P_END,
};
const struct gpuq_schema p_reservation_list = P_SCHEMA(calendar_params, calendar_fields);

static struct gpuq_val *strings(struct gpuq_arena *a, const struct gpuq_strlist *l)
{
	struct gpuq_val *v = gpuq_list(a);

	for (size_t i = 0; i < l->n; i++)
		gpuq_add(a, v, gpuq_str(a, l->items[i]));
	return v;
}

/* Those it names; of a pool without a number, those of the pool. */
static struct gpuq_val *nodes_of(struct gpuq_arena *a, const struct model *m,
				 const struct site_reservation *r)
{
	struct gpuq_val *v = strings(a, &r->nodes);

	if (r->nodes.n || r->gpus_milli || !r->pool)
		return v;
	node_each(m, n)
		if (strcmp(n->pool, r->pool) == 0)
			gpuq_add(a, v, gpuq_str(a, n->name));
	return v;
}

/* Put its occurrences from now on into v, and what it reserves of each pool; "" is any pool. */
static void put_calendar(struct gpuq_arena *a, const struct model *m,
			 const struct site_reservation *r, struct gpuq_val *v, int64_t now,
			 int64_t days)
{
	const struct recur when = site_reservation_when(r);
	struct gpuq_val *times = gpuq_list(a), *pools = gpuq_map(a);
	const struct gpuq_val *nodes = gpuq_get(v, "nodes");
	int64_t start = recur_at(&when, now);

	for (int i = 0; i < OCCURRENCES_MAX && start < now + days * DAY_US; i++) {
		const int64_t end = amount_sum(start, r->duration_us);
		struct gpuq_val *one = gpuq_map(a);

		gpuq_put(a, one, "start_time", gpuq_int(a, walltime_to_ledger(start, m->ahead_us)));
		gpuq_put(a, one, "end_time",
			 end == GPUQ_UNLIMITED ? gpuq_null(a)
					       : gpuq_int(a, walltime_to_ledger(end, m->ahead_us)));
		gpuq_add(a, times, one);
		start = recur_at(&when, end);
	}
	for (uint32_t i = 0; nodes && r->gpus_milli == 0 && i < nodes->n; i++) {
		const struct node *n = model_find_node(m, nodes->items[i]->s);

		if (n)
			gpuq_set(a, pools, n->pool,
				 gpuq_int(a, gpuq_get_int(pools, n->pool, 0) + n->n_devices));
	}
	if (r->gpus_milli > 0)
		gpuq_put(a, pools, r->pool ? r->pool : "", gpuq_get(v, "gpus"));
	/* Its nodes are not there yet. */
	if (pools->n == 0)
		gpuq_put(a, pools, r->pool ? r->pool : "", gpuq_int(a, 0));
	gpuq_put(a, v, "occurrences", times);
	gpuq_put(a, v, "pools", pools);
}

/* True if not all nodes of an external window are there and ready. */
static bool is_late(const struct model *m, const struct site_reservation *r)
{
	int64_t n_ready = 0;

	node_each(m, n)
		n_ready += r->external && strcmp(n->pool, r->pool) == 0 && n->fact.ready;
	return n_ready < r->count;
}

/* Seconds; null for 0, which stands for never. */
static struct gpuq_val *whole_s(struct gpuq_arena *a, int64_t us)
{
	return us ? gpuq_int(a, us / GPUQ_US_PER_S) : gpuq_null(a);
}

static struct gpuq_val *view(struct gpuq_arena *a, const struct model *m,
			     const struct site_reservation *r, int64_t now)
{
	const int64_t start = site_reservation_start(r, now);
	struct gpuq_val *v = gpuq_map(a), *nodes = nodes_of(a, m, r);
	int64_t milli = r->gpus_milli, end;

	if (__builtin_add_overflow(start, r->duration_us, &end))
		end = GPUQ_UNLIMITED;
	for (uint32_t i = 0; nodes && r->gpus_milli == 0 && i < nodes->n; i++) {
		const struct node *n = model_find_node(m, nodes->items[i]->s);

		milli += n ? (int64_t)n->n_devices * 1000 : 0;
	}
	gpuq_put(a, v, "name", gpuq_str(a, r->name));
	gpuq_put(a, v, "state",
		 gpuq_str(a, now < start     ? "planned"
			     : now >= end    ? "over"
			     : is_late(m, r) ? "late"
					     : "active"));
	/* These are wall time, as those of all replies become: walltime.h. */
	gpuq_put(a, v, "start_time", gpuq_int(a, walltime_to_ledger(start, m->ahead_us)));
	gpuq_put(a, v, "end_time",
		 end == GPUQ_UNLIMITED ? gpuq_null(a)
				       : gpuq_int(a, walltime_to_ledger(end, m->ahead_us)));
	gpuq_put(a, v, "duration_s", gpuq_int(a, r->duration_us / GPUQ_US_PER_S));
	gpuq_put(a, v, "gpus",
		 milli % 1000 ? gpuq_real(a, (double)milli / 1000) : gpuq_int(a, milli / 1000));
	gpuq_put(a, v, "flavor", gpuq_str(a, r->flavor));
	gpuq_put(a, v, "pool", gpuq_str(a, r->pool));
	gpuq_put(a, v, "nodes", nodes);
	gpuq_put(a, v, "external", gpuq_bool(a, r->external));
	gpuq_put(a, v, "count", r->external ? gpuq_int(a, r->count) : gpuq_null(a));
	gpuq_put(a, v, "at_end", gpuq_str(a, site_at_ends[r->at_end]));
	gpuq_put(a, v, "queue", gpuq_str(a, r->queue));
	gpuq_put(a, v, "users", strings(a, &r->users));
	gpuq_put(a, v, "flags", strings(a, &r->flags));
	gpuq_put(a, v, "every_s", whole_s(a, site_reservation_every_us(r)));
	gpuq_put(a, v, "release_after_s", whole_s(a, site_reservation_release_us(r)));
	gpuq_put(a, v, "until_time",
		 r->until_us ? gpuq_int(a, walltime_to_ledger(r->until_us, m->ahead_us))
			     : gpuq_null(a));
	gpuq_put(a, v, "timezone", gpuq_str(a, r->timezone.name ? r->timezone.name : "UTC"));
	gpuq_put(a, v, "except",
		 r->except.n ? site_days_custom.write(a, &r->except) : gpuq_list(a));
	return v;
}

int m_reservation_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct calendar_params *p = params;
	const struct model *model = journal_model(m->j);
	const int64_t now = loop_wall_us(journal_loop(m->j));
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *list = gpuq_list(a);

	for (size_t i = 0; i < p->names.n; i++)
		if (!site_member(model->site->tree, "reservations", p->names.items[i]))
			return gpuq_fail(err, GPUQ_ENOENT, "no reservation is named %s",
					 p->names.items[i]);
	site_each(site_reservation, model->site->reservations, r) {
		if (gpuq_strlist_passes(&p->names, r->name)) {
			struct gpuq_val *v = view(a, model, r, now);

			if (p->days > 0)
				put_calendar(a, model, r, v, now, p->days);
			gpuq_add(a, list, v);
		}
	}
	return rpc_send_items(c, list, err);
}

/* ---- what became of it ---- */

struct reserved_params {
	int64_t since_us, until_us;
};

static const struct gpuq_field reserved_fields[] = {
	P(reserved_params, "since_us", GPUQ_K_INT, since_us, .min = 0, .max = INT64_MAX),
	P(reserved_params, "until_us", GPUQ_K_INT, until_us, .min = 0, .max = INT64_MAX),
	P_END,
};
const struct gpuq_schema p_reservation_report = P_SCHEMA(reserved_params, reserved_fields);

struct asked {
	struct methods *m;
	struct rpc_call *c;
	struct reserved *r;
	bool closed;
};

/* Whole numbers stay integers. */
static struct gpuq_val *parts(struct gpuq_arena *a, int64_t n, int64_t of)
{
	return n % of == 0 ? gpuq_int(a, n / of) : gpuq_real(a, (double)n / (double)of);
}

static struct gpuq_val *view_row(struct gpuq_arena *a, const struct reserved_row *r,
				 const char *currency)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "reservation", gpuq_str(a, r->name));
	gpuq_put(a, v, "queue", r->queue ? gpuq_str(a, r->queue) : gpuq_null(a));
	gpuq_put(a, v, "windows", gpuq_int(a, r->n_windows));
	gpuq_put(a, v, "no_shows", gpuq_int(a, r->n_no_shows));
	gpuq_put(a, v, "reserved_gpu_seconds", parts(a, r->reserved_us, GPUQ_US_PER_S));
	gpuq_put(a, v, "gpu_seconds", parts(a, r->used_us, GPUQ_US_PER_S));
	gpuq_put(a, v, "unused_gpu_seconds", parts(a, r->reserved_us - r->used_us, GPUQ_US_PER_S));
	gpuq_put(a, v, "cost",
		 currency || r->cost_micro ? parts(a, r->cost_micro, 1000000) : gpuq_null(a));
	gpuq_put(a, v, "currency", currency ? gpuq_str(a, currency) : gpuq_null(a));
	return v;
}

static void answer_report(struct asked *x)
{
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *list = gpuq_list(a);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct reserved_row *rows;
	size_t n;

	rows = reserved_rows(x->r, &n);
	for (size_t i = 0; i < n; i++)
		gpuq_add(a, list, view_row(a, &rows[i], journal_model(x->m->j)->site->currency));
	reserved_free(x->r);
	if (rpc_send_items(x->c, list, &err) < 0)
		rpc_fail(x->c, &err);
}

static void step_report(void *arg)
{
	struct asked *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = x->closed ? gpuq_fail(&err, GPUQ_ECANCELED, "cancelled")
			   : reserved_step(x->r, &err);

	if (rc > 0 && loop_after(journal_loop(x->m->j), 0, step_report, x))
		return;
	if (rc == 0) {
		answer_report(x);
		return;
	}
	if (rc > 0)
		gpuq_no_memory(&err);
	reserved_free(x->r);
	rpc_fail(x->c, &err);
}

static void begin_report(void *arg, int rc, const struct gpuq_err *err)
{
	struct asked *x = arg;

	if (rc < 0) {
		reserved_free(x->r);
		rpc_fail(x->c, err);
		return;
	}
	step_report(x);
}

static void closed(void *arg, int why)
{
	struct asked *x = arg;

	(void)why;
	x->closed = true;
}

int m_reservation_report(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct reserved_params *p = params;
	const struct model *model = journal_model(m->j);
	struct asked *x = gpuq_arena_calloc(rpc_call_arena(c), 1, sizeof(*x));
	const int64_t now_us = loop_now_us(journal_loop(m->j));
	int64_t first, next, since_us, until_us;

	civil_period(CIVIL_MONTH, clock_day(model, now_us), &first, &next);
	since_us = p->since_us ? p->since_us : clock_day_begins(model, first);
	until_us = p->until_us ? p->until_us : now_us;
	if (until_us < since_us)
		return gpuq_fail_field(err, GPUQ_EINVAL, "until_us", "the end is before the start");
	if (x)
		x->r = reserved_new(model, journal_store(m->j), since_us, until_us, now_us);
	if (!x || !x->r)
		return gpuq_no_memory(err);
	x->m = m;
	x->c = c;
	rpc_call_watch(c, NULL, closed, x);
	journal_after(m->j, begin_report, x);
	return 0;
}
