#include "gpuqd/state/notify.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/model_int.h"
#include "gpuqd/state/view/view.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

#define NODES_MAX 16 /* that a message names */

/* ---- who wants to hear ---- */

void notify_take(struct model *m, const struct job *j, const struct gpuq_spec *spec, struct wish *w)
{
	struct gpuq_notify mail, web;

	gpuq_spec_told(spec, j->user, &mail, &web);
	w->mail_on = mail.on;
	w->mail = model_intern(m, mail.mail);
	w->web_on = web.on;
	w->web = model_intern(m, web.webhook);
}

/* An end that is a failure is an end, too; who asked for requeues hears of evictions. */
static unsigned also(unsigned what)
{
	switch (what) {
	case GPUQ_NOTIFY_FAIL:
		return GPUQ_NOTIFY_FAIL | GPUQ_NOTIFY_END;
	case GPUQ_NOTIFY_TIME_LIMIT:
		return GPUQ_NOTIFY_TIME_LIMIT | GPUQ_NOTIFY_FAIL | GPUQ_NOTIFY_END;
	case GPUQ_NOTIFY_PREEMPT:
		return GPUQ_NOTIFY_PREEMPT | GPUQ_NOTIFY_REQUEUE;
	default:
		return what;
	}
}

/* Of an array one hears either as a whole or element by element. */
static bool wants(unsigned on, const struct job *j, unsigned what)
{
	const bool tasks = on & GPUQ_NOTIFY_ARRAY_TASKS;

	if (j->key.index >= 0 ? !tasks : j->array && tasks)
		return false;
	return on & also(what);
}

bool notify_wanted(const struct model *m, const struct job *j, unsigned on)
{
	const struct policy_notify *site = &m->policy.notify;
	bool any = wants(j->wish->mail_on, j, on) || wants(j->wish->web_on, j, on);

	for (unsigned i = 0; i < site->n_hooks && !any; i++)
		any = wants(site->hooks[i].on, j, on);
	return any;
}

/* ---- the message ---- */

static struct gpuq_val *nodes_of(struct gpuq_arena *a, const struct job *j)
{
	struct gpuq_val *list = gpuq_list(a);
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next) {
		bool known = p->attempt != j->attempt;

		for (size_t i = 0; list && i < list->n && !known; i++)
			known = strcmp(list->items[i]->s, p->node->name) == 0;
		if (!known && list && list->n < NODES_MAX)
			gpuq_add(a, list, gpuq_str(a, p->node->name));
	}
	return list;
}

static struct gpuq_val *job_of(struct gpuq_arena *a, const struct model *m, const struct job *j)
{
	static const char *const left_out[] = { "pods",     "reasons",        "evictions",
						"avoids",   "promise",        "use",
						"priority", "priority_terms", "planned_time" };
	struct gpuq_val *v = view_job(a, m, j, m->now_us);

	for (size_t i = 0; v && i < sizeof(left_out) / sizeof(left_out[0]); i++)
		gpuq_unset(v, left_out[i]);
	gpuq_put(a, v, "nodes", nodes_of(a, j));
	return v;
}

/* One for each who hears of it: what one of them does not take keeps no other waiting. */
static void put(struct model *m, struct gpuq_arena *a, struct gpuq_val *v, const char *to,
		const char *address)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	gpuq_set(a, v, "to", gpuq_str(a, to));
	gpuq_set(a, v, "address", gpuq_str(a, address));
	if (gpuq_val_ok(v))
		gpuq_mp_write(&b, v);
	if (!gpuq_val_ok(v) || b.failed)
		m->direct.failed = true;
	else
		change_batch_put(&m->direct, TABLE_OUTBOX, key,
				 change_key_outbox(key, m->next_notice++), b.data, b.len);
	m->meta_dirty = true;
	gpuq_buf_done(&b);
}

static void tell(struct model *m, const struct job *j, unsigned what, enum gpuq_cause cause)
{
	const struct policy_notify *site = &m->policy.notify;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v;

	if (!notify_wanted(m, j, what))
		return;
	v = gpuq_map(&a);
	gpuq_put(&a, v, "time", gpuq_int(&a, m->now_us));
	gpuq_put(&a, v, "event", gpuq_str(&a, gpuq_notify_name(what)));
	if (cause != GPUQ_CAUSE_NONE)
		gpuq_put(&a, v, "cause", gpuq_str(&a, gpuq_cause_word(cause)));
	gpuq_put(&a, v, "job", job_of(&a, m, j));
	if (wants(j->wish->mail_on, j, what))
		put(m, &a, v, "mail", j->wish->mail);
	if (wants(j->wish->web_on, j, what))
		put(m, &a, v, "webhook", j->wish->web);
	for (unsigned i = 0; i < site->n_hooks; i++)
		if (wants(site->hooks[i].on, j, what))
			put(m, &a, v, "site", site->hooks[i].name);
	gpuq_arena_done(&a);
}

/* ---- when ---- */

void notify_started(struct model *m, struct job *j)
{
	struct job *master =
		j->key.index < 0 ? NULL : model_find_job(m, (struct job_key){ j->key.id, -1 });

	tell(m, j, GPUQ_NOTIFY_BEGIN, GPUQ_CAUSE_NONE);
	if (!master || (master->life->told & GPUQ_NOTIFY_BEGIN))
		return;
	job_life(master)->told |= GPUQ_NOTIFY_BEGIN; /* with its first element */
	model_job_dirty(m, master);
	tell(m, master, GPUQ_NOTIFY_BEGIN, GPUQ_CAUSE_NONE);
}

void notify_ended(struct model *m, struct job *j)
{
	/* Who cancelled it knows; others see the state. */
	const unsigned what = j->state == GPUQ_JOB_COMPLETED || j->state == GPUQ_JOB_CANCELLED
				      ? GPUQ_NOTIFY_END
			      : j->state == GPUQ_JOB_TIMEOUT ? GPUQ_NOTIFY_TIME_LIMIT
							     : GPUQ_NOTIFY_FAIL;

	tell(m, j, what, GPUQ_CAUSE_NONE);
}

void notify_requeued(struct model *m, struct job *j, enum gpuq_cause cause)
{
	tell(m, j, job_cause_is_eviction(cause) ? GPUQ_NOTIFY_PREEMPT : GPUQ_NOTIFY_REQUEUE, cause);
}

void notify_never(struct model *m, struct job *j)
{
	if (j->life->told & GPUQ_NOTIFY_INVALID_DEPEND)
		return;
	job_life(j)->told |= GPUQ_NOTIFY_INVALID_DEPEND;
	model_job_dirty(m, j);
	tell(m, j, GPUQ_NOTIFY_INVALID_DEPEND, GPUQ_CAUSE_NONE);
}

static const struct {
	int percent;
	unsigned on;
} times[] = { { 90, GPUQ_NOTIFY_TIME_90 },
	      { 80, GPUQ_NOTIFY_TIME_80 },
	      { 50, GPUQ_NOTIFY_TIME_50 } };

int notify_time_due(const struct model *m, const struct job *j, int64_t now_us)
{
	if (!j->life->start_us || j->time_limit_us == GPUQ_UNLIMITED || model_job_is_over(j))
		return 0;
	/* The latest: who slept over half of it hears what holds now. */
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if ((now_us - j->life->start_us) / times[i].percent < j->time_limit_us / 100)
			continue;
		if (j->life->told & times[i].on)
			return 0;
		if (notify_wanted(m, j, times[i].on))
			return times[i].percent;
	}
	return 0;
}

int notify_apply_time_passed(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = model_find_job(m, ev->job);

	if (!j || !j->life->start_us)
		return gpuq_fail(err, GPUQ_ENOENT, "job %u does not run", ev->job.id);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (times[i].percent > ev->percent)
			continue;
		job_life(j)->told |= times[i].on;
		if (times[i].percent == ev->percent)
			tell(m, j, times[i].on, GPUQ_CAUSE_NONE);
	}
	model_job_dirty(m, j);
	return 0;
}
