#include "gpuqd/state/asks/ask_end.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/site/site.h"
#include "libgpuq/units.h"

/* Note when the nodes of an attempt are taken away: that is counted from when they were made, which is not
 * known, but not after they were given or seen. */
void ask_set_ends(struct model *m, const struct ask *a)
{
	for (uint32_t i = 0; i < a->n_came; i++) {
		struct node *n = (struct node *)(uintptr_t)model_find_node(m, a->nodes[i].name);
		const int64_t seen_us = n ? n->first_us : 0;

		if (!n || (a->nodes[i].stale && !a->used))
			continue;
		n->asked = true;
		if (a->given_us && a->provisioned_us)
			n->ends_us = a->given_us + (seen_us && seen_us < a->provisioned_us
							    ? seen_us
							    : a->provisioned_us);
	}
}

static int64_t job_ends_us(const struct job *j)
{
	int64_t ends_us = GPUQ_UNLIMITED;
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && model_pod_takes(p) && p->node->ends_us &&
		    (ends_us == GPUQ_UNLIMITED || p->node->ends_us < ends_us))
			ends_us = p->node->ends_us;
	return ends_us;
}

int64_t ask_end_signal_us(const struct model *m, const struct job *j)
{
	const int64_t ends_us = job_ends_us(j), grace_us = job_evicted_us(m, j);

	if (ends_us == GPUQ_UNLIMITED)
		return ends_us;
	return ends_us - (grace_us > ASK_END_LEAST_US ? grace_us : ASK_END_LEAST_US);
}

bool ask_end_due(const struct model *m, const struct job *j, int64_t now_us, struct event *ev,
		 char *why, size_t room)
{
	const int64_t at_us = ask_end_signal_us(m, j), ends_us = job_ends_us(j);
	char left[32];

	if (at_us == GPUQ_UNLIMITED || now_us < at_us)
		return false;
	gpuq_duration_print(ends_us > now_us ? ends_us - now_us : 0, left, sizeof(left));
	snprintf(why, room, "its nodes were requested for a time, and are taken away in %s", left);
	ev->evict.cause = j->life->start_us && j->time_limit_us != GPUQ_UNLIMITED &&
					  j->life->start_us + j->time_limit_us <=
						  ends_us + PROVISION_RUN_MARGIN_US
				  ? GPUQ_CAUSE_LIMIT
				  : GPUQ_CAUSE_DRAIN;
	ev->evict.rule = RULE_NODE_ENDS;
	ev->evict.why = why;
	return true;
}

static bool is_spot(const struct model *m, const struct node *n)
{
	site_each(site_pool, m->site->pools, p)
		if (strcmp(p->name, n->pool) == 0)
			return p->spot;
	return false;
}

bool ask_node_taken(const struct model *m, const struct job *j, struct event *ev, char *why,
		    size_t room)
{
	const struct node *node = NULL;
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && model_pod_takes(p) && p->node->taken &&
		    (!node || !is_spot(m, node)))
			node = p->node;
	if (!node || j->life->leave_us)
		return false;
	snprintf(why, room, "the cloud takes node %s away", node->name);
	ev->evict.cause = GPUQ_CAUSE_DRAIN;
	ev->evict.rule = is_spot(m, node) ? RULE_SPOT : RULE_NODE_ENDS;
	ev->evict.why = why;
	return true;
}

bool ask_spot_lost(const struct model *m, const struct job *j)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && is_spot(m, p->node))
			return true;
	return false;
}

bool ask_job_is_spared(const struct model *m, const struct job *j)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next) {
		const struct site_pool *pool = p->node->asked && model_pod_takes(p)
						       ? site_pool_growing(m->site, p->node->pool)
						       : NULL;

		if (pool && site_pool_requests(pool) && !site_pool_evictable(pool))
			return true;
	}
	return false;
}
