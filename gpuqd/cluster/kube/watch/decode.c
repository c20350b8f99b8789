#include "gpuqd/cluster/kube/watch/decode.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode_cut.h"
#include "gpuqd/cluster/kube/watch/decode_hami.h"
#include "gpuqd/cluster/kube/watch/decode_plain.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* A NUL inside a string cuts that string and no more: refusing the whole object
 * would let one hostile annotation hide a pod, and the devices it holds. */
#define FLAGS (JSON_ALLOW_NUL)

#define ARENA_MAX (8u << 20)

bool kube_is_own_name(const char *name, const char *cluster_id)
{
	static const char prefix[] = "gpuq-";
	const size_t n = strlen(cluster_id), at = sizeof(prefix) - 1;

	return n > 0 && strncmp(name, prefix, at) == 0 && strncmp(name + at, cluster_id, n) == 0 &&
	       name[at + n] == '-';
}

const char *kube_str(const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	return s ? s : "";
}

json_t *kube_path(const json_t *obj, const char *a, const char *b)
{
	json_t *v = json_object_get(obj, a);

	if (v && b)
		v = json_object_get(v, b);
	return json_is_null(v) ? NULL : v;
}

bool kube_waits_for_us(const json_t *pod)
{
	const json_t *gates = kube_path(pod, "spec", "schedulingGates");

	return json_array_size(gates) == 1 &&
	       strcmp(kube_str(json_array_get(gates, 0), "name"), KUBE_GATE) == 0;
}

int64_t kube_time_us(const char *rfc3339)
{
	int64_t us = 0;

	if (!*rfc3339 || gpuq_instant_parse(rfc3339, 0, &us, NULL) != 0)
		return 0;
	return us;
}

static int parse(const char *json, size_t n, struct kube_object *out, struct gpuq_err *err)
{
	char copy[KUBE_CUT_MAX], plain[KUBE_CUT_MAX];
	const size_t left = kube_cut(json, n, copy, plain);
	json_error_t why;
	json_t *root;

	if (left > 0) {
		json = copy;
		n = left;
	}
	root = kube_plain(json, n);
	if (!root)
		root = json_loadb(json, n, FLAGS, &why);
	/* A number that no field of ours can hold is in a field that is not ours. */
	if (!root && json_error_code(&why) == json_error_numeric_overflow)
		root = json_loadb(json, n, FLAGS | JSON_DECODE_INT_AS_REAL, &why);
	if (!root)
		return gpuq_fail(err, GPUQ_EINVAL, "byte %d: %s", why.position, why.text);
	if (!json_is_object(root)) {
		json_decref(root);
		return gpuq_fail(err, GPUQ_EINVAL, "not an object");
	}
	memset(out, 0, sizeof(*out));
	out->arena.max_bytes = ARENA_MAX;
	out->root = out->object = root;
	if (left > 0)
		out->cut = gpuq_arena_calloc(&out->arena, 1, sizeof(*out->cut));
	if (left > 0 && (!out->cut || kube_hami_parse(plain, &out->arena, out->cut) != 0)) {
		kube_object_done(out);
		return gpuq_no_memory(err);
	}
	return 0;
}

static void find_version(struct kube_object *o)
{
	o->version = kube_str(json_object_get(o->object, "metadata"), "resourceVersion");
}

int kube_parse_item(const char *json, size_t n, struct kube_object *out, struct gpuq_err *err)
{
	int rc = parse(json, n, out, err);

	if (rc == 0)
		find_version(out);
	return rc;
}

int kube_parse_event(const char *json, size_t n, struct kube_object *out, struct gpuq_err *err)
{
	static const char *const words[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };
	struct kube_object o = KUBE_OBJECT_INIT;
	const char *type;
	size_t i;
	int rc = parse(json, n, &o, err);

	if (rc != 0)
		return rc;
	type = kube_str(o.root, "type");
	o.object = json_object_get(o.root, "object");
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(type, words[i]) == 0)
			break;
	if (i == sizeof(words) / sizeof(words[0]) || !json_is_object(o.object)) {
		kube_object_done(&o);
		return gpuq_fail(err, GPUQ_EINVAL, "not a watch event");
	}
	o.event = (enum kube_event)i;
	find_version(&o);
	*out = o;
	return 0;
}

void kube_object_done(struct kube_object *o)
{
	if (o->root)
		json_decref(o->root);
	gpuq_arena_done(&o->arena);
	memset(o, 0, sizeof(*o));
}

/* ---- requests ---- */

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void plus(struct kube_amount *to, const struct kube_amount *more)
{
	to->cpu_milli = add(to->cpu_milli, more->cpu_milli);
	to->memory_bytes = add(to->memory_bytes, more->memory_bytes);
	to->gpus = add(to->gpus, more->gpus);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void at_least(struct kube_amount *to, const struct kube_amount *other)
{
	to->cpu_milli = larger(to->cpu_milli, other->cpu_milli);
	to->memory_bytes = larger(to->memory_bytes, other->memory_bytes);
	to->gpus = larger(to->gpus, other->gpus);
}

/* Parse a quantity, which an old client may have written as a JSON number; the server prints
 * strings. A negative or unreadable one counts as 0. */
int64_t kube_quantity(const json_t *list, const char *key, kube_quantity_fn parse_fn)
{
	const json_t *v = json_object_get(list, key);
	int64_t out = 0;
	char text[32];

	if (json_is_string(v))
		return parse_fn(json_string_value(v), &out, NULL) == 0 && out > 0 ? out : 0;
	if (json_is_integer(v)) {
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
		return parse_fn(text, &out, NULL) == 0 && out > 0 ? out : 0;
	}
	return 0;
}

static int64_t whole(int64_t milli)
{
	return milli / 1000 + (milli % 1000 != 0);
}

static struct kube_amount amounts(const json_t *list)
{
	return (struct kube_amount){
		.cpu_milli = kube_quantity(list, "cpu", gpuq_milli_parse),
		.memory_bytes = kube_quantity(list, "memory", gpuq_bytes_parse),
		.gpus = whole(kube_quantity(list, KUBE_GPU, gpuq_milli_parse)),
	};
}

/* Return the requests of a container, and limits where it has none (the server copies them at
 * creation; a manifest that never reached one is incomplete). */
static struct kube_amount asks_of(const json_t *resources)
{
	const json_t *req = json_object_get(resources, "requests");
	struct kube_amount r = amounts(req);
	struct kube_amount l = amounts(json_object_get(resources, "limits"));

	if (!json_object_get(req, "cpu"))
		r.cpu_milli = l.cpu_milli;
	if (!json_object_get(req, "memory"))
		r.memory_bytes = l.memory_bytes;
	if (!json_object_get(req, KUBE_GPU))
		r.gpus = l.gpus;
	return r;
}

static const json_t *named(const json_t *list, const char *name)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v) if (strcmp(kube_str(v, "name"), name) == 0) return v;
	return NULL;
}

/* During an in-place resize a container holds the larger of what it wants and what
 * it still has; one that can never be granted holds what it has. */
static struct kube_amount container_asks(const json_t *container, const json_t *statuses,
					 bool infeasible)
{
	struct kube_amount a = asks_of(json_object_get(container, "resources"));
	const json_t *st = named(statuses, kube_str(container, "name"));
	const json_t *now = json_object_get(st, "resources");
	const json_t *got = json_object_get(st, "allocatedResources");
	struct kube_amount has = { 0 }, held = { 0 };

	if (json_object_get(now, "requests"))
		has = asks_of(now);
	if (json_is_object(got))
		held = amounts(got);
	at_least(&has, &held);
	if (infeasible && (json_is_object(now) || json_is_object(got))) {
		has.gpus = a.gpus; /* devices are never resized */
		return has;
	}
	at_least(&a, &has);
	return a;
}

static bool resize_infeasible(const json_t *status)
{
	size_t i;
	json_t *c;

	json_array_foreach(json_object_get(status, "conditions"), i,
			   c) if (strcmp(kube_str(c, "type"), "PodResizePending") == 0 &&
				  strcmp(kube_str(c, "reason"), "Infeasible") == 0) return true;
	return false;
}

struct kube_amount kube_pod_request(const json_t *pod)
{
	const json_t *spec = json_object_get(pod, "spec"), *status = json_object_get(pod, "status");
	const json_t *whole_pod = kube_path(spec, "resources", NULL);
	struct kube_amount app = { 0 }, sidecars = { 0 }, init = { 0 }, over;
	bool infeasible = resize_infeasible(status);
	size_t i;
	json_t *c;

	json_array_foreach(json_object_get(spec, "containers"), i, c)
	{
		struct kube_amount a =
			container_asks(c, json_object_get(status, "containerStatuses"), infeasible);

		plus(&app, &a);
	}
	json_array_foreach(json_object_get(spec, "initContainers"), i, c)
	{
		struct kube_amount a = container_asks(
			c, json_object_get(status, "initContainerStatuses"), infeasible);

		if (strcmp(kube_str(c, "restartPolicy"), "Always") == 0) {
			plus(&app, &a);
			plus(&sidecars, &a);
			at_least(&init, &sidecars);
		} else {
			plus(&a, &sidecars);
			at_least(&init, &a);
		}
	}
	at_least(&app, &init);
	if (whole_pod) {
		const json_t *req = json_object_get(whole_pod, "requests");
		struct kube_amount a = asks_of(whole_pod);

		if (json_object_get(req, "cpu") || a.cpu_milli)
			app.cpu_milli = a.cpu_milli;
		if (json_object_get(req, "memory") || a.memory_bytes)
			app.memory_bytes = a.memory_bytes;
	}
	over = amounts(json_object_get(spec, "overhead"));
	plus(&app, &over);
	return app;
}
