#include "gpuq/import/import_checks.h"

#include <inttypes.h>
#include <string.h>

#include "libgpuq/schema.h"

#define CONTROLLER "kueue.x-k8s.io/provisioning-request"

/* ---- which check is for which flavor ---- */

/* Return the configuration of a check that has nodes provisioned; NULL = it is another kind of check, or an error
 * was set. */
static const struct object *config_of(struct import *im, const struct object *check, int *rc)
{
	const char *name = gpuq_path(check->spec, "parameters", "name", NULL)
				   ? gpuq_get_str(gpuq_get(check->spec, "parameters"), "name", "")
				   : "";
	const struct object *config = import_find(im, "ProvisioningRequestConfig", name);

	if (strcmp(gpuq_get_str(check->spec, "controllerName", ""), CONTROLLER) != 0)
		return NULL;
	if (!config)
		*rc = import_fail(
			im, check, gpuq_get(check->spec, "parameters"), "spec.parameters",
			gpuq_arena_printf(
				im->a,
				"no ProvisioningRequestConfig is named %s: give its file too",
				*name ? name : "(nothing)"));
	return config;
}

/* Note that nodes of the flavor come by that configuration. */
static void set_config(struct import *im, const struct object *queue, const char *flavor,
		       const struct object *config)
{
	struct object *f = import_find(im, "ResourceFlavor", flavor);

	if (!f)
		return;
	if (f->config && f->config != config)
		import_note(im, queue, queue->v, "spec.admissionChecks",
			    gpuq_arena_printf(
				    im->a, "nodes of flavor %s come by %s already: %s is left out",
				    flavor, f->config->name, config->name));
	else
		f->config = config;
}

/* The same for those flavors of a queue that the list names; NULL or empty: for all. */
static void set_configs(struct import *im, const struct object *queue, const struct gpuq_val *on,
			const struct object *config)
{
	const struct gpuq_val *groups = gpuq_get(queue->spec, "resourceGroups");
	const bool all = !on || on->type != GPUQ_LIST || on->n == 0;

	for (uint32_t i = 0; !all && i < on->n; i++)
		if (on->items[i]->type == GPUQ_STR)
			set_config(im, queue, on->items[i]->s, config);
	for (uint32_t g = 0; all && groups && groups->type == GPUQ_LIST && g < groups->n; g++) {
		const struct gpuq_val *flavors = gpuq_get(groups->items[g], "flavors");

		for (uint32_t f = 0; flavors && flavors->type == GPUQ_LIST && f < flavors->n; f++)
			set_config(im, queue, gpuq_get_str(flavors->items[f], "name", ""), config);
	}
}

static int use_check(struct import *im, const struct object *queue, const struct gpuq_val *at,
		     const char *path, const char *name, const struct gpuq_val *on)
{
	struct object *check = import_find(im, "AdmissionCheck", name);
	const struct object *config;
	int rc = 0;

	if (!check) {
		import_note(im, queue, at, path,
			    gpuq_arena_printf(im->a,
					      "no AdmissionCheck is named %s: jobs start when "
					      "there is room; give its "
					      "file too, if it has nodes provisioned",
					      name));
		return 0;
	}
	check->used = true;
	config = config_of(im, check, &rc);
	if (config)
		set_configs(im, queue, on, config);
	return rc;
}

static int use_checks(struct import *im, const struct object *queue)
{
	const struct gpuq_val *names = gpuq_get(queue->spec, "admissionChecks");
	const struct gpuq_val *list =
		gpuq_path(queue->spec, "admissionChecksStrategy", "admissionChecks", NULL);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && names && names->type == GPUQ_LIST && i < names->n; i++)
		if (names->items[i]->type == GPUQ_STR)
			rc = use_check(im, queue, names, "spec.admissionChecks", names->items[i]->s,
				       NULL);
	for (uint32_t i = 0; rc == 0 && list && list->type == GPUQ_LIST && i < list->n; i++)
		rc = use_check(im, queue, list, "spec.admissionChecksStrategy",
			       gpuq_get_str(list->items[i], "name", ""),
			       gpuq_get(list->items[i], "onFlavors"));
	return rc;
}

/* ---- what a configuration is here ---- */

static bool only_devices(const struct gpuq_val *resources)
{
	for (uint32_t i = 0; resources && resources->type == GPUQ_LIST && i < resources->n; i++)
		if (resources->items[i]->type != GPUQ_STR || !import_is_gpu(resources->items[i]->s))
			return false;
	return true;
}

static void put_span(struct import *im, struct gpuq_val *to, const char *key,
		     const struct gpuq_val *seconds)
{
	if (seconds && seconds->type == GPUQ_INT)
		gpuq_put(im->a, to, key,
			 gpuq_str(im->a, gpuq_arena_printf(im->a, "%" PRId64 "s", seconds->i)));
}

static void put_parameters(struct import *im, struct gpuq_val *to,
			   const struct gpuq_val *parameters)
{
	struct gpuq_val *map = gpuq_map(im->a);

	for (uint32_t i = 0; parameters && parameters->type == GPUQ_MAP && i < parameters->n; i++) {
		const char *key = parameters->pairs[i].key;
		const struct gpuq_val *v = parameters->pairs[i].val;
		const char *text = v->type == GPUQ_STR ? v->s : v->src;

		if (strcmp(key, "maxRunDurationSeconds") != 0)
			gpuq_put(im->a, map, key, gpuq_val_copy(im->a, v));
		else if (text)
			gpuq_put(im->a, to, "max_run",
				 gpuq_str(im->a, gpuq_arena_printf(im->a, "%ss", text)));
	}
	import_put_map(im, to, "parameters", map);
}

/* Return the keys that it gives to `provisioning`. */
static struct gpuq_val *keys_of(struct import *im, const struct object *config)
{
	const struct gpuq_val *retry = gpuq_get(config->spec, "retryStrategy");
	const struct gpuq_val *updates =
		gpuq_path(config->spec, "podSetUpdates", "nodeSelector", NULL);
	const struct gpuq_val *limit = gpuq_get(retry, "backoffLimitCount");
	struct gpuq_val *v = gpuq_map(im->a), *from = gpuq_map(im->a);

	gpuq_put(im->a, v, "kind", gpuq_str(im->a, "request"));
	gpuq_put(im->a, v, "class",
		 gpuq_str(im->a, gpuq_get_str(config->spec, "provisioningClassName", "")));
	put_parameters(im, v, gpuq_get(config->spec, "parameters"));
	if (limit && limit->type == GPUQ_INT)
		gpuq_put(im->a, v, "retries", gpuq_int(im->a, limit->i));
	put_span(im, v, "retry_base", gpuq_get(retry, "backoffBaseSeconds"));
	put_span(im, v, "retry_max", gpuq_get(retry, "backoffMaxSeconds"));
	for (uint32_t i = 0; updates && updates->type == GPUQ_LIST && i < updates->n; i++)
		gpuq_put(im->a, from, gpuq_get_str(updates->items[i], "key", "?"),
			 gpuq_str(im->a, gpuq_get_str(updates->items[i],
						      "valueFromProvisioningClassDetail", "?")));
	import_put_map(im, v, "node_selector_from", from);
	return v;
}

/* ---- the shapes that --pools gives ---- */

static int shape_fails(struct import *im, const struct import_doc *doc, const struct gpuq_val *v,
		       const char *what)
{
	return gpuq_fail(im->err, GPUQ_EINVAL, "%s:%u:%u: %s", doc->file, v->at.line, v->at.col,
			 what);
}

/* The keys of a site file that pools in --pools may have; gpuqd checks their values when the site is applied. */
static const char *const pool_keys[] = {
	"name", "selector",    "flavor",           "sharing", "placement",
	"spot", "evictable",   "replicas_as_gpus", "billing", "price",
	"mig",  "tolerations", "provisioning",     NULL
};
static const char *const provisioning_keys[] = { "kind",
						 "class",
						 "parameters",
						 "machine",
						 "min_nodes",
						 "max_nodes",
						 "max_requests",
						 "booking",
						 "timeout",
						 "retries",
						 "retry_base",
						 "retry_max",
						 "node_selector_from",
						 "max_run",
						 "min_idle",
						 "on_failure",
						 "evictable",
						 "placeholders",
						 NULL };
static const char *const machine_keys[] = { "gpus",   "cpus",   "memory",    "product",
					    "labels", "taints", "resources", NULL };

static int check_keys(struct import *im, const struct import_doc *doc, const struct gpuq_val *v,
		      const char *const *known)
{
	for (uint32_t i = 0; v && v->type == GPUQ_MAP && i < v->n; i++) {
		const char *key = v->pairs[i].key, *near;
		size_t k = 0;

		while (known[k] && strcmp(known[k], key) != 0)
			k++;
		if (known[k])
			continue;
		near = gpuq_nearest(key, known);
		return gpuq_fail(im->err, GPUQ_EINVAL, "%s:%u:%u: unknown key '%s'%s%s%s",
				 doc->file, v->pairs[i].val->at.line, v->pairs[i].val->at.col, key,
				 near ? "; did you mean '" : "", near ? near : "",
				 near ? "'?" : "");
	}
	return 0;
}

/* Refuse what apply would: unknown keys, and a number of nodes that is none. */
static int check_shape(struct import *im, const struct import_doc *doc, const struct gpuq_val *pool)
{
	const struct gpuq_val *how = gpuq_get(pool, "provisioning"),
			      *most = gpuq_get(how, "max_nodes");

	if (check_keys(im, doc, pool, pool_keys) < 0 ||
	    check_keys(im, doc, how, provisioning_keys) < 0 ||
	    check_keys(im, doc, gpuq_get(how, "machine"), machine_keys) < 0)
		return GPUQ_EINVAL;
	if (most && (most->type != GPUQ_INT || most->i < 1))
		return shape_fails(im, doc, most, "max_nodes: expected 1 at least");
	return 0;
}

int import_shapes(struct import *im, const struct import_doc *docs, size_t n)
{
	im->shapes = gpuq_list(im->a);
	im->spread = gpuq_list(im->a);
	for (size_t i = 0; i < n; i++) {
		const struct gpuq_val *pools = gpuq_get(docs[i].v, "pools");

		if (!pools || pools->type != GPUQ_LIST)
			return shape_fails(im, &docs[i], docs[i].v,
					   "expected pools, as a site file has them: a list of "
					   "{name, selector, "
					   "flavor, provisioning: {machine, max_nodes}}");
		for (uint32_t k = 0; k < pools->n; k++) {
			const struct gpuq_val *p = pools->items[k],
					      *how = gpuq_get(p, "provisioning");
			const char *flavor = gpuq_get_str(p, "flavor", NULL);

			if (p->type != GPUQ_MAP || !gpuq_get_str(p, "name", NULL))
				return shape_fails(im, &docs[i], p, "expected a pool with a name");
			if (how && !gpuq_get(how, "kind") &&
			    !gpuq_path(how, "machine", "gpus", NULL))
				return shape_fails(
					im, &docs[i], how,
					"machine is missing: expected {gpus: N} at least");
			if (how && !gpuq_get(how, "kind") && !gpuq_get(how, "max_nodes"))
				return shape_fails(im, &docs[i], how, "max_nodes is missing");
			if (check_shape(im, &docs[i], p) < 0)
				return GPUQ_EINVAL;
			gpuq_add(im->a, im->shapes, gpuq_val_copy(im->a, p));
			if (flavor && !import_find(im, "ResourceFlavor", flavor) &&
			    !import_has_name(im->flavors, flavor)) {
				import_member(im, im->flavors, flavor);
				gpuq_add(im->a, im->spread, gpuq_str(im->a, flavor));
			}
		}
	}
	return 0;
}

/* Return the flavor of Kueue whose nodes the pool has: the one of its name, or its flavor's; else the only one
 * without labels whose nodes are provisioned. */
static const struct object *flavor_of(struct import *im, const struct gpuq_val *pool, bool *several)
{
	const struct object *o =
		import_find(im, "ResourceFlavor", gpuq_get_str(pool, "flavor", ""));

	if (!o)
		o = import_find(im, "ResourceFlavor", gpuq_get_str(pool, "name", ""));
	for (size_t i = 0; !o && i < im->n; i++) {
		const struct object *k = &im->items[i];

		if (strcmp(k->kind, "ResourceFlavor") != 0 || !k->config || import_has_labels(k))
			continue;
		for (size_t l = i + 1; l < im->n; l++)
			*several |= strcmp(im->items[l].kind, "ResourceFlavor") == 0 &&
				    im->items[l].config && !import_has_labels(&im->items[l]) &&
				    im->items[l].config != k->config;
		o = k;
	}
	return o;
}

/* Return the machine with the labels by which its nodes are in the pool, and the flavor's taints. */
static struct gpuq_val *machine_of(struct import *im, const struct gpuq_val *pool,
				   const struct object *flavor)
{
	const struct gpuq_val *given = gpuq_path(pool, "provisioning", "machine", NULL);
	const struct gpuq_val *selector = gpuq_get(pool, "selector"),
			      *own = gpuq_get(given, "labels");
	const struct gpuq_val *taints = flavor ? gpuq_get(flavor->spec, "nodeTaints") : NULL;
	struct gpuq_val *v = gpuq_map(im->a), *labels = gpuq_map(im->a);

	for (uint32_t i = 0; given && i < given->n; i++)
		if (strcmp(given->pairs[i].key, "labels") != 0)
			gpuq_put(im->a, v, given->pairs[i].key, given->pairs[i].val);
	for (uint32_t i = 0; selector && selector->type == GPUQ_MAP && i < selector->n; i++)
		gpuq_put(im->a, labels, selector->pairs[i].key, selector->pairs[i].val);
	for (uint32_t i = 0; own && own->type == GPUQ_MAP && i < own->n; i++)
		gpuq_set(im->a, labels, own->pairs[i].key, own->pairs[i].val);
	import_put_map(im, v, "labels", labels);
	if (taints && taints->type == GPUQ_LIST && taints->n && !gpuq_get(v, "taints"))
		gpuq_put(im->a, v, "taints", gpuq_val_copy(im->a, taints));
	return v;
}

/* Return the pool's provisioning: what its check says, and what the file says, which wins. */
static struct gpuq_val *provisioning_of(struct import *im, const struct gpuq_val *pool,
					const struct object *flavor)
{
	const struct gpuq_val *given = gpuq_get(pool, "provisioning");
	struct gpuq_val *v = keys_of(im, flavor->config);

	for (uint32_t i = 0; i < given->n; i++)
		if (strcmp(given->pairs[i].key, "machine") != 0)
			gpuq_set(im->a, v, given->pairs[i].key, given->pairs[i].val);
	gpuq_set(im->a, v, "machine", machine_of(im, pool, flavor));
	return v;
}

static int add_shape(struct import *im, const struct gpuq_val *shape)
{
	const char *name = gpuq_get_str(shape, "name", "");
	const struct gpuq_val *how = gpuq_get(shape, "provisioning");
	struct gpuq_val *pool = NULL;
	bool several = false;
	const struct object *flavor =
		how && !gpuq_get(how, "kind") ? flavor_of(im, shape, &several) : NULL;

	for (uint32_t i = 0; i < im->pools->n; i++)
		if (strcmp(gpuq_get_str(im->pools->items[i], "name", ""), name) == 0)
			pool = im->pools->items[i];
	if (several)
		return gpuq_fail(
			im->err, GPUQ_EINVAL,
			"pool %s: several AdmissionChecks have nodes provisioned: name it, or its "
			"flavor, as the ResourceFlavor whose nodes it has",
			name);
	if (!pool)
		pool = import_member(im, im->pools, name);
	for (uint32_t i = 0; i < shape->n; i++)
		gpuq_set(im->a, pool, shape->pairs[i].key, shape->pairs[i].val);
	if (!how || gpuq_get(how, "kind"))
		return 0;
	if (!flavor || !flavor->config)
		return gpuq_fail(im->err, GPUQ_EINVAL,
				 "pool %s: no AdmissionCheck has its nodes provisioned: give "
				 "provisioning a kind "
				 "and class, or leave it out",
				 name);
	gpuq_set(im->a, pool, "provisioning", provisioning_of(im, pool, flavor));
	import_tolerate(im, pool, flavor);
	im->has_shapes = true;
	return 0;
}

/* ---- what is still to be filled in ---- */

/* Append the keys as a comment, to be put into a pool. */
static void comment_keys(struct import *im, const struct object *config, const char *indent,
			 struct gpuq_buf *out)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	gpuq_yaml_write(&text, keys_of(im, config));
	gpuq_buf_printf(out, "#%sprovisioning:\n", indent);
	for (const char *p = gpuq_buf_str(&text); *p;) {
		const size_t n = strcspn(p, "\n");

		gpuq_buf_printf(out, "#%s  %.*s\n", indent, (int)n, p);
		p += n + (p[n] == '\n');
	}
	gpuq_buf_printf(out,
			"#%s  machine: {gpus: N, cpus: N, memory: SIZE, product: NAME}\n"
			"#%s  max_nodes: N\n",
			indent, indent);
	gpuq_buf_done(&text);
}

static void add_comment(struct import *im, const struct object *flavor)
{
	struct gpuq_val *none;

	gpuq_buf_printf(&im->comment,
			"#\n# ResourceFlavor %s: %s has its nodes provisioned, whose shape is not "
			"known.\n"
			"# Fill in N, SIZE and NAME, here or in a file for --pools:\n#\n",
			flavor->name, flavor->config->name);
	for (uint32_t i = 0; i < im->pools->n; i++)
		if (strcmp(gpuq_get_str(im->pools->items[i], "name", ""), flavor->name) == 0) {
			none = gpuq_map(im->a);
			gpuq_put(im->a, none, "kind", gpuq_str(im->a, "none"));
			gpuq_set(im->a, im->pools->items[i], "provisioning", none);
			gpuq_buf_printf(&im->comment, "# pools:\n#   - name: %s\n", flavor->name);
			comment_keys(im, flavor->config, "     ", &im->comment);
			return;
		}
	gpuq_buf_adds(&im->comment, "# flavors:\n#   - name: NAME\n# pools:\n#   - name: NAME\n#   "
				    "  selector: {LABEL: VALUE}\n"
				    "#     flavor: NAME\n");
	comment_keys(im, flavor->config, "     ", &im->comment);
}

static bool has_shape(const struct import *im, const struct object *flavor)
{
	for (uint32_t i = 0; i < im->pools->n; i++) {
		const struct gpuq_val *p = im->pools->items[i];

		if (strcmp(gpuq_get_str(p, "name", ""), flavor->name) != 0 &&
		    strcmp(gpuq_get_str(p, "flavor", ""), flavor->name) != 0)
			continue;
		if (gpuq_get(p, "provisioning"))
			return true;
	}
	return im->has_shapes && !import_has_labels(flavor);
}

int import_checks(struct import *im)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < im->n; i++)
		if (strcmp(im->items[i].kind, "ClusterQueue") == 0)
			rc = use_checks(im, &im->items[i]);
	for (size_t i = 0; rc == 0 && i < im->n; i++) {
		const struct object *o = &im->items[i];

		if (strcmp(o->kind, "AdmissionCheck") == 0 && !o->used)
			import_note(im, o, o->v, "metadata.name", "no ClusterQueue names it");
		else if (strcmp(o->kind, "AdmissionCheck") == 0 &&
			 strcmp(gpuq_get_str(o->spec, "controllerName", ""), CONTROLLER) != 0)
			import_note(im, o, gpuq_get(o->spec, "controllerName"),
				    "spec.controllerName",
				    "jobs start when there is room; there are no checks by others");
		else if (strcmp(o->kind, "ProvisioningRequestConfig") == 0 &&
			 !only_devices(gpuq_get(o->spec, "managedResources")))
			import_note(im, o, gpuq_get(o->spec, "managedResources"),
				    "spec.managedResources",
				    "nodes are requested for jobs with devices alone");
	}
	for (uint32_t i = 0; rc == 0 && i < im->shapes->n; i++)
		rc = add_shape(im, im->shapes->items[i]);
	for (size_t i = 0; rc == 0 && i < im->n; i++) {
		const struct gpuq_val *taints = gpuq_get(im->items[i].spec, "nodeTaints");

		if (strcmp(im->items[i].kind, "ResourceFlavor") == 0 && taints && taints->n &&
		    !has_shape(im, &im->items[i]))
			import_note(im, &im->items[i], taints, "spec.nodeTaints",
				    "taints are read from the nodes themselves; a job has to "
				    "tolerate them");
		if (strcmp(im->items[i].kind, "ResourceFlavor") == 0 &&
		    import_tolerations(&im->items[i]) && !import_has_labels(&im->items[i]) &&
		    !has_shape(im, &im->items[i]))
			import_note(
				im, &im->items[i], import_tolerations(&im->items[i]),
				"spec.tolerations",
				"they are those of a pool, and without nodeLabels there is none");
	}
	for (size_t i = 0; rc == 0 && i < im->n; i++)
		if (strcmp(im->items[i].kind, "ResourceFlavor") == 0 && im->items[i].config &&
		    !has_shape(im, &im->items[i]))
			add_comment(im, &im->items[i]);
	return rc;
}
