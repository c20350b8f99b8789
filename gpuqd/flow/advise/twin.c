#include "gpuqd/flow/advise/twin.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/load.h"
#include "gpuqd/store/store.h"
#include "libgpuq/arena.h"
#include "gpuqd/state/record/model_apply.h"

struct twin {
	struct gpuq_arena mem;
	struct store *st;
	struct policy policy;
	bool has_besides;
	int64_t at_us;
	struct event *facts; /* that the store does not hold */
	size_t n_facts;
	struct node_fact *parts; /* likewise: how nodes' devices are partitioned and linked */
	struct node_fact *told; /* of the same nodes: as the cluster reported it */
	size_t n_parts;
	struct objects *objects; /* of the cluster; copied */
	bool failed; /* out of memory */
};

static const void *copy(struct twin *t, const void *bytes, size_t n)
{
	void *to = bytes ? gpuq_arena_alloc(&t->mem, n + 1) : NULL;

	t->failed |= bytes && !to;
	if (to)
		memcpy(to, bytes, n);
	return to;
}

/* Copy amounts with their names. */
static const struct gpuq_amount *copy_amounts(struct twin *t, const struct gpuq_amount *items,
					      size_t n)
{
	struct gpuq_amount *to = gpuq_arena_calloc(&t->mem, n + 1, sizeof(*to));

	t->failed |= !to;
	for (size_t i = 0; to && i < n; i++) {
		to[i] = (struct gpuq_amount){ gpuq_arena_strdup(&t->mem, items[i].name),
					      items[i].count };
		t->failed |= !to[i].name;
	}
	return to;
}

static void take_foreign(struct twin *t, const struct foreign *f)
{
	struct pod_fact *fact = gpuq_arena_calloc(&t->mem, 1, sizeof(*fact));
	struct event *ev = &t->facts[t->n_facts++];

	t->failed |= !fact;
	if (!fact)
		return;
	fact->uid = gpuq_arena_strdup(&t->mem, f->uid);
	fact->node = gpuq_arena_strdup(&t->mem, f->node);
	fact->name = fact->namespace_ = fact->token = fact->reason = fact->message = "";
	fact->phase = POD_RUNNING;
	fact->cpu_milli = f->cpu_milli;
	fact->memory_bytes = f->memory_bytes;
	fact->gpus_milli = f->gpus_milli;
	fact->mig = copy(t, f->mig, f->n_mig * sizeof(*f->mig)); /* interned words stay */
	fact->n_mig = f->n_mig;
	fact->resources = copy_amounts(t, f->resources, f->n_resources);
	fact->n_resources = f->n_resources;
	if (f->n_devices) {
		int devices[FOREIGN_DEVICES_MAX];

		for (uint32_t i = 0; i < f->n_devices; i++)
			devices[i] = f->devices[i];
		fact->devices = copy(t, devices, f->n_devices * sizeof(devices[0]));
		fact->n_devices = f->n_devices;
		fact->token = f->n_devices > 1 ? "ours" : "";
	}
	t->failed |= !fact->uid || !fact->node;
	ev->type = EV_FOREIGN_SEEN;
	ev->foreign = fact;
}

static void take_node(struct twin *t, const struct node *n)
{
	struct event *ev = &t->facts[t->n_facts++];

	ev->type = EV_NODE_BACKOFF;
	ev->backoff.name = gpuq_arena_strdup(&t->mem, n->name);
	ev->backoff.until_us = n->backoff_until_us;
	ev->backoff.suspect = n->suspect;
	t->failed |= !ev->backoff.name;
}

/* Take the resources that a node lacks. */
static void take_shorts(struct twin *t, const struct node *n)
{
	for (size_t i = 0; i < NODE_SHORTS_MAX; i++) {
		const struct node_short *s = &n->shorts[i];
		struct event *ev;

		if (!s->resource)
			continue;
		ev = &t->facts[t->n_facts++];
		ev->type = EV_NODE_SHORT;
		ev->short_of.name = gpuq_arena_strdup(&t->mem, n->name);
		ev->short_of.resource = s->resource; /* interned words stay */
		ev->short_of.lacks = s->lacks;
		ev->short_of.until_us = s->until_us;
		ev->short_of.times = s->times;
		t->failed |= !ev->short_of.name;
	}
}

static struct gpuq_strmap copy_labels(struct twin *t, const struct gpuq_strmap *labels)
{
	struct gpuq_strmap to = { .n = labels->n };

	to.keys = gpuq_arena_calloc(&t->mem, labels->n + 1, sizeof(*to.keys));
	to.vals = gpuq_arena_calloc(&t->mem, labels->n + 1, sizeof(*to.vals));
	if (!to.keys || !to.vals) {
		t->failed = true;
		return (struct gpuq_strmap){ 0 };
	}
	for (size_t i = 0; i < labels->n; i++) {
		to.keys[i] = gpuq_arena_strdup(&t->mem, labels->keys[i]);
		to.vals[i] = gpuq_arena_strdup(&t->mem, labels->vals[i]);
		t->failed |= !to.keys[i] || !to.vals[i];
	}
	return to;
}

/* Take what the cluster reported of the node, from which a changed site settles anew what it offers. */
static void take_told(struct twin *t, const struct node *n, struct node_fact *out)
{
	const struct node_fact *told = &n->told;

	*out = (struct node_fact){
		.labels = copy_labels(t, &told->labels),
		.devices = copy(t, told->devices, told->n_devices * sizeof(*told->devices)),
		.n_devices = told->n_devices,
		.device = told->device, /* interned words stay */
		.replicas = told->replicas,
		.links = copy(t, told->links, told->n_devices * told->n_devices),
		.numa = copy(t, told->numa, told->n_devices),
		.mig = copy(t, told->mig, told->n_mig * sizeof(*told->mig)),
		.n_mig = told->n_mig,
		.resources = copy_amounts(t, told->resources, told->n_resources),
		.n_resources = told->n_resources,
	};
}

static void take_parts(struct twin *t, const struct node *n)
{
	struct node_fact *f = &t->parts[t->n_parts++];

	take_told(t, n, &t->told[t->n_parts - 1]);
	f->name = gpuq_arena_strdup(&t->mem, n->name);
	t->failed |= !f->name;
	f->n_devices = n->n_devices;
	f->device = n->fact.device; /* interned words stay */
	f->replicas = n->fact.replicas;
	f->slots = n->fact.slots;
	f->links = copy(t, n->fact.links, (size_t)n->n_devices * n->n_devices);
	f->numa = copy(t, n->fact.numa, n->n_devices);
	f->mig = copy(t, n->fact.mig, n->fact.n_mig * sizeof(*n->fact.mig));
	f->n_mig = n->fact.n_mig;
	f->resources = copy_amounts(t, n->fact.resources, n->fact.n_resources);
	f->n_resources = n->fact.n_resources;
}

int twin_new(const struct journal *j, struct twin **out, struct gpuq_err *err)
{
	const struct model *m = journal_model(j);
	const size_t room =
		HASH_COUNT(m->foreigns) + (size_t)HASH_COUNT(m->nodes) * (1 + NODE_SHORTS_MAX) + 1;
	struct twin *t = calloc(1, sizeof(*t));

	if (t) {
		t->facts = gpuq_arena_calloc(&t->mem, room, sizeof(*t->facts));
		t->parts = gpuq_arena_calloc(&t->mem, HASH_COUNT(m->nodes) + 1, sizeof(*t->parts));
		t->told = gpuq_arena_calloc(&t->mem, HASH_COUNT(m->nodes) + 1, sizeof(*t->told));
	}
	if (!t || !t->facts || !t->parts || !t->told) {
		twin_free(t);
		return gpuq_no_memory(err);
	}
	t->st = journal_store(j);
	t->policy = m->policy;
	t->has_besides = m->has_besides;
	t->objects = objects_copy(m->objects);
	t->failed |= !t->objects;
	t->at_us = loop_now_us(journal_loop(j));
	for (const struct foreign *f = m->foreigns; f; f = f->hh.next)
		take_foreign(t, f);
	node_each(m, n) {
		if (n->backoff_until_us || n->suspect)
			take_node(t, n);
		if (n->shorts[0].resource)
			take_shorts(t, n);
		if (n->fact.n_mig || n->told.n_resources || n->fact.links || n->fact.numa ||
		    n->fact.replicas > 1 || n->told.replicas > 1 || n->told.n_mig)
			take_parts(t, n);
	}
	if (t->failed) {
		twin_free(t);
		return gpuq_no_memory(err);
	}
	*out = t;
	return 0;
}

void twin_free(struct twin *t)
{
	if (!t)
		return;
	objects_free(t->objects);
	gpuq_arena_done(&t->mem);
	free(t);
}

int twin_load(struct twin *t, struct model **out, struct gpuq_err *err)
{
	struct model *m = model_new("00000000");
	struct objects *objects;
	int rc;

	if (!m)
		return gpuq_no_memory(err);
	model_set_policy(m, &t->policy);
	rc = load_records(t->st, m, err);
	if (rc < 0) {
		model_free(m);
		return rc;
	}
	model_set_besides(m, t->has_besides);
	objects = objects_copy(t->objects);
	if (!objects) {
		model_free(m);
		return gpuq_no_memory(err);
	}
	model_set_objects(m, objects);
	for (size_t i = 0; i < t->n_parts; i++) {
		struct node *n = model_find_node(m, t->parts[i].name);

		if (n)
			node_set_parts(m, n, &t->parts[i], &t->told[i]);
	}
	for (size_t i = 0; i < t->n_facts; i++) {
		t->facts[i].at_us = t->at_us;
		model_apply(m, &t->facts[i], NULL);
	}
	*out = m;
	return 0;
}
