#include "gpuqd/state/view/view_node.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/state/cuts/claim_part.h"
#include "gpuqd/state/cuts/shared_claim.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/cuts/cut.h"
#include "gpuqd/state/view/cards.h"
#include "gpuqd/state/view/census.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/walltime.h"
#include "libgpuq/names.h"
#include "libgpuq/spec/profile.h"
#include "libgpuq/spec/resource.h"

/* ---- parts ---- */

/* A part of a card: what it is, and the pod that holds it. */
struct part {
	const char *kind; /* "whole", "part", "replica", "mig" */
	const char *profile; /* NULL = no instance */
	int64_t milli;
	int64_t memory_mib, cores; /* cores: hundredths; -1 = not limited, or not known */
	const struct pod *pod; /* NULL = free, or of a foreign pod */
	bool foreign, refused; /* refused: by the kubelet, though it is not in use */
};

static struct gpuq_val *number_or_null(struct gpuq_arena *a, int64_t n)
{
	return n >= 0 ? gpuq_int(a, n) : gpuq_null(a);
}

static void put_holder(struct gpuq_arena *a, struct gpuq_val *v, const struct pod *p)
{
	gpuq_put(a, v, "job", p ? gpuq_str(a, view_key(a, p->job->key)) : gpuq_null(a));
	gpuq_put(a, v, "pod", p ? gpuq_int(a, p->index) : gpuq_null(a));
	gpuq_put(a, v, "user", p ? gpuq_str(a, p->job->user) : gpuq_null(a));
	gpuq_put(a, v, "queue", p ? gpuq_str(a, p->job->queue->name) : gpuq_null(a));
}

static void add_part(struct gpuq_arena *a, struct gpuq_val *list, const struct part *p)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "kind", gpuq_str(a, p->kind));
	gpuq_put(a, v, "profile", view_profile(a, p->profile));
	gpuq_put(a, v, "state",
		 gpuq_str(a, p->pod       ? "allocated"
			     : p->foreign ? "foreign"
			     : p->refused ? "refused"
					  : "free"));
	gpuq_put(a, v, "milli", gpuq_int(a, p->milli));
	gpuq_put(a, v, "memory_mib", number_or_null(a, p->memory_mib));
	gpuq_put(a, v, "cores", number_or_null(a, p->cores));
	put_holder(a, v, p->pod);
	gpuq_add(a, list, v);
}

/* Return the cores that the backend holds a part to, in hundredths; -1 = it limits none. */
static int64_t cores_of(const struct node *n, int64_t milli, int64_t asked)
{
	if (milli >= 1000)
		return 100;
	/* Without a backend parts are asked for and kept to by the job itself. */
	if (n->backend && (n->backend->by_memory || strcmp(n->backend->word, "time-slicing") == 0))
		return -1;
	return asked > 0 ? asked : milli / 10;
}

static bool is_replica(const struct pod *p)
{
	return p->gpus_milli / p->n_devices < 1000 && p->node->backend &&
	       p->node->backend->by_replica;
}

struct view_share view_node_share(const struct pod *p, const struct device *d)
{
	const struct request_group *g = &p->job->request->spec.groups[p->group];
	const int64_t milli = p->gpus_milli / p->n_devices;

	return (struct view_share){
		.memory_mib = d->memory_mib == 0
				      ? -1
				      : backend_gives_mib(p->node->backend, g->gpu_memory_bytes,
							  milli, d->memory_mib),
		.cores = cores_of(p->node, model_pod_cores(p), g->gpu_cores),
	};
}

/* Return the part of a device that a pod of gpuq's holds. */
static struct part part_of(const struct pod *p, const struct device *d)
{
	const struct view_share share = view_node_share(p, d);
	const int64_t milli = p->gpus_milli / p->n_devices;

	return (struct part){
		.kind = model_pod_cores(p) >= 1000   ? "whole"
			: is_replica(p)              ? "replica"
			: node_is_of_claims(p->node) ? "mig"
						     : "part",
		.milli = milli,
		.memory_mib = share.memory_mib,
		.cores = share.cores,
		.pod = p,
	};
}

/* ---- cards that are cut into instances ---- */

static int64_t least(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

/* Instances of a node as they are laid onto its cards, one after the other. */
struct cut {
	struct gpuq_arena *a;
	const struct node *n;
	int64_t now_us;
	struct cut_card {
		struct gpuq_val *parts, *jobs, *pods;
		int64_t used, free; /* as of cost_exact() */
		int64_t used_milli, free_milli, refused_milli;
		bool shared;
	} * cards;
	size_t n_cards;
};

/* Lay an instance onto the first card that has room for it; onto the last where none has. */
static void lay(struct cut *c, const struct part *p)
{
	struct cut_card *card = c->cards;
	struct gpuq_val *v;

	while (card + 1 < c->cards + c->n_cards &&
	       card->used + cost_exact(p->profile, 1) > COST_EXACT)
		card++;
	card->used += cost_exact(p->profile, 1);
	card->used_milli += p->milli;
	card->shared |= gpuq_profile_is_shared(p->profile);
	card->free_milli += p->pod || p->foreign || p->refused ? 0 : p->milli;
	card->refused_milli += p->refused ? p->milli : 0;
	card->free += p->pod || p->foreign || p->refused ? 0 : cost_exact(p->profile, 1);
	add_part(c->a, card->parts, p);
	if (!p->pod)
		return;
	v = gpuq_map(c->a);
	put_holder(c->a, v, p->pod);
	gpuq_put(c->a, v, "milli", gpuq_int(c->a, p->milli));
	gpuq_put(c->a, v, "memory_mib", number_or_null(c->a, p->memory_mib));
	gpuq_add(c->a, card->pods, v);
	gpuq_add(c->a, card->jobs, gpuq_str(c->a, view_key(c->a, p->pod->job->key)));
}

static void lay_profile(struct cut *c, size_t which)
{
	const struct mig_fact *f = &c->n->fact.mig[which];
	struct part p = { .kind = "mig",
			  .profile = f->profile,
			  .milli = cost_of_profile(f->profile),
			  .memory_mib = cost_profile_mib(f->profile),
			  .cores = gpuq_profile_is_shared(f->profile)
					   ? -1
					   : cost_of_profile(f->profile) / 10 };
	int64_t left = f->count, foreign = c->n->foreign_mig[which];
	const int64_t refused = node_lacks_instances(c->n, f->profile, c->now_us);
	const struct pod *pod;

	DL_FOREACH2(c->n->pods, pod, node_next) {
		if (!model_pod_has_instances(pod, f->profile))
			continue;
		p.pod = pod;
		for (int64_t i = 0; i < model_pod_instances(pod) && left > 0; i++, left--)
			lay(c, &p);
	}
	p.pod = NULL;
	for (p.foreign = true; foreign > 0 && left > 0; foreign--, left--)
		lay(c, &p);
	for (p.foreign = false; left > 0; left--) {
		p.refused = left <= refused;
		lay(c, &p);
	}
}

/* Replicas are counted in thousandths rounded down: all of a card are a card for all that. */
static void round_shared(struct cut_card *card)
{
	if (!card->shared)
		return;
	card->used_milli = (card->used * 1000 + COST_EXACT / 2) / COST_EXACT;
	card->free_milli = (card->free * 1000 + COST_EXACT / 2) / COST_EXACT;
}

/* Append a card for each that is cut. Their numbers, and which instances share one, no node tells: they are
 * laid side by side in the order of profiles. */
static bool add_cut_cards(struct gpuq_arena *a, const struct node *n, const struct cards *cards,
			  int64_t now_us, struct gpuq_val *list)
{
	const char *product = gpuq_strmap_text(&n->fact.labels, "nvidia.com/gpu.product");
	const char *profile = strstr(product, "-MIG-"); /* of all instances of the node */
	const size_t len = profile ? (size_t)(profile - product) : strlen(product);
	struct cut c = {
		.a = a, .n = n, .now_us = now_us, .n_cards = (size_t)(cards->total_milli / 1000)
	};

	if (c.n_cards == 0)
		return true;
	c.cards = gpuq_arena_calloc(a, c.n_cards, sizeof(*c.cards));
	if (!c.cards)
		return false;
	for (size_t i = 0; i < c.n_cards; i++)
		c.cards[i] = (struct cut_card){ .parts = gpuq_list(a),
						.jobs = gpuq_list(a),
						.pods = gpuq_list(a) };
	for (size_t i = 0; i < n->fact.n_mig; i++)
		lay_profile(&c, i);
	for (size_t i = 0; i < c.n_cards; i++) {
		struct cut_card *card = &c.cards[i];
		struct gpuq_val *v = gpuq_map(a);

		round_shared(card);
		const int64_t taken = least(card->used_milli - card->free_milli -
						    card->refused_milli,
					    1000),
			      left = n->gone ? 0 : least(card->free_milli, 1000 - taken);

		gpuq_put(a, v, "index", gpuq_null(a));
		gpuq_put(a, v, "uuid", gpuq_null(a));
		gpuq_put(a, v, "product", len ? gpuq_strn(a, product, len) : gpuq_null(a));
		gpuq_put(a, v, "memory_mib", gpuq_null(a));
		gpuq_put(a, v, "free_milli", gpuq_int(a, left));
		gpuq_put(a, v, "free_memory_mib", gpuq_null(a));
		gpuq_put(a, v, "used_memory_mib", gpuq_null(a));
		gpuq_put(a, v, "free_cores", gpuq_int(a, left / 10));
		gpuq_put(a, v, "used_cores", gpuq_int(a, taken / 10));
		gpuq_put(a, v, "jobs", card->jobs);
		gpuq_put(a, v, "pods", card->pods);
		gpuq_put(a, v, "parts", card->parts);
		gpuq_put(a, v, "parts_assumed", gpuq_bool(a, c.n_cards > 1));
		gpuq_put(a, v, "isolation",
			 view_isolation(a, card->shared ? GPUQ_ISOLATION_TIME_SLICE
							: GPUQ_ISOLATION_MIG));
		gpuq_put(a, v, "state", gpuq_str(a, n->gone ? "lost" : "cut"));
		gpuq_add(a, list, v);
	}
	return true;
}

/* ---- the node ---- */

/* Return the pods that hold instances of a node. */
static struct gpuq_val *view_holder(struct gpuq_arena *a, const struct pod *p, int64_t count)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "job", gpuq_str(a, view_key(a, p->job->key)));
	gpuq_put(a, v, "pod", gpuq_int(a, p->index));
	gpuq_put(a, v, "user", gpuq_str(a, p->job->user));
	gpuq_put(a, v, "queue", gpuq_str(a, p->job->queue->name));
	gpuq_put(a, v, "count", gpuq_int(a, count));
	gpuq_put(a, v, "milli", gpuq_int(a, p->gpus_milli));
	return v;
}

/* Return the pods of which it is not known which of the node's devices they have: it chose, and did not report. */
static struct gpuq_val *view_unplaced(struct gpuq_arena *a, const struct node *n)
{
	struct gpuq_val *list = gpuq_list(a);
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && p->n_devices && !model_pod_devices_known(p))
			gpuq_add(a, list, view_holder(a, p, p->n_devices));
	return list;
}

/* Return what foreign pods hold of its instances, in devices. */
static int64_t foreign_mig_milli(const struct node *n)
{
	int64_t milli = 0;

	for (size_t i = 0; i < n->fact.n_mig; i++)
		milli += n->foreign_mig[i] * cost_of_profile(n->fact.mig[i].profile);
	return milli;
}

/* Return what foreign pods hold of its devices that are known. */
static int64_t foreign_named_milli(const struct node *n)
{
	int64_t milli = 0;

	for (uint32_t i = 0; i < n->n_devices; i++)
		milli += least(n->foreign_on[i].milli, 1000);
	return milli;
}

/* Return the instances of MIG profiles: how many there are, and how many are free. */
static struct gpuq_val *view_mig(struct gpuq_arena *a, const struct node *n, int64_t now_us)
{
	struct gpuq_val *list = gpuq_list(a);

	for (size_t i = 0; i < n->fact.n_mig; i++) {
		const struct mig_fact *f = &n->fact.mig[i];
		/* Instances are not assigned by gpuqd: they are counted by profile. */
		int64_t left = (int64_t)f->count - n->foreign_mig[i] -
			       node_lacks_instances(n, f->profile, now_us);
		struct gpuq_val *v = gpuq_map(a), *pods = gpuq_list(a);
		const struct pod *p;

		DL_FOREACH2(n->pods, p, node_next) {
			if (!model_pod_has_instances(p, f->profile))
				continue;
			left -= model_pod_instances(p);
			gpuq_add(a, pods, view_holder(a, p, model_pod_instances(p)));
		}
		gpuq_put(a, v, "profile", view_profile(a, f->profile));
		gpuq_put(a, v, "replicas",
			 gpuq_profile_replicas(f->profile) > 1
				 ? gpuq_int(a, gpuq_profile_replicas(f->profile))
				 : gpuq_null(a));
		gpuq_put(a, v, "count", gpuq_int(a, f->count));
		gpuq_put(a, v, "free", gpuq_int(a, left > 0 && !n->gone ? left : 0));
		gpuq_put(a, v, "foreign", gpuq_int(a, n->foreign_mig[i]));
		gpuq_put(a, v, "milli", gpuq_int(a, cost_of_profile(f->profile)));
		gpuq_put(a, v, "pods", pods);
		gpuq_add(a, list, v);
	}
	return list;
}

/* Return what is known of the last time that gpuqd had the node cut. */
static struct gpuq_val *view_cut(struct gpuq_arena *a, const struct node_cut *c)
{
	struct gpuq_val *v = c ? gpuq_map(a) : gpuq_null(a);

	if (!c)
		return v;
	gpuq_put(a, v, "name", gpuq_str(a, c->layout));
	gpuq_put(a, v, "state", gpuq_str(a, cut_state_words[c->state]));
	gpuq_put(a, v, "before", view_word(a, c->before));
	gpuq_put(a, v, "time", view_instant(a, c->at_us));
	gpuq_put(a, v, "job", gpuq_str(a, view_key(a, c->job)));
	gpuq_put(a, v, "message", view_word(a, c->message));
	return v;
}

/* Return the countable resources of a node: {name: {total, free}}. */
static struct gpuq_val *view_resources(struct gpuq_arena *a, const struct model *m,
				       const struct node *n, int64_t now_us)
{
	struct gpuq_val *map = gpuq_map(a);

	for (size_t i = 0; i < n->fact.n_resources; i++) {
		const struct gpuq_amount *f = &n->fact.resources[i];
		const int64_t left =
			node_ledger_free(m, n, f->name) - node_lacks(n, f->name, now_us);
		struct gpuq_val *v = gpuq_map(a);

		gpuq_put(a, v, "total", gpuq_int(a, f->count));
		gpuq_put(a, v, "free", gpuq_int(a, left > 0 && !n->gone ? left : 0));
		gpuq_put(a, map, f->name, v);
	}
	return map;
}

static void add_to(struct gpuq_arena *a, struct gpuq_val *v, const char *key, int64_t n)
{
	gpuq_set(a, v, key, gpuq_int(a, gpuq_get_int(v, key, 0) + n));
}

/* Add what counts as devices of a resource, which is counted by its name as well: free ones in thousandths, until
 * all are counted. A device may be offered several times. */
static void add_devices(struct gpuq_arena *a, const struct node *n, const struct gpuq_val *from,
			struct gpuq_val *to)
{
	const int64_t total = gpuq_get_int(from, "total", 0), free = gpuq_get_int(from, "free", 0);
	const int64_t devices = n->n_offered + cards_of(n).total_milli / 1000;
	const bool several = n->fact.replicas > 1 || n->fact.slots > 0 || n->n_offered == 0;
	const int64_t n_devices = several && devices < total ? devices : total;

	add_to(a, to, "slots", total);
	add_to(a, to, "free_slots", free);
	add_to(a, to, "devices", n_devices);
	add_to(a, to, "free_devices", total > 0 ? free * n_devices * 1000 / total : 0);
}

/* Write a resource without what says no more than its devices do. */
static struct gpuq_val *view_counted(struct gpuq_arena *a, const struct gpuq_val *from)
{
	const int64_t devices = gpuq_get_int(from, "devices", 0),
		      slots = gpuq_get_int(from, "slots", 0);
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "total", gpuq_get(from, "total"));
	gpuq_put(a, v, "free", gpuq_get(from, "free"));
	if (!gpuq_get(from, "devices"))
		return v;
	gpuq_put(a, v, "devices", gpuq_int(a, devices));
	gpuq_put(a, v, "free_devices", view_devices(a, gpuq_get_int(from, "free_devices", 0)));
	if (slots == devices)
		return v;
	gpuq_put(a, v, "slots", gpuq_int(a, slots));
	gpuq_put(a, v, "free_slots", gpuq_int(a, gpuq_get_int(from, "free_slots", 0)));
	return v;
}

struct gpuq_val *view_node_resources(struct gpuq_arena *a, const struct model *m, int64_t now_us)
{
	struct gpuq_val *all = gpuq_map(a);

	node_each(m, n) {
		const struct gpuq_val *one = n->gone ? NULL : view_resources(a, m, n, now_us);

		for (uint32_t i = 0; one && i < one->n; i++) {
			const struct gpuq_val *from = one->pairs[i].val;
			struct gpuq_val *to = gpuq_get(all, one->pairs[i].key);

			/* Where none can be a device, what is offered is no resource either. */
			if (n->n_devices == 0 && n->fact.n_mig == 0 && n->fact.device &&
			    strcmp(n->fact.device, one->pairs[i].key) == 0)
				continue;
			if (!to)
				to = gpuq_put(a, all, one->pairs[i].key, gpuq_map(a));
			gpuq_set(a, to, "total",
				 gpuq_int(a, gpuq_get_int(to, "total", 0) +
						     gpuq_get_int(from, "total", 0)));
			gpuq_set(a, to, "free",
				 gpuq_int(a, gpuq_get_int(to, "free", 0) +
						     gpuq_get_int(from, "free", 0)));
			if (n->fact.device && strcmp(n->fact.device, one->pairs[i].key) == 0)
				add_devices(a, n, from, to);
		}
	}
	for (uint32_t i = 0; all && i < all->n; i++)
		all->pairs[i].val = view_counted(a, all->pairs[i].val);
	return all;
}

/* Return the user of a device, and the amount it uses; d NULL: none of its own. */
static struct gpuq_val *view_tenant(struct gpuq_arena *a, const struct pod *p,
				    const struct device *d)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "job", gpuq_str(a, view_key(a, p->job->key)));
	gpuq_put(a, v, "pod", gpuq_int(a, p->index));
	gpuq_put(a, v, "user", gpuq_str(a, p->job->user));
	gpuq_put(a, v, "queue", gpuq_str(a, p->job->queue->name));
	/* One that has the device by a claim which another pod is charged for. */
	if (!d) {
		gpuq_put(a, v, "milli", gpuq_int(a, 0));
		gpuq_put(a, v, "memory_mib", gpuq_null(a));
		return v;
	}
	gpuq_put(a, v, "milli", gpuq_int(a, p->gpus_milli / p->n_devices));
	gpuq_put(a, v, "memory_mib", number_or_null(a, view_node_share(p, d).memory_mib));
	return v;
}

struct gpuq_val *view_refuses(struct gpuq_arena *a, const struct node *n, const struct job *j,
			      int64_t now_us)
{
	struct gpuq_val *list = gpuq_list(a);

	for (size_t i = 0; i < NODE_SHORTS_MAX && n->shorts[i].resource; i++) {
		const struct node_short *s = &n->shorts[i];
		struct gpuq_val *v;

		if (s->until_us <= now_us || (j && !node_short_concerns(n, s, j)))
			continue;
		v = gpuq_map(a);
		gpuq_put(a, v, "node", gpuq_str(a, n->name));
		gpuq_put(a, v, "resource", gpuq_str(a, s->resource));
		gpuq_put(a, v, "count", gpuq_int(a, s->lacks));
		gpuq_put(a, v, "until_time", view_instant(a, s->until_us));
		gpuq_add(a, list, v);
	}
	return list;
}

struct gpuq_val *view_refusing(struct gpuq_arena *a, const struct model *m, const struct job *j,
			       int64_t now_us)
{
	struct gpuq_val *list = gpuq_list(a);

	node_each(m, n) {
		const struct gpuq_val *one =
			n->gone || !n->shorts[0].resource ? NULL : view_refuses(a, n, j, now_us);

		for (uint32_t i = 0; one && i < one->n && list->n < VIEW_REFUSING_MAX; i++)
			gpuq_add(a, list, one->items[i]);
	}
	return list;
}

/* Return what the kubelet refuses although the node offers it; NULL = nothing. */
static const char *node_short(struct gpuq_arena *a, const struct node *n, int64_t now_us)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const char *out = NULL;

	if (!n->shorts[0].resource) /* the first is used first */
		return NULL;
	for (size_t i = 0; i < NODE_SHORTS_MAX; i++)
		if (n->shorts[i].resource && n->shorts[i].until_us > now_us)
			gpuq_buf_printf(&text, "%s%s", text.len ? ", " : "its kubelet refuses ",
					n->shorts[i].resource);
	if (text.len)
		out = gpuq_arena_strdup(a, gpuq_buf_str(&text));
	gpuq_buf_done(&text);
	return out;
}

static const char node_failed_pods[] = "pods failed there of late";

/* Return why a node is not healthy; NULL: it is. */
static const char *node_cause(const struct node *n, const char *cut, const char *refuses)
{
	int64_t milli;
	const char *lacks;

	/* The cause that has to be removed first is reported. */
	if (n->gone)
		return "gone; its pods may still run";
	if (n->drain && n->drain_why && *n->drain_why)
		return n->drain_why;
	if (n->fact.note && *n->fact.note)
		return n->fact.note;
	if (!n->fact.ready)
		return "not ready";
	if (n->drain)
		return "drained by an operator";
	if (n->ill)
		return n->ill;
	if (n->fact.unschedulable)
		return "marked unschedulable in the cluster";
	if (n->frozen)
		return n->frozen_why;
	if (refuses)
		return refuses;
	if (cut)
		return cut;
	if (n->suspect)
		return node_failed_pods;
	lacks = accounting_node_stranded(n, &milli);
	return !lacks                         ? NULL
	       : strcmp(lacks, "cpu") == 0    ? "no free core for its free devices"
	       : strcmp(lacks, "memory") == 0 ? "no free memory for its free devices"
					      : "no free pod slot for its free devices";
}

void view_node_put_reservation(struct gpuq_arena *a, const struct model *m, struct gpuq_val *v,
			       const struct site_reservation *r, int64_t now_us)
{
	const int64_t start_us = site_reservation_start(r, walltime_of(now_us, m->ahead_us));
	const int64_t end_us = amount_sum(start_us, r->duration_us);

	gpuq_put(a, v, "name", gpuq_str(a, r->name));
	gpuq_put(a, v, "end_time",
		 end_us == GPUQ_UNLIMITED ? gpuq_null(a)
					  : gpuq_int(a, walltime_to_ledger(end_us, m->ahead_us)));
}

static struct gpuq_val *view_reservation(struct gpuq_arena *a, const struct model *m,
					 const struct site_reservation *r, int64_t now_us)
{
	struct gpuq_val *v = r ? gpuq_map(a) : gpuq_null(a);

	if (r)
		view_node_put_reservation(a, m, v, r, now_us);
	return v;
}

/* Return how its devices are handed out; NULL = it has none, or any part of them. */
static const char *sharing_of(const struct node *n)
{
	const char *word = n->backend ? n->backend->word : NULL;

	/* Whole devices beside instances are what is left uncut. */
	return n->fact.n_mig && (!word || strcmp(word, "whole") == 0) ? "mig" : word;
}

/* The use of a device: its charge, and the two amounts. */
struct in_use {
	int64_t milli, cores_milli, memory_mib;
};

/* Parts of the cards of a node that claims have, or can have. */
struct claimed {
	struct claim_part *items;
	size_t n;
};

/* List those of a card. False: there are none. */
static bool add_instances(struct gpuq_arena *a, const struct claimed *claimed, uint32_t at,
			  struct gpuq_val *parts)
{
	const struct claim_part *all = claimed->items;
	bool any = false;

	for (size_t i = 0; i < claimed->n; i++) {
		if (all[i].card != at)
			continue;
		any = true;
		const struct part p = { .kind = "mig",
					.profile = all[i].profile,
					.milli = all[i].milli,
					.memory_mib = all[i].memory_mib,
					.cores = all[i].milli / 10,
					.pod = all[i].pod,
					.foreign = all[i].used && !all[i].pod };

		add_part(a, parts, &p);
	}
	return any;
}

/* True if a part in the list is the pod's. */
static bool lists(struct gpuq_arena *a, const struct gpuq_val *parts, const struct pod *p)
{
	const char *key = view_key(a, p->job->key);

	for (uint32_t i = 0; i < parts->n; i++)
		if (strcmp(gpuq_get_str(parts->items[i], "job", ""), key) == 0 &&
		    gpuq_get_int(parts->items[i], "pod", -1) == p->index)
			return true;
	return false;
}

/* Add a device's pods to its lists. Return how much of it they hold. */
static struct in_use add_tenants(struct gpuq_arena *a, const struct node *n, uint32_t at,
				 struct gpuq_val *jobs, struct gpuq_val *pods,
				 struct gpuq_val *parts)
{
	const struct device *d = &n->devices[at];
	struct in_use own = { 0 };
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t k = 0; model_pod_takes(p) && k < p->n_devices; k++) {
			const struct part part = part_of(p, d);

			if (p->devices[k] != at)
				continue;
			own.milli += part.milli;
			own.cores_milli += model_pod_cores(p);
			own.memory_mib += part.memory_mib > 0 ? part.memory_mib : 0;
			gpuq_add(a, jobs, gpuq_str(a, view_key(a, p->job->key)));
			gpuq_add(a, pods, view_tenant(a, p, d));
			if (!lists(a, parts, p))
				add_part(a, parts, &part);
		}
	return own;
}

/* Add pods that have the device by a claim which another pod is charged for. True: there are some. */
static bool add_riders(struct gpuq_arena *a, const struct model *m, const struct node *n,
		       uint32_t at, struct gpuq_val *jobs, struct gpuq_val *pods)
{
	uint16_t devices[DRA_RESULTS_MAX];
	const struct pod *p;
	bool any = false;

	DL_FOREACH2(n->pods, p, node_next)
		for (size_t i = 0; model_pod_takes(p) && p->rides >> i; i++) {
			const uint32_t has =
				p->rides >> i & 1 ? shared_claim_list(m, p, i, devices) : 0;

			for (uint32_t k = 0; k < has; k++) {
				if (devices[k] != at)
					continue;
				gpuq_add(a, jobs, gpuq_str(a, view_key(a, p->job->key)));
				gpuq_add(a, pods, view_tenant(a, p, NULL));
				any = true;
			}
		}
	return any;
}

/* Return what foreign pods hold of a device, of which so much is taken beside gpuq's pods: some is of
 * pods whose devices are not known. */
static struct in_use foreign_of(const struct node *n, uint32_t at, int64_t milli)
{
	const struct foreign_use *f = &n->foreign_on[at];
	const int64_t more = milli > f->milli ? milli - f->milli : 0;

	if (milli <= 0)
		return (struct in_use){ 0 };
	return (struct in_use){ .milli = least(milli, 1000),
				.cores_milli = f->cores_milli + more,
				.memory_mib = (f->bytes >> 20) +
					      n->devices[at].memory_mib * more / 1000 };
}

/* True if it is not known whether a pod that is shown on the device has that one: of gpuq's, or of others.
 * Shares that others hold of devices that are not known are assumed on the last ones (census_slots), so that sums are
 * right: this is what such a device has beyond the pods that are known to hold some of it. */
static bool is_assumed(const struct node *n, uint32_t at, const struct census_slot *slot)
{
	const struct pod *p;

	if (slot->taken_milli > slot->own_milli + n->foreign_on[at].milli)
		return true;
	DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t k = 0; model_pod_takes(p) && k < p->n_devices; k++)
			if (p->devices[k] == at && !model_pod_devices_known(p))
				return true;
	return false;
}

/* True if one of the parts is less than the device. */
static bool is_divided(const struct gpuq_val *parts)
{
	for (uint32_t i = 0; parts && i < parts->n; i++)
		if (gpuq_get_int(parts->items[i], "milli", 1000) < 1000)
			return true;
	return false;
}

/* Return a device, of which so much is taken; add what is free of it to *free_milli. */
static struct gpuq_val *view_device(struct gpuq_arena *a, const struct model *m,
				    const struct node *n, uint32_t at,
				    const struct claimed *claimed, const struct census_slot *slot,
				    int64_t *free_milli)
{
	const int64_t taken = slot->taken_milli;
	const struct device *d = &n->devices[at];
	struct gpuq_val *v = gpuq_map(a), *jobs = gpuq_list(a), *pods = gpuq_list(a),
			*parts = gpuq_list(a);
	const bool cut = add_instances(a, claimed, at, parts);
	const struct in_use own = add_tenants(a, n, at, jobs, pods, parts);
	const bool rides = add_riders(a, m, n, at, jobs, pods);
	/* Nothing can start there, whatever is not in use. */
	const bool out = !d->healthy || n->gone || slot->refused_milli >= 1000;
	const int64_t idle =
		taken > 1000 || !d->healthy || n->gone ? 0 : 1000 - taken - slot->rounding_milli;
	const int64_t left = idle > slot->refused_milli ? idle - slot->refused_milli : 0;
	const struct in_use theirs = foreign_of(n, at, taken - own.milli);
	const int64_t cores = least(own.cores_milli + theirs.cores_milli, 1000) / 10,
		      memory_mib = least(own.memory_mib + theirs.memory_mib, d->memory_mib);

	if (!cut && theirs.milli > 0) {
		const struct part rest = { .kind = theirs.milli == 1000 ? "whole" : "part",
					   .milli = theirs.milli,
					   .memory_mib = d->memory_mib ? theirs.memory_mib : -1,
					   .cores = cores_of(n, theirs.cores_milli, 0),
					   .foreign = true };

		add_part(a, parts, &rest);
	}
	*free_milli += left;
	gpuq_put(a, v, "index", gpuq_int(a, at));
	gpuq_put(a, v, "uuid", view_word(a, d->uuid));
	gpuq_put(a, v, "product", view_word(a, d->product));
	gpuq_put(a, v, "memory_mib", d->memory_mib ? gpuq_int(a, d->memory_mib) : gpuq_null(a));
	gpuq_put(a, v, "free_milli", gpuq_int(a, left));
	gpuq_put(a, v, "free_memory_mib",
		 d->memory_mib ? gpuq_int(a, out ? 0 : d->memory_mib - memory_mib) : gpuq_null(a));
	gpuq_put(a, v, "used_memory_mib", d->memory_mib ? gpuq_int(a, memory_mib) : gpuq_null(a));
	gpuq_put(a, v, "free_cores", gpuq_int(a, out ? 0 : 100 - cores));
	gpuq_put(a, v, "used_cores", gpuq_int(a, cores));
	gpuq_put(a, v, "jobs", jobs);
	gpuq_put(a, v, "pods", pods);
	gpuq_put(a, v, "parts", parts);
	gpuq_put(a, v, "parts_assumed", gpuq_bool(a, is_assumed(n, at, slot)));
	gpuq_put(a, v, "isolation",
		 view_isolation(a, rides ? GPUQ_ISOLATION_NONE
					 : (int)model_node_isolation(
						   n, n->fact.replicas > 1 || is_divided(parts))));
	gpuq_put(a, v, "state",
		 gpuq_str(a, n->gone           ? "lost"
			     : !d->healthy     ? "unhealthy"
			     : left == 1000    ? "free"
			     : idle == 1000    ? "refused"
			     : left > 0        ? "shared"
			     : jobs && jobs->n ? "allocated"
					       : "foreign"));
	return v;
}

/* True if how the node differs is a reason for which devices of it are not used. */
static bool is_told(const struct node *n)
{
	return n->odd && !*n->fact.note &&
	       (n->n_devices == 0 || n->fact.n_resources < n->told.n_resources);
}

struct gpuq_val *view_node(struct gpuq_arena *a, const struct model *m, const struct node *n,
			   int64_t now_us)
{
	const struct site_reservation *reserved = census_reservation(m, n, now_us);
	const enum gpuq_node_state state = ask_node_state(m, n, node_state(n));
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a), *labels = gpuq_map(a);
	struct census_slot *slots = gpuq_arena_calloc(a, n->n_devices + 1, sizeof(*slots));
	const struct cards cards = cards_of(n);
	const char *refuses = node_short(a, n, now_us);
	struct claimed claimed;
	int64_t free_milli = 0, cpu_milli, memory_bytes, slots_left;
	char cut[400] = "";

	cut_note(n, cut, sizeof(cut));
	if (!slots || !v)
		return NULL;
	census_slots(n, now_us, slots);
	claimed.n = claim_part_list(m, n, a, &claimed.items);
	for (uint32_t i = 0; i < n->n_devices; i++)
		gpuq_add(a, list, view_device(a, m, n, i, &claimed, &slots[i], &free_milli));
	if (!add_cut_cards(a, n, &cards, now_us, list))
		return NULL;
	gpuq_put(a, v, "name", gpuq_str(a, n->name));
	gpuq_put(a, v, "pool", gpuq_str(a, n->pool));
	gpuq_put(a, v, "flavor",
		 n->n_devices || n->fact.n_mig ? gpuq_str(a, n->flavor) : gpuq_null(a));
	gpuq_put(a, v, "state",
		 gpuq_str(a, gpuq_node_state_word(state == GPUQ_NODE_IDLE && reserved
							  ? GPUQ_NODE_RESERVED
							  : state)));
	gpuq_put(a, v, "reservation", view_reservation(a, m, reserved, now_us));
	gpuq_put(a, v, "gpus", gpuq_int(a, n->n_devices + cards.total_milli / 1000));
	if (!n->gone)
		free_milli +=
			cards.cut_milli - cards.taken_milli - cards_refused(n, &cards, now_us);
	gpuq_put(a, v, "free_gpus", view_devices(a, cut_is_under_way(n) ? 0 : free_milli));
	gpuq_put(a, v, "cpu_milli", gpuq_int(a, n->fact.cpu_milli));
	gpuq_put(a, v, "memory_mib", gpuq_int(a, n->fact.memory_bytes >> 20));
	accounting_node_left(n, &cpu_milli, &memory_bytes, &slots_left);
	gpuq_put(a, v, "free_cpu_milli", gpuq_int(a, cpu_milli > 0 ? cpu_milli : 0));
	gpuq_put(a, v, "free_memory_mib", gpuq_int(a, memory_bytes > 0 ? memory_bytes >> 20 : 0));
	gpuq_put(a, v, "foreign_pods", gpuq_int(a, n->foreign_pods));
	gpuq_put(a, v, "foreign_gpus",
		 view_devices(a, n->foreign_gpus_milli + foreign_named_milli(n) +
					 foreign_mig_milli(n)));
	gpuq_put(a, v, "cause", view_word(a, node_cause(n, *cut ? cut : NULL, refuses)));
	gpuq_put(a, v, "note",
		 view_word(a, n->frozen                     ? n->frozen_why
			      : n->drain                    ? n->drain_why
			      : n->ill                      ? n->ill
			      : refuses                     ? refuses
			      : *cut                        ? cut
			      : is_told(n)                  ? n->odd
			      : n->suspect && n->fact.ready ? node_failed_pods
			      : n->unused && !*n->fact.note ? n->unused
							    : n->fact.note));
	gpuq_put(a, v, "avoided_until_time",
		 view_instant(a, n->backoff_until_us > now_us ? n->backoff_until_us : 0));
	gpuq_put(a, v, "drained_by", view_word(a, n->drain_by));
	gpuq_put(a, v, "drained_time", view_instant(a, n->drain_us));
	gpuq_put(a, v, "inventory", n->odd ? gpuq_str(a, n->odd) : gpuq_null(a));
	gpuq_put(a, v, "last_seen", view_instant(a, n->seen_us));
	for (size_t i = 0; i < n->fact.labels.n; i++)
		gpuq_put(a, labels, n->fact.labels.keys[i], gpuq_str(a, n->fact.labels.vals[i]));
	gpuq_put(a, v, "labels", labels);
	gpuq_put(a, v, "sharing", view_word(a, sharing_of(n)));
	gpuq_put(a, v, "served", gpuq_bool(a, !n->closed));
	gpuq_put(a, v, "replicas",
		 n->fact.replicas > 1 ? gpuq_int(a, n->fact.replicas) : gpuq_null(a));
	gpuq_put(a, v, "devices", list);
	gpuq_put(a, v, "unplaced", view_unplaced(a, n));
	if (n->fact.n_mig)
		gpuq_put(a, v, "mig", view_mig(a, n, now_us));
	gpuq_put(a, v, "mig_layout", view_cut(a, n->cut));
	gpuq_put(a, v, "refuses", view_refuses(a, n, NULL, now_us));
	gpuq_put(a, v, "resources", view_resources(a, m, n, now_us));
	return v;
}

struct classes {
	struct gpuq_arena *a;
	struct gpuq_val *list;
};

/* Add a class that is an extended resource as well. */
static bool add_class(void *arg, const struct dra_class *c)
{
	struct classes *l = arg;
	struct gpuq_val *v = *c->extended ? gpuq_map(l->a) : NULL;

	if (!v)
		return true;
	gpuq_put(l->a, v, "name", gpuq_str(l->a, c->name));
	gpuq_put(l->a, v, "resource", gpuq_str(l->a, c->extended));
	gpuq_add(l->a, l->list, v);
	return true;
}

struct gpuq_val *view_node_classes(struct gpuq_arena *a, const struct dra *d)
{
	struct classes l = { a, gpuq_list(a) };

	dra_each_class(d, add_class, &l);
	return l.list;
}

struct gpuq_val *view_node_doubled(struct gpuq_arena *a, const struct model *m)
{
	struct gpuq_val *list = gpuq_list(a);
	struct gpuq_strlist classes = { 0 };

	model_classes(m, a, &classes);
	node_each(m, n) {
		const struct node_fact *f = &n->fact;
		struct gpuq_val *v = node_skips_slices(m, n, &classes) ? gpuq_map(a) : NULL;

		if (!v)
			continue;
		gpuq_put(a, v, "name", gpuq_str(a, n->name));
		gpuq_put(a, v, "resource",
			 gpuq_str(a, f->device && *f->device ? f->device
				     : f->n_mig   ? gpuq_arena_printf(a, GPUQ_RESOURCE_MIG "%s",
								      f->mig[0].profile)
				     : n->backend ? n->backend->pool
						  : ""));
		gpuq_add(a, list, v);
	}
	return list;
}

struct gpuq_val *view_node_unusable(struct gpuq_arena *a, const struct model *m,
				    const struct dra *d)
{
	struct gpuq_val *list = gpuq_list(a);

	node_each(m, n) {
		struct gpuq_val *v = NULL;
		const char *odd = NULL;
		struct dra_at *at;

		if (!n->gone)
			dra_node(d, n->name, a, &at, &odd);
		if (odd)
			v = gpuq_map(a);
		if (!v)
			continue;
		gpuq_put(a, v, "name", gpuq_str(a, n->name));
		gpuq_put(a, v, "why", gpuq_str(a, odd));
		gpuq_add(a, list, v);
	}
	return list;
}
