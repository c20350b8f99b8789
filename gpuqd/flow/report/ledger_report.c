#include "gpuqd/flow/report/ledger_report.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/flow/report/charges.h"
#include "gpuqd/util/civil.h"
#include "libgpuq/units.h"

#define NAME_MAX_BYTES CHARGES_NAME_BYTES

struct sum {
	UT_hash_handle hh;
	struct ledger_row row;
	char user[NAME_MAX_BYTES], queue[NAME_MAX_BYTES], flavor[NAME_MAX_BYTES];
	unsigned char key[]; /* user NUL queue NUL flavor NUL day isolation */
};

struct ledger_report {
	struct ledger_report_opts o;
	int64_t ahead_us; /* days are those of the wall clock */
	struct charges *charges; /* NULL without edges */
	struct sum *sums;
	const struct ledger_row **rows;
	/* Days whose records of single pods are read: those that the report begins or ends within;
	 * all, where their sums do not tell apart what it does. */
	int64_t *edges;
	int64_t n_edges, at_edge;
	bool failed;
};

static int64_t day_at(const struct ledger_report *r, int64_t us)
{
	return civil_day(us + r->ahead_us);
}

static int64_t day_begins(const struct ledger_report *r, int64_t day)
{
	return day * CIVIL_DAY_US - r->ahead_us;
}

static bool listed(const struct gpuq_strlist *l, const char *s)
{
	return !l || gpuq_strlist_passes(l, s);
}

static const char *keep(char to[NAME_MAX_BYTES], bool wanted, const char *s, size_t n)
{
	if (!wanted)
		return NULL;
	n = n < NAME_MAX_BYTES - 1 ? n : NAME_MAX_BYTES - 1;
	memcpy(to, s, n);
	to[n] = '\0';
	return to;
}

static struct ledger_row *row_of(struct ledger_report *r, const char *user, const char *queue,
				 const char *flavor, int isolation, int64_t day)
{
	const unsigned by = r->o.by;
	unsigned char key[CHANGE_KEY_BYTES_MAX + 8 + sizeof(isolation)];
	const int64_t of_day = by & REPORT_BY_DAY ? day : INT64_MIN;
	size_t n = change_key_strs(key, by & REPORT_BY_USER ? user : "",
				   by & REPORT_BY_QUEUE ? queue : "",
				   by & REPORT_BY_FLAVOR ? flavor : "", NULL);
	struct sum *s = NULL;

	if (!listed(r->o.users, user) || !listed(r->o.queues, queue) || !*user ||
	    (r->o.isolations && (isolation < 0 || !(r->o.isolations & 1u << (unsigned)isolation))))
		return NULL;
	if (!(by & REPORT_BY_ISOLATION))
		isolation = ISOLATION_NO_DEVICES;
	memcpy(key + n, &of_day, sizeof(of_day));
	n += sizeof(of_day);
	memcpy(key + n, &isolation, sizeof(isolation));
	n += sizeof(isolation);
	HASH_FIND(hh, r->sums, key, n, s);
	if (s)
		return &s->row;
	s = calloc(1, sizeof(*s) + n);
	if (!s) {
		r->failed = true;
		return NULL;
	}
	memcpy(s->key, key, n);
	s->row.user = keep(s->user, by & REPORT_BY_USER, user, strlen(user));
	s->row.queue = keep(s->queue, by & REPORT_BY_QUEUE, queue, strlen(queue));
	s->row.flavor = keep(s->flavor, by & REPORT_BY_FLAVOR, flavor, strlen(flavor));
	s->row.day = of_day;
	s->row.isolation = isolation;
	HASH_ADD_KEYPTR(hh, r->sums, s->key, n, s);
	return &s->row;
}

/* Add to the use of one resource. */
static void add_amount(struct ledger_report *r, struct ledger_row *row, const char *name,
		       int64_t us)
{
	struct ledger_amount **at = &row->amounts, *new;

	while (*at && strcmp((*at)->name, name) < 0)
		at = &(*at)->next;
	if (*at && strcmp((*at)->name, name) == 0) {
		(*at)->us += us;
		return;
	}
	new = calloc(1, sizeof(*new) + strlen(name) + 1);
	if (!new) {
		r->failed = true;
		return;
	}
	memcpy(new->name, name, strlen(name) + 1);
	new->us = us;
	new->next = *at;
	*at = new;
}

/* ---- an interval ---- */

struct of {
	const char *user, *queue, *flavor;
	int isolation;
	int64_t price_micro;
	const struct gpuq_amount *amounts; /* held while it was used */
	uint32_t n_amounts;
};

/* Add the part of an interval that lies in the report, day by day. */
static void add(struct ledger_report *r, const struct of *of, const struct charged *c)
{
	int64_t from = c->from_us > r->o.since_us ? c->from_us : r->o.since_us;
	const int64_t to = c->to_us < r->o.until_us ? c->to_us : r->o.until_us;

	while (from < to) {
		const int64_t day = day_at(r, from);
		const int64_t next = day_begins(r, day + 1);
		const int64_t end = next < to ? next : to;
		const int64_t us = accounting_gpu_us(c->milli, from, end);
		struct ledger_row *row =
			row_of(r, of->user, of->queue, of->flavor, of->isolation, day);

		if (row && c->kind < N_CHARGES) {
			row->us[c->kind] += us;
			if (c->kind == CHARGE_USED)
				row->cost_micro += price_cost(of->price_micro, us);
		}
		for (uint32_t i = 0; row && c->kind == CHARGE_USED && i < of->n_amounts; i++)
			add_amount(r, row, of->amounts[i].name,
				   accounting_gpu_us(of->amounts[i].count, from, end));
		from = end;
	}
}

/* ---- whole days ---- */

static bool is_edge(const struct ledger_report *r, int64_t day)
{
	const int64_t begins = day_begins(r, day), ends = begins + CIVIL_DAY_US;
	const bool right = r->o.until_us >= ends || r->o.until_us >= r->o.now_us;

	return begins < r->o.until_us && ends > r->o.since_us &&
	       !(r->o.since_us <= begins && right);
}

static bool in_whole_day(const struct ledger_report *r, int64_t day)
{
	for (int64_t i = 0; i < r->n_edges; i++)
		if (r->edges[i] == day)
			return false;
	return day_begins(r, day) < r->o.until_us && day_begins(r, day + 1) > r->o.since_us;
}

/* Add whole days; or only the given one. */
static void add_days(struct ledger_report *r, const struct model *m, const int64_t *one)
{
	for (const struct usage *u = m->usages; u; u = u->hh.next) {
		char queue[NAME_MAX_BYTES], flavor[NAME_MAX_BYTES];
		const char *resource = accounting_amount_name(u->flavor);
		struct ledger_row *row;

		/* The queue may be gone: its name is the first part of the key. */
		keep(queue, true, (const char *)u->bytes, strnlen((const char *)u->bytes, u->len));
		keep(flavor, true, u->flavor,
		     resource ? (size_t)(resource - u->flavor - 1) : strlen(u->flavor));
		row = (one ? u->day == *one : in_whole_day(r, u->day))
			      ? row_of(r, u->user, queue, flavor, ISOLATION_NO_DEVICES, u->day)
			      : NULL;
		if (!row)
			continue;
		if (resource) {
			add_amount(r, row, resource, u->us[CHARGE_USED]);
			continue;
		}
		for (int i = 0; i < N_CHARGES; i++)
			row->us[i] += u->us[i];
		row->cost_micro += u->cost_micro;
		row->n_pods += u->n_pods;
		accounting_add_used(&row->used, &u->used);
	}
}

/* ---- what still runs ---- */

static void note_live(struct ledger_report *r, const struct job *j, uint32_t attempt,
		      uint32_t index)
{
	if (r->charges)
		r->failed |= !charges_leave_out(r->charges, j, attempt, index);
}

static void add_running(struct ledger_report *r, const struct model *m, const struct pod *p)
{
	const struct job *j = p->job;
	struct of of = { .user = j->user,
			 .queue = j->queue->name,
			 .flavor = j->life->flavor,
			 .isolation = model_pod_isolation(p),
			 .price_micro = price_micro(m->site, p->node->pool, j->life->flavor) };
	struct charged c[N_CHARGES];
	struct gpuq_amount amounts[GPUQ_RESOURCES_MAX + 1];
	char mig[GPUQ_RESOURCE_NAME_MAX + 1];
	uint32_t n;

	if (!model_pod_takes(p))
		return;
	of.amounts = amounts;
	of.n_amounts = accounting_amounts(p, mig, amounts);
	if (!p->gpus_milli && !of.n_amounts)
		return;
	note_live(r, j, p->attempt, p->index);
	n = accounting_of_pod(p, 0, r->o.now_us, false, c);
	if (!p->gpus_milli && p->start_us)
		c[n++] = (struct charged){ CHARGE_USED, 0, p->start_us, r->o.now_us };
	for (uint32_t i = 0; i < n; i++)
		add(r, &of, &c[i]);
}

static void add_promised(struct ledger_report *r, const struct model *m, const struct job *j)
{
	const struct of of = { .user = j->user,
			       .queue = j->queue->name,
			       .flavor = j->life->promise->flavor,
			       .isolation = ISOLATION_NO_DEVICES };

	note_live(r, j, (uint32_t)(j->life->promise->at_us / GPUQ_US_PER_S), LEDGER_PROMISED);
	for (uint32_t i = 0; i < j->life->promise->n_pods; i++) {
		const struct promised_pod *pp = &j->life->promise->pods[i];
		const struct node *n = model_find_node(m, pp->node);

		for (uint32_t k = 0; n && k < pp->n_devices; k++) {
			const int64_t since =
				accounting_promised_since(j->life->promise, n, pp->devices[k]);
			const struct charged c = { CHARGE_HELD, pp->gpus_milli / pp->n_devices,
						   since, r->o.now_us };

			if (since)
				add(r, &of, &c);
		}
	}
}

static void add_apart(struct ledger_report *r, const struct job *j)
{
	const struct of of = { .user = j->user,
			       .queue = j->queue->name,
			       .flavor = j->life->apart->flavor,
			       .isolation = ISOLATION_NO_DEVICES };
	const struct charged c = { CHARGE_FRAGMENTED, j->life->apart->milli,
				   j->life->apart->since_us, r->o.now_us };

	note_live(r, j, (uint32_t)(c.from_us / GPUQ_US_PER_S), LEDGER_APART);
	add(r, &of, &c);
}

static void add_live(struct ledger_report *r, const struct model *m)
{
	const struct pod *p;

	node_each(m, n) {
		DL_FOREACH2(n->pods, p, node_next)
			add_running(r, m, p);
	}
	if (!m->n_promises && !m->n_apart)
		return;
	job_each(m, j) {
		if (j->life->promise)
			add_promised(r, m, j);
		if (j->life->apart)
			add_apart(r, j);
	}
}

/* ---- single pods ---- */

static void on_charges(void *arg, const struct charges_row *row)
{
	struct ledger_report *r = arg;
	const struct of of = { .user = row->user,
			       .queue = row->queue,
			       .flavor = row->flavor,
			       .isolation = row->isolation,
			       .price_micro = row->price_micro,
			       .amounts = row->amounts,
			       .n_amounts = row->n_amounts };
	const int64_t day = r->edges[r->at_edge];
	struct ledger_row *sum;
	int64_t ended = 0;
	bool devices = false;

	for (uint32_t i = 0; i < row->n; i++) {
		add(r, &of, &row->items[i]);
		devices |= row->items[i].milli > 0;
		ended = row->items[i].to_us > ended ? row->items[i].to_us : ended;
	}
	if ((!devices && !accounting_knows_used(&row->used)) || ended <= r->o.since_us ||
	    ended > r->o.until_us || ended >= day_begins(r, day + 1))
		return;
	sum = row_of(r, of.user, of.queue, of.flavor, of.isolation, day);
	if (!sum)
		return;
	sum->n_pods += devices;
	accounting_add_used(&sum->used, &row->used);
}

/* ---- entry points ---- */

/* List the days whose single pods are read. Their records exist from charges_from on; older days count
 * as a whole. False: no memory. */
static bool find_edges(struct ledger_report *r, const struct model *m)
{
	const struct ledger_report_opts *o = &r->o;
	const bool all = o->isolations || (o->by & REPORT_BY_ISOLATION);
	const int64_t from = day_at(r, o->since_us),
		      first = all && from < m->charges_from ? m->charges_from : from;
	const int64_t last = day_at(r, o->until_us < o->now_us ? o->until_us - 1 : o->now_us);

	if (last < first)
		return true;
	r->edges = calloc(all ? (size_t)(last - first) + 1 : 2, sizeof(*r->edges));
	for (int64_t day = first; r->edges && day <= last;
	     day = all || day == last ? day + 1 : last)
		if (day >= m->charges_from && (all || is_edge(r, day)))
			r->edges[r->n_edges++] = day;
	return r->edges != NULL;
}

struct ledger_report *ledger_report_new(const struct model *m, struct store *st,
					const struct ledger_report_opts *o)
{
	struct ledger_report *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->o = *o;
	r->ahead_us = m->ahead_us;
	if (st && (!find_edges(r, m) || (r->n_edges && !(r->charges = charges_new(st))))) {
		ledger_report_free(r);
		return NULL;
	}
	add_days(r, m, NULL);
	add_live(r, m);
	/* Later charges belong to another report. */
	if (r->o.until_us > o->now_us)
		r->o.until_us = o->now_us;
	return r;
}

void ledger_report_free(struct ledger_report *r)
{
	struct ledger_amount *amount;
	struct sum *s, *at;

	if (!r)
		return;
	charges_free(r->charges);
	HASH_ITER(hh, r->sums, s, at) {
		HASH_DEL(r->sums, s);
		while ((amount = s->row.amounts)) {
			s->row.amounts = amount->next;
			free(amount);
		}
		free(s);
	}
	free(r->rows);
	free(r->edges);
	free(r);
}

int ledger_report_step(struct ledger_report *r, const struct model *m, struct gpuq_err *err)
{
	int rc = 0;

	if (r->at_edge < r->n_edges) {
		rc = charges_step(r->charges, r->edges[r->at_edge], on_charges, r, err);
		if (rc < 0)
			return rc;
		if (rc == 0) {
			/* The day has no records of single pods: it is older than they are. */
			if (!charges_found(r->charges))
				add_days(r, m, &r->edges[r->at_edge]);
			r->at_edge++;
		}
		if (r->at_edge < r->n_edges)
			return 1;
	}
	return r->failed ? gpuq_no_memory(err) : 0;
}

static int compare(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int by_names(const void *pa, const void *pb)
{
	const struct ledger_row *a = *(const struct ledger_row *const *)pa;
	const struct ledger_row *b = *(const struct ledger_row *const *)pb;
	int c = compare(a->user, b->user);

	c = c ? c : compare(a->queue, b->queue);
	c = c ? c : compare(a->flavor, b->flavor);
	c = c ? c : b->isolation - a->isolation;
	return c ? c : (a->day > b->day) - (a->day < b->day);
}

const struct ledger_row *const *ledger_report_rows(struct ledger_report *r, size_t *n)
{
	size_t n_rows = 0;

	free(r->rows);
	r->rows = calloc(HASH_COUNT(r->sums) + 1, sizeof(*r->rows));
	for (struct sum *s = r->sums; r->rows && s; s = s->hh.next) {
		bool any =
			s->row.n_pods > 0 || s->row.amounts || accounting_knows_used(&s->row.used);

		for (int i = 0; i < N_CHARGES; i++)
			any |= s->row.us[i] != 0;
		if (any)
			r->rows[n_rows++] = &s->row;
	}
	if (r->rows)
		qsort(r->rows, n_rows, sizeof(*r->rows), by_names);
	*n = n_rows;
	return r->rows;
}
