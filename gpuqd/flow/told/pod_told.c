#include "gpuqd/flow/told/pod_told.h"

#include <stdio.h>

#include "gpuqd/state/asks/ask_end.h"
#include "gpuqd/state/model.h"

bool pod_told_devices(const struct pod *p, const struct pod_fact *f, struct event *ev, bool *same)
{
	*same = f->n_devices == p->n_devices;
	for (size_t i = 0; i < f->n_devices && *same; i++)
		*same = f->devices[i] == p->devices[i];
	/* Its annotations still have the plan where a report has corrected it. */
	if (f->n_devices == 0 || p->n_devices == 0 ||
	    (!f->devices_told && p->devices_from != DEVICES_PLANNED) ||
	    (*same && (!f->devices_told || model_pod_devices_known(p))))
		return false;
	ev->type = EV_POD_DEVICES;
	ev->devices.items = f->devices;
	ev->devices.n = f->n_devices;
	return true;
}

bool pod_told_amounts(const struct model *m, const struct pod *p, const struct pod_fact *f,
		      struct event *ev)
{
	if (!pod_amounts_differ(m, p, f->cpu_milli, f->memory_bytes))
		return false;
	ev->type = EV_POD_AMOUNTS;
	ev->amounts.cpu_milli = f->cpu_milli;
	ev->amounts.memory_bytes = f->memory_bytes;
	return true;
}

bool pod_told_disruption(const struct model *m, const struct pod *p, const struct pod_fact *f,
			 struct event *ev, char *why, size_t room)
{
	const struct job *j = p->job;

	/* Pods that were not submitted are their owner's to repeat. */
	if (!f->disrupted || p->attempt != j->attempt || p->dropped || !model_job_is_live(j) ||
	    model_job_is_over(j) || model_pod_origin(m, p))
		return false;
	snprintf(why, room, "the cluster is about to end a pod on node %s: %.200s", p->node->name,
		 f->disrupted);
	ev->type = EV_JOB_EVICT_ASKED;
	ev->job = j->key;
	ev->evict.cause = GPUQ_CAUSE_DRAIN;
	ev->evict.by = "";
	ev->evict.rule = ask_spot_lost(m, j) ? RULE_SPOT : RULE_POD_LOST;
	ev->evict.why = why;
	ev->evict.grace_us = -1;
	return true;
}

const char *pod_told_reason(const struct job *j)
{
	static const char *const words[N_GPUQ_CAUSES] = {
		[GPUQ_CAUSE_RECLAIM] = "PREEMPTION",     [GPUQ_CAUSE_PREEMPT] = "PREEMPTION",
		[GPUQ_CAUSE_YIELD] = "PREEMPTION",       [GPUQ_CAUSE_LIMIT] = "TIME LIMIT",
		[GPUQ_CAUSE_REQUEUE] = "JOB REQUEUE",    [GPUQ_CAUSE_INFRA] = "NODE FAILURE",
		[GPUQ_CAUSE_CONSOLIDATE] = "PREEMPTION",
	};

	const char *word = words[j->life->leave_cause];

	if (!word && (j->cancel_asked || j->life->leave_cause != GPUQ_CAUSE_NONE))
		return "";
	return word;
}
