#include "gpuqd/cluster/kube/adopt/cut.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"

#define VISIBLE "NVIDIA_VISIBLE_DEVICES"

/* Members that stay: its requests, its nodes, and what the pod policy of a queue examines. Additions by a
 * RuntimeClass are in the pod's own overhead, selector and tolerations. */
static const char *const pod_keys[] = { "nodeSelector",
					"affinity",
					"tolerations",
					"overhead",
					"resources",
					"restartPolicy",
					"activeDeadlineSeconds",
					"terminationGracePeriodSeconds",
					"topologySpreadConstraints",
					"resourceClaims",
					"hostNetwork",
					"hostPID",
					"hostIPC",
					"securityContext",
					NULL };
static const char *const container_keys[] = { "name",
					      "image",
					      "command",
					      "args",
					      "workingDir",
					      "resources",
					      "restartPolicy",
					      "securityContext",
					      "livenessProbe",
					      "readinessProbe",
					      "startupProbe",
					      "lifecycle",
					      NULL };

static void copy(json_t *to, const json_t *from, const char *const *keys)
{
	for (; *keys; keys++) {
		json_t *v = json_object_get(from, *keys);

		if (v && !json_is_null(v))
			json_object_set(to, *keys, v);
	}
}

/* Ports of the node, and mounts by which a runtime is asked for devices. */
static bool is_examined(const json_t *v)
{
	return json_object_get(v, "hostPort") ||
	       strstr(kube_str(v, "mountPath"), "nvidia-container-devices");
}

static void copy_examined(json_t *to, const json_t *from, const char *list)
{
	json_t *out = json_array(), *v;
	size_t i;

	json_array_foreach(json_object_get(from, list), i, v) if (is_examined(v))
		json_array_append(out, v);
	if (json_array_size(out))
		json_object_set(to, list, out);
	json_decref(out);
}

static json_t *containers(const json_t *list)
{
	json_t *out = json_array(), *c;
	size_t i;

	json_array_foreach(list, i, c)
	{
		json_t *kept = json_object();

		copy(kept, c, container_keys);
		copy_examined(kept, c, "ports");
		copy_examined(kept, c, "volumeMounts");
		json_array_append_new(out, kept);
	}
	return out;
}

/* Volumes that may restrict its nodes, and such as its queue may refuse. The others are the business of the
 * namespace: gpuqd does not make this pod. */
static json_t *volumes(const json_t *list)
{
	static const char *const others[] = { "configMap", "secret",    "downwardAPI", "emptyDir",
					      "csi",       "projected", "image",       NULL };
	json_t *out = json_array(), *v;
	size_t i;

	json_array_foreach(list, i, v)
	{
		int k = 0;

		while (others[k] && !json_object_get(v, others[k]))
			k++;
		if (!others[k])
			json_array_append(out, v);
	}
	return out;
}

json_t *adopt_cut(const json_t *pod)
{
	static const char *const lists[] = { "containers", "initContainers", NULL };
	static const char *const meta_keys[] = { "name", "namespace", "labels", "annotations",
						 NULL };
	static const char applied[] = "kubectl.kubernetes.io/last-applied-configuration";
	const json_t *from = json_object_get(pod, "spec"), *meta = json_object_get(pod, "metadata");
	json_t *spec = json_object(), *kept = json_object(), *notes;

	copy(kept, meta, meta_keys);
	notes = json_copy(json_object_get(kept, "annotations"));
	if (notes) {
		json_object_del(notes, applied);
		json_object_set_new(kept, "annotations", notes);
	}
	copy(spec, from, pod_keys);
	for (int i = 0; lists[i]; i++)
		if (json_array_size(json_object_get(from, lists[i])))
			json_object_set_new(spec, lists[i],
					    containers(json_object_get(from, lists[i])));
	json_object_set_new(spec, "volumes", volumes(json_object_get(from, "volumes")));
	return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "Pod", "metadata",
			 kept, "spec", spec);
}

bool adopt_sees_devices(const json_t *pod)
{
	static const char *const lists[] = { "containers", "initContainers", NULL };
	size_t i, k;
	json_t *c, *e;

	for (int l = 0; lists[l]; l++)
		json_array_foreach(kube_path(pod, "spec", lists[l]), i, c)
			json_array_foreach(json_object_get(c, "env"), k, e)
		{
			const char *value = kube_str(e, "value");

			if (strcmp(kube_str(e, "name"), VISIBLE) == 0 &&
			    strcmp(value, "void") != 0 && strcmp(value, "none") != 0)
				return true;
		}
	return false;
}

void adopt_owner(const json_t *pod, const char **kind, char *name, const char **uid)
{
	const json_t *meta = json_object_get(pod, "metadata");
	const char *hash = kube_str(json_object_get(meta, "labels"), "pod-template-hash");
	size_t i, n, n_hash = strlen(hash);
	json_t *o;

	*kind = "Pod";
	*uid = kube_str(meta, "uid");
	snprintf(name, 254, "%s", kube_str(meta, "name"));
	json_array_foreach(json_object_get(meta, "ownerReferences"), i, o)
	{
		if (!json_is_true(json_object_get(o, "controller")))
			continue;
		*kind = kube_str(o, "kind");
		*uid = kube_str(o, "uid");
		snprintf(name, 254, "%s", kube_str(o, "name"));
	}
	n = strlen(name);
	if (strcmp(*kind, "ReplicaSet") == 0 && n_hash && n > n_hash + 1 &&
	    name[n - n_hash - 1] == '-' && strcmp(name + n - n_hash, hash) == 0) {
		*kind = "Deployment";
		name[n - n_hash - 1] = '\0';
	}
}
