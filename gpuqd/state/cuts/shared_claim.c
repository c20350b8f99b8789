#include "gpuqd/state/cuts/shared_claim.h"

#include <string.h>

#include "gpuqd/devices/dra/dra_cards.h"
#include "gpuqd/state/model_int.h"
#include "gpuqd/state/objects/origin.h"
#include "libgpuq/limits.h"

#define NO_CLAIM GPUQ_CLAIMS_MAX

const struct gpuq_group *shared_claim_group(const struct request_spec *s, uint32_t group)
{
	const struct gpuq_group *g = group < s->n_groups ? s->groups[group].where : NULL;

	for (size_t i = 0; g && i < g->n_claims; i++)
		if (g->claims[i].shares > 0)
			return g;
	return NULL;
}

uint32_t shared_claim_pods(const struct gpuq_group *g)
{
	return gpuq_group_shared_milli(g) && g->pods_min == g->pods_max && g->n_slices == 0
		       ? (uint32_t)g->pods_min
		       : 1;
}

/* The same of a pod that takes what it was given. */
static const struct gpuq_group *group_of(const struct pod *p)
{
	return model_pod_takes(p) && p->job->request
		       ? shared_claim_group(&p->job->request->spec, p->group)
		       : NULL;
}

/* Return which claim of the group that is; NO_CLAIM = none of them. */
static size_t claim_at(const struct gpuq_group *g, const char *claim)
{
	for (size_t i = 0; g && i < g->n_claims; i++)
		if (g->claims[i].shares > 0 && strcmp(g->claims[i].claim, claim) == 0)
			return i;
	return NO_CLAIM;
}

static bool rides(const struct pod *p, size_t claim)
{
	return p->rides >> claim & 1;
}

static const char *namespace_of(const struct model *m, const struct pod *p)
{
	return objects_namespace(m->objects, model_queue_namespace(p->job->queue));
}

/* True if it precedes the other: the charge passes on in this order. */
static bool is_older(const struct pod *p, const struct pod *q)
{
	if (p->placed_us != q->placed_us)
		return p->placed_us < q->placed_us;
	if (p->job->key.id != q->job->key.id)
		return p->job->key.id < q->job->key.id;
	if (p->job->key.index != q->job->key.index)
		return p->job->key.index < q->job->key.index;
	return p->index < q->index;
}

/* Find the pod that is charged for a claim, and the oldest that rides; NULL = there is none. */
static void find(const struct model *m, const char *namespace_, const char *claim,
		 struct pod **charged, struct pod **oldest)
{
	const char *home = objects_namespace(m->objects, namespace_);
	struct pod *p;

	*charged = *oldest = NULL;
	node_each(m, n)
		DL_FOREACH2(n->pods, p, node_next) {
			const size_t at = claim_at(group_of(p), claim);

			if (at == NO_CLAIM || strcmp(namespace_of(m, p), home) != 0)
				continue;
			if (!rides(p, at))
				*charged = p;
			else if (!*oldest || is_older(p, *oldest))
				*oldest = p;
		}
}

struct pod *shared_claim_holder(const struct model *m, const char *namespace_, const char *claim)
{
	struct pod *charged, *oldest;

	find(m, namespace_, claim, &charged, &oldest);
	return charged;
}

/* Whose pods have a claim. */
struct consumers {
	bool own, others;
};

static struct consumers consumers_of(const struct model *m, const struct dra_claim *c)
{
	struct consumers all = { false, false };
	struct pod_key key;

	for (size_t i = 0; i < c->consumers.n; i++)
		if (model_pod_name_parse(m, c->consumers.items[i], &key) ||
		    (m->origins && origin_find(m->origins, c->reserved.items[i])))
			all.own = true;
		else
			all.others = true;
	return all;
}

bool shared_claim_is_foreign(const struct model *m, const struct dra_claim *c)
{
	const struct consumers all = consumers_of(m, c);

	/* A claim without any consumer that gpuqd allocated is being given back. */
	if (!all.others && (all.own || c->taken))
		return false;
	return !shared_claim_holder(m, c->namespace_, c->name);
}

uint32_t shared_claim_devices(const struct gpuq_group *g, uint16_t which)
{
	int64_t n = 0;

	for (size_t i = 0; g && i < g->n_claims; i++)
		n += which >> i & 1 ? g->claims[i].shares : 0;
	return (uint32_t)n;
}

uint32_t shared_claim_room(const struct job *j, uint32_t n)
{
	uint32_t most = n;

	for (uint32_t i = 0; j->request && i < j->request->spec.n_groups; i++) {
		const struct gpuq_group *g = shared_claim_group(&j->request->spec, i);

		if (g && g->gpus_milli / 1000 > most)
			most = (uint32_t)(g->gpus_milli / 1000);
	}
	return most;
}

uint16_t shared_claim_rides(const struct model *m, const struct job *j, uint32_t group,
			    const struct placed_pod *earlier, uint32_t n_earlier, const char **node)
{
	const struct gpuq_group *g = shared_claim_group(&j->request->spec, group);
	const char *namespace_ = model_queue_namespace(j->queue);
	uint16_t out = 0;

	*node = NULL;
	for (size_t i = 0; g && i < g->n_claims; i++) {
		const struct dra_claim *c;
		const struct pod *holder;

		if (g->claims[i].shares == 0)
			continue;
		holder = shared_claim_holder(m, namespace_, g->claims[i].claim);
		c = dra_claim(objects_dra(m->objects), objects_namespace(m->objects, namespace_),
			      g->claims[i].claim);
		if (holder)
			*node = holder->node->name;
		if (holder || (c && c->allocated && shared_claim_is_foreign(m, c)))
			out |= (uint16_t)(1u << i);
		for (uint32_t k = 0; k < n_earlier; k++)
			if (claim_at(shared_claim_group(&j->request->spec, earlier[k].group),
				     g->claims[i].claim) != NO_CLAIM) {
				*node = earlier[k].node;
				out |= (uint16_t)(1u << i);
			}
	}
	return out;
}

uint16_t shared_claim_guess(const struct job *j, uint32_t group, uint32_t n_devices)
{
	const struct gpuq_group *g = shared_claim_group(&j->request->spec, group);
	uint16_t all = 0;

	for (size_t i = 0; g && i < g->n_claims; i++)
		all |= g->claims[i].shares ? (uint16_t)(1u << i) : 0;
	return g && n_devices == g->gpus_milli / 1000 - shared_claim_devices(g, all) ? all : 0;
}

int shared_claim_check(const struct model *m, const struct job *j, const struct placed_pod *pods,
		       uint32_t n, struct gpuq_err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct placed_pod *pp = &pods[i];
		const struct gpuq_group *g = shared_claim_group(&j->request->spec, pp->group);
		const char *node;

		if (!g)
			continue;
		if (pp->rides != shared_claim_rides(m, j, pp->group, pods, i, &node) ||
		    (node && strcmp(node, pp->node) != 0) ||
		    pp->n_devices != g->gpus_milli / 1000 - shared_claim_devices(g, pp->rides))
			return gpuq_fail(err, GPUQ_ECONFLICT,
					 "other pods have its claims than when it was decided");
	}
	return 0;
}

/* ---- who shares ---- */

void shared_claim_each(const struct pod *p, size_t claim,
		       void (*fn)(void *arg, const struct pod *other), void *arg)
{
	const struct gpuq_group *g = group_of(p);
	const struct pod *o;

	if (!g || claim >= g->n_claims || g->claims[claim].shares == 0)
		return;
	DL_FOREACH2(p->node->pods, o, node_next)
		if (o != p && claim_at(group_of(o), g->claims[claim].claim) != NO_CLAIM &&
		    strcmp(model_queue_namespace(o->job->queue),
			   model_queue_namespace(p->job->queue)) == 0)
			fn(arg, o);
}

/* Of the others with a pod's claims: any, and such as may stay when it ends. */
struct others {
	const struct pod *of;
	bool any, stay;
};

static void note(void *arg, const struct pod *other)
{
	struct others *o = arg;

	const struct request_group *g = &other->job->request->spec.groups[other->group];

	o->any = true;
	o->stay |= other->job != o->of->job || g->pods_min < g->pods_max;
}

static struct others others_of(const struct pod *p)
{
	const struct gpuq_group *g = group_of(p);
	struct others o = { .of = p };

	for (size_t i = 0; g && i < g->n_claims; i++)
		shared_claim_each(p, i, note, &o);
	return o;
}

bool shared_claim_is_shared(const struct pod *p)
{
	return p->rides || p->beside || others_of(p).any;
}

bool shared_claim_carries(const struct pod *p)
{
	return others_of(p).stay;
}

/* ---- devices ---- */

static bool has(const struct pod *p, size_t device)
{
	for (uint32_t i = 0; i < p->n_devices; i++)
		if (p->devices[i] == device)
			return true;
	return false;
}

static bool is_taken(const struct node *n, size_t device)
{
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && has(p, device))
			return true;
	return false;
}

/* List the cards on the node that the claim is allocated to, ascending. */
static uint32_t cards_of(const struct model *m, const struct node *n, const char *namespace_,
			 const char *claim, uint16_t *out)
{
	const struct dra *d = objects_dra(m->objects);
	const struct dra_claim *c = dra_claim(d, namespace_, claim);
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_strlist classes;
	struct dra_at *at, *cards;
	size_t n_at, n_cards;
	uint32_t sum = 0;
	bool whole;

	if (!c || !c->allocated)
		return 0;
	model_classes(m, &a, &classes);
	n_at = dra_node(d, n->name, &a, &at, &whole);
	n_cards = dra_cards_among(d, at, n_at, &classes, &a, &cards);
	for (size_t k = 0; k < n_cards && k < n->n_devices && sum < DRA_RESULTS_MAX; k++)
		for (size_t i = 0; i < n_at; i++)
			if (at[i].used == c &&
			    dra_card_of(cards, n_cards, at[i].slice, at[i].device) == k) {
				out[sum++] = (uint16_t)k;
				break;
			}
	gpuq_arena_done(&a);
	return sum;
}

/* ---- passing on ---- */

static void add_device(struct pod *p, uint16_t device)
{
	uint32_t i = p->n_devices++;

	for (; i > 0 && p->devices[i - 1] > device; i--)
		p->devices[i] = p->devices[i - 1];
	p->devices[i] = device;
}

/* Charge a pod for a claim from now on. */
static void take_over(struct model *m, struct pod *p, const char *claim, const uint16_t *devices,
		      uint32_t n, enum devices_from from, int64_t at_us)
{
	const size_t at = claim_at(group_of(p), claim);
	const int64_t more = (int64_t)n * 1000;
	struct life *l = job_life(p->job);

	/* A job without any device was charged to no flavor. */
	if (!*l->flavor)
		l->flavor = model_intern(m, p->node->flavor);
	if (p->start_us)
		account_pod_more(m, p, more, at_us);
	accounting_charge_more(p, at_us);
	if (p->n_devices == 0 || from != DEVICES_TOLD)
		p->devices_from = from;
	for (uint32_t i = 0; i < n; i++)
		add_device(p, devices[i]);
	p->rides &= (uint16_t) ~(1u << at);
	p->gpus_milli += more;
	p->job->queue->allocated_milli += more;
	p->dirty = true;
	model_job_dirty(m, p->job);
}

/* List the devices by which a pod that ended was charged for a claim: those that this is allocated to, as far as they
 * are its own, else the first of them. */
static uint32_t left_by(const struct model *m, const struct pod *p, const char *claim, uint32_t n,
			uint16_t *out)
{
	uint16_t cards[DRA_RESULTS_MAX];
	const uint32_t n_cards = cards_of(m, p->node, namespace_of(m, p), claim, cards);
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n_cards && sum < n; i++)
		if (has(p, cards[i]))
			out[sum++] = cards[i];
	if (sum == n)
		return n;
	for (sum = 0; sum < n && sum < p->n_devices; sum++)
		out[sum] = p->devices[sum];
	return sum;
}

uint32_t shared_claim_list(const struct model *m, const struct pod *p, size_t claim, uint16_t *out)
{
	const struct gpuq_claim *c = &p->job->request->spec.groups[p->group].where->claims[claim];
	const uint32_t n = cards_of(m, p->node, namespace_of(m, p), c->claim, out);
	const struct pod *holder =
		n ? NULL : shared_claim_holder(m, model_queue_namespace(p->job->queue), c->claim);

	return holder ? left_by(m, holder, c->claim, (uint32_t)c->shares, out) : n;
}

void shared_claim_released(struct model *m, const struct pod *p, int64_t at_us)
{
	const struct gpuq_group *g =
		p->job->request ? shared_claim_group(&p->job->request->spec, p->group) : NULL;

	for (size_t i = 0; g && i < g->n_claims; i++) {
		const char *claim = g->claims[i].claim;
		uint16_t devices[DRA_RESULTS_MAX];
		struct pod *charged, *oldest;
		uint32_t n;

		if (g->claims[i].shares == 0 || rides(p, i))
			continue;
		find(m, model_queue_namespace(p->job->queue), claim, &charged, &oldest);
		n = (uint32_t)g->claims[i].shares;
		if (!charged && oldest && oldest->node == p->node &&
		    left_by(m, p, claim, n, devices) == n)
			take_over(m, oldest, claim, devices, n, p->devices_from, at_us);
	}
	/* Where pods of others stay, they have the devices now. */
	if (g)
		node_recount_claims(m, p->node->name);
}

/* Note at the pods with a claim whether pods of others have it. */
static void note_others(struct model *m, const char *namespace_, const char *name,
			const struct dra_claim *c)
{
	const char *home = objects_namespace(m->objects, namespace_);
	const bool others = c && consumers_of(m, c).others;
	struct pod *p;

	node_each(m, n)
		DL_FOREACH2(n->pods, p, node_next) {
			const size_t at = claim_at(group_of(p), name);

			if (at == NO_CLAIM || strcmp(namespace_of(m, p), home) != 0)
				continue;
			p->beside &= (uint16_t) ~(1u << at);
			p->beside |= (uint16_t)((unsigned)others << at);
		}
}

void shared_claim_seen(struct model *m, const char *namespace_, const char *name, int64_t at_us)
{
	const struct dra_claim *c = dra_claim(objects_dra(m->objects), namespace_, name);
	uint16_t devices[DRA_RESULTS_MAX];
	struct pod *charged, *oldest;
	const struct gpuq_group *g;
	uint32_t n;

	note_others(m, namespace_, name, c);
	if (!c || !c->allocated || shared_claim_is_foreign(m, c))
		return;
	find(m, namespace_, name, &charged, &oldest);
	g = oldest && !charged ? group_of(oldest) : NULL;
	if (!g)
		return;
	n = cards_of(m, oldest->node, namespace_, name, devices);
	/* Those that the ledger has for other pods are told anew when these have theirs. */
	for (uint32_t i = 0; i < n; i++)
		if (is_taken(oldest->node, devices[i]))
			return;
	if (n == shared_claim_devices(g, (uint16_t)(1u << claim_at(g, name))))
		take_over(m, oldest, name, devices, n, DEVICES_TOLD, at_us);
}
