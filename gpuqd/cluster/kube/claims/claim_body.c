#include "gpuqd/cluster/kube/claims/claim_body.h"

#include <string.h>

#include "gpuqd/cluster/kube/watch/decode_dra.h"
#include "gpuqd/devices/dra/dra_ask.h"

/* ---- a claim that is made ---- */

static json_t *option_body(const struct dra_option *o)
{
	json_t *selectors = json_array(), *body;

	for (size_t i = 0; i < o->selectors.n; i++)
		json_array_append_new(selectors, json_pack("{s:{s:s}}", "cel", "expression",
							   o->selectors.items[i]));
	body = json_pack("{s:s, s:o, s:s}", "deviceClassName", o->class_, "selectors", selectors,
			 "allocationMode", o->all ? "All" : "ExactCount");
	if (!o->all)
		json_object_set_new(body, "count", json_integer(o->count));
	if (*o->name)
		json_object_set_new(body, "name", json_string(o->name));
	return body;
}

static json_t *request_body(const struct dra_request *r)
{
	json_t *body = json_pack("{s:s}", "name", r->name), *list = json_array();

	for (uint32_t i = 0; i < r->n_options; i++)
		json_array_append_new(list, option_body(&r->options[i]));
	if (*r->options[0].name)
		json_object_set(body, "firstAvailable", list);
	else
		json_object_set(body, "exactly", json_array_get(list, 0));
	json_decref(list);
	return body;
}

static json_t *made_body(const struct claim_ask *ask, const char *version, const char *cluster_id)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	char api[64];
	struct dra_spec spec;
	json_t *body = NULL;

	snprintf(api, sizeof(api), CLAIM_GROUP "/%s", version);
	if (dra_spec_of(&mem, ask->made_of, &spec))
		body = json_pack(
			"{s:s, s:s, s:{s:s, s:{s:s}, s:{s:s, s:s}, s:[s], s:[{s:s, s:s, s:s, s:s, "
			"s:b}]}, s:{s:{s:[o]}}}",
			"apiVersion", api, "kind", "ResourceClaim", "metadata", "name", ask->name,
			"labels", KUBE_L_CLUSTER, cluster_id, "annotations", KUBE_A_POD_CLAIM,
			ask->made_of->name, KUBE_A_ALLOCATED, cluster_id, "finalizers",
			KUBE_CLAIM_FINALIZER, "ownerReferences", "apiVersion", "v1", "kind", "Pod",
			"name", ask->pod->name, "uid", ask->pod->uid, "controller", 1, "spec",
			"devices", "requests", request_body(&spec.requests[0]));
	gpuq_arena_done(&mem);
	return body;
}

/* ---- an allocation ---- */

static json_t *result_body(const struct dra_pick *p)
{
	char name[300];

	snprintf(name, sizeof(name), "%s%s%s", p->request->name, *p->option->name ? "/" : "",
		 p->option->name);
	return json_pack("{s:s, s:s, s:s, s:s}", "request", name, "driver", p->slice->driver,
			 "pool", p->slice->pool, "device", p->device->name);
}

/* Append configuration: of a class to the request that it serves, of the claim as it says. */
static void add_config(json_t *to, const char *text, const char *source, const char *request)
{
	json_t *list = *text ? json_loads(text, 0, NULL) : NULL, *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		json_t *one = json_deep_copy(item);

		json_object_set_new(one, "source", json_string(source));
		if (request)
			json_object_set_new(one, "requests", json_pack("[s]", request));
		json_array_append_new(to, one);
	}
	json_decref(list);
}

static json_t *allocation_body(const struct claim_ask *ask)
{
	json_t *results = json_array(), *config = json_array(), *body;
	const struct dra_pick *last = NULL;

	for (size_t i = 0; i < ask->n_picks; i++) {
		const struct dra_pick *p = &ask->picks[i];
		const struct dra_class *c = dra_class(ask->dra, p->option->class_);
		json_t *result = result_body(p);

		if (c && (!last || last->option != p->option))
			add_config(config, c->config, "FromClass",
				   json_string_value(json_object_get(result, "request")));
		json_array_append_new(results, result);
		last = p;
	}
	add_config(config, ask->claim->spec.config, "FromClaim", NULL);
	body = json_pack("{s:{s:o, s:o}, s:{s:[{s:[{s:s, s:s, s:[s]}]}]}}", "devices", "results",
			 results, "config", config, "nodeSelector", "nodeSelectorTerms",
			 "matchFields", "key", "metadata.name", "operator", "In", "values",
			 ask->pod->node);
	if (json_array_size(config) == 0)
		json_object_del(json_object_get(body, "devices"), "config");
	return body;
}

static json_t *consumer(const struct pod_ref *pod)
{
	return json_pack("[{s:s, s:s, s:s}]", "resource", "pods", "name", pod->name, "uid",
			 pod->uid);
}

static json_t *status_body(const struct claim_ask *ask)
{
	json_t *status = json_object(), *gone = json_array();

	if (ask->step == CLAIM_ALLOCATE)
		json_object_set_new(status, "allocation", allocation_body(ask));
	if (ask->step == CLAIM_RELEASE && ask->clear)
		json_object_set_new(status, "allocation", json_null());
	for (size_t i = 0; i < ask->n_gone; i++)
		json_array_append_new(
			gone, json_pack("{s:s, s:s}", "$patch", "delete", "uid", ask->gone[i]));
	if (ask->step != CLAIM_RELEASE)
		json_object_set_new(status, "reservedFor", consumer(ask->pod));
	else if (ask->n_gone)
		json_object_set(status, "reservedFor", gone);
	json_decref(gone);
	return json_pack("{s:{s:s, s:s}, s:o}", "metadata", "resourceVersion", ask->claim->version,
			 "uid", ask->claim->uid, "status", status);
}

/* ---- the steps ---- */

json_t *claim_body(const struct claim_ask *ask, const char *version, const char *cluster_id)
{
	switch (ask->step) {
	case CLAIM_MAKE:
		return made_body(ask, version, cluster_id);
	case CLAIM_MARK:
		return json_pack("{s:{s:s, s:[s], s:{s:s}}}", "metadata", "resourceVersion",
				 ask->claim->version, "finalizers", KUBE_CLAIM_FINALIZER,
				 "annotations", KUBE_A_ALLOCATED, cluster_id);
	case CLAIM_ALLOCATE:
	case CLAIM_RESERVE:
	case CLAIM_RELEASE:
		return status_body(ask);
	case CLAIM_DROP:
		if (!ask->claim->leaving)
			return json_pack("{s:{s:s}}", "preconditions", "uid", ask->claim->uid);
		return json_pack("{s:{s:s, s:[s]}}", "metadata", "resourceVersion",
				 ask->claim->version, "$deleteFromPrimitiveList/finalizers",
				 KUBE_CLAIM_FINALIZER);
	}
	return NULL;
}
