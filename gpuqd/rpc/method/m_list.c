/* Lists of jobs, nodes and queues: filters, and rows that are sent over several turns of the loop. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/state/notes/joblabel.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/state/view/view_node.h"
#include "gpuqd/flow/report/history_scan.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/limits.h"
#include "libgpuq/selector.h"
#include "libgpuq/units.h"

/* ---- filters ---- */

static bool state_matches(const struct gpuq_strlist *l, enum gpuq_job_state s)
{
	for (size_t i = 0; i < l->n; i++)
		if (gpuq_job_state_parse(l->items[i]) == (int)s)
			return true;
	return l->n == 0;
}

static bool id_matches(const struct gpuq_strlist *l, struct job_key key, uint32_t element_id)
{
	struct job_key k;

	for (size_t i = 0; i < l->n; i++)
		if (job_id_parse(l->items[i], &k) &&
		    ((k.id == key.id && (k.index < 0 || k.index == key.index)) ||
		     (k.index < 0 && element_id && k.id == element_id)))
			return true;
	return l->n == 0;
}

/* The end, or where there is none (0) the beginning, lies in that time; or some of the time between both does. */
static bool in_time(const struct job_filter *f, int64_t submit_us, int64_t end_us)
{
	const int64_t last_us = end_us ? end_us : f->overlaps ? INT64_MAX : submit_us;
	const int64_t first_us = f->overlaps ? submit_us : last_us;

	return last_us >= f->since_us && (!f->until_us || first_us <= f->until_us);
}

bool filter_any(const struct job_filter *f)
{
	return f->ids.n || f->users.n || f->queues.n || f->states.n || f->names.n || f->nodes.n ||
	       f->labels.n || f->since_us || f->until_us;
}

bool filter_job(const struct job_filter *f, const struct job *j)
{
	bool on_node = f->nodes.n == 0;
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (!on_node && p->attempt == j->attempt)
			on_node = gpuq_strlist_passes(&f->nodes, p->node->name);
	return on_node && gpuq_strlist_passes(&f->users, j->user) &&
	       gpuq_strlist_passes(&f->queues, j->queue->name) &&
	       gpuq_strlist_passes(&f->names, j->name) && joblabel_match(j->labels, &f->labels) &&
	       state_matches(&f->states, view_job_state(j)) &&
	       id_matches(&f->ids, j->key, j->life->element_id) &&
	       in_time(f, j->submit_us, j->ended ? j->life->end_us : 0);
}

/* A record older than labels has none. */
static bool labels_match(const struct gpuq_val *map, const struct gpuq_strlist *selectors)
{
	for (size_t i = 0; i < selectors->n; i++) {
		const struct gpuq_val *v = NULL;
		size_t n;
		const char *key = gpuq_selector_key(selectors->items[i], &n);

		for (uint32_t k = 0; map && map->type == GPUQ_MAP && k < map->n; k++)
			if (strlen(map->pairs[k].key) == n &&
			    memcmp(map->pairs[k].key, key, n) == 0 &&
			    map->pairs[k].val->type == GPUQ_STR)
				v = map->pairs[k].val;
		if (!gpuq_selector_holds(selectors->items[i], v ? v->s : NULL, v ? v->n : 0))
			return false;
	}
	return true;
}

bool filter_val(const struct job_filter *f, const struct gpuq_val *v)
{
	struct job_key key = { (uint32_t)gpuq_get_int(v, "id", 0),
			       (int32_t)gpuq_get_int(v, "array_index", -1) };
	int state = gpuq_job_state_parse(gpuq_get_str(v, "state", ""));
	const struct gpuq_val *pods = gpuq_get(v, "pods");
	bool on_node = f->nodes.n == 0;

	for (uint32_t i = 0; !on_node && pods && i < pods->n; i++)
		on_node = gpuq_strlist_passes(&f->nodes, gpuq_get_str(pods->items[i], "node", ""));
	return on_node && state >= 0 &&
	       gpuq_strlist_passes(&f->users, gpuq_get_str(v, "user", "")) &&
	       gpuq_strlist_passes(&f->queues, gpuq_get_str(v, "queue", "")) &&
	       gpuq_strlist_passes(&f->names, gpuq_get_str(v, "name", "")) &&
	       labels_match(gpuq_get(v, "labels"), &f->labels) &&
	       state_matches(&f->states, (enum gpuq_job_state)state) &&
	       id_matches(&f->ids, key, (uint32_t)gpuq_get_int(v, "element_id", 0)) &&
	       in_time(f, gpuq_get_int(v, "submit_time", 0), gpuq_get_int(v, "end_time", 0));
}

/* ---- job.list: the keys are taken down first, then each is sent when there is credit ---- */

static const struct gpuq_field list_fields[] = {
	FILTER_FIELDS(job_list_params),
	P(job_list_params, "limit", GPUQ_K_INT, filter.limit, .min = 0, .max = INT64_MAX),
	P(job_list_params, "all", GPUQ_K_BOOL, filter.all),
	P(job_list_params, "keys", GPUQ_K_STRLIST, keys),
	P(job_list_params, "order", GPUQ_K_STRLIST, order),
	P(job_list_params, "first", GPUQ_K_INT, first, .min = 0, .max = INT64_MAX),
	P_END,
};
const struct gpuq_schema p_job_list = P_SCHEMA(job_list_params, list_fields);

/* Ended jobs that a list shows without a limit of its own; history.list has them all. */
#define OLD_MAX 10000
#define LOOK_EVERY 64 /* jobs between two looks at the clock */

struct list {
	struct methods *m;
	const struct job_list_params *p;
	struct rows rows;
	struct loop_timer *timer;
	struct job_key *keys;
	size_t n, at, sent;
};

static bool full(const struct list *l)
{
	return l->p->filter.limit && l->sent >= (size_t)l->p->filter.limit;
}

static void list_go_on(void *arg);

static void list_on_timer(void *arg)
{
	struct list *l = arg;

	l->timer = NULL;
	list_go_on(l);
}

/* The job of a key. Nearly always it is the one behind the last in the model's own order, which
 * is there without a search; that holds within one turn of the loop. */
static const struct job *next_job(const struct model *m, const struct job *last, struct job_key key)
{
	const struct job *j = last ? last->next : NULL;

	return j && j->key.id == key.id && j->key.index == key.index ? j : model_find_job(m, key);
}

static bool send_live(struct list *l)
{
	const struct model *model = journal_model(l->m->j);
	struct loop *loop = journal_loop(l->m->j);
	const int64_t now = loop_now_us(loop), until_us = loop_clock_us() + PIECE_US;

	const struct job *j = NULL;

	for (unsigned n = 1; l->at < l->n && !full(l); l->at++, n++) {
		j = next_job(model, j, l->keys[l->at]);
		if (!j) {
			l->keys[l->at].id = 0; /* it ended and left since: the history has it */
			continue;
		}
		if (n % LOOK_EVERY == 0 && loop_clock_us() > until_us) {
			l->timer = loop_after(loop, 0, list_on_timer, l);
			return false;
		}
		if (!rows_job(&l->rows, model, j, now))
			return false;
		l->sent++;
	}
	return true;
}

/* Jobs sent from memory are not sent again from the history. */
static void send_old(void *arg, int rc, const struct gpuq_err *failed)
{
	struct list *l = arg;
	struct history_live *sent =
		gpuq_arena_calloc(rpc_call_arena(l->rows.c), l->n + 1, sizeof(*sent));
	const size_t limit = l->p->filter.limit ? (size_t)l->p->filter.limit - l->sent : OLD_MAX;
	struct gpuq_err err = GPUQ_ERR_INIT;
	size_t n = 0;

	if (rc < 0) {
		rows_fail(&l->rows, failed);
		return;
	}
	for (size_t i = 0; sent && i < l->n; i++)
		if (l->keys[i].id)
			sent[n++] = (struct history_live){ 0, l->keys[i] };
	if (!sent)
		gpuq_no_memory(&err);
	else if (past_send(l->m, &l->rows, &l->p->filter, sent, n, true, limit, &err) == 0)
		return;
	rows_fail(&l->rows, &err);
}

static void list_go_on(void *arg)
{
	struct list *l = arg;

	if (l->timer || !send_live(l) || !rows_flush(&l->rows))
		return;
	if (!l->p->filter.all || full(l)) {
		rows_end(&l->rows);
		return;
	}
	/* Jobs that just left memory are in the history once that is durable. Until then the
	 * call has no callbacks. */
	rpc_call_watch(l->rows.c, NULL, NULL, NULL);
	journal_after(l->m->j, send_old, l);
}

static void list_closed(void *arg, int why)
{
	struct list *l = arg;
	struct gpuq_err err;

	loop_cancel(l->timer);
	l->timer = NULL;
	gpuq_fail(&err, why, "cancelled");
	rows_fail(&l->rows, &err);
}

static bool is_listed(const struct job_filter *f, const struct job *j)
{
	if (j->ended)
		return f->all || f->states.n;
	return !j->array || j->array->n_waiting > 0; /* else its elements stand for themselves */
}

int m_job_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct job_list_params *p = params;
	struct gpuq_arena *a = rpc_call_arena(c);
	struct list *l = gpuq_arena_calloc(a, 1, sizeof(*l));
	struct job_keys found = { .items = NULL };
	bool no_memory;
	int rc;

	if (!l)
		return gpuq_no_memory(err);
	*l = (struct list){ .m = m, .p = p };
	rc = rows_init(&l->rows, c, &p->keys, err);
	if (rc < 0)
		return rc;
	/* Those that have left memory are not compared with those that have not. */
	jobs_select(journal_model(m->j), &p->filter, is_listed,
		    p->filter.all ? NULL : job_order_new(a, &p->order, p->first), &found);
	l->keys = gpuq_arena_calloc(a, found.n + 1, sizeof(*l->keys));
	if (l->keys && found.n)
		memcpy(l->keys, found.items, found.n * sizeof(*l->keys));
	l->n = found.n;
	no_memory = found.failed || !l->keys;
	job_keys_done(&found);
	if (no_memory)
		return gpuq_no_memory(err);
	rpc_call_watch(c, list_go_on, list_closed, l);
	list_go_on(l);
	return 0;
}

/* ---- nodes, queues, status ---- */

struct names_params {
	struct gpuq_strlist names;
};

static const struct gpuq_field names_fields[] = {
	P(names_params, "names", GPUQ_K_STRLIST, names),
	P_END,
};
const struct gpuq_schema p_node_list = P_SCHEMA(names_params, names_fields);
const struct gpuq_schema p_queue_list = P_SCHEMA(names_params, names_fields);

/* Lists that are short beside the jobs: made at once, sent as credit allows. */
struct items {
	struct rpc_call *c;
	struct gpuq_val *list;
	uint32_t at;
};

static void items_go_on(void *arg)
{
	struct items *x = arg;

	while (x->at < x->list->n) {
		if (!rpc_item(x->c, x->list->items[x->at]))
			return;
		x->at++;
	}
	rpc_end(x->c, NULL);
}

static void items_closed(void *arg, int why)
{
	struct items *x = arg;
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(x->c, &err);
}

int rpc_send_items(struct rpc_call *c, struct gpuq_val *list, struct gpuq_err *err)
{
	struct items *x = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*x));

	if (!x || !list)
		return gpuq_no_memory(err);
	*x = (struct items){ c, list, 0 };
	rpc_call_watch(c, items_go_on, items_closed, x);
	items_go_on(x);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct gpuq_val *const *x = a, *const *y = b;

	return strcmp(gpuq_get_str(*x, "name", ""), gpuq_get_str(*y, "name", ""));
}

static int all_known(const struct gpuq_strlist *names, const struct gpuq_val *list,
		     const char *what, struct gpuq_err *err)
{
	for (size_t i = 0; i < names->n; i++) {
		bool found = false;

		for (uint32_t k = 0; k < list->n; k++)
			found |= strcmp(gpuq_get_str(list->items[k], "name", ""),
					names->items[i]) == 0;
		if (!found)
			return gpuq_fail(err, GPUQ_ENOENT, "no %s is named %s", what,
					 names->items[i]);
	}
	return 0;
}

int m_node_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct names_params *p = params;
	const struct model *model = journal_model(m->j);
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *list = gpuq_list(a);
	int rc;

	node_each(model, n)
		if (gpuq_strlist_passes(&p->names, n->name))
			gpuq_add(a, list, view_node(a, model, n, loop_now_us(journal_loop(m->j))));
	rc = list ? all_known(&p->names, list, "node", err) : 0;
	if (rc < 0)
		return rc;
	if (list && list->n)
		qsort(list->items, list->n, sizeof(*list->items), by_name);
	return rpc_send_items(c, list, err);
}

int m_queue_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct names_params *p = params;
	const struct model *model = journal_model(m->j);
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *list = gpuq_list(a);
	struct spent *spent = gpuq_arena_calloc(a, model->n_queues, sizeof(*spent));
	struct gpuq_val **held = view_queue_resources(a, model);
	int rc;

	if (!spent || !held)
		return gpuq_no_memory(err);
	budget_spending(model, loop_now_us(journal_loop(m->j)), spent);
	for (uint32_t i = 0; i < model->n_queues; i++)
		if (gpuq_strlist_passes(&p->names, model->queues[i]->name))
			gpuq_add(a, list,
				 view_queue(a, model, model->queues[i], spent[i].used_ms, held[i]));
	rc = list ? all_known(&p->names, list, "queue", err) : 0;
	return rc < 0 ? rc : rpc_send_items(c, list, err);
}
