#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/watch/decode_dra.h"
#include "gpuqd/cluster/kube/watch/decode_pod.h"
#include "gpuqd/cluster/kube/watch/decode_node.h"
#include "gpuqd/cluster/kube/watch/decode_plain.h"
#include "libgpuq/limits.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define ID "0123abcd"

static struct kube_object object;

static int pod(const char *json, struct pod_fact *out, struct gpuq_err *err)
{
	int rc;

	kube_object_done(&object);
	rc = kube_parse_item(json, strlen(json), &object, err);
	return rc == 0 ? kube_read_pod(&object, ID, out, err) : rc;
}

static int node(const char *json, struct node_fact *out, struct gpuq_err *err)
{
	int rc;

	kube_object_done(&object);
	rc = kube_parse_item(json, strlen(json), &object, err);
	return rc == 0 ? kube_read_node(&object, out, err) : rc;
}

#define META "\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}"
#define ENDED(name, code, reason, at)                                                              \
	"{\"name\":\"" name "\",\"state\":{\"terminated\":{\"exitCode\":" code                     \
	",\"reason\":\"" reason "\",\"finishedAt\":\"2026-11-20T08:00:" at "Z\"}}}"

/* How pods end, in the words of kubelets and controllers. */
static const struct {
	const char *name, *status;
	enum pod_fault fault;
	int exit_code;
	const char *reason;
} ends[] = {
	{ "an exit code",
	  "\"phase\":\"Failed\",\"containerStatuses\":[" ENDED("c", "3", "Error", "09") "]",
	  POD_FAULT_NONE, 3, "Error" },
	{ "success",
	  "\"phase\":\"Succeeded\",\"containerStatuses\":[" ENDED("c", "0", "Completed", "09") "]",
	  POD_FAULT_NONE, 0, "" },
	{ "the container that failed first decides",
	  "\"phase\":\"Failed\",\"containerStatuses\":[" ENDED("a", "137", "Error", "09") "," ENDED(
		  "b", "2", "Error", "05") "," ENDED("c", "0", "Completed", "01") "]",
	  POD_FAULT_NONE, 2, "Error" },
	{ "an init container that failed",
	  "\"phase\":\"Failed\",\"initContainerStatuses\":[" ENDED(
		  "i", "4", "Error", "01") "],"
					   "\"containerStatuses\":[{\"name\":\"c\",\"state\":{"
					   "\"waiting\":{\"reason\":\"PodInitializing\"}}}]",
	  POD_FAULT_NONE, 4, "Error" },
	{ "out of memory",
	  "\"phase\":\"Failed\",\"containerStatuses\":[" ENDED("c", "137", "OOMKilled", "09") "]",
	  POD_FAULT_OOM, 137, "OOMKilled" },
	{ "a process of its was killed, and it went on",
	  "\"phase\":\"Succeeded\",\"containerStatuses\":[" ENDED("c", "0", "OOMKilled", "09") "]",
	  POD_FAULT_OOM, 137, "OOMKilled" },
	{ "a command that is not there",
	  "\"phase\":\"Failed\",\"containerStatuses\":[" ENDED("c", "128", "StartError", "09") "]",
	  POD_FAULT_IMAGE, 128, "StartError" },
	{ "its kubelet lost track of it",
	  "\"phase\":\"Failed\",\"containerStatuses\":[" ENDED("c", "137", "ContainerStatusUnknown",
							       "09") "]",
	  POD_FAULT_INFRA, 137, "ContainerStatusUnknown" },
	{ "devices taken by another",
	  "\"phase\":\"Failed\",\"reason\":\"UnexpectedAdmissionError\","
	  "\"message\":\"Allocate failed due to requested number of devices unavailable\"",
	  POD_FAULT_REJECTED, 1, "UnexpectedAdmissionError" },
	{ "no room", "\"phase\":\"Failed\",\"reason\":\"OutOfnvidia.com/gpu\"", POD_FAULT_REJECTED,
	  1, "OutOfnvidia.com/gpu" },
	{ "a reason from the future, before it ran", "\"phase\":\"Failed\",\"reason\":\"Sunspots\"",
	  POD_FAULT_REJECTED, 1, "Sunspots" },
	{ "refused after it had run: the node was restarted",
	  "\"phase\":\"Failed\",\"reason\":\"UnexpectedAdmissionError\",\"containerStatuses\":"
	  "[" ENDED("c", "137", "Error", "09") "]",
	  POD_FAULT_INFRA, 137, "UnexpectedAdmissionError" },
	{ "evicted for the node's sake",
	  "\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"The node was low on resource: "
	  "memory.\"",
	  POD_FAULT_INFRA, 1, "Evicted" },
	{ "evicted for its own greed",
	  "\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"Usage of EmptyDir volume "
	  "\\\"x\\\" "
	  "exceeds the limit \\\"1Gi\\\".\"",
	  POD_FAULT_NONE, 1, "Evicted" },
	{ "its node was shut down",
	  "\"phase\":\"Failed\",\"reason\":\"Terminated\",\"containerStatuses\":[" ENDED(
		  "c", "143", "Error", "09") "]",
	  POD_FAULT_INFRA, 143, "Terminated" },
	{ "the cluster's deadline",
	  "\"phase\":\"Failed\",\"reason\":\"DeadlineExceeded\",\"containerStatuses\":[" ENDED(
		  "c", "137", "Error", "09") "]",
	  POD_FAULT_DEADLINE, 137, "DeadlineExceeded" },
	{ "disrupted: whatever its exit code",
	  "\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\","
	  "\"reason\":\"DeletionByTaintManager\"}],\"containerStatuses\":[" ENDED("c", "1", "Error",
										  "09") "]",
	  POD_FAULT_INFRA, 1, "Error" },
	{ "not disrupted after all",
	  "\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
	  "\"False\"}],"
	  "\"containerStatuses\":[" ENDED("c", "1", "Error", "09") "]",
	  POD_FAULT_NONE, 1, "Error" },
	{ "failed, nobody says how", "\"phase\":\"Failed\"", POD_FAULT_NONE, 1, "" },
	{ "an exit code that is none",
	  "\"phase\":\"Failed\",\"containerStatuses\":[" ENDED("c", "-7", "Error", "09") "]",
	  POD_FAULT_NONE, 255, "Error" },
};

Test(kube_decode, tells_what_is_about_to_end_a_pod)
{
	static const struct {
		const char *status, *words; /* words NULL = nothing */
	} cases[] = {
		{ "\"phase\":\"Running\"", NULL },
		{ "\"phase\":\"Running\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
		  "\"False\",\"reason\":\"a\"}]",
		  NULL },
		{ "\"phase\":\"Running\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
		  "\"True\",\"reason\":\"TerminationByKubelet\",\"message\":\"node shutdown\"}]",
		  "node shutdown" },
		{ "\"phase\":\"Pending\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
		  "\"True\",\"reason\":\"DeletionByTaintManager\"}]",
		  "DeletionByTaintManager" },
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct pod_fact p;
		char json[1024];

		snprintf(json, sizeof(json), "{" META ",\"status\":{%s}}", cases[i].status);
		cr_assert_eq(pod(json, &p, &err), 0, "%zu: %s", i, err.text);
		cr_expect(cases[i].words ? p.disrupted && strcmp(p.disrupted, cases[i].words) == 0
					 : !p.disrupted,
			  "%zu: %s", i, p.disrupted ? p.disrupted : "nothing");
	}
}

Test(kube_decode, tells_how_a_pod_ended)
{
	for (size_t i = 0; i < N(ends); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct pod_fact p;
		char json[1024];

		snprintf(json, sizeof(json), "{" META ",\"status\":{%s}}", ends[i].status);
		cr_assert_eq(pod(json, &p, &err), 0, "%s: %s", ends[i].name, err.text);
		cr_expect_eq(p.fault, ends[i].fault, "%s: %d", ends[i].name, p.fault);
		cr_expect_eq(p.exit_code, ends[i].exit_code, "%s: %d", ends[i].name, p.exit_code);
		cr_expect_str_eq(p.reason, ends[i].reason, "%s", ends[i].name);
		cr_expect_eq(p.end_us != 0, strstr(ends[i].status, "finishedAt") != NULL, "%s",
			     ends[i].name);
	}
}

Test(kube_decode, tells_that_code_was_not_unpacked)
{
	static const char status[] = "\"phase\":\"Failed\",\"initContainerStatuses\":[{\"name\":"
				     "\"gpuq-code\",\"state\":{"
				     "\"terminated\":{\"exitCode\":3,\"reason\":\"Error\","
				     "\"message\":\"there is no tar\","
				     "\"finishedAt\":\"2026-11-20T08:00:01Z\"}}}]";
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_fact p;
	char json[1024];

	snprintf(json, sizeof(json), "{" META ",\"status\":{%s}}", status);
	cr_assert_eq(pod(json, &p, &err), 0, "%s", err.text);
	cr_expect_eq(p.exit_code, 3);
	cr_expect(strstr(p.message, "the code of the job was not unpacked") &&
			  strstr(p.message, ": there is no tar"),
		  "%s", p.message);
}

Test(kube_decode, reads_a_pod_of_ours)
{
	static const char json[] =
		"{\"metadata\":{\"name\":\"gpuq-" ID
		"-17-0-0\",\"namespace\":\"ml\",\"uid\":\"u-1\","
		"\"deletionTimestamp\":\"2026-11-20T08:00:00Z\",\"labels\":{\"gpuq.io/"
		"cluster\":\"" ID "\"},"
		"\"annotations\":{\"gpuq.io/token\":\"abcd\",\"gpuq.io/devices\":\"3,0\","
		"\"gpuq.io/record\":\"{}\"}},"
		"\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"limits\":"
		"{\"nvidia.com/gpu\":\"2\",\"cpu\":\"1500m\",\"memory\":\"1.5Gi\"}}}]},"
		"\"status\":{\"phase\":\"Running\",\"startTime\":\"1970-01-01T00:00:01Z\"}}";
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_fact p;

	cr_assert_eq(pod(json, &p, &err), 0, "%s", err.text);
	cr_expect_str_eq(p.token, "abcd");
	cr_expect_str_eq(p.record, "{}");
	cr_expect_str_eq(p.node, "n1");
	cr_expect_str_eq(p.uid, "u-1");
	cr_expect(p.leaving);
	cr_expect_eq(p.phase, POD_RUNNING);
	cr_expect_eq(p.start_us, 1000000);
	cr_expect_eq(p.gpus_milli, 2000);
	cr_expect_eq(p.cpu_milli, 1500);
	cr_expect_eq(p.memory_bytes, 1610612736);
	cr_assert_eq(p.n_devices, 2);
	cr_expect_eq(p.devices[0], 0);
	cr_expect_eq(p.devices[1], 3);
}

/* Attribute a pod: another gpuqd's token must not be taken for this one's. */
static const struct {
	const char *what, *name, *labels, *notes, *token;
} owners[] = {
	{ "by label", "x", "\"gpuq.io/cluster\":\"" ID "\"", "\"gpuq.io/token\":\"t\"", "t" },
	{ "the label is gone", "gpuq-" ID "-1-0-0", "", "\"gpuq.io/token\":\"t\"", "t" },
	{ "another gpuqd's", "gpuq-ffffffff-1-0-0", "\"gpuq.io/cluster\":\"ffffffff\"",
	  "\"gpuq.io/token\":\"t\"", "" },
	{ "no token", "gpuq-" ID "-1-0-0", "\"gpuq.io/cluster\":\"" ID "\"", "", "" },
	{ "a longer id", "gpuq-" ID "9-1-0-0", "", "\"gpuq.io/token\":\"t\"", "" },
};

Test(kube_decode, tells_ours_from_others)
{
	for (size_t i = 0; i < N(owners); i++) {
		struct pod_fact p;
		char json[512];

		snprintf(json, sizeof(json),
			 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"labels\":{%s},"
			 "\"annotations\":{%s}}}",
			 owners[i].name, owners[i].labels, owners[i].notes);
		cr_assert_eq(pod(json, &p, NULL), 0, "%s", owners[i].what);
		cr_expect_str_eq(p.token, owners[i].token, "%s", owners[i].what);
	}
}

static const struct {
	const char *what, *json;
	int64_t cpu, memory, gpus;
} requests[] = {
	{ "nothing asked", "{}", 0, 0, 0 },
	{ "containers add up",
	  "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\",\"memory\":"
	  "\"1Gi\"}}},"
	  "{\"resources\":{\"requests\":{\"cpu\":\"500m\"}}}]}}",
	  1500, 1073741824, 0 },
	{ "an init container asks for more",
	  "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\"}}}],"
	  "\"initContainers\":[{\"resources\":{\"requests\":{\"cpu\":\"3\",\"memory\":\"5\"}}}]}}",
	  3000, 5, 0 },
	{ "sidecars stay, init containers come one by one",
	  "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"2\"}}}],"
	  "\"initContainers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\"}}},"
	  "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}},"
	  "{\"resources\":{\"requests\":{\"cpu\":\"3\"}}}]}}",
	  4000, 0, 0 }, /* max(2 + 1, max(1, 1, 1 + 3)) */
	{ "the pod as a whole wins over its containers",
	  "{\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"7\"}},\"containers\":[{\"resources\":"
	  "{\"requests\":{\"cpu\":\"9\",\"memory\":\"4\"},\"limits\":{\"nvidia.com/gpu\":2}}}]}}",
	  7000, 4, 2 },
	{ "overhead comes on top",
	  "{\"spec\":{\"overhead\":{\"cpu\":\"10m\",\"memory\":\"1Ki\"},\"containers\":[{"
	  "\"resources\":"
	  "{\"requests\":{\"cpu\":\"1\"}}}]}}",
	  1010, 1024, 0 },
	{ "being resized: the larger one",
	  "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}"
	  "]},"
	  "\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"allocatedResources\":{\"cpu\":"
	  "\"4\"}}]}}",
	  4000, 0, 0 },
	{ "a resize that can never be",
	  "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"90\"}}"
	  "}]},"
	  "\"status\":{\"conditions\":[{\"type\":\"PodResizePending\",\"reason\":\"Infeasible\"}],"
	  "\"containerStatuses\":[{\"name\":\"c\",\"allocatedResources\":{\"cpu\":\"4\"}}]}}",
	  4000, 0, 0 },
	{ "negative or nonsense counts as nothing",
	  "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"-4\",\"memory\":"
	  "\"lots\","
	  "\"nvidia.com/gpu\":-1}}}]}}",
	  0, 0, 0 },
	{ "too large to add up",
	  "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"memory\":"
	  "\"9223372036854775807\"}}},"
	  "{\"resources\":{\"requests\":{\"memory\":\"5\"}}}]}}",
	  0, INT64_MAX, 0 },
};

Test(kube_decode, adds_up_what_a_pod_asks)
{
	for (size_t i = 0; i < N(requests); i++) {
		json_t *v = json_loads(requests[i].json, 0, NULL);
		struct kube_amount a;

		cr_assert_not_null(v, "%s", requests[i].what);
		a = kube_pod_request(v);
		cr_expect_eq(a.cpu_milli, requests[i].cpu, "%s: cpu %ld", requests[i].what,
			     (long)a.cpu_milli);
		cr_expect_eq(a.memory_bytes, requests[i].memory, "%s: memory %ld", requests[i].what,
			     (long)a.memory_bytes);
		cr_expect_eq(a.gpus, requests[i].gpus, "%s: gpus %ld", requests[i].what,
			     (long)a.gpus);
		json_decref(v);
	}
}

Test(kube_decode, sees_what_cannot_start)
{
	struct pod_fact p;

	cr_assert_eq(
		pod("{" META ",\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":"
		    "{\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"no such\"}}}]}}",
		    &p, NULL),
		0);
	cr_expect(p.waiting_bad);
	cr_expect_str_eq(p.reason, "ImagePullBackOff");
	cr_expect_str_eq(p.message, "no such");
	cr_expect_str_eq(p.trouble, "ImagePullBackOff");
	cr_expect_eq(p.whose, TROUBLE_USERS);
	cr_assert_eq(pod("{" META
			 ",\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":"
			 "{\"waiting\":{\"reason\":\"CreateContainerConfigError\",\"message\":"
			 "\"couldn't find key k in Secret ml/tokens\"}}}]}}",
			 &p, NULL),
		     0);
	cr_expect_str_eq(p.trouble, "secret/tokens");
	cr_expect_eq(p.whose, TROUBLE_OPERATORS);
	cr_assert_eq(pod("{" META
			 ",\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":"
			 "{\"waiting\":{\"reason\":\"ContainerCreating\"}}}]}}",
			 &p, NULL),
		     0);
	cr_expect_not(p.waiting_bad);
	cr_expect_null(p.trouble);
}

Test(kube_decode, reads_devices_back)
{
	static const struct {
		const char *notes;
		size_t n;
		int first;
	} rows[] = {
		{ "\"tencent.com/predicate-gpu-idx-0\":\"5\",\"tencent.com/"
		  "predicate-gpu-idx-1\":\"2\","
		  "\"gpuq.io/devices\":\"0\"",
		  2, 2 },
		{ "\"ALIYUN_COM_GPU_MEM_IDX\":\"1\",\"gpuq.io/devices\":\"0\"", 1, 1 },
		{ "\"gpuq.io/devices\":\"7,7\"", 1, 7 },
		{ "\"gpuq.io/devices\":\"\"", 0, 0 },
		{ "\"gpuq.io/devices\":\"1,x\"", 0, 0 },
		{ "\"gpuq.io/devices\":\"-1\"", 0, 0 },
		{ "\"ALIYUN_COM_GPU_MEM_IDX\":\"99999999999\"", 0, 0 },
	};

	for (size_t i = 0; i < N(rows); i++) {
		struct pod_fact p;
		char json[512];

		snprintf(json, sizeof(json),
			 "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"annotations\":{%s}}}",
			 rows[i].notes);
		cr_assert_eq(pod(json, &p, NULL), 0, "%s", rows[i].notes);
		cr_assert_eq(p.n_devices, rows[i].n, "%s: %zu", rows[i].notes, p.n_devices);
		cr_expect(p.n_devices == 0 || p.devices[0] == rows[i].first, "%s", rows[i].notes);
	}
}

Test(kube_decode, reads_a_node)
{
	static const char json[] =
		"{\"metadata\":{\"name\":\"n1\",\"labels\":{\"nvidia.com/"
		"gpu.product\":\"NVIDIA-A100\","
		"\"nvidia.com/"
		"gpu.memory\":\"81920\",\"zone\":\"z\"}},\"spec\":{\"unschedulable\":true,"
		"\"taints\":[{\"key\":\"k\",\"effect\":\"NoExecute\"}]},\"status\":{"
		"\"allocatable\":{\"cpu\":\"96\","
		"\"memory\":\"1Ti\",\"pods\":\"110\",\"nvidia.com/"
		"gpu\":\"7\"},\"capacity\":{\"nvidia.com/gpu\":\"8\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":"
		"\"DiskPressure\",\"status\":\"False\"}]}}";
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct node_fact n;

	cr_assert_eq(node(json, &n, &err), 0, "%s", err.text);
	cr_expect_eq(n.cpu_milli, 96000);
	cr_expect_eq(n.memory_bytes, INT64_C(1) << 40);
	cr_expect_eq(n.max_pods, 110);
	cr_assert_eq(n.labels.n, 4, "its own, and how it hands out devices");
	cr_expect_str_eq(n.labels.keys[3], "gpuq.io/sharing");
	cr_expect_str_eq(n.labels.vals[3], "whole");
	cr_expect(n.ready);
	cr_expect(n.unschedulable);
	cr_assert_eq(n.n_taints, 1);
	cr_expect_str_eq(n.taints[0].value, "");
	cr_assert_eq(n.n_devices, 8);
	cr_expect_str_eq(n.devices[0].product, "NVIDIA-A100");
	cr_expect_eq(n.devices[0].memory_mib, 81920);
	cr_expect(n.devices[6].healthy);
	cr_expect_not(n.devices[7].healthy);
}

Test(kube_decode, tells_why_a_node_is_not_ready)
{
	static const struct {
		const char *json, *note;
		bool ready;
	} rows[] = {
		{ "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\","
		  "\"message\":\"Kubelet "
		  "stopped posting\"}]}",
		  "Ready=Unknown: Kubelet stopped posting", false },
		{ "\"status\":{\"conditions\":[{\"type\":\"PIDPressure\",\"status\":\"True\","
		  "\"reason\":\"R\"},"
		  "{\"type\":\"Ready\",\"status\":\"True\"}]}",
		  "PIDPressure=True: R", false },
		{ "\"status\":{}", "the node has not reported that it is ready", false },
		{ "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}", "",
		  true },
	};

	for (size_t i = 0; i < N(rows); i++) {
		struct node_fact n;
		char json[512];

		snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"n\"},%s}", rows[i].json);
		cr_assert_eq(node(json, &n, NULL), 0, "%s", rows[i].json);
		cr_expect_eq(n.ready, rows[i].ready, "%s", rows[i].json);
		cr_expect_str_eq(n.note, rows[i].note);
	}
}

/* A hostile annotation must hide neither a pod nor the devices it holds. */
Test(kube_decode, a_nul_in_a_string_does_not_hide_a_pod)
{
	struct pod_fact p;

	cr_assert_eq(pod("{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"annotations\":{\"a\":"
			 "\"b\\u0000c\"}},"
			 "\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/"
			 "gpu\":\"4\"}}}]}}",
			 &p, NULL),
		     0);
	cr_expect_eq(p.gpus_milli, 4000);
}

Test(kube_decode, refuses)
{
	static const char *const rows[] = { "",
					    "[]",
					    "{",
					    "{}",
					    "{\"metadata\":{\"name\":7}}",
					    "{\"metadata\":{\"name\":\"p\"}}",
					    "{\"a\":1e999}",
					    "{\"metadata\":[],\"a\":\"\xff\"}" };

	for (size_t i = 0; i < N(rows); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct pod_fact p = { .name = "untouched" };

		cr_expect_eq(pod(rows[i], &p, &err), GPUQ_EINVAL, "%s", rows[i]);
		cr_expect_str_eq(p.name, "untouched");
		cr_expect_neq(*err.text, '\0', "%s", rows[i]);
	}
}

Test(kube_decode, reads_events)
{
	static const char gone[] =
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}";
	static const char mark[] =
		"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}";
	static const char other[] = "{\"type\":\"NEW\",\"object\":{}}";

	cr_assert_eq(kube_parse_event(gone, sizeof(gone) - 1, &object, NULL), 0);
	cr_expect_eq(object.event, KUBE_ERROR);
	cr_expect_str_eq(object.version, "");
	kube_object_done(&object);
	cr_assert_eq(kube_parse_event(mark, sizeof(mark) - 1, &object, NULL), 0);
	cr_expect_eq(object.event, KUBE_BOOKMARK);
	cr_expect_str_eq(object.version, "9");
	kube_object_done(&object);
	cr_expect_eq(kube_parse_event(other, sizeof(other) - 1, &object, NULL), GPUQ_EINVAL);
}

Test(node, instances_of_mig_profiles)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct node_fact n;
	struct pod_fact p;

	cr_assert_eq(node("{\"metadata\":{\"name\":\"m\"},\"status\":{\"allocatable\":{"
			  "\"nvidia.com/gpu\":\"2\",\"nvidia.com/mig-1g.10gb\":\"14\","
			  "\"nvidia.com/mig-3g.40gb\":\"0\",\"nvidia.com/mig-1g.10gb.me\":2}}}",
			  &n, &err),
		     0);
	cr_assert_eq(n.n_devices, 2);
	cr_assert_eq(n.n_mig, 2, "a profile without instances is none");
	for (size_t i = 0; i < n.n_mig; i++)
		cr_expect_eq(n.mig[i].count, strcmp(n.mig[i].profile, "1g.10gb") == 0 ? 14 : 2);
	cr_assert_eq(pod("{" META ",\"spec\":{\"containers\":["
			 "{\"resources\":{\"limits\":{\"nvidia.com/mig-1g.10gb\":\"1\"}}},"
			 "{\"resources\":{\"limits\":{\"nvidia.com/mig-1g.10gb\":\"2\"}}}]}}",
			 &p, &err),
		     0);
	cr_assert_eq(p.n_mig, 1);
	cr_expect_eq(p.mig[0].count, 3);
	cr_expect_eq(p.gpus_milli, 0);
}

Test(kube_decode, names_the_claims_of_a_pod_of_ours_without_a_node)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_fact p;

	cr_assert_eq(
		pod("{\"metadata\":{\"name\":\"gpuq-" ID "-1-0-0\",\"namespace\":\"n\",\"labels\":"
		    "{\"gpuq.io/cluster\":\"" ID "\"},\"annotations\":{\"gpuq.io/token\":\"t\","
		    "\"gpuq.io/claims\":\"data,scratch\"}},\"spec\":{}}",
		    &p, &err),
		0, "%s", err.text);
	cr_assert_eq(p.claims.n, 2);
	cr_expect_str_eq(p.claims.items[0], "data");
	cr_expect_str_eq(p.claims.items[1], "scratch");
}

/* A node with these labels, and these resources as capacity and as allocatable. */
static int node_of(const char *labels, const char *resources, struct node_fact *n)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char json[1200];

	snprintf(json, sizeof(json),
		 "{\"metadata\":{\"name\":\"n1\",\"labels\":{%s}},\"spec\":{},\"status\":{"
		 "\"allocatable\":{%s},\"capacity\":{%s}}}",
		 labels, resources, resources);
	return node(json, n, &err);
}

Test(kube_decode, counts_every_resource_of_a_node_but_words_of_dialects)
{
	struct node_fact n;

	cr_assert_eq(node_of("",
			     "\"cpu\":\"8\",\"rdma/hca\":\"2\",\"hugepages-2Mi\":\"1Gi\","
			     "\"ephemeral-storage\":\"10Gi\",\"nvidia.com/gpumem\":\"80\","
			     "\"nvidia.com/mig-1g.5gb\":\"1\"",
			     &n),
		     0);
	cr_assert_eq(n.n_resources, 3);
	cr_expect_str_eq(n.resources[0].name, "ephemeral-storage");
	cr_expect_eq(n.resources[0].count, INT64_C(10) << 30);
	cr_expect_str_eq(n.resources[1].name, "hugepages-2Mi");
	cr_expect_str_eq(n.resources[2].name, "rdma/hca");
	cr_expect_eq(n.resources[2].count, 2);
}

Test(kube_decode, one_card_is_one_device)
{
	struct node_fact n;

	cr_assert_eq(node_of("\"nvidia.com/gpu.replicas\":\"10\","
			     "\"nvidia.com/gpu.product\":\"NVIDIA-A100-SHARED\","
			     "\"nvidia.com/gpu.sharing-strategy\":\"time-slicing\"",
			     "\"nvidia.com/gpu\":\"80\"", &n),
		     0);
	cr_expect_eq(n.n_devices, 8);
	cr_expect_eq(n.replicas, 10);
	cr_expect_str_eq(n.devices[0].product, "NVIDIA-A100");
	cr_assert_eq(node_of("\"nvidia.com/gpu.replicas\":\"4\",\"nvidia.com/gpu.count\":\"3\"",
			     "\"nvidia.com/gpu.shared\":\"16\"", &n),
		     0);
	cr_expect_eq(n.n_devices, 3, "the smaller number counts");
	cr_expect_str_eq(n.device, "nvidia.com/gpu.shared");
	cr_assert_eq(node_of("\"nvidia.com/mig.strategy\":\"single\",\"nvidia.com/gpu.product\":"
			     "\"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb\"",
			     "\"nvidia.com/gpu\":\"56\"", &n),
		     0);
	cr_expect_eq(n.n_devices, 0);
	cr_assert_eq(n.n_mig, 1);
	cr_expect_str_eq(n.mig[0].profile, "1g.5gb");
	cr_expect_eq(n.mig[0].count, 56);
	/* Replicas of instances, renamed, not renamed, and in a number that no label tells. */
	cr_assert_eq(node_of("\"nvidia.com/mig-1g.5gb.replicas\":\"4\","
			     "\"nvidia.com/mig-2g.10gb.replicas\":\"2\","
			     "\"nvidia.com/mig-3g.20gb.replicas\":\"1\"",
			     "\"nvidia.com/mig-1g.5gb.shared\":\"28\",\"nvidia.com/mig-2g.10gb\":"
			     "\"4\",\"nvidia.com/mig-3g.20gb\":\"1\",\"nvidia.com/"
			     "mig-4g.20gb.shared\":\"2\"",
			     &n),
		     0);
	cr_assert_eq(n.n_mig, 4);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(n.mig[i].count, strcmp(n.mig[i].profile, "1g.5gb.shared/4") == 0 ? 28
					     : strcmp(n.mig[i].profile, "2g.10gb.shared:2") == 0 ? 4
					     : strcmp(n.mig[i].profile, "3g.20gb") == 0          ? 1
											: 0);
	cr_assert_eq(node_of("", "\"google.com/tpu\":\"4\"", &n), 0);
	cr_expect_eq(n.n_devices, 4);
	cr_expect_str_eq(n.devices[0].product, "google.com/tpu");
}

/* Amounts of plugins that share devices which stand for no devices: the node is left alone and says why. */
static const struct {
	const char *resources, *note; /* NULL = they are used */
} shared_offers[] = {
	{ "\"aliyun.com/gpu-mem\":\"30\",\"aliyun.com/gpu-count\":\"2\"", NULL },
	{ "\"aliyun.com/gpu-mem\":\"30\"", NULL },
	{ "\"aliyun.com/gpu-mem\":\"30\",\"aliyun.com/gpu-count\":\"5000000\"",
	  "aliyun.com/gpu-mem: 30 units on 5000000 devices are not credible" },
	{ "\"aliyun.com/gpu-mem\":\"30\",\"aliyun.com/gpu-count\":\"0\"",
	  "aliyun.com/gpu-count: aliyun.com/gpu-mem is offered, and of 0 devices" },
	{ "\"aliyun.com/gpu-mem\":\"9223372036854775807\",\"aliyun.com/gpu-count\":\"1\"",
	  "aliyun.com/gpu-mem: 9223372036854775807 is not credible" },
	{ "\"aliyun.com/gpu-mem\":\"9223372036854775\"",
	  "aliyun.com/gpu-mem: 9223372036854775 units on 1 devices are not credible" },
	{ "\"tencent.com/vcuda-core\":\"200\",\"tencent.com/vcuda-memory\":\"80\"", NULL },
	{ "\"tencent.com/vcuda-core\":\"0\",\"tencent.com/vcuda-memory\":\"0\"", NULL },
	{ "\"tencent.com/vcuda-core\":\"50\",\"tencent.com/vcuda-memory\":\"80\"",
	  "tencent.com/vcuda-core: 50: expected 100 of each device" },
	{ "\"tencent.com/vcuda-core\":\"250\",\"tencent.com/vcuda-memory\":\"80\"",
	  "tencent.com/vcuda-core: 250: expected 100 of each device" },
	{ "\"tencent.com/vcuda-core\":\"100000000000\",\"tencent.com/vcuda-memory\":\"80\"",
	  "tencent.com/vcuda-memory: 80 blocks on 1000000000 devices are not credible" },
	{ "\"tencent.com/vcuda-core\":\"100\",\"tencent.com/vcuda-memory\":\"99999999900\"",
	  "tencent.com/vcuda-memory: 99999999900 blocks on 1 devices are not credible" },
};

Test(kube_decode, amounts_of_shared_devices_that_cannot_be_true)
{
	for (size_t i = 0; i < N(shared_offers); i++) {
		const char *resources = shared_offers[i].resources, *note = shared_offers[i].note;
		struct node_fact n;

		cr_assert_eq(node_of("", resources, &n), 0);
		cr_expect_str_eq(n.note, note ? note : "the node has not reported that it is ready",
				 "%s", resources);
		if (note)
			cr_expect(n.n_devices == 0 && !n.ready, "%s", resources);
	}
}

Test(kube_decode, counts_the_resources_of_a_pod_and_its_devices_of_any_name)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_fact p;

	cr_assert_eq(pod("{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"spec\":{"
			 "\"nodeName\":\"n1\","
			 "\"containers\":[{\"resources\":{\"limits\":{\"amd.com/gpu\":\"2\",\"rdma/"
			 "hca\":"
			 "\"1\"}}},{\"resources\":{\"requests\":{\"rdma/"
			 "hca\":\"1\"}}}],\"initContainers\":["
			 "{\"resources\":{\"limits\":{\"rdma/hca\":\"3\"}}}]}}",
			 &p, &err),
		     0, "%s", err.text);
	cr_expect_eq(p.gpus_milli, 2000);
	cr_assert_eq(p.n_resources, 2);
	cr_expect_str_eq(p.resources[1].name, "rdma/hca");
	cr_expect_eq(p.resources[1].count, 3);
}

Test(kube_decode, reads_which_resource_a_kubelet_lacks)
{
	static const char *const refusals[][2] = {
		{ "UnexpectedAdmissionError",
		  "Allocate failed due to requested number of devices unavailable for rdma/hca. "
		  "Requested: 1, Available: 0, which is unexpected" },
		{ "OutOfcpu",
		  "Node didn't have enough resource: cpu, requested: 4000, used: 7000, capacity: "
		  "8000" },
		{ "NodeShutdown", "Pod was rejected as the node is shutting down." },
	};
	static const char *const lacks[] = { "rdma/hca", "cpu", NULL };
	static const int64_t have[] = { 0, 1000, 0 };

	for (size_t i = 0; i < 3; i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct pod_fact p;
		char json[600];

		snprintf(json, sizeof(json),
			 "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"spec\":{},"
			 "\"status\":{"
			 "\"phase\":\"Failed\",\"reason\":\"%s\",\"message\":\"%s\"}}",
			 refusals[i][0], refusals[i][1]);
		cr_assert_eq(pod(json, &p, &err), 0, "%s", err.text);
		cr_expect_eq(p.fault, POD_FAULT_REJECTED);
		cr_expect_str_eq(p.short_of ? p.short_of : "", lacks[i] ? lacks[i] : "");
		cr_expect_eq(p.short_have, have[i]);
	}
}

#define CARD(id, more)                                                                             \
	"{\\\"id\\\":\\\"" id                                                                      \
	"\\\",\\\"count\\\":10,\\\"devmem\\\":15360,\\\"type\\\":\\\"NVIDIA-NVIDIA T4\\\"" more    \
	"}"
#define HEALTHY ",\\\"health\\\":true,\\\"numa\\\":1"

/* The register of HAMi's plugin, in both of its encodings, and texts that are none. */
static const struct {
	const char *text;
	size_t n; /* cards */
	bool healthy; /* the last of them */
	const char *note; /* why the node is not ready; NULL = it is */
} registers[] = {
	{ "[" CARD("GPU-a", HEALTHY) "," CARD("GPU-b", HEALTHY) "]", 2, true, NULL },
	{ "[" CARD("GPU-a", "") "]", 1, false, NULL },
	{ "[" CARD("GPU-a", ",\\\"x\\\":\\\"\\u00e9\\\"" HEALTHY) "]", 1, true, NULL },
	{ "[" CARD("GPU-a", ",\\\"x\\\":\\\"\\\\\\\"]\\\"" HEALTHY) "]", 1, true, NULL },
	{ "GPU-a,10,15360,100,NVIDIA-NVIDIA T4,1,true:", 1, true, NULL },
	{ "GPU-a,10,15360,100,T4,0,true,0,hami-core:GPU-b,8,15360,100,T4,0,false,1,mig:", 2, false,
	  NULL },
	{ "", 0, false, "names none" },
	{ "[]", 0, false, "names none" },
	{ "[1]", 0, false, "a JSON array of objects" },
	{ "[" CARD("GPU-a", HEALTHY), 0, false, "a JSON array of objects" },
	{ "[" CARD("GPU-a", ",\\\"mig\\\": [{\\\"x\\\": [1, \\\"]}\\\"]}], \\\"health\\\" "
			    ": true ") " , " CARD("GPU-b", HEALTHY) " ] ",
	  2, true, NULL },
	{ "[" CARD("GPU-a", HEALTHY) "]x", 0, false, "a JSON array of objects" },
	{ "[" CARD("GPU-a", ",\\\"open") "]", 0, false, "a JSON array of objects" },
	{ "[{}]", 0, false, "expected a UUID" },
	{ "[" CARD("GPU-a", ",\\\"y\\\":[{") "]", 0, false, "a JSON array of objects" },
	{ "[" CARD("", HEALTHY) "]", 0, false, "expected a UUID" },
	{ "[" CARD("a,b", HEALTHY) "]", 0, false, "expected a UUID" },
	{ "[" CARD("a", HEALTHY) "," CARD("a", HEALTHY) "]", 0, false, "each UUID once" },
	{ "GPU-a,0,15360,100,T4,0,true:", 0, false, "split count" },
	{ "GPU-a,10,-5,100,T4,0,true:", 0, false, "memory of each card" },
	{ "GPU-a,10,99999999999999999999,100,T4,0,true:", 0, false, "memory of each card" },
	{ "GPU-a,10,15360,100,T4,0:", 0, false, "7 or 9 fields" },
	{ "GPU-a,10,15360,100,T4,0,true,1:", 0, false, "7 or 9 fields" },
	{ "GPU-a,10,15360,100,T4,0,true,1,m,x:", 0, false, "7 or 9 fields" },
	{ "GPU-a,10,15360,100,T4,0,true", 0, false, "a colon behind each card" },
};

static void register_node(const char *text, struct node_fact *out)
{
	struct gpuq_buf json = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_buf_printf(
		&json,
		"{\"metadata\":{\"name\":\"h\",\"annotations\":{\"hami.io/node-nvidia-register\":"
		"\"%s\"}},\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"20\"},\"allocatable\":{"
		"\"nvidia.com/"
		"gpu\":\"20\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		text);
	cr_assert_eq(node(gpuq_buf_str(&json), out, &err), 0, "%s", err.text);
	gpuq_buf_done(&json);
}

Test(kube_node, register_of_hami)
{
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		const char *text = registers[i].text;
		struct node_fact n;

		register_node(text, &n);
		cr_expect_eq(n.ready, registers[i].note == NULL, "%s", text);
		cr_expect(!registers[i].note || strstr(n.note, registers[i].note), "%s: %s", text,
			  n.note);
		cr_assert_eq(n.n_devices, registers[i].n, "%s: %zu", text, n.n_devices);
		if (n.n_devices)
			cr_expect_eq(n.devices[n.n_devices - 1].healthy, registers[i].healthy, "%s",
				     text);
		if (n.n_devices == 1) {
			cr_expect_str_eq(n.devices[0].product, "NVIDIA-T4");
			cr_expect_eq(n.devices[0].memory_mib, 15360);
			cr_expect_eq(n.slots, 10);
		}
	}
	kube_object_done(&object);
}

Test(kube_node, products_of_hami_are_those_of_feature_discovery)
{
	static const char *const names[][2] = {
		{ "NVIDIA-NVIDIA A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB" },
		{ "NVIDIA A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB" },
		{ "NVIDIA-Tesla T4", "Tesla-T4" },
		{ "Tesla T4", "Tesla-T4" }
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char text[200];
		struct node_fact n;

		snprintf(text, sizeof(text), "GPU-a,10,15360,100,%s,0,true:", names[i][0]);
		register_node(text, &n);
		cr_assert_eq(n.n_devices, 1);
		cr_expect_str_eq(n.devices[0].product, names[i][1]);
	}
	kube_object_done(&object);
}

Test(kube_node, a_register_of_a_million_cards_is_refused)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct node_fact n;

	for (int i = 0; i < 1000000; i++)
		gpuq_buf_printf(&text, "GPU-%d,1,1,1,T,0,true:", i);
	register_node(gpuq_buf_str(&text), &n);
	cr_expect_not(n.ready);
	cr_expect_eq(n.n_devices, 0);
	cr_expect(strstr(n.note, "256 KiB"), "%s", n.note);
	kube_object_done(&object);
	gpuq_buf_done(&text);
}

/* Pods that request devices by labels and annotations alone: text = metadata, and what the pod holds. */
static const struct {
	const char *text;
	int64_t gpus_milli, bytes;
	const char *uuid; /* the first; NULL = not known */
	int device; /* its index; -1 = not known */
} others[] = {
	/* AC-KSH-1, AC-KSH-2: KubeShare's parts and whole devices. */
	{ "\"labels\":{\"sharedgpu/gpu_request\":\"0.5\",\"sharedgpu/"
	  "gpu_limit\":\"1.0\"},\"annotations\":{"
	  "\"sharedgpu/gpu_uuid\":\"GPU-a\",\"sharedgpu/gpu_mem\":\"1073741824\"}",
	  500, INT64_C(1) << 30, "GPU-a", -1 },
	{ "\"labels\":{\"sharedgpu/gpu_request\":\"2.0\",\"sharedgpu/"
	  "gpu_limit\":\"2.0\"},\"annotations\":{"
	  "\"sharedgpu/gpu_uuid\":\"GPU-a,GPU-b\"}",
	  2000, 0, "GPU-a", -1 },
	{ "\"labels\":{\"sharedgpu/gpu_request\":\"0\"}", 1, 0, NULL, -1 },
	{ "\"labels\":{\"sharedgpu/gpu_request\":\"lots\"}", 0, 0, NULL, -1 },
	{ "\"labels\":{\"sharedgpu/gpu_request\":\"99999999999\"}", 0, 0, NULL, -1 },
	{ "\"annotations\":{\"run.ai/reserve_for_gpu_index\":\"3\"}", 0, 0, NULL, 3 },
	{ "\"annotations\":{\"run.ai/reserve_for_gpu_index\":\"GPU-c\"}", 0, 0, "GPU-c", -1 },
	{ "\"annotations\":{\"gpu-fraction\":\"0.5\"}", 0, 0, NULL, -1 },
	{ "\"labels\":{\"runai-gpu-group\":\"g\"},\"annotations\":{\"gpu-fraction\":\"0.5\"}", 500,
	  0, "g", -1 },
	{ "\"labels\":{\"runai-gpu-group/g\":\"g\",\"runai-gpu-group/h\":\"h\"},\"annotations\":{"
	  "\"gpu-fraction\":\"0.5\",\"gpu-fraction-num-devices\":\"2\"}",
	  1000, 0, "g", -1 },
	{ "\"labels\":{\"runai-gpu-group\":\"g\"},\"annotations\":{\"gpu-memory\":\"1024\"}", 1,
	  INT64_C(1) << 30, "g", -1 },
	{ "\"labels\":{\"runai-gpu-group\":\"g\"},\"annotations\":{\"gpu-memory\":\"1e99\","
	  "\"gpu-fraction\":\"many\"}",
	  1, 0, "g", -1 },
	{ "\"labels\":{\"runai-gpu-group\":\"g\"}", 0, 0, NULL, -1 },
	/* A pod of gpuqd's own: its owner's words count for nothing. */
	{ "\"labels\":{\"sharedgpu/gpu_request\":\"0.5\",\"gpuq.io/cluster\":\"" ID
	  "\"},\"annotations\":{"
	  "\"gpuq.io/token\":\"t\",\"run.ai/reserve_for_gpu_index\":\"3\"}",
	  0, 0, NULL, -1 },
};

Test(kube_pod, pods_of_systems_that_are_not_served)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct pod_fact p;
		char text[800];

		snprintf(text, sizeof(text),
			 "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\",%s},"
			 "\"spec\":{"
			 "\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\"}]}}",
			 others[i].text);
		cr_assert_eq(pod(text, &p, &err), 0, "%s", err.text);
		cr_expect_eq(p.gpus_milli, others[i].gpus_milli, "%s: %" PRId64, others[i].text,
			     p.gpus_milli);
		cr_expect_eq(p.device_bytes, others[i].bytes, "%s", others[i].text);
		cr_expect_str_eq(p.uuids.n ? p.uuids.items[0] : "",
				 others[i].uuid ? others[i].uuid : "", "%s", others[i].text);
		cr_expect_eq(p.n_devices ? p.devices[0] : -1, others[i].device, "%s",
			     others[i].text);
	}
}

Test(kube_dra, of_two_words_with_one_name_the_first_counts)
{
	static const char slice[] =
		"{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.x\",\"nodeName\":\"n\","
		"\"pool\":{"
		"\"name\":\"n\",\"generation\":1,\"resourceSliceCount\":1},\"devices\":["
		"{\"name\":\"a\",\"attributes\":{\"kind\":{\"string\":\"1\"},\"gpu.x/"
		"kind\":{\"string\":\"2\"}}},"
		"{\"name\":\"b\",\"attributes\":{\"gpu.x/"
		"kind\":{\"string\":\"3\"},\"kind\":{\"string\":\"4\"}}},"
		"{\"name\":\"c\",\"attributes\":{\"gpu.x/kind\":{\"string\":\"5\"},\"gpu.y/"
		"kind\":{\"string\":"
		"\"6\"}}}]}}";
	static const char *const texts[] = { "1", "3", "5" };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct dra_device *d;
	struct object_fact f;

	kube_object_done(&object);
	cr_assert_eq(kube_parse_item(slice, strlen(slice), &object, &err), 0, "%s", err.text);
	cr_assert_eq(kube_read_dra(&object, OBJECT_SLICE, ID, &f, &err), 0, "%s", err.text);
	d = f.dra.slice->devices;
	for (size_t i = 0; i < N(texts); i++) {
		cr_expect_eq(d[i].n_words, i == 2 ? 2 : 1, "%s", d[i].name);
		cr_expect_str_eq(d[i].words[0].name, "gpu.x/kind");
		cr_expect_str_eq(d[i].words[0].text, texts[i]);
	}
	cr_expect_str_eq(d[2].words[1].name, "gpu.y/kind");
}

/* ---- JSON that is read without the library ---- */

static const struct {
	const char *name, *json;
	bool plain; /* false: the library has to read it, or refuse it */
} plain_cases[] = {
	{ "nothing in it", "{}", true },
	{ "spaces", " {\n\t\"a\" : [ ] , \"b\":{ } }\r\n", true },
	{ "words", "{\"a\":[true,false,null]}", true },
	{ "integers", "{\"a\":[0,-0,-1,7,999999999999999999,-999999999999999999]}", true },
	{ "a key twice", "{\"a\":1,\"b\":2,\"a\":{\"c\":3}}", true },
	{ "escapes of a value",
	  "{\"a\":\"x\\\"y\\\\\\\\\\n\\u00e9\\ud83d\\ude00\\u0000z\",\"b\":\"\\\\\"}", true },
	{ "other characters of a value", "{\"a\":\"\xc3\xa9\x7f\",\"b\":1}", true },
	{ "an empty key", "{\"\":\"\"}", true },
	{ "an escape in a key", "{\"a\\n\":1}", false },
	{ "other characters in a key", "{\"\xc3\xa9\":1}", false },
	{ "a fraction", "{\"a\":1.5}", false },
	{ "an exponent", "{\"a\":1e3}", false },
	{ "an integer of 19 digits", "{\"a\":9223372036854775807}", false },
	{ "an integer beyond", "{\"a\":92233720368547758070}", false },
	{ "a zero before digits", "{\"a\":01}", false },
	{ "a minus alone", "{\"a\":-}", false },
	{ "a minus apart", "{\"a\":- 1}", false },
	{ "a plus", "{\"a\":+1}", false },
	{ "a comma too many", "{\"a\":1,}", false },
	{ "one in a list", "{\"a\":[1,]}", false },
	{ "no comma", "{\"a\":1 \"b\":2}", false },
	{ "no colon", "{\"a\" 1}", false },
	{ "no value", "{\"a\":}", false },
	{ "a word cut short", "{\"a\":tru}", false },
	{ "cut short in a string", "{\"a\":\"b", false },
	{ "cut short behind a backslash", "{\"a\":\"b\\", false },
	{ "cut short in a list", "{\"a\":[1", false },
	{ "cut short", "{\"a\":1", false },
	{ "brackets that differ", "{\"a\":[1}", false },
	{ "something behind it", "{} {}", false },
	{ "no object", "[1]", false },
	{ "nothing", "", false },
	{ "a control character", "{\"a\":\"\x01\"}", false },
	{ "no UTF-8", "{\"a\":\"\xc3(\"}", false },
	{ "half a surrogate", "{\"a\":\"\\ud83d\"}", false },
	{ "an escape that there is not", "{\"a\":\"\\x\"}", false },
};

Test(kube_decode, plain_is_as_the_library_has_it)
{
	for (size_t i = 0; i < N(plain_cases); i++) {
		const char *const json = plain_cases[i].json;
		const size_t n = strlen(json);
		char *copy =
			malloc(n ? n : 1); /* of its very size, so that a look beyond is seen */
		json_t *got, *want = json_loadb(json, n, JSON_ALLOW_NUL, NULL);

		memcpy(copy, json, n);
		got = kube_plain(copy, n);
		free(copy);
		cr_expect(!!got == plain_cases[i].plain, "%s", plain_cases[i].name);
		if (got) {
			char *a = json_dumps(got, 0), *b = json_dumps(want, 0);

			cr_expect(json_equal(got, want), "%s", plain_cases[i].name);
			cr_expect_str_eq(a, b, "%s", plain_cases[i].name);
			free(a);
			free(b);
		}
		json_decref(got);
		json_decref(want);
	}
}

Test(kube_decode, what_is_nested_deeply_is_not_plain)
{
	char text[512] = "{\"a\":";
	size_t n = strlen(text);

	memset(text + n, '[', 150);
	memset(text + n + 150, ']', 150);
	text[n + 300] = '}';
	cr_expect_null(kube_plain(text, n + 301));
}
