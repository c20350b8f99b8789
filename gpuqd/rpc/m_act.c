/* What is done to jobs that ids and filters select: cancel, signal, hold, release, requeue,
 * update. */
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/access.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/flow/update.h"
#include "gpuqd/rpc/m_int.h"
#include "libgpuq/units.h"

struct act_params {
	struct job_filter filter;
	int signal; /* of cancel: send it, and leave the jobs running */
	bool hold; /* of requeue: they wait until they are released */
	const struct gpuq_val *set; /* of update: keys of a job file */
	bool top; /* of update: before all others of the owner */
	bool dry_run;
};

static const struct gpuq_field act_fields[] = {
	P(act_params, "ids", GPUQ_K_STRLIST, filter.ids),
	P(act_params, "users", GPUQ_K_STRLIST, filter.users),
	P(act_params, "queues", GPUQ_K_STRLIST, filter.queues),
	P(act_params, "states", GPUQ_K_STRLIST, filter.states),
	P(act_params, "names", GPUQ_K_STRLIST, filter.names),
	P(act_params, "nodes", GPUQ_K_STRLIST, filter.nodes),
	P(act_params, "labels", GPUQ_K_STRLIST, filter.labels),
	P(act_params, "since_us", GPUQ_K_INT, filter.since_us, .min = 0, .max = INT64_MAX),
	P(act_params, "until_us", GPUQ_K_INT, filter.until_us, .min = 0, .max = INT64_MAX),
	P(act_params, "all", GPUQ_K_BOOL, filter.all),
	P(act_params, "signal", GPUQ_K_SIGNAL, signal),
	P(act_params, "hold", GPUQ_K_BOOL, hold),
	P(act_params, "set", GPUQ_K_VAL, set),
	P(act_params, "top", GPUQ_K_BOOL, top),
	P(act_params, "dry_run", GPUQ_K_BOOL, dry_run),
	P_END,
};
const struct gpuq_schema p_job_act = P_SCHEMA(act_params, act_fields);

enum act { ACT_CANCEL, ACT_HOLD, ACT_RELEASE, ACT_REQUEUE, ACT_SIGNAL, ACT_UPDATE, ACT_TOP };
static const char *const act_words[] = { "cancel", "hold",   "release", "requeue",
					 "signal", "update", "top" };

/* What is done is done to all; the answer names so many, since it is one message. */
#define NAMED_MAX 5000
#define ERRORS_MAX 1000
#define PIECE_US 5000 /* of one turn of the loop */

struct acting {
	struct methods *m;
	struct rpc_call *c;
	enum act act;
	const struct act_params *p;
	struct job_filter besides; /* what a job has to match besides its id */
	struct gpuq_val *jobs, *errors, *warnings;
	int64_t matched; /* of which `jobs` names as many as an answer may hold */
	size_t n_signals; /* on their way to as many jobs */
	struct loop_timer *timer; /* the next piece */
	struct job_keys keys; /* what a filter selected */
	size_t id_at, key_at;
	bool whole; /* the job at hand is one of all parts of an array that was named */
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

/* What is done to somebody else's job is kept. Strings of the model outlive the job, which
 * may be gone once the act was applied. */
static struct audit_note note_of(const struct acting *x, const char *id, const struct job *j)
{
	const char *action = gpuq_arena_printf(rpc_call_arena(x->c), "job.%s", act_words[x->act]);

	return (struct audit_note){ .who = rpc_call_peer(x->c)->user,
				    .action = action ? action : "job",
				    .kind = "job",
				    .name = id,
				    .owner = j->user,
				    .queue = j->queue->name };
}

/* NULL = it can be done to this job; else why not. */
static const char *cannot(const struct acting *x, const struct job *j, bool manager)
{
	switch (x->act) {
	case ACT_RELEASE:
		return j->held_admin && !manager ? "a manager or operator holds it" : NULL;
	case ACT_HOLD:
		return job_is_live(j) ? "it runs already; to stop it, cancel or requeue it" : NULL;
	case ACT_REQUEUE:
		return !job_is_live(j)  ? "it waits already"
		       : job_is_over(j) ? "it is ending already"
					: NULL;
	case ACT_SIGNAL:
		return j->state == GPUQ_JOB_RUNNING ? NULL : "it does not run";
	case ACT_TOP:
		return job_is_live(j) ? "it runs already" : NULL;
	case ACT_CANCEL:
	case ACT_UPDATE:
		break;
	}
	return NULL;
}

static int update(struct acting *x, struct job_key key, bool manager, bool dry_run,
		  struct gpuq_err *err)
{
	const struct rpc_peer *peer = rpc_call_peer(x->c);
	const struct submit_who who = { peer->user, peer->uid, peer->gid, peer_is_operator(x->c) };

	int rc = update_job(x->m->j, x->m->cluster, &who, manager, key, x->whole, x->p->set,
			    dry_run, rpc_call_arena(x->c), &x->warnings, err);

	/* What is not there is the queue or qos that it names, not the job. */
	if (rc == GPUQ_ENOENT && err->field[0])
		err->code = GPUQ_EINVAL;
	return rc;
}

static void act_go_on(void *arg);

static void act_later(void *arg)
{
	struct acting *x = arg;

	x->timer = NULL;
	act_go_on(x);
}

static void acted(struct acting *x, struct job_key key, const struct audit_note *note)
{
	const char *who = rpc_call_peer(x->c)->user;
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *v;

	if (!x->p->dry_run && strcmp(note->owner, who) != 0)
		audit_add(x->m->j, note, NULL);
	if (!x->p->dry_run)
		log_info("job.act", "job=%s act=%s by=%s", note->name, act_words[x->act],
			 LOGS(who));
	if (x->matched++ >= NAMED_MAX)
		return;
	v = gpuq_map(a);
	gpuq_put(a, v, "id", gpuq_int(a, key.id));
	gpuq_put(a, v, "array_index", key.index < 0 ? gpuq_null(a) : gpuq_int(a, key.index));
	gpuq_add(a, x->jobs, v);
}

/* The answer says how it fared, which takes until the cluster has said so. */
static void on_signalled(void *arg, struct job_key key, const struct gpuq_err *err)
{
	struct acting *x = arg;
	const struct job *j = job_find(journal_model(x->m->j), key);
	struct audit_note note;
	char id[32];

	job_id_print(key, id);
	if (err) {
		refuse(x, id, err->code, err->text);
	} else if (j) {
		note = note_of(x, id, j);
		acted(x, key, &note);
	}
	if (--x->n_signals == 0 && !x->timer)
		x->timer = loop_after(journal_loop(x->m->j), 0, act_later, x);
}

/* > 0: what comes of it is told later. */
static int signal_pods(struct acting *x, const struct job *j, struct gpuq_err *err)
{
	int rc = job_signal_send(x->m, j, x->p->signal, on_signalled, x, err);

	x->n_signals += rc == 0;
	return rc < 0 ? rc : 1;
}

static int act_apply(struct acting *x, struct job_key key, const struct job *j, bool manager,
		     struct gpuq_err *err)
{
	const char *who = rpc_call_peer(x->c)->user;
	const bool admin = manager && strcmp(j->user, who) != 0;
	struct event ev = { .job = key };

	switch (x->act) {
	case ACT_CANCEL:
		if (j->cancel_asked)
			return 0; /* it is on its way */
		ev.type = EV_JOB_CANCEL_ASKED;
		ev.cancel.who = who;
		ev.cancel.admin = admin;
		break;
	case ACT_HOLD:
		ev.type = EV_JOB_HELD;
		ev.held.admin = admin;
		ev.held.who = who;
		break;
	case ACT_RELEASE:
		ev.type = EV_JOB_RELEASED;
		ev.held.admin = manager;
		ev.held.who = who;
		break;
	case ACT_REQUEUE:
		if (x->p->hold) {
			ev.type = EV_JOB_HELD;
			ev.held.admin = admin;
			ev.held.who = who;
			(void)journal_apply(x->m->j, &ev, err);
			ev = (struct event){ .job = key };
		}
		ev.type = EV_JOB_EVICT_ASKED;
		ev.evict.cause = GPUQ_CAUSE_REQUEUE;
		ev.evict.rule = "requeue";
		ev.evict.by = who;
		ev.evict.grace_us = -1;
		break;
	case ACT_SIGNAL:
		return signal_pods(x, j, err);
	case ACT_UPDATE:
		return update(x, key, manager, false, err);
	case ACT_TOP:
		return update_top(x->m->j, key, err);
	}
	return journal_apply(x->m->j, &ev, err);
}

/* With the field, where it names one. */
static const char *err_line(struct gpuq_arena *a, const struct gpuq_err *err)
{
	const char *s = err->field[0] && strncmp(err->text, err->field, strlen(err->field)) != 0
				? gpuq_arena_printf(a, "%s: %s", err->field, err->text)
				: err->text;

	return s ? s : err->text;
}

/* key may be an element that still waits inside its array. */
static void act_on(struct acting *x, struct job_key key, const struct job *j)
{
	const struct rpc_peer *peer = rpc_call_peer(x->c);
	struct gpuq_arena *a = rpc_call_arena(x->c);
	bool manager =
		access_manage(journal_model(x->m->j), j->queue, peer->user, peer_is_operator(x->c));
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct audit_note note;
	const char *why;
	char id[32];
	int rc = 0;

	if (!filter_job(&x->besides, j))
		return;
	job_id_print(key, id);
	if (!manager && strcmp(j->user, peer->user) != 0) {
		if (!x->quiet)
			refuse(x, id, GPUQ_EPERM, "it belongs to somebody else");
		return;
	}
	note = note_of(x, id, j);
	why = cannot(x, j, manager);
	if (why) {
		if (!x->quiet || x->act == ACT_RELEASE)
			refuse(x, id, x->act == ACT_RELEASE ? GPUQ_EPERM : GPUQ_ECONFLICT, why);
		return;
	}
	if (!x->p->dry_run)
		rc = act_apply(x, key, j, manager, &err);
	else if (x->act == ACT_UPDATE)
		rc = update(x, key, manager, true, &err);
	if (rc < 0)
		refuse(x, id, err.code, err_line(a, &err));
	if (rc != 0)
		return;
	acted(x, key, &note);
}

/* All of job `id`: an array's waiting part and each of its elements. */
static bool act_on_whole(struct acting *x, uint32_t id)
{
	struct model *model = journal_model(x->m->j);
	struct job *j = job_find(model, (struct job_key){ id, -1 }), *next;
	bool found = false;

	/* Its elements first: with the last of them it may leave memory itself. */
	x->whole = true;
	DL_FOREACH_SAFE2(jobs_elements(model, id), next, j, life->kin_next)
	{
		if (next->ended)
			continue;
		found = true;
		act_on(x, next->key, next);
	}
	x->whole = false;
	j = job_find(model, (struct job_key){ id, -1 });
	if (!j || j->ended)
		return found;
	if (!(j->array && j->array->n_waiting == 0))
		act_on(x, j->key, j);
	return true;
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
	/* Of whole jobs their numbers tell, also while one is on its way to the history. */
	if (job_find(model, key) || history_job(journal_store(x->m->j), key, a) ||
	    (key.index < 0 && key.id > 0 && key.id < model->next_job_id))
		refuse(x, text, GPUQ_EGONE, "it has ended already");
	else
		refuse(x, text, GPUQ_ENOENT, "no such job");
}

static bool lives(const struct job_filter *f, const struct job *j)
{
	(void)f;
	return !j->ended && !(j->array && j->array->n_waiting == 0);
}

static void act_answer(struct acting *x)
{
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *v = gpuq_map(a);

	job_keys_done(&x->keys);
	gpuq_put(a, v, "matched", gpuq_int(a, x->matched));
	gpuq_put(a, v, "jobs", x->jobs);
	gpuq_put(a, v, "errors", x->errors);
	if (x->warnings)
		gpuq_put(a, v, "warnings", x->warnings);
	rpc_reply(x->c, v);
}

/* Many jobs are many turns: others want to be served meanwhile. */
static void act_go_on(void *arg)
{
	struct acting *x = arg;
	struct model *model = journal_model(x->m->j);
	const struct gpuq_strlist *ids = &x->p->filter.ids;
	const int64_t begun_us = loop_clock_us();

	while (x->id_at < ids->n || x->key_at < x->keys.n) {
		if (loop_clock_us() - begun_us > PIECE_US) {
			x->timer = loop_after(journal_loop(x->m->j), 0, act_later, x);
			return;
		}
		if (x->id_at < ids->n) {
			act_on_id(x, ids->items[x->id_at++]);
		} else {
			const struct job *j = job_find(model, x->keys.items[x->key_at++]);

			if (j && lives(NULL, j))
				act_on(x, j->key, j);
		}
	}
	if (x->n_signals == 0)
		act_answer(x);
}

/* Who goes away meanwhile has changed his mind: what was done stays done. */
static void act_closed(void *arg, int why)
{
	struct acting *x = arg;
	struct gpuq_err err;

	loop_cancel(x->timer);
	job_signals_forget(x->m, x);
	job_keys_done(&x->keys);
	gpuq_fail(&err, why, "cancelled");
	rpc_fail(x->c, &err);
}

static void act_when_durable(void *arg, int rc, const struct gpuq_err *failed)
{
	struct acting *x = arg;
	struct gpuq_arena *a = rpc_call_arena(x->c);

	if (rc < 0) {
		rpc_fail(x->c, failed);
		return;
	}
	x->jobs = gpuq_list(a);
	x->errors = gpuq_list(a);
	x->quiet = x->p->filter.ids.n == 0;
	if (x->quiet)
		jobs_select(journal_model(x->m->j), &x->p->filter, lives, NULL, &x->keys);
	rpc_call_watch(x->c, NULL, act_closed, x);
	act_go_on(x);
}

/* As for get: what has just ended is in history only once that is durable, and "it has
 * ended" is another answer than "no such job". */
static int act(struct methods *m, struct rpc_call *c, const struct act_params *p, enum act what,
	       struct gpuq_err *err)
{
	struct acting *x = gpuq_arena_calloc(rpc_call_arena(c), 1, sizeof(*x));

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
	const struct act_params *p = params;

	return act(arg, c, params, p->signal ? ACT_SIGNAL : ACT_CANCEL, err);
}

int m_job_hold(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return act(arg, c, params, ACT_HOLD, err);
}

int m_job_release(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return act(arg, c, params, ACT_RELEASE, err);
}

int m_job_requeue(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return act(arg, c, params, ACT_REQUEUE, err);
}

int m_job_update(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct act_params *p = params;

	if (p->top == (p->set != NULL))
		return gpuq_fail_field(err, GPUQ_EINVAL, "set",
				       "expected what to change, or top: true");
	return act(arg, c, params, p->top ? ACT_TOP : ACT_UPDATE, err);
}
