#include "gpuqd/state/cuts/cut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/layouts.h"
#include "gpuqd/state/model.h"
#include "libgpuq/spec/resource.h"

const char *const cut_state_words[N_CUT_STATES] = {
#define X(sym, word, doc) word,
	CUT_STATES(X)
#undef X
};

bool cut_is_under_way(const struct node *n)
{
	return n->cut && n->cut->state <= CUT_BACK;
}

/* True if what the node offers is of that layout. */
static bool offers(const struct node *n, const char *profile)
{
	if (!*profile)
		return n->n_devices > 0 && n->fact.n_mig == 0;
	for (size_t i = 0; i < n->fact.n_mig; i++)
		if (n->fact.mig[i].count > 0 && gpuq_profile_kin(n->fact.mig[i].profile, profile))
			return true;
	return false;
}

bool cut_is_there(const struct node *n, const char *layout)
{
	const char *profile = layouts_profile(layout);

	return profile && strcmp(gpuq_strmap_text(&n->fact.labels, CUT_LABEL), layout) == 0 &&
	       strcmp(gpuq_strmap_text(&n->fact.labels, CUT_LABEL_STATE), CUT_SUCCESS) == 0 &&
	       offers(n, profile);
}

bool cut_node_is_idle(const struct node *n)
{
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p))
			return false;
	for (uint32_t i = 0; i < n->n_devices; i++)
		if (n->foreign_on[i].milli)
			return false;
	for (size_t i = 0; i < n->fact.n_mig; i++)
		if (n->foreign_mig[i])
			return false;
	return n->foreign_gpus_milli == 0;
}

bool cut_note(const struct node *n, char *out, size_t room)
{
	const struct node_cut *c = n->cut;

	if (!c || c->state == CUT_DONE)
		return false;
	snprintf(out, room, "MIG layout %s %s%s%.200s", c->layout,
		 c->state == CUT_SET    ? "is being set"
		 : c->state == CUT_BACK ? "failed, the one before is being restored"
					: "failed",
		 *c->message ? ": " : "", c->message);
	return true;
}

int cut_apply(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct node *n = model_find_node(m, ev->cut.name);
	const bool begins = ev->cut.state == CUT_SET;

	if (!n)
		return gpuq_fail(err, GPUQ_ENOENT, "no node is named %s", ev->cut.name);
	if (begins && (cut_is_under_way(n) || !cut_node_is_idle(n)))
		return gpuq_fail(err, GPUQ_EINVAL, "node %s is in use", n->name);
	if (!begins && !cut_is_under_way(n))
		return gpuq_fail(err, GPUQ_EINVAL, "node %s is not being cut", n->name);
	if (!n->cut)
		n->cut = calloc(1, sizeof(*n->cut));
	if (!n->cut)
		abort();
	n->cut->state = (enum cut_state)ev->cut.state;
	n->cut->since_us = ev->at_us;
	n->cut->message = model_intern(m, ev->cut.message ? ev->cut.message : "");
	if (begins) {
		n->cut->layout = model_intern(m, ev->cut.layout);
		n->cut->before = model_intern(m, ev->cut.before);
		n->cut->at_us = ev->at_us;
		n->cut->cards = ev->cut.cards;
		n->cut->job = ev->job;
	}
	n->dirty = m->nodes_dirty = true;
	m->n_node_changes++;
	return 0;
}
