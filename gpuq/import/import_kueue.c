#include "gpuq/import/import_kueue.h"

#include <stdlib.h>
#include <string.h>

#include "gpuq/import/import_checks.h"
#include "gpuq/import/import_fields.h"
#include "gpuq/import/import_int.h"

enum { PRIORITY_MOST = 1000000000, NAME_MOST = 63 };

static const char group[] = "kueue.x-k8s.io/";
static const char *const kinds[] = { "ClusterQueue",
				     "Cohort",
				     "LocalQueue",
				     "ResourceFlavor",
				     "WorkloadPriorityClass",
				     "Topology",
				     "AdmissionCheck",
				     "ProvisioningRequestConfig",
				     NULL };

/* ---- words ---- */

static const char *place(struct import *im, const struct object *o, const struct gpuq_val *v)
{
	if (!v || !v->at.line)
		v = o->v;
	return gpuq_arena_printf(im->a, "%s:%u:%u: %s/%s", o->file, v->at.line, v->at.col, o->kind,
				 o->name);
}

void import_note(struct import *im, const struct object *o, const struct gpuq_val *v,
		 const char *path, const char *why)
{
	const char *text = gpuq_arena_printf(im->a, "%s: %s: %s", place(im, o, v), path, why);

	if (text && !im->again)
		im->note(im->arg, text);
}

int import_fail(struct import *im, const struct object *o, const struct gpuq_val *v,
		const char *path, const char *what)
{
	return gpuq_fail(im->err, GPUQ_EINVAL, "%s: %s: %s", place(im, o, v), path, what);
}

struct object *import_find(const struct import *im, const char *kind, const char *name)
{
	for (size_t i = 0; i < im->n; i++)
		if (strcmp(im->items[i].kind, kind) == 0 && strcmp(im->items[i].name, name) == 0)
			return &im->items[i];
	return NULL;
}

bool import_has_name(const struct gpuq_val *list, const char *name)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (strcmp(gpuq_get_str(list->items[i], "name", ""), name) == 0)
			return true;
	return false;
}

struct gpuq_val *import_member(struct import *im, struct gpuq_val *list, const char *name)
{
	struct gpuq_val *v = gpuq_map(im->a);

	gpuq_put(im->a, v, "name", gpuq_str(im->a, name));
	gpuq_add(im->a, list, v);
	return v;
}

const char *import_cohort(const struct object *o)
{
	const char *name =
		strcmp(o->kind, "Cohort") == 0
			? gpuq_get_str(o->spec, "parentName", gpuq_get_str(o->spec, "parent", ""))
			: gpuq_get_str(o->spec, "cohortName", gpuq_get_str(o->spec, "cohort", ""));

	return *name ? name : NULL;
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
			    NULL,
			    NULL,
			    false };
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
			return gpuq_no_memory(im->err);
		im->items[im->n++] = o;
		return 0;
	}
	import_note(im, &o, v, "kind",
		    strncmp(api, group, sizeof(group) - 1) == 0 ? "it has no counterpart here"
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

/* ---- flavors, qos, topology ---- */

bool import_has_labels(const struct object *o)
{
	const struct gpuq_val *labels = gpuq_get(o->spec, "nodeLabels");

	return labels && labels->type == GPUQ_MAP && labels->n > 0;
}

/* Without labels on any of them, flavors tell no nodes apart. */
static bool is_plain(const struct import *im)
{
	bool any = false;

	for (size_t i = 0; i < im->n; i++) {
		if (strcmp(im->items[i].kind, "ResourceFlavor") != 0)
			continue;
		if (import_has_labels(&im->items[i]))
			return false;
		any = true;
	}
	return any;
}

/* Tell of the second and later ones that they are one with the first. */
static void tell_plain(struct import *im, const struct object *o)
{
	for (size_t i = 0; &im->items[i] != o; i++)
		if (strcmp(im->items[i].kind, "ResourceFlavor") == 0 &&
		    !import_has_labels(&im->items[i])) {
			import_note(im, o, o->v, "spec.nodeLabels",
				    gpuq_arena_printf(im->a,
						      "none, as those of %s: their quotas are "
						      "added up",
						      im->items[i].name));
			return;
		}
}

/* The site has one topology, that of the first Topology object: report a flavor of another one. */
static void tell_topology(struct import *im, const struct object *o)
{
	const struct gpuq_val *named = gpuq_get(o->spec, "topologyName");
	const char *name = gpuq_get_str(o->spec, "topologyName", ""), *first = NULL;

	for (size_t i = 0; !first && i < im->n; i++)
		if (strcmp(im->items[i].kind, "Topology") == 0)
			first = im->items[i].name;
	if (!*name || (first && strcmp(first, name) == 0))
		return;
	import_note(
		im, o, named, "spec.topologyName",
		first ? gpuq_arena_printf(im->a,
					  "the site has one topology, whose levels are those of %s",
					  first)
		      : gpuq_arena_printf(im->a, "no Topology is named %s: give its file too",
					  name));
}

const struct gpuq_val *import_tolerations(const struct object *o)
{
	const struct gpuq_val *list = o ? gpuq_get(o->spec, "tolerations") : NULL;

	return list && list->type == GPUQ_LIST && list->n ? list : NULL;
}

void import_tolerate(struct import *im, struct gpuq_val *pool, const struct object *flavor)
{
	const struct gpuq_val *list = import_tolerations(flavor);

	if (list && !gpuq_get(pool, "tolerations"))
		gpuq_put(im->a, pool, "tolerations", gpuq_val_copy(im->a, list));
}

static void add_flavor(struct import *im, const struct object *o)
{
	const struct gpuq_val *labels = gpuq_get(o->spec, "nodeLabels");
	struct gpuq_val *pool;

	tell_topology(im, o);
	if (!import_has_labels(o)) {
		tell_plain(im, o);
		return;
	}
	import_member(im, im->flavors, o->name);
	pool = import_member(im, im->pools, o->name);
	gpuq_put(im->a, pool, "selector", gpuq_val_copy(im->a, labels));
	gpuq_put(im->a, pool, "flavor", gpuq_str(im->a, o->name));
	import_tolerate(im, pool, o);
}

static uint32_t n_labels(const struct gpuq_val *pool)
{
	const struct gpuq_val *selector = gpuq_get(pool, "selector");

	return selector ? selector->n : 0;
}

static bool same_labels(const struct gpuq_val *x, const struct gpuq_val *y)
{
	const struct gpuq_val *a = gpuq_get(x, "selector"), *b = gpuq_get(y, "selector");

	return (!a && !b) || (a && b && gpuq_val_equal(a, b));
}

/* A node is in the first pool whose labels it has: those that request more come first. */
static void pools_in_order(struct import *im)
{
	struct gpuq_val *sorted = gpuq_list(im->a);
	uint32_t most = 0;

	for (uint32_t i = 0; i < im->pools->n; i++)
		if (n_labels(im->pools->items[i]) > most)
			most = n_labels(im->pools->items[i]);
	for (uint32_t n = most + 1; n-- > 0;)
		for (uint32_t i = 0; i < im->pools->n; i++)
			if (n_labels(im->pools->items[i]) == n)
				gpuq_add(im->a, sorted, im->pools->items[i]);
	im->pools = sorted;
}

/* The pool of the later one never gets a node. */
static void tell_same_labels(struct import *im)
{
	for (uint32_t i = 0; i < im->pools->n; i++)
		for (uint32_t k = 0; k < i; k++) {
			const char *first = gpuq_get_str(im->pools->items[k], "name", "");
			const struct object *o;

			if (!same_labels(im->pools->items[i], im->pools->items[k]))
				continue;
			o = import_find(im, "ResourceFlavor",
					gpuq_get_str(im->pools->items[i], "name", ""));
			if (!o)
				break;
			import_note(
				im, o, gpuq_get(o->spec, "nodeLabels"), "spec.nodeLabels",
				gpuq_arena_printf(im->a,
						  "those of %s: a node is of one flavor, and these "
						  "are of that one",
						  first));
			break;
		}
}

static int add_class(struct import *im, const struct object *o)
{
	const struct gpuq_val *value = gpuq_get(o->v, "value");
	int64_t priority = value && value->type == GPUQ_INT ? value->i : 0;
	struct gpuq_val *qos = import_member(im, im->qos, o->name);

	if (!value || value->type != GPUQ_INT)
		return import_fail(im, o, value, "value", "expected a whole number");
	if (priority > PRIORITY_MOST || priority < -PRIORITY_MOST) {
		import_note(im, o, value, "value",
			    "a priority is at most 1000000000 here: it is cut");
		priority = priority > 0 ? PRIORITY_MOST : -PRIORITY_MOST;
	}
	gpuq_put(im->a, qos, "priority", gpuq_int(im->a, priority));
	if (*gpuq_get_str(o->v, "description", ""))
		import_note(im, o, gpuq_get(o->v, "description"), "description", "a qos has none");
	return 0;
}

static void add_topology(struct import *im, const struct object *o)
{
	const struct gpuq_val *levels = gpuq_get(o->spec, "levels");
	struct gpuq_val *list = gpuq_list(im->a);

	if (gpuq_get(im->site, "topology")) {
		import_note(im, o, o->v, "spec.levels",
			    "the site has one topology: the first is taken");
		return;
	}
	for (uint32_t i = 0; levels && levels->type == GPUQ_LIST && i < levels->n; i++) {
		const char *label = gpuq_get_str(levels->items[i], "nodeLabel", NULL);

		if (label)
			gpuq_add(im->a, list, gpuq_str(im->a, label));
	}
	gpuq_put(im->a, im->site, "topology", list);
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
			return gpuq_no_memory(im->err);
		if (strcmp(o->called, o->name) != 0)
			import_note(im, o, o->v, "metadata.name",
				    gpuq_arena_printf(
					    im->a,
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
				? import_cohort(o)
				: NULL;
		struct object cohort = {
			o->file, "Cohort", name, "", o->v, NULL, NULL, NULL, false
		};

		if (!name || import_find(im, "Cohort", name))
			continue;
		if (im->n == im->room)
			return gpuq_no_memory(im->err);
		im->items[im->n++] = cohort;
	}
	return 0;
}

static int check_name(struct import *im, const struct object *o)
{
	const char *name = o->called ? o->called : o->name;

	return strlen(name) <= NAME_MOST
		       ? 0
		       : import_fail(im, o, o->v, "metadata.name",
				     gpuq_arena_printf(im->a,
						       "%s: a name has at most %d characters here",
						       name, NAME_MOST));
}

static int check_circle(struct import *im, const struct object *o)
{
	const struct object *up = o;
	size_t hops = 0;

	for (; up && import_cohort(up) && hops < im->n; hops++)
		up = import_find(im, "Cohort", import_cohort(up));
	if (hops < im->n)
		return 0;
	return import_fail(im, o, o->spec, "spec.parentName", "the cohorts above it form a cycle");
}

static int check_objects(struct import *im)
{
	int rc = 0;

	if (im->n == 0)
		return gpuq_fail(im->err, GPUQ_EINVAL,
				 "there is no ClusterQueue, nor anything else of Kueue that a "
				 "site has");
	for (size_t i = 0; rc == 0 && i < im->n; i++) {
		const struct object *o = &im->items[i];

		rc = check_name(im, o);
		if (rc == 0 && strcmp(o->kind, "Cohort") == 0)
			rc = check_circle(im, o);
	}
	return rc;
}

/* ---- all of it ---- */

struct telling {
	struct import *im;
	const struct object *o;
};

static void tell_field(void *arg, const char *path, const struct gpuq_val *v, const char *why)
{
	const struct telling *t = arg;

	import_note(t->im, t->o, v, path, why);
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
			rc = import_queue(im, o);
		else if (strcmp(kind, "ResourceFlavor") == 0)
			add_flavor(im, o);
		else if (strcmp(kind, "WorkloadPriorityClass") == 0)
			rc = add_class(im, o);
		else if (strcmp(kind, "Topology") == 0)
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
				return import_fail(im, &im->items[i], im->items[i].v,
						   "metadata.name", "is there twice");
	return 0;
}

/* Tell of quotas of other resources, of all queues at once. */
static void tell_left_out(struct import *im)
{
	const struct gpuq_val *names = im->left.names;
	const char *text = "", *others = "";

	if (im->left.n == 0)
		return;
	for (uint32_t i = 0; text && i < names->n; i++)
		text = gpuq_arena_printf(im->a, "%s%s%s", text, i ? ", " : "", names->items[i]->s);
	if (im->left.n > 1)
		others = gpuq_arena_printf(im->a, ", here and in %zu more", im->left.n - 1);
	import_note(im, im->left.first, im->left.at, "spec.resourceGroups",
		    gpuq_arena_printf(im->a, "%s: quotas count devices alone%s", text, others));
}

int import_kueue(struct gpuq_arena *a, const struct import_from *from, struct gpuq_val **site,
		 struct gpuq_buf *comment, import_note_fn note_fn, void *arg, struct gpuq_err *err)
{
	static const char *const order[] = { "ResourceFlavor",        "Topology",
					     "WorkloadPriorityClass", "Cohort",
					     "ClusterQueue",          "LocalQueue",
					     "AdmissionCheck",        "ProvisioningRequestConfig" };
	const struct import_doc *docs = from->docs;
	const size_t n = from->n_docs;
	struct import im = { .a = a, .note = note_fn, .arg = arg, .err = err };
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		im.room += 2 * count(docs[i].v); /* a cohort may come with each */
	im.left.names = gpuq_list(a);
	im.items = gpuq_arena_calloc(a, im.room + 1, sizeof(*im.items));
	im.site = gpuq_map(a);
	im.flavors = gpuq_list(a);
	im.pools = gpuq_list(a);
	im.qos = gpuq_list(a);
	im.queues = gpuq_list(a);
	if (!im.items || !im.queues)
		return gpuq_no_memory(im.err);
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
	if (rc == 0)
		rc = check_objects(&im);
	im.plain = is_plain(&im);
	if (rc == 0)
		rc = import_shapes(&im, from->shapes, from->n_shapes);
	for (size_t i = 0; rc == 0 && i < sizeof(order) / sizeof(order[0]); i++)
		rc = convert(&im, order[i]);
	if (rc == 0)
		rc = import_checks(&im);
	*comment = im.comment;
	if (rc < 0)
		return rc;
	tell_left_out(&im);
	pools_in_order(&im);
	tell_same_labels(&im);
	import_put_map(&im, im.site, "flavors", im.flavors);
	import_put_map(&im, im.site, "pools", im.pools);
	import_put_map(&im, im.site, "qos", im.qos);
	import_put_map(&im, im.site, "queues", im.queues);
	if (!gpuq_val_ok(im.site))
		return gpuq_no_memory(im.err);
	*site = im.site;
	return 0;
}
