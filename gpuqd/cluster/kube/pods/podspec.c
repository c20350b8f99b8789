#include "gpuqd/cluster/kube/pods/podspec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/pods/label.h"
#include "gpuqd/cluster/kube/pods/podspec_code.h"
#include "gpuqd/cluster/kube/pods/podspec_int.h"
#include "gpuqd/cluster/kube/pods/podspec_share.h"
#include "gpuqd/cluster/kube/pods/podspec_restrict.h"
#include "gpuqd/cluster/kube/pods/podspec_container.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* A pod that outlives its limit by more than its grace and this has been forgotten by
 * us: the cluster then ends it. */
#define SPARE_S 60

void podspec_script_name(const char *cluster_id, uint32_t job, char out[PODSPEC_NAME_ROOM])
{
	snprintf(out, PODSPEC_NAME_ROOM, "gpuq-%s-%" PRIu32 "-script", cluster_id, job);
}

void podspec_service_name(const char *cluster_id, uint32_t job, int64_t array_index,
			  char out[PODSPEC_NAME_ROOM])
{
	if (array_index < 0)
		snprintf(out, PODSPEC_NAME_ROOM, "gpuq-%s-%" PRIu32, cluster_id, job);
	else
		snprintf(out, PODSPEC_NAME_ROOM, "gpuq-%s-%" PRIu32 "-%" PRId64, cluster_id, job,
			 array_index);
}

json_t *podspec_json(const struct gpuq_val *v)
{
	json_t *out, *item;

	switch (v->type) {
	case GPUQ_NULL:
		return json_null();
	case GPUQ_BOOL:
		return json_boolean(v->b);
	case GPUQ_INT:
		return json_integer(v->i);
	case GPUQ_REAL:
		return json_real(v->d);
	case GPUQ_STR:
		return json_stringn(v->s, v->n);
	case GPUQ_BIN:
		return NULL;
	case GPUQ_LIST:
		out = json_array();
		for (uint32_t i = 0; out && i < v->n; i++) {
			item = podspec_json(v->items[i]);
			if (!item || json_array_append_new(out, item) != 0) {
				json_decref(out);
				return NULL;
			}
		}
		return out;
	case GPUQ_MAP:
		out = json_object();
		for (uint32_t i = 0; out && i < v->n; i++) {
			item = podspec_json(v->pairs[i].val);
			if (!item || json_object_set_new(out, v->pairs[i].key, item) != 0) {
				json_decref(out);
				return NULL;
			}
		}
		return out;
	}
	return NULL;
}

json_t *podspec_object(json_t *obj, const char *key)
{
	json_t *v = json_object_get(obj, key);

	if (!json_is_object(v)) {
		v = json_object();
		json_object_set_new(obj, key, v);
	}
	return v;
}

json_t *podspec_array(json_t *obj, const char *key)
{
	json_t *v = json_object_get(obj, key);

	if (!json_is_array(v)) {
		v = json_array();
		json_object_set_new(obj, key, v);
	}
	return v;
}

static void set(json_t *obj, const char *key, const char *value)
{
	json_object_set_new(obj, key, json_string(value));
}

static void set_number(json_t *obj, const char *key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	set(obj, key, text);
}

/* kubectl drain and autoscalers move only pods that something will make again, and look for a
 * controller. The namespace by which gpuqd knows the cluster lives as long as the cluster, and its uid
 * is known; no pod is ever collected for want of its owner. */
static void put_controller(const struct pod_order *o, json_t *meta, json_t *notes)
{
	if (o->cluster_uid && *o->cluster_uid)
		json_object_set_new(meta, "ownerReferences",
				    json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", "v1",
					      "kind", "Namespace", "name", "kube-system", "uid",
					      o->cluster_uid, "controller", 1));
	if (!json_object_get(notes, KUBE_A_EVICT))
		set(notes, KUBE_A_EVICT, o->preemptible && !o->keeps_node ? "true" : "false");
	if (o->keeps_node && !json_object_get(notes, KUBE_A_DISRUPT))
		set(notes, KUBE_A_DISRUPT, "true");
}

/* The string, or nothing at all where it is empty. */
static void put_or_drop(json_t *obj, const char *key, const char *value)
{
	if (value && *value)
		set(obj, key, value);
	else
		json_object_del(obj, key);
}

/* ---- metadata ---- */

/* Put a name as a label, for people and for programs that account by labels; none where it is empty. */
static void set_name(json_t *labels, const char *key, const char *name)
{
	char text[LABEL_ROOM];

	if (!name || !*name) {
		json_object_del(labels, key);
		return;
	}
	label_value(name, text);
	set(labels, key, text);
}

static void put_labels(const struct pod_order *o, json_t *labels)
{
	set(labels, KUBE_L_CLUSTER, o->cluster_id);
	set_number(labels, KUBE_L_JOB, o->job);
	set_number(labels, KUBE_L_ATTEMPT, o->attempt);
	set_number(labels, KUBE_L_INDEX, o->index);
	/* A label may be empty but not negative: empty is "no element of an array". */
	if (o->array_index >= 0)
		set_number(labels, KUBE_L_ARRAY_INDEX, o->array_index);
	else
		set(labels, KUBE_L_ARRAY_INDEX, "");
	set_name(labels, KUBE_L_USER, o->user);
	set_name(labels, KUBE_L_QUEUE, o->queue);
	set_name(labels, KUBE_L_ACCOUNT, o->account);
}

/* Those of claims are not known before these are allocated, and stand in the claims. */
static void put_devices(const struct pod_order *o, json_t *notes)
{
	const size_t n = gpuq_group_claimed(&o->spec->groups[o->group]) ? 0 : o->n_devices;
	char text[8 * GPUQ_GPUS_PER_POD_MAX];
	size_t at = 0;

	for (size_t i = 0; i < n && at < sizeof(text) - 16; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", i ? "," : "",
				       o->devices[i]);
	if (at)
		set(notes, KUBE_A_DEVICES, text);
	else
		json_object_del(notes, KUBE_A_DEVICES);
}

/* Name the claims that the pod waits for before it gets its node. */
static void put_claims(const struct pod_order *o, json_t *notes)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	for (size_t i = 0; i < o->claims.n && o->unbound; i++)
		gpuq_buf_printf(&text, "%s%s", i ? "," : "", o->claims.items[i]);
	put_or_drop(notes, KUBE_A_CLAIMS, gpuq_buf_str(&text));
	gpuq_buf_done(&text);
}

static void copy_map(const struct gpuq_strmap *from, json_t *to)
{
	for (size_t i = 0; i < from->n; i++)
		set(to, from->keys[i], from->vals[i]);
}

static void put_metadata(const struct pod_order *o, json_t *meta)
{
	static const char *const dropped[] = {
		"generateName",      "namespace",       "uid",
		"resourceVersion",   "ownerReferences", "managedFields",
		"creationTimestamp", "finalizers",      "generation",
		"selfLink"
	};
	json_t *labels = podspec_object(meta, "labels");
	json_t *notes = podspec_object(meta, "annotations");

	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		json_object_del(meta, dropped[i]);
	set(meta, "name", o->name);
	copy_map(&o->spec->labels, labels);
	copy_map(&o->spec->annotations, notes);
	if (json_object_get(notes, GPUQ_COMPLETION_INDEX)) {
		set_number(notes, GPUQ_COMPLETION_INDEX, o->completion_index);
		set_number(labels, GPUQ_COMPLETION_INDEX, o->completion_index);
	}
	put_labels(o, labels);
	set(notes, KUBE_A_TOKEN, o->token);
	put_or_drop(notes, KUBE_A_RECORD, o->record); /* the owner's own word is not taken */
	put_claims(o, notes);
	put_devices(o, notes);
	if (o->capacity && *o->capacity) { /* without both the cloud takes its nodes back */
		set(notes, KUBE_A_CONSUMES, o->capacity);
		set(notes, KUBE_A_CAPACITY_CLASS, o->capacity_class);
	}
	put_controller(o, meta, notes);
	if (o->accounting_finalizer)
		json_object_set_new(meta, "finalizers", json_pack("[s]", KUBE_FINALIZER));
}

/* ---- spec ---- */

static bool tolerates(const json_t *list, const char *key)
{
	size_t i;
	json_t *t;

	json_array_foreach(list, i,
			   t) if (strcmp(kube_str(t, "key"), key) == 0 ||
				  (!*kube_str(t, "key") &&
				   strcmp(kube_str(t, "operator"), "Exists") == 0)) return true;
	return false;
}

static void put_toleration(const struct gpuq_toleration *t, json_t *list)
{
	json_t *v = json_pack("{s:s}", "operator", t->exists ? "Exists" : "Equal");

	if (t->key && *t->key)
		set(v, "key", t->key);
	if (!t->exists)
		set(v, "value", t->value ? t->value : "");
	if (t->effect && *t->effect)
		set(v, "effect", t->effect);
	if (t->seconds >= 0 && t->effect && strcmp(t->effect, "NoExecute") == 0)
		json_object_set_new(v, "tolerationSeconds", json_integer(t->seconds));
	json_array_append_new(list, v);
}

/* A node that does not answer may still run its pods, so nothing but we ourselves may
 * tell them to leave: no tolerationSeconds. The pod goes when its node does. */
static void put_tolerations(const struct pod_order *o, const struct gpuq_group *g, json_t *spec)
{
	static const char *const lost[] = { "node.kubernetes.io/not-ready",
					    "node.kubernetes.io/unreachable" };
	json_t *list = podspec_array(spec, "tolerations");

	for (size_t i = 0; i < g->n_tolerations && !g->template_; i++)
		put_toleration(&g->tolerations[i], list);
	for (size_t i = 0; o->tolerations && i < o->tolerations->n; i++)
		put_toleration(&((const struct gpuq_toleration *)o->tolerations->items)[i], list);
	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
		if (!tolerates(list, lost[i]))
			json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "key", lost[i],
							      "operator", "Exists", "effect",
							      "NoExecute"));
}

static int64_t seconds_up(int64_t us)
{
	return us / GPUQ_US_PER_S + (us % GPUQ_US_PER_S != 0);
}

static void put_times(const struct pod_order *o, json_t *spec)
{
	int64_t grace_s = seconds_up(o->grace_us), limit_s;

	if (grace_s < 1)
		grace_s = 1; /* 0 would mean: forget it at once, whatever still runs */
	json_object_set_new(spec, "terminationGracePeriodSeconds", json_integer(grace_s));
	json_object_del(spec, "activeDeadlineSeconds");
	if (o->time_limit_us == GPUQ_UNLIMITED || o->time_limit_us <= 0)
		return;
	limit_s = seconds_up(o->time_limit_us) + grace_s + SPARE_S;
	if (limit_s < INT32_MAX)
		json_object_set_new(spec, "activeDeadlineSeconds", json_integer(limit_s));
}

static void put_pull_secrets(const struct pod_order *o, json_t *spec)
{
	json_t *list, *have;
	size_t i;

	for (size_t k = 0; k < o->image_pull_secrets.n; k++) {
		const char *name = o->image_pull_secrets.items[k];
		bool there = false;

		list = podspec_array(spec, "imagePullSecrets");
		json_array_foreach(list, i, have) there =
			there || strcmp(kube_str(have, "name"), name) == 0;
		if (!there)
			json_array_append_new(list, json_pack("{s:s}", "name", name));
	}
}

/* Pods of a gang have the host names by which the others know them, and so has a pod with an index
 * of its own. Whatever else the template says of names stays. */
static void put_names(const struct pod_order *o, json_t *spec)
{
	struct pod_host host = { o->name, NULL };
	char service[PODSPEC_NAME_ROOM];

	for (uint32_t i = 0; o->hosts && i < o->n_pods; i++)
		if (strcmp(o->pod_names[i], o->name) == 0)
			host = o->hosts[i];
	if (podspec_has_service(o) || strcmp(host.name, o->name) != 0)
		set(spec, "hostname", host.name);
	if (!podspec_has_service(o) || host.domain)
		return;
	podspec_service_name(o->cluster_id, o->job, o->array_index, service);
	set(spec, "subdomain", service);
}

static void put_files(const struct pod_order *o, json_t *spec)
{
	char name[PODSPEC_NAME_ROOM];

	if (!podspec_has_files(o))
		return;
	podspec_script_name(o->cluster_id, o->job, name);
	json_array_append_new(podspec_array(spec, "volumes"),
			      json_pack("{s:s, s:{s:s, s:i}}", "name", SCRIPT_VOLUME, "configMap",
					"name", name, "defaultMode", 0755));
}

/* A template has its own. */
static void put_device_claims(const struct pod_order *o, const struct gpuq_group *g, json_t *spec)
{
	for (size_t i = 0; i < g->n_claims && !g->template_; i++) {
		const struct gpuq_claim *c = &g->claims[i];
		char name[PODSPEC_NAME_ROOM + 80];

		/* One that gpuqd makes once the pod is there: flow/bind/claims.c. */
		snprintf(name, sizeof(name), "%s-%s", o->name, c->name);
		json_array_append_new(
			podspec_array(spec, "resourceClaims"),
			json_pack("{s:s, s:s}", "name", c->name,
				  c->template_ ? "resourceClaimTemplateName" : "resourceClaimName",
				  c->template_ ? c->template_
				  : c->claim   ? c->claim
					       : name));
	}
}

static void put_spec(const struct pod_order *o, const struct gpuq_group *g, json_t *spec)
{
	static const char *const decided[] = { "priority", "preemptionPolicy", "serviceAccount",
					       "schedulingGates", "ephemeralContainers" };
	json_t *security = podspec_object(spec, "securityContext");

	for (size_t i = 0; i < sizeof(decided) / sizeof(decided[0]); i++)
		json_object_del(spec, decided[i]);
	if (!o->unbound)
		set(spec, "nodeName", o->node);
	set(spec, "schedulerName", KUBE_SCHEDULER);
	if (g->runtime_class)
		set(spec, "runtimeClassName", g->runtime_class);
	set(spec, "restartPolicy", "Never");
	if (!json_object_get(spec, "enableServiceLinks"))
		json_object_set_new(spec, "enableServiceLinks", json_false());
	if (!o->walls.tokens || !json_object_get(spec, "automountServiceAccountToken"))
		json_object_set_new(spec, "automountServiceAccountToken", json_false());
	put_or_drop(spec, "serviceAccountName", o->service_account);
	put_or_drop(spec, "priorityClassName", o->priority_class);
	if (!json_object_get(security, "seccompProfile"))
		json_object_set_new(security, "seccompProfile",
				    json_pack("{s:s}", "type", "RuntimeDefault"));
	put_tolerations(o, g, spec);
	put_times(o, spec);
	put_pull_secrets(o, spec);
	put_names(o, spec);
	put_files(o, spec);
	put_device_claims(o, g, spec);
}

int podspec_pod(const struct pod_order *o, json_t **out, struct gpuq_err *err)
{
	const struct gpuq_group *g;
	json_t *pod = NULL, *spec;
	int rc;

	if (o->group >= o->spec->n_groups)
		return gpuq_fail(err, GPUQ_EINVAL, "the order names group %u of %zu", o->group,
				 o->spec->n_groups);
	g = &o->spec->groups[o->group];
	if (g->template_) {
		pod = podspec_json(g->template_);
		if (!json_is_object(pod)) {
			json_decref(pod);
			return gpuq_fail(err, GPUQ_EINVAL,
					 "groups[%u].template: not a pod template", o->group);
		}
	} else {
		pod = json_object();
	}
	json_object_del(pod, "status");
	set(pod, "apiVersion", "v1");
	set(pod, "kind", "Pod");
	spec = podspec_object(pod, "spec");
	rc = podspec_containers(o, g, spec, err);
	if (rc != 0) {
		json_decref(pod);
		return rc;
	}
	put_metadata(o, podspec_object(pod, "metadata"));
	rc = podspec_share(o, podspec_object(pod, "metadata"), spec, err);
	if (rc != 0) {
		json_decref(pod);
		return rc;
	}
	podspec_none(o, spec);
	put_spec(o, g, spec);
	if (o->walls.pod_policy && strcmp(o->walls.pod_policy, "restricted") == 0)
		podspec_restrict(spec);
	*out = pod;
	return 0;
}

/* ---- beside the pod ---- */

bool podspec_has_files(const struct pod_order *o)
{
	return o->spec->script || (o->spec->code.digest && podspec_code_is_file(o));
}

bool podspec_has_service(const struct pod_order *o)
{
	return o->n_pods > 1;
}

static json_t *job_labels(const struct pod_order *o)
{
	json_t *labels = json_object();

	set(labels, KUBE_L_CLUSTER, o->cluster_id);
	set_number(labels, KUBE_L_JOB, o->job);
	return labels;
}

int podspec_files(const struct pod_order *o, const char *archive, json_t **out,
		  struct gpuq_err *err)
{
	const struct gpuq_spec *spec = o->spec;
	char name[PODSPEC_NAME_ROOM];
	json_t *text = spec->script ? json_stringn(spec->script, spec->script_bytes) : NULL;
	json_t *map;

	if (spec->script && !text)
		return gpuq_fail_field(err, GPUQ_EINVAL, "script",
				       "script: not UTF-8 text, which a ConfigMap has to be");
	podspec_script_name(o->cluster_id, o->job, name);
	map = json_pack("{s:s, s:s, s:{s:s, s:o}, s:b}", "apiVersion", "v1", "kind", "ConfigMap",
			"metadata", "name", name, "labels", job_labels(o), "immutable", 1);
	if (text)
		json_object_set_new(map, "data", json_pack("{s:o}", "script", text));
	if (archive)
		json_object_set_new(map, "binaryData", json_pack("{s:s}", CODE_ARCHIVE, archive));
	*out = map;
	return map ? 0 : gpuq_no_memory(err);
}

int podspec_service(const struct pod_order *o, json_t **out, struct gpuq_err *err)
{
	char name[PODSPEC_NAME_ROOM];
	json_t *selector = job_labels(o), *labels = job_labels(o);

	if (o->array_index >= 0)
		set_number(selector, KUBE_L_ARRAY_INDEX, o->array_index);
	podspec_service_name(o->cluster_id, o->job, o->array_index, name);
	*out = json_pack("{s:s, s:s, s:{s:s, s:o}, s:{s:s, s:o, s:b}}", "apiVersion", "v1", "kind",
			 "Service", "metadata", "name", name, "labels", labels, "spec", "clusterIP",
			 "None", "selector", selector, "publishNotReadyAddresses", 1);
	return *out ? 0 : gpuq_fail(err, GPUQ_ENOMEM, "no memory");
}
