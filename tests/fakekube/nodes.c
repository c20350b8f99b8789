#include "nodes.h"
#include "audit.h"
#include "kubelet.h"
#include "pods.h"
#include "write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node_shape node_shape = {
	.gpus = 8,
	.cpus = 64,
	.memory_gib = 512,
	.pods = 110,
	.per_zone = 16,
	.product = "NVIDIA-H100-80GB-HBM3",
};

/* A node that was lost, and when its pods' toleration of that is over. */
struct eviction {
	struct eviction *next;
	struct event *timer;
	char uid[UID_SIZE];
};

static struct event_base *ev_base;
static struct eviction *evictions;
static unsigned n_made;

void nodes_init(struct event_base *base)
{
	ev_base = base;
}

static json_t *amounts(unsigned gpus)
{
	json_t *a = json_pack("{s:o,s:o,s:o,s:s}", "cpu", json_sprintf("%u", node_shape.cpus),
			      "memory", json_sprintf("%uGi", node_shape.memory_gib), "pods",
			      json_sprintf("%u", node_shape.pods), "ephemeral-storage", "1Ti");

	/* A node without the device plugin does not have the resource at all. */
	if (gpus)
		json_object_set_new(a, "nvidia.com/gpu", json_sprintf("%u", gpus));
	return a;
}

static json_t *conditions(const char *ready, const char *reason)
{
	static const char *const pressures[] = { "MemoryPressure", "DiskPressure", "PIDPressure" };
	const bool known = strcmp(ready, "Unknown") != 0;
	json_t *list = json_array();
	char now[TIME_TEXT_SIZE];

	time_text(now, now_us());
	for (size_t i = 0; i < ARRAY_LEN(pressures); i++)
		json_array_append_new(
			list, json_pack("{s:s,s:s,s:s,s:s,s:s}", "type", pressures[i], "status",
					known ? "False" : "Unknown", "lastHeartbeatTime", now,
					"lastTransitionTime", now, "reason",
					known ? "KubeletHasSufficient" : "NodeStatusUnknown"));
	json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s,s:s}", "type", "Ready", "status",
					      ready, "lastHeartbeatTime", now, "lastTransitionTime",
					      now, "reason", reason));
	return list;
}

static json_t *labels(const char *name, unsigned gpus)
{
	json_t *l = json_pack(
		"{s:s,s:s,s:s,s:s,s:o}", "kubernetes.io/hostname", name, "kubernetes.io/arch",
		"amd64", "kubernetes.io/os", "linux", "node.kubernetes.io/instance-type", "fake",
		"topology.kubernetes.io/zone",
		json_sprintf("zone-%u", n_made / (node_shape.per_zone ? node_shape.per_zone : 1)));

	if (!gpus)
		return l;
	json_object_update_new(
		l, json_pack("{s:s,s:s,s:o,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}",
			     "nvidia.com/gpu.present", "true", "nvidia.com/gpu.product",
			     node_shape.product, "nvidia.com/gpu.count", json_sprintf("%u", gpus),
			     "nvidia.com/gpu.memory", "81559", "nvidia.com/gpu.family", "hopper",
			     "nvidia.com/gpu.machine", "fake", "nvidia.com/gpu.compute.major", "9",
			     "nvidia.com/gpu.compute.minor", "0", "nvidia.com/gpu.replicas", "1",
			     "nvidia.com/mig.strategy", "none", "nvidia.com/cuda.driver.major",
			     "570"));
	return l;
}

void nodes_add(const char *name, unsigned gpus)
{
	json_t *node, *status;

	if (store_find(&kinds[KIND_NODES], "", name))
		return;
	status = json_pack("{s:o,s:o,s:o,s:[{s:s,s:s}],s:{s:s,s:s,s:s,s:s,s:s}}", "capacity",
			   amounts(gpus), "allocatable", amounts(gpus), "conditions",
			   conditions("True", "KubeletReady"), "addresses", "type", "Hostname",
			   "address", name, "nodeInfo", "kubeletVersion", "v1.36.3", "architecture",
			   "amd64", "operatingSystem", "linux", "osImage", "fakekube",
			   "containerRuntimeVersion", "containerd://2.1.0");
	node = json_pack("{s:{s:o,s:{s:s}},s:{s:o},s:o}", "metadata", "labels", labels(name, gpus),
			 "annotations", "node.alpha.kubernetes.io/ttl", "0", "spec", "providerID",
			 json_sprintf("fake://%s", name), "status", status);
	if (!node)
		abort();
	n_made++;
	write_new(&kinds[KIND_NODES], "", name, node);
	json_decref(node);
}

void nodes_add_many(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "node-%04u", i);
		nodes_add(name, node_shape.gpus);
	}
}

static json_t *foreign_pod(const char *node, unsigned gpus)
{
	char now[TIME_TEXT_SIZE];
	json_t *limits = gpus ? json_pack("{s:o}", "nvidia.com/gpu", json_sprintf("%u", gpus))
			      : json_object();

	time_text(now, now_us());
	return json_pack("{s:{s:{s:s},s:{s:s}},s:{s:s,s:s,s:i,s:[{s:s,s:s,s:{s:o,s:o}}]},"
			 "s:{s:s,s:s,s:s,s:s}}",
			 "metadata", "labels", "app", "foreign", "annotations", "gpuq.test/hang",
			 "true", "spec", "nodeName", node, "restartPolicy", "Always",
			 "terminationGracePeriodSeconds", 1, "containers", "name", "main", "image",
			 "foreign:1", "resources", "limits", limits, "requests",
			 json_deep_copy(limits), "status", "phase", "Pending", "startTime", now,
			 "podIP", "10.250.0.1", "qosClass", "Burstable");
}

void nodes_add_foreign_on(const char *node, const char *name, unsigned gpus)
{
	json_t *pod = foreign_pod(node, gpus);

	if (!pod)
		abort();
	write_new(&kinds[KIND_PODS], "foreign", name, pod);
	json_decref(pod);
}

void nodes_add_foreign(unsigned n, unsigned gpus)
{
	struct obj *o, *tmp, **all = xmalloc(store_count(&kinds[KIND_NODES]) * sizeof(*all));
	size_t n_nodes = 0;

	HASH_ITER(hh, kinds[KIND_NODES].objs, o, tmp)
		all[n_nodes++] = o;
	for (unsigned i = 0; n_nodes && i < n; i++) {
		const unsigned round = (unsigned)(i / n_nodes);
		const bool room = (round + 1) * gpus <= node_shape.gpus;
		char name[32];

		snprintf(name, sizeof(name), "foreign-%06u", i);
		nodes_add_foreign_on(all[i % n_nodes]->v->facts->name, name, room ? gpus : 0);
	}
	free(all);
}

static struct obj *node_find(const char *name)
{
	return store_find(&kinds[KIND_NODES], "", name);
}

static void node_commit(struct obj *o, json_t *j)
{
	store_update(o, version_new(o->v->kind, j, store_next_rv()));
	json_decref(j);
}

static void eviction_free(struct eviction *e)
{
	struct eviction **at = &evictions;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	event_free(e->timer);
	free(e);
}

void nodes_done(void)
{
	while (evictions)
		eviction_free(evictions);
}

/* Act as the taint manager on a pod whose toleration is over. */
static void on_evict(evutil_socket_t fd, short what, void *arg)
{
	const struct delete_options opt = { .grace_s = -1 };
	struct eviction *e = arg;
	struct obj *o = store_by_uid(e->uid);

	(void)fd;
	(void)what;
	eviction_free(e);
	if (!o || o->v->deletion_us || phase_terminal(o->v->phase) ||
	    !kubelet_node_is_down(o->v->facts->pod.node))
		return;
	pods_add_condition(o, "DisruptionTarget", "DeletionByTaintManager",
			   "Taint manager: deleting due to NoExecute taint");
	audit_write("taint-evict", o->v);
	pods_delete(o, &opt);
}

static void plan_evictions(const char *node)
{
	struct obj *o, *tmp;

	HASH_ITER(hh, kinds[KIND_PODS].objs, o, tmp) {
		const int64_t wait_s = o->v->facts->pod.unreachable_s;
		const struct timeval tv = { wait_s, 0 };
		struct eviction *e;

		if (strcmp(o->v->facts->pod.node, node) != 0 || wait_s < 0)
			continue;
		e = xcalloc(1, sizeof(*e));
		snprintf(e->uid, sizeof(e->uid), "%s", o->v->facts->uid);
		e->timer = evtimer_new(ev_base, on_evict, e);
		e->next = evictions;
		evictions = e;
		evtimer_add(e->timer, &tv);
	}
}

int nodes_set_ready(const char *name, bool ready)
{
	static const char *const effects[] = { "NoSchedule", "NoExecute" };
	struct obj *o = node_find(name);
	json_t *j, *spec, *taints;

	if (!o)
		return -1;
	j = version_json(o->v);
	spec = json_object_get(j, "spec");
	taints = json_array();
	for (size_t i = 0; !ready && i < ARRAY_LEN(effects); i++)
		json_array_append_new(taints, json_pack("{s:s,s:s}", "key",
							"node.kubernetes.io/unreachable", "effect",
							effects[i]));
	if (ready)
		json_object_del(spec, "taints");
	else
		json_object_set(spec, "taints", taints);
	json_decref(taints);
	json_object_set_new(json_object_get(j, "status"), "conditions",
			    conditions(ready ? "True" : "Unknown",
				       ready ? "KubeletReady" : "NodeStatusUnknown"));
	node_commit(o, j);
	if (!ready)
		plan_evictions(name);
	return 0;
}

int nodes_set_devices(const char *name, unsigned gpus)
{
	struct obj *o = node_find(name);
	json_t *j;

	if (!o)
		return -1;
	j = version_json(o->v);
	json_object_set_new(json_object_get(json_object_get(j, "status"), "allocatable"),
			    "nvidia.com/gpu", json_sprintf("%u", gpus));
	node_commit(o, j);
	return 0;
}

int nodes_cordon(const char *name, bool on)
{
	struct obj *o = node_find(name);
	json_t *j;

	if (!o)
		return -1;
	j = version_json(o->v);
	if (on)
		json_object_set_new(json_object_get(j, "spec"), "unschedulable", json_true());
	else
		json_object_del(json_object_get(j, "spec"), "unschedulable");
	node_commit(o, j);
	return 0;
}

int nodes_remove(const char *name)
{
	struct obj *o = node_find(name);

	if (!o)
		return -1;
	store_remove(o);
	return 0;
}
