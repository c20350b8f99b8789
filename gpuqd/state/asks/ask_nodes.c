#include "gpuqd/state/asks/ask_nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/site.h"
#include "gpuqd/state/asks/ask_end.h"
#include "gpuqd/state/asks/ask_int.h"
#include "gpuqd/state/asks/ask_store.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/notify.h"

const struct ask *ask_of_node(const struct model *m, const char *node, bool *stale)
{
	for (const struct ask *a = m->asks; a; a = a->hh.next)
		for (uint32_t i = 0; i < a->n_came; i++)
			if (strcmp(a->nodes[i].name, node) == 0) {
				*stale = a->nodes[i].stale;
				return a;
			}
	return NULL;
}

uint32_t ask_lacks(const struct ask *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n_came; i++)
		n += !a->nodes[i].stale;
	return a->state == ASK_STATE_SERVED || a->state == ASK_STATE_ENDED || n >= a->n_nodes
		       ? 0
		       : a->n_nodes - n;
}

bool ask_node_boots(const struct node *n)
{
	static const char *const own[] = { "node.kubernetes.io/",
					   "node.cloudprovider.kubernetes.io/",
					   "karpenter.sh/unregistered",
					   "startup-taint.cluster-autoscaler.kubernetes.io/" };

	for (size_t i = 0; i < n->fact.n_taints; i++)
		for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
			if (strncmp(n->fact.taints[i].key, own[k], strlen(own[k])) == 0)
				return true;
	return n->gone || !n->fact.ready || n->n_devices == 0;
}

bool ask_node_differs(const struct node *n, const struct provision_machine *m, char *out,
		      size_t room)
{
	if (ask_node_boots(n))
		return false;
	if (n->n_devices < m->gpus) {
		snprintf(out, room, "node %s came with %" PRIu32 " devices, not %" PRId64, n->name,
			 n->n_devices, m->gpus);
		return true;
	}
	if (m->product && strcmp(n->devices[0].product, m->product) != 0) {
		snprintf(out, room, "node %s came with %s, not %s", n->name,
			 *n->devices[0].product ? n->devices[0].product : "an unknown product",
			 m->product);
		return true;
	}
	for (size_t i = 0; i < m->labels.n; i++) {
		const char *v = gpuq_strmap_get(&n->fact.labels, m->labels.keys[i]);

		if (v && strcmp(v, m->labels.vals[i]) == 0)
			continue;
		snprintf(out, room, "node %s came %s%s, not with the label %s=%s", n->name,
			 v ? "with " : "without ", v ? v : m->labels.keys[i], m->labels.keys[i],
			 m->labels.vals[i]);
		return true;
	}
	return false;
}

bool ask_node_is_awaited(const struct node *n, const struct provision_machine *machine)
{
	char how[200];

	return ask_node_boots(n) || (machine && ask_node_differs(n, machine, how, sizeof(how)));
}

uint32_t ask_boots(const struct model *m, const struct ask *a)
{
	const struct site_pool *pool = site_pool_growing(m->site, a->pool);
	const struct provision_machine *machine = pool ? pool->provisioning->machine : NULL;
	uint32_t n_boots = 0;

	for (uint32_t i = 0; i < a->n_came && a->state < ASK_STATE_SERVED; i++) {
		const struct node *n = model_find_node(m, a->nodes[i].name);

		n_boots += !a->nodes[i].stale && (!n || ask_node_is_awaited(n, machine));
	}
	return n_boots;
}

enum gpuq_node_state ask_node_state(const struct model *m, const struct node *n,
				    enum gpuq_node_state state)
{
	bool stale = false;
	const struct ask *a = m->asks && !n->gone ? ask_of_node(m, n->name, &stale) : NULL;

	if (!a)
		return state;
	return stale                         ? GPUQ_NODE_LEAVING
	       : a->state < ASK_STATE_SERVED ? GPUQ_NODE_PROVISIONING
					     : state;
}

bool ask_node_is_kept(const struct model *m, const struct node *n)
{
	bool stale = false;
	const struct ask *a = n->asked ? ask_of_node(m, n->name, &stale) : NULL;

	return a && !stale && !a->used && a->state != ASK_STATE_ENDED;
}

bool ask_is_open(const struct model *m, const struct ask *a, int64_t booking_us, int64_t now_us)
{
	if (a->state == ASK_STATE_ENDED)
		return true; /* a node that came after all is an ordinary one */
	if (a->state != ASK_STATE_SERVED)
		return false;
	if (ask_stands(a))
		return true;
	return a->used || (m->asks_known == ASKS_KNOWN && now_us < a->provisioned_us + booking_us);
}

bool ask_has_pods(const struct model *m, const struct ask *a)
{
	for (uint32_t i = 0; i < a->n_came; i++) {
		const struct node *n = model_find_node(m, a->nodes[i].name);
		const struct pod *p;

		if (n)
			DL_FOREACH2(n->pods, p, node_next)
				if (model_pod_takes(p))
					return true;
	}
	return false;
}

bool ask_was_taken(const struct model *m, const struct ask *a)
{
	for (uint32_t i = 0; i < a->n_came; i++) {
		const struct node *n = model_find_node(m, a->nodes[i].name);
		const struct pod *p;

		if (n)
			DL_FOREACH2(n->pods, p, node_next)
				if (p->state != GPUQ_POD_PLANNED)
					return true;
	}
	return false;
}

bool ask_keeps_back(const struct model *m, const struct node *n)
{
	bool stale = false;
	const struct ask *a =
		m->asks_known == ASKS_UNKNOWN && m->asks ? ask_of_node(m, n->name, &stale) : NULL;

	return a && !stale && !ask_stands(a) && a->state != ASK_STATE_ENDED;
}

/* Note that it is served, once all its nodes are there and ready. */
void ask_serve(struct model *m, struct ask *a)
{
	const bool given =
		ask_stands(a) ? a->state < ASK_STATE_SERVED : a->state == ASK_STATE_PROVISIONED;

	if (!given || ask_lacks(a) || ask_boots(m, a))
		return;
	a->state = ASK_STATE_SERVED;
	notify_provision(m, a->owner, false);
	ask_pool_waited(m, a);
	ask_put_changed(m, a);
}

bool ask_lingers(const struct ask *a)
{
	bool stale = false;

	for (uint32_t i = 0; i < a->n_came; i++)
		stale |= a->nodes[i].stale;
	return stale || (a->provisioned_us && !a->used && a->n_seen < a->n_nodes);
}

void ask_mark_stale(struct ask *a)
{
	if (ask_stands(a)) { /* they are the autoscaler's, whoever uses them */
		a->n_came = 0;
		return;
	}
	for (uint32_t i = 0; i < a->n_came; i++)
		a->nodes[i].stale = true;
}

/* True if the node has the labels by which nodes of the request are known. */
static bool has_labels(const struct node *n, const struct ask *a)
{
	for (size_t i = 0; i < a->labels.n; i++) {
		const char *v = gpuq_strmap_get(&n->fact.labels, a->labels.keys[i]);

		if (!v || strcmp(v, a->labels.vals[i]) != 0)
			return false;
	}
	return true;
}

/* Return the oldest ask that the node can have come for; late: of those that are not waiting for it any more. */
static struct ask *wants(const struct model *m, const struct node *n, bool late)
{
	for (struct ask *a = m->asks; a; a = a->hh.next)
		if (a->state != ASK_STATE_SERVED && (a->state >= ASK_STATE_PAUSED) == late &&
		    !(late && ask_stands(a)) && strcmp(a->pool, n->pool) == 0 &&
		    n->first_us >= a->since_us && has_labels(n, a) &&
		    (late ? a->n_seen < a->n_nodes && !a->used : ask_lacks(a) > 0))
			return a;
	return NULL;
}

void ask_node_seen(struct model *m, const struct node *n)
{
	struct ask *a, *next;
	bool stale;

	if (!m->asks || n->gone)
		return;
	if (ask_of_node(m, n->name, &stale)) {
		HASH_ITER(hh, m->asks, a, next) {
			ask_set_ends(m, a);
			ask_serve(m, a);
		}
		return;
	}
	if (n->pods)
		return;
	a = wants(m, n, false);
	stale = !a;
	a = a ? a : wants(m, n, true);
	if (!a)
		return;
	a->nodes = ask_must(realloc(a->nodes, (a->n_came + 1) * sizeof(*a->nodes)));
	a->nodes[a->n_came++] = (struct ask_node){ n->name, stale };
	a->n_seen++;
	ask_set_ends(m, a);
	ask_put_changed(m, a);
	ask_serve(m, a);
}

void ask_node_gone(struct model *m, const char *name)
{
	struct ask *a, *next;

	HASH_ITER(hh, m->asks, a, next)
		for (uint32_t i = 0; i < a->n_came; i++)
			if (strcmp(a->nodes[i].name, name) == 0) {
				memmove(&a->nodes[i], &a->nodes[i + 1],
					(--a->n_came - i) * sizeof(*a->nodes));
				if (a->state == ASK_STATE_ENDED && a->cleared && !ask_lingers(a))
					ask_forget(m, a);
				else
					ask_put_changed(m, a);
				return;
			}
}

void ask_node_used(struct model *m, const char *name)
{
	bool stale;
	struct ask *a = m->asks ? (struct ask *)(uintptr_t)ask_of_node(m, name, &stale) : NULL;

	if (!a || stale || a->used)
		return;
	a->used = true;
	ask_put(m, a);
}
