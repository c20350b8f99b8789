#include "gpuqd/snapshot/choices/snapshot_choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/dra/dra_choice.h"
#include "gpuqd/devices/dra/dra_weights.h"
#include "gpuqd/site/layouts.h"
#include "gpuqd/site/site.h"
#include "gpuqd/site/site_find.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/state/model.h"
#include "gpuqd/util/amount.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/profile.h"

#define PROFILES_MAX 64u /* of a cluster that are considered */

struct snap_profiles {
	struct profile {
		const char *name;
		int64_t mib; /* the least of its instances */
	} items[PROFILES_MAX];
	uint32_t n;
};

/* ---- the profiles that there are ---- */

/* Return the memory of an instance on the node: as it is labelled, else as its profile has it. */
static int64_t memory_on(const struct node *n, const char *profile)
{
	/* Under the single strategy it is labelled as that of devices is. */
	const bool single = strstr(gpuq_strmap_text(&n->fact.labels, "nvidia.com/gpu.product"),
				   "-MIG-") != NULL;
	const size_t len = gpuq_profile_whole(profile);
	char key[96];
	int64_t mib;

	snprintf(key, sizeof(key), "nvidia.com/mig-%.*s.memory", len < 40 ? (int)len : 40, profile);
	mib = strtoll(gpuq_strmap_text(&n->fact.labels, single ? "nvidia.com/gpu.memory" : key),
		      NULL, 10);
	return mib > 0 ? mib / gpuq_profile_replicas(profile) : cost_profile_mib(profile);
}

/* Add a profile once; what several nodes say of its memory may differ, and the least is promised. */
static void add(struct snap_profiles *all, const char *name, int64_t mib)
{
	uint32_t i = 0;

	while (i < all->n && !gpuq_profile_same(all->items[i].name, name))
		i++;
	if (i < all->n && mib < all->items[i].mib)
		all->items[i].mib = mib;
	if (i < all->n || i == PROFILES_MAX || mib <= 0)
		return;
	all->items[all->n++] = (struct profile){ name, mib };
}

static int by_memory(const void *x, const void *y)
{
	const struct profile *a = x, *b = y;

	return a->mib != b->mib ? (a->mib > b->mib) - (a->mib < b->mib) : strcmp(a->name, b->name);
}

/* Return the profiles of the cluster: those that nodes have, and those into which idle ones may be cut. */
static const struct snap_profiles *profiles_of(struct taking *t)
{
	struct snap_profiles *all = t->profiles;

	if (all)
		return all;
	all = t->profiles = gpuq_arena_calloc(&t->mem, 1, sizeof(*all));
	if (!all)
		return NULL;
	node_each(t->m, n)
		for (size_t i = 0; !n->gone && i < n->fact.n_mig; i++)
			add(all, n->fact.mig[i].profile, memory_on(n, n->fact.mig[i].profile));
	site_each(site_pool, t->m->site->pools, p)
		for (size_t i = 0; layouts_are_on(p->mig) && i < p->mig->names.n; i++) {
			const char *name = layouts_profile(p->mig->names.items[i]);

			if (name && *name)
				add(all, name, cost_profile_mib(name));
		}
	qsort(all->items, all->n, sizeof(*all->items), by_memory);
	return all;
}

/* ---- choices ---- */

bool snapshot_choices_hold(const char *profile, int64_t mib, int64_t gpus_milli, int64_t gpu_cores,
			   int64_t gpu_memory_bytes)
{
	const int64_t milli = cost_of_profile(profile);

	/* Several replicas may be of one instance. */
	if (gpuq_profile_is_shared(profile) && gpus_milli > SNAP_MILLI)
		return false;
	return mib << 20 >= gpu_memory_bytes && milli >= gpus_milli % SNAP_MILLI &&
	       milli >= amount_percent(gpu_cores);
}

/* True if instances of the profile do for the group. */
static bool does(const struct gpuq_group *g, const char *profile, int64_t mib)
{
	if (g->mig_ok)
		return snapshot_choices_hold(profile, mib, g->gpus_milli, g->gpu_cores,
					     g->gpu_memory_bytes);
	for (size_t i = 0; g->mig && i <= g->mig_more.n; i++)
		if (gpuq_profile_serves(profile, i ? g->mig_more.items[i - 1] : g->mig))
			return true;
	return false;
}

bool snapshot_choices_on(const struct model *m, const struct node *n, const struct gpuq_group *g)
{
	const struct site_pool *pool;

	for (size_t i = 0; i < n->fact.n_mig; i++) {
		const struct mig_fact *f = &n->fact.mig[i];

		if (f->count * INT64_C(1000) >= g->gpus_milli &&
		    does(g, f->profile, memory_on(n, f->profile)))
			return true;
	}
	pool = site_pool_find(m->site, n->pool);
	for (size_t i = 0; pool && layouts_are_on(pool->mig) && i < pool->mig->names.n; i++) {
		const char *profile = layouts_profile(pool->mig->names.items[i]);

		if (profile && *profile && does(g, profile, cost_profile_mib(profile)))
			return true;
	}
	return false;
}

/* Return the group that accepts several profiles; n_groups = none does. */
static uint32_t choosing(const struct request_spec *spec)
{
	uint32_t i = 0;

	while (i < spec->n_groups && !spec->groups[i].mig_more.n && !spec->groups[i].mig_ok &&
	       !(spec->groups[i].mig && gpuq_profile_is_any(spec->groups[i].mig)))
		i++;
	return i;
}

/* Add a profile to n others, those of less memory first. */
static uint32_t put(const char **out, uint32_t n, const char *one)
{
	uint32_t at = n;

	if (n == GPUQ_MIG_TRIES_MAX)
		return n;
	for (; at > 0 && cost_profile_mib(out[at - 1]) > cost_profile_mib(one); at--)
		out[at] = out[at - 1];
	out[at] = one;
	return n + 1;
}

/* Add the profiles that a group names; of replicas all that nodes have. */
static uint32_t named(const struct request_group *g, const struct snap_profiles *all,
		      const char **out)
{
	uint32_t n = 0;

	for (size_t i = 0; i <= g->mig_more.n; i++) {
		const char *one = i ? g->mig_more.items[i - 1] : g->mig;
		const uint32_t before = n;

		for (uint32_t k = 0; gpuq_profile_is_any(one) && k < all->n; k++)
			if (gpuq_profile_serves(all->items[k].name, one))
				n = put(out, n, all->items[k].name);
		if (n == before)
			n = put(out, n, one);
	}
	return n;
}

/* List the profiles that would do for the group. Returns how many. */
static uint32_t profiles_for(struct taking *t, const struct request_group *g,
			     const char *out[GPUQ_MIG_TRIES_MAX])
{
	const struct snap_profiles *all;
	uint32_t n = 0;

	all = profiles_of(t);
	if (!all)
		return 0;
	if (!g->mig_ok)
		return named(g, all, out);
	out[n++] = CHOICE_SHARE;
	for (uint32_t i = 0; i < all->n && n < GPUQ_MIG_TRIES_MAX; i++)
		if (snapshot_choices_hold(all->items[i].name, all->items[i].mib, g->gpus_milli,
					  g->gpu_cores, g->gpu_memory_bytes))
			out[n++] = all->items[i].name;
	return n;
}

/* ---- alternatives of claims ---- */

/* True if a placement may decide on alternatives of the group's claims, or on what they are charged, as far as its own
 * words tell. */
static bool may_choose(const struct taking *t, const struct request_group *g)
{
	const struct gpuq_group *where = g->where;
	/* Some devices are parts of cards, or were when the job was submitted. */
	bool may = dra_weights(objects_dra(t->m->objects)) || g->gpus_milli % SNAP_MILLI;

	/* Pods of a claim share its charge: beside it the largest alternatives count. */
	if (!where || !where->n_claims || where->claims_beside || gpuq_group_shared_milli(where))
		return false;
	for (size_t i = 0; i < where->n_claims; i++)
		may |= where->claims[i].n_first > 1 || !where->claims[i].class_;
	return may;
}

/* True if that is no choice: the group is charged so already, or its claims have another number of devices than when it
 * was submitted, for which it waits. */
static bool is_none(const struct request_group *g, const struct dra_choice *only)
{
	return only->is.first == 0 &&
	       (only->milli == g->gpus_milli ||
		(only->milli % SNAP_MILLI == 0 && g->gpus_milli % SNAP_MILLI == 0));
}

/* The choices of a group. */
struct ways {
	struct dra_choice items[DRA_CHOICES_MAX];
	uint32_t n; /* 0 = it has none */
};

/* Find those of all groups; NULL = no group has any. *n: how many combinations of them there are. */
static const struct ways *ways_of(struct taking *t, const struct request_spec *spec,
				  const struct queue *in, uint32_t *n)
{
	const struct objects *o = t->m->objects;
	struct gpuq_strlist classes;
	struct ways *all = NULL;
	bool any = false;

	*n = 1;
	for (uint32_t i = 0; in && i < spec->n_groups; i++) {
		const struct request_group *g = &spec->groups[i];

		if (g->chosen || !may_choose(t, g))
			continue;
		if (!all) {
			all = gpuq_arena_calloc(&t->mem, spec->n_groups, sizeof(*all));
			model_classes(t->m, &t->mem, &classes);
		}
		if (!all)
			return NULL;
		all[i].n = dra_choices(objects_dra(o), g->where->claims, g->where->n_claims,
				       objects_namespace(o, model_queue_namespace(in)), &classes,
				       g->pods_max > 1, all[i].items);
		if (all[i].n == 1 && is_none(g, all[i].items))
			all[i].n = 0;
		any |= all[i].n > 0;
		if (all[i].n && *n <= GPUQ_MIG_TRIES_MAX)
			*n *= all[i].n;
	}
	return any ? all : NULL;
}

/* Make combination `at` of the groups' choices, the last group's changing first; SNAP_NONE = whichever there are,
 * charged as the largest. */
static const struct dra_choice *combined(struct taking *t, const struct ways *ways,
					 uint32_t n_groups, uint32_t at)
{
	struct dra_choice *out = gpuq_arena_calloc(&t->mem, n_groups, sizeof(*out));

	for (uint32_t i = n_groups; out && i-- > 0;) {
		if (ways[i].n == 0) {
			out[i].milli = -1;
		} else if (at == SNAP_NONE) {
			out[i].milli = dra_choice_most(ways[i].items, ways[i].n)->milli;
		} else {
			out[i] = ways[i].items[at % ways[i].n];
			at /= ways[i].n;
		}
	}
	return out;
}

const struct snap_choice *snapshot_choices_of(struct taking *t, const struct request_spec *spec,
					      const struct queue *in, uint32_t *n)
{
	const char *profiles[GPUQ_MIG_TRIES_MAX];
	const uint32_t group = choosing(spec);
	const bool mig = group < spec->n_groups;
	struct snap_choice *out;
	uint32_t n_ways;
	const struct ways *ways = ways_of(t, spec, in, &n_ways);

	*n = 0;
	if (!mig && !ways)
		return NULL;
	out = gpuq_arena_calloc(&t->mem, GPUQ_MIG_TRIES_MAX, sizeof(*out));
	if (!out)
		return NULL;
	*n = mig                           ? profiles_for(t, &spec->groups[group], profiles)
	     : n_ways < GPUQ_MIG_TRIES_MAX ? n_ways
					   : GPUQ_MIG_TRIES_MAX;
	for (uint32_t i = 0; i < *n; i++) {
		const bool rest = mig || (i + 1 == *n && n_ways > *n);

		out[i].group = group;
		out[i].profile = mig ? profiles[i] : NULL;
		out[i].claims =
			ways ? combined(t, ways, spec->n_groups, rest ? SNAP_NONE : i) : NULL;
		if (ways && !out[i].claims)
			*n = 0;
	}
	return out;
}

/* Make a group one that has instances of the profile. */
#define PICK(g, profile)                                                                           \
	do {                                                                                       \
		(g)->mig_more = (struct gpuq_strlist){ NULL, 0 };                                  \
		(g)->mig_ok = false;                                                               \
		if (!*(profile))                                                                   \
			break;                                                                     \
		(g)->mig = (profile);                                                              \
		(g)->gpu_memory_bytes = (g)->gpu_cores = 0;                                        \
		if ((g)->gpus_milli < SNAP_MILLI)                                                  \
			(g)->gpus_milli = SNAP_MILLI;                                              \
	} while (0)

/* Make the group, of a spec that is copied, one of this choice. */
static bool pick_one(struct taking *t, struct request_group *g, const char *profile,
		     const struct dra_choice *claims)
{
	struct gpuq_group *where = g->where ? gpuq_arena_calloc(&t->mem, 1, sizeof(*where)) : NULL;

	if (g->where && !where)
		return false;
	if (where)
		*where = *g->where;
	if (profile) {
		PICK(g, profile);
		if (where)
			PICK(where, profile);
	}
	if (claims) {
		g->chosen = true;
		g->choice = claims->is;
		g->gpus_milli = claims->milli;
		if (where)
			where->gpus_milli = claims->milli;
	}
	g->where = where;
	return true;
}

/* Copy a spec with its groups. */
static struct request_group *groups_of(struct taking *t, const struct request_spec *spec,
				       struct request_spec **out)
{
	struct request_group *groups = gpuq_arena_calloc(&t->mem, spec->n_groups, sizeof(*groups));

	*out = gpuq_arena_calloc(&t->mem, 1, sizeof(**out));
	if (!groups || !*out)
		return NULL;
	memcpy(groups, spec->groups, spec->n_groups * sizeof(*groups));
	**out = *spec;
	(*out)->groups = groups;
	return groups;
}

const struct request_spec *snapshot_choices_pick(struct taking *t, const struct request_spec *spec,
						 const struct snap_choice *choice)
{
	struct request_spec *out;
	struct request_group *groups = groups_of(t, spec, &out);

	for (uint32_t i = 0; groups && i < spec->n_groups; i++) {
		const char *profile = i == choice->group ? choice->profile : NULL;
		const bool claims = choice->claims && choice->claims[i].milli >= 0;

		if ((profile || claims) &&
		    !pick_one(t, &groups[i], profile, claims ? &choice->claims[i] : NULL))
			return NULL;
	}
	return groups ? out : NULL;
}

/* The devices of a pod of a group, running or nominated. */
struct got {
	const char *profile;
	struct dra_choice claims;
};

/* Find what the pods of a running job have been given of the choices of the group. */
static bool got_by(const struct job *j, uint32_t group, struct got *out)
{
	const struct promise *promise = j->life->promise;
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (model_pod_takes(p) && p->group == group) {
			*out = (struct got){ p->mig ? p->mig : CHOICE_SHARE,
					     { p->choice, p->gpus_milli } };
			return true;
		}
	for (uint32_t k = 0; promise && k < promise->n_pods; k++)
		if (promise->pods[k].group == group) {
			const struct promised_pod *pp = &promise->pods[k];

			*out = (struct got){ pp->mig ? pp->mig : CHOICE_SHARE,
					     { pp->choice, pp->gpus_milli } };
			return true;
		}
	return false;
}

const struct request_spec *snapshot_choices_taken(struct taking *t, const struct job *j,
						  const struct request_spec *spec)
{
	const uint32_t mig = choosing(spec);
	struct request_group *groups = NULL;
	struct request_spec *out = NULL;

	for (uint32_t i = 0; i < spec->n_groups; i++) {
		const bool claims = may_choose(t, &spec->groups[i]);
		struct got got;

		if ((i != mig && !claims) || !got_by(j, i, &got))
			continue;
		if (!groups)
			groups = groups_of(t, spec, &out);
		if (!groups || !pick_one(t, &groups[i], i == mig ? got.profile : NULL,
					 claims ? &got.claims : NULL))
			return spec;
	}
	return out ? out : spec;
}
