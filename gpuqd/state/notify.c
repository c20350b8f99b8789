#include "gpuqd/state/notify.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/model_int.h"
#include "libgpuq/units.h"

/* ---- recipients ---- */

void notify_take(struct model *m, const struct job *j, const struct gpuq_spec *spec, struct wish *w)
{
	struct gpuq_notify mail, web;

	gpuq_spec_told(spec, j->user, &mail, &web);
	w->mail_on = mail.on;
	w->mail = model_intern(m, mail.mail);
	w->web_on = web.on;
	w->web = model_intern(m, web.webhook);
}

/* Return every setting that includes the event: a failure is also an end; a request for requeues
 * includes evictions. */
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

/* An array is reported either as a whole or element by element. */
bool notify_wants(unsigned on, const struct job *j, unsigned what)
{
	const bool tasks = on & GPUQ_NOTIFY_ARRAY_TASKS;

	if (j->key.index >= 0 ? !tasks : j->array && tasks)
		return false;
	return on & also(what);
}

bool notify_wanted(const struct model *m, const struct job *j, unsigned on)
{
	const struct policy_notify *site = &m->policy.notify;
	bool any = notify_wants(j->wish->mail_on, j, on) || notify_wants(j->wish->web_on, j, on);

	for (unsigned i = 0; i < site->n_hooks && !any; i++)
		any = notify_wants(site->hooks[i].on, j, on);
	return any;
}

/* ---- times ---- */

/* Mark a message for writing, if its owner or the site requested it; it is written with the event
 * that caused it. */
static void tell(struct model *m, const struct job *j, unsigned what, enum gpuq_cause cause)
{
	if (notify_wanted(m, j, what))
		marks_notice(m, j, what, cause);
}

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
	/* The user who cancelled it knows; others see the state. */
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

void notify_refused(struct model *m, struct job *j)
{
	const struct policy_notify *site = &m->policy.notify;
	unsigned on = 0;

	for (unsigned i = 0; i < site->n_hooks; i++)
		on |= site->hooks[i].on;
	if (on & GPUQ_NOTIFY_REFUSED)
		marks_notice(m, j, GPUQ_NOTIFY_REFUSED, GPUQ_CAUSE_NONE);
}

void notify_provision(struct model *m, struct job_key owner, bool failed)
{
	const struct job *j = model_find_waiting(m, owner);

	if (j)
		tell(m, j, failed ? GPUQ_NOTIFY_PROVISION_FAILED : GPUQ_NOTIFY_PROVISIONED,
		     GPUQ_CAUSE_NONE);
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
	int percent; /* of the time limit */
	unsigned on; /* bit of the word that requests it */
} times[] = { { 90, GPUQ_NOTIFY_TIME_90 },
	      { 80, GPUQ_NOTIFY_TIME_80 },
	      { 50, GPUQ_NOTIFY_TIME_50 } };

int notify_time_due(const struct model *m, const struct job *j, int64_t now_us)
{
	if (!j->life->start_us || j->time_limit_us == GPUQ_UNLIMITED || model_job_is_over(j))
		return 0;
	/* Report the latest part: a recipient that missed earlier ones gets the one that holds
	 * now. */
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
