#include "gpuqd/sim/fairness.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/sched/quota/fairtree.h"
#include "gpuqd/sched/quota/overcommit.h"
#include "gpuqd/sim/world_cycle.h"

/* Round to four decimals, so that thirds are readable. */
static double rounded(uint32_t rank, uint32_t n)
{
	return (double)(((uint64_t)rank * 20000 + n) / (2 * (uint64_t)n)) / 10000;
}

static void add_user(struct gpuq_arena *a, struct gpuq_val *users, const char *name,
		     const char *queue, double factor)
{
	struct gpuq_val *u = gpuq_get(users, name), *queues;

	if (!u) {
		u = gpuq_put(a, users, name, gpuq_map(a));
		gpuq_put(a, u, "factor", gpuq_real(a, factor));
		gpuq_put(a, u, "queues", gpuq_map(a));
	} else if (factor > gpuq_get(u, "factor")->d) {
		gpuq_set(a, u, "factor", gpuq_real(a, factor));
	}
	queues = gpuq_get(u, "queues");
	gpuq_put(a, queues, queue, gpuq_real(a, factor));
}

/* A user of one queue has one factor. */
static struct gpuq_val *without_single(struct gpuq_arena *a, const struct gpuq_val *users)
{
	struct gpuq_val *out = gpuq_map(a);

	for (uint32_t i = 0; users && i < users->n; i++) {
		const struct gpuq_val *u = users->pairs[i].val, *queues = gpuq_get(u, "queues");
		struct gpuq_val *to = gpuq_put(a, out, users->pairs[i].key, gpuq_map(a));

		gpuq_put(a, to, "factor", gpuq_get(u, "factor"));
		if (queues && queues->n > 1)
			gpuq_put(a, to, "queues", (struct gpuq_val *)queues);
	}
	return out;
}

/* Return the next user by name; a snapshot has them by first appearance. */
static uint32_t next_name(const struct snapshot *s, const char *after)
{
	uint32_t best = SNAP_NONE;

	for (uint32_t u = 0; u < s->n_users; u++)
		if ((!after || strcmp(s->users[u], after) > 0) &&
		    (best == SNAP_NONE || strcmp(s->users[u], s->users[best]) < 0))
			best = u;
	return best;
}

static struct gpuq_val *tell_users(const struct snapshot *s, const uint32_t *ranks,
				   struct gpuq_arena *a)
{
	struct gpuq_val *users = gpuq_map(a);
	const char *name = NULL;
	uint32_t user;

	while ((user = next_name(s, name)) != SNAP_NONE) {
		name = s->users[user];
		for (uint32_t u = 0; u < s->n_usages; u++)
			if (s->usages[u].user == user)
				add_user(a, users, name, s->queues[s->usages[u].queue].name,
					 rounded(ranks[u], s->n_usages));
	}
	return without_single(a, users);
}

static struct gpuq_val *devices(struct gpuq_arena *a, int64_t milli)
{
	return gpuq_real(a, (double)milli / 1000);
}

static struct gpuq_val *tell_overcommitted(const struct snapshot *s, struct gpuq_arena *a)
{
	struct overcommit at = { .queue = SNAP_NONE, .flavor = SNAP_NONE };
	struct gpuq_val *list = gpuq_list(a);

	while (overcommit_next(s, &at)) {
		struct gpuq_val *m = gpuq_add(a, list, gpuq_map(a));

		gpuq_put(a, m, "parent",
			 at.queue == SNAP_NONE ? gpuq_null(a)
					       : gpuq_str(a, s->queues[at.queue].name));
		gpuq_put(a, m, "flavor", gpuq_str(a, s->flavors[at.flavor].name));
		gpuq_put(a, m, "quotas", devices(a, at.sum_milli));
		gpuq_put(a, m, "has", devices(a, at.has_milli));
	}
	return list;
}

int fairness_tell(struct world *w, struct gpuq_arena *a, struct gpuq_val **users,
		  struct gpuq_val **overcommitted, struct gpuq_err *err)
{
	struct snapshot *s = world_snapshot(w, err);
	const uint32_t *ranks;

	if (!s)
		return err->code;
	ranks = fairtree_ranks(s, a);
	*users = ranks ? tell_users(s, ranks, a) : NULL;
	*overcommitted = tell_overcommitted(s, a);
	snapshot_free(s);
	return *users && *overcommitted ? 0 : gpuq_fail(err, GPUQ_ENOMEM, "no memory");
}

void fairness_print(const struct gpuq_val *users, const struct gpuq_val *overcommitted)
{
	if (users->n)
		printf("%-20s %10s\n", "user", "factor");
	for (uint32_t i = 0; i < users->n; i++) {
		const struct gpuq_val *u = users->pairs[i].val, *queues = gpuq_get(u, "queues");

		printf("%-20s %10.4g\n", users->pairs[i].key, gpuq_get(u, "factor")->d);
		for (uint32_t q = 0; queues && q < queues->n; q++)
			printf("  in %-15s %10.4g\n", queues->pairs[q].key,
			       queues->pairs[q].val->d);
	}
	for (uint32_t i = 0; i < overcommitted->n; i++) {
		const struct gpuq_val *m = overcommitted->items[i];
		const char *parent = gpuq_get_str(m, "parent", NULL);

		printf("warning: quotas of %s below %s add up to %.10g, but there are %.10g\n",
		       gpuq_get_str(m, "flavor", ""), parent ? parent : "root",
		       gpuq_get(m, "quotas")->d, gpuq_get(m, "has")->d);
	}
}
