#include "gpuqd/state/cuts/shared_claim.h"

#include <string.h>

#include "gpuqd/devices/dra/dra_cards.h"
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

size_t shared_claim_at(const struct gpuq_group *g, const char *claim)
{
	for (size_t i = 0; g && i < g->n_claims; i++)
		if (g->claims[i].shares > 0 && strcmp(g->claims[i].claim, claim) == 0)
			return i;
	return NO_CLAIM;
}

/* True if another pod is charged for that claim of the pod. */
static bool rides(const struct pod *p, size_t claim)
{
	return p->rides >> claim & 1;
}

/* Return the namespace in which a pod's claims are, by its name in the cluster. */
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

struct shared_claim_users shared_claim_users(const struct model *m, const char *namespace_,
					     const char *claim)
{
	const char *home = objects_namespace(m->objects, namespace_);
	struct shared_claim_users all = { NULL, NULL, 0 };
	struct pod *p;

	node_each(m, n)
		DL_FOREACH2(n->pods, p, node_next) {
			const size_t at = shared_claim_at(group_of(p), claim);

			if (at == NO_CLAIM || strcmp(namespace_of(m, p), home) != 0)
				continue;
			all.n++;
			if (!rides(p, at))
				all.charged = p;
			else if (!all.oldest || is_older(p, all.oldest))
				all.oldest = p;
		}
	return all;
}

struct pod *shared_claim_holder(const struct model *m, const char *namespace_, const char *claim)
{
	return shared_claim_users(m, namespace_, claim).charged;
}

/* A claim has pods of gpuq, of others, or both. */
struct consumers {
	bool own, others;
};

/* Tell them apart by their names, and adopted ones by their uids. */
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

bool shared_claim_has_others(const struct model *m, const char *namespace_, const char *claim)
{
	const struct dra_claim *c = dra_claim(objects_dra(m->objects), namespace_, claim);

	return c && consumers_of(m, c).others;
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
		/* In this order: a pod of gpuq's, pods of others, one that is placed with it. */
		holder = shared_claim_holder(m, namespace_, g->claims[i].claim);
		c = dra_claim(objects_dra(m->objects), objects_namespace(m->objects, namespace_),
			      g->claims[i].claim);
		if (holder)
			*node = holder->node->name;
		if (holder || (c && c->allocated && shared_claim_is_foreign(m, c)))
			out |= (uint16_t)(1u << i);
		for (uint32_t k = 0; k < n_earlier; k++)
			if (shared_claim_at(shared_claim_group(&j->request->spec, earlier[k].group),
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

/* ---- pods that share ---- */

void shared_claim_each(const struct pod *p, size_t claim,
		       void (*fn)(void *arg, const struct pod *other), void *arg)
{
	const struct gpuq_group *g = group_of(p);
	const struct pod *o;

	if (!g || claim >= g->n_claims || g->claims[claim].shares == 0)
		return;
	DL_FOREACH2(p->node->pods, o, node_next)
		if (o != p && shared_claim_at(group_of(o), g->claims[claim].claim) != NO_CLAIM &&
		    strcmp(model_queue_namespace(o->job->queue),
			   model_queue_namespace(p->job->queue)) == 0)
			fn(arg, o);
}

/* The pod that is asked about, and what was found: another that may stay when it ends. */
struct staying {
	const struct pod *of;
	bool any;
};

/* Those of its own job go with it, unless that job can go on without some. */
static void note(void *arg, const struct pod *other)
{
	const struct request_group *g = &other->job->request->spec.groups[other->group];
	struct staying *s = arg;

	s->any |= other->job != s->of->job || g->pods_min < g->pods_max;
}

bool shared_claim_carries(const struct pod *p)
{
	const struct gpuq_group *g = group_of(p);
	struct staying s = { p, false };

	for (size_t i = 0; g && i < g->n_claims; i++)
		shared_claim_each(p, i, note, &s);
	return s.any;
}

/* ---- devices ---- */

uint32_t shared_claim_cards(const struct model *m, const struct node *n, const char *namespace_,
			    const char *claim, uint16_t *out)
{
	const struct dra *d = objects_dra(m->objects);
	const struct dra_claim *c = dra_claim(d, namespace_, claim);
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_strlist classes;
	struct dra_at *at, *cards;
	size_t n_at, n_cards;
	uint32_t sum = 0;
	const char *odd;

	if (!c || !c->allocated)
		return 0;
	model_classes(m, &a, &classes);
	n_at = dra_node(d, n->name, &a, &at, &odd);
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

uint32_t shared_claim_left_by(const struct model *m, const struct pod *p, const char *claim,
			      uint32_t n, uint16_t *out)
{
	uint16_t cards[DRA_RESULTS_MAX];
	const uint32_t n_cards = shared_claim_cards(m, p->node, namespace_of(m, p), claim, cards);
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n_cards && sum < n; i++)
		if (model_pod_has_device(p, cards[i]))
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
	const uint32_t n = shared_claim_cards(m, p->node, namespace_of(m, p), c->claim, out);
	const struct pod *holder =
		n ? NULL : shared_claim_holder(m, model_queue_namespace(p->job->queue), c->claim);

	return holder ? shared_claim_left_by(m, holder, c->claim, (uint32_t)c->shares, out) : n;
}
