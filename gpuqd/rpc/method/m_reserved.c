/* reservation.report: what became of reservations between two instants. */
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/report/reserved.h"
#include "gpuqd/util/civil.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/units.h"

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

static struct gpuq_val *view(struct gpuq_arena *a, const struct reserved_row *r,
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

static void answer(struct asked *x)
{
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *list = gpuq_list(a);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct reserved_row *rows;
	size_t n;

	rows = reserved_rows(x->r, &n);
	for (size_t i = 0; i < n; i++)
		gpuq_add(a, list, view(a, &rows[i], journal_model(x->m->j)->site->currency));
	reserved_free(x->r);
	if (rpc_send_items(x->c, list, &err) < 0)
		rpc_fail(x->c, &err);
}

static void step(void *arg)
{
	struct asked *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = x->closed ? gpuq_fail(&err, GPUQ_ECANCELED, "cancelled")
			   : reserved_step(x->r, &err);

	if (rc > 0 && loop_after(journal_loop(x->m->j), 0, step, x))
		return;
	if (rc == 0) {
		answer(x);
		return;
	}
	if (rc > 0)
		gpuq_no_memory(&err);
	reserved_free(x->r);
	rpc_fail(x->c, &err);
}

static void begin(void *arg, int rc, const struct gpuq_err *err)
{
	struct asked *x = arg;

	if (rc < 0) {
		reserved_free(x->r);
		rpc_fail(x->c, err);
		return;
	}
	step(x);
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
	journal_after(m->j, begin, x);
	return 0;
}
