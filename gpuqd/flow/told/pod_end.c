#include "gpuqd/flow/told/pod_end.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/state/model.h"
#include "gpuqd/util/walltime.h"
#include "libgpuq/units.h"

#define NOT_ROOT                                                                                   \
	"give securityContext.runAsUser in the job, an image with a numeric USER, or a queue "     \
	"with pod_policy: baseline"

bool pod_end_is_requested(const struct pod *p)
{
	const struct job *j = p->job;

	return p->attempt != j->attempt || p->dropped || !model_job_is_live(j) ||
	       j->life->leave_us || j->life->outcome != GPUQ_JOB_PENDING;
}

void pod_end_told(const struct model *m, const struct pod *p, const struct pod_fact *f,
		  int64_t ahead_us, struct event *ev, char text[POD_END_ROOM])
{
	const bool refused = f->fault == POD_FAULT_REJECTED;

	ev->type = EV_POD_ENDED;
	/* A pod refused by a node never ran, whatever startTime the kubelet wrote. */
	ev->pod_ended.start_us = refused ? 0 : walltime_to_ledger(f->start_us, ahead_us);
	ev->pod_ended.end_us = walltime_to_ledger(f->end_us, ahead_us);
	ev->pod_ended.untold = !f->leaving;
	ev->pod_ended.named = refused && f->short_of && node_offers(p->node, f->short_of) &&
			      !node_has_devices_by(p->node, f->short_of) &&
			      node_pod_asks(m, p, f->short_of) > 0;
	ev->pod_ended.used = f->used;
	ev->pod_ended.exit_code = f->phase == POD_SUCCEEDED ? 0 : f->exit_code;
	if (refused || (f->phase == POD_FAILED && f->exit_code == 0 && f->fault != POD_FAULT_NONE))
		ev->pod_ended.exit_code = -1;
	ev->pod_ended.fault = f->phase == POD_SUCCEEDED ? POD_FAULT_NONE : f->fault;
	ev->pod_ended.message = *f->message ? f->message : f->reason;
	if (refused && *f->reason) { /* its word first: a held job names it */
		snprintf(text, POD_END_ROOM, "%s: %s", f->reason, f->message);
		ev->pod_ended.message = text;
	}
	/* Deleted from outside: that it failed is not the job's fault. */
	if (f->leaving && !pod_end_is_requested(p) && ev->pod_ended.fault == POD_FAULT_NONE &&
	    f->phase == POD_FAILED) {
		ev->pod_ended.fault = POD_FAULT_INFRA;
		ev->pod_ended.message = "its pod was deleted by another client";
	}
}

bool pod_end_is_root_refused(const struct pod_fact *f)
{
	return strstr(f->message, "runAsNonRoot") != NULL;
}

struct pod_fact pod_end_root_refused(const struct pod_fact *f, char text[POD_END_ROOM])
{
	struct pod_fact bad = *f;

	snprintf(text, POD_END_ROOM, "%.256s; " NOT_ROOT, f->message);
	bad.message = text;
	bad.phase = POD_FAILED;
	bad.fault = POD_FAULT_IMAGE;
	bad.exit_code = 1;
	return bad;
}

int64_t pod_end_not_before(const struct job *j, const struct event *ev, int64_t now)
{
	/* Refusals of kubelets: the first nodes are tried at once, the same ones less and less. Those
	 * that lack a resource are left out by the scheduler. */
	const struct rejected *r = j->life->rejected;
	const unsigned n = !r ? j->attempt : r->n_named ? r->n_named / REJECTED_MAX : r->n - 1;
	const unsigned most = r && r->n_named ? 2 : 6, shift = n < most ? n : most;
	const int64_t wait_us = GPUQ_US_PER_S << shift;

	/* Preempted for others, or left no room by a plugin: not the job's fault. */
	if (job_is_withdrawn(j) || (j->life->blocked && j->life->blocked->until_us > now) ||
	    j->queue->refused || job_cause_is_eviction(ev->requeued.cause))
		return 0;
	if (ev->requeued.cause != GPUQ_CAUSE_INFRA)
		return now + wait_us;
	if (r && r->n_named && n == 0)
		return 0;
	return j->attempt > 0 && j->life->placed_us + wait_us > now ? j->life->placed_us + wait_us
								    : 0;
}
