#include "gpuqd/sched/eligibility.h"

#include "gpuqd/sched/quota/caps.h"
#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/reasons.h"
#include "gpuqd/sched/timeline/timeline.h"

/* Conditions that keep a pending job from being considered: stopped queues, times, dependencies,
 * and requests that nothing could ever hold. All that apply are reported, the one that its reader
 * can do most about first. */

/* Report why a job is not eligible. */
static void tell(struct cycle *c, enum gpuq_reason code, enum plan_unit unit, int64_t have,
		 int64_t need, const char *object)
{
	struct plan_reason *why = PLAN_PUSH(c, reasons, 1);

	if (why)
		*why = (struct plan_reason){
			.code = code, .unit = unit, .have = have, .need = need, .object = object
		};
}

/* Return the highest stopped queue above the job: the one that must be started first. */
static const char *stopped_queue(const struct cycle *c, uint32_t queue)
{
	const struct snap_queue *queues = c->s->queues;
	const char *name = queues[queue].name;

	for (uint32_t q = queue; q != SNAP_NONE; q = queues[q].parent)
		if (queues[q].stopped)
			name = queues[q].name;
	return name;
}

/* Report a begin time that is to come, and a deadline that can no longer be met even if it starts
 * then. */
static void tell_times(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t now = c->s->config.now_us, least = timeline_least_us(j);
	int64_t end = now;

	if (j->begin_us > now) {
		tell(c, GPUQ_R_BEGIN_TIME, PLAN_TIME, now, j->begin_us, "");
		end = j->begin_us;
		if (j->begin_us < c->plan.wake_us)
			c->plan.wake_us = j->begin_us;
	}
	if (j->deadline_us == 0)
		return;
	if (least != GPUQ_UNLIMITED && __builtin_add_overflow(end, least, &end))
		end = GPUQ_UNLIMITED;
	if (end > j->deadline_us || now >= j->deadline_us)
		tell(c, GPUQ_R_DEADLINE, PLAN_TIME, j->deadline_us, end, "");
}

/* True if clearly no condition applies, as for nearly all jobs. */
static bool plainly_open(const struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];

	return !j->held && j->gate == GPUQ_R_NONE && j->begin_us <= c->s->config.now_us &&
	       j->deadline_us == 0 && j->throttle == 0 && !holdings_stopped(c, j->queue) &&
	       c->s->queues[j->queue].n_children == 0 && reasons_some_time(c, j->request);
}

bool eligibility_closed(struct cycle *c, uint32_t job)
{
	static const struct {
		uint8_t flag;
		enum gpuq_reason code;
	} holds[] = {
		{ SNAP_HELD_USER, GPUQ_R_HELD_USER },
		{ SNAP_HELD_ADMIN, GPUQ_R_HELD_ADMIN },
		{ SNAP_HELD_RETRIES, GPUQ_R_HELD_RETRIES },
		{ SNAP_HELD_RESTORE, GPUQ_R_RESTORED_UNKNOWN },
	};
	const struct snap_job *j = &c->s->jobs[job];
	const uint32_t before = c->plan.n_reasons;
	struct plan_reason why = { .object = "" };

	if (plainly_open(c, job))
		return false;
	for (size_t i = 0; i < sizeof(holds) / sizeof(holds[0]); i++)
		if (j->held & holds[i].flag)
			tell(c, holds[i].code, PLAN_COUNT, 0, 0,
			     holds[i].flag == SNAP_HELD_RETRIES && j->gate == GPUQ_R_NONE
				     ? j->gate_object
				     : "");
	if (j->gate != GPUQ_R_NONE)
		tell(c, j->gate, PLAN_COUNT, 0, 0, j->gate_object);
	tell_times(c, job);
	/* Jobs belong in leaf queues; one whose queue got children is pending until it is moved. */
	if (holdings_stopped(c, j->queue) || c->s->queues[j->queue].n_children > 0)
		tell(c, GPUQ_R_QUEUE_STOPPED, PLAN_COUNT, 0, 0, stopped_queue(c, j->queue));
	if (reasons_never(c, job, &why))
		tell(c, why.code, why.unit, why.have, why.need, why.object);
	if (c->plan.n_reasons == before && caps_array_full(c, job, &why))
		tell(c, why.code, why.unit, why.have, why.need, why.object);
	return c->plan.n_reasons > before;
}
