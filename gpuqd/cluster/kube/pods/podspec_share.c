#include "gpuqd/cluster/kube/pods/podspec_share.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/pods/podspec_int.h"
#include "gpuqd/devices/backend.h"
#include "libgpuq/spec/resource.h"

#define SHARE_BYTES_MAX (1 << 20) /* what a backend writes on one pod */

/* Every way to request devices: where the node shares them, only its own may stay. */
static bool is_device(const char *resource, const char *device)
{
	switch (gpuq_resource_kind(resource)) {
	case GPUQ_RESOURCE_DEVICE:
	case GPUQ_RESOURCE_REPLICA:
	case GPUQ_RESOURCE_INSTANCE:
	case GPUQ_RESOURCE_WORD:
		return true;
	default:
		return device && strcmp(resource, device) == 0;
	}
}

static bool is_word(const char *resource, const char *device)
{
	(void)device;
	return gpuq_resource_kind(resource) == GPUQ_RESOURCE_WORD;
}

static bool drop(json_t *list, bool (*which)(const char *, const char *), const char *device)
{
	const char *key;
	json_t *v;
	void *next;
	bool any = false;

	json_object_foreach_safe(list, next, key, v)
	{
		if (!which(key, device))
			continue;
		json_object_del(list, key);
		any = true;
	}
	return any;
}

/* Return whether its container sees a device: by one word it says how many a node has, or which pod goes first. */
static bool shows_device(const char *resource, const char *device)
{
	return is_device(resource, device) && !gpuq_resource_is_remark(resource);
}

bool podspec_container_asks(const struct pod_order *o, const json_t *container)
{
	const char *key;
	json_t *v;

	json_object_foreach(
		json_object_get(json_object_get(container, "resources"), "limits"), key,
		v) if (shows_device(key, o->device) &&
		       !(json_is_integer(v) && json_integer_value(v) == 0) &&
		       !(json_is_string(v) && strcmp(json_string_value(v), "0") == 0)) return true;
	return false;
}

bool podspec_asks_devices(const struct pod_order *o, const json_t *containers)
{
	size_t i;
	json_t *c;

	json_array_foreach(containers, i, c) if (podspec_container_asks(o, c)) return true;
	return false;
}

/* Ask the backend of the order's node for what makes its plugin find the pod. ask names the
 * containers. *which NULL: devices are requested as they are. */
static int place(const struct pod_order *o, struct backend_ask *ask, struct gpuq_arena *a,
		 const struct backend **which, struct backend_place *out, struct gpuq_err *err)
{
	*which = NULL;
	if (o->group >= o->spec->n_groups)
		return 0;
	ask->group = &o->spec->groups[o->group];
	ask->node = o->node;
	ask->resource = o->device && *o->device ? o->device : KUBE_GPU;
	ask->devices = o->devices;
	ask->uuids = o->uuids;
	ask->n_devices = o->n_devices;
	ask->device_mib = o->device_mib;
	ask->milli = o->milli;
	ask->now_us = o->now_us;
	ask->attempt = o->attempt;
	return backend_place(o->sharing ? o->sharing : "", ask, a, which, out, err);
}

bool podspec_shared(const struct pod_order *o, const struct backend **which,
		    struct backend_place *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(SHARE_BYTES_MAX);
	struct backend_ask ask = { .n_containers = 1 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct backend *b;
	struct backend_place p = { .n_limits = 0 };
	const bool is = place(o, &ask, &mem, &b, &p, &err) == 0 && b;

	if (which)
		*which = is ? b : NULL;
	/* The words are in the arena. */
	p.n_notes = 0;
	p.label = (struct backend_word){ NULL, NULL };
	if (is && out)
		*out = p;
	gpuq_arena_done(&mem);
	return is;
}

/* Remove such requests. Returns the first container that had one; 0 where none had. */
static size_t drop_all(json_t *containers, bool (*which)(const char *, const char *),
		       const char *device)
{
	size_t at = 0, i;
	bool found = false;
	json_t *c;

	json_array_foreach(containers, i, c)
	{
		json_t *res = json_object_get(c, "resources");
		bool has = drop(json_object_get(res, "limits"), which, device);

		has = drop(json_object_get(res, "requests"), which, device) || has;
		if (has && !found) {
			at = i;
			found = true;
		}
	}
	return at;
}

int podspec_share(const struct pod_order *o, json_t *meta, json_t *spec, struct gpuq_err *err)
{
	json_t *containers = json_object_get(spec, "containers"), *limits, *notes;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(SHARE_BYTES_MAX);
	struct backend_ask ask = { .n_containers = json_array_size(containers),
				   .n_init = json_array_size(
					   json_object_get(spec, "initContainers")) };
	const struct backend *b;
	struct backend_place p;
	char text[24];
	int rc;

	if (!podspec_shared(o, NULL, NULL)) {
		/* Either devices are requested as they are, or it fails. No other system reads its words here. */
		drop_all(containers, is_word, NULL);
		drop_all(json_object_get(spec, "initContainers"), is_word, NULL);
		rc = place(o, &ask, &mem, &b, &p, err);
		goto out;
	}
	ask.at = drop_all(containers, is_device, o->device);
	rc = place(o, &ask, &mem, &b, &p, err);
	if (rc != 0)
		goto out;
	limits = podspec_object(podspec_object(json_array_get(containers, ask.at), "resources"),
				"limits");
	for (size_t i = 0; i < p.n_limits; i++) {
		snprintf(text, sizeof(text), "%" PRId64, p.limits[i].count);
		json_object_set_new(limits, p.limits[i].name, json_string(text));
	}
	notes = p.n_notes ? podspec_object(meta, "annotations") : NULL;
	for (size_t i = 0; i < p.n_notes; i++)
		json_object_set_new(notes, p.notes[i].key, json_string(p.notes[i].value));
	if (p.label.key)
		json_object_set_new(podspec_object(meta, "labels"), p.label.key,
				    json_string(p.label.value));
out:
	gpuq_arena_done(&mem);
	return rc;
}

int podspec_choice(const char *pod, const struct backend *b, int device, bool certain, char **out)
{
	json_t *v = json_loads(pod, JSON_ALLOW_NUL, NULL), *note;
	json_t *notes = json_object_get(json_object_get(v, "metadata"), "annotations");
	const char *key;
	char text[24];
	void *next;
	int rc = v ? 0 : GPUQ_ENOMEM;

	*out = NULL;
	snprintf(text, sizeof(text), "%d", device);
	json_object_foreach_safe(notes, next, key, note)
	{
		if (strncmp(key, b->index, strlen(b->index)) == 0)
			rc |= json_string_set(note, text);
		else if (!certain && strcmp(key, b->demand) == 0)
			rc |= json_object_del(notes, key);
	}
	*out = rc == 0 ? json_dumps(v, JSON_COMPACT) : NULL;
	json_decref(v);
	return *out ? 0 : GPUQ_ENOMEM;
}
