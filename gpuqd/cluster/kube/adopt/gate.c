#include "gpuqd/cluster/kube/adopt/gate.h"

#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

bool gate_is_ours(const json_t *gate)
{
	return strcmp(kube_str(gate, "name"), KUBE_GATE) == 0;
}

bool gate_is_closed(const json_t *pod)
{
	const json_t *g;
	size_t i;

	json_array_foreach(kube_path(pod, "spec", "schedulingGates"), i, g)
	{
		if (gate_is_ours(g))
			return true;
	}
	return false;
}

json_t *gate_list(const json_t *pod, bool ours)
{
	json_t *out = json_array(), *g;
	size_t i;

	json_array_foreach(kube_path(pod, "spec", "schedulingGates"), i, g)
	{
		if (!gate_is_ours(g))
			json_array_append(out, g);
	}
	if (ours)
		json_array_append_new(out, json_pack("{s:s}", "name", KUBE_GATE));
	if (json_array_size(out))
		return out;
	json_decref(out);
	return json_null();
}

/* Terms are alternatives: each has to name the node. */
static json_t *terms(const json_t *pod, const char *node)
{
	const json_t *affinity = kube_path(pod, "spec", "affinity");
	const json_t *old =
		json_object_get(kube_path(affinity, "nodeAffinity", REQUIRED), "nodeSelectorTerms");
	json_t *out = json_array(), *t;
	const size_t n = json_array_size(old);

	for (size_t i = 0; i < (n ? n : 1); i++) {
		const json_t *was = json_array_get(old, i);
		json_t *term = json_is_object(was) ? json_deep_copy(was) : json_object();
		json_t *fields = json_object_get(term, "matchFields");

		if (!json_is_array(fields)) {
			fields = json_array();
			json_object_set_new(term, "matchFields", fields);
		}
		t = json_pack("{s:s, s:s, s:[s]}", "key", "metadata.name", "operator", "In",
			      "values", node);
		json_array_append_new(fields, t);
		json_array_append_new(out, term);
	}
	return out;
}

json_t *gate_opening(const json_t *pod, const char *node)
{
	const json_t *meta = json_object_get(pod, "metadata");

	return json_pack("{s:{s:s, s:s}, s:{s:o, s:{s:{s:{s:o}}}}}", "metadata", "uid",
			 kube_str(meta, "uid"), "resourceVersion",
			 kube_str(meta, "resourceVersion"), "spec", "schedulingGates",
			 gate_list(pod, false), "affinity", "nodeAffinity", REQUIRED,
			 "nodeSelectorTerms", terms(pod, node));
}
