#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/core/view.h"
#include "gpuqd/flow/access.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/m_int.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* ---- job.get ---- */

struct get_params {
	int64_t id, index;
};

static void get_defaults(void *obj)
{
	((struct get_params *)obj)->index = -1;
}

static const struct gpuq_field get_fields[] = {
	P(get_params, "id", GPUQ_K_INT, id, .flags = GPUQ_F_REQUIRED, .min = 1, .max = UINT32_MAX),
	P(get_params, "index", GPUQ_K_INT, index, .min = -1, .max = INT32_MAX),
	P_END,
};
const struct gpuq_schema p_job_get = { .name = "params",
				       .size = sizeof(struct get_params),
				       .fields = get_fields,
				       .defaults = get_defaults };

static int by_index(const void *a, const void *b)
{
	const struct gpuq_val *const *x = a, *const *y = b;
	int64_t i = gpuq_get_int(*x, "array_index", -1), k = gpuq_get_int(*y, "array_index", -1);

	return i < k ? -1 : i > k;
}

/* An element that never left its array has no object but the array's. */
static bool had_element(const struct gpuq_val *job, int64_t index, struct gpuq_arena *a)
{
	const char *indices = gpuq_get_str(gpuq_get(job, "array"), "indices", NULL);
	struct gpuq_array array = { 0 };

	if (!indices || gpuq_array_parse(a, indices, &array, NULL) < 0)
		return false;
	for (size_t i = 0; i < array.n_ranges; i++) {
		const struct gpuq_range *r = &array.ranges[i];

		if (index >= r->first && index <= r->last && (index - r->first) % r->step == 0)
			return true;
	}
	return false;
}

/* A get that misses in memory must see what left memory in this very turn: it looks
 * at history once that is durable. */
struct get {
	struct methods *m;
	struct rpc_call *c;
	struct get_params p;
};

static void get_answer(void *arg, int rc, const struct gpuq_err *failed)
{
	struct get *g = arg;
	struct model *model = journal_model(g->m->j);
	int64_t now = loop_now_us(journal_loop(g->m->j));
	struct gpuq_arena *a = rpc_call_arena(g->c);
	struct gpuq_val *list = gpuq_list(a), *v = gpuq_map(a);
	struct gpuq_err err;

	if (rc < 0) {
		rpc_fail(g->c, failed);
		return;
	}
	job_each(model, j)
	{
		if (j->key.id != g->p.id || (g->p.index >= 0 && j->key.index != g->p.index))
			continue;
		if (j->array && j->array->n_waiting == 0 && !j->ended)
			continue; /* all its elements stand for themselves */
		gpuq_add(a, list, view_job(a, model, j, now));
	}
	if (g->p.index >= 0 && list->n == 0) {
		struct gpuq_val *old =
			history_job(journal_store(g->m->j),
				    (struct job_key){ (uint32_t)g->p.id, (int32_t)g->p.index }, a);
		const struct job *master =
			job_find(model, (struct job_key){ (uint32_t)g->p.id, -1 });

		if (!old && master && master->array && array_waits(master->array, g->p.index))
			old = view_job(a, model, master, now);
		if (!old && !master) {
			old = history_job(journal_store(g->m->j),
					  (struct job_key){ (uint32_t)g->p.id, -1 }, a);
			if (old && !had_element(old, g->p.index, a))
				old = NULL;
		}
		if (old)
			gpuq_add(a, list, old);
	} else if (g->p.index < 0) {
		history_jobs(journal_store(g->m->j), (uint32_t)g->p.id, a, list);
	}
	if (!list || list->n == 0) {
		gpuq_fail(&err, GPUQ_ENOENT, "no such job: %lld", (long long)g->p.id);
		rpc_fail(g->c, &err);
		return;
	}
	qsort(list->items, list->n, sizeof(*list->items), by_index);
	gpuq_put(a, v, "jobs", list);
	rpc_reply(g->c, v);
}

int m_job_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct get *g = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*g));

	if (!g)
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	*g = (struct get){ arg, c, *(const struct get_params *)params };
	journal_after(g->m->j, get_answer, g);
	return 0;
}

/* ---- cancel, hold, release ---- */

struct act_params {
	struct job_filter filter;
	int signal;
	bool dry_run;
};

static const struct gpuq_field act_fields[] = {
	P(act_params, "ids", GPUQ_K_STRLIST, filter.ids),
	P(act_params, "users", GPUQ_K_STRLIST, filter.users),
	P(act_params, "queues", GPUQ_K_STRLIST, filter.queues),
	P(act_params, "states", GPUQ_K_STRLIST, filter.states),
	P(act_params, "names", GPUQ_K_STRLIST, filter.names),
	P(act_params, "nodes", GPUQ_K_STRLIST, filter.nodes),
	P(act_params, "since_us", GPUQ_K_INT, filter.since_us, .min = 0, .max = INT64_MAX),
	P(act_params, "until_us", GPUQ_K_INT, filter.until_us, .min = 0, .max = INT64_MAX),
	P(act_params, "all", GPUQ_K_BOOL, filter.all),
	P(act_params, "signal", GPUQ_K_SIGNAL, signal),
	P(act_params, "dry_run", GPUQ_K_BOOL, dry_run),
	P_END,
};
const struct gpuq_schema p_job_act = P_SCHEMA(act_params, act_fields);

enum act { ACT_CANCEL, ACT_HOLD, ACT_RELEASE };
static const char *const act_words[] = { "cancel", "hold", "release" };

/* What is done is done to all; the answer names so many, since it is one message. */
#define NAMED_MAX 5000
#define ERRORS_MAX 1000

struct acting {
	struct methods *m;
	struct rpc_call *c;
	enum act act;
	const struct act_params *p;
	struct job_filter besides; /* what a job has to match besides its id */
	struct gpuq_val *jobs, *errors;
	int64_t matched; /* of which `jobs` names as many as an answer may hold */
	bool quiet; /* jobs selected by a filter: those one may not touch are passed over */
};

static void refuse(struct acting *x, const char *id, int code, const char *text)
{
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *e;

	if (x->errors && x->errors->n >= ERRORS_MAX)
		return;
	e = gpuq_map(a);
	gpuq_put(a, e, "id", gpuq_str(a, id));
	gpuq_put(a, e, "code", gpuq_int(a, gpuq_err_number(code)));
	gpuq_put(a, e, "name", gpuq_str(a, gpuq_err_name(code)));
	gpuq_put(a, e, "msg", gpuq_str(a, text));
	gpuq_add(a, x->errors, e);
}

/* key may be an element that still waits inside its array. */
static void act_on(struct acting *x, struct job_key key, const struct job *j)
{
	const struct rpc_peer *peer = rpc_call_peer(x->c);
	struct gpuq_arena *a = rpc_call_arena(x->c);
	bool manager =
		access_manage(journal_model(x->m->j), j->queue, peer->user, peer_is_operator(x->c));
	struct event ev = { .job = key };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v;
	char id[32];

	if (!filter_job(&x->besides, j))
		return;
	job_id_print(key, id);
	if (!manager && strcmp(j->user, peer->user) != 0) {
		if (!x->quiet)
			refuse(x, id, GPUQ_EPERM, "it belongs to somebody else");
		return;
	}
	if (x->act == ACT_RELEASE && j->held_admin && !manager) {
		refuse(x, id, GPUQ_EPERM, "a manager or operator holds it");
		return;
	}
	if (x->act == ACT_HOLD && job_is_live(j)) {
		if (!x->quiet)
			refuse(x, id, GPUQ_ECONFLICT, "it runs already; to stop it, cancel it");
		return;
	}
	if (!x->p->dry_run) {
		bool admin = manager && strcmp(j->user, peer->user) != 0;

		switch (x->act) {
		case ACT_CANCEL:
			ev.type = EV_JOB_CANCEL_ASKED;
			ev.cancel.who = peer->user;
			ev.cancel.admin = admin;
			ev.cancel.signal = x->p->signal;
			break;
		case ACT_HOLD:
			ev.type = EV_JOB_HELD;
			ev.held.admin = admin;
			ev.held.who = peer->user;
			break;
		case ACT_RELEASE:
			ev.type = EV_JOB_RELEASED;
			ev.held.admin = manager;
			ev.held.who = peer->user;
			break;
		}
		if (j->cancel_asked && x->act == ACT_CANCEL) {
			/* Asked before: it is on its way. */
		} else if (journal_apply(x->m->j, &ev, &err) < 0) {
			refuse(x, id, err.code, err.text);
			return;
		} else {
			log_info("job.act", "job=%s act=%s by=%s", id, act_words[x->act],
				 LOGS(peer->user));
		}
	}
	if (x->matched++ >= NAMED_MAX)
		return;
	v = gpuq_map(a);
	gpuq_put(a, v, "id", gpuq_int(a, key.id));
	gpuq_put(a, v, "array_index", key.index < 0 ? gpuq_null(a) : gpuq_int(a, key.index));
	gpuq_add(a, x->jobs, v);
}

/* All of job `id`: an array's waiting part and each of its elements. */
static bool act_on_whole(struct acting *x, uint32_t id)
{
	struct model *model = journal_model(x->m->j);
	bool found = false;

	job_each(model, j)
	{
		if (j->key.id != id || j->ended)
			continue;
		found = true;
		if (j->array && j->array->n_waiting == 0)
			continue;
		act_on(x, j->key, j);
	}
	return found;
}

static void act_on_id(struct acting *x, const char *text)
{
	struct model *model = journal_model(x->m->j);
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct job_key key;
	struct job *j;

	if (!job_id_parse(text, &key)) {
		refuse(x, text, GPUQ_EINVAL, "not a job id: expected 17 or 17_3");
		return;
	}
	if (key.index < 0 && act_on_whole(x, key.id))
		return;
	if (key.index >= 0) {
		j = job_find(model, key);
		if (!j) {
			j = job_find(model, (struct job_key){ key.id, -1 });
			if (j && !(j->array && array_waits(j->array, key.index)))
				j = NULL;
		}
		if (j && !j->ended) {
			act_on(x, key, j);
			return;
		}
	}
	if (job_find(model, key) || history_job(journal_store(x->m->j), key, a))
		refuse(x, text, GPUQ_EGONE, "it has ended already");
	else
		refuse(x, text, GPUQ_ENOENT, "no such job");
}

static void act_now(struct acting *x)
{
	const struct act_params *p = x->p;
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct model *model = journal_model(x->m->j);
	struct gpuq_val *v = gpuq_map(a);

	x->jobs = gpuq_list(a);
	x->errors = gpuq_list(a);
	for (size_t i = 0; i < p->filter.ids.n; i++)
		act_on_id(x, p->filter.ids.items[i]);
	x->quiet = true;
	if (p->filter.ids.n == 0)
		job_each(model, j) if (!j->ended && !(j->array && j->array->n_waiting == 0) &&
				       filter_job(&p->filter, j)) act_on(x, j->key, j);
	gpuq_put(a, v, "matched", gpuq_int(a, x->matched));
	gpuq_put(a, v, "jobs", x->jobs);
	gpuq_put(a, v, "errors", x->errors);
	rpc_reply(x->c, v);
}

static void act_when_durable(void *arg, int rc, const struct gpuq_err *failed)
{
	struct acting *x = arg;

	if (rc < 0)
		rpc_fail(x->c, failed);
	else
		act_now(x);
}

/* As for get: what has just ended is in history only once that is durable, and "it has
 * ended" is another answer than "no such job". */
static int act(struct methods *m, struct rpc_call *c, const struct act_params *p, enum act what,
	       struct gpuq_err *err)
{
	struct acting *x = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*x));

	if (!x)
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	if (!filter_any(&p->filter))
		return gpuq_fail(err, GPUQ_EINVAL, "which jobs? name ids or a filter");
	x->m = m;
	x->c = c;
	x->act = what;
	x->p = p;
	x->besides = p->filter;
	x->besides.ids = (struct gpuq_strlist){ NULL, 0 };
	journal_after(m->j, act_when_durable, x);
	return 0;
}

int m_job_cancel(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return act(arg, c, params, ACT_CANCEL, err);
}

int m_job_hold(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return act(arg, c, params, ACT_HOLD, err);
}

int m_job_release(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return act(arg, c, params, ACT_RELEASE, err);
}
