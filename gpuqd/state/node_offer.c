#include "gpuqd/state/model_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/devices/dra/dra_cards.h"
#include "gpuqd/devices/dra/dra_match.h"
#include "gpuqd/site/inventory.h"
#include "gpuqd/site/product.h"
#include "gpuqd/site/site_find.h"
#include "gpuqd/state/cuts/shared_claim.h"
#include "libgpuq/buf.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/resource.h"

/* The offer of a node as the site has it: resources that the site calls devices, the table of its
 * inventory for nodes that do not report their devices, and replicas that count as devices. The
 * numbers are counted from the node's resources, so that a fact that was settled stays as it is. */

/* The fact being settled, and its arena. */
struct offer {
	struct gpuq_arena *a;
	struct node_fact *f;
	const char *odd; /* how the node and the site differ; NULL = they do not */
	const char *differs; /* of that, numbers that both have; NULL = none */
	uint32_t told; /* replicas of each device, as the node has it */
};

/* Set a label of gpuq's own, or take it away: NULL. The list is the fact's, not yet that of the node. */
static void set_label(struct offer *o, const char *key, const char *value)
{
	const struct gpuq_strmap *had = &o->f->labels;
	struct gpuq_strmap to = { 0 };

	to.keys = gpuq_arena_calloc(o->a, had->n + 1, sizeof(*to.keys));
	to.vals = gpuq_arena_calloc(o->a, had->n + 1, sizeof(*to.vals));
	if (!to.keys || !to.vals)
		abort();
	for (size_t i = 0; i < had->n; i++)
		if (strcmp(had->keys[i], key) != 0) {
			to.keys[to.n] = had->keys[i];
			to.vals[to.n++] = had->vals[i];
		}
	if (value) {
		to.keys[to.n] = key;
		to.vals[to.n++] = value;
	}
	o->f->labels = to;
}

/* Make n devices, of which the first `works` do; those that are there keep what is known of them. */
static void set_devices(struct offer *o, int64_t n, int64_t works, const char *product)
{
	struct device_fact *d = gpuq_arena_calloc(o->a, (size_t)n + 1, sizeof(*d));

	if (!d)
		abort();
	for (int64_t i = 0; i < n; i++) {
		d[i] = (size_t)i < o->f->n_devices ? o->f->devices[i]
						   : (struct device_fact){ "", product, 0, false };
		if (o->f->n_devices && (size_t)i >= o->f->n_devices)
			d[i].memory_mib = o->f->devices[0].memory_mib;
		d[i].healthy = i < works;
	}
	if ((size_t)n != o->f->n_devices)
		o->f->links = o->f->numa = NULL;
	o->f->devices = d;
	o->f->n_devices = (size_t)n;
}

static int64_t at_most(int64_t n, int64_t most)
{
	return n < most ? n : most;
}

static int64_t offered(const struct offer *o, const char *resource)
{
	return gpuq_amounts_get(o->f->resources, o->f->n_resources, resource);
}

static void name_as(struct offer *o, const char *resource)
{
	o->f->device = resource;
	o->f->replicas = o->f->slots = 0;
	o->f->n_devices = 0;
	set_devices(o, at_most(offered(o, resource), GPUQ_GPUS_PER_POD_MAX), INT64_MAX, resource);
	set_label(o, SHARE_LABEL, "whole");
	set_label(o, SHARE_DEVICES, resource);
}

/* Return the pool of a node with these labels; NULL = it has none. */
static const struct site_pool *pool_of(const struct site *s, const struct gpuq_strmap *labels)
{
	site_each(site_pool, s->pools, p)
		if (inventory_selects(&p->selector, labels))
			return p;
	return NULL;
}

/* Return the resource that the flavor of the node's pool calls its devices; NULL = it calls none so. */
static const char *pool_resource(const struct site *s, const struct gpuq_strmap *labels)
{
	const struct site_pool *p = pool_of(s, labels);
	const char *flavor = p ? p->flavor : NULL;

	site_each(site_flavor, s->flavors, fl)
		if (flavor && strcmp(fl->name, flavor) == 0)
			return fl->resource;
	return NULL;
}

/* True if the resource of the devices is NVIDIA's, or none is told: of others the adapter knows the resource alone. */
static bool is_nvidia(const char *device)
{
	return !device || !*device || inventory_names_nvidia(device);
}

/* Take the resource that the flavor of the node's pool calls its devices; on a node without any other, the
 * first one of any flavor. */
static void name_devices(struct offer *o, const struct site *s)
{
	const bool named = o->f->device && *o->f->device, none = !named && !o->f->n_devices;
	const char *own = pool_resource(s, &o->f->labels);

	if (o->f->n_mig)
		return;
	if (own && !is_nvidia(own) && offered(o, own) > 0) {
		if (none || (named && strcmp(o->f->device, own) != 0))
			name_as(o, own);
		return;
	}
	site_each(site_flavor, s->flavors, fl)
		if (none && fl->resource && offered(o, fl->resource) > 0) {
			name_as(o, fl->resource);
			return;
		}
}

/* The devices of a node have one name: a pod that requests another one would be given those of the first. The
 * others are not counted, so that nothing is placed by them. */
static void leave_others(struct offer *o, const struct site *s)
{
	const struct gpuq_amount *had = o->f->resources;
	struct gpuq_amount *kept;
	size_t n = 0;

	if (!o->f->device || !*o->f->device || o->f->n_resources == 0)
		return;
	kept = gpuq_arena_calloc(o->a, o->f->n_resources, sizeof(*kept));
	if (!kept)
		abort();
	for (size_t i = 0; i < o->f->n_resources; i++) {
		if (strcmp(had[i].name, o->f->device) == 0 || !inventory_is_device(s, had[i].name))
			kept[n++] = had[i];
		else if (!o->odd)
			o->odd = gpuq_arena_printf(
				o->a,
				"%.80s is offered beside %.80s: devices of one name are used on a "
				"node, those of its pool's flavor or else the first",
				had[i].name, o->f->device);
	}
	o->f->resources = kept;
	o->f->n_resources = n;
}

/* True if that is no product, but the lack of one. */
static bool is_unnamed(const char *device, const char *product)
{
	return !*product || (!is_nvidia(device) && strcmp(product, device) == 0);
}

/* Take the product of devices that are not NVIDIA's from the labels of their vendor or cloud. */
static void name_products(struct offer *o)
{
	int64_t mib;
	const char *product = product_of_others(&o->f->labels, &mib);
	struct device_fact *d;

	if (is_nvidia(o->f->device) || o->f->n_devices == 0 || !*product)
		return;
	d = gpuq_arena_calloc(o->a, o->f->n_devices, sizeof(*d));
	if (!d)
		abort();
	for (size_t i = 0; i < o->f->n_devices; i++) {
		d[i] = o->f->devices[i];
		if (is_unnamed(o->f->device, d[i].product))
			d[i].product = product;
		if (d[i].memory_mib == 0 && mib > 0 && mib < (1 << 30))
			d[i].memory_mib = mib;
	}
	o->f->devices = d;
}

/* Return the memory of a device in MiB; 0 = not published. */
static int64_t memory_of(const struct dra_at *at)
{
	const struct dra_word *w = dra_own_word(at, true, "memory");

	return w ? w->number / 1000 >> 20 : 0;
}

static const char *attribute_of(const struct dra_at *at, const char *name)
{
	const struct dra_word *w = dra_own_word(at, false, name);

	return w && w->type == GPUQ_CEL_STRING ? w->text : "";
}

/* Make a device of a card. Where the driver lists its instances alone, the first stands for it. */
static struct device_fact fact_of(const struct dra_at *cards, size_t n, size_t card,
				  const struct dra_at *all, size_t n_all)
{
	const char *uuid = attribute_of(&cards[card], "uuid"), *parent = dra_parent(&cards[card]);
	struct device_fact d = { *parent ? parent
				 : *uuid ? uuid
					 : cards[card].device->name,
				 attribute_of(&cards[card], "productName"), 0, false };

	if (!*parent) {
		d.memory_mib = memory_of(&cards[card]);
		d.healthy = dra_is_well(cards[card].device);
		return d;
	}
	for (size_t i = 0; i < n_all; i++)
		if (dra_card_of(cards, n, all[i].slice, all[i].device) == card) {
			d.memory_mib += memory_of(&all[i]);
			d.healthy |= dra_is_well(all[i].device);
		}
	return d;
}

/* Take devices of ResourceSlices, on a node whose kubelet offers none. */
static void take_slices(struct offer *o, const struct model *m)
{
	struct gpuq_strlist classes = { 0 };
	struct device_fact *d;
	struct dra_at *all, *cards;
	const char *odd;
	size_t n_all, n;

	if ((o->f->device && *o->f->device) || o->f->n_devices || o->f->n_mig)
		return;
	model_classes(m, o->a, &classes);
	n_all = dra_node(objects_dra(m->objects), o->f->name, o->a, &all, &odd);
	n = dra_cards_among(objects_dra(m->objects), all, n_all, &classes, o->a, &cards);
	if (odd)
		o->odd = odd;
	if (n == 0)
		return;
	d = gpuq_arena_calloc(o->a, n, sizeof(*d));
	if (!d)
		abort();
	for (size_t i = 0; i < n; i++)
		d[i] = fact_of(cards, n, i, all, n_all);
	o->f->devices = d;
	o->f->n_devices = n;
	set_label(o, SHARE_LABEL, "dra");
}

/* Note how both differ, beside what differs already.
 *
 * All numbers are told, in the order in which they are compared: an operator who corrects one of them in the inventory
 * would be told of the next one only then.
 *
 * Anything else that is wrong with the node is told alone: as long as it is, its devices are not used, or not those of
 * that name, and a number of the site makes no difference.
 *
 * Sharing of the devices that count themselves has its own words: see leave_cards().
 *
 * The text is what gpuq doctor and `inventory` of gpuq nodes --json print. */
static void differ(struct offer *o, const char *what, int64_t site, int64_t node)
{
	/* Each of its devices has the same memory. */
	if ((o->odd && !o->differs) || (o->differs && strstr(o->differs, what)))
		return;
	o->differs = gpuq_arena_printf(o->a, "%s%s%s %" PRId64 ", of the node %" PRId64,
				       o->differs ? o->differs : "", o->differs ? "; " : "", what,
				       site, node);
	if (o->differs)
		o->odd = gpuq_arena_printf(
			o->a, "inventory of the site: %s: the smaller number counts", o->differs);
}

/* Return how many cards feature discovery has seen; 0 = it does not say. */
static int64_t cards_seen(const struct gpuq_strmap *labels)
{
	const char *text = gpuq_strmap_text(labels, "nvidia.com/gpu.count");
	const size_t len = strlen(text);

	return len < 10 && strspn(text, "0123456789") == len ? strtoll(text, NULL, 10) : 0;
}

/* Beside its label, which is there for shared devices alone, the number of cards tells it.
 * Return in how many replicas the node says that it offers each device: in one, where it offers as many as it
 * has cards. 0 = it does not say. */
static int64_t replicas_told(const struct offer *o, int64_t offered)
{
	if (o->f->replicas > 1)
		return o->f->replicas;
	return o->f->n_devices && strcmp(o->f->device, GPUQ_RESOURCE_GPU) == 0 &&
			       cards_seen(&o->f->labels) == offered
		       ? 1
		       : 0;
}

/* Number of devices: offered of the resource, in r replicas each. The node may know of fewer.
 * The smaller one of all three numbers, replicas, cards and memory, counts, each by itself: with fewer replicas to a card
 * the same offer would make more cards than there are. Those that the node has keep their product. */
static void count_cards(struct offer *o, const struct site_inventory *i, int64_t offered,
			int64_t healthy)
{
	const int64_t said = replicas_told(o, offered);
	const int64_t cards =
		said && o->f->n_devices ? (int64_t)o->f->n_devices : cards_seen(&o->f->labels);
	int64_t r = said ? said : 1, n, works;

	if (i->replicas && said && i->replicas != said)
		differ(o, "replicas", i->replicas, said);
	if (i->replicas)
		r = said ? at_most(said, i->replicas) : i->replicas;
	n = offered / r;
	works = healthy / r;
	if (r > 1 && cards && is_nvidia(o->f->device))
		n = at_most(n, cards);
	if (i->cards && i->cards != n && n)
		differ(o, "cards", i->cards, n);
	if (i->cards)
		n = at_most(n, i->cards);
	o->f->replicas = (uint32_t)r;
	if (r > 1 && said <= 1)
		set_label(o, SHARE_LABEL, "time-slicing");
	set_devices(o, at_most(n, GPUQ_GPUS_PER_POD_MAX), at_most(works, n), "");
}

/* Return the backend if it counts its cards itself, and does not offer them by number; NULL = it is another. */
static const struct backend *counts_cards(const struct offer *o)
{
	const struct backend *b = backend_of(gpuq_strmap_text(&o->f->labels, SHARE_LABEL));

	return b && (b->unit_mib > 0 || strcmp(b->word, "dra") == 0) ? b : NULL;
}

/* Leave the first cards of such a node, as many as the site says. A backend that chooses from all of them by
 * itself has no fewer. */
static void leave_cards(struct offer *o, const struct backend *b, const struct site_inventory *i)
{
	const int64_t n = (int64_t)o->f->n_devices;

	if (i->replicas > 1 || (i->cards && i->cards != n && !b->decided)) {
		o->odd = gpuq_arena_printf(
			o->a, "inventory of the site: %s %" PRId64 ": ignored: %s %s",
			i->replicas > 1 ? "replicas" : "cards",
			i->replicas > 1 ? i->replicas : i->cards, b->pool,
			i->replicas > 1 ? "has none" : "gives all cards of the node");
		return;
	}
	if (i->cards && i->cards != n)
		differ(o, "cards", i->cards, n);
	if (i->cards && i->cards < n) {
		o->f->n_devices = (size_t)i->cards;
		o->f->links = o->f->numa = NULL;
	}
}

/* Fill in what the node does not report. */
static void take_inventory(struct offer *o, const struct site_inventory *i)
{
	const int64_t healthy =
		o->f->device && *o->f->device
			? gpuq_amounts_get(o->f->resources, o->f->n_resources, o->f->device)
			: 0;
	const int64_t r = o->f->replicas > 1 ? o->f->replicas : 1;
	const int64_t there = (int64_t)o->f->n_devices * r;
	const struct backend *b = counts_cards(o);
	struct device_fact *d;

	if (b && o->f->n_devices)
		leave_cards(o, b, i);
	/* A resource of renamed replicas is a part of a device: of which is known now. */
	else if (healthy > 0 && o->f->n_mig == 0 && (o->f->n_devices || i->replicas))
		count_cards(o, i, there > healthy ? there : healthy, healthy);
	d = (struct device_fact *)(uintptr_t)o->f->devices;
	if (o->f->n_devices && (i->product || i->memory_bytes)) {
		d = gpuq_arena_calloc(o->a, o->f->n_devices, sizeof(*d));
		if (!d)
			abort();
		memcpy(d, o->f->devices, o->f->n_devices * sizeof(*d));
		o->f->devices = d;
	}
	for (size_t k = 0; k < o->f->n_devices; k++) {
		const int64_t mib = i->memory_bytes >> 20;

		if (i->product && is_unnamed(o->f->device, d[k].product))
			d[k].product = i->product;
		if (mib && d[k].memory_mib && d[k].memory_mib != mib)
			differ(o, "memory in MiB", mib, d[k].memory_mib);
		if (mib)
			d[k].memory_mib = d[k].memory_mib ? at_most(d[k].memory_mib, mib) : mib;
	}
}

/* Where devices are offered in replicas, and neither the node nor the site says in how many, none is used. */
static void count_none(struct offer *o)
{
	const char *device = o->f->device,
		   *said = gpuq_strmap_text(&o->f->labels, "nvidia.com/gpu.replicas");

	for (size_t i = 0; !o->odd && i < o->f->n_mig; i++)
		if (gpuq_profile_is_any(o->f->mig[i].profile))
			o->odd = "its MIG instances are shared, and no label tells in how many "
				 "replicas: none is used";
	if (!o->odd && device && o->f->n_devices == 0 && o->f->replicas > 1 && o->f->ready &&
	    offered(o, device) > 0)
		o->odd = gpuq_arena_printf(
			o->a,
			"it offers %" PRId64 " replicas, and %s%.20s says that one device has "
			"more: none is used",
			offered(o, device),
			o->told > 1 ? "nvidia.com/gpu.replicas=" : "inventory of the site",
			o->told > 1 ? said : "");
	if (!o->odd && device && o->f->n_devices == 0 && o->f->n_mig == 0 && o->f->ready &&
	    (strcmp(device, GPUQ_RESOURCE_GPU) == 0 || strcmp(device, GPUQ_RESOURCE_SHARED) == 0) &&
	    gpuq_amounts_get(o->f->resources, o->f->n_resources, device) > 0)
		o->odd = "its devices are shared, and label nvidia.com/gpu.replicas does not say "
			 "in how "
			 "many replicas: none is used";
}

/* Use none of its devices, and say why: the node goes on to serve jobs without devices, and those that request its
 * instances. It is still counted until their end how much pods hold of them.
 * The same is done whatever the labels contradict, so that it is known what such a node gives: nothing. */
static void use_none(struct offer *o, const char *why)
{
	o->odd = why;
	o->f->replicas = 0;
	set_devices(o, 0, 0, "");
	set_label(o, SHARE_LABEL, NULL);
}

/* More devices than there are cards are replicas, in how many nothing tells: a job of whole devices would
 * have parts of them. */
static void count_no_more(struct offer *o)
{
	const int64_t seen = cards_seen(&o->f->labels);
	int64_t n = (int64_t)o->f->n_devices;

	if (!o->f->device || strcmp(o->f->device, GPUQ_RESOURCE_GPU) != 0 || o->f->n_mig ||
	    o->f->replicas > 1 || o->f->slots || seen == 0 || n == 0)
		return;
	/* The site may have fewer of them: those would be parts of a card all the same. */
	n = offered(o, o->f->device) > n ? offered(o, o->f->device) : n;
	if (n > seen)
		use_none(o, gpuq_arena_printf(o->a,
					      "it offers %" PRId64
					      " nvidia.com/gpu, and nvidia.com/gpu.count says "
					      "%" PRId64 " cards: none is used",
					      n, seen));
}

/* Likewise more replicas than so many cards have: which of both labels is wrong cannot be told, and with the smaller
 * number the rest of the replicas would be shown as free for ever. Fewer are believed: some cards may be sick, or not
 * shared. */
static void count_no_more_replicas(struct offer *o)
{
	const int64_t seen = cards_seen(&o->f->labels),
		      n = o->f->device ? offered(o, o->f->device) : 0;

	if (o->told <= 1 || seen == 0 || o->f->n_mig || !is_nvidia(o->f->device) ||
	    n <= seen * o->told)
		return;
	use_none(o, gpuq_arena_printf(o->a,
				      "it offers %" PRId64 " %s, and nvidia.com/gpu.count=%" PRId64
				      " with nvidia.com/gpu.replicas=%" PRIu32
				      " has fewer: none is used",
				      n, o->f->device, seen, o->told));
}

/* Devices that may be instances, although they have the name of whole devices, or that are cut and cannot be used so:
 * labels of MIG contradict one another.
 *
 * While the MIG manager is at work, or after it failed, the cards are what they were: only its success tells that they
 * are cut. Instances that have names of their own are not doubted. */
static void count_no_cut(struct offer *o)
{
	const struct gpuq_strmap *labels = &o->f->labels;
	const char *product = gpuq_strmap_text(labels, "nvidia.com/gpu.product"),
		   *strategy = gpuq_strmap_text(labels, "nvidia.com/mig.strategy"),
		   *layout = gpuq_strmap_text(labels, "nvidia.com/mig.config"),
		   *state = gpuq_strmap_text(labels, "nvidia.com/mig.config.state");

	if (o->f->n_devices == 0 || !o->f->device || !inventory_names_nvidia(o->f->device) ||
	    counts_cards(o))
		return;
	if (strstr(product, "-MIG-"))
		use_none(o, gpuq_arena_printf(o->a,
					      "nvidia.com/gpu.product=%.60s names MIG instances, "
					      "and nvidia.com/mig.strategy=%.20s does not offer "
					      "them as %s: none is used",
					      product, strategy, o->f->device));
	else if (*layout && strcmp(layout, "all-disabled") != 0 && strcmp(state, "success") == 0 &&
		 strcmp(strategy, "none") == 0)
		use_none(o,
			 gpuq_arena_printf(o->a,
					   "its cards are cut (nvidia.com/mig.config=%.60s), and "
					   "nvidia.com/mig.strategy is none: none is used",
					   layout));
}

/* Count each replica as a device.
 *
 * The site says so for a whole pool, and takes it upon itself that such devices are no more apart than replicas are.
 *
 * Devices of which none is used stay none: a pool cannot tell what labels contradict. */
static void count_replicas(struct offer *o)
{
	const int64_t n = (int64_t)o->f->n_devices * o->f->replicas;
	int64_t works = 0;

	for (size_t i = 0; i < o->f->n_devices; i++)
		works += o->f->devices[i].healthy ? o->f->replicas : 0;
	set_devices(o, at_most(n, GPUQ_GPUS_PER_POD_MAX), works, o->f->devices[0].product);
	o->f->replicas = 1;
	set_label(o, SHARE_LABEL, "whole");
}

bool node_is_of_claims(const struct node *n)
{
	return n->backend && strcmp(n->backend->word, "dra") == 0;
}

/* Add a part of a card to what is held of it. */
static void hold(struct foreign_use *to, int64_t milli, int64_t bytes)
{
	const int64_t sum = to->milli + milli < 1000 ? to->milli + milli : 1000;

	*to = (struct foreign_use){ (uint32_t)sum, (uint32_t)sum,
				    bytes / 1000 * sum + bytes % 1000 * sum / 1000 };
}

bool node_count_claims(const struct model *m, struct node *n)
{
	const struct dra *d = objects_dra(m->objects);
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_strlist classes;
	struct dra_at *at, *cards;
	struct foreign_use *held;
	bool changed = false;
	const char *odd;
	size_t n_at, n_cards;

	if (!node_is_of_claims(n))
		return false;
	held = gpuq_arena_calloc(&a, (size_t)n->n_devices + 1, sizeof(*held));
	model_classes(m, &a, &classes);
	n_at = dra_node(d, n->name, &a, &at, &odd);
	n_cards = dra_cards_among(d, at, n_at, &classes, &a, &cards);
	for (size_t i = 0; held && i < n_at; i++) {
		size_t card;

		if (!at[i].used || !shared_claim_is_foreign(m, at[i].used))
			continue;
		card = dra_card_of(cards, n_cards, at[i].slice, at[i].device);
		if (card < n_cards && card < n->n_devices)
			hold(&held[card], dra_part_milli(cards, n_cards, &at[i]),
			     n->devices[card].memory_mib << 20);
	}
	for (uint32_t i = 0; held && i < n->n_devices; i++) {
		struct foreign_use *now = &n->foreign_on[i];

		changed |= held[i].milli != now->milli || held[i].bytes != now->bytes;
		*now = held[i];
	}
	gpuq_arena_done(&a);
	return changed;
}

bool node_has_class(const struct model *m, const struct node *n, const char *class_)
{
	const struct dra *d = objects_dra(m->objects);
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_strlist classes;
	struct dra_at *cards;
	bool selects = false;
	const char *odd;

	if (!node_is_of_claims(n))
		return false;
	model_classes(m, &a, &classes);
	if (dra_cards(d, n->name, &classes, &a, &cards, &odd) > 0)
		dra_class_selects(d, class_, cards, 1, &a, &selects);
	gpuq_arena_done(&a);
	return selects;
}

bool node_skips_slices(const struct model *m, const struct node *n,
		       const struct gpuq_strlist *classes)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra_at *cards;
	const char *odd;
	bool skips;

	if (n->gone || node_is_of_claims(n))
		return false;
	skips = dra_cards(objects_dra(m->objects), n->name, classes, &a, &cards, &odd) > 0;
	gpuq_arena_done(&a);
	return skips;
}

const char *node_offer(const struct model *m, const struct node_fact *told, struct gpuq_arena *a,
		       struct node_fact *out)
{
	struct offer o = { .a = a, .f = out, .told = told->replicas };
	const struct site_inventory *i;
	const struct site_pool *p;
	const struct backend *b;

	*out = *told;
	if (!m->site)
		return NULL;
	name_devices(&o, m->site);
	leave_others(&o, m->site);
	take_slices(&o, m);
	name_products(&o);
	i = inventory_of(m->site, &told->labels);
	if (i)
		take_inventory(&o, i);
	count_none(&o);
	p = pool_of(m->site, &told->labels);
	if (!(i && i->replicas) && !(p && p->replicas_as_gpus))
		count_no_more(&o);
	count_no_more_replicas(&o);
	count_no_cut(&o);
	b = backend_of(gpuq_strmap_text(&out->labels, SHARE_LABEL));
	if (p && p->replicas_as_gpus && out->replicas > 1 && out->n_devices && b && b->by_replica)
		count_replicas(&o);
	return o.odd;
}

/* ---- the flavor and the kind of the devices ---- */

/* True if the product, or the name of the resource, is what the flavor matches. */
static bool is_product(const struct node *n, const struct site_flavor *f, const char *product)
{
	return !f->match.product || site_glob(f->match.product, product) ||
	       (!is_nvidia(n->fact.device) && site_glob(f->match.product, n->fact.device));
}

bool node_is_of_resource(const struct node *n, const struct site_flavor *f, const char *product,
			 int64_t memory_mib)
{
	if (!f->resource || !n->fact.device || strcmp(f->resource, n->fact.device) != 0)
		return false;
	/* A product or memory that is not known excludes none: the first flavor of the resource has it. */
	return (is_unnamed(n->fact.device, product) || is_product(n, f, product)) &&
	       (memory_mib == 0 || f->match.memory_min_bytes <= memory_mib << 20);
}

bool node_is_of_match(const struct node *n, const struct site_flavor *f, const char *product,
		      int64_t memory_mib)
{
	/* NVIDIA's have several names: of shared devices, of instances, and none at all. */
	return (!f->resource || (is_nvidia(f->resource) && is_nvidia(n->fact.device))) &&
	       is_product(n, f, product) && f->match.memory_min_bytes <= memory_mib << 20;
}

const char *node_kind_of(struct model *m, const struct node *n)
{
	char kind[PRODUCT_BYTES];
	int64_t mib;
	const char *product = product_of_labels(&n->fact.labels, &mib);

	if (n->n_devices == 0 && n->fact.n_mig == 0)
		return "";
	if (n->n_devices && *n->devices[0].product)
		product = n->devices[0].product;
	if (n->n_devices && n->devices[0].memory_mib)
		mib = n->devices[0].memory_mib;
	product_kind(product, mib, kind);
	return model_intern(m, kind);
}

bool node_is_of(const struct model *m, const struct node *n, const struct gpuq_strlist *flavors)
{
	if (flavors->n == 0 || gpuq_strlist_has(flavors, n->flavor))
		return true;
	for (size_t i = 0; m->site->flavors.n == 0 && i < flavors->n; i++)
		if (product_is(n->kind, flavors->items[i]))
			return true;
	return false;
}

/* ---- units of memory ---- */

/* A pod requests units, of which only its node tells how large they are: its annotations do so as well, but may be
 * absent or another's word. All of them are of one device, which a plugin gives to one container, so that more than one
 * device has are an amount of the node. */
struct foreign node_offer_units(const struct node *n, const struct foreign *f)
{
	const int64_t whole = n->n_devices ? n->devices[0].memory_mib : 0;
	const int64_t all = whole * (int64_t)n->n_devices;
	struct foreign in = *f;
	int64_t mib;

	if (!n->backend || !n->backend->by_memory || f->device_units <= 0 || whole <= 0) {
		/* Units alone are nothing on a node without. */
		if (f->gpus_milli <= 0)
			in.n_devices = 0;
		return in;
	}
	mib = f->device_units < all / n->backend->unit_mib ? f->device_units * n->backend->unit_mib
							   : all;
	/* One device, whose memory is what is held of it; which one may not be known. */
	in.device_bytes = mib << 20;
	in.gpus_milli = mib * 1000 / whole > 0 ? mib * 1000 / whole : 1;
	/* More than there is of one. */
	if (mib > whole)
		in.n_devices = 0;
	return in;
}

/* ---- cards that are listed as unhealthy ---- */

/* The list is what a person wrote: "0,2". A word that is no card of the node closes none, and is named, since a card
 * that was meant would otherwise get pods without a word. */

#define LISTED_MAX 200 /* bytes of words that are named */
#define BETWEEN ", \t\r\n;"

/* Return the number that the word is; -1 = it is none, or a large one. */
static int64_t number_of(const char *word, size_t len)
{
	return len < 6 && strspn(word, "0123456789") >= len ? strtoll(word, NULL, 10) : -1;
}

bool node_offer_lists(const char *list, uint32_t card)
{
	size_t len;

	for (list += strspn(list, BETWEEN); *list; list += len, list += strspn(list, BETWEEN)) {
		len = strcspn(list, BETWEEN);
		if (number_of(list, len) == card)
			return true;
	}
	return false;
}

const char *node_offer_listed(const char *node, const char *list, size_t n_devices,
			      struct gpuq_arena *a)
{
	struct gpuq_buf cards = GPUQ_BUF_INIT, others = GPUQ_BUF_INIT;
	const char *out;
	size_t len;

	for (list += strspn(list, BETWEEN); *list; list += len, list += strspn(list, BETWEEN)) {
		struct gpuq_buf *to;

		/* Long lists are cut: the note is one line. */
		len = strcspn(list, BETWEEN);
		to = number_of(list, len) < 0 || number_of(list, len) >= (int64_t)n_devices
			     ? &others
			     : &cards;
		if (to->len < LISTED_MAX)
			gpuq_buf_printf(to, "%s%.*s", to->len ? ", " : "", len < 40 ? (int)len : 40,
					list);
	}
	out = cards.len + others.len == 0
		      ? NULL
		      : gpuq_arena_printf(a,
					  "ConfigMap " OBJECT_UNHEALTHY_NAMESPACE
					  "/" OBJECT_UNHEALTHY_PREFIX "%s lists %s%s%s%s",
					  node, cards.len ? "unhealthy cards: " : "",
					  gpuq_buf_str(&cards),
					  !others.len ? ""
					  : cards.len ? "; not a card of the node: "
						      : "what is not a card of the node: ",
					  gpuq_buf_str(&others));
	gpuq_buf_done(&cards);
	gpuq_buf_done(&others);
	return out;
}
