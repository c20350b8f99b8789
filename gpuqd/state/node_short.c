/* Resources that kubelets refuse although their nodes offer them. Declared in model.h.
 *
 * A refusal is believed of jobs that wait for a time that doubles from one to the next, until the node is
 * seen to be better: what it offers changes, or a pod starts there with which more is in use than the
 * kubelet said that there is. Jobs that run are not moved there before that. */
#include "gpuqd/state/model_int.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/state/takes.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/profile.h"
#include "libgpuq/spec/resource.h"

/* The names that are not among a node's countable resources. */
struct name {
	bool cpu, memory, slots, devices;
	const char *profile; /* NULL = not of MIG */
};

bool node_has_devices_by(const struct node *n, const char *resource)
{
	return n->fact.device && strcmp(n->fact.device, resource) == 0;
}

static struct name name_of(const struct node *n, const char *resource)
{
	const size_t n_mig = strlen(GPUQ_RESOURCE_MIG);

	return (struct name){ strcmp(resource, "cpu") == 0, strcmp(resource, "memory") == 0,
			      strcmp(resource, "pods") == 0, node_has_devices_by(n, resource),
			      strncmp(resource, GPUQ_RESOURCE_MIG, n_mig) == 0 ? resource + n_mig
									       : NULL };
}

/* Cores and memory are those that the cluster reported of the pod; devices those that it was given, however
 * they were requested; all else is what its request makes of it in its namespace. */
int64_t node_pod_asks(const struct model *m, const struct pod *p, const char *resource)
{
	struct gpuq_amount amounts[GPUQ_RESOURCES_MAX];
	const struct name is = name_of(p->node, resource);
	const struct request_group *g =
		p->job->request ? &p->job->request->spec.groups[p->group] : NULL;
	const char *has = g ? model_pod_mig(p) : NULL;

	if (!g)
		return 0;
	if (is.cpu)
		return p->cpu_milli;
	if (is.memory)
		return p->memory_bytes;
	if (is.slots)
		return 1;
	if (is.profile)
		return has && gpuq_profile_kin(has, is.profile) ? model_pod_instances(p) : 0;
	/* Beside whole devices instances have a name of their own. */
	if (is.devices && has && p->node->n_devices && model_offers_instances(p->node, has))
		return 0;
	if (is.devices) /* whole ones, a replica, or instances under their name */
		return p->n_devices ? p->n_devices : model_pod_instances(p);
	return gpuq_amounts_get(amounts, takes_amounts(m, p->job->queue, g, amounts), resource);
}

/* Return all that the node offers of it, or without what pods of others hold. */
static int64_t offered(const struct node *n, const char *resource, bool all)
{
	const struct name is = name_of(n, resource);
	int64_t sum = is.cpu      ? n->fact.cpu_milli - (all ? 0 : n->foreign_cpu_milli)
		      : is.memory ? n->fact.memory_bytes - (all ? 0 : n->foreign_memory_bytes)
		      : is.slots  ? n->fact.max_pods - (all ? 0 : n->foreign_pods)
				  : 0;

	for (size_t i = 0; is.profile && i < n->fact.n_mig; i++)
		if (gpuq_profile_is_resource(n->fact.mig[i].profile, is.profile))
			sum += (int64_t)n->fact.mig[i].count - (all ? 0 : n->foreign_mig[i]);
	for (size_t i = 0; i < n->fact.n_resources; i++)
		if (strcmp(n->fact.resources[i].name, resource) == 0)
			sum += n->fact.resources[i].count - (all ? 0 : n->foreign_amounts[i]);
	return sum;
}

/* Return what is left when our pods have theirs; started: those that have started alone. */
static int64_t left(const struct model *m, const struct node *n, const char *resource, bool started)
{
	int64_t free = offered(n, resource, false);
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && (p->start_us || !started))
			free -= node_pod_asks(m, p, resource);
	return free;
}

int64_t node_ledger_free(const struct model *m, const struct node *n, const char *resource)
{
	return left(m, n, resource, false);
}

bool node_offers(const struct node *n, const char *resource)
{
	return offered(n, resource, true) > 0;
}

const struct node_short *node_short_find(const struct node *n, const char *resource)
{
	for (size_t i = 0; i < NODE_SHORTS_MAX && n->shorts[i].resource; i++)
		if (strcmp(n->shorts[i].resource, resource) == 0)
			return &n->shorts[i];
	return NULL;
}

int64_t node_lacks(const struct node *n, const char *resource, int64_t now_us)
{
	const struct node_short *s = node_short_find(n, resource);

	return s && s->until_us > now_us ? s->lacks : 0;
}

uint32_t node_lacks_instances(const struct node *n, const char *profile, int64_t now_us)
{
	char name[GPUQ_RESOURCE_NAME_MAX + 1], resource[GPUQ_PROFILE_ROOM];
	int64_t lacks;

	if (!n->shorts[0].resource) /* the first is used first */
		return 0;
	/* Under the single strategy they have the name of whole devices. */
	if (n->n_devices == 0 && n->fact.device && *n->fact.device)
		return (uint32_t)node_lacks(n, n->fact.device, now_us);
	snprintf(name, sizeof(name), GPUQ_RESOURCE_MIG "%s",
		 gpuq_profile_resource(profile, resource));
	lacks = node_lacks(n, name, now_us);
	return lacks < UINT16_MAX ? (uint32_t)lacks : UINT16_MAX;
}

int64_t node_lacks_until(const struct node *n, int64_t now_us)
{
	int64_t first = GPUQ_UNLIMITED;

	for (size_t i = 0; i < NODE_SHORTS_MAX && n->shorts[i].resource; i++)
		if (n->shorts[i].until_us > now_us && n->shorts[i].until_us < first)
			first = n->shorts[i].until_us;
	return first;
}

/* The used ones stay the first, in order of their coming. */
static void drop(struct model *m, struct node *n, size_t at)
{
	memmove(&n->shorts[at], &n->shorts[at + 1],
		(NODE_SHORTS_MAX - 1 - at) * sizeof(n->shorts[0]));
	n->shorts[NODE_SHORTS_MAX - 1] = (struct node_short){ 0 };
	n->dirty = m->nodes_dirty = true;
	m->n_node_changes++;
}

int node_apply_short(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct node *n = model_find_node(m, ev->short_of.name);
	const char *resource = ev->short_of.resource;
	size_t at = 0;

	if (!n)
		return gpuq_fail(err, GPUQ_ENOENT, "no node %s", ev->short_of.name);
	while (at < NODE_SHORTS_MAX && n->shorts[at].resource &&
	       strcmp(n->shorts[at].resource, resource) != 0)
		at++;
	if (at == NODE_SHORTS_MAX)
		drop(m, n, 0);
	at -= at == NODE_SHORTS_MAX;
	n->shorts[at] = (struct node_short){ .resource = model_intern(m, resource),
					     .lacks = ev->short_of.lacks,
					     .until_us = ev->short_of.until_us,
					     .offered = offered(n, resource, true),
					     .times = ev->short_of.times };
	n->dirty = m->nodes_dirty = true;
	m->n_node_changes++;
	return 0;
}

void node_shorts_offered(struct model *m, struct node *n)
{
	for (size_t i = NODE_SHORTS_MAX; i-- > 0;)
		if (n->shorts[i].resource &&
		    offered(n, n->shorts[i].resource, true) != n->shorts[i].offered)
			drop(m, n, i);
}

void node_shorts_started(struct model *m, const struct pod *p)
{
	struct node *n = p->node;

	for (size_t i = NODE_SHORTS_MAX; i-- > 0;) {
		const struct node_short *s = &n->shorts[i];

		if (s->resource && node_pod_asks(m, p, s->resource) > 0 &&
		    (s->lacks == 0 || left(m, n, s->resource, true) < s->lacks))
			drop(m, n, i);
	}
}

/* True if pods of the group ask for it: as they are placed on that node. */
static bool group_asks(const struct node *n, const struct request_group *g, const char *resource)
{
	const struct name is = name_of(n, resource);

	return is.cpu || is.memory || is.slots ||
	       ((is.devices || is.profile) &&
		(g->gpus_milli > 0 || g->gpu_memory_bytes > 0 || g->mig)) ||
	       gpuq_amounts_get(g->resources, g->n_resources, resource) > 0;
}

bool node_short_concerns(const struct node *n, const struct node_short *s, const struct job *j)
{
	const struct request_spec *spec = j->request ? &j->request->spec : NULL;

	for (size_t i = 0; spec && i < spec->n_groups; i++)
		if (group_asks(n, &spec->groups[i], s->resource))
			return true;
	return false;
}

bool node_is_doubtful_for(const struct node *n, const struct job *j)
{
	for (size_t i = 0; i < NODE_SHORTS_MAX && n->shorts[i].resource; i++)
		if (node_short_concerns(n, &n->shorts[i], j))
			return true;
	return false;
}
