#include "gpuqd/cluster/kube/pods/podspec_share.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/pods/podspec_int.h"
#include "gpuqd/devices/sharing.h"

/* Every way to ask for devices: where the node shares them, only its own may stay. */
static const char *const dialects[] = { "nvidia.com/", "tencent.com/", "aliyun.com/", "amd.com/" };

static bool is_device(const char *resource)
{
	for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
		if (strncmp(resource, dialects[i], strlen(dialects[i])) == 0)
			return true;
	return false;
}

static bool drop_devices(json_t *list)
{
	const char *key;
	json_t *v;
	void *next;
	bool any = false;

	json_object_foreach_safe(list, next, key, v)
	{
		if (!is_device(key))
			continue;
		json_object_del(list, key);
		any = true;
	}
	return any;
}

bool podspec_container_asks(const json_t *container)
{
	const char *key;
	json_t *v;

	json_object_foreach(
		json_object_get(json_object_get(container, "resources"), "limits"), key,
		v) if (is_device(key) && !(json_is_integer(v) && json_integer_value(v) == 0) &&
		       !(json_is_string(v) && strcmp(json_string_value(v), "0") == 0)) return true;
	return false;
}

bool podspec_asks_devices(const json_t *containers)
{
	size_t i;
	json_t *c;

	json_array_foreach(containers, i, c) if (podspec_container_asks(c)) return true;
	return false;
}

static bool asked(const struct pod_order *o, struct share_ask *out)
{
	const struct gpuq_group *g = &o->spec->groups[o->group];
	enum share_kind kind = sharing_kind_of(o->sharing ? o->sharing : "");

	if ((kind != SHARE_GPUSHARE && kind != SHARE_GPUSHARE_MIB && !sharing_by_replica(kind)) ||
	    o->n_devices != 1)
		return false;
	*out = (struct share_ask){ kind,
				   o->devices[0],
				   o->device_mib,
				   o->milli,
				   g->gpu_memory_bytes,
				   o->now_us,
				   o->device && *o->device ? o->device : KUBE_GPU };
	return true;
}

int64_t podspec_share_units(const struct pod_order *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct sharing_place p;
	struct share_ask ask;

	if (o->group >= o->spec->n_groups || !asked(o, &ask) || sharing_place(&ask, &p, &err) != 0)
		return 0;
	return p.units;
}

int podspec_share(const struct pod_order *o, json_t *meta, json_t *containers, struct gpuq_err *err)
{
	json_t *at = json_array_get(containers, 0), *c, *limits, *notes;
	struct sharing_place p;
	struct share_ask ask;
	char text[24];
	bool found = false;
	size_t i;

	if (!asked(o, &ask))
		return 0;
	if (sharing_place(&ask, &p, err) != 0)
		return err->code;
	json_array_foreach(containers, i, c)
	{
		json_t *res = json_object_get(c, "resources");
		bool has = drop_devices(json_object_get(res, "limits"));

		has = drop_devices(json_object_get(res, "requests")) || has;
		if (has && !found) {
			at = c;
			found = true;
		}
	}
	limits = podspec_object(podspec_object(at, "resources"), "limits");
	snprintf(text, sizeof(text), "%" PRId64, p.units);
	json_object_set_new(limits, p.resource, json_string(text));
	notes = p.n_notes ? podspec_object(meta, "annotations") : NULL;
	for (i = 0; i < p.n_notes; i++)
		json_object_set_new(notes, p.notes[i].key, json_string(p.notes[i].value));
	return 0;
}
