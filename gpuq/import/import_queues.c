/* Cohorts, ClusterQueues and LocalQueues: quotas, limits, reclaim. */
#include <string.h>

#include "gpuq/import/import_int.h"
#include "libgpuq/units.h"

enum { DEPTH_MOST = 16 };
#define PRIORITY_MOST INT64_C(1000000000) /* of a site's fields, both ways */

/* ---- quotas ---- */

struct quota {
	const char *flavor;
	int64_t nominal, borrow, lend; /* thousandths; -1 = not said */
	struct quota *next;
};

bool import_is_gpu(const char *resource)
{
	const size_t n = strlen(resource);

	return n > 4 && strcmp(resource + n - 4, "/gpu") == 0;
}

static int milli_of(struct import *im, const struct object *o, const struct gpuq_val *v,
		    const char *path, int64_t *out)
{
	const char *text = !v ? NULL : v->src ? v->src : v->type == GPUQ_STR ? v->s : NULL;

	*out = -1;
	if (!v || v->type == GPUQ_NULL)
		return 0;
	if (v->type == GPUQ_INT && v->i >= 0 && v->i < INT64_C(1000000000)) {
		*out = v->i * 1000;
		return 0;
	}
	if (text && gpuq_milli_parse(text, out, NULL) == 0 && *out >= 0)
		return 0;
	return import_fail(im, o, v, path, "expected a quantity such as 8");
}

/* A device may have several resource names; a flavor has one number of devices. */
static struct quota *quota_of(struct import *im, const char *flavor, struct quota *list,
			      struct quota ***end)
{
	struct quota *q = list;

	while (q && strcmp(q->flavor, flavor) != 0)
		q = q->next;
	if (q)
		return q;
	q = gpuq_arena_calloc(im->a, 1, sizeof(*q));
	if (!q)
		return NULL;
	*q = (struct quota){ .flavor = flavor, .borrow = -1, .lend = -1 };
	**end = q;
	*end = &q->next;
	return q;
}

static int64_t said_sum(int64_t x, int64_t y)
{
	return x < 0 ? y : y < 0 ? x : x + y;
}

/* Note another resource than devices, by name; all are reported in one line. */
static void leave_out(struct import *im, const struct object *o, const struct gpuq_val *groups,
		      const char *name)
{
	struct left_out *left = &im->left;

	if (im->again)
		return;
	if (left->n == 0) {
		left->first = o;
		left->at = groups;
	}
	if (left->last != o) {
		left->last = o;
		left->n++;
	}
	for (uint32_t i = 0; i < left->names->n; i++)
		if (strcmp(left->names->items[i]->s, name) == 0)
			return;
	gpuq_add(im->a, left->names, gpuq_str(im->a, name));
}

static int read_resource(struct import *im, const struct object *o, const char *flavor,
			 const struct gpuq_val *r, const struct gpuq_val *groups,
			 struct quota *list, struct quota ***end)
{
	const char *path = "spec.resourceGroups[].flavors[].resources[]";
	const char *name = gpuq_get_str(r, "name", "");
	int64_t nominal, borrow, lend;
	struct quota *q;
	int rc;

	if (!import_is_gpu(name)) {
		leave_out(im, o, groups, name);
		return 0;
	}
	rc = milli_of(im, o, gpuq_get(r, "nominalQuota"), path, &nominal);
	if (rc == 0)
		rc = milli_of(im, o, gpuq_get(r, "borrowingLimit"), path, &borrow);
	if (rc == 0)
		rc = milli_of(im, o, gpuq_get(r, "lendingLimit"), path, &lend);
	if (rc < 0)
		return rc;
	q = quota_of(im, flavor, list, end);
	if (!q)
		return gpuq_no_memory(im->err);
	q->nominal += nominal > 0 ? nominal : 0;
	q->borrow = said_sum(q->borrow, borrow);
	q->lend = said_sum(q->lend, lend);
	return 0;
}

/* Return what its quotas are of: devices that are in no pool, where it has no labels. */
static const char *called(const struct import *im, const char *flavor)
{
	return im->plain                                                      ? ""
	       : import_has_labels(import_find(im, "ResourceFlavor", flavor)) ? flavor
									      : "default";
}

static int read_quotas(struct import *im, const struct object *o, struct quota **out)
{
	const struct gpuq_val *groups = gpuq_get(o->spec, "resourceGroups");
	struct quota **end = out;
	int rc = 0;

	*out = NULL;
	for (uint32_t g = 0; rc == 0 && groups && groups->type == GPUQ_LIST && g < groups->n; g++) {
		const struct gpuq_val *flavors = gpuq_get(groups->items[g], "flavors");

		for (uint32_t f = 0; flavors && flavors->type == GPUQ_LIST && f < flavors->n; f++) {
			const struct gpuq_val *rs = gpuq_get(flavors->items[f], "resources");
			const char *name = gpuq_get_str(flavors->items[f], "name", "");

			if (!import_find(im, "ResourceFlavor", name))
				return import_fail(
					im, o, flavors->items[f], "spec.resourceGroups[].flavors[]",
					gpuq_arena_printf(im->a,
							  "no ResourceFlavor is named %s: "
							  "give its file too",
							  name));
			for (uint32_t i = 0; rc == 0 && rs && rs->type == GPUQ_LIST && i < rs->n;
			     i++)
				rc = read_resource(im, o, called(im, name), rs->items[i], groups,
						   *out, &end);
		}
	}
	return rc;
}

/* Sum the contribution of the cohort's members, level by level: its own quota is added to
 * theirs. */
static int64_t members_bring(struct import *im, const char *cohort, const char *flavor, int depth)
{
	int64_t sum = 0;

	im->again = true;
	for (size_t i = 0; depth > 0 && i < im->n; i++) {
		const struct object *o = &im->items[i];
		const bool is_cohort = strcmp(o->kind, "Cohort") == 0;
		const char *above =
			is_cohort || strcmp(o->kind, "ClusterQueue") == 0 ? import_cohort(o) : NULL;
		struct quota *q;

		if (!above || strcmp(above, cohort) != 0 || read_quotas(im, o, &q) < 0)
			continue;
		for (; q; q = q->next)
			if (strcmp(q->flavor, flavor) == 0)
				sum += q->nominal;
		if (is_cohort)
			sum += members_bring(im, o->name, flavor, depth - 1);
		im->again = true;
	}
	im->again = false;
	return sum;
}

static struct gpuq_val *amount(struct import *im, int64_t milli)
{
	return milli % 1000 ? gpuq_real(im->a, (double)milli / 1000)
			    : gpuq_int(im->a, milli / 1000);
}

void import_put_map(struct import *im, struct gpuq_val *queue, const char *key,
		    struct gpuq_val *map)
{
	if (map && map->n)
		gpuq_put(im->a, queue, key, map);
}

/* Give an amount of no flavor of Kueue to each flavor that only the pools of --pools have. */
static struct gpuq_val *spread(struct import *im, struct gpuq_val *map)
{
	struct gpuq_val *out = gpuq_map(im->a);

	if (!map || im->spread->n == 0 || !gpuq_get(map, "default"))
		return map;
	for (uint32_t i = 0; i < map->n; i++)
		for (uint32_t k = 0; k < im->spread->n; k++)
			if (strcmp(map->pairs[i].key, "default") == 0)
				gpuq_put(im->a, out, im->spread->items[k]->s, map->pairs[i].val);
			else if (k == 0)
				gpuq_put(im->a, out, map->pairs[i].key, map->pairs[i].val);
	return out;
}

/* Put amounts by flavor; without flavors it is one number. */
static void put_amounts(struct import *im, struct gpuq_val *queue, const char *key,
			struct gpuq_val *map)
{
	if (!im->plain)
		import_put_map(im, queue, key, spread(im, map));
	else if (map && map->n)
		gpuq_put(im->a, queue, key, map->pairs[0].val);
}

/* ---- queues ---- */

/* The first entry of each is Kueue's default. */
static const struct policy {
	const char *theirs, *ours;
	struct {
		const char *theirs, *ours;
	} words[4];
} policies[] = {
	{ "reclaimWithinCohort",
	  "reclaim",
	  { { "Never", "never" }, { "LowerPriority", "lower" }, { "Any", "any" } } },
	{ "withinClusterQueue",
	  "preempt",
	  { { "Never", "never" },
	    { "LowerPriority", "lower" },
	    { "LowerOrNewerEqualPriority", "lower_or_newer" } } },
};

/* Kubernetes gives no user a priority beyond this; NULL (none said) is the highest. */
static int64_t within_range(const struct gpuq_val *priority)
{
	if (!priority || priority->type != GPUQ_INT || priority->i > PRIORITY_MOST)
		return PRIORITY_MOST;
	return priority->i < -PRIORITY_MOST ? -PRIORITY_MOST : priority->i;
}

/* Without a threshold a borrower displaces borrowers of any lower priority. */
static int put_borrow(struct import *im, const struct object *o, const struct gpuq_val *borrow,
		      struct gpuq_val *queue)
{
	const struct gpuq_val *most = gpuq_get(borrow, "maxPriorityThreshold");
	const char *policy = gpuq_get_str(borrow, "policy", "Never");

	if (strcmp(policy, "Never") != 0 && strcmp(policy, "LowerPriority") != 0)
		return import_fail(im, o, gpuq_get(borrow, "policy"),
				   "spec.preemption.borrowWithinCohort.policy",
				   "not a value of Kueue");
	if (most && most->type != GPUQ_NULL && most->type != GPUQ_INT)
		return import_fail(im, o, most,
				   "spec.preemption.borrowWithinCohort.maxPriorityThreshold",
				   "expected a whole number");
	if (strcmp(policy, "Never") != 0)
		gpuq_put(im->a, queue, "borrow_preempt_max_priority",
			 gpuq_int(im->a, within_range(most)));
	return 0;
}

static int put_policy(struct import *im, const struct object *o, struct gpuq_val *queue)
{
	const struct gpuq_val *p = gpuq_get(o->spec, "preemption");

	for (size_t k = 0; k < sizeof(policies) / sizeof(policies[0]); k++) {
		const struct policy *row = &policies[k];
		const char *word = gpuq_get_str(p, row->theirs, row->words[0].theirs);
		size_t i = 0;

		while (row->words[i].theirs && strcmp(row->words[i].theirs, word) != 0)
			i++;
		if (!row->words[i].theirs)
			return import_fail(
				im, o, gpuq_get(p, row->theirs),
				gpuq_arena_printf(im->a, "spec.preemption.%s", row->theirs),
				"not a value of Kueue");
		gpuq_put(im->a, queue, row->ours, gpuq_str(im->a, row->words[i].ours));
	}
	return put_borrow(im, o, gpuq_get(p, "borrowWithinCohort"), queue);
}

/* Reclaim and preempt policies are written in the leaves, where the jobs are. */
static const struct object *policy_of(const struct import *im, const struct object *o)
{
	if (strcmp(o->kind, "LocalQueue") == 0)
		return import_find(im, "ClusterQueue", gpuq_get_str(o->spec, "clusterQueue", ""));
	return strcmp(o->kind, "ClusterQueue") == 0 ? o : NULL;
}

/* In Kueue LocalQueues are but doors to one ClusterQueue; here they are queues. */
static void tell_doors(struct import *im, const struct object *o)
{
	const struct gpuq_val *within =
		gpuq_path(o->spec, "preemption", "withinClusterQueue", NULL);
	size_t doors = 0;

	for (size_t i = 0; i < im->n; i++)
		doors += strcmp(im->items[i].kind, "LocalQueue") == 0 &&
			 policy_of(im, &im->items[i]) == o;
	if (doors > 1 && within && within->type == GPUQ_STR && strcmp(within->s, "Never") != 0)
		import_note(
			im, o, within, "spec.preemption.withinClusterQueue",
			"its LocalQueues are queues of their own: it holds inside each of them");
}

static int put_common(struct import *im, const struct object *o, struct gpuq_val *queue)
{
	const struct gpuq_val *weight = gpuq_path(o->spec, "fairSharing", "weight", NULL);
	const struct gpuq_val *stop = gpuq_get(o->spec, "stopPolicy");
	const char *policy = stop && stop->type == GPUQ_STR ? stop->s : "None";
	int64_t milli;
	int rc = milli_of(im, o, weight, "spec.fairSharing.weight", &milli);

	if (milli >= 0 && milli != 1000)
		gpuq_put(im->a, queue, "weight", amount(im, milli));
	if (strcmp(policy, "None") != 0 && strcmp(policy, "Hold") != 0 &&
	    strcmp(policy, "HoldAndDrain") != 0)
		return import_fail(im, o, stop, "spec.stopPolicy", "not a value of Kueue");
	if (strcmp(policy, "Hold") == 0 || strcmp(policy, "HoldAndDrain") == 0)
		gpuq_put(im->a, queue, "stopped", gpuq_bool(im->a, true));
	if (strcmp(policy, "HoldAndDrain") == 0)
		import_note(im, o, stop, "spec.stopPolicy",
			    "the jobs of a stopped queue keep running: cancel them by hand");
	return rc;
}

/* A queue without a cohort cannot borrow. */
static bool is_top(const struct object *o)
{
	return strcmp(o->kind, "LocalQueue") != 0 && !import_cohort(o);
}

static int put_quotas(struct import *im, const struct object *o, struct gpuq_val *queue)
{
	const bool is_cohort = strcmp(o->kind, "Cohort") == 0;
	struct gpuq_val *quota = gpuq_map(im->a), *limit = gpuq_map(im->a), *lend = gpuq_map(im->a),
			*order = gpuq_list(im->a);
	struct quota *q;
	int rc = read_quotas(im, o, &q);

	for (; rc == 0 && q; q = q->next) {
		const int64_t nominal =
			q->nominal +
			(is_cohort ? members_bring(im, o->name, q->flavor, DEPTH_MOST) : 0);

		gpuq_put(im->a, quota, q->flavor, amount(im, q->nominal));
		if (strcmp(q->flavor, "default") != 0 || im->spread->n == 0)
			gpuq_add(im->a, order, gpuq_str(im->a, q->flavor));
		for (uint32_t i = 0; strcmp(q->flavor, "default") == 0 && i < im->spread->n; i++)
			gpuq_add(im->a, order, im->spread->items[i]);
		if (import_cohort(o) && q->borrow >= 0)
			gpuq_put(im->a, limit, q->flavor, amount(im, nominal + q->borrow));
		else if (is_top(o) && !is_cohort)
			gpuq_put(im->a, limit, q->flavor, amount(im, nominal));
		if (q->lend >= 0)
			gpuq_put(im->a, lend, q->flavor, amount(im, q->lend));
	}
	/* A cohort's own comes on top of what its members bring, whatever that will be. */
	put_amounts(im, queue, is_cohort ? "shared_quota" : "quota", quota);
	put_amounts(im, queue, "limit", limit);
	put_amounts(im, queue, "lend", lend);
	if (order && order->n && !is_cohort && !im->plain)
		gpuq_put(im->a, queue, "flavors", order);
	return rc;
}

/* Cohorts lend nothing to each other: one at the top has what it and its members bring. */
static int put_top_limit(struct import *im, const struct object *o, struct gpuq_val *queue)
{
	struct gpuq_val *limit = gpuq_map(im->a);
	struct quota *own, *q;
	int rc;

	im->again = true;
	rc = read_quotas(im, o, &own);
	im->again = false;
	for (uint32_t i = 0; rc == 0 && i < (im->plain ? 1 : im->flavors->n + 1); i++) {
		const char *flavor = im->plain ? ""
				     : i < im->flavors->n
					     ? gpuq_get_str(im->flavors->items[i], "name", "")
					     : "default";
		int64_t sum = members_bring(im, o->name, flavor, DEPTH_MOST);

		for (q = own; q; q = q->next)
			sum += strcmp(q->flavor, flavor) == 0 ? q->nominal : 0;
		if (sum)
			gpuq_put(im->a, limit, flavor, amount(im, sum));
	}
	put_amounts(im, queue, "limit", limit);
	return rc;
}

static const char *parent_of(struct import *im, const struct object *o)
{
	const char *cohort = import_cohort(o);
	const struct object *above;

	if (strcmp(o->kind, "LocalQueue") == 0) {
		above = import_find(im, "ClusterQueue", gpuq_get_str(o->spec, "clusterQueue", ""));
		return above ? above->called : NULL;
	}
	above = cohort ? import_find(im, "Cohort", cohort) : NULL;
	return above ? above->called : NULL;
}

int import_queue(struct import *im, const struct object *o)
{
	struct gpuq_val *queue = import_member(im, im->queues, o->called);
	const char *parent = parent_of(im, o);
	const bool is_local = strcmp(o->kind, "LocalQueue") == 0;
	int rc;

	if (is_local && !parent)
		return import_fail(
			im, o, o->spec, "spec.clusterQueue",
			gpuq_arena_printf(im->a, "no ClusterQueue is named %s: give its file too",
					  gpuq_get_str(o->spec, "clusterQueue", "(nothing)")));
	if (parent)
		gpuq_put(im->a, queue, "parent", gpuq_str(im->a, parent));
	if (is_local)
		gpuq_put(im->a, queue, "namespace", gpuq_str(im->a, o->namespace_));
	rc = put_quotas(im, o, queue);
	if (rc == 0 && is_top(o) && strcmp(o->kind, "Cohort") == 0)
		rc = put_top_limit(im, o, queue);
	if (rc == 0)
		rc = put_common(im, o, queue);
	if (rc == 0 && policy_of(im, o))
		rc = put_policy(im, policy_of(im, o), queue);
	if (strcmp(o->kind, "ClusterQueue") == 0)
		tell_doors(im, o);
	return rc;
}
