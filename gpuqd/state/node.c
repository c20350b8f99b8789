#include "gpuqd/state/model_int.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/cuts/cut.h"
#include "gpuqd/state/cuts/foreign_part.h"
#include "gpuqd/devices/backend.h"
#include "gpuqd/site/health.h"
#include "gpuqd/site/inventory.h"
#include "libgpuq/spec/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes as the cluster reports them, and what foreign pods hold there. A fact is copied whole, and
 * only if it differs: lists of all nodes come again and again. A node that is gone stays while
 * pods of gpuq are not known to be gone. */

/* Copy a string into the arena of the node's fact; NULL becomes an empty string. */
static char *adup(struct node *n, const char *s)
{
	char *p = gpuq_arena_strdup(&n->arena, s ? s : "");

	if (!p)
		abort();
	return p;
}

struct node *node_get(struct model *m, const char *cluster, const char *name)
{
	struct node *n = model_find_node(m, name);

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		abort();
	n->name = model_intern(m, name);
	n->cluster = model_intern(m, cluster);
	n->flavor = "default";
	n->pool = "default";
	n->kind = "";
	n->drain_why = n->drain_by = n->frozen_why = "";
	HASH_ADD_KEYPTR(hh, m->nodes, n->name, strlen(n->name), n);
	return n;
}

void node_free(struct model *m, struct node *n)
{
	m->n_node_changes++;
	HASH_DEL(m->nodes, n);
	gpuq_arena_done(&n->arena);
	free(n->devices);
	free(n->cut);
	free(n->strangers);
	free(n);
}

/* A node that is gone is kept as long as a pod may still run there: its devices are not free for
 * certain before that. */
void node_drop_if_empty(struct model *m, struct node *n)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct pod *p;

	if (!n->gone)
		return;
	DL_FOREACH2(n->pods, p, node_next)
		if (p->state < GPUQ_POD_GONE)
			return;
	if (n->pods)
		return; /* pods of jobs still to be read name it */
	change_batch_put(&m->direct, TABLE_NODE, key, change_key_node(key, n->cluster, n->name),
			 NULL, 0);
	node_free(m, n);
}

bool node_labels_same(const struct gpuq_strmap *a, const struct gpuq_strmap *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->keys[i], b->keys[i]) != 0 || strcmp(a->vals[i], b->vals[i]) != 0)
			return false;
	return true;
}

/* True if both are the same bytes, or both are absent. */
static bool bytes_same(const uint8_t *a, const uint8_t *b, size_t n)
{
	return a && b ? memcmp(a, b, n) == 0 : !a && !b;
}

/* True if the cluster reports what the model has already. Nodes are reported again and again: only a real
 * change is stored and rebuilt. */
static bool fact_same(const struct node *n, const struct node_fact *f)
{
	const struct node_fact *o = &n->fact, *told = &n->told;

	/* Devices that are kept for pods go when those have ended. */
	if (n->gone || n->n_offered < n->n_devices || o->cpu_milli != f->cpu_milli ||
	    o->memory_bytes != f->memory_bytes || o->max_pods != f->max_pods ||
	    o->ready != f->ready || o->unschedulable != f->unschedulable ||
	    o->n_taints != f->n_taints || told->n_devices != f->n_devices ||
	    told->replicas != f->replicas || o->slots != f->slots ||
	    strcmp(told->device ? told->device : "", f->device ? f->device : "") ||
	    strcmp(o->note ? o->note : "", f->note ? f->note : "") ||
	    strcmp(told->unused ? told->unused : "", f->unused ? f->unused : "") ||
	    !node_labels_same(&told->labels, &f->labels) ||
	    !gpuq_amounts_same(told->resources, told->n_resources, f->resources, f->n_resources))
		return false;
	if (o->n_conditions != f->n_conditions)
		return false;
	for (size_t i = 0; i < f->n_conditions; i++)
		if (strcmp(o->conditions[i].type, f->conditions[i].type) != 0 ||
		    o->conditions[i].on != f->conditions[i].on)
			return false;
	for (size_t i = 0; i < f->n_taints; i++)
		if (strcmp(o->taints[i].key, f->taints[i].key) ||
		    strcmp(o->taints[i].value, f->taints[i].value) ||
		    strcmp(o->taints[i].effect, f->taints[i].effect))
			return false;
	if (told->n_mig != f->n_mig ||
	    !bytes_same(told->links, f->links, f->n_devices * f->n_devices) ||
	    !bytes_same(told->numa, f->numa, f->n_devices))
		return false;
	for (size_t i = 0; i < f->n_mig; i++)
		if (told->mig[i].count != f->mig[i].count ||
		    strcmp(told->mig[i].profile, f->mig[i].profile) != 0)
			return false;
	for (size_t i = 0; i < f->n_devices; i++)
		if (told->devices[i].healthy != f->devices[i].healthy ||
		    told->devices[i].memory_mib != f->devices[i].memory_mib ||
		    strcmp(told->devices[i].uuid, f->devices[i].uuid) ||
		    strcmp(told->devices[i].product, f->devices[i].product))
			return false;
	return true;
}

/* Return the product of a node's cards: of cards that are cut into instances, that of its label without the
 * instances' profile. */
static const char *card_product(const struct node *n, char *out, size_t room)
{
	const char *label = gpuq_strmap_text(&n->fact.labels, "nvidia.com/gpu.product");
	const char *cut = strstr(label, "-MIG-");

	if (n->n_devices)
		return n->devices[0].product;
	snprintf(out, room, "%.*s", cut ? (int)(cut - label) : (int)strlen(label), label);
	return out;
}

/* Return the memory of one of them in MiB; 0 = not known. With a single profile the label has that of an
 * instance. */
static int64_t card_memory(const struct node *n)
{
	const char *product = gpuq_strmap_text(&n->fact.labels, "nvidia.com/gpu.product");
	int64_t mib;

	if (n->n_devices)
		return n->devices[0].memory_mib;
	mib = strtoll(gpuq_strmap_text(&n->fact.labels, "nvidia.com/gpu.memory"), NULL, 10);
	return !strstr(product, "-MIG-") && mib > 0 && mib < (1 << 30) ? mib : 0;
}

/* Classify a node. Pool: the first whose selector holds. Flavor: the pool's, else the first whose
 * match fits the first device, or its cards that are cut, else `default`. */
void node_classify(struct model *m, struct node *n)
{
	const char *product;
	int64_t memory_mib;
	char text[256];

	n->pool = n->flavor = "default";
	n->kind = node_kind_of(m, n);
	site_each(site_pool, m->site->pools, p) {
		if (inventory_selects(&p->selector, &n->fact.labels)) {
			n->pool = model_intern(m, p->name);
			if (p->flavor) {
				n->flavor = model_intern(m, p->flavor);
				return;
			}
			break;
		}
	}
	if (n->n_devices == 0 && n->fact.n_mig == 0)
		return;
	product = card_product(n, text, sizeof(text));
	memory_mib = card_memory(n);
	site_each(site_flavor, m->site->flavors, f) {
		if (node_is_of_resource(n, f, product, memory_mib)) {
			n->flavor = model_intern(m, f->name);
			return;
		}
	}
	site_each(site_flavor, m->site->flavors, f) {
		if ((f->device_class ? node_has_class(m, n, f->device_class)
				     : f->match.product || f->match.memory_min_bytes) &&
		    node_is_of_match(n, f, product, memory_mib)) {
			n->flavor = model_intern(m, f->name);
			return;
		}
	}
}

/* Return the word of the system that allocates the devices of the node. Replicas that count as devices
 * (replicas_as_gpus) have become whole ones, and are given by the system that they were given by. */
static const char *system_of(const struct model *m, const struct node *n, const struct site_pool *p)
{
	const struct site_inventory *i = inventory_of(m->site, &n->told.labels);

	if (p->replicas_as_gpus && n->fact.replicas <= 1 && n->n_devices) {
		if (n->told.replicas > 1)
			return gpuq_strmap_text(&n->told.labels, SHARE_LABEL);
		if (i && i->replicas > 1)
			return "time-slicing";
	}
	return gpuq_strmap_text(&n->fact.labels, SHARE_LABEL);
}

/* Return how the devices of the node are allocated otherwise than its pool has it; NULL = as it has
 * it. Such a node is left alone. */
static const char *contradiction(struct model *m, const struct node *n)
{
	const char *own = gpuq_strmap_text(&n->fact.labels, SHARE_LABEL);
	char text[240];

	if (n->closed && n->n_devices) {
		snprintf(text, sizeof(text),
			 "%.40s may give its devices to others: sharing: %.24s of its pool would "
			 "hand them over to gpuqd",
			 n->backend->title, n->backend->pool);
		return model_intern(m, text);
	}
	site_each(site_pool, m->site->pools, p) {
		const char *word;

		if (strcmp(p->name, n->pool) != 0 || layouts_are_on(p->mig))
			continue;
		word = system_of(m, n, p);
		if (!backend_fits_pool(site_sharing_word(p->sharing), word, n->fact.n_mig)) {
			snprintf(text, sizeof(text),
				 "pool %.60s has sharing: %s, the node has %.24s%s", p->name,
				 site_sharing_word(p->sharing), n->fact.n_mig ? "mig" : word,
				 strcmp(word, own) == 0 || n->fact.n_mig
					 ? ""
					 : ", whose replicas count as whole devices");
			return model_intern(m, text);
		}
	}
	return NULL;
}

/* A taint that only discourages placement does not make the node ill, but is marked as a sign of
 * it. */
void node_judge(struct model *m, struct node *n)
{
	/* Copied here, in the node's own arena. */
	struct taint_fact *taints = (struct taint_fact *)(uintptr_t)n->fact.taints;
	const char *ill = NULL, *why;

	n->taken = false;
	for (size_t i = 0; i < n->fact.n_taints; i++) {
		n->taken |= health_takes_taint(taints[i].key);
		why = health_of_taint(m->site, taints[i].key);
		taints[i].ill = why != NULL;
		if (why && strcmp(taints[i].effect, "PreferNoSchedule") != 0)
			ill = why;
	}
	for (size_t i = 0; i < n->fact.n_conditions; i++) {
		n->taken |= health_takes_condition(n->fact.conditions[i].type,
						   n->fact.conditions[i].on);
		why = health_of_condition(m->site, n->fact.conditions[i].type,
					  n->fact.conditions[i].on);
		if (why)
			ill = why;
	}
	n->closed = n->backend && n->backend->closed;
	site_each(site_pool, m->site->pools, p)
		if (n->closed && strcmp(p->name, n->pool) == 0)
			n->closed = strcmp(site_sharing_word(p->sharing), n->backend->pool) != 0;
	n->ill = ill ? model_intern(m, ill) : contradiction(m, n);
}

/* Copy the conditions of the fact into the node's arena. */
static void keep_conditions(struct node *n, const struct node_fact *f)
{
	struct condition_fact *kept =
		gpuq_arena_calloc(&n->arena, f->n_conditions + 1, sizeof(*kept));

	if (!kept)
		abort();
	for (size_t i = 0; i < f->n_conditions; i++)
		kept[i] = (struct condition_fact){ adup(n, f->conditions[i].type),
						   f->conditions[i].on };
	n->fact.conditions = kept;
	n->fact.n_conditions = f->n_conditions;
}

/* Copy bytes of the devices that the fact names; devices that stay only for their pods have no
 * links. */
static const uint8_t *keep_bytes(struct node *n, const uint8_t *bytes, size_t len, bool whole)
{
	uint8_t *copy;

	if (!bytes || !whole)
		return NULL;
	copy = gpuq_arena_alloc(&n->arena, len + 1);
	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	return copy;
}

/* Copy instances, countable resources, links and NUMA numbers, and make the counters of foreign pods, all 0: the caller
 * counts those anew. */
static void keep_parts(struct model *m, struct node *n, const struct node_fact *f,
		       uint32_t n_devices)
{
	const bool whole = n_devices == f->n_devices;
	struct mig_fact *mig = gpuq_arena_calloc(&n->arena, f->n_mig + 1, sizeof(*mig));

	struct gpuq_amount *amounts =
		gpuq_arena_calloc(&n->arena, f->n_resources + 1, sizeof(*amounts));

	n->foreign_amounts =
		gpuq_arena_calloc(&n->arena, f->n_resources + 1, sizeof(*n->foreign_amounts));
	n->foreign_on = gpuq_arena_calloc(&n->arena, n_devices + 1, sizeof(*n->foreign_on));
	n->foreign_mig = gpuq_arena_calloc(&n->arena, f->n_mig + 1, sizeof(*n->foreign_mig));
	if (!mig || !n->foreign_mig || !n->foreign_on || !amounts || !n->foreign_amounts)
		abort();
	for (size_t i = 0; i < f->n_resources; i++)
		amounts[i] = (struct gpuq_amount){ model_intern(m, f->resources[i].name),
						   f->resources[i].count };
	n->fact.device = model_intern(m, f->device);
	n->fact.replicas = f->replicas;
	n->fact.slots = f->slots;
	n->fact.resources = amounts;
	n->fact.n_resources = f->n_resources;
	for (size_t i = 0; i < f->n_mig; i++)
		mig[i] = (struct mig_fact){ model_intern(m, f->mig[i].profile), f->mig[i].count };
	n->fact.mig = mig;
	n->fact.n_mig = f->n_mig;
	n->fact.links = keep_bytes(n, f->links, f->n_devices * f->n_devices, whole);
	n->fact.numa = keep_bytes(n, f->numa, f->n_devices, whole);
}

static struct gpuq_strmap keep_labels(struct node *n, const struct gpuq_strmap *labels)
{
	struct gpuq_strmap to = { .n = labels->n };

	to.keys = gpuq_arena_calloc(&n->arena, labels->n + 1, sizeof(char *));
	to.vals = gpuq_arena_calloc(&n->arena, labels->n + 1, sizeof(char *));
	if (!to.keys || !to.vals)
		abort();
	for (size_t i = 0; i < labels->n; i++) {
		to.keys[i] = adup(n, labels->keys[i]);
		to.vals[i] = adup(n, labels->vals[i]);
	}
	return to;
}

/* Copy what the cluster reports of the devices, for the next time that the site changes. */
static void keep_told(struct model *m, struct node *n, const struct node_fact *f,
		      struct gpuq_strmap labels)
{
	struct device_fact *devices =
		gpuq_arena_calloc(&n->arena, f->n_devices + 1, sizeof(*devices));
	struct mig_fact *mig = gpuq_arena_calloc(&n->arena, f->n_mig + 1, sizeof(*mig));
	struct gpuq_amount *amounts =
		gpuq_arena_calloc(&n->arena, f->n_resources + 1, sizeof(*amounts));

	if (!devices || !mig || !amounts)
		abort();
	for (size_t i = 0; i < f->n_resources; i++)
		amounts[i] = (struct gpuq_amount){ model_intern(m, f->resources[i].name),
						   f->resources[i].count };
	for (size_t i = 0; i < f->n_devices; i++)
		devices[i] =
			(struct device_fact){ model_intern(m, f->devices[i].uuid),
					      model_intern(m, f->devices[i].product),
					      f->devices[i].memory_mib, f->devices[i].healthy };
	for (size_t i = 0; i < f->n_mig; i++)
		mig[i] = (struct mig_fact){ model_intern(m, f->mig[i].profile), f->mig[i].count };
	n->told = (struct node_fact){
		.labels = labels,
		.devices = devices,
		.n_devices = f->n_devices,
		.device = model_intern(m, f->device),
		.replicas = f->replicas,
		.unused = f->unused ? adup(n, f->unused) : NULL,
		.links = keep_bytes(n, f->links, f->n_devices * f->n_devices, true),
		.numa = keep_bytes(n, f->numa, f->n_devices, true),
		.mig = mig,
		.n_mig = f->n_mig,
		.resources = amounts,
		.n_resources = f->n_resources,
	};
}

/* Return the cards of a node with gpushare that are not to be used, "0,2"; "" = none is listed. */
static const char *unhealthy_of(const struct model *m, const struct node *n,
				const struct node_fact *f)
{
	const char *word = gpuq_strmap_text(&f->labels, SHARE_LABEL);
	const struct object_fact *o;
	char name[256];

	if (strncmp(word, "gpushare", 8) != 0)
		return "";
	snprintf(name, sizeof(name), OBJECT_UNHEALTHY_PREFIX "%.230s", n->name);
	o = objects_find(m->objects, OBJECT_UNHEALTHY, OBJECT_UNHEALTHY_NAMESPACE, name);
	return o ? o->selected : "";
}

int node_set_fact(struct model *m, struct node *n, const struct node_fact *told)
{
	struct gpuq_arena old = n->arena, scratch = GPUQ_ARENA_INIT(0);
	struct node_fact settled;
	const struct node_fact *f = &settled;
	const char *odd = node_offer(m, told, &scratch, &settled);
	const char *listed = unhealthy_of(m, n, told);
	struct taint_fact *taints;
	struct device *devices;
	uint32_t n_old = n->n_devices;

	/* Devices that pods still name stay, as unhealthy, when a node reports fewer. */
	uint32_t n_new = (uint32_t)f->n_devices;
	struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t i = 0; model_pod_takes(p) && i < p->n_devices; i++)
			if (p->devices[i] >= n_new && p->devices[i] < n_old)
				n_new = p->devices[i] + 1u;

	devices = calloc(n_new ? n_new : 1, sizeof(*devices));
	if (!devices)
		abort();
	for (uint32_t i = 0; i < n_new; i++) {
		if (i < f->n_devices)
			devices[i] = (struct device){ model_intern(m, f->devices[i].uuid),
						      model_intern(m, f->devices[i].product),
						      f->devices[i].memory_mib,
						      f->devices[i].healthy &&
							      !node_offer_lists(listed, i),
						      i < n_old ? n->devices[i].freed_us : 0 };
		else
			devices[i] = (struct device){ n->devices[i].uuid, n->devices[i].product,
						      n->devices[i].memory_mib, false, 0 };
	}
	/* The old arena lives until the end: the new fact may point into it. */
	memset(&n->arena, 0, sizeof(n->arena));
	taints = gpuq_arena_calloc(&n->arena, f->n_taints ? f->n_taints : 1, sizeof(*taints));
	n->fact.name = n->name;
	n->fact.cpu_milli = f->cpu_milli;
	n->fact.memory_bytes = f->memory_bytes;
	n->fact.max_pods = f->max_pods;
	n->fact.ready = f->ready;
	n->fact.unschedulable = f->unschedulable;
	n->fact.note = adup(n, f->note);
	if (!taints)
		abort();
	n->fact.labels = keep_labels(n, &f->labels);
	n->backend = backend_of(gpuq_strmap_text(&n->fact.labels, SHARE_LABEL));
	n->odd = odd ? adup(n, odd) : NULL;
	n->unused = node_offer_listed(n->name, listed, f->n_devices, &n->arena);
	if (!n->unused && told->unused)
		n->unused = adup(n, told->unused);
	keep_told(m, n, told,
		  told->labels.keys == f->labels.keys ? n->fact.labels
						      : keep_labels(n, &told->labels));
	for (size_t i = 0; i < f->n_taints; i++)
		taints[i] =
			(struct taint_fact){ adup(n, f->taints[i].key), adup(n, f->taints[i].value),
					     adup(n, f->taints[i].effect), false };
	n->fact.taints = taints;
	n->fact.n_taints = f->n_taints;
	keep_conditions(n, f);
	keep_parts(m, n, f, n_new);
	free(n->devices);
	n->devices = devices;
	n->n_devices = n_new;
	n->n_offered = (uint32_t)f->n_devices;
	n->fact.devices = NULL;
	n->fact.n_devices = 0;
	n->gone = false;
	gpuq_arena_done(&scratch);
	gpuq_arena_done(&old);
	node_classify(m, n);
	node_judge(m, n);
	return 0;
}

/* Add the amounts of a foreign pod to its node, or subtract them (sign -1). Devices that the node
 * does not have count as unnamed ones. */
static void foreign_sum(struct model *m, const struct foreign *of, int sign)
{
	struct node *n = model_find_node(m, of->node);
	struct foreign in;
	const struct foreign *f = &in;
	uint32_t single;
	bool counted;

	if (!n)
		return;
	in = node_offer_units(n, of);
	single = foreign_instances(n, f);
	/* Its devices are those of its claims (node_count_claims). */
	counted = single || foreign_by_resource(n) || node_is_of_claims(n);
	n->foreign_cpu_milli += sign * f->cpu_milli;
	n->foreign_memory_bytes += sign * f->memory_bytes;
	if (single)
		n->foreign_mig[n->fact.n_mig - 1] += (uint32_t)sign * single;
	else if (foreign_by_resource(n))
		n->foreign_gpus_milli += sign * foreign_milli(n, f);
	for (uint32_t i = 0; !counted && i < f->n_devices + f->n_uuids; i++) {
		const struct foreign_use part = foreign_part(n, f);
		const uint32_t at = f->n_uuids ? foreign_device(n, f->uuids[i]) : f->devices[i];

		if (at < n->n_devices) {
			struct foreign_use *on = &n->foreign_on[at];

			on->milli += (uint32_t)sign * part.milli;
			on->cores_milli += (uint32_t)sign * part.cores_milli;
			on->bytes += sign * part.bytes;
		} else if (f->n_uuids) {
			foreign_stranger_add(n, f->uuids[i], sign * (int64_t)part.milli);
		} else if (at >= n->told.n_devices) {
			/* A card of the node that the site leaves out is none of those that are given away. */
			n->foreign_gpus_milli += sign * (int64_t)part.milli;
		}
	}
	for (uint32_t i = 0; !counted && i < f->n_holds; i++)
		foreign_stranger_hold(n, f->holds[i], sign);
	if (f->n_devices == 0 && f->n_uuids == 0 && !counted)
		n->foreign_gpus_milli += sign * foreign_gpus(n, f);
	n->foreign_pods += sign;
	for (uint32_t i = 0; i < f->n_mig; i++)
		for (size_t k = 0; k < n->fact.n_mig; k++)
			if (gpuq_profile_is_resource(n->fact.mig[k].profile, f->mig[i].profile))
				n->foreign_mig[k] += (uint32_t)sign * f->mig[i].count;
	/* A resource that the node lacks altogether is ignored there, as its kubelet does. */
	for (uint32_t i = 0; i < f->n_resources; i++)
		for (size_t k = 0; k < n->fact.n_resources; k++)
			if (strcmp(n->fact.resources[k].name, f->resources[i].name) == 0)
				n->foreign_amounts[k] += sign * f->resources[i].count;
}

/* Forget a foreign pod, whose amounts are released. */
static void foreign_drop(struct model *m, struct foreign *f)
{
	foreign_sum(m, f, -1);
	HASH_DEL(m->foreigns, f);
	free(f->uuids);
	free(f->holds);
	free(f->resources);
	free(f);
}

/* Take the devices of a foreign pod, where they are credible. */
static void foreign_devices(struct foreign *f, const struct pod_fact *p)
{
	const size_t most = *p->token ? FOREIGN_DEVICES_MAX : 1;

	if (p->uuids.n > 0 && p->uuids.n <= FOREIGN_DEVICES_MAX && p->gpus_milli > 0 &&
	    p->gpus_milli <= 1000 * (int64_t)p->uuids.n) {
		f->uuids = p->uuids.items;
		f->n_uuids = (uint32_t)p->uuids.n;
		return;
	}
	if (p->n_devices == 0 || p->n_devices > most ||
	    (p->gpus_milli <= 0 && p->device_units == 0) ||
	    p->gpus_milli > 1000 * (int64_t)p->n_devices)
		return;
	for (size_t i = 0; i < p->n_devices; i++) {
		if (p->devices[i] < 0 || p->devices[i] > UINT16_MAX)
			return;
		f->devices[i] = (uint16_t)p->devices[i];
	}
	f->n_devices = (uint32_t)p->n_devices;
}

/* True if a pod occupies no resources: it is not bound to a node, or has ended. */
static bool holds_nothing(const struct pod_fact *p)
{
	return !*p->node || p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
}

/* Take what a foreign pod holds; its strings and amounts are those of p. */
static void foreign_fill(struct foreign *f, const struct pod_fact *p)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->uid, sizeof(f->uid), "%s", p->uid);
	f->node = p->node;
	f->cpu_milli = p->cpu_milli;
	f->memory_bytes = p->memory_bytes;
	f->gpus_milli = p->gpus_milli;
	f->device_bytes = p->device_bytes;
	f->device_units = p->device_units;
	foreign_devices(f, p);
	f->holds = p->holds.items;
	f->n_holds = p->holds.n < FOREIGN_DEVICES_MAX ? (uint32_t)p->holds.n : FOREIGN_DEVICES_MAX;
	for (size_t i = 0; i < p->n_mig && f->n_mig < FOREIGN_MIG_MAX; i++)
		f->mig[f->n_mig++] = p->mig[i];
	f->resources = (struct gpuq_amount *)(uintptr_t)p->resources;
	f->n_resources = (uint32_t)p->n_resources;
}

/* Copy amounts with their names into one block, which outlives the fact; NULL = none. */
static struct gpuq_amount *amounts_copy(const struct gpuq_amount *items, uint32_t n)
{
	size_t bytes = n * sizeof(*items);
	struct gpuq_amount *out;
	char *text;

	if (n == 0)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		bytes += strlen(items[i].name) + 1;
	out = malloc(bytes);
	if (!out)
		abort();
	text = (char *)(out + n);
	for (uint32_t i = 0; i < n; i++) {
		out[i] = (struct gpuq_amount){
			memcpy(text, items[i].name, strlen(items[i].name) + 1), items[i].count
		};
		text += strlen(text) + 1;
	}
	return out;
}

static const char **intern_all(struct model *m, const char *const *from, uint32_t n)
{
	const char **out = n ? calloc(n, sizeof(*out)) : NULL;

	if (n && !out)
		abort();
	for (uint32_t i = 0; i < n; i++)
		out[i] = model_intern(m, from[i]);
	return out;
}

/* True if both hold the same resources on the same node. */
static bool foreign_same(const struct foreign *a, const struct foreign *b)
{
	for (uint32_t i = 0; i < a->n_mig && a->n_mig == b->n_mig; i++)
		if (a->mig[i].count != b->mig[i].count ||
		    strcmp(a->mig[i].profile, b->mig[i].profile) != 0)
			return false;
	for (uint32_t i = 0; i < a->n_uuids && a->n_uuids == b->n_uuids; i++)
		if (strcmp(a->uuids[i], b->uuids[i]) != 0)
			return false;
	for (uint32_t i = 0; i < a->n_holds && a->n_holds == b->n_holds; i++)
		if (strcmp(a->holds[i], b->holds[i]) != 0)
			return false;
	return a->n_uuids == b->n_uuids && a->n_holds == b->n_holds &&
	       gpuq_amounts_same(a->resources, a->n_resources, b->resources, b->n_resources) &&
	       strcmp(a->node, b->node) == 0 && a->cpu_milli == b->cpu_milli &&
	       a->memory_bytes == b->memory_bytes && a->gpus_milli == b->gpus_milli &&
	       a->device_bytes == b->device_bytes && a->device_units == b->device_units &&
	       a->n_devices == b->n_devices && a->n_mig == b->n_mig &&
	       memcmp(a->devices, b->devices, sizeof(a->devices)) == 0;
}

bool node_any_of_claims(const struct model *m)
{
	node_each(m, n)
		if (node_is_of_claims(n))
			return true;
	return false;
}

const char *node_words_of_claims(const struct model *m, const char *lack)
{
	const char *words, *lacks = objects_claims_lack(m->objects, &words);

	return lacks && lack && strcmp(lacks, lack) == 0 ? words : NULL;
}

bool node_foreign_is_known(const struct model *m, const struct pod_fact *p)
{
	const struct foreign *f = NULL;
	struct foreign now;

	HASH_FIND_STR(m->foreigns, p->uid, f);
	if (!f || holds_nothing(p))
		return !f && holds_nothing(p);
	foreign_fill(&now, p);
	return foreign_same(f, &now);
}

/* Count a foreign pod on its node for as long as it holds resources. */
static void apply_foreign(struct model *m, const struct pod_fact *p, bool gone)
{
	struct foreign *f = NULL;

	HASH_FIND_STR(m->foreigns, p->uid, f);
	/* It is counted anew rather than by the difference: its node or amounts may have changed. */
	if (f)
		foreign_drop(m, f);
	if (gone || holds_nothing(p))
		return;
	f = calloc(1, sizeof(*f));
	if (!f)
		abort();
	foreign_fill(f, p);
	f->node = model_intern(m, p->node);
	for (uint32_t i = 0; i < f->n_mig; i++)
		f->mig[i].profile = model_intern(m, f->mig[i].profile);
	f->resources = amounts_copy(f->resources, f->n_resources);
	f->uuids = intern_all(m, f->uuids, f->n_uuids);
	f->holds = intern_all(m, f->holds, f->n_holds);
	HASH_ADD_STR(m->foreigns, uid, f);
	foreign_sum(m, f, 1);
}

/* Recount the foreign pods of a node that appears (again): they may have been reported before
 * it. */
static void recount_foreign(struct model *m, struct node *n)
{
	n->foreign_cpu_milli = n->foreign_memory_bytes = n->foreign_gpus_milli = n->foreign_pods =
		0;
	n->n_strangers = 0;
	for (size_t i = 0; i < n->fact.n_mig; i++)
		n->foreign_mig[i] = 0;
	for (size_t i = 0; i < n->fact.n_resources; i++)
		n->foreign_amounts[i] = 0;
	for (uint32_t i = 0; i < n->n_devices; i++)
		n->foreign_on[i] = (struct foreign_use){ 0 };
	for (struct foreign *f = m->foreigns; f; f = f->hh.next)
		if (f->node == n->name)
			foreign_sum(m, f, 1);
	node_count_claims(m, n);
}

/* Settle anew what the node offers, from what it reported last. */
static void settle(struct model *m, struct node *n)
{
	struct node_fact f = n->fact;
	const bool gone = n->gone;

	f.labels = n->told.labels;
	f.devices = n->told.devices;
	f.n_devices = n->told.n_devices;
	f.device = n->told.device;
	f.replicas = n->told.replicas;
	f.unused = n->told.unused;
	f.links = n->told.links;
	f.numa = n->told.numa;
	f.mig = n->told.mig;
	f.n_mig = n->told.n_mig;
	f.resources = n->told.resources;
	f.n_resources = n->told.n_resources;
	node_set_fact(m, n, &f);
	n->gone = gone;
	recount_foreign(m, n);
}

void node_settle_all(struct model *m)
{
	for (struct node *n = m->nodes; n; n = n->hh.next)
		settle(m, n);
}

void node_set_parts(struct model *m, struct node *n, const struct node_fact *f,
		    const struct node_fact *told)
{
	keep_parts(m, n, f, n->n_devices);
	keep_told(m, n, told, keep_labels(n, &told->labels));
	node_classify(m, n);
	node_judge(m, n);
	recount_foreign(m, n);
}

/* Mark a node to be stored, and tell readers that nodes have changed. */
static void touch(struct model *m, struct node *n)
{
	n->dirty = m->nodes_dirty = true;
	m->n_node_changes++;
}

/* Return the node of that name; NULL after an error. */
static struct node *find(const struct model *m, const char *name, struct gpuq_err *err)
{
	struct node *n = model_find_node(m, name);

	if (!n)
		gpuq_fail(err, GPUQ_ENOENT, "no node is named %s", name);
	return n;
}

void node_settle_one(struct model *m, const char *name)
{
	struct node *n = model_find_node(m, name);

	if (!n)
		return;
	settle(m, n);
	touch(m, n);
}

void node_recount_claims(struct model *m, const char *name)
{
	struct node *one = name ? model_find_node(m, name) : NULL;

	for (struct node *n = name ? one : m->nodes; n; n = name ? NULL : n->hh.next)
		m->n_node_changes += node_count_claims(m, n);
}

void node_settle_class(struct model *m, const char *name)
{
	bool used = false;

	site_each(site_flavor, m->site->flavors, f)
		used |= !name || (f->device_class && strcmp(f->device_class, name) == 0);
	for (struct node *n = m->nodes; (used || !name) && n; n = n->hh.next) {
		settle(m, n);
		touch(m, n);
	}
}

int node_apply_seen(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct node *n = model_find_node(m, ev->node->name);

	(void)err;
	/* Nothing changed: nothing is to be stored. */
	if (n && fact_same(n, ev->node)) {
		n->seen_us = ev->at_us;
		return 0;
	}
	if (!n || n->gone) {
		n = node_get(m, CLUSTER_DEFAULT, ev->node->name);
		n->first_us = ev->at_us;
	}
	/* Charge what was stranded until now by the old fact; the second call begins with the new
	 * one. */
	accounting_charge_strand(m, n);
	node_set_fact(m, n, ev->node);
	recount_foreign(m, n);
	node_shorts_offered(m, n);
	accounting_charge_strand(m, n);
	n->seen_us = ev->at_us;
	touch(m, n);
	ask_node_seen(m, n);
	return 0;
}

int node_apply_gone(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct node *n = find(m, ev->name, err);

	if (!n)
		return GPUQ_ENOENT;
	accounting_charge_strand(m, n);
	n->gone = true;
	/* Not ready even if it is kept for its pods. */
	n->fact.ready = false;
	touch(m, n);
	ask_node_gone(m, n->name);
	node_drop_if_empty(m, n);
	return 0;
}

int node_apply_drain(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct node *n = find(m, ev->drain.name, err);

	if (!n)
		return GPUQ_ENOENT;
	accounting_charge_strand(m, n);
	n->drain = ev->drain.on;
	n->drain_why = ev->drain.on ? model_intern(m, ev->drain.why) : "";
	n->drain_by = ev->drain.on && ev->drain.who ? model_intern(m, ev->drain.who) : "";
	n->drain_us = ev->drain.on ? ev->at_us : 0;
	touch(m, n);
	return 0;
}

int node_apply_frozen(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct node *n = find(m, ev->drain.name, err);

	if (!n)
		return GPUQ_ENOENT;
	n->frozen = ev->drain.on;
	n->frozen_why = ev->drain.on ? model_intern(m, ev->drain.why) : "";
	return 0;
}

int node_apply_backoff(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct node *n = find(m, ev->backoff.name, err);

	if (!n)
		return GPUQ_ENOENT;
	n->backoff_until_us = ev->backoff.until_us;
	n->suspect = ev->backoff.suspect;
	return 0;
}

int node_apply_foreign_seen(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	apply_foreign(m, ev->foreign, false);
	return 0;
}

int node_apply_foreign_gone(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	apply_foreign(m, ev->foreign, true);
	return 0;
}

/* Count the instances of a node that are not in use, and those that foreign pods hold. */
static int64_t free_instances(const struct node *n, int64_t *foreign)
{
	int64_t free = 0;

	*foreign = 0;
	for (size_t i = 0; i < n->fact.n_mig; i++) {
		const int64_t left = (int64_t)n->fact.mig[i].count - n->foreign_mig[i] -
				     model_instances_held(n, n->fact.mig[i].profile);

		free += left > 0 ? left : 0;
		*foreign += n->foreign_mig[i];
	}
	return free;
}

/* The worst state that applies comes first. */
enum gpuq_node_state node_state(const struct node *n)
{
	/* The replicas of a device may be a little less than all of it. */
	const int64_t r = n->fact.replicas > 1 ? n->fact.replicas : 1, whole = 1000 / r * r;
	int64_t taken = n->foreign_gpus_milli, foreign;
	const int64_t instances = free_instances(n, &foreign);
	bool busy = false;
	struct pod *p;

	for (uint32_t i = 0; i < n->n_devices; i++)
		taken += n->foreign_on[i].milli;
	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p)) {
			taken += p->n_devices ? p->gpus_milli
					      : 0; /* instances are not among the devices */
			busy = true;
		}
	if (n->gone || !n->fact.ready)
		return GPUQ_NODE_DOWN;
	if (n->drain || n->fact.unschedulable || n->ill)
		return busy ? GPUQ_NODE_DRAIN : GPUQ_NODE_DRAINED;
	if (cut_is_under_way(n))
		return GPUQ_NODE_RESERVED;
	if (n->suspect || n->frozen)
		return GPUQ_NODE_SUSPECT;
	/* One without any device is never so. */
	if ((busy || taken + foreign > 0) && (n->n_devices || n->fact.n_mig) && instances == 0 &&
	    taken >= (int64_t)n->n_devices * whole)
		return GPUQ_NODE_ALLOC;
	return busy || taken + foreign > 0 ? GPUQ_NODE_MIXED : GPUQ_NODE_IDLE;
}
