#include "gpuqd/snapshot/choices/snapshot_choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/site/layouts.h"
#include "gpuqd/site/site.h"
#include "gpuqd/site/site_find.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/state/model.h"
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
	const bool single =
		strcmp(gpuq_strmap_text(&n->fact.labels, "nvidia.com/mig.strategy"), "single") == 0;
	const size_t len = gpuq_profile_whole(profile);
	char key[96];
	int64_t mib;

	snprintf(key, sizeof(key), "nvidia.com/mig-%.*s.memory", len < 40 ? (int)len : 40, profile);
	mib = strtoll(gpuq_strmap_text(&n->fact.labels, single ? "nvidia.com/gpu.memory" : key),
		      NULL, 10);
	return mib > 0 ? mib / gpuq_profile_replicas(profile) : cost_profile_mib(profile);
}

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
	       (gpu_cores >= 100 ? milli >= SNAP_MILLI : milli >= gpu_cores * 10);
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

const char *const *snapshot_choices_of(struct taking *t, const struct request_spec *spec,
				       uint32_t *group, uint32_t *n)
{
	const struct request_group *g;
	const struct snap_profiles *all;
	const char **out;
	*n = 0;
	*group = choosing(spec);
	if (*group == spec->n_groups)
		return NULL;
	g = &spec->groups[*group];
	out = gpuq_arena_calloc(&t->mem, GPUQ_MIG_TRIES_MAX, sizeof(*out));
	if (!out)
		return NULL;
	all = profiles_of(t);
	if (!all)
		return NULL;
	if (!g->mig_ok) {
		*n = named(g, all, out);
		return out;
	}
	out[(*n)++] = CHOICE_SHARE;
	for (uint32_t i = 0; i < all->n && *n < GPUQ_MIG_TRIES_MAX; i++)
		if (snapshot_choices_hold(all->items[i].name, all->items[i].mib, g->gpus_milli,
					  g->gpu_cores, g->gpu_memory_bytes))
			out[(*n)++] = all->items[i].name;
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

const struct request_spec *snapshot_choices_pick(struct taking *t, const struct request_spec *spec,
						 uint32_t group, const char *profile)
{
	struct request_spec *out = gpuq_arena_calloc(&t->mem, 1, sizeof(*out));
	struct request_group *groups = gpuq_arena_calloc(&t->mem, spec->n_groups, sizeof(*groups));
	struct gpuq_group *where = gpuq_arena_calloc(&t->mem, 1, sizeof(*where));

	if (!out || !groups || !where)
		return NULL;
	memcpy(groups, spec->groups, spec->n_groups * sizeof(*groups));
	PICK(&groups[group], profile);
	if (groups[group].where) {
		*where = *groups[group].where;
		PICK(where, profile);
		groups[group].where = where;
	}
	*out = *spec;
	out->groups = groups;
	return out;
}

const struct request_spec *snapshot_choices_taken(struct taking *t, const struct job *j,
						  const struct request_spec *spec)
{
	const struct promise *promise = j->life->promise;
	const struct request_spec *out;
	const char *profile = NULL;
	const struct pod *p;
	const uint32_t i = choosing(spec);

	if (i == spec->n_groups)
		return spec;
	DL_FOREACH2(j->pods, p, job_next)
		if (!profile && model_pod_takes(p) && p->group == i)
			profile = p->mig ? p->mig : CHOICE_SHARE;
	for (uint32_t k = 0; promise && !profile && k < promise->n_pods; k++)
		if (promise->pods[k].group == i)
			profile = promise->pods[k].mig ? promise->pods[k].mig : CHOICE_SHARE;
	out = profile ? snapshot_choices_pick(t, spec, i, profile) : NULL;
	return out ? out : spec;
}
