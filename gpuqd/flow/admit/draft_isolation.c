#include "gpuqd/flow/admit/draft_isolation.h"

#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/site/site_find.h"
#include "libgpuq/spec/profile.h"

/* A kind of request: the most that it could have, and a request that has more. */
static const struct kind {
	const char *what;
	int most;
	const char *instead;
} whole = { "a whole device", GPUQ_ISOLATION_EXCLUSIVE, "" },
  instance = { "a MIG instance", GPUQ_ISOLATION_MIG, "request whole devices" },
  replica = { "a replica of a MIG instance", GPUQ_ISOLATION_TIME_SLICE,
	      "request a MIG instance (mig: 1g.10gb) or whole devices" },
  part = { "a part of a device", GPUQ_ISOLATION_MPS,
	   "request a MIG instance (mig: 1g.10gb) or whole devices" };

/* True if it accepts replicas of instances, and no whole ones. */
static bool is_replica(const struct gpuq_group *g)
{
	for (size_t i = 0; g->mig && i <= g->mig_more.n; i++)
		if (!gpuq_profile_is_shared(i ? g->mig_more.items[i - 1] : g->mig))
			return false;
	return g->mig != NULL;
}

/* True if its claims are of parts of cards, which their driver keeps apart. */
static bool of_claims(const struct gpuq_group *g)
{
	return gpuq_group_claimed(g) && backend_shares(g);
}

static const struct kind *kind_of(const struct gpuq_group *g)
{
	return is_replica(g)                         ? &replica
	       : g->mig || g->mig_ok || of_claims(g) ? &instance
	       : backend_shares(g)                   ? &part
						     : &whole;
}

/* Return the most that nodes will give which a pool gets by itself, or, where it names what shares its
 * devices, from its operators; -1 = not known. */
static int pool_gives(const struct site_pool *p, const struct kind *k)
{
	const int parts = (int)backend_pool_isolates(site_sharing_word(p->sharing));

	if (k == &part)
		return parts || site_pool_grows(p) ? parts : -1;
	return site_pool_grows(p) ? k->most : -1;
}

/* Return the most that a node gives; -1 = it has nothing of that kind. */
static int node_gives(const struct node *n, const struct kind *k)
{
	for (size_t i = 0; (k == &instance || k == &replica) && i < n->fact.n_mig; i++)
		if (gpuq_profile_is_shared(n->fact.mig[i].profile) == (k == &replica))
			return k->most;
	if (k == &instance && n->backend && strcmp(n->backend->word, "dra") == 0)
		return k->most;
	if (k == &instance || k == &replica)
		return -1;
	if (n->n_devices == 0 || (n->backend && n->backend->closed) ||
	    (k == &part && n->backend && !n->backend->parts))
		return -1;
	return (int)model_node_isolation(n, k == &part);
}

/* Return the most that the site gives; -1 = it has no devices of that kind. */
static int site_gives(const struct model *m, const struct kind *k)
{
	int most = -1;

	node_each(m, n) {
		const int one = n->gone ? -1 : node_gives(n, k);

		most = one > most ? one : most;
	}
	site_each(site_pool, m->site->pools, p) {
		const int one = pool_gives(p, k);

		most = one > most ? one : most;
	}
	return most;
}

int draft_isolation(const struct model *m, const struct queue *q, const struct gpuq_spec *spec,
		    struct gpuq_err *err)
{
	const int of_queue = (int)model_queue_isolation(q);
	const bool own = spec->isolation >= of_queue;
	const int demand = own ? spec->isolation : of_queue;
	const char *word = gpuq_isolation_word((enum gpuq_isolation)demand);
	const char *whose = own ? "the job" : "its queue";

	for (size_t i = 0; demand && i < spec->n_groups; i++) {
		const struct gpuq_group *g = &spec->groups[i];
		const struct kind *k = kind_of(g);
		int most;

		if (g->gpus_milli == 0)
			continue;
		if (k->most < demand)
			return gpuq_fail_field(
				err, GPUQ_ERANGE, own ? "isolation" : "queue",
				"%s demands isolation %s, and %s has at most %s: %s", whose, word,
				k->what, gpuq_isolation_word((enum gpuq_isolation)k->most),
				demand > GPUQ_ISOLATION_MIG ? instance.instead : k->instead);
		most = site_gives(m, k);
		if (most >= 0 && most < demand)
			return gpuq_fail_field(
				err, GPUQ_ERANGE, own ? "isolation" : "queue",
				"%s demands isolation %s, and no node gives %s more than %s: see "
				"ISOLATION of gpuq nodes -o NODE,GPU,SHARING,ISOLATION",
				whose, word, k->what,
				gpuq_isolation_word((enum gpuq_isolation)most));
	}
	return 0;
}
