#include "gpuqd/cluster/kube/watch/watch_objects.h"

#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/kube/watch/decode_dra.h"
#include "gpuqd/cluster/kube/watch/decode_object.h"

/* True for a ConfigMap that lists no cards. */
static bool is_another(const struct reflector *r, const char *name)
{
	return r->kind->object == OBJECT_UNHEALTHY &&
	       strncmp(name, OBJECT_UNHEALTHY_PREFIX, sizeof(OBJECT_UNHEALTHY_PREFIX) - 1) != 0;
}

static void object_seen(struct reflector *r, struct kube_object *o)
{
	const struct cluster_sink *sink = r->watch->sink;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct object_fact f;
	struct known_thing t = { .uid = "", .token = "", .node = "" };

	if (is_another(r, kube_str(json_object_get(o->object, "metadata"), "name")))
		return;
	if ((object_is_dra(r->kind->object)
		     ? kube_read_dra(o, r->kind->object, r->watch->cluster_id, &f, &err)
		     : kube_read_object(o, r->kind->object, &f, &err)) != 0) {
		watch_skip(r, err.text);
		return;
	}
	t.namespace_ = f.namespace_;
	t.name = f.name;
	t.list = r->list;
	if (known_set(r->known, &t) != 0) {
		watch_skip(r, "no memory");
		return;
	}
	sink->object_seen(sink->arg, &f);
}

static void tell_gone(struct reflector *r, const char *namespace_, const char *name)
{
	const struct cluster_sink *sink = r->watch->sink;
	const struct object_fact f = { .kind = r->kind->object,
				       .namespace_ = namespace_,
				       .name = name,
				       .volume = "",
				       .class_ = "",
				       .selected = "" };

	sink->object_gone(sink->arg, &f);
}

static void object_deleted(struct reflector *r, struct kube_object *o)
{
	const json_t *meta = json_object_get(o->object, "metadata");
	const char *namespace_ = kube_str(meta, "namespace"), *name = kube_str(meta, "name");

	if (is_another(r, name))
		return;
	known_drop(r->known, namespace_, name);
	tell_gone(r, namespace_, name);
}

static void object_gone(void *arg, const struct known_thing *t)
{
	tell_gone(arg, t->namespace_, t->name);
}

#define DRA_V1 "/apis/resource.k8s.io/v1/"
#define DRA_V1BETA2 "/apis/resource.k8s.io/v1beta2/"
#define KIND(kind_, word, path)                                                                    \
	[kind_] = { word, path, object_seen, object_deleted, object_gone, true, NULL, kind_, NULL }

/* Each with the feature that is off without it. */
static const struct kind kinds[] = {
	KIND(OBJECT_LIMITS, "limitranges", "/api/v1/limitranges"),
	KIND(OBJECT_RUNTIME, "runtimeclasses", "/apis/node.k8s.io/v1/runtimeclasses"),
	KIND(OBJECT_CLAIM, "persistentvolumeclaims", "/api/v1/persistentvolumeclaims"),
	KIND(OBJECT_VOLUME, "persistentvolumes", "/api/v1/persistentvolumes"),
	KIND(OBJECT_CLASS, "storageclasses", "/apis/storage.k8s.io/v1/storageclasses"),
	KIND(OBJECT_UNHEALTHY, "unhealthy-gpu",
	     "/api/v1/namespaces/" OBJECT_UNHEALTHY_NAMESPACE "/configmaps"),
	KIND(OBJECT_SLICE, "resourceslices", DRA_V1 "resourceslices"),
	KIND(OBJECT_DEVICE_CLASS, "deviceclasses", DRA_V1 "deviceclasses"),
	KIND(OBJECT_DEVICE_CLAIM, "resourceclaims", DRA_V1 "resourceclaims"),
	KIND(OBJECT_DEVICE_TEMPLATE, "resourceclaimtemplates", DRA_V1 "resourceclaimtemplates"),
};

/* The same, where the server has no v1. */
static const struct kind older_kinds[] = {
	KIND(OBJECT_SLICE, "resourceslices", DRA_V1BETA2 "resourceslices"),
	KIND(OBJECT_DEVICE_CLASS, "deviceclasses", DRA_V1BETA2 "deviceclasses"),
	KIND(OBJECT_DEVICE_CLAIM, "resourceclaims", DRA_V1BETA2 "resourceclaims"),
	KIND(OBJECT_DEVICE_TEMPLATE, "resourceclaimtemplates",
	     DRA_V1BETA2 "resourceclaimtemplates"),
};

static const char *const features[] = {
	[OBJECT_LIMITS] = "requests that a LimitRange adds are charged once a pod has them",
	[OBJECT_RUNTIME] = "overhead and nodes of a RuntimeClass are known once a pod has them",
	[OBJECT_CLAIM] = "volume claims are not considered when a job is placed",
	[OBJECT_VOLUME] = "the nodes that a volume is tied to are not known",
	[OBJECT_CLASS] = "claims that are bound at their first pod are not known",
	[OBJECT_UNHEALTHY] = "the ConfigMaps of gpushare that name unhealthy cards are not read",
	[OBJECT_SLICE] = "devices of ResourceSlices are not known",
	[OBJECT_DEVICE_CLASS] = "claims of devices are not allocated",
	[OBJECT_DEVICE_CLAIM] = "claims of devices are not allocated",
	[OBJECT_DEVICE_TEMPLATE] = "templates of claims are not known",
};

const struct kind *watch_object_kind(enum object_kind kind)
{
	return &kinds[kind];
}

bool watch_objects_begin(struct watch *w)
{
	const struct cluster_sink *sink = w->sink;

	if (!sink->object_seen || !sink->object_gone || !sink->objects_known)
		return false;
	sink->objects_known(sink->arg, OBJECT_BINDING, true, NULL);
	sink->objects_known(sink->arg, OBJECT_ALLOCATING, true, NULL);
	for (int i = 0; i < OBJECT_BINDING; i++)
		watch_begin(&w->objects[i]);
	return true;
}

const char *watch_claims_version(const struct watch *w)
{
	return w->objects[OBJECT_DEVICE_CLAIM].kind == &kinds[OBJECT_DEVICE_CLAIM] ? "v1"
										   : "v1beta2";
}

bool watch_turns(struct reflector *r, int status)
{
	const enum object_kind kind = r->kind->object;

	if (status != 404 || !r->kind->optional || r->kind->known || !object_is_dra(kind))
		return false;
	r->kind = r->kind == &kinds[kind] ? &older_kinds[kind] : &kinds[kind];
	return r->kind == &older_kinds[kind];
}

bool watch_is_off(struct reflector *r, int status)
{
	const struct cluster_sink *sink = r->watch->sink;

	/* 404: a server that does not serve the kind at all. */
	if (!r->kind->optional || (status != 403 && status != 404))
		return false;
	if (r->kind->known) {
		r->off = true;
		r->kind->known(r, false);
		return true;
	}
	/* Most clusters have no such kind, or gpuqd needs none of it. */
	if (!r->off && (object_is_dra(r->kind->object) || r->kind->object == OBJECT_UNHEALTHY))
		log_info("kube.kind_off", "kind=%s error=%s: %s", r->kind->word, LOGS(r->why),
			 features[r->kind->object]);
	else if (!r->off)
		log_warn("kube.kind_off", "kind=%s error=%s: %s (see gpuq doctor)", r->kind->word,
			 LOGS(r->why), features[r->kind->object]);
	r->off = true;
	sink->objects_known(sink->arg, r->kind->object, false, r->why);
	watch_answered(r);
	return true;
}

void watch_is_on(struct reflector *r)
{
	const struct cluster_sink *sink = r->watch->sink;

	if (r->kind->known) {
		r->off = false;
		r->kind->known(r, true);
		return;
	}
	if (r->off)
		log_notice("kube.kind_on", "kind=%s", r->kind->word);
	r->off = false;
	sink->objects_known(sink->arg, r->kind->object, true, NULL);
}
