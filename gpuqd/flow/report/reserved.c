#include "gpuqd/flow/report/reserved.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/flow/report/charges.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/civil.h"
#include "gpuqd/util/walltime.h"
#include "libgpuq/units.h"

#define WINDOWS_MAX 1000 /* of one reservation */

struct window {
	int64_t from_us, to_us, used_us;
	bool over;
};

struct entry {
	struct reserved_row row;
	int64_t milli;
	const char **queues, **users; /* whose pods count */
	size_t n_queues, n_users;
	struct window *windows;
};

struct reserved {
	struct gpuq_arena mem;
	struct charges *charges;
	struct entry *entries;
	struct reserved_row *rows;
	size_t n_entries, n_rows;
	int64_t day, last_day;
	bool failed;
};

/* ---- reservations ---- */

static bool is_on(const struct site_reservation *r, const struct node *n)
{
	for (size_t i = 0; i < r->nodes.n; i++)
		if (strcmp(r->nodes.items[i], n->name) == 0)
			return true;
	return r->nodes.n == 0 && r->pool && strcmp(r->pool, n->pool) == 0;
}

/* Take the devices that it reserves, and the price of one: of its nodes on average; of an amount the
 * one of its flavor and pool. */
static int64_t take_devices(const struct model *m, const struct site_reservation *r,
			    struct entry *e)
{
	const char *flavor = r->flavor;
	int64_t price = 0;

	e->milli = r->gpus_milli;
	node_each(m, n) {
		const int64_t milli = (int64_t)n->n_devices * 1000;

		if (r->gpus_milli <= 0 && is_on(r, n)) {
			e->milli += milli;
			price = amount_sum(price,
					   amount_times(price_micro(m->site, n->pool, n->flavor),
							n->n_devices));
		} else if (r->gpus_milli > 0 && !flavor && n->n_devices > 0 &&
			   (!r->pool || strcmp(r->pool, n->pool) == 0)) {
			flavor = n->flavor;
		}
	}
	if (r->gpus_milli > 0)
		return price_micro(m->site, r->pool ? r->pool : "default",
				   flavor ? flavor : "default");
	return e->milli ? price / (e->milli / 1000) : 0;
}

static void take_owners(struct reserved *x, const struct model *m, const struct site_reservation *r,
			struct entry *e)
{
	e->queues = gpuq_arena_calloc(&x->mem, m->n_queues + 1, sizeof(*e->queues));
	e->users = gpuq_arena_calloc(&x->mem, r->users.n + 1, sizeof(*e->users));
	if (!e->queues || !e->users) {
		x->failed = true;
		return;
	}
	for (uint32_t i = 0; r->queue && i < m->n_queues; i++)
		for (const struct queue *q = m->queues[i]; q; q = q->parent)
			if (strcmp(q->name, r->queue) == 0)
				e->queues[e->n_queues++] =
					gpuq_arena_strdup(&x->mem, m->queues[i]->name);
	for (size_t i = 0; i < r->users.n; i++)
		e->users[e->n_users++] = gpuq_arena_strdup(&x->mem, r->users.items[i]);
}

/* Take its windows in [since, until); those of the future have not been yet. */
static void take_windows(struct reserved *x, const struct model *m,
			 const struct site_reservation *r, struct entry *e, int64_t since_us,
			 int64_t until_us, int64_t now_us)
{
	const struct recur when = site_reservation_when(r);
	int64_t t = walltime_of(since_us, m->ahead_us);

	e->windows = gpuq_arena_calloc(&x->mem, WINDOWS_MAX, sizeof(*e->windows));
	x->failed |= !e->windows;
	while (!x->failed && e->row.n_windows < WINDOWS_MAX) {
		const int64_t start = recur_at(&when, t), end = amount_sum(start, r->duration_us);
		const int64_t from = walltime_to_ledger(start, m->ahead_us);
		const int64_t to = walltime_to_ledger(end, m->ahead_us);

		if (start == GPUQ_UNLIMITED || from >= until_us || from >= now_us)
			break;
		t = end;
		if (to <= since_us)
			continue;
		e->windows[e->row.n_windows++] =
			(struct window){ .from_us = from > since_us ? from : since_us,
					 .to_us = to < until_us ? to : until_us,
					 .over = to <= now_us };
	}
}

static void take(struct reserved *x, const struct model *m, const struct site_reservation *r,
		 int64_t since_us, int64_t until_us, int64_t now_us)
{
	struct entry *e = &x->entries[x->n_entries++];
	const int64_t price = take_devices(m, r, e);

	e->row.name = gpuq_arena_strdup(&x->mem, r->name);
	e->row.queue = r->queue ? gpuq_arena_strdup(&x->mem, r->queue) : NULL;
	e->row.maintenance =
		site_reservation_has(r, "maintenance") || (!r->queue && r->users.n == 0);
	take_owners(x, m, r, e);
	take_windows(x, m, r, e, since_us, until_us, now_us);
	for (uint32_t i = 0; !x->failed && i < e->row.n_windows; i++) {
		const struct window *w = &e->windows[i];

		e->row.reserved_us = amount_sum(e->row.reserved_us,
						accounting_gpu_us(e->milli, w->from_us, w->to_us));
	}
	e->row.cost_micro = price_cost(price, e->row.reserved_us);
}

/* ---- use ---- */

static bool has(const char **names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (names[i] && strcmp(names[i], name) == 0)
			return true;
	return n == 0;
}

static bool owns(const struct entry *e, const char *queue, const char *user)
{
	return !e->row.maintenance && (e->row.queue == NULL || e->n_queues > 0) &&
	       has(e->queues, e->n_queues, queue) && has(e->users, e->n_users, user);
}

static void add(struct reserved *x, const char *queue, const char *user, const struct charged *c)
{
	if (c->kind != CHARGE_USED)
		return;
	for (size_t i = 0; i < x->n_entries; i++) {
		struct entry *e = &x->entries[i];

		if (!owns(e, queue, user))
			continue;
		for (uint32_t k = 0; k < e->row.n_windows; k++) {
			struct window *w = &e->windows[k];
			const int64_t from = c->from_us > w->from_us ? c->from_us : w->from_us;
			const int64_t to = c->to_us < w->to_us ? c->to_us : w->to_us;

			if (from < to)
				w->used_us = amount_sum(w->used_us,
							accounting_gpu_us(c->milli, from, to));
		}
	}
}

static void add_running(struct reserved *x, const struct pod *p, int64_t now_us)
{
	const struct job *j = p->job;
	struct charged c[N_CHARGES];
	uint32_t n;

	if (!model_pod_takes(p) || !p->gpus_milli)
		return;
	x->failed |= !charges_leave_out(x->charges, j, p->attempt, p->index);
	n = accounting_of_pod(p, 0, now_us, false, c);
	for (uint32_t i = 0; i < n; i++)
		add(x, j->queue->name, j->user, &c[i]);
}

static void on_charges(void *arg, const struct charges_row *row)
{
	for (uint32_t i = 0; i < row->n; i++)
		add(arg, row->queue, row->user, &row->items[i]);
}

/* ---- entry points ---- */

struct reserved *reserved_new(const struct model *m, struct store *st, int64_t since_us,
			      int64_t until_us, int64_t now_us)
{
	struct reserved *x = calloc(1, sizeof(*x));
	const size_t n = m->site->reservations.n;
	const struct pod *p;

	if (!x)
		return NULL;
	x->mem = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
	x->charges = charges_new(st);
	x->entries = gpuq_arena_calloc(&x->mem, n + 1, sizeof(*x->entries));
	x->rows = gpuq_arena_calloc(&x->mem, n + 1, sizeof(*x->rows));
	if (!x->charges || !x->entries || !x->rows) {
		reserved_free(x);
		return NULL;
	}
	x->day = civil_day(since_us + m->ahead_us);
	if (x->day < m->charges_from)
		x->day = m->charges_from;
	x->last_day = civil_day((until_us < now_us ? until_us : now_us) + m->ahead_us);
	site_each(site_reservation, m->site->reservations, r)
		take(x, m, r, since_us, until_us, now_us);
	node_each(m, node) {
		DL_FOREACH2(node->pods, p, node_next)
			add_running(x, p, now_us);
	}
	return x;
}

void reserved_free(struct reserved *x)
{
	if (!x)
		return;
	charges_free(x->charges);
	gpuq_arena_done(&x->mem);
	free(x);
}

int reserved_step(struct reserved *x, struct gpuq_err *err)
{
	int rc;

	if (x->failed)
		return gpuq_no_memory(err);
	if (x->day > x->last_day || x->n_entries == 0)
		return 0;
	rc = charges_step(x->charges, x->day, on_charges, x, err);
	if (rc == 0)
		x->day++;
	return rc < 0 ? rc : 1;
}

const struct reserved_row *reserved_rows(struct reserved *x, size_t *n)
{
	x->n_rows = 0;
	for (size_t i = 0; i < x->n_entries; i++) {
		const struct entry *e = &x->entries[i];
		struct reserved_row *row = &x->rows[x->n_rows];

		if (e->row.n_windows == 0)
			continue;
		*row = e->row;
		for (uint32_t k = 0; k < e->row.n_windows; k++) {
			const struct window *w = &e->windows[k];
			const int64_t most = accounting_gpu_us(e->milli, w->from_us, w->to_us);

			row->used_us += w->used_us < most ? w->used_us : most;
			row->n_no_shows += w->over && w->used_us == 0 && !row->maintenance;
		}
		x->n_rows++;
	}
	*n = x->n_rows;
	return x->rows;
}
