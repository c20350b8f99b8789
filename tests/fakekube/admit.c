#include "admit.h"
#include "admit_pod.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cause_add(struct causes *c, const char *reason, const char *field, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!c->list)
		c->list = json_array();
	json_array_append_new(c->list, json_pack("{s:s,s:s,s:s}", "reason", reason, "message", text,
						 "field", field));
	buf_addf(&c->text, "%s%s: %s", c->text.len ? ", " : "", field, text);
}

static bool name_part_ok(const char *s, size_t n, bool upper)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned char ch = (unsigned char)s[i];
		const bool edge = i == 0 || i == n - 1;
		const bool alnum = islower(ch) || isdigit(ch) || (upper && isupper(ch));

		if (!alnum && (edge || !(ch == '-' || (upper && (ch == '_' || ch == '.')))))
			return false;
	}
	return n > 0;
}

bool dns_label_ok(const char *s)
{
	return strlen(s) <= 63 && name_part_ok(s, strlen(s), false);
}

bool dns_subdomain_ok(const char *s)
{
	if (strlen(s) > 253)
		return false;
	for (;;) {
		const size_t n = strcspn(s, ".");

		if (!name_part_ok(s, n, false))
			return false;
		if (!s[n])
			return true;
		s += n + 1;
	}
}

static bool label_value_ok(const char *s)
{
	return !*s || (strlen(s) <= 63 && name_part_ok(s, strlen(s), true));
}

static bool qualified_name_ok(const char *s)
{
	const char *slash = strchr(s, '/');

	if (slash) {
		char prefix[256];

		if (slash == s || (size_t)(slash - s) >= sizeof(prefix))
			return false;
		memcpy(prefix, s, (size_t)(slash - s));
		prefix[slash - s] = '\0';
		if (!dns_subdomain_ok(prefix))
			return false;
		s = slash + 1;
	}
	return *s && label_value_ok(s);
}

static void check_name(const struct kind *kind, const char *name, struct causes *c)
{
	const bool label = kind == &kinds[KIND_NAMESPACES] || kind == &kinds[KIND_SERVICES];

	if (!*name) {
		cause_add(c, "FieldValueRequired", "metadata.name",
			  "Required value: name or generateName is required");
	} else if (label ? !dns_label_ok(name) : !dns_subdomain_ok(name)) {
		cause_add(c, "FieldValueInvalid", "metadata.name",
			  "Invalid value: \"%s\": a lowercase RFC 1123 subdomain must consist of "
			  "lower case alphanumeric characters, '-' or '.', and must start and end "
			  "with "
			  "an alphanumeric character (e.g. 'example.com', regex used for "
			  "validation is "
			  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
			  name);
	}
}

static void check_metadata(const struct kind *kind, const json_t *meta, struct causes *c)
{
	const char *name = json_string_value(json_object_get(meta, "name"));
	size_t annotations = 0, i;
	const char *key;
	json_t *value;

	check_name(kind, name ? name : "", c);
	json_object_foreach(json_object_get(meta, "labels"), key, value)
	{
		if (!qualified_name_ok(key))
			cause_add(c, "FieldValueInvalid", "metadata.labels",
				  "Invalid value: \"%s\": name part must consist of alphanumeric "
				  "characters, '-', '_' or '.'",
				  key);
		else if (!label_value_ok(json_string_value(value)))
			cause_add(c, "FieldValueInvalid", "metadata.labels",
				  "Invalid value: \"%s\": a valid label must be an empty string or "
				  "consist of alphanumeric characters, '-', '_' or '.', and must "
				  "start "
				  "and end with an alphanumeric character",
				  json_string_value(value));
	}
	json_object_foreach(json_object_get(meta, "annotations"), key, value)
	{
		annotations += strlen(key) + json_string_length(value);
		if (!qualified_name_ok(key))
			cause_add(c, "FieldValueInvalid", "metadata.annotations",
				  "Invalid value: \"%s\": a qualified name must consist of "
				  "alphanumeric "
				  "characters, '-', '_' or '.'",
				  key);
	}
	if (annotations > 262144)
		cause_add(c, "FieldValueTooLong", "metadata.annotations",
			  "Too long: may not be more than 262144 bytes");
	json_array_foreach(json_object_get(meta, "ownerReferences"), i, value)
	{
		static const char *const needed[] = { "apiVersion", "kind", "name", "uid" };

		for (size_t k = 0; k < ARRAY_LEN(needed); k++) {
			const char *s = json_string_value(json_object_get(value, needed[k]));
			char field[64];

			snprintf(field, sizeof(field), "metadata.ownerReferences.%s", needed[k]);
			if (!s || !*s)
				cause_add(c, "FieldValueInvalid", field,
					  "Invalid value: \"\": must not be empty");
		}
	}
	json_array_foreach(json_object_get(meta, "finalizers"), i, value)
	{
		if (!json_is_string(value) || !qualified_name_ok(json_string_value(value)))
			cause_add(c, "FieldValueInvalid", "metadata.finalizers",
				  "Invalid value: a finalizer must be a qualified name");
	}
}

/* Types that a decoder into Go's structs would refuse with 400. */
static const struct shape {
	const char *path;
	json_type type;
	bool texts; /* an object of strings */
} shapes[] = {
	{ "metadata", JSON_OBJECT, false },
	{ "metadata.name", JSON_STRING, false },
	{ "metadata.namespace", JSON_STRING, false },
	{ "metadata.generateName", JSON_STRING, false },
	{ "metadata.labels", JSON_OBJECT, true },
	{ "metadata.annotations", JSON_OBJECT, true },
	{ "metadata.finalizers", JSON_ARRAY, false },
	{ "metadata.ownerReferences", JSON_ARRAY, false },
	{ "spec", JSON_OBJECT, false },
	{ "spec.containers", JSON_ARRAY, false },
	{ "spec.initContainers", JSON_ARRAY, false },
	{ "spec.volumes", JSON_ARRAY, false },
	{ "spec.nodeName", JSON_STRING, false },
	{ "spec.tolerations", JSON_ARRAY, false },
	{ "spec.restartPolicy", JSON_STRING, false },
	{ "spec.selector", JSON_OBJECT, false },
	{ "spec.nodeSelector", JSON_OBJECT, true },
	{ "spec.priority", JSON_INTEGER, false },
	{ "spec.terminationGracePeriodSeconds", JSON_INTEGER, false },
	{ "spec.activeDeadlineSeconds", JSON_INTEGER, false },
	{ "spec.hard", JSON_OBJECT, false },
	{ "status", JSON_OBJECT, false },
	{ "data", JSON_OBJECT, true },
	{ "binaryData", JSON_OBJECT, true },
};

static const json_t *at_path(const json_t *obj, const char *path)
{
	char part[64];

	while (obj && *path) {
		const size_t n = strcspn(path, ".");

		memcpy(part, path, n);
		part[n] = '\0';
		obj = json_object_get(obj, part);
		path += n + (path[n] == '.');
	}
	return obj;
}

static int check_shapes(const struct kind *kind, const json_t *obj, struct reply *r)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		const json_t *at = at_path(obj, shapes[i].path);
		const char *key;
		json_t *value;
		bool bad;

		if (!at || json_is_null(at))
			continue;
		bad = json_typeof(at) != shapes[i].type;
		if (!bad && shapes[i].texts) {
			json_object_foreach((json_t *)at, key, value) bad =
				bad || !json_is_string(value);
		}
		if (!bad)
			continue;
		reply_error(
			r, 400, "BadRequest", NULL, NULL,
			"%s in version \"%s\" cannot be handled as a %s: json: cannot unmarshal "
			"into Go struct field %s.%s",
			kind->name, kind->version, kind->name, kind->name, shapes[i].path);
		return -1;
	}
	return 0;
}

static void check_configmap(const json_t *obj, struct causes *c)
{
	static const char *const parts[] = { "data", "binaryData" };
	size_t total = 0;
	const char *key;
	json_t *value;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		json_object_foreach(json_object_get(obj, parts[i]), key, value)
		{
			char field[300];

			/* Bytes count, not their base64. */
			total += strcmp(parts[i], "binaryData") == 0
					 ? json_string_length(value) / 4 * 3
					 : json_string_length(value);
			snprintf(field, sizeof(field), "%s[%s]", parts[i], key);
			if (!*key || strlen(key) > 253 ||
			    strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789-_.") != strlen(key))
				cause_add(
					c, "FieldValueInvalid", field,
					"Invalid value: \"%s\": a valid config key must consist of "
					"alphanumeric characters, '-', '_' or '.'",
					key);
		}
	}
	if (total > 1048576)
		cause_add(c, "FieldValueTooLong", "[]",
			  "Too long: may not be more than 1048576 bytes");
}

static void admit_service(json_t *obj, struct causes *c)
{
	json_t *spec = json_object_get(obj, "spec");
	const char *ip = json_string_value(json_object_get(spec, "clusterIP"));
	const bool headless = ip && strcmp(ip, "None") == 0;

	if (!json_array_size(json_object_get(spec, "ports")) && !headless)
		cause_add(c, "FieldValueRequired", "spec.ports", "Required value");
	if (!spec) {
		spec = json_object();
		json_object_set_new(obj, "spec", spec);
	}
	if (!ip)
		json_object_set_new(spec, "clusterIP", json_string("10.96.0.10"));
	if (!json_object_get(spec, "type"))
		json_object_set_new(spec, "type", json_string("ClusterIP"));
	if (!json_object_get(obj, "status"))
		json_object_set_new(obj, "status", json_pack("{s:{}}", "loadBalancer"));
}

static void admit_quota(json_t *obj, struct causes *c)
{
	const json_t *hard = at_path(obj, "spec.hard");
	const char *key;
	json_t *value;
	int64_t milli;

	json_object_foreach((json_t *)hard, key, value)
	{
		char field[300];

		snprintf(field, sizeof(field), "spec.hard[%s]", key);
		if (!json_is_integer(value) &&
		    (!json_is_string(value) ||
		     quantity_parse(json_string_value(value), &milli) != 0))
			cause_add(c, "FieldValueInvalid", field,
				  "Invalid value: must be a quantity");
		else if (res_is_extended(key))
			cause_add(c, "FieldValueInvalid", field,
				  "Invalid value: \"%s\": must be a standard resource for quota",
				  key);
	}
	json_object_set_new(obj, "status", json_pack("{s:O?}", "hard", (json_t *)hard));
}

static void admit_namespace(json_t *obj)
{
	json_object_set_new(obj, "spec", json_pack("{s:[s]}", "finalizers", "kubernetes"));
	json_object_set_new(obj, "status", json_pack("{s:s}", "phase", "Active"));
}

static int refuse(const struct kind *kind, const char *name, struct causes *c, struct reply *r)
{
	const size_t n = json_array_size(c->list);

	if (n == 0)
		return 0;
	reply_causes(r, 422, "Invalid", kind, name, c->list,
		     n > 1 ? "%s \"%s\" is invalid: [%s]" : "%s \"%s\" is invalid: %s", kind->name,
		     name, c->text.s);
	buf_done(&c->text);
	return -1;
}

/* MicroTime is exactly 2026-11-20T08:00:00.000000Z. */
static bool micro_time_ok(const char *s)
{
	static const char form[] = "0000-00-00T00:00:00.000000Z";

	if (strlen(s) != sizeof(form) - 1)
		return false;
	for (size_t i = 0; form[i]; i++) {
		if (form[i] == '0' ? !isdigit((unsigned char)s[i]) : s[i] != form[i])
			return false;
	}
	return true;
}

static int check_micro_times(const struct kind *kind, const json_t *obj, struct reply *r)
{
	static const char *const paths[] = { "spec.acquireTime", "spec.renewTime", "eventTime" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const json_t *at = at_path(obj, paths[i]);

		if (!at || json_is_null(at) ||
		    (json_is_string(at) && micro_time_ok(json_string_value(at))))
			continue;
		reply_error(
			r, 400, "BadRequest", NULL, NULL,
			"%s in version \"%s\" cannot be handled as a %s: parsing time of %s: it "
			"must have six digits of a fraction, 2006-01-02T15:04:05.000000Z",
			kind->name, kind->version, kind->name, paths[i]);
		return -1;
	}
	return 0;
}

int admit_create(struct kind *kind, json_t *obj, struct reply *r)
{
	const json_t *meta = json_object_get(obj, "metadata");
	const char *name = json_string_value(json_object_get(meta, "name"));
	struct causes c = { 0 };

	if (check_shapes(kind, obj, r) != 0 || check_micro_times(kind, obj, r) != 0)
		return -1;
	check_metadata(kind, meta, &c);
	if (kind == &kinds[KIND_PODS]) {
		const int rc = admit_pod(obj, &c, r);

		if (rc != 0) {
			json_decref(c.list);
			buf_done(&c.text);
			return -1;
		}
	} else if (kind == &kinds[KIND_CONFIGMAPS]) {
		check_configmap(obj, &c);
	} else if (kind == &kinds[KIND_SERVICES]) {
		admit_service(obj, &c);
	} else if (kind == &kinds[KIND_QUOTAS]) {
		admit_quota(obj, &c);
	} else if (kind == &kinds[KIND_NAMESPACES]) {
		admit_namespace(obj);
	}
	return refuse(kind, name ? name : "", &c, r);
}

int admit_update(const struct version *old, const json_t *now, struct reply *r)
{
	struct causes c = { 0 };

	if (check_shapes(old->kind, now, r) != 0 || check_micro_times(old->kind, now, r) != 0)
		return -1;
	check_metadata(old->kind, json_object_get(now, "metadata"), &c);
	if (old->kind == &kinds[KIND_PODS]) {
		check_pod_update(old, now, &c);
	} else if (old->kind == &kinds[KIND_CONFIGMAPS]) {
		check_configmap(now, &c);
		if (old->facts->immutable) {
			json_t *was = version_json(old);

			if (!json_equal(json_object_get(was, "data"), json_object_get(now, "data")))
				cause_add(&c, "FieldValueForbidden", "data",
					  "Forbidden: field is immutable when `immutable` is set");
			json_decref(was);
		}
	}
	return refuse(old->kind, old->facts->name, &c, r);
}
