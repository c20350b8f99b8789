#include "gpuqd/cluster/kube/adopt/gang.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "libgpuq/arena.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec.h"

#define OPERATOR "training.kubeflow.org/operator-name"
#define COUNT "kueue.x-k8s.io/pod-group-total-count"

/* Labels (of `map` "annotations": annotations) that name a gang, the closest first. */
static const struct row {
	const char *map, *key;
	const char *operator_; /* value of OPERATOR that goes with it; NULL = any */
	const char *kind, *group, *version, *plural;
} rows[] = {
	{ "labels", "scheduling.x-k8s.io/pod-group", NULL, "PodGroup", "scheduling.x-k8s.io",
	  "v1alpha1", "podgroups" },
	{ "annotations", "scheduling.k8s.io/group-name", NULL, "PodGroup", "scheduling.volcano.sh",
	  "v1beta1", "podgroups" },
	{ "labels", "kueue.x-k8s.io/pod-group-name", NULL, "PodGroup", "", "", "" },
	{ "labels", "jobset.sigs.k8s.io/jobset-name", NULL, "JobSet", "jobset.x-k8s.io", "v1alpha2",
	  "jobsets" },
	{ "labels", "training.kubeflow.org/job-name", "pytorchjob-controller", "PyTorchJob",
	  "kubeflow.org", "v1", "pytorchjobs" },
	{ "labels", "training.kubeflow.org/job-name", "mpi-operator", "MPIJob", "kubeflow.org",
	  "v2beta1", "mpijobs" },
	{ "labels", "ray.io/cluster", NULL, "RayCluster", "ray.io", "v1", "rayclusters" },
};

bool gang_of(const json_t *pod, struct gang *out)
{
	const json_t *meta = json_object_get(pod, "metadata");
	const char *by = kube_str(json_object_get(meta, "labels"), OPERATOR);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		const char *name = kube_str(json_object_get(meta, r->map), r->key);

		if (!*name || (r->operator_ && strcmp(r->operator_, by) != 0))
			continue;
		*out = (struct gang){ r->kind, name, r->group, r->version, r->plural, 0 };
		if (!*r->group)
			out->n = (uint32_t)strtoul(
				kube_str(json_object_get(meta, "annotations"), COUNT), NULL, 10);
		return true;
	}
	return false;
}

void gang_path(const struct gang *g, const char *namespace_, struct gpuq_buf *out)
{
	gpuq_buf_printf(out, "/apis/%s/%s/namespaces/", g->group, g->version);
	url_escape(out, namespace_);
	gpuq_buf_printf(out, "/%s/", g->plural);
	url_escape(out, g->name);
}

static int64_t count(const json_t *map, const char *key, int64_t without)
{
	const json_t *v = json_object_get(map, key);

	return json_is_integer(v) ? json_integer_value(v) : without;
}

/* A head, and the workers of each group. */
static int64_t ray_pods(const json_t *spec)
{
	int64_t n = 1;
	size_t i;
	json_t *g;

	json_array_foreach(json_object_get(spec, "workerGroupSpecs"), i, g) n +=
		count(g, "replicas", 1) * count(g, "numOfHosts", 1);
	return n;
}

/* The pods of a kind that gpuq submit reads. */
static int read_pods(const json_t *object, int64_t *n, struct gpuq_err *err)
{
	static const char *const keys[] = { "apiVersion", "kind", "spec", NULL };
	const struct gpuq_spec_opts o = { .file = "owner", .default_name = "owner" };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const json_t *meta = json_object_get(object, "metadata");
	json_t *cut = json_object();
	struct gpuq_specs specs = { 0 };
	char *text;
	int rc = GPUQ_ENOMEM;

	for (int i = 0; keys[i]; i++)
		json_object_set(cut, keys[i], json_object_get(object, keys[i]));
	json_object_set_new(cut, "metadata", json_pack("{s:s}", "name", kube_str(meta, "name")));
	text = json_dumps(cut, JSON_COMPACT);
	if (text)
		rc = gpuq_specs_read(&mem, &o, text, strlen(text), &specs, NULL, err);
	*n = 0;
	for (size_t i = 0; rc == 0 && i < specs.n; i++)
		*n += gpuq_spec_pods(&specs.items[i]);
	free(text);
	json_decref(cut);
	gpuq_arena_done(&mem);
	return rc;
}

int gang_size(const json_t *object, const struct gang *g, uint32_t *n, struct gpuq_err *err)
{
	const json_t *spec = json_object_get(object, "spec");
	int64_t found = g->n;
	int rc = 0;

	if (strcmp(g->kind, "RayCluster") == 0)
		found = ray_pods(spec);
	else if (strcmp(g->kind, "PodGroup") != 0)
		rc = read_pods(object, &found, err);
	else if (object)
		found = count(spec, "minMember", 1);
	if (rc != 0)
		return rc;
	if (found < 1 || found > (int64_t)GPUQ_PODS_MAX)
		return gpuq_fail(err, GPUQ_ERANGE, "expected a gang of 1 to %u pods, not %lld",
				 GPUQ_PODS_MAX, (long long)found);
	*n = (uint32_t)found;
	return 0;
}
