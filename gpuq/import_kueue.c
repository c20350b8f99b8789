#include "gpuq/import_kueue.h"

#include <stdlib.h>
#include <string.h>

#include "gpuq/import_fields.h"
#include "libgpuq/units.h"

enum { PRIORITY_MOST = 1000000000 };

/* One object of Kueue. */
struct object {
	const char *file, *kind, *name, *namespace_;
	const struct gpuq_val *v, *spec;
	const char *called; /* the queue's name here */
};

struct import {
	struct gpuq_arena *a;
	struct object *items;
	size_t n, room;
	struct gpuq_val *site, *flavors, *pools, *qos, *queues;
	import_note_fn note;
	void *arg;
	bool again; /* what is read was read before: its notes have been told */
	struct gpuq_err *err;
};

static const char group[] = "kueue.x-k8s.io/";
static const char *const kinds[] = {
	"ClusterQueue",          "Cohort",   "LocalQueue", "ResourceFlavor",
	"WorkloadPriorityClass", "Topology", NULL
};

/* ---- words ---- */

static const char *place(struct import *im, const struct object *o, const struct gpuq_val *v)
{
	if (!v || !v->at.line)
		v = o->v;
	return gpuq_arena_printf(im->a, "%s:%u:%u: %s/%s", o->file, v->at.line, v->at.col, o->kind,
				 o->name);
}

static void note(struct import *im, const struct object *o, const struct gpuq_val *v,
		 const char *path, const char *why)
{
	const char *text = gpuq_arena_printf(im->a, "%s: %s: %s", place(im, o, v), path, why);

	if (text && !im->again)
		im->note(im->arg, text);
}

static int fail(struct import *im, const struct object *o, const struct gpuq_val *v,
		const char *path, const char *what)
{
	return gpuq_fail(im->err, GPUQ_EINVAL, "%s: %s: %s", place(im, o, v), path, what);
}

static int no_memory(struct import *im)
{
	return gpuq_fail(im->err, GPUQ_ENOMEM, "out of memory");
}

/* ---- finding out what there is ---- */

static int add_object(struct import *im, const char *file, const struct gpuq_val *v)
{
	const char *api = gpuq_get_str(v, "apiVersion", ""), *kind = gpuq_get_str(v, "kind", NULL);
	const struct gpuq_val *items = gpuq_get(v, "items"), *meta = gpuq_get(v, "metadata");
	struct object o = { file,
			    kind,
			    gpuq_get_str(meta, "name", NULL),
			    gpuq_get_str(meta, "namespace", "default"),
			    v,
			    gpuq_get(v, "spec"),
			    NULL };
	int rc = 0;

	if (v->type != GPUQ_MAP || !kind)
		return gpuq_fail(im->err, GPUQ_EINVAL, "%s:%u:%u: expected an object with a kind",
				 file, v->at.line, v->at.col);
	if (items && items->type == GPUQ_LIST) {
		for (uint32_t i = 0; rc == 0 && i < items->n; i++)
			rc = add_object(im, file, items->items[i]);
		return rc;
	}
	if (!o.name)
		return gpuq_fail(im->err, GPUQ_EINVAL, "%s:%u:%u: %s: metadata.name is missing",
				 file, v->at.line, v->at.col, kind);
	for (const char *const *k = kinds; *k; k++) {
		if (strcmp(*k, kind) != 0 || strncmp(api, group, sizeof(group) - 1) != 0)
			continue;
		if (im->n == im->room)
			return no_memory(im);
		im->items[im->n++] = o;
		return 0;
	}
	note(im, &o, v, "kind",
	     strncmp(api, group, sizeof(group) - 1) == 0 ? "there is nothing like it here"
							 : "not an object of Kueue");
	return 0;
}

static size_t count(const struct gpuq_val *v)
{
	const struct gpuq_val *items = gpuq_get(v, "items");
	size_t n = 1;

	for (uint32_t i = 0; items && items->type == GPUQ_LIST && i < items->n; i++)
		n += count(items->items[i]);
	return n;
}

static struct object *find(const struct import *im, const char *kind, const char *name)
{
	for (size_t i = 0; i < im->n; i++)
		if (strcmp(im->items[i].kind, kind) == 0 && strcmp(im->items[i].name, name) == 0)
			return &im->items[i];
	return NULL;
}

static struct gpuq_val *member(struct import *im, struct gpuq_val *list, const char *name)
{
	struct gpuq_val *v = gpuq_map(im->a);

	gpuq_put(im->a, v, "name", gpuq_str(im->a, name));
	gpuq_add(im->a, list, v);
	return v;
}

/* ---- flavors, qos, topology ---- */

static void add_flavor(struct import *im, const struct object *o)
{
	const struct gpuq_val *labels = gpuq_get(o->spec, "nodeLabels");
	struct gpuq_val *pool;

	member(im, im->flavors, o->name);
	pool = member(im, im->pools, o->name);
	if (labels && labels->type == GPUQ_MAP && labels->n)
		gpuq_put(im->a, pool, "selector", gpuq_val_copy(im->a, labels));
	gpuq_put(im->a, pool, "flavor", gpuq_str(im->a, o->name));
}

/* A node is in the first pool whose labels it has: the one for all comes last. */
static void pools_in_order(struct import *im)
{
	struct gpuq_val *sorted = gpuq_list(im->a);

	for (int all = 0; all < 2; all++)
		for (uint32_t i = 0; i < im->pools->n; i++)
			if (!gpuq_get(im->pools->items[i], "selector") == (all == 1))
				gpuq_add(im->a, sorted, im->pools->items[i]);
	im->pools = sorted;
}

static void add_class(struct import *im, const struct object *o)
{
	const struct gpuq_val *value = gpuq_get(o->v, "value");
	int64_t priority = value && value->type == GPUQ_INT ? value->i : 0;
	struct gpuq_val *qos = member(im, im->qos, o->name);

	if (priority > PRIORITY_MOST || priority < -PRIORITY_MOST) {
		note(im, o, value, "value", "a priority is at most 1000000000 here: it is cut");
		priority = priority > 0 ? PRIORITY_MOST : -PRIORITY_MOST;
	}
	gpuq_put(im->a, qos, "priority", gpuq_int(im->a, priority));
	if (*gpuq_get_str(o->v, "description", ""))
		note(im, o, gpuq_get(o->v, "description"), "description", "a qos has none");
}

static void add_topology(struct import *im, const struct object *o)
{
	const struct gpuq_val *levels = gpuq_get(o->spec, "levels");
	struct gpuq_val *list = gpuq_list(im->a);

	if (gpuq_get(im->site, "topology")) {
		note(im, o, o->v, "spec.levels", "the site has one topology: the first is taken");
		return;
	}
	for (uint32_t i = 0; levels && levels->type == GPUQ_LIST && i < levels->n; i++) {
		const char *label = gpuq_get_str(levels->items[i], "nodeLabel", NULL);

		if (label)
			gpuq_add(im->a, list, gpuq_str(im->a, label));
	}
	gpuq_put(im->a, im->site, "topology", list);
}

/* ---- quotas ---- */

struct quota {
	const char *flavor;
	int64_t nominal, borrow, lend; /* thousandths; -1 = not said */
	struct quota *next;
};

static bool is_gpu(const char *resource)
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
	return fail(im, o, v, path, "expected a quantity such as 8");
}

static int read_resource(struct import *im, const struct object *o, const char *flavor,
			 const struct gpuq_val *r, struct quota ***end)
{
	const char *path = "spec.resourceGroups[].flavors[].resources[]";
	const char *name = gpuq_get_str(r, "name", "");
	struct quota *q = gpuq_arena_calloc(im->a, 1, sizeof(*q));
	int rc;

	if (!q)
		return no_memory(im);
	if (!is_gpu(name)) {
		note(im, o, r, path,
		     gpuq_arena_printf(im->a, "%s: quotas count devices alone", name));
		return 0;
	}
	q->flavor = flavor;
	rc = milli_of(im, o, gpuq_get(r, "nominalQuota"), path, &q->nominal);
	if (rc == 0)
		rc = milli_of(im, o, gpuq_get(r, "borrowingLimit"), path, &q->borrow);
	if (rc == 0)
		rc = milli_of(im, o, gpuq_get(r, "lendingLimit"), path, &q->lend);
	if (q->nominal < 0)
		q->nominal = 0;
	**end = q;
	*end = &q->next;
	return rc;
}

static int read_quotas(struct import *im, const struct object *o, struct quota **out)
{
	const struct gpuq_val *groups = gpuq_get(o->spec, "resourceGroups");
	struct quota **end = out;
	int rc = 0;

	*out = NULL;
	for (uint32_t g = 0; groups && groups->type == GPUQ_LIST && g < groups->n; g++) {
		const struct gpuq_val *flavors = gpuq_get(groups->items[g], "flavors");

		for (uint32_t f = 0; flavors && flavors->type == GPUQ_LIST && f < flavors->n; f++) {
			const struct gpuq_val *rs = gpuq_get(flavors->items[f], "resources");
			const char *name = gpuq_get_str(flavors->items[f], "name", "");

			if (!find(im, "ResourceFlavor", name))
				return fail(im, o, flavors->items[f],
					    "spec.resourceGroups[].flavors[]",
					    gpuq_arena_printf(im->a,
							      "no ResourceFlavor is named %s: "
							      "give its file too",
							      name));
			for (uint32_t i = 0; rc == 0 && rs && rs->type == GPUQ_LIST && i < rs->n;
			     i++)
				rc = read_resource(im, o, name, rs->items[i], &end);
		}
	}
	return rc;
}

static const char *cohort_of(const struct object *o)
{
	const char *name =
		strcmp(o->kind, "Cohort") == 0
			? gpuq_get_str(o->spec, "parentName", gpuq_get_str(o->spec, "parent", ""))
			: gpuq_get_str(o->spec, "cohortName", gpuq_get_str(o->spec, "cohort", ""));

	return *name ? name : NULL;
}

/* What members of the cohort bring, level by level: its own quota comes on top of theirs.
 * Kueue refuses circles; here a depth ends them. */
static int64_t members_bring(struct import *im, const char *cohort, const char *flavor, int depth)
{
	int64_t sum = 0;

	im->again = true;
	for (size_t i = 0; depth > 0 && i < im->n; i++) {
		const struct object *o = &im->items[i];
		const bool is_cohort = strcmp(o->kind, "Cohort") == 0;
		const char *above =
			is_cohort || strcmp(o->kind, "ClusterQueue") == 0 ? cohort_of(o) : NULL;
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

static void put_map(struct import *im, struct gpuq_val *queue, const char *key,
		    struct gpuq_val *map)
{
	if (map && map->n)
		gpuq_put(im->a, queue, key, map);
}

/* ---- queues ---- */

static void put_policy(struct import *im, const struct object *o, struct gpuq_val *queue)
{
	static const char *const words[][2] = {
		{ "Never", "never" },
		{ "LowerPriority", "lower" },
		{ "Any", "any" },
		{ "LowerOrNewerEqualPriority", "lower_or_newer" },
	};
	static const char *const keys[][2] = { { "reclaimWithinCohort", "reclaim" },
					       { "withinClusterQueue", "preempt" } };
	const struct gpuq_val *p = gpuq_get(o->spec, "preemption");

	for (size_t k = 0; k < 2; k++) {
		const char *word = gpuq_get_str(p, keys[k][0], "Never");

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strcmp(words[i][0], word) == 0)
				gpuq_put(im->a, queue, keys[k][1], gpuq_str(im->a, words[i][1]));
	}
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
	if (strcmp(policy, "Hold") == 0 || strcmp(policy, "HoldAndDrain") == 0)
		gpuq_put(im->a, queue, "stopped", gpuq_bool(im->a, true));
	if (strcmp(policy, "HoldAndDrain") == 0)
		note(im, o, stop, "spec.stopPolicy",
		     "a queue that is stopped lets what runs go on: cancel that by hand");
	return rc;
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
			q->nominal + (is_cohort ? members_bring(im, o->name, q->flavor, 16) : 0);

		gpuq_put(im->a, quota, q->flavor, amount(im, nominal));
		gpuq_add(im->a, order, gpuq_str(im->a, q->flavor));
		/* Who is in no cohort has nobody to borrow from. */
		if (!cohort_of(o) && !is_cohort)
			gpuq_put(im->a, limit, q->flavor, amount(im, nominal));
		else if (q->borrow >= 0)
			gpuq_put(im->a, limit, q->flavor, amount(im, nominal + q->borrow));
		if (q->lend >= 0)
			gpuq_put(im->a, lend, q->flavor, amount(im, q->lend));
	}
	put_map(im, queue, "quota", quota);
	put_map(im, queue, "limit", limit);
	put_map(im, queue, "lend", lend);
	if (order && order->n > 1 && !is_cohort)
		gpuq_put(im->a, queue, "flavors", order);
	return rc;
}

static const char *parent_of(struct import *im, const struct object *o)
{
	const char *cohort = cohort_of(o);
	const struct object *above;

	if (strcmp(o->kind, "LocalQueue") == 0) {
		above = find(im, "ClusterQueue", gpuq_get_str(o->spec, "clusterQueue", ""));
		return above ? above->called : NULL;
	}
	above = cohort ? find(im, "Cohort", cohort) : NULL;
	return above ? above->called : NULL;
}

static int add_queue(struct import *im, const struct object *o)
{
	struct gpuq_val *queue = member(im, im->queues, o->called);
	const char *parent = parent_of(im, o);
	const bool is_local = strcmp(o->kind, "LocalQueue") == 0;
	int rc;

	if (is_local && !parent)
		return fail(im, o, o->spec, "spec.clusterQueue",
			    gpuq_arena_printf(im->a,
					      "no ClusterQueue is named %s: give its file too",
					      gpuq_get_str(o->spec, "clusterQueue", "(nothing)")));
	if (parent)
		gpuq_put(im->a, queue, "parent", gpuq_str(im->a, parent));
	rc = put_quotas(im, o, queue);
	if (rc == 0)
		rc = put_common(im, o, queue);
	if (strcmp(o->kind, "ClusterQueue") == 0)
		put_policy(im, o, queue);
	if (is_local)
		gpuq_put(im->a, queue, "namespace", gpuq_str(im->a, o->namespace_));
	return rc;
}

/* ---- names ---- */

static bool is_queue(const struct object *o)
{
	return strcmp(o->kind, "Cohort") == 0 || strcmp(o->kind, "ClusterQueue") == 0 ||
	       strcmp(o->kind, "LocalQueue") == 0;
}

static bool is_taken(const struct import *im, const char *name)
{
	for (size_t i = 0; i < im->n; i++)
		if (im->items[i].called && strcmp(im->items[i].called, name) == 0)
			return true;
	return false;
}

/* All queues share one space of names. LocalQueues keep theirs before others, since jobs are
 * labelled with them; two of one name carry their namespaces in front. */
static int name_queues(struct import *im, const char *kind)
{
	for (size_t i = 0; i < im->n; i++) {
		struct object *o = &im->items[i];
		const bool is_local = strcmp(kind, "LocalQueue") == 0;
		bool alone = true;

		if (strcmp(o->kind, kind) != 0)
			continue;
		for (size_t k = 0; is_local && k < im->n; k++)
			alone &= k == i || strcmp(im->items[k].kind, kind) != 0 ||
				 strcmp(im->items[k].name, o->name) != 0;
		if (alone && !is_taken(im, o->name))
			o->called = o->name;
		else if (is_local)
			o->called = gpuq_arena_printf(im->a, "%s.%s", o->namespace_, o->name);
		else
			o->called = gpuq_arena_printf(im->a, "%s-%s",
						      strcmp(kind, "Cohort") == 0 ? "cohort" : "cq",
						      o->name);
		if (!o->called)
			return no_memory(im);
		if (strcmp(o->called, o->name) != 0)
			note(im, o, o->v, "metadata.name",
			     gpuq_arena_printf(im->a,
					       "another queue has this name: this one is called %s",
					       o->called));
	}
	return 0;
}

/* A cohort needs no object of its own in Kueue. */
static int add_implicit_cohorts(struct import *im)
{
	for (size_t i = 0; i < im->n; i++) {
		const struct object *o = &im->items[i];
		const char *name =
			strcmp(o->kind, "ClusterQueue") == 0 || strcmp(o->kind, "Cohort") == 0
				? cohort_of(o)
				: NULL;
		struct object cohort = { o->file, "Cohort", name, "", o->v, NULL, NULL };

		if (!name || find(im, "Cohort", name))
			continue;
		if (im->n == im->room)
			return no_memory(im);
		im->items[im->n++] = cohort;
	}
	return 0;
}

/* ---- all of it ---- */

struct telling {
	struct import *im;
	const struct object *o;
};

static void tell_field(void *arg, const char *path, const struct gpuq_val *v, const char *why)
{
	const struct telling *t = arg;

	note(t->im, t->o, v, path, why);
}

static int convert(struct import *im, const char *kind)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < im->n; i++) {
		const struct object *o = &im->items[i];
		struct telling t = { im, o };

		if (strcmp(o->kind, kind) != 0)
			continue;
		if (o->spec)
			import_fields(kind, o->v, tell_field, &t);
		if (is_queue(o))
			rc = add_queue(im, o);
		else if (strcmp(kind, "ResourceFlavor") == 0)
			add_flavor(im, o);
		else if (strcmp(kind, "WorkloadPriorityClass") == 0)
			add_class(im, o);
		else
			add_topology(im, o);
	}
	return rc;
}

static int check_repeats(struct import *im)
{
	for (size_t i = 0; i < im->n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(im->items[i].kind, im->items[k].kind) == 0 &&
			    strcmp(im->items[i].name, im->items[k].name) == 0 &&
			    (strcmp(im->items[i].kind, "LocalQueue") != 0 ||
			     strcmp(im->items[i].namespace_, im->items[k].namespace_) == 0))
				return fail(im, &im->items[i], im->items[i].v, "metadata.name",
					    "is there twice");
	return 0;
}

int import_kueue(struct gpuq_arena *a, const struct import_doc *docs, size_t n,
		 struct gpuq_val **site, import_note_fn note_fn, void *arg, struct gpuq_err *err)
{
	static const char *const order[] = { "ResourceFlavor",        "Topology",
					     "WorkloadPriorityClass", "Cohort",
					     "ClusterQueue",          "LocalQueue" };
	struct import im = { .a = a, .note = note_fn, .arg = arg, .err = err };
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		im.room += 2 * count(docs[i].v); /* a cohort may come with each */
	im.items = gpuq_arena_calloc(a, im.room + 1, sizeof(*im.items));
	im.site = gpuq_map(a);
	im.flavors = gpuq_list(a);
	im.pools = gpuq_list(a);
	im.qos = gpuq_list(a);
	im.queues = gpuq_list(a);
	if (!im.items || !im.queues)
		return no_memory(&im);
	gpuq_put(a, im.site, "version", gpuq_int(a, 1));
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = add_object(&im, docs[i].file, docs[i].v);
	if (rc == 0)
		rc = check_repeats(&im);
	if (rc == 0)
		rc = add_implicit_cohorts(&im);
	if (rc == 0)
		rc = name_queues(&im, "LocalQueue");
	if (rc == 0)
		rc = name_queues(&im, "ClusterQueue");
	if (rc == 0)
		rc = name_queues(&im, "Cohort");
	for (size_t i = 0; rc == 0 && i < sizeof(order) / sizeof(order[0]); i++)
		rc = convert(&im, order[i]);
	if (rc < 0)
		return rc;
	pools_in_order(&im);
	put_map(&im, im.site, "flavors", im.flavors);
	put_map(&im, im.site, "pools", im.pools);
	put_map(&im, im.site, "qos", im.qos);
	put_map(&im, im.site, "queues", im.queues);
	if (!gpuq_val_ok(im.site))
		return no_memory(&im);
	*site = im.site;
	return 0;
}
