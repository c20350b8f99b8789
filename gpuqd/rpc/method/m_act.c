/* Actions on jobs that ids and filters select: cancel, signal, hold, release, requeue, update. */
#include <string.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/flow/admit/update.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/units.h"

struct act_params {
	struct job_filter filter;
	int signal; /* of cancel: send it, and leave the jobs running */
	bool first_only; /* of a signal: to the first process of each pod */
	bool hold; /* of requeue: they wait until they are released */
	const struct gpuq_val *set; /* of update: keys of a job file */
	bool top; /* of update: before all others of the owner */
	bool dry_run;
};

static const struct gpuq_field act_fields[] = {
	FILTER_FIELDS(act_params),
	P(act_params, "all", GPUQ_K_BOOL, filter.all),
	P(act_params, "signal", GPUQ_K_SIGNAL, signal),
	P(act_params, "first_only", GPUQ_K_BOOL, first_only),
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

/* The action applies to all; the reply lists only so many, since it is one message. */
#define NAMED_MAX 5000
#define ERRORS_MAX 1000
/* Number of jobs changed before their records are awaited: those of one batch, which delays the
 * batches of all other calls. */
#define BATCH_MAX 4096

/* A job is a step of long work: others are served meanwhile, and things happen to jobs that
 * were selected. So each is evaluated again when its turn comes, and of an array what has
 * started since then is acted on with what waits of it. */
struct acting {
	struct methods *m;
	struct rpc_call *c;
	enum act act;
	const char *action; /* "job.cancel", for the audit */
	const struct act_params *p;
	struct job_filter besides; /* what a job has to match besides its id */
	struct gpuq_val *jobs, *errors, *warnings;
	int64_t matched; /* of which `jobs` names as many as a reply may hold */
	size_t n_signals; /* on their way to as many jobs */
	struct gpuq_arena mem; /* of one job */
	struct loop_work *work;
	struct job_keys keys; /* what the filter selected, or belongs to the id at hand */
	struct job_keys late; /* elements that have started since */
	struct top top; /* of ACT_TOP: the others that are told, job by job */
	size_t id_at, key_at, late_at;
	size_t n_batch; /* acted on since anything was waited for */
	bool waits; /* for the disk: whoever closes it is told then */
	bool over; /* each has had its turn: only signals are not answered yet */
	int why_closed;
	bool whole; /* the job at hand is one of all parts of an array that was named */
	bool quiet; /* jobs selected by a filter: those one may not touch are passed over */
	bool selected; /* the filter has been asked */
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

/* Actions on jobs of other users are audited. Strings of the model outlive the job, which may be
 * gone once the action was applied. */
static struct audit_note note_of(const struct acting *x, const char *id, const struct job *j)
{
	return (struct audit_note){ .who = rpc_call_peer(x->c)->user,
				    .action = x->action,
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
		return manager           ? NULL
		       : j->held_admin   ? "a manager or operator holds it"
		       : j->held_restore ? "it may have ended before the restore; only managers "
					   "and operators can release it"
					 : NULL;
	case ACT_HOLD:
		return model_job_is_live(j) ? "already running; use cancel or requeue to stop it"
					    : NULL;
	case ACT_REQUEUE:
		return !model_job_is_live(j)  ? "already pending"
		       : model_job_is_over(j) ? "already ending"
		       : model_is_adopted(journal_model(x->m->j), j)
			       ? "its pods are not gpuqd's to make again; use cancel"
		       : j->recovered ? "recovered from its pods: its program is unknown"
				      : NULL;
	case ACT_SIGNAL:
		return j->state == GPUQ_JOB_RUNNING ? NULL : "not running";
	case ACT_TOP:
		return model_job_is_live(j) ? "already running" : NULL;
	case ACT_CANCEL:
	case ACT_UPDATE:
		break;
	}
	return NULL;
}

static int update(struct acting *x, struct job_key key, unsigned rights, bool dry_run,
		  struct gpuq_err *err)
{
	const struct submit_who who = peer_who(x->m, x->c);
	struct gpuq_val *warnings = NULL;
	int rc = update_job(x->m->j, x->m->cluster, &who, rights, key, x->whole, x->p->set, dry_run,
			    &x->mem, &warnings, err);

	if (warnings && (warnings->n || !x->warnings))
		x->warnings = gpuq_val_copy(rpc_call_arena(x->c), warnings);
	/* The missing object is the queue or qos that it names, not the job. */
	if (rc == GPUQ_ENOENT && err->field[0])
		err->code = GPUQ_EINVAL;
	return rc;
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

static void answer(struct acting *x);

/* The answer says how it fared, which takes until the cluster has said so. */
static void on_signalled(void *arg, struct job_key key, const struct gpuq_err *err)
{
	struct acting *x = arg;
	const struct job *j = model_find_job(journal_model(x->m->j), key);
	struct audit_note note;
	char id[32];

	job_id_print(key, id);
	if (err) {
		refuse(x, id, err->code, err->text);
	} else if (j) {
		note = note_of(x, id, j);
		acted(x, key, &note);
	}
	if (--x->n_signals == 0 && x->over)
		answer(x);
}

/* > 0: what comes of it is reported later. */
static int signal_pods(struct acting *x, const struct job *j, struct gpuq_err *err)
{
	int rc = job_signal_send(x->m, j, x->p->signal, x->p->first_only, on_signalled, x, err);

	x->n_signals += rc == 0;
	return rc < 0 ? rc : 1;
}

static int act_apply(struct acting *x, struct job_key key, const struct job *j, unsigned rights,
		     struct gpuq_err *err)
{
	const char *who = rpc_call_peer(x->c)->user;
	const bool manager = rights & ACCESS_MANAGE;
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
		return update(x, key, rights, false, err);
	case ACT_TOP:
		return top_begin(x->m->j, key, &x->top, err);
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
	const struct submit_who who = peer_who(x->m, x->c);
	const unsigned rights = access_job(journal_model(x->m->j), j->queue, j->user, &who);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct audit_note note;
	const char *why;
	char id[32];
	int rc = 0;

	if (!filter_job(&x->besides, j))
		return;
	job_id_print(key, id);
	if (!rights) {
		if (!x->quiet)
			refuse(x, id, GPUQ_EPERM, "it belongs to another user");
		return;
	}
	note = note_of(x, id, j);
	why = cannot(x, j, rights & ACCESS_MANAGE);
	if (why) {
		if (!x->quiet || x->act == ACT_RELEASE)
			refuse(x, id, x->act == ACT_RELEASE ? GPUQ_EPERM : GPUQ_ECONFLICT, why);
		return;
	}
	if (!x->p->dry_run)
		rc = act_apply(x, key, j, rights, &err);
	else if (x->act == ACT_UPDATE)
		rc = update(x, key, rights, true, &err);
	if (rc < 0)
		refuse(x, id, err.code, err_line(&x->mem, &err));
	if (rc != 0)
		return;
	x->n_batch += !x->p->dry_run;
	acted(x, key, &note);
	(void)FAILPOINT("act.done");
}

/* ---- whose turn it is ---- */

static void add_key(struct job_keys *k, struct job_key key)
{
	if (!job_keys_add(k, key))
		abort(); /* half a cancellation that says nothing of it is worse */
}

static bool is_live(const struct job *j)
{
	return !j->ended && !(j->array && j->array->n_waiting == 0);
}

static bool lives(const struct job_filter *f, const struct job *j)
{
	(void)f;
	return is_live(j);
}

/* All of job `id`: what waits of an array, then its elements. */
static bool take_whole(struct acting *x, uint32_t id)
{
	const struct model *model = journal_model(x->m->j);
	const struct job *j = model_find_job(model, (struct job_key){ id, -1 });
	const bool found = j && !j->ended;

	if (found)
		add_key(&x->keys, j->key);
	DL_FOREACH2(index_elements(model, id), j, life->kin_next)
		if (!j->ended)
			add_key(&x->keys, j->key);
	job_keys_sort(&x->keys);
	return found || x->keys.n > 0;
}

static void take_id(struct acting *x, const char *text)
{
	const struct model *model = journal_model(x->m->j);
	struct job_key key;
	const struct job *j;

	job_keys_done(&x->keys);
	x->key_at = 0;
	if (!job_id_parse(text, &key)) {
		refuse(x, text, GPUQ_EINVAL, "not a job id: expected 17 or 17_3");
		return;
	}
	job_id_resolve(x->m, &key);
	if (key.index < 0 && take_whole(x, key.id))
		return;
	if (key.index >= 0) {
		j = model_find_job(model, key);
		if (!j) {
			j = model_find_job(model, (struct job_key){ key.id, -1 });
			if (j && !(j->array && model_element_waits(j->array, key.index)))
				j = NULL;
		}
		if (j && !j->ended) {
			act_on(x, key, j);
			return;
		}
	}
	/* A whole job is found by its number, even while it moves to the history. */
	if (model_find_job(model, key) || history_job(journal_store(x->m->j), key, &x->mem) ||
	    (key.index < 0 && key.id > 0 && key.id < model->next_job_id))
		refuse(x, text, GPUQ_EGONE, "already ended");
	else
		refuse(x, text, GPUQ_ENOENT, "no such job");
}

/* Elements that waited when the array was selected, and do not any more. */
static void take_late(struct acting *x, uint32_t id)
{
	const struct job *j;

	DL_FOREACH2(index_elements(journal_model(x->m->j), id), j, life->kin_next)
		if (!j->ended && !job_keys_has(&x->keys, j->key))
			add_key(&x->late, j->key);
}

static void act_on_key(struct acting *x, struct job_key key)
{
	const struct job *j = model_find_job(journal_model(x->m->j), key);
	const bool of_array = j && j->array;

	x->whole = x->p->filter.ids.n > 0 && key.index >= 0;
	if (j && is_live(j))
		act_on(x, key, j);
	x->whole = false;
	if (of_array)
		take_late(x, key.id);
}

/* ---- its end ---- */

static void done(struct acting *x)
{
	job_keys_done(&x->keys);
	job_keys_done(&x->late);
	top_done(&x->top);
	gpuq_arena_done(&x->mem);
}

static void answer(struct acting *x)
{
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *v = gpuq_map(a);

	done(x);
	gpuq_put(a, v, "matched", gpuq_int(a, x->matched));
	gpuq_put(a, v, "jobs", x->jobs);
	gpuq_put(a, v, "errors", x->errors);
	if (x->warnings)
		gpuq_put(a, v, "warnings", x->warnings);
	rpc_reply(x->c, v);
}

static void fail(struct acting *x, const struct gpuq_err *why)
{
	done(x);
	rpc_fail(x->c, why);
}

/* A client that goes away cancels the rest; jobs already changed stay changed. */
static void closed(void *arg, int why)
{
	struct acting *x = arg;
	struct gpuq_err err;

	x->why_closed = why;
	if (x->waits)
		return;
	loop_work_cancel(x->work);
	job_signals_forget(x->m, x);
	gpuq_fail(&err, why, "cancelled");
	fail(x, &err);
}

/* ---- step by step ---- */

static bool step(void *arg);

static void when_durable(void *arg, int rc, const struct gpuq_err *failed)
{
	struct acting *x = arg;

	x->waits = false;
	x->n_batch = 0;
	if (x->why_closed)
		closed(x, x->why_closed);
	else if (rc < 0)
		fail(x, failed);
	else
		x->work = loop_work_as(journal_loop(x->m->j), rpc_call_method(x->c)->name, step, x);
}

static void wait_for_disk(struct acting *x)
{
	x->work = NULL;
	x->waits = true;
	journal_after(x->m->j, when_durable, x);
}

static bool take_filtered(struct acting *x)
{
	struct gpuq_err err;

	x->selected = true;
	jobs_select(journal_model(x->m->j), &x->p->filter, lives, NULL, &x->keys);
	if (x->keys.failed) {
		gpuq_no_memory(&err);
		fail(x, &err);
		return false;
	}
	job_keys_sort(&x->keys);
	return true;
}

static bool step(void *arg)
{
	struct acting *x = arg;
	const struct gpuq_strlist *ids = &x->p->filter.ids;

	gpuq_arena_reset(&x->mem);
	if (x->n_batch >= BATCH_MAX) {
		wait_for_disk(x);
		return false;
	}
	if (x->top.rivals.n) {
		x->n_batch++;
		if (!top_step(x->m->j, &x->top))
			top_done(&x->top);
	} else if (x->late_at < x->late.n) {
		act_on_key(x, x->late.items[x->late_at++]);
	} else if (x->key_at < x->keys.n) {
		act_on_key(x, x->keys.items[x->key_at++]);
	} else if (x->id_at < ids->n) {
		take_id(x, ids->items[x->id_at++]);
	} else if (x->quiet && !x->selected) {
		return take_filtered(x);
	} else {
		x->work = NULL;
		x->over = true;
		if (x->n_signals == 0)
			answer(x);
		return false;
	}
	return true;
}

/* As for get: what has just ended is in history only once that is durable, and "it has
 * ended" is another answer than "no such job". */
static int act(struct methods *m, struct rpc_call *c, const struct act_params *p, enum act what,
	       struct gpuq_err *err)
{
	struct gpuq_arena *a = rpc_call_arena(c);
	struct acting *x = gpuq_arena_calloc(a, 1, sizeof(*x));

	if (!filter_any(&p->filter))
		return gpuq_fail(err, GPUQ_EINVAL, "expected job ids or a filter");
	if (x)
		*x = (struct acting){ .m = m,
				      .c = c,
				      .act = what,
				      .action = gpuq_arena_printf(a, "job.%s", act_words[what]),
				      .p = p,
				      .besides = p->filter,
				      .jobs = gpuq_list(a),
				      .errors = gpuq_list(a),
				      .quiet = p->filter.ids.n == 0 };
	if (!x || !x->action || !x->jobs || !x->errors)
		return gpuq_no_memory(err);
	x->besides.ids = (struct gpuq_strlist){ NULL, 0 };
	rpc_call_watch(c, NULL, closed, x);
	wait_for_disk(x);
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
		return gpuq_fail_field(err, GPUQ_EINVAL, "set", "expected a change, or top: true");
	return act(arg, c, params, p->top ? ACT_TOP : ACT_UPDATE, err);
}
