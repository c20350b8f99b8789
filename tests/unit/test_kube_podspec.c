#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/pods/podspec.h"
#include "gpuqd/cluster/kube/pods/policy.h"
#include "gpuqd/cluster/kube/pods/label.h"
#include "gpuqd/cluster/kube/pods/mounts.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct gpuq_arena arena = GPUQ_ARENA_INIT(0);
static struct gpuq_group group;
static struct gpuq_spec spec;
static struct pod_order order;
static const int devices[] = { 0, 3 };
static const char *const names[] = { "gpuq-0123abcd-17-1-0", "gpuq-0123abcd-17-1-1" };

static void init(void)
{
	group = (struct gpuq_group){ .name = "main", .pods_min = 1, .pods_max = 1 };
	spec = (struct gpuq_spec){ .name = "job", .groups = &group, .n_groups = 1 };
	order = (struct pod_order){
		.queue = "q",
		.name = names[0],
		.token = "00112233445566778899aabbccddeeff",
		.record = "{\"v\":1}",
		.cluster_id = "0123abcd",
		.namespace_ = "ml",
		.service_account = "",
		.priority_class = "",
		.image = "busybox",
		.node = "n1",
		.job = 17,
		.attempt = 1,
		.array_index = -1,
		.n_pods = 1,
		.pod_names = names,
		.spec = &spec,
		.time_limit_us = GPUQ_UNLIMITED,
		.grace_us = 30 * GPUQ_US_PER_S,
	};
}

static struct gpuq_val *yaml(const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&arena, "t", text, strlen(text), &docs, &n, &err), 0, "%s",
		     err.text);
	cr_assert_eq(n, 1);
	return docs[0];
}

static json_t *made(void)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	json_t *pod = NULL;

	cr_assert_eq(podspec_pod(&order, &pod, &err), 0, "%s", err.text);
	return pod;
}

/* The value at a path of keys and indexes, as compact JSON. */
static const char *at(json_t *v, const char *path)
{
	static char text[2048], word[64];
	char *dump;

	while (v && *path) {
		size_t n = strcspn(path, "|");

		snprintf(word, sizeof(word), "%.*s", (int)n, path);
		v = json_is_array(v) ? json_array_get(v, (size_t)atoi(word))
				     : json_object_get(v, word);
		path += n + (path[n] == '|');
	}
	if (!v)
		return "(none)";
	dump = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	snprintf(text, sizeof(text), "%s", dump);
	free(dump);
	return text;
}

static void expect(json_t *pod, const char *path, const char *want)
{
	const char *got = at(pod, path);

	cr_expect_str_eq(got, want, "%s: %s, expected %s", path, got, want);
}

Test(kube_podspec, own_form, .init = init)
{
	const char *command[] = { "sh", "-c", "x" };
	const char *keys[] = { "A", "NVIDIA_VISIBLE_DEVICES" }, *vals[] = { "1", "all" };
	const char *okeys[] = { "A", "GPUQ_JOB_ID" }, *ovals[] = { "2", "17" };
	struct gpuq_volume volumes[] = { { .claim = "data", .path = "/data", .read_only = true },
					 { .memory_bytes = 1024, .path = "/dev/shm" } };
	struct gpuq_toleration tol = {
		.key = "gpu", .exists = true, .effect = "NoSchedule", .seconds = -1
	};
	const char *secrets[] = { "reg" };
	json_t *pod;

	group.command = (struct gpuq_strlist){ command, 3 };
	group.env = (struct gpuq_strmap){ keys, vals, 2 };
	group.gpus_milli = 2000;
	group.cpu_milli = 1500;
	group.memory_bytes = 1 << 20;
	group.volumes = volumes;
	group.n_volumes = 2;
	group.tolerations = &tol;
	group.n_tolerations = 1;
	order.env = (struct gpuq_strmap){ okeys, ovals, 2 };
	order.devices = devices;
	order.n_devices = 2;
	order.image_pull_secrets = (struct gpuq_strlist){ secrets, 1 };
	order.priority_class = "high";
	order.service_account = "runner";
	order.time_limit_us = 3600 * GPUQ_US_PER_S + 1;
	pod = made();
	expect(pod, "kind", "\"Pod\"");
	expect(pod, "metadata|name", "\"gpuq-0123abcd-17-1-0\"");
	expect(pod, "metadata|namespace", "(none)");
	expect(pod, "metadata|labels|gpuq.io/job", "\"17\"");
	expect(pod, "metadata|labels|gpuq.io/attempt", "\"1\"");
	expect(pod, "metadata|labels|gpuq.io/index", "\"0\"");
	expect(pod, "metadata|labels|gpuq.io/array-index", "\"\"");
	expect(pod, "metadata|labels|gpuq.io/cluster", "\"0123abcd\"");
	expect(pod, "metadata|annotations|gpuq.io/token", "\"00112233445566778899aabbccddeeff\"");
	expect(pod, "metadata|annotations|gpuq.io/devices", "\"0,3\"");
	expect(pod, "metadata|annotations|gpuq.io/record", "\"{\\\"v\\\":1}\"");
	expect(pod, "metadata|finalizers", "(none)");
	expect(pod, "spec|nodeName", "\"n1\"");
	expect(pod, "spec|schedulerName", "\"gpuq\"");
	expect(pod, "spec|restartPolicy", "\"Never\"");
	expect(pod, "spec|enableServiceLinks", "false");
	expect(pod, "spec|automountServiceAccountToken", "false");
	expect(pod, "spec|priorityClassName", "\"high\"");
	expect(pod, "spec|serviceAccountName", "\"runner\"");
	expect(pod, "spec|imagePullSecrets", "[{\"name\":\"reg\"}]");
	expect(pod, "spec|terminationGracePeriodSeconds", "30");
	expect(pod, "spec|activeDeadlineSeconds", "3691"); /* 3601 + 30 + 60 */
	expect(pod, "spec|securityContext", "{\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}");
	expect(pod, "spec|hostname", "(none)");
	expect(pod, "spec|containers|1", "(none)");
	expect(pod, "spec|containers|0|image", "\"busybox\"");
	expect(pod, "spec|containers|0|command", "[\"sh\",\"-c\",\"x\"]");
	expect(pod, "spec|containers|0|resources",
	       "{\"limits\":{\"nvidia.com/gpu\":\"2\",\"cpu\":\"1500m\",\"memory\":\"1048576\"},"
	       "\"requests\":{\"cpu\":\"1500m\",\"memory\":\"1048576\"}}");
	expect(pod, "spec|containers|0|env",
	       "[{\"name\":\"A\",\"value\":\"2\"},{\"name\":\"GPUQ_JOB_ID\",\"value\":\"17\"}]");
	expect(pod, "spec|volumes|0",
	       "{\"name\":\"v0\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}");
	expect(pod, "spec|volumes|1",
	       "{\"name\":\"v1\",\"emptyDir\":{\"medium\":\"Memory\",\"sizeLimit\":\"1024\"}}");
	expect(pod, "spec|containers|0|volumeMounts|0",
	       "{\"name\":\"v0\",\"mountPath\":\"/data\",\"readOnly\":true}");
	expect(pod, "spec|tolerations|0",
	       "{\"operator\":\"Exists\",\"key\":\"gpu\",\"effect\":\"NoSchedule\"}");
	expect(pod, "spec|tolerations|1",
	       "{\"key\":\"node.kubernetes.io/"
	       "not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}");
	expect(pod, "spec|tolerations|2|key", "\"node.kubernetes.io/unreachable\"");
	json_decref(pod);
}

/* Images bake NVIDIA_VISIBLE_DEVICES=all, which would give a job without GPUs all. */
Test(kube_podspec, without_gpus_none_is_seen, .init = init)
{
	json_t *pod = made();

	expect(pod, "spec|containers|0|env",
	       "[{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"void\"}]");
	expect(pod, "metadata|annotations|gpuq.io/devices", "(none)");
	json_decref(pod);
}

Test(kube_podspec, a_manifest_goes_through, .init = init)
{
	json_t *pod;

	group.template_ =
		yaml("metadata:\n"
		     "  generateName: x-\n"
		     "  namespace: elsewhere\n"
		     "  labels: {app: a, gpuq.io/job: '1', gpuq.io/queue: q}\n"
		     "  annotations: {note: n, gpuq.io/token: stolen, gpuq.io/devices: '7',"
		     " gpuq.io/record: forged}\n"
		     "  ownerReferences: [{kind: Pod}]\n"
		     "spec:\n"
		     "  nodeName: other\n"
		     "  serviceAccountName: admin\n"
		     "  priority: 5\n"
		     "  priorityClassName: system-node-critical\n"
		     "  automountServiceAccountToken: true\n"
		     "  restartPolicy: OnFailure\n"
		     "  schedulerName: default-scheduler\n"
		     "  nodeSelector: {a: b}\n"
		     "  securityContext: {runAsUser: 5}\n"
		     "  tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists,"
		     " effect: NoExecute, tolerationSeconds: 6}]\n"
		     "  containers:\n"
		     "  - name: c\n"
		     "    image: mine:1\n"
		     "    env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: S, valueFrom:"
		     " {fieldRef: {fieldPath: metadata.name}}}]\n"
		     "    resources: {limits: {nvidia.com/gpu: 4}}\n"
		     "  - name: d\n"
		     "    image: side:1\n");
	group.gpus_milli = 4000;
	order.image = "mine:1";
	order.record = ""; /* none could be written: then the owner's is not taken for it */
	order.accounting_finalizer = true;
	pod = made();
	expect(pod, "metadata|generateName", "(none)");
	expect(pod, "metadata|namespace", "(none)");
	expect(pod, "metadata|ownerReferences", "(none)");
	expect(pod, "metadata|finalizers", "[\"gpuq.io/accounting\"]");
	expect(pod, "metadata|labels|app", "\"a\"");
	expect(pod, "metadata|labels|gpuq.io/queue", "\"q\"");
	expect(pod, "metadata|labels|gpuq.io/job", "\"17\"");
	expect(pod, "metadata|annotations|note", "\"n\"");
	expect(pod, "metadata|annotations|gpuq.io/token", "\"00112233445566778899aabbccddeeff\"");
	expect(pod, "metadata|annotations|gpuq.io/devices", "(none)");
	expect(pod, "metadata|annotations|gpuq.io/record", "(none)");
	expect(pod, "spec|nodeName", "\"n1\"");
	expect(pod, "spec|serviceAccountName", "(none)");
	expect(pod, "spec|priority", "(none)");
	expect(pod, "spec|priorityClassName", "(none)");
	expect(pod, "spec|automountServiceAccountToken", "false");
	expect(pod, "spec|restartPolicy", "\"Never\"");
	expect(pod, "spec|schedulerName", "\"gpuq\"");
	expect(pod, "spec|nodeSelector", "{\"a\":\"b\"}");
	expect(pod, "spec|securityContext",
	       "{\"runAsUser\":5,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}");
	expect(pod, "spec|tolerations|0|tolerationSeconds", "6");
	expect(pod, "spec|tolerations|1|key", "\"node.kubernetes.io/not-ready\"");
	expect(pod, "spec|tolerations|2", "(none)");
	expect(pod, "spec|containers|0|resources", "{\"limits\":{\"nvidia.com/gpu\":4}}");
	expect(pod, "spec|containers|0|env",
	       "[{\"name\":\"S\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.name\"}}}]");
	expect(pod, "spec|containers|1|image", "\"side:1\"");
	json_decref(pod);
	/* an option on the command line asked for fewer */
	group.gpus_milli = 2000;
	pod = made();
	expect(pod, "spec|containers|0|resources|limits|nvidia.com/gpu", "\"2\"");
	json_decref(pod);
}

Test(kube_podspec, a_gang_has_names, .init = init)
{
	const char *keys[] = { "MASTER_ADDR", "LIST", "OTHER", "DOMAIN", "GPUQ_POD_NAME" };
	const char *vals[] = { "gpuq-0123abcd-17-1-0",
			       "gpuq-0123abcd-17-1-0:1,gpuq-0123abcd-17-1-1",
			       "gpuq-0123abcd-17-1-01",
			       "gpuq-0123abcd-17-1-0.gpuq-0123abcd-17-1:29500",
			       "gpuq-0123abcd-17-1-0" };
	json_t *v;

	order.n_pods = 2;
	order.env = (struct gpuq_strmap){ keys, vals, 5 };
	v = made();
	expect(v, "spec|hostname", "\"gpuq-0123abcd-17-1-0\"");
	expect(v, "spec|subdomain", "\"gpuq-0123abcd-17\"");
	expect(v, "spec|containers|0|env|0|value", "\"gpuq-0123abcd-17-1-0.gpuq-0123abcd-17\"");
	expect(v, "spec|containers|0|env|1|value",
	       "\"gpuq-0123abcd-17-1-0.gpuq-0123abcd-17:1,gpuq-0123abcd-17-1-1.gpuq-0123abcd-17\"");
	expect(v, "spec|containers|0|env|2|value", "\"gpuq-0123abcd-17-1-01\"");
	expect(v, "spec|containers|0|env|3|value",
	       "\"gpuq-0123abcd-17-1-0.gpuq-0123abcd-17:29500\"");
	expect(v, "spec|containers|0|env|4|value", "\"gpuq-0123abcd-17-1-0\"");
	json_decref(v);
	order.array_index = 4;
	cr_assert_eq(podspec_service(&order, &v, NULL), 0);
	expect(v, "metadata|name", "\"gpuq-0123abcd-17-4\"");
	expect(v, "spec|clusterIP", "\"None\"");
	expect(v, "spec|publishNotReadyAddresses", "true");
	expect(v, "spec|selector",
	       "{\"gpuq.io/cluster\":\"0123abcd\",\"gpuq.io/job\":\"17\",\"gpuq.io/"
	       "array-index\":\"4\"}");
	json_decref(v);
}

/* The kubelet replaces $(NAME) in values, and $$ by $. A job's name and comment are any text. */
Test(kube_podspec, values_of_the_job_are_no_references, .init = init)
{
	const char *keys[] = { "GPUQ_JOB_NAME", "SLURM_JOB_COMMENT" };
	const char *vals[] = { "a/b $(HOME) \xc3\xb6", "$$1" };
	json_t *v;

	order.env = (struct gpuq_strmap){ keys, vals, 2 };
	v = made();
	expect(v, "spec|containers|0|env|0|value", "\"a/b $$(HOME) \xc3\xb6\"");
	expect(v, "spec|containers|0|env|1|value", "\"$$$$1\"");
	json_decref(v);
}

/* As the Job controller does it: annotation, label, host name; a Service of the owner's stays. */
Test(kube_podspec, an_indexed_job_is_one, .init = init)
{
	const char *keys[] = { "MASTER_ADDR", "JOB_COMPLETION_INDEX" };
	const char *vals[] = { "gpuq-0123abcd-17-1-0", "3" };
	struct pod_host hosts[2] = { { "train-0", NULL }, { "train-1", NULL } };
	json_t *v;

	group.template_ = yaml("metadata:\n"
			       "  labels: {job-name: train}\n"
			       "  annotations: {batch.kubernetes.io/job-completion-index: ''}\n"
			       "spec:\n"
			       "  initContainers: [{name: i, image: i}]\n"
			       "  containers:\n"
			       "  - name: main\n"
			       "    image: i\n"
			       "    env: [{name: A, value: b}, {name: P, value: $(MASTER_ADDR)}]\n"
			       "  - {name: side, image: i}\n");
	order.n_pods = 2;
	order.hosts = hosts;
	order.completion_index = 3;
	order.env = (struct gpuq_strmap){ keys, vals, 2 };
	v = made();
	expect(v, "metadata|annotations|batch.kubernetes.io/job-completion-index", "\"3\"");
	expect(v, "metadata|labels|batch.kubernetes.io/job-completion-index", "\"3\"");
	expect(v, "metadata|labels|job-name", "\"train\"");
	expect(v, "spec|hostname", "\"train-0\"");
	expect(v, "spec|subdomain", "\"gpuq-0123abcd-17\"");
	/* gpuqd's variables first: the owner's may refer to them. */
	expect(v, "spec|containers|0|env|0|value", "\"train-0.gpuq-0123abcd-17\"");
	expect(v, "spec|containers|0|env|2|name", "\"A\"");
	expect(v, "spec|containers|0|env|3|name", "\"P\"");
	expect(v, "spec|containers|1|env|1|name", "\"JOB_COMPLETION_INDEX\"");
	expect(v, "spec|initContainers|0|env|1|name", "\"JOB_COMPLETION_INDEX\"");
	expect(v, "spec|initContainers|0|env|1|value", "\"3\"");
	json_decref(v);

	hosts[0].domain = hosts[1].domain = "svc";
	gpuq_put(&arena, gpuq_get(group.template_, "spec"), "subdomain", gpuq_str(&arena, "svc"));
	v = made();
	expect(v, "spec|hostname", "\"train-0\"");
	expect(v, "spec|subdomain", "\"svc\"");
	expect(v, "spec|containers|0|env|0|value", "\"train-0.svc\"");
	json_decref(v);
}

Test(kube_podspec, a_script_is_mounted, .init = init)
{
	const char *args[] = { "a", "b c" };
	json_t *v;

	spec.script = "#!/bin/sh\necho\n";
	spec.script_bytes = strlen(spec.script);
	spec.script_args = (struct gpuq_strlist){ args, 2 };
	v = made();
	expect(v, "spec|containers|0|command", "[\"/gpuq/script\"]");
	expect(v, "spec|containers|0|args", "[\"a\",\"b c\"]");
	expect(v, "spec|volumes|0",
	       "{\"name\":\"gpuq-script\",\"configMap\":{\"name\":\"gpuq-0123abcd-17-script\","
	       "\"defaultMode\":493}}");
	json_decref(v);
	cr_assert_eq(podspec_files(&order, NULL, &v, NULL), 0);
	expect(v, "immutable", "true");
	expect(v, "data|script", "\"#!/bin/sh\\necho\\n\"");
	json_decref(v);
	spec.script = "echo without\n";
	spec.script_bytes = strlen(spec.script);
	v = made();
	expect(v, "spec|containers|0|command", "[\"/bin/sh\",\"/gpuq/script\"]");
	json_decref(v);
	spec.script = "\xff";
	spec.script_bytes = 1;
	cr_expect_eq(podspec_files(&order, NULL, &v, NULL), GPUQ_EINVAL);
}

Test(kube_podspec, refuses_what_makes_no_pod, .init = init)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	json_t *v = NULL;

	order.image = "";
	cr_expect_eq(podspec_pod(&order, &v, &err), GPUQ_EINVAL);
	cr_expect_str_eq(err.field, "groups[0]");
	cr_expect(strstr(err.text, "no image") != NULL);
	init();
	group.gpus_milli = 500;
	cr_expect_eq(podspec_pod(&order, &v, &err), GPUQ_EINVAL);
	init();
	order.group = 3;
	cr_expect_eq(podspec_pod(&order, &v, &err), GPUQ_EINVAL);
	init();
	group.template_ = yaml("spec: {containers: []}");
	cr_expect_eq(podspec_pod(&order, &v, &err), GPUQ_EINVAL);
	cr_expect_null(v);
}

static const struct {
	const char *spec, *field; /* field NULL: allowed */
} rules[] = {
	{ "{hostNetwork: true}", "spec.hostNetwork" },
	{ "{hostNetwork: false, hostPID: false}", NULL },
	{ "{hostIPC: true}", "spec.hostIPC" },
	{ "{volumes: [{name: a, emptyDir: {}}, {name: b, hostPath: {path: /}}]}",
	  "spec.volumes[1].hostPath" },
	{ "{containers: [{securityContext: {privileged: true}}]}",
	  "spec.containers[0].securityContext.privileged" },
	{ "{initContainers: [{}, {securityContext: {privileged: true}}]}",
	  "spec.initContainers[1].securityContext.privileged" },
	{ "{containers: [{securityContext: {capabilities: {add: [CHOWN, SYS_ADMIN]}}}]}",
	  "spec.containers[0].securityContext.capabilities.add[1]" },
	{ "{containers: [{securityContext: {capabilities: {add: [NET_BIND_SERVICE], drop: "
	  "[ALL]}}}]}",
	  NULL },
	{ "{containers: [{ports: [{containerPort: 1}, {hostPort: 80}]}]}",
	  "spec.containers[0].ports[1].hostPort" },
	{ "{containers: [{securityContext: {procMount: Unmasked}}]}",
	  "spec.containers[0].securityContext.procMount" },
	{ "{securityContext: {seccompProfile: {type: Unconfined}}}",
	  "spec.securityContext.seccompProfile.type" },
	{ "{containers: [{securityContext: {seccompProfile: {type: Localhost}}}]}", NULL },
	{ "{containers: [{securityContext: {appArmorProfile: {type: Unconfined}}}]}",
	  "spec.containers[0].securityContext.appArmorProfile.type" },
	{ "{securityContext: {seLinuxOptions: {type: spc_t}}}",
	  "spec.securityContext.seLinuxOptions.type" },
	{ "{securityContext: {seLinuxOptions: {user: root}}}",
	  "spec.securityContext.seLinuxOptions.user" },
	{ "{securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies}, {name: kernel.msgmax}]}}",
	  "spec.securityContext.sysctls[1]" },
	{ "{securityContext: {windowsOptions: {hostProcess: true}}}",
	  "spec.securityContext.windowsOptions.hostProcess" },
	{ "{containers: [{livenessProbe: {httpGet: {host: 10.0.0.1}}}]}",
	  "spec.containers[0].livenessProbe.httpGet.host" },
	{ "{containers: [{lifecycle: {preStop: {tcpSocket: {host: a}}}}]}",
	  "spec.containers[0].lifecycle.preStop.tcpSocket.host" },
	{ "{ephemeralContainers: [{}]}", "spec.ephemeralContainers[0]" },
	{ "{hostNetwork: 'true'}", "spec.hostNetwork" }, /* not false, whatever it is */
	{ "{containers: [{image: a}]}", NULL },
};

Test(kube_policy, baseline, .init = init)
{
	for (size_t i = 0; i < N(rules); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		char text[512], field[128];
		int rc;

		snprintf(text, sizeof(text), "{spec: %s}", rules[i].spec);
		group.template_ = yaml(text);
		rc = podspec_check(&spec, KUBE_POLICY_BASELINE, &err);
		cr_expect_eq(rc, rules[i].field ? GPUQ_EPERM : 0, "%s: %s", rules[i].spec,
			     err.text);
		snprintf(field, sizeof(field), "groups[0].template.%s",
			 rules[i].field ? rules[i].field : "");
		cr_expect_str_eq(err.field, rules[i].field ? field : "", "%s: %s", rules[i].spec,
				 err.field);
		cr_expect_eq(podspec_check(&spec, KUBE_POLICY_PRIVILEGED, NULL), 0, "%s",
			     rules[i].spec);
	}
}

Test(kube_policy, own_form_and_annotations, .init = init)
{
	struct gpuq_volume v = { .host_path = "/etc", .path = "/x" };
	struct gpuq_err err = GPUQ_ERR_INIT;

	group.volumes = &v;
	group.n_volumes = 1;
	cr_expect_eq(podspec_check(&spec, KUBE_POLICY_BASELINE, &err), GPUQ_EPERM);
	cr_expect_str_eq(err.field, "groups[0].volumes[0].host_path");
	cr_expect_eq(podspec_check(&spec, KUBE_POLICY_PRIVILEGED, &err), 0);
	group.n_volumes = 0;
	group.template_ = yaml("metadata: {annotations: "
			       "{container.apparmor.security.beta.kubernetes.io/c: unconfined}}");
	cr_expect_eq(podspec_check(&spec, KUBE_POLICY_BASELINE, &err), GPUQ_EPERM);
	cr_expect_str_eq(err.field, "groups[0].template.metadata.annotations");
}

Test(kube_policy, what_gpuq_cannot_run_at_any_level, .init = init)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	group.template_ = yaml("spec: {schedulingGates: [{name: a}]}");
	cr_expect_eq(podspec_check(&spec, KUBE_POLICY_PRIVILEGED, &err), GPUQ_EINVAL);
	cr_expect_str_eq(err.field, "groups[0].template.spec.schedulingGates");
	group.template_ = yaml("spec: {resourceClaims: [{name: a, resourceClaimName: b}]}");
	cr_expect_eq(podspec_check(&spec, KUBE_POLICY_BASELINE, &err), 0);
}

/* Beyond what baseline forbids; field NULL: allowed. */
static const struct {
	const char *spec, *field;
} strict[] = {
	{ "{containers: [{image: a}]}", NULL }, /* what is not said is filled in */
	{ "{hostNetwork: true}", "spec.hostNetwork" },
	{ "{securityContext: {runAsNonRoot: true, runAsUser: 1000}}", NULL },
	{ "{securityContext: {runAsNonRoot: false}}", "spec.securityContext.runAsNonRoot" },
	{ "{securityContext: {runAsUser: 0}}", "spec.securityContext.runAsUser" },
	{ "{containers: [{securityContext: {runAsUser: 0}}]}",
	  "spec.containers[0].securityContext.runAsUser" },
	{ "{initContainers: [{securityContext: {runAsNonRoot: false}}]}",
	  "spec.initContainers[0].securityContext.runAsNonRoot" },
	{ "{containers: [{securityContext: {allowPrivilegeEscalation: true}}]}",
	  "spec.containers[0].securityContext.allowPrivilegeEscalation" },
	{ "{containers: [{securityContext: {allowPrivilegeEscalation: false}}]}", NULL },
	{ "{containers: [{securityContext: {capabilities: {add: [CHOWN]}}}]}",
	  "spec.containers[0].securityContext.capabilities.add[0]" },
	{ "{containers: [{securityContext: {capabilities: {add: [NET_BIND_SERVICE]}}}]}", NULL },
	{ "{volumes: [{name: a, persistentVolumeClaim: {claimName: c}}, {name: b, emptyDir: {}}]}",
	  NULL },
	{ "{volumes: [{name: a, nfs: {server: s, path: /}}]}", "spec.volumes[0].nfs" },
	{ "{volumes: [{name: a, hostPath: {path: /}}]}", "spec.volumes[0].hostPath" },
};

Test(kube_policy, restricted, .init = init)
{
	for (size_t i = 0; i < N(strict); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		char text[512], field[128];

		snprintf(text, sizeof(text), "{spec: %s}", strict[i].spec);
		group.template_ = yaml(text);
		cr_expect_eq(podspec_check(&spec, KUBE_POLICY_RESTRICTED, &err),
			     strict[i].field ? GPUQ_EPERM : 0, "%s: %s", strict[i].spec, err.text);
		snprintf(field, sizeof(field), "groups[0].template.%s",
			 strict[i].field ? strict[i].field : "");
		cr_expect_str_eq(err.field, strict[i].field ? field : "", "%s: %s", strict[i].spec,
				 err.field);
	}
}

Test(podspec, restricted_is_said_where_the_owner_did_not, .init = init)
{
	json_t *pod;

	order.walls.pod_policy = "restricted";
	pod = made();
	cr_expect_str_eq(at(pod, "spec|securityContext|runAsNonRoot"), "true");
	cr_expect_str_eq(
		at(pod, "spec|containers|0|securityContext"),
		"{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]}}");
	json_decref(pod);
	group.template_ = yaml(
		"{spec: {securityContext: {runAsNonRoot: true}, initContainers: [{name: i, image: "
		"a}],"
		" containers: [{name: c, image: a, securityContext: {capabilities: {drop: [ALL],"
		" add: [NET_BIND_SERVICE]}}}]}}");
	pod = made();
	cr_expect_str_eq(at(pod, "spec|initContainers|0|securityContext|capabilities|drop"),
			 "[\"ALL\"]");
	cr_expect_str_eq(at(pod, "spec|containers|0|securityContext|capabilities"),
			 "{\"drop\":[\"ALL\"],\"add\":[\"NET_BIND_SERVICE\"]}");
	json_decref(pod);
	order.walls.pod_policy = "baseline";
	pod = made();
	cr_expect_str_eq(at(pod, "spec|initContainers|0|securityContext"), "(none)");
	json_decref(pod);
}

/* ---- devices that are shared by memory ---- */

Test(podspec, a_part_of_a_device_by_gpushare, .init = init)
{
	const struct backend *b;
	struct backend_place p;
	json_t *pod;

	group.gpus_milli = 1000;
	group.gpu_memory_bytes = INT64_C(5) << 30;
	order.devices = devices;
	order.n_devices = 1;
	order.sharing = "gpushare";
	order.device_mib = 15 * 1024;
	order.milli = 333;
	order.now_us = 1000000;
	cr_expect(podspec_shared(&order, &b, &p));
	cr_expect_eq(b->turn, TURN_EQUAL);
	cr_expect_eq(p.units, 5);
	pod = made();
	cr_expect_str_eq(at(pod, "spec|containers|0|resources|limits"),
			 "{\"aliyun.com/gpu-mem\":\"5\"}");
	cr_expect_str_eq(at(pod, "metadata|annotations|ALIYUN_COM_GPU_MEM_IDX"), "\"0\"");
	cr_expect_str_eq(at(pod, "metadata|annotations|ALIYUN_COM_GPU_MEM_DEV"), "\"15\"");
	json_decref(pod);
	group.template_ =
		yaml("{spec: {containers: [{name: s, image: a}, {name: c, image: a, resources: "
		     "{limits: {tencent.com/vcuda-core: 30, cpu: 1}}}]}}");
	pod = made();
	cr_expect_str_eq(at(pod, "spec|containers|1|resources|limits"),
			 "{\"cpu\":1,\"aliyun.com/gpu-mem\":\"5\"}");
	cr_expect_str_eq(at(pod, "spec|containers|0|resources|limits"), "(none)");
	json_decref(pod);
	order.sharing = "whole";
	cr_expect_not(podspec_shared(&order, NULL, NULL));
}

/* A LimitRange would give them to each container that does not name them. */
Test(podspec, what_a_container_does_not_name_it_does_not_get, .init = init)
{
	static const char *none[] = { "nvidia.com/gpu", "rdma/hca" };
	json_t *pod;

	group.gpus_milli = 4000;
	order.none = (struct gpuq_strlist){ none, 2 };
	pod = made();
	expect(pod, "spec|containers|0|resources|limits",
	       "{\"nvidia.com/gpu\":\"4\",\"rdma/hca\":\"0\"}");
	json_decref(pod);
	group.gpus_milli = 1000;
	group.template_ = yaml("{spec: {initContainers: [{name: i, image: a}], containers: "
			       "[{name: c, image: a, resources: {limits: {nvidia.com/gpu: 1}, "
			       "requests: {rdma/hca: 1}}}, {name: d, image: a}]}}");
	pod = made();
	expect(pod, "spec|containers|0|resources",
	       "{\"limits\":{\"nvidia.com/gpu\":1},\"requests\":{\"rdma/hca\":1}}");
	expect(pod, "spec|containers|1|resources",
	       "{\"limits\":{\"nvidia.com/gpu\":\"0\",\"rdma/hca\":\"0\"},\"requests\":{"
	       "\"nvidia.com/gpu\":\"0\",\"rdma/hca\":\"0\"}}");
	expect(pod, "spec|initContainers|0|resources|limits",
	       "{\"nvidia.com/gpu\":\"0\",\"rdma/hca\":\"0\"}");
	json_decref(pod);
}

/* ---- what is named of the namespace ---- */

static const struct mount_case {
	const char *spec, *field; /* field NULL: accepted */
} mount_cases[] = {
	{ "{volumes: [{secret: {secretName: a}}]}", "spec.volumes[0].secret.secretName" },
	{ "{volumes: [{projected: {sources: [{secret: {name: a}}]}}]}",
	  "spec.volumes[0].projected.sources[0].secret" },
	{ "{volumes: [{configMap: {name: a}}]}", "spec.volumes[0].configMap" },
	{ "{volumes: [{persistentVolumeClaim: {claimName: a}}]}",
	  "spec.volumes[0].persistentVolumeClaim.claimName" },
	{ "{volumes: [{csi: {nodePublishSecretRef: {name: a}}}]}",
	  "spec.volumes[0].csi.nodePublishSecretRef" },
	{ "{volumes: [{ephemeral: {volumeClaimTemplate: {spec: {dataSourceRef: {kind: "
	  "PersistentVolumeClaim, name: a}}}}}]}",
	  "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef" },
	{ "{containers: [{envFrom: [{secretRef: {name: a}}]}]}",
	  "spec.containers[0].envFrom[0].secretRef" },
	{ "{initContainers: [{env: [{valueFrom: {configMapKeyRef: {name: a}}}]}]}",
	  "spec.initContainers[0].env[0].valueFrom.configMapKeyRef" },
	{ "{imagePullSecrets: [{name: a}]}", "spec.imagePullSecrets" },
	{ "{imagePullSecrets: [{name: ok-1}], volumes: [{configMap: {name: ok-2}}]}", NULL },
	{ "{volumes: [{configMap: {name: gpuq-0123abcd-7-script}}]}", "spec.volumes[0].configMap" },
	{ "{volumes: [{projected: {sources: [{serviceAccountToken: {path: t}}]}}]}",
	  "spec.volumes[0].projected.sources[0]" },
	{ "{containers: [{volumeMounts: [{mountPath: //run/./nvidia-container-devices/0}]}]}",
	  "spec.containers[0].volumeMounts[0].mountPath" },
	{ "{containers: [{volumeMounts: [{mountPath: /a/../run/nvidia-container-devices}]}]}",
	  "spec.containers[0].volumeMounts[0].mountPath" },
	{ "{containers: [{volumeMounts: [{mountPath: /run/nvidia-container-device}]}]}", NULL },
};

Test(kube_mounts, names_paths_and_tokens, .init = init)
{
	const char *globs[] = { "ok-*" };
	const struct site_mounts only = { WALL_LIST, { globs, 1 } };
	const struct site_walls walls = { "baseline", only, only, only, false };

	for (size_t i = 0; i < N(mount_cases); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		char text[512], field[160];
		const char *want = mount_cases[i].field;
		int rc;

		snprintf(text, sizeof(text), "{spec: %s}", mount_cases[i].spec);
		group.template_ = yaml(text);
		rc = mounts_check(&spec, &walls, &err);
		cr_expect_eq(rc, want ? GPUQ_EPERM : 0, "%s: %s", mount_cases[i].spec, err.text);
		snprintf(field, sizeof(field), "groups[0].template.%s", want ? want : "");
		cr_expect_str_eq(err.field, want ? field : "", "%s: %s", mount_cases[i].spec,
				 err.field);
	}
}

/* Rules by name do not keep a queue from what gpuqd made for another job. */
Test(kube_mounts, scripts_of_jobs_in_no_queue, .init = init)
{
	struct gpuq_volume v = { .config_map = "gpuq-0123abcd-7-script", .path = "/x" };
	const struct site_walls walls = { .pod_policy = "privileged", .tokens = true };
	struct gpuq_err err = GPUQ_ERR_INIT;

	group.volumes = &v;
	group.n_volumes = 1;
	cr_expect_eq(mounts_check(&spec, &walls, &err), GPUQ_EPERM);
	v.config_map = "gpuq-settings";
	cr_expect_eq(mounts_check(&spec, &walls, &err), 0);
	group.n_volumes = 0;
}

Test(kube_label, any_name_becomes_a_value_and_no_two_become_one)
{
	char a[LABEL_ROOM], b[LABEL_ROOM], name[200];

	label_value("ann_b.c-1", a);
	cr_expect_str_eq(a, "ann_b.c-1");
	label_value("ann@site", a);
	label_value("ann_site", b);
	cr_expect(strncmp(a, "ann_site-", 9) == 0 && strlen(a) == 17, "%s", a);
	cr_expect_str_eq(b, "ann_site");
	label_value("-x", a);
	cr_expect(strncmp(a, "xx-", 3) == 0, "%s", a);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	label_value(name, a);
	cr_expect_eq(strlen(a), LABEL_ROOM - 1);
}

/* Its node is given to it later: pod_bind() of cluster.h. */
Test(kube_podspec, a_pod_that_is_bound_later_says_what_it_waits_for, .init = init)
{
	const char *claims[] = { "data", "scratch" };
	json_t *pod;

	group.runtime_class = "kata";
	order.unbound = true;
	order.claims = (struct gpuq_strlist){ claims, 2 };
	pod = made();
	expect(pod, "spec|nodeName", "(none)");
	expect(pod, "spec|schedulerName", "\"gpuq\"");
	expect(pod, "spec|runtimeClassName", "\"kata\"");
	expect(pod, "metadata|annotations|gpuq.io/claims", "\"data,scratch\"");
	json_decref(pod);
	order.unbound = false;
	pod = made();
	expect(pod, "spec|nodeName", "\"n1\"");
	expect(pod, "metadata|annotations|gpuq.io/claims", "(none)");
	json_decref(pod);
}
