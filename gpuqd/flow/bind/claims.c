#include "gpuqd/flow/bind/claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/devices/dra/dra_choice.h"
#include "gpuqd/devices/dra/dra_weights.h"
#include "gpuqd/state/record/request.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

#define SWEEP_US (200 * INT64_C(1000))
#define AGAIN_US (5 * GPUQ_US_PER_S)
#define FLIGHT_US (30 * GPUQ_US_PER_S) /* a write that is not seen by then is not coming */

/* An allocation that was asked for, until the claim is seen in another version. */
struct flight {
	UT_hash_handle hh;
	int64_t since_us; /* monotonic */
	char *version;
	char **devices; /* "driver/pool/device" */
	size_t n_devices;
	char key[]; /* namespace and name */
};

struct claims {
	struct journal *j;
	struct loop *l;
	struct cluster *cluster;
	struct flight *flights;
	struct loop_timer *timer;
	bool soon; /* the timer is a short one */
};

static const struct dra *ledger(const struct claims *c)
{
	return objects_dra(journal_model(c->j)->objects);
}

static bool may_act(const struct claims *c)
{
	return c->cluster && c->cluster->ops->claim_ask && !recovery_waits(journal_model(c->j)) &&
	       !model_is_fenced(journal_model(c->j));
}

/* ---- what is under way ---- */

static void flight_drop(struct claims *c, struct flight *f)
{
	HASH_DEL(c->flights, f);
	for (size_t i = 0; i < f->n_devices; i++)
		free(f->devices[i]);
	free(f->devices);
	free(f->version);
	free(f);
}

static void key_of(const struct dra_claim *claim, char key[600])
{
	snprintf(key, 600, "%s/%s", claim->namespace_, claim->name);
}

static void device_key(const char *driver, const char *pool, const char *device, char key[600])
{
	snprintf(key, 600, "%s/%s/%s", driver, pool, device);
}

static void flight_add(struct claims *c, const struct dra_claim *claim,
		       const struct dra_pick *picks, size_t n)
{
	struct flight *f = NULL;
	char key[600];

	key_of(claim, key);
	HASH_FIND_STR(c->flights, key, f);
	if (f)
		flight_drop(c, f);
	f = calloc(1, sizeof(*f) + strlen(key) + 1);
	if (!f)
		abort();
	memcpy(f->key, key, strlen(key) + 1);
	f->since_us = loop_mono_us(c->l);
	f->version = strdup(claim->version);
	f->devices = calloc(n + 1, sizeof(*f->devices));
	if (!f->version || !f->devices)
		abort();
	for (size_t i = 0; i < n; i++) {
		device_key(picks[i].slice->driver, picks[i].slice->pool, picks[i].device->name,
			   key);
		f->devices[f->n_devices] = strdup(key);
		if (!f->devices[f->n_devices++])
			abort();
	}
	HASH_ADD_STR(c->flights, key, f);
}

/* Forget what has been seen, or will not come. */
static void flights_land(struct claims *c)
{
	struct flight *f, *next;

	HASH_ITER(hh, c->flights, f, next) {
		char *name = strchr(f->key, '/');
		const struct dra_claim *claim;

		*name = '\0';
		claim = dra_claim(ledger(c), f->key, name + 1);
		*name = '/';
		if (!claim || strcmp(claim->version, f->version) != 0 ||
		    loop_mono_us(c->l) - f->since_us > FLIGHT_US)
			flight_drop(c, f);
	}
}

static bool flies(const struct claims *c, const struct dra_claim *claim)
{
	struct flight *f = NULL;
	char key[600];

	key_of(claim, key);
	HASH_FIND_STR(c->flights, key, f);
	return f != NULL;
}

static bool taken_in_flight(const struct claims *c, const struct dra_at *at)
{
	char key[600];

	device_key(at->slice->driver, at->slice->pool, at->device->name, key);
	for (const struct flight *f = c->flights; f; f = f->hh.next)
		for (size_t i = 0; i < f->n_devices; i++)
			if (strcmp(f->devices[i], key) == 0)
				return true;
	return false;
}

/* ---- the claims of a pod ---- */

/* One of them, as far as it is known. */
struct one {
	const struct gpuq_claim *is;
	const struct dra_claim *seen; /* NULL = it is not there yet */
	char name[300];
};

static bool has_consumer(const struct dra_claim *c, const char *uid)
{
	return gpuq_strlist_has(&c->reserved, uid);
}

static void ask_for(struct claims *c, enum claim_step step, const struct pod_ref *ref,
		    const struct one *o, const struct dra_pick *picks, size_t n_picks)
{
	const struct claim_ask ask = { .step = step,
				       .namespace_ = ref->namespace_,
				       .name = o->name,
				       .claim = o->seen,
				       .pod = ref,
				       .dra = ledger(c),
				       .made_of = o->is,
				       .picks = picks,
				       .n_picks = n_picks };

	c->cluster->ops->claim_ask(c->cluster, &ask);
}

static void find(const struct claims *c, const struct pod_ref *ref, const struct gpuq_claim *is,
		 struct one *o)
{
	const struct dra *d = ledger(c);

	*o = (struct one){ .is = is };
	if (is->claim)
		snprintf(o->name, sizeof(o->name), "%s", is->claim);
	else
		snprintf(o->name, sizeof(o->name), "%s-%s", ref->name, is->name);
	if (is->template_)
		o->seen = *ref->uid ? dra_claim_of(d, ref->uid, is->name) : NULL;
	else
		o->seen = dra_claim(
			d, objects_namespace(journal_model(c->j)->objects, ref->namespace_),
			o->name);
	/* One of that name which is another pod's is in the way until it has gone. */
	if (o->seen && !is->claim && strcmp(o->seen->owner, ref->uid) != 0)
		o->seen = NULL;
	if (o->seen && is->template_)
		snprintf(o->name, sizeof(o->name), "%s", o->seen->name);
}

/* Leave the claims the alternatives that the pod was placed with. False: they have no such any more, they are not what
 * it is charged, or one of them is allocated with another one. */
static bool choose(const struct claims *c, const struct pod *p, const struct one *all, size_t n,
		   struct gpuq_arena *a, struct dra_spec *chosen, const char **which)
{
	const struct dra_spec *specs[GPUQ_CLAIMS_MAX];
	struct gpuq_strlist classes;
	int64_t charge;
	bool shares = false;

	for (size_t i = 0; i < n; i++)
		specs[i] = &all[i].seen->spec;
	model_classes(journal_model(c->j), a, &classes);
	*which = all[0].name;
	if (!dra_choose(specs, n, p->choice, a, chosen))
		return false;
	for (size_t i = 0; i < n; i++) {
		*which = all[i].name;
		if (all[i].seen->allocated && !dra_chosen(all[i].seen, &chosen[i]))
			return false;
		shares |= all[i].is->claim != NULL;
	}
	charge = dra_charge_all(ledger(c), chosen, n, &classes);
	return p->choice.first == 0 || shares || charge == p->gpus_milli;
}

static bool is_planned(const struct pod *p, size_t card)
{
	for (uint32_t i = 0; i < p->n_devices; i++)
		if (p->devices[i] == card)
			return true;
	return false;
}

/* Choose devices for all that are to be allocated. Where cards have parts, these are of the planned cards if they can be:
 * another may be planned for a pod that is to have parts of it, or all. A pod that is charged a part of a card has its
 * parts of one. */
static bool match(const struct claims *c, const struct pod *p, const struct dra_at *at, size_t n_at,
		  const bool *taken, const struct dra_spec *const *specs, size_t n_specs,
		  struct gpuq_arena *a, struct dra_pick *picks, size_t *n_picks)
{
	const struct model *m = journal_model(c->j);
	const bool part = p->n_devices == 1 && p->gpus_milli < 1000;
	struct gpuq_err why = GPUQ_ERR_INIT;
	struct gpuq_strlist classes;
	struct dra_at *cards;
	size_t n_cards, planned;
	bool *out;

	if (!part && (p->n_devices == 0 || !dra_weights(ledger(c))))
		return dra_match(ledger(c), at, n_at, taken, specs, n_specs, a, picks, n_picks,
				 &why) == DRA_FITS;
	model_classes(m, a, &classes);
	n_cards = dra_cards_among(ledger(c), at, n_at, &classes, a, &cards);
	out = gpuq_arena_calloc(a, n_at + 1, sizeof(*out));
	planned = p->devices[0] < n_cards ? p->devices[0] : 0;
	for (size_t k = 0; out && k < n_cards; k++) {
		const size_t card = (planned + k) % n_cards;

		for (size_t i = 0; i < n_at; i++) {
			const size_t of = dra_card_of(cards, n_cards, at[i].slice, at[i].device);

			out[i] = taken[i] ||
				 (of < n_cards && (part ? of != card : !is_planned(p, of)));
		}
		if (dra_match(ledger(c), at, n_at, out, specs, n_specs, a, picks, n_picks, &why) ==
		    DRA_FITS)
			return true;
		if (!part)
			break;
	}
	return !part && dra_match(ledger(c), at, n_at, taken, specs, n_specs, a, picks, n_picks,
				  &why) == DRA_FITS;
}

/* Allocate those that are not: all of them at once is decided, each is one write. */
static enum progress allocate(struct claims *c, const struct pod *p, const struct pod_ref *ref,
			      struct one *all, const struct dra_spec *chosen, size_t n,
			      struct gpuq_arena *a, bool *asked, const char **which)
{
	const struct dra_spec *specs[GPUQ_CLAIMS_MAX];
	size_t of[GPUQ_CLAIMS_MAX], n_specs = 0, n_picks, n_at;
	struct dra_pick *picks;
	struct dra_at *at;
	const char *odd;
	bool *taken;

	for (size_t i = 0; i < n; i++)
		if (!all[i].seen->allocated) {
			of[n_specs] = i;
			specs[n_specs++] = &chosen[i];
		}
	n_at = dra_node(ledger(c), ref->node, a, &at, &odd);
	picks = gpuq_arena_calloc(a, n_specs * DRA_RESULTS_MAX + 1, sizeof(*picks));
	taken = gpuq_arena_calloc(a, n_at + 1, sizeof(*taken));
	if (!picks || !taken)
		return WAITS;
	for (size_t i = 0; i < n_at; i++)
		taken[i] = taken_in_flight(c, &at[i]);
	if (!match(c, p, at, n_at, taken, specs, n_specs, a, picks, &n_picks)) {
		*which = all[of[0]].name;
		return ELSEWHERE;
	}
	for (size_t i = 0; i < n_specs; i++) {
		size_t from = 0, to;

		while (from < n_picks && picks[from].claim != i)
			from++;
		for (to = from; to < n_picks && picks[to].claim == i;)
			to++;
		flight_add(c, all[of[i]].seen, picks + from, to - from);
		ask_for(c, CLAIM_ALLOCATE, ref, &all[of[i]], picks + from, to - from);
		*asked = true;
	}
	return WAITS;
}

/* The ledger has the devices that were allocated, by their indexes on the node. */
static void tell(struct claims *c, const struct pod *p, const struct one *all, size_t n,
		 struct gpuq_arena *a)
{
	struct event ev = { .type = EV_POD_DEVICES, .pod = { p->job->key, p->attempt, p->index } };
	const struct model *m = journal_model(c->j);
	struct gpuq_strlist classes;
	struct dra_at *at, *cards;
	const char *odd;
	bool *has, same = true;
	size_t n_at, n_cards, n_items = 0;
	int *items;

	model_classes(m, a, &classes);
	n_at = dra_node(ledger(c), p->node->name, a, &at, &odd);
	n_cards = dra_cards(ledger(c), p->node->name, &classes, a, &cards, &odd);
	items = gpuq_arena_calloc(a, n_cards + 1, sizeof(*items));
	has = gpuq_arena_calloc(a, n_cards + 1, sizeof(*has));
	for (size_t i = 0; has && i < n_at; i++) {
		size_t card = n_cards;
		bool own = false;

		for (size_t k = 0; k < n; k++)
			own |= at[i].used == all[k].seen && !(p->rides >> k & 1);
		if (own)
			card = dra_card_of(cards, n_cards, at[i].slice, at[i].device);
		if (card < n_cards)
			has[card] = true;
	}
	for (size_t k = 0; items && has && k < n_cards; k++)
		if (has[k])
			items[n_items++] = (int)k;
	/* More cards, or fewer, than were charged: these are the planned ones. */
	if (!items || n_items == 0 || n_items != p->n_devices)
		return;
	for (size_t i = 0; i < n_items; i++)
		same &= p->devices[i] == items[i];
	ev.devices.items = items;
	ev.devices.n = n_items;
	if (!same || !model_pod_devices_known(p))
		journal_apply(c->j, &ev, NULL);
}

enum progress claims_settle(struct claims *c, const struct pod *p, const struct pod_ref *ref,
			    bool ask, bool *asked, const char **which)
{
	const struct gpuq_group *g = p->job->request->spec.groups[p->group].where;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const size_t n = g ? g->n_claims : 0;
	struct one *all = gpuq_arena_calloc(&a, n + 1, sizeof(*all));
	struct dra_spec *chosen = gpuq_arena_calloc(&a, n + 1, sizeof(*chosen));
	enum progress at = SETTLED;
	bool free_ones = false;

	if (n == 0 || !all || !chosen || !may_act(c)) {
		gpuq_arena_done(&a);
		return n ? WAITS : SETTLED;
	}
	flights_land(c);
	for (size_t i = 0; i < n; i++) {
		struct one *o = &all[i];

		find(c, ref, &g->claims[i], o);
		if (!o->seen) {
			at = WAITS;
			if (ask && !o->is->claim && !o->is->template_ && *ref->uid) {
				ask_for(c, CLAIM_MAKE, ref, o, NULL, 0);
				*asked = true;
			}
		} else if (o->seen->leaving || flies(c, o->seen)) {
			at = WAITS;
		} else if (!o->seen->allocated && (!o->seen->finalizer || !o->seen->taken)) {
			at = WAITS;
			if (ask)
				ask_for(c, CLAIM_MARK, ref, o, NULL, 0);
			*asked |= ask;
		} else if (!o->seen->allocated) {
			free_ones = true;
		} else if (*o->seen->node && strcmp(o->seen->node, ref->node) != 0) {
			*which = o->is->name;
			at = ELSEWHERE;
			break;
		} else if (!has_consumer(o->seen, ref->uid)) {
			at = WAITS;
			if (ask)
				ask_for(c, CLAIM_RESERVE, ref, o, NULL, 0);
			*asked |= ask;
		}
	}
	/* Those that pods share may be allocated by now to another node. */
	if (at == SETTLED && !choose(c, p, all, n, &a, chosen, which))
		at = ELSEWHERE;
	if (at == SETTLED && free_ones)
		at = allocate(c, p, ref, all, chosen, n, &a, asked, which);
	if (at == SETTLED)
		tell(c, p, all, n, &a);
	gpuq_arena_done(&a);
	return at;
}

/* ---- what is given back ---- */

/* True if the pod may use the claim still: one of gpuq's that the ledger has, or one of others. */
static bool lives(const struct model *m, const char *name, const char *uid)
{
	struct pod_key key;
	const struct pod *p;

	if (!model_pod_name_parse(m, name, &key))
		return true;
	p = model_find_pod(m, key);
	return p && model_pod_takes(p) && (!*p->uid || strcmp(p->uid, uid) == 0);
}

struct sweep {
	struct claims *c;
	bool any;
};

/* Give back one claim, a step at a time. */
static bool sweep_one(void *arg, const struct dra_claim *claim)
{
	struct sweep *s = arg;
	const struct model *m = journal_model(s->c->j);
	const char *gone[GPUQ_CLAIM_CONSUMERS_MAX];
	struct claim_ask ask = { .namespace_ = claim->namespace_,
				 .name = claim->name,
				 .claim = claim,
				 .dra = ledger(s->c),
				 .gone = gone };

	/* The write that is under way may never be seen, for it may have been refused. */
	if (flies(s->c, claim)) {
		s->any = true;
		return true;
	}
	for (size_t i = 0; i < claim->reserved.n && ask.n_gone < GPUQ_CLAIM_CONSUMERS_MAX; i++)
		if (!lives(m, claim->consumers.items[i], claim->reserved.items[i]))
			gone[ask.n_gone++] = claim->reserved.items[i];
	ask.step = CLAIM_RELEASE;
	/* An allocation that another allocator made ends with its last consumer, as the controller manager has it. */
	ask.clear = claim->allocated && ask.n_gone == claim->reserved.n &&
		    (claim->taken || ask.n_gone > 0);
	/* One that was made for a pod is given back with it, not between two steps of its start. */
	if (*claim->owner && lives(m, claim->owner_name, claim->owner))
		ask.clear &= ask.n_gone > 0;
	if (ask.n_gone == 0 && !ask.clear) {
		if (!claim->ours || claim->allocated || claim->reserved.n ||
		    lives(m, claim->owner_name, claim->owner))
			return true;
		ask.step = CLAIM_DROP;
		if (claim->leaving && !claim->finalizer)
			return true;
	}
	s->any = true;
	s->c->cluster->ops->claim_ask(s->c->cluster, &ask);
	return true;
}

static void arm(struct claims *c, bool soon);

static void on_timer(void *arg)
{
	struct claims *c = arg;
	struct sweep s = { .c = c };

	c->timer = NULL;
	if (!may_act(c)) {
		arm(c, false);
		return;
	}
	flights_land(c);
	dra_each_claim(ledger(c), sweep_one, &s);
	if (s.any)
		arm(c, false);
}

/* A short wait takes the place of a long one; news never puts off what is due soon. */
static void arm(struct claims *c, bool soon)
{
	if (c->timer && (c->soon || !soon))
		return;
	loop_cancel(c->timer);
	c->soon = soon;
	c->timer = loop_after(c->l, soon ? SWEEP_US : AGAIN_US, on_timer, c);
}

static void on_event(void *arg, const struct event *ev)
{
	struct claims *c = arg;
	const bool claim =
		(ev->type == EV_OBJECT_SEEN && ev->object->kind == OBJECT_DEVICE_CLAIM) ||
		(ev->type == EV_OBJECTS_KNOWN && ev->objects.kind == OBJECT_DEVICE_CLAIM);

	const bool pod = ev->type == EV_POD_GONE || ev->type == EV_POD_ENDED;

	if ((claim || pod) && objects_is_known(journal_model(c->j)->objects, OBJECT_DEVICE_CLAIM))
		arm(c, true);
}

void claims_set_cluster(struct claims *c, struct cluster *to)
{
	c->cluster = to;
}

struct claims *claims_new(struct journal *j)
{
	struct claims *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->j = j;
	c->l = journal_loop(j);
	journal_subscribe(j, on_event, c);
	return c;
}

void claims_free(struct claims *c)
{
	struct flight *f, *next;

	if (!c)
		return;
	HASH_ITER(hh, c->flights, f, next)
		flight_drop(c, f);
	loop_cancel(c->timer);
	free(c);
}
