#include "gpuqd/flow/since.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/flow/journal.h"
#include "gpuqd/util/bits.h"
#include "libgpuq/grow.h"

void since_begin(struct since *s, const struct journal *j)
{
	*s = (struct since){ .j = j, .n_node_changes = journal_model(j)->n_node_changes };
}

/* Without memory everything counts as changed. */
static void early_job(struct since *s, struct job_key key)
{
	if (grow_to(&s->early_jobs, &s->room_early_jobs, s->n_early_jobs + 1))
		s->early_jobs[s->n_early_jobs++] = key;
	else
		s->all = true;
}

static void early_node(struct since *s, const char *name)
{
	char *copy = strdup(name);

	if (copy && grow_to(&s->early_nodes, &s->room_early_nodes, s->n_early_nodes + 1)) {
		s->early_nodes[s->n_early_nodes++] = copy;
	} else {
		free(copy);
		s->all = true;
	}
}

/* Note a changed job. An element that was part of its array's entry then has no entry of its own:
 * the model knows whether it is still pending (still_waits). */
static void job_changed(struct since *s, struct job_key key)
{
	uint32_t at;

	if (!s->sn) {
		early_job(s, key);
		return;
	}
	at = snapshot_find_job(s->sn, (struct snap_key){ key.id, key.index });
	if (at != SNAP_NONE)
		bits_add(s->jobs, at);
}

static void node_changed(struct since *s, const char *name)
{
	uint32_t at;

	if (!s->sn) {
		early_node(s, name);
		return;
	}
	at = snapshot_find_node(s->sn, name);
	if (at != SNAP_NONE)
		bits_add(s->nodes, at);
}

static void drop_early(struct since *s)
{
	for (size_t i = 0; i < s->n_early_nodes; i++)
		free(s->early_nodes[i]);
	free(s->early_nodes);
	free(s->early_jobs);
	s->early_nodes = NULL;
	s->early_jobs = NULL;
	s->n_early_jobs = s->n_early_nodes = 0;
	s->room_early_jobs = s->room_early_nodes = 0;
}

bool since_sealed(struct since *s, const struct snapshot *sn)
{
	s->jobs = calloc(bits_words(sn->n_jobs) + 1, sizeof(*s->jobs));
	s->nodes = calloc(bits_words(sn->n_nodes) + 1, sizeof(*s->nodes));
	if (!s->jobs || !s->nodes)
		return false;
	s->sn = sn;
	for (size_t i = 0; i < s->n_early_jobs; i++)
		job_changed(s, s->early_jobs[i]);
	for (size_t i = 0; i < s->n_early_nodes; i++)
		node_changed(s, s->early_nodes[i]);
	drop_early(s);
	return true;
}

void since_end(struct since *s)
{
	drop_early(s);
	free(s->jobs);
	free(s->nodes);
	*s = (struct since){ 0 };
}

/* Note a report of a node. Most repeat what is known. */
static void node_seen(struct since *s, const char *name)
{
	const uint64_t n = journal_model(s->j)->n_node_changes;

	if (s->n_node_changes != n)
		node_changed(s, name);
	s->n_node_changes = n;
}

/* Note a pod that takes more than was planned: less is free on its node. */
static void pod_grew(struct since *s, struct pod_key key)
{
	const struct pod *p = model_find_pod(journal_model(s->j), key);

	if (p)
		node_changed(s, p->node->name);
}

void since_note(struct since *s, const struct event *ev, bool own)
{
	if (!s->j || s->all)
		return;
	switch (ev->type) {
	case EV_JOB_NOMINATED:
	case EV_JOB_PLACED:
	case EV_JOB_EVICT_ASKED:
	case EV_JOB_SHRINK_ASKED:
	case EV_JOB_GROWN:
	case EV_JOB_RENOUNCED:
		if (!own)
			job_changed(s, ev->job);
		break;
	case EV_JOB_UPDATED:
	case EV_JOB_HELD:
	case EV_JOB_CANCEL_ASKED:
	case EV_JOB_REQUEUED:
	case EV_JOB_ENDED:
	case EV_JOB_BLOCKED:
		job_changed(s, ev->job);
		break;
	case EV_POD_ENDED:
	case EV_POD_GONE:
	case EV_POD_LEAVING:
	case EV_POD_DEVICES:
		job_changed(s, ev->pod.job);
		break;
	case EV_POD_AMOUNTS:
		pod_grew(s, ev->pod);
		break;
	case EV_NODE_SEEN:
		node_seen(s, ev->node->name);
		break;
	case EV_NODE_GONE:
		node_seen(s, ev->name);
		break;
	case EV_NODE_DRAIN:
		node_seen(s, ev->drain.name);
		break;
	case EV_NODE_FROZEN:
		node_changed(s, ev->drain.name);
		break;
	case EV_NODE_BACKOFF:
		node_changed(s, ev->backoff.name);
		break;
	case EV_NODE_SHORT:
		node_changed(s, ev->short_of.name);
		break;
	case EV_FOREIGN_SEEN:
		node_changed(s, ev->foreign->node);
		break;
	case EV_SITE_APPLIED:
	case EV_DEFAULT_RULED:
	case EV_QUEUE_REFUSED:
	case EV_FENCED:
	case EV_RECOVERY_BEGUN:
	case EV_RECOVERY_LISTED:
	case EV_RECOVERY_ENDED:
	case EV_JOB_RECOVERED:
	case EV_JOB_UNKNOWN:
		s->all = true;
		break;
	default:
		break; /* it only adds */
	}
}

/* True if an element is still in its array's entry; one that was split off since may be held, for
 * example. */
static bool still_waits(const struct since *s, const struct plan_action *a)
{
	const struct snap_key own = s->sn->jobs[a->job].key;
	const struct model *m = journal_model(s->j);
	const struct job *j;

	if (own.index >= 0 || a->key.index < 0)
		return true;
	if (model_find_job(m, (struct job_key){ a->key.id, a->key.index }))
		return false;
	j = model_find_job(m, (struct job_key){ a->key.id, -1 });
	return j && j->array && model_element_waits(j->array, a->key.index);
}

/* True if it runs. It may have been placed by the same plan, or not after all. */
static bool runs(const struct since *s, const struct plan_action *a)
{
	const struct job *j =
		model_find_job(journal_model(s->j), (struct job_key){ a->key.id, a->key.index });

	return j && model_job_is_live(j) && !j->life->leave_us;
}

static bool nodes_stand(const struct since *s, const struct plan *p, const struct plan_action *a)
{
	for (uint32_t i = 0; i < a->n_pods; i++)
		if (bits_has(s->nodes, p->pods[a->pod_first + i].node))
			return false;
	return true;
}

bool since_stands(const struct since *s, const struct plan *p, const struct plan_action *a)
{
	if (s->all || bits_has(s->jobs, a->job))
		return false;
	switch (a->kind) {
	case PLAN_PLACE:
	case PLAN_NOMINATE:
		return still_waits(s, a) && nodes_stand(s, p, a);
	case PLAN_GROW:
		return runs(s, a) && nodes_stand(s, p, a);
	case PLAN_MOVE:
		return nodes_stand(s, p, a);
	default:
		return true;
	}
}
