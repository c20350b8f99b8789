#include "admit_pod.h"
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_default(json_t *obj, const char *key, json_t *value)
{
	const json_t *have = json_object_get(obj, key);

	if (have && !json_is_null(have))
		json_decref(value);
	else
		json_object_set_new(obj, key, value);
}

static const char *text_of(const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	return s ? s : "";
}

static int64_t milli_of(const json_t *q)
{
	int64_t milli = -1;

	if (json_is_integer(q))
		return json_integer_value(q) * 1000;
	if (json_is_string(q) && quantity_parse(json_string_value(q), &milli) != 0)
		milli = -1;
	return milli;
}

/* A number becomes a text, as quantities always are in answers. Returns -1 when
 * one cannot be read: the decoder's 400. */
static int check_quantities(json_t *list, struct reply *r)
{
	const char *key;
	json_t *q;
	void *next;

	json_object_foreach_safe(list, next, key, q)
	{
		if (milli_of(q) < 0) {
			reply_error(
				r, 400, "BadRequest", NULL, NULL,
				"Pod in version \"v1\" cannot be handled as a Pod: quantities must "
				"match the regular expression '^([+-]?[0-9.]+)"
				"([eEinumkKMGTP]*[-+]?[0-9]*)$'");
			return -1;
		}
		if (json_is_integer(q))
			json_object_set_new(
				list, key,
				json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(q)));
	}
	return 0;
}

static void check_integer(const json_t *q, const char *at, const char *list, const char *key,
			  struct causes *c)
{
	char field[400];

	if (!q || milli_of(q) % 1000 == 0)
		return;
	snprintf(field, sizeof(field), "%s.resources.%s[%s]", at, list, key);
	cause_add(c, "FieldValueInvalid", field, "Invalid value: must be an integer");
}

static int admit_resources(json_t *container, const char *at, struct causes *c, struct reply *r)
{
	json_t *res, *limits, *requests, *q;
	char field[200];
	const char *key;

	set_default(container, "resources", json_object());
	res = json_object_get(container, "resources");
	limits = json_object_get(res, "limits");
	if (check_quantities(limits, r) != 0 ||
	    check_quantities(json_object_get(res, "requests"), r) != 0)
		return -1;
	if (json_object_size(limits))
		set_default(res, "requests", json_object());
	requests = json_object_get(res, "requests");
	json_object_foreach(limits, key, q)
	{
		if (!json_object_get(requests, key))
			json_object_set(requests, key, q);
	}
	json_object_foreach(requests, key, q)
	{
		const json_t *limit = json_object_get(limits, key);

		if (res_is_extended(key) && !limit) {
			snprintf(field, sizeof(field), "%s.resources.limits", at);
			cause_add(c, "FieldValueRequired", field,
				  "Required value: Limit must be set for non overcommitable "
				  "resources");
		}
		if (res_is_extended(key)) {
			check_integer(limit, at, "limits", key, c);
			check_integer(q, at, "requests", key, c);
		}
		snprintf(field, sizeof(field), "%s.resources.requests", at);
		if (limit && res_is_extended(key) && milli_of(limit) != milli_of(q))
			cause_add(c, "FieldValueInvalid", field,
				  "Invalid value: must be equal to %s limit", key);
		else if (limit && milli_of(q) > milli_of(limit))
			cause_add(c, "FieldValueInvalid", field,
				  "Invalid value: must be less than or equal to %s limit", key);
	}
	return 0;
}

static bool list_has(const json_t *list, const char *name, size_t before)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (i < before && strcmp(text_of(item, "name"), name) == 0)
			return true;
	}
	return false;
}

static int admit_container(const json_t *spec, json_t *list, size_t i, const char *at,
			   struct causes *c, struct reply *r)
{
	json_t *container = json_array_get(list, i), *mount, *env;
	const char *name = text_of(container, "name");
	char field[160];
	size_t k;

	snprintf(field, sizeof(field), "%s.name", at);
	if (!*name)
		cause_add(c, "FieldValueRequired", field, "Required value");
	else if (!dns_label_ok(name))
		cause_add(c, "FieldValueInvalid", field,
			  "Invalid value: \"%s\": a lowercase RFC 1123 label must consist of lower "
			  "case "
			  "alphanumeric characters or '-'",
			  name);
	else if (list_has(list, name, i))
		cause_add(c, "FieldValueDuplicate", field, "Duplicate value: \"%s\"", name);
	snprintf(field, sizeof(field), "%s.image", at);
	if (!*text_of(container, "image"))
		cause_add(c, "FieldValueRequired", field, "Required value");
	json_array_foreach(json_object_get(container, "volumeMounts"), k, mount)
	{
		const char *volume = text_of(mount, "name");

		snprintf(field, sizeof(field), "%s.volumeMounts[%zu].name", at, k);
		if (!list_has(json_object_get(spec, "volumes"), volume, SIZE_MAX))
			cause_add(c, "FieldValueNotFound", field, "Not found: \"%s\"", volume);
		snprintf(field, sizeof(field), "%s.volumeMounts[%zu].mountPath", at, k);
		if (!*text_of(mount, "mountPath"))
			cause_add(c, "FieldValueRequired", field, "Required value");
	}
	json_array_foreach(json_object_get(container, "env"), k, env)
	{
		snprintf(field, sizeof(field), "%s.env[%zu].name", at, k);
		if (!*text_of(env, "name"))
			cause_add(c, "FieldValueRequired", field, "Required value");
	}
	set_default(container, "imagePullPolicy", json_string("IfNotPresent"));
	set_default(container, "terminationMessagePath", json_string("/dev/termination-log"));
	set_default(container, "terminationMessagePolicy", json_string("File"));
	return admit_resources(container, at, c, r);
}

static int admit_containers(json_t *spec, const char *key, struct causes *c, struct reply *r)
{
	json_t *list = json_object_get(spec, key);

	for (size_t i = 0; i < json_array_size(list); i++) {
		char at[64];

		snprintf(at, sizeof(at), "spec.%s[%zu]", key, i);
		if (!json_is_object(json_array_get(list, i))) {
			reply_error(
				r, 400, "BadRequest", NULL, NULL,
				"Pod in version \"v1\" cannot be handled as a Pod: json: cannot "
				"unmarshal into Go struct field PodSpec.%s",
				at);
			return -1;
		}
		if (admit_container(spec, list, i, at, c, r) != 0)
			return -1;
	}
	return 0;
}

static void add_toleration(json_t *list, const char *key)
{
	json_t *t;
	size_t i;

	json_array_foreach(list, i, t)
	{
		const char *have = text_of(t, "key");
		const char *effect = text_of(t, "effect");

		if ((!*have || strcmp(have, key) == 0) &&
		    (!*effect || strcmp(effect, "NoExecute") == 0))
			return;
	}
	json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:i}", "key", key, "operator", "Exists",
					      "effect", "NoExecute", "tolerationSeconds", 300));
}

static int admit_priority(json_t *spec, const char *pod, struct reply *r)
{
	const char *class = text_of(spec, "priorityClassName");
	const struct obj *o;
	json_t *j, *value;

	if (!*class) {
		set_default(spec, "priority", json_integer(0));
		return 0;
	}
	o = store_find(&kinds[KIND_PRIORITYCLASSES], "", class);
	if (!o) {
		reply_error(r, 403, "Forbidden", &kinds[KIND_PODS], pod,
			    "pods \"%s\" is forbidden: no PriorityClass with name %s was found",
			    pod, class);
		return -1;
	}
	j = version_json(o->v);
	value = json_object_get(j, "value");
	json_object_set_new(spec, "priority", json_integer(json_integer_value(value)));
	json_decref(j);
	return 0;
}

static void check_numbers(const json_t *spec, struct causes *c)
{
	const json_t *grace = json_object_get(spec, "terminationGracePeriodSeconds");
	const json_t *deadline = json_object_get(spec, "activeDeadlineSeconds");
	const char *policy = text_of(spec, "restartPolicy");

	if (json_integer_value(grace) < 0)
		cause_add(c, "FieldValueInvalid", "spec.terminationGracePeriodSeconds",
			  "Invalid value: %lld: must be greater than or equal to 0",
			  (long long)json_integer_value(grace));
	if (deadline && json_is_integer(deadline) && json_integer_value(deadline) < 1)
		cause_add(c, "FieldValueInvalid", "spec.activeDeadlineSeconds",
			  "Invalid value: %lld: must be between 1 and 2147483647, inclusive",
			  (long long)json_integer_value(deadline));
	if (strcmp(policy, "Always") != 0 && strcmp(policy, "OnFailure") != 0 &&
	    strcmp(policy, "Never") != 0)
		cause_add(c, "FieldValueNotSupported", "spec.restartPolicy",
			  "Unsupported value: \"%s\": supported values: \"Always\", \"OnFailure\", "
			  "\"Never\"",
			  policy);
}

static void check_names(const json_t *spec, struct causes *c)
{
	static const char *const labels[] = { "hostname", "subdomain" };
	json_t *volume;
	size_t i;

	for (i = 0; i < ARRAY_LEN(labels); i++) {
		const char *s = text_of(spec, labels[i]);
		char field[40];

		snprintf(field, sizeof(field), "spec.%s", labels[i]);
		if (*s && !dns_label_ok(s))
			cause_add(
				c, "FieldValueInvalid", field,
				"Invalid value: \"%s\": a lowercase RFC 1123 label must consist of "
				"lower case alphanumeric characters or '-'",
				s);
	}
	json_array_foreach(json_object_get(spec, "volumes"), i, volume)
	{
		char field[40];

		snprintf(field, sizeof(field), "spec.volumes[%zu].name", i);
		if (!dns_label_ok(text_of(volume, "name")))
			cause_add(c, "FieldValueInvalid", field, "Invalid value: \"%s\"",
				  text_of(volume, "name"));
	}
}

static void new_status(json_t *obj)
{
	json_object_set_new(obj, "status",
			    json_pack("{s:s,s:s}", "phase", "Pending", "qosClass", "BestEffort"));
}

int admit_pod(json_t *obj, struct causes *c, struct reply *r)
{
	json_t *spec = json_object_get(obj, "spec"), *tolerations;
	const char *name = text_of(json_object_get(obj, "metadata"), "name");
	const char *bad;

	if (!json_array_size(json_object_get(spec, "containers")))
		cause_add(c, "FieldValueRequired", "spec.containers", "Required value");
	if (!spec)
		return 0;
	set_default(spec, "restartPolicy", json_string("Always"));
	set_default(spec, "terminationGracePeriodSeconds", json_integer(30));
	set_default(spec, "dnsPolicy", json_string("ClusterFirst"));
	set_default(spec, "schedulerName", json_string("default-scheduler"));
	set_default(spec, "serviceAccountName", json_string("default"));
	set_default(spec, "enableServiceLinks", json_true());
	set_default(spec, "securityContext", json_object());
	set_default(spec, "tolerations", json_array());
	tolerations = json_object_get(spec, "tolerations");
	add_toleration(tolerations, "node.kubernetes.io/not-ready");
	add_toleration(tolerations, "node.kubernetes.io/unreachable");
	check_numbers(spec, c);
	check_names(spec, c);
	if (admit_containers(spec, "containers", c, r) != 0 ||
	    admit_containers(spec, "initContainers", c, r) != 0 ||
	    admit_priority(spec, name, r) != 0)
		return -1;
	bad = play_bad_key(obj);
	if (bad)
		cause_add(c, "FieldValueInvalid", bad,
			  "Invalid value: fakekube cannot read this annotation");
	new_status(obj);
	return 0;
}

/* Take out of a spec what may change, so that the rest must be equal. gated: of a pod with gates, which may be
 * given fewer nodes. */
static json_t *fixed_part(const json_t *spec, bool gated)
{
	static const char *const lists[] = { "containers", "initContainers" };
	json_t *copy = json_deep_copy(spec), *item;
	size_t k;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		json_array_foreach(json_object_get(copy, lists[i]), k, item)
			json_object_del(item, "image");
	}
	json_object_del(copy, "activeDeadlineSeconds");
	json_object_del(copy, "tolerations");
	json_object_del(copy, "terminationGracePeriodSeconds");
	json_object_del(copy, "schedulingGates");
	if (gated) {
		json_object_del(copy, "affinity");
		json_object_del(copy, "nodeSelector");
	}
	return copy;
}

void check_pod_update(const struct version *old, const json_t *now, struct causes *c)
{
	json_t *was = version_json(old);
	const bool gated =
		json_array_size(json_object_get(json_object_get(was, "spec"), "schedulingGates"));
	json_t *a = fixed_part(json_object_get(was, "spec"), gated);
	json_t *b = fixed_part(json_object_get(now, "spec"), gated);

	if (!a || !b || !json_equal(a, b))
		cause_add(c, "FieldValueForbidden", "spec",
			  "Forbidden: pod updates may not change fields other than "
			  "`spec.containers[*].image`,`spec.initContainers[*].image`,"
			  "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
			  "existing "
			  "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
			  "to 1 if "
			  "it was previously negative)");
	json_decref(a);
	json_decref(b);
	json_decref(was);
}
