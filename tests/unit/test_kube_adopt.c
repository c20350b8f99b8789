#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/cluster/kube/adopt/cut.h"
#include "gpuqd/cluster/kube/adopt/gang.h"
#include "gpuqd/cluster/kube/watch/decode.h"

static json_t *parse(const char *text)
{
	json_error_t e;
	json_t *v = json_loads(text, 0, &e);

	cr_assert(v, "%s: %s", text, e.text);
	return v;
}

Test(kube_adopt, of_a_pod_stays_what_places_it)
{
	json_t *pod = parse(
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\",\"labels\":{\"a\":"
		"\"b\"},"
		"\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"{}\"}},"
		"\"spec\":{\"schedulerName\":\"gpuq\",\"priority\":7,\"runtimeClassName\":\"r\","
		"\"overhead\":{\"cpu\":\"1\"},\"nodeSelector\":{\"k\":\"v\"},"
		"\"volumes\":[{\"name\":\"kube-api-access\",\"projected\":{}},"
		"{\"name\":\"d\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}],"
		"\"containers\":[{\"name\":\"m\",\"image\":\"i\",\"env\":[{\"name\":\"SECRET\","
		"\"value\":\"x\"}],"
		"\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}},\"volumeMounts\":[]}]}}");
	json_t *cut = adopt_cut(pod);
	char *text = json_dumps(cut, JSON_COMPACT | JSON_SORT_KEYS);

	cr_expect_str_eq(text,
			 "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"annotations\":{},"
			 "\"labels\":{\"a\":"
			 "\"b\"},\"name\":\"p\",\"namespace\":\"n\"},\"spec\":{\"containers\":[{"
			 "\"image\":\"i\","
			 "\"name\":\"m\",\"resources\":{\"limits\":{\"nvidia.com/"
			 "gpu\":\"1\"}}}],\"nodeSelector\":{"
			 "\"k\":\"v\"},\"overhead\":{\"cpu\":\"1\"},\"volumes\":[{\"name\":\"d\","
			 "\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]}}");
	free(text);
	json_decref(cut);
	json_decref(pod);
}

/* Members that a queue's pod policy examines stay, so that gpuqd refuses what it refuses of gpuq submit. */
Test(kube_adopt, of_a_pod_stays_what_its_queue_may_refuse)
{
	static const char *const stay[] = {
		"\"hostPID\":true",    "\"hostNetwork\":true",
		"\"hostIPC\":true",    "\"sysctls\"",
		"\"privileged\":true", "\"hostPort\":80",
		"\"host\":\"x\"",      "\"preStop\"",
		"\"hostPath\"",        "/var/run/nvidia-container-devices/0"
	};
	json_t *pod = parse(
		"{\"metadata\":{\"name\":\"p\"},\"spec\":{\"hostPID\":true,\"hostNetwork\":true,"
		"\"hostIPC\":true,\"securityContext\":{\"sysctls\":[{\"name\":\"a\"}]},"
		"\"volumes\":[{\"name\":\"h\",\"hostPath\":{\"path\":\"/\"}},"
		"{\"name\":\"t\",\"projected\":{}}],\"containers\":[{\"name\":\"m\",\"image\":"
		"\"i\","
		"\"securityContext\":{\"privileged\":true},\"ports\":[{\"containerPort\":81},"
		"{\"containerPort\":80,\"hostPort\":80}],"
		"\"livenessProbe\":{\"httpGet\":{\"host\":\"x\"}},\"lifecycle\":{\"preStop\":{}},"
		"\"volumeMounts\":[{\"name\":\"kube-api-access-12345\",\"mountPath\":\"/var/run/"
		"s\"},"
		"{\"name\":\"h\",\"mountPath\":\"/var/run/nvidia-container-devices/0\"}]}]}}");
	json_t *cut = adopt_cut(pod);
	char *text = json_dumps(cut, JSON_COMPACT | JSON_SORT_KEYS);

	for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
		cr_expect(strstr(text, stay[i]), "%s: %s", stay[i], text);
	/* Names that differ from pod to pod would make each a kind of its own. */
	cr_expect_null(strstr(text, "kube-api-access"), "%s", text);
	cr_expect_null(strstr(text, "projected"), "%s", text);
	cr_expect_null(strstr(text, "81"), "%s", text);
	free(text);
	json_decref(cut);
	json_decref(pod);
}

static const struct {
	const char *pod;
	bool sees;
} seen[] = {
	{ "{\"spec\":{\"containers\":[{\"env\":[{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":"
	  "\"all\"}]}]}}",
	  true },
	{ "{\"spec\":{\"containers\":[],\"initContainers\":[{\"env\":[{\"name\":"
	  "\"NVIDIA_VISIBLE_DEVICES\",\"valueFrom\":{}}]}]}}",
	  true },
	{ "{\"spec\":{\"containers\":[{\"env\":[{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":"
	  "\"void\"}]}]}}",
	  false },
	{ "{\"spec\":{\"containers\":[{\"env\":[{\"name\":\"A\",\"value\":\"all\"}]}]}}", false },
	{ "{}", false },
};

Test(kube_adopt, devices_beside_the_request)
{
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		json_t *pod = parse(seen[i].pod);

		cr_expect_eq(adopt_sees_devices(pod), seen[i].sees, "%s", seen[i].pod);
		json_decref(pod);
	}
}

static const struct {
	const char *meta, *kind, *name;
} owners[] = {
	{ "{\"name\":\"p\"}", "Pod", "p" },
	{ "{\"name\":\"p\",\"ownerReferences\":[{\"kind\":\"Job\",\"name\":\"j\",\"controller\":"
	  "true}]}",
	  "Job", "j" },
	{ "{\"name\":\"p\",\"ownerReferences\":[{\"kind\":\"Node\",\"name\":\"n\"}]}", "Pod", "p" },
	{ "{\"name\":\"web-77-x\",\"labels\":{\"pod-template-hash\":\"77\"},\"ownerReferences\":[{"
	  "\"kind\":"
	  "\"ReplicaSet\",\"name\":\"web-77\",\"controller\":true}]}",
	  "Deployment", "web" },
	{ "{\"name\":\"p\",\"labels\":{\"pod-template-hash\":\"77\"},\"ownerReferences\":[{"
	  "\"kind\":"
	  "\"ReplicaSet\",\"name\":\"77\",\"controller\":true}]}",
	  "ReplicaSet", "77" },
};

Test(kube_adopt, whose_a_pod_is)
{
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		json_t *pod = json_pack("{s:o}", "metadata", parse(owners[i].meta));
		const char *kind, *uid;
		char name[254];

		adopt_owner(pod, &kind, name, &uid);
		cr_expect_str_eq(kind, owners[i].kind);
		cr_expect_str_eq(name, owners[i].name);
		json_decref(pod);
	}
}

/* n 0 = refused. */
static const struct {
	const char *meta, *path, *object;
	uint32_t n;
} gangs[] = {
	{ "{\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"g\"}}",
	  "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups/g",
	  "{\"spec\":{\"minMember\":4}}", 4 },
	{ "{\"annotations\":{\"scheduling.k8s.io/group-name\":\"g\"}}",
	  "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g", "{\"spec\":{}}", 1 },
	{ "{\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"g\"}}", NULL,
	  "{\"spec\":{\"minMember\":1000000}}", 0 },
	{ "{\"labels\":{\"ray.io/cluster\":\"r\"}}", "/apis/ray.io/v1/namespaces/ns/rayclusters/r",
	  "{\"spec\":{\"workerGroupSpecs\":[{\"replicas\":2,\"numOfHosts\":3},{}]}}", 8 },
	{ "{\"labels\":{\"jobset.sigs.k8s.io/jobset-name\":\"j\"}}",
	  "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/j",
	  "{\"apiVersion\":\"jobset.x-k8s.io/"
	  "v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"j\"},"
	  "\"spec\":{\"replicatedJobs\":[{\"name\":\"w\",\"replicas\":2,\"template\":{\"spec\":{"
	  "\"parallelism\":3,\"completions\":3,\"template\":{\"spec\":{\"restartPolicy\":\"Never\","
	  "\"containers\":[{\"name\":\"a\",\"image\":\"i\"}]}}}}}]},\"status\":{}}",
	  6 },
	{ "{\"labels\":{\"jobset.sigs.k8s.io/jobset-name\":\"j\"}}", NULL, "{\"spec\":{}}", 0 },
	{ "{\"labels\":{\"kueue.x-k8s.io/pod-group-name\":\"k\"},\"annotations\":{"
	  "\"kueue.x-k8s.io/pod-group-total-count\":\"3\"}}",
	  NULL, NULL, 3 },
	{ "{\"labels\":{\"kueue.x-k8s.io/pod-group-name\":\"k\"}}", NULL, NULL, 0 },
};

Test(kube_adopt, how_many_start_together)
{
	for (size_t i = 0; i < sizeof(gangs) / sizeof(gangs[0]); i++) {
		json_t *pod = json_pack("{s:o}", "metadata", parse(gangs[i].meta));
		json_t *object = gangs[i].object ? parse(gangs[i].object) : NULL;
		struct gpuq_buf path = GPUQ_BUF_INIT;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gang g;
		uint32_t n = 0;

		cr_assert(gang_of(pod, &g), "%s", gangs[i].meta);
		gang_path(&g, "ns", &path);
		cr_expect(!gangs[i].path || strcmp(gpuq_buf_str(&path), gangs[i].path) == 0, "%s",
			  gpuq_buf_str(&path));
		cr_expect_eq(gang_size(object, &g, &n, &err) == 0, gangs[i].n > 0, "%s: %s",
			     gangs[i].meta, err.text);
		cr_expect_eq(n, gangs[i].n, "%s", gangs[i].meta);
		gpuq_buf_done(&path);
		json_decref(object);
		json_decref(pod);
	}
}

Test(kube_adopt, most_pods_are_in_no_gang)
{
	json_t *pod =
		parse("{\"metadata\":{\"labels\":{\"training.kubeflow.org/job-name\":\"x\"}}}");
	struct gang g;

	cr_expect(!gang_of(pod, &g));
	json_decref(pod);
}
