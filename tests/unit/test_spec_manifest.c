/* Kubernetes manifests as jobs, in every dialect of asking for devices. */
#include "tests/unit/spec_help.h"

/* clang-format off */
#define POD(meta, spec, container) \
	"apiVersion: v1\nkind: Pod\nmetadata: {name: p" meta "}\nspec:\n" spec \
	"  containers:\n  - name: c\n    image: i\n" container
#define RESOURCES(text) "    resources: {" text "}\n"
#define LIMITS(text) RESOURCES("limits: {" text "}")
#define JOB(meta, spec, template_meta, pod_spec) \
	"apiVersion: batch/v1\nkind: Job\nmetadata: {name: j" meta "}\nspec:\n" spec \
	"  template:\n" template_meta "    spec:\n" pod_spec \
	"      containers:\n      - {name: c, image: i}\n"
/* clang-format on */

/* clang-format off */
static const struct spec_case accepted[] = {
	{ .text = POD("", "", ""),
	  .want = "{\"name\":\"p\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 2")),
	  .want = "{\"name\":\"p\",\"gpus\":2,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", RESOURCES("requests: {nvidia.com/gpu: 2, cpu: 1, memory: 1Gi}, limits: {nvidia.com/gpu: \"2\", " "cpu: 2}")),
	  .want = "{\"name\":\"p\",\"gpus\":2,\"cpus\":1,\"memory\":\"1Gi\",\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 1, rdma/hca: 1")),
	  .want = "{\"name\":\"p\",\"gpus\":1,\"cpus\":0,\"resources\":{\"rdma/hca\":1},\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", RESOURCES("requests: {hugepages-2Mi: 1Gi, ephemeral-storage: 2Gi}, limits: {hugepages-2Mi: 1Gi}")),
	  .want = "{\"name\":\"p\",\"cpus\":0,\"resources\":{\"ephemeral-storage\":2147483648,"
	  "\"hugepages-2Mi\":1073741824},\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("amd.com/gpu: 2")),
	  .want = "{\"name\":\"p\",\"gpus\":2,\"cpus\":0,\"resources\":{\"amd.com/gpu\":2},\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("kubernetes.io.example.com/nic: 1")),
	  .want = "{\"name\":\"p\",\"cpus\":0,\"resources\":{\"kubernetes.io.example.com/nic\":1},"
	  "\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu.shared: 1")),
	  .want = "{\"name\":\"p\",\"gpus\":0.01,\"cpus\":0,\"resources\":{\"nvidia.com/gpu.shared\":1},"
	  "\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/mig-1g.10gb: 2")),
	  .want = "{\"name\":\"p\",\"gpus\":2,\"mig\":\"1g.10gb\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: 50, tencent.com/vcuda-memory: 15")),
	  .want = "{\"name\":\"p\",\"gpus\":0.5,\"gpu_memory\":\"3840Mi\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: 100, tencent.com/vcuda-memory: 0")),
	  .want = "{\"name\":\"p\",\"gpus\":1,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: 200")),
	  .want = "{\"name\":\"p\",\"gpus\":2,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("aliyun.com/gpu-mem: 5")),
	  .want = "{\"name\":\"p\",\"gpus\":1,\"gpu_memory\":\"5Gi\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("aliyun.com/gpu-mem: 8138")),
	  .want = "{\"name\":\"p\",\"gpus\":1,\"gpu_memory\":\"8138Mi\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 2, nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30")),
	  .want = "{\"name\":\"p\",\"gpus\":2,\"gpu_memory\":\"3000Mi\",\"gpu_cores\":30,\"cpus\":0,"
	  "\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpumem: 3000")),
	  .want = "{\"name\":\"p\",\"gpus\":1,\"gpu_memory\":\"3000Mi\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 50")),
	  .want = "{\"name\":\"p\",\"gpus\":0.5,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50")),
	  .want = "{\"name\":\"p\",\"gpus\":2,\"gpu_cores\":50,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50, nvidia.com/gpucores: 50")),
	  .want = "{\"name\":\"p\",\"gpus\":2,\"gpu_cores\":50,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 100")),
	  .want = "{\"name\":\"p\",\"gpus\":2,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD(", annotations: {gpu-fraction: \"0.25\"}", "", ""),
	  .want = "{\"name\":\"p\",\"gpus\":0.25,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD(", annotations: {gpu-fraction: \"0.25\", gpu-fraction-container-name: c}", "", ""),
	  .want = "{\"name\":\"p\",\"gpus\":0.25,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD(", annotations: {gpu-memory: \"2000\"}", "", ""),
	  .want = "{\"name\":\"p\",\"gpus\":1,\"gpu_memory\":\"2000Mi\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD(", namespace: ns, labels: {kueue.x-k8s.io/queue-name: q, team: ml}", "", ""),
	  .want = "{\"name\":\"p\",\"queue\":\"q\",\"namespace\":\"ns\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD(", labels: {kai.scheduler/queue: q}", "", ""),
	  .want = "{\"name\":\"p\",\"queue\":\"q\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD(", annotations: {gpuq.io/queue: q, gpuq.io/time: 90m, gpuq.io/qos: high, " "gpuq.io/account: acc, gpuq.io/flavor: \"h100,a100\"}", "", ""),
	  .want = "{\"name\":\"p\",\"queue\":\"q\",\"account\":\"acc\",\"qos\":\"high\",\"time\":\"90m\","
	  "\"flavor\":[\"h100\",\"a100\"],\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "  restartPolicy: OnFailure\n" "  activeDeadlineSeconds: 60\n" "  terminationGracePeriodSeconds: 5\n", ""),
	  .want = "{\"name\":\"p\",\"time\":\"1m\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\","
	  "\"oom\"]},\"grace\":\"5s\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "  restartPolicy: Always\n" "  schedulerName: kai-scheduler\n" "  priorityClassName: high\n" "  someNewField: {a: 1}\n", ""),
	  .want = "{\"name\":\"p\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "pod.yaml:6:18: spec.schedulerName: is not used: gpuqd schedules the pod\n"
	  "pod.yaml:7:22: spec.priorityClassName: is not used: it comes from the queue\n"
	  "pod.yaml:5:18: spec.restartPolicy: a job ends: it is not started again after "
		"success\n" },
	{ .text = POD("", "  nodeSelector: {zone: b}\n" "  affinity:\n" "    nodeAffinity:\n" "      requiredDuringSchedulingIgnoredDuringExecution:\n" "        nodeSelectorTerms:\n" "        - matchExpressions: [{key: gpu, operator: In, values: [a, b]}]\n" "        - matchFields: [{key: metadata.name, operator: In, values: [n1]}]\n" "      preferredDuringSchedulingIgnoredDuringExecution:\n" "      - weight: 5\n" "        preference: {matchExpressions: [{key: fast, operator: Exists}]}\n" "    podAntiAffinity: {}\n" "  tolerations: [{operator: Exists}]\n", ""),
	  .want = "{\"name\":\"p\",\"cpus\":0,\"image\":\"i\","
	  "\"affinity\":{\"required\":[{\"match\":[{\"key\":\"zone\",\"operator\":\"In\","
	  "\"values\":[\"b\"]},{\"key\":\"gpu\",\"operator\":\"In\",\"values\":[\"a\",\"b\"]}]},"
	  "{\"match\":[{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"b\"]},"
	  "{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n1\"]}]}],"
	  "\"preferred\":[{\"weight\":5,\"match\":[{\"key\":\"fast\",\"operator\":\"Exists\"}]}]},"
	  "\"tolerations\":[{\"operator\":\"Exists\"}]}",
	  .warns = "pod.yaml:15:22: spec.affinity.podAntiAffinity: is not used for placement: only node "
	  "affinity is\n" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "metadata: {generateName: run-}\n"
	  "spec:\n"
	  "  initContainers:\n"
	  "  - {name: i1, image: i, resources: {requests: {cpu: 3, memory: 100Mi}}}\n"
	  "  - {name: side, image: i, restartPolicy: Always, resources: {requests: {cpu: 500m}}}\n"
	  "  - {name: i2, image: i, resources: {requests: {cpu: 2}}}\n"
	  "  containers:\n"
	  "  - {name: a, image: x, command: [run], args: [\"1\"], workingDir: /w, env: [{name: A, "
	  "value: b}, {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}], resources: "
	  "{requests: {cpu: 1, memory: 64Mi}, limits: {nvidia.com/gpu: 1}}}\n"
	  "  - {name: b, image: y, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}\n"
	  "  overhead: {cpu: 100m}\n",
	  .want = "{\"name\":\"run\",\"gpus\":2,\"cpus\":3.1,\"memory\":\"100Mi\",\"image\":\"x\","
	  "\"command\":[\"run\"],\"args\":[\"1\"],\"env\":{\"A\":\"b\"},\"workdir\":\"/w\"}",
	  .warns = "" },
	{ .text = POD("", "  resources: {requests: {cpu: 4}}\n", RESOURCES("requests: {cpu: 1, memory: 1Gi}")),
	  .want = "{\"name\":\"p\",\"cpus\":4,\"memory\":\"1Gi\",\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", "") "    env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: B, value: c}]\n",
	  .want = "{\"name\":\"p\",\"cpus\":0,\"image\":\"i\",\"env\":{\"B\":\"c\"}}",
	  .warns = "pod.yaml:8:11: NVIDIA_VISIBLE_DEVICES is omitted: gpuqd sets the devices\n" },
	{ .text = JOB("", "", "", ""),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "  parallelism: 4\n", "", ""),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"pods\":4,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "  parallelism: 4\n" "  completions: 4\n", "", ""),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"pods\":4,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "  parallelism: 4\n" "  completions: 2\n", "", ""),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"pods\":2,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "  parallelism: 3\n" "  completions: 10\n" "  completionMode: Indexed\n", "", ""),
	  .want = "{\"name\":\"j\",\"array\":\"0-9%3\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "  parallelism: 3\n" "  completionMode: Indexed\n", "", ""),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"pods\":3,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "  backoffLimit: 2\n", "", "      restartPolicy: Never\n"),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":2,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "  backoffLimit: 0\n", "", "      restartPolicy: OnFailure\n"),
	  .want = "{\"name\":\"j\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "", "", "      restartPolicy: OnFailure\n"),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "  suspend: true\n" "  ttlSecondsAfterFinished: 60\n" "  activeDeadlineSeconds: 100\n", "", "      activeDeadlineSeconds: 50\n"),
	  .want = "{\"name\":\"j\",\"time\":\"50s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "pod.yaml:6:28: spec.ttlSecondsAfterFinished: is not used: the pods go when the job has "
	  "ended, its record stays (gpuq history)\n" },
	{ .text = JOB("", "  podFailurePolicy: {rules: []}\n" "  backoffLimitPerIndex: 1\n", "", ""),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":1,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"cpus\":0,\"image\":\"i\"}",
	  .warns = "pod.yaml:5:21: spec.podFailurePolicy: is not used\n" },
	{ .text = JOB(", labels: {kueue.x-k8s.io/max-exec-time-seconds: \"300\"}", "", "    metadata: {labels: {kai.scheduler/queue: q, app: x}}\n", ""),
	  .want = "{\"name\":\"j\",\"queue\":\"q\",\"time\":\"5m\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", "  parallelism: 4\n", "    metadata: {annotations: {kueue.x-k8s.io/podset-slice-required-topology: rack, " "kueue.x-k8s.io/podset-slice-size: \"2\"}}\n", ""),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"pods\":4,\"cpus\":0,\"image\":\"i\",\"topology\":{\"slices\":[{\"level\":\"rack\",\"size\":2}]}}",
	  .warns = "" },
	{ .text = JOB(", annotations: {kueue.x-k8s.io/job-min-parallelism: \"2\"}", "  parallelism: 4\n", "    metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: " "cloud.example/rack}}\n", ""),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"pods\":{\"min\":2,\"max\":4},\"cpus\":0,\"image\":\"i\",\"topology\":{\"required\":\"cloud.example/rack\"}}",
	  .warns = "" },
	{ .text = "apiVersion: v1\n"
	  "kind: List\n"
	  "items:\n"
	  "- apiVersion: v1\n"
	  "  kind: Pod\n"
	  "  metadata: {name: p}\n"
	  "  spec:\n"
	  "    containers:\n"
	  "    - name: c\n"
	  "      image: i\n"
	  "- apiVersion: batch/v1\n"
	  "  kind: Job\n"
	  "  metadata: {name: j}\n"
	  "  spec:\n"
	  "    template:\n"
	  "      spec:\n"
	  "        containers:\n"
	  "        - {name: c, image: i}\n",
	  .want = "{\"name\":\"p\",\"cpus\":0,\"image\":\"i\"}\n"
	  "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = POD("", "", "") "---\n" JOB("", "", "", "") "---\n" "command: x\n",
	  .want = "{\"name\":\"p\",\"cpus\":0,\"image\":\"i\"}\n"
	  "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}\n"
	  "{\"name\":\"noname\",\"cpus\":1,\"command\":[\"/bin/sh\",\"-c\",\"x\"]}",
	  .warns = "" },
	{ .text = POD("", "", ""),
	  .want = "{\"name\":\"p\",\"queue\":\"q\",\"time\":\"5m\",\"labels\":{\"a\":\"b\"},\"cpus\":0,"
	  "\"image\":\"i\",\"nodes\":[\"n1\"]}",
	  .warns = "",
	  .argv = { "--queue=q", "-t", "5", "--label=a=b", "-w", "n1" } },
	{ .text = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"json\","
	  "\"creationTimestamp\":null},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\","
	  "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]},\"status\":{}}",
	  .want = "{\"name\":\"json\",\"gpus\":1,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
};
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = "apiVersion: apps/v1\n"
	  "kind: Deployment\n"
	  "spec: {}\n",
	  .want = "pod.yaml:2:7: kind: a Deployment is not a job: submit what it runs as a v1 Pod or batch/v1 Job" },
	{ .text = "apiVersion: v1\n"
	  "kind: Service\n",
	  .want = "pod.yaml:2:7: kind: expected a Pod, Job, JobSet, PyTorchJob or another kind of job (gpuq-job(5)), not 'v1 Service'" },
	{ .text = "apiVersion: batch/v1\n",
	  .want = "pod.yaml:1:1: kind: expected a Pod, Job, JobSet, PyTorchJob or another kind of job (gpuq-job(5)), not 'batch/v1 '" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n",
	  .want = "pod.yaml:1:1: spec: expected a map" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "spec: {}\n",
	  .want = "pod.yaml:3:7: spec.containers: expected a list of at least one container" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "spec: {containers: []}\n",
	  .want = "pod.yaml:3:20: spec.containers: expected a list of at least one container" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "spec: {containers: {name: a}}\n",
	  .want = "pod.yaml:3:20: spec.containers: expected a list, not a map" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "spec: {containers: [{image: a}]}\n",
	  .want = "pod.yaml:3:21: spec.containers[0]: expected a name" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "spec: []\n",
	  .want = "pod.yaml:3:7: spec: expected a map, not a list" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "sepc: {}\n"
	  "spec: {containers: [{name: a}]}\n",
	  .want = "pod.yaml:3:1: sepc: unknown key; did you mean 'spec'?" },
	{ .text = "apiVersion: v1\n"
	  "kind: List\n"
	  "items: []\n",
	  .want = "pod.yaml:3:8: items: expected a list of jobs" },
	{ .text = "apiVersion: v1\n"
	  "kind: List\n"
	  "items: [a]\n",
	  .want = "pod.yaml:3:9: items[0]: expected a job: a map of keys such as command" },
	{ .text = POD("", "  nodeName: n1\n", ""),
	  .want = "pod.yaml:5:13: spec.nodeName: gpuqd chooses the node: request one with nodeSelector or "
	  "nodeAffinity" },
	{ .text = POD("", "  ephemeralContainers: [{name: x}]\n", ""),
	  .want = "pod.yaml:5:24: spec.ephemeralContainers: expected none in a new pod" },
	{ .text = POD("", "  resourceClaims: [{name: gpu}]\n", ""),
	  .want = "pod.yaml:5:20: spec.resourceClaims[0]: expected a name, and either "
	  "resourceClaimName or resourceClaimTemplateName" },
	{ .text = POD(", labels: {gpuq.io/job: \"1\"}", "", ""),
	  .want = "pod.yaml:3:43: metadata.labels.gpuq.io/job: is set by gpuqd: omit it" },
	{ .text = POD(", labels: {a: 1}", "", ""),
	  .want = "pod.yaml:3:33: metadata.labels.a: expected a string, not an integer (quote it)" },
	{ .text = POD(", annotations: {hami.io/vgpu-node: n}", "", ""),
	  .want = "pod.yaml:3:54: metadata.annotations.hami.io/vgpu-node: is set by gpuqd: omit it" },
	{ .text = POD(", labels: {kueue.x-k8s.io/queue-name: a, kai.scheduler/queue: b}", "", ""),
	  .want = "pod.yaml:3:81: metadata: expected one queue: kueue.x-k8s.io/queue-name says 'a', "
	  "kai.scheduler/queue says 'b'" },
	{ .text = POD(", labels: {gpuq.io/queue: \"\"}", "", ""),
	  .want = "pod.yaml:3:45: metadata: expected the name of a queue in gpuq.io/queue, not ''" },
	{ .text = POD(", namespace: 5", "", ""),
	  .want = "pod.yaml:3:32: metadata.namespace: expected a string, not an integer (quote it)" },
	{ .text = POD(", namespace: \"a/b\"", "", ""),
	  .want = "pod.yaml:3:32: metadata.namespace: expected the name of a namespace, not 'a/b'" },
	{ .text = POD(", annotations: {gpuq.io/qos: \"very high\"}", "", ""),
	  .want = "pod.yaml:3:48: metadata.annotations.gpuq.io/qos: expected a name, not 'very high'" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "metadata: {name: Upper_Case}\n"
	  "spec:\n"
	  "  containers:\n"
	  "  - name: c\n"
	  "    image: i\n",
	  .want = "pod.yaml:3:18: metadata.name: expected lower case letters, digits, '-' and '.', not "
	  "'Upper_Case'" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 1.5")),
	  .want = "pod.yaml:8:42: spec.containers[0].resources.limits.nvidia.com/gpu: expected a whole "
	  "number without a unit, not '1.5': the nearest are 1 and 2" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: -1")),
	  .want = "pod.yaml:8:42: spec.containers[0].resources.limits.nvidia.com/gpu: expected a whole "
	  "number without a unit, not '-1': the nearest is 1" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 1e18")),
	  .want = "pod.yaml:8:42: spec.containers[0].resources.limits.nvidia.com/gpu: expected a whole "
	  "number without a unit, not '1e18': the nearest is 1024" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: -5")),
	  .want = "pod.yaml:8:50: spec.containers[0].resources.limits.tencent.com/vcuda-core: expected a whole "
	  "number without a unit, not '-5': the nearest is 1" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: 100000000000000000000")),
	  .want = "pod.yaml:8:50: spec.containers[0].resources.limits.tencent.com/vcuda-core: expected a whole "
	  "number without a unit, not '100000000000000000000': the nearest is 102400" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 0.5")),
	  .want = "pod.yaml:8:42: spec.containers[0].resources.limits.nvidia.com/gpu: expected a whole "
	  "number without a unit, not '0.5': the nearest is 1" },
	{ .text = POD("", "", LIMITS("nvidia.com/mig-9g.5gb: 1")),
	  .want = "pod.yaml:8:49: spec.containers[0].resources.limits.nvidia.com/mig-9g.5gb: expected a MIG "
	  "profile from 1g to 7g: a card has 7 slices of compute, '9g.5gb' more" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 2000")),
	  .want = "pod.yaml:8:42: spec.containers[0].resources.limits.nvidia.com/gpu: expected at most "
	  "1024 devices: the nearest is 1024" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 1Gi")),
	  .want = "pod.yaml:8:42: spec.containers[0].resources.limits.nvidia.com/gpu: expected a whole "
	  "number without a unit, not '1Gi': the nearest is 1024" },
	{ .text = POD("", "", RESOURCES("requests: {nvidia.com/gpu: 1}")),
	  .want = "pod.yaml:8:44: spec.containers[0].resources.limits.nvidia.com/gpu: expected a limit "
	  "equal to the request: devices are not overcommitted" },
	{ .text = POD("", "", RESOURCES("requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}")),
	  .want = "pod.yaml:8:73: spec.containers[0].resources.limits.nvidia.com/gpu: expected the same "
	  "number as in requests: devices are not overcommitted" },
	{ .text = POD("", "", RESOURCES("requests: {cpu: 2}, limits: {cpu: 1}")),
	  .want = "pod.yaml:8:51: spec.containers[0].resources.limits.cpu: expected at least what requests "
	  "say" },
	{ .text = POD("", "", RESOURCES("requests: {cpu: -1}")),
	  .want = "pod.yaml:8:33: spec.containers[0].resources.requests.cpu: a quantity must not be negative "
	  "('-1')" },
	{ .text = POD("", "", RESOURCES("requests: {memory: lots}")),
	  .want = "pod.yaml:8:36: spec.containers[0].resources.requests.memory: 'lots' is not a size: expected "
	  "512Gi, 100M, 1.5Gi or a number of bytes" },
	{ .text = POD("", "", RESOURCES("requests: [cpu]")),
	  .want = "pod.yaml:8:27: spec.containers[0].resources.requests: expected a map of resources, not "
	  "a list" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: true")),
	  .want = "pod.yaml:8:42: spec.containers[0].resources.limits.nvidia.com/gpu: expected a quantity, "
	  "not true or false" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 1, aliyun.com/gpu-mem: 2")),
	  .want = "pod.yaml:5:3: spec: expected devices in one dialect: nvidia.com/gpu and "
	  "aliyun.com/gpu-mem cannot be asked together" },
	{ .text = POD("", "", LIMITS("nvidia.com/mig-1g.5gb: 1, nvidia.com/mig-2g.10gb: 1")),
	  .want = "pod.yaml:8:76: spec.containers[0].resources.limits.nvidia.com/mig-2g.10gb: expected one "
	  "MIG profile in a pod, this one also requests 1g.5gb" },
	{ .text = POD("", "", LIMITS("nvidia.com/mig-big: 1")),
	  .want = "pod.yaml:8:46: spec.containers[0].resources.limits.nvidia.com/mig-big: expected a MIG "
	  "profile such as nvidia.com/mig-1g.10gb" },
	{ .text = POD("", "", LIMITS("nvidia.com/mig-1g.5gb.shared: 2")),
	  .want = "pod.yaml:8:56: spec.containers[0].resources.limits.nvidia.com/mig-1g.5gb.shared: "
	  "expected 1: several replicas may be of the same instance" },
	{ .text = POD("", "", LIMITS("nvidia.com/mig-1g.5gb: 0")),
	  .want = "pod.yaml:8:49: spec.containers[0].resources.limits.nvidia.com/mig-1g.5gb: expected 1 to "
	  "1024 instances" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: 150, tencent.com/vcuda-memory: 30")),
	  .want = "pod.yaml:8:50: spec.containers[0].resources.limits.tencent.com/vcuda-core: expected 1 "
	  "to 99 (percent of one device) or a multiple of 100 (whole devices): core above 100 must "
	  "be a multiple of 100, such as 100 or 200" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: 0, tencent.com/vcuda-memory: 15")),
	  .want = "pod.yaml:8:79: spec.containers[0].resources.limits.tencent.com/vcuda-memory: expected "
	  "tencent.com/vcuda-core beside it: both are needed" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: 50")),
	  .want = "pod.yaml:8:50: spec.containers[0].resources.limits.tencent.com/vcuda-core: expected "
	  "tencent.com/vcuda-memory (in blocks of 256 MiB) beside it: both are needed for a part "
	  "of a device" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: 50, tencent.com/vcuda-memory: 0")),
	  .want = "pod.yaml:8:50: spec.containers[0].resources.limits.tencent.com/vcuda-core: expected "
	  "tencent.com/vcuda-memory (in blocks of 256 MiB) beside it: both are needed for a part "
	  "of a device" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-memory: 15")),
	  .want = "pod.yaml:8:52: spec.containers[0].resources.limits.tencent.com/vcuda-memory: expected "
	  "tencent.com/vcuda-core beside it: both are needed" },
	{ .text = POD("", "", LIMITS("requests.example.com/nic: 1")),
	  .want = "pod.yaml:8:52: spec.containers[0].resources.limits.requests.example.com/nic: expected the "
	  "resource without requests., which names it in quotas alone" },
	{ .text = POD("", "", LIMITS("hugepages-a/cores: 30")),
	  .want = "pod.yaml:8:45: spec.containers[0].resources.limits.hugepages-a/cores: expected the size of a page in the name, such as "
	  "hugepages-2Mi" },
	{ .text = POD("", "", LIMITS("hugepages-2Mi: 3Mi")),
	  .want = "pod.yaml:8:41: spec.containers[0].resources.limits.hugepages-2Mi: expected a multiple of 2Mi, such as 4Mi" },
	{ .text = POD("", "", LIMITS("kubernetes.io/nic: 1")),
	  .want = "pod.yaml:8:45: spec.containers[0].resources.limits.kubernetes.io/nic: expected an extended "
	  "resource, whose domain does not end in kubernetes.io: those names are Kubernetes' own" },
	{ .text = POD("", "", LIMITS("node.kubernetes.io/nic: 1")),
	  .want = "pod.yaml:8:50: spec.containers[0].resources.limits.node.kubernetes.io/nic: expected an "
	  "extended resource, whose domain does not end in kubernetes.io: those names are Kubernetes' own" },
	{ .text = POD("", "", LIMITS("aliyun.com/gpu-mem: 5Gi")),
	  .want = "pod.yaml:8:46: spec.containers[0].resources.limits.aliyun.com/gpu-mem: expected a whole "
	  "number without a unit, not '5Gi': that is 5" },
	{ .text = POD("", "", LIMITS("aliyun.com/gpu-mem: 0")),
	  .want = "pod.yaml:8:46: spec.containers[0].resources.limits.aliyun.com/gpu-mem: expected at "
	  "least 1 (GiB of one device)" },
	{ .text = POD("", "", LIMITS("aliyun.com/gpu-mem: 3")) "  - {name: d, image: i, resources: {limits: {aliyun.com/gpu-mem: 2}}}\n",
	  .want = "pod.yaml:9:5: spec.containers[1]: expected one container to request all of "
	  "aliyun.com/gpu-mem: only one can have a share of a device" },
	{ .text = POD("", "", LIMITS("tencent.com/vcuda-core: 30, tencent.com/vcuda-memory: 3")) "  - {name: d, image: i, resources: {limits: {tencent.com/vcuda-core: 20, " "tencent.com/vcuda-memory: 2}}}\n",
	  .want = "pod.yaml:6:5: spec.containers[0]: expected one container to request all of "
	  "tencent.com/vcuda-core: only one can have a share of a device" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "spec:\n"
	  "  initContainers: [{name: i, resources: {limits: {tencent.com/vcuda-core: 150}}}]\n"
	  "  containers: [{name: a}]\n",
	  .want = "pod.yaml:4:75: spec.initContainers[0].resources.limits.tencent.com/vcuda-core: expected "
	  "1 to 99 (percent of one device) or a multiple of 100 (whole devices): core above 100 "
	  "must be a multiple of 100, such as 100 or 200" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 1, nvidia.com/gpucores: 101")),
	  .want = "pod.yaml:8:66: spec.containers[0].resources.limits.nvidia.com/gpucores: expected a "
	  "percentage from 0 to 100: the nearest is 100" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 1, nvidia.com/gpumem: 5, nvidia.com/gpumem-percentage: 5")),
	  .want = "pod.yaml:8:97: spec.containers[0].resources.limits.nvidia.com/gpumem-percentage: "
	  "expected either nvidia.com/gpumem or a percentage, not both" },
	{ .text = POD("", "", LIMITS("nvidia.com/gpu: 2, nvidia.com/gpumem-percentage: 50, nvidia.com/gpucores: 30")),
	  .want = "pod.yaml:8:100: spec.containers[0].resources.limits.nvidia.com/gpucores: "
	  "expected as much as nvidia.com/gpumem-percentage, which is 50, where the pod has several "
	  "devices, or memory in MiB by nvidia.com/gpumem" },
	{ .text = POD(", annotations: {gpu-fraction: \"0.5\"}", "", LIMITS("nvidia.com/gpu: 1")),
	  .want = "pod.yaml:5:3: spec: expected devices in one dialect: nvidia.com/gpu and gpu-fraction "
	  "cannot be asked together" },
	{ .text = POD(", annotations: {gpu-fraction: \"1.5\"}", "", ""),
	  .want = "pod.yaml:3:49: metadata.annotations.gpu-fraction: expected a part of a device from "
	  "\"0.01\" to \"0.99\" in hundredths: the nearest is 0.99" },
	{ .text = POD(", annotations: {gpu-fraction: \"0\"}", "", ""),
	  .want = "pod.yaml:3:49: metadata.annotations.gpu-fraction: expected a part of a device from "
	  "\"0.01\" to \"0.99\" in hundredths: the nearest is 0.01" },
	{ .text = POD(", annotations: {gpu-fraction: half}", "", ""),
	  .want = "pod.yaml:3:49: metadata.annotations.gpu-fraction: expected a part of a device from "
	  "\"0.01\" to \"0.99\" in hundredths" },
	{ .text = POD(", annotations: {gpu-fraction: \"0.5\", gpu-fraction-container-name: nope}", "", ""),
	  .want = "pod.yaml:3:85: metadata.annotations.gpu-fraction-container-name: expected the name of a container, "
	  "not 'nope'" },
	{ .text = POD(", labels: {sharedgpu/gpu_request: \"0.5\"}", "", ""),
	  .want = "pod.yaml:3:53: metadata.labels.sharedgpu/gpu_request: KubeShare is not used: request a part of a device "
	  "by gpus: 0.5, in a manifest by annotation gpu-fraction" },
	{ .text = POD(", annotations: {run.ai/reserve_for_gpu_index: \"1\"}", "", ""),
	  .want = "pod.yaml:3:65: metadata.annotations.run.ai/reserve_for_gpu_index: is set by KAI: request a part of a "
	  "device by gpus: 0.5, in a manifest by annotation gpu-fraction" },
	{ .text = POD(", annotations: {runai/shared-gpu-configmap: m}", "", ""),
	  .want = "pod.yaml:3:63: metadata.annotations.runai/shared-gpu-configmap: is set by KAI: request a part of a "
	  "device by gpus: 0.5, in a manifest by annotation gpu-fraction" },
	{ .text = JOB("", "", "    metadata: {labels: {runai-gpu-group: g}}\n", ""),
	  .want = "pod.yaml:6:42: spec.template.metadata.labels.runai-gpu-group: is set by KAI: request a part of a "
	  "device by gpus: 0.5, in a manifest by annotation gpu-fraction" },
	{ .text = POD(", annotations: {gpu-fraction: \"0.001\"}", "", ""),
	  .want = "pod.yaml:3:49: metadata.annotations.gpu-fraction: expected a part of a device from "
	  "\"0.01\" to \"0.99\" in hundredths: the nearest is 0.01" },
	{ .text = POD(", annotations: {gpu-fraction: \"0.255\"}", "", ""),
	  .want = "pod.yaml:3:49: metadata.annotations.gpu-fraction: expected a part of a device from "
	  "\"0.01\" to \"0.99\" in hundredths: the nearest are 0.25 and 0.26" },
	{ .text = POD(", annotations: {gpu-fraction: \"0.5\", gpu-memory: \"5\"}", "", ""),
	  .want = "pod.yaml:3:68: metadata.annotations.gpu-memory: expected either gpu-fraction or "
	  "gpu-memory, not both" },
	{ .text = POD(", annotations: {gpu-fraction: \"0.5\", gpu-fraction-num-devices: \"2\"}", "", ""),
	  .want = "pod.yaml:3:82: metadata.annotations.gpu-fraction-num-devices: expected \"1\": shares of "
	  "several devices cannot be requested together" },
	{ .text = POD(", annotations: {gpu-memory: 2Gi}", "", ""),
	  .want = "pod.yaml:3:47: metadata.annotations.gpu-memory: expected a whole number without a unit, "
	  "not '2Gi': that is 2048" },
	{ .text = POD("", "  nodeSelector: [a]\n", ""),
	  .want = "pod.yaml:5:17: spec.nodeSelector: expected a map, not a list" },
	{ .text = POD("", "  nodeSelector: {a: [b]}\n", ""),
	  .want = "pod.yaml:5:21: spec.nodeSelector.a: expected a string, not a list" },
	{ .text = POD("", "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " "{nodeSelectorTerms: []}}}\n", ""),
	  .want = "pod.yaml:5:97: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	  ": expected nodeSelectorTerms: a list of at least one term" },
	{ .text = POD("", "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " "{nodeSelectorTerms: [{}]}}}\n", ""),
	  .want = "pod.yaml:5:97: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	  ".nodeSelectorTerms: expected a term with matchExpressions: empty terms match no node" },
	{ .text = POD("", "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Is}]}]}}}\n", ""),
	  .want = "pod.yaml:5:137: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecutio"
	  "n.nodeSelectorTerms[0].matchExpressions[0].operator: expected In, NotIn, Exists, "
	  "DoesNotExist, Gt or Lt, found 'Is'" },
	{ .text = POD("", "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " "{nodeSelectorTerms: [{matchFields: [{key: spec.x, operator: In, values: [a]}]}]}}}\n", ""),
	  .want = "pod.yaml:5:113: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecutio"
	  "n.nodeSelectorTerms[0].matchFields[0]: expected key metadata.name: nodes have no other "
	  "field to match" },
	{ .text = POD("", "  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: " "101, preference: {matchExpressions: []}}]}}\n", ""),
	  .want = "pod.yaml:5:88: spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecutio"
	  "n[0].weight: expected an integer from 1 to 100" },
	{ .text = POD("", "  tolerations: [{key: a, op: Exists}]\n", ""),
	  .want = "pod.yaml:5:26: spec.tolerations[0].op: unknown key of a toleration" },
	{ .text = POD("", "  tolerations: {key: a}\n", ""),
	  .want = "pod.yaml:5:16: spec.tolerations: expected a list, not a map" },
	{ .text = POD("", "  restartPolicy: Sometimes\n", ""),
	  .want = "pod.yaml:5:18: spec.restartPolicy: expected Never, OnFailure or Always, not 'Sometimes'" },
	{ .text = POD("", "  activeDeadlineSeconds: 0\n", ""),
	  .want = "pod.yaml:5:26: spec.activeDeadlineSeconds: expected an integer from 1 to 2147483647" },
	{ .text = POD("", "  terminationGracePeriodSeconds: -1\n", ""),
	  .want = "pod.yaml:5:34: spec.terminationGracePeriodSeconds: expected an integer from 0 to "
	  "2147483647" },
	{ .text = POD("", "", "") "    env: [{name: A, value: 1}]\n",
	  .want = "pod.yaml:8:28: spec.containers[0].env[0].value: expected a string, not an integer "
	  "(quote it)" },
	{ .text = POD("", "", "") "    env: [{value: \"1\"}]\n",
	  .want = "pod.yaml:8:11: spec.containers[0].env[0]: expected a name" },
	{ .text = POD("", "", "") "    env: {A: b}\n",
	  .want = "pod.yaml:8:10: spec.containers[0].env: expected a list, not a map" },
	{ .text = POD("", "", "") "    command: run\n",
	  .want = "pod.yaml:8:14: spec.containers[0].command: expected a list, not a string" },
	{ .text = POD("", "", "") "    args: [1]\n",
	  .want = "pod.yaml:8:12: spec.containers[0].args[0]: expected a string, not an integer (quote it)" },
	{ .text = "apiVersion: v1\n"
	  "kind: Pod\n"
	  "spec: {containers: [{name: a, image: [i]}]}\n",
	  .want = "pod.yaml:3:38: spec.containers[0].image: expected a string, not a list" },
	{ .text = JOB("", "  parallelism: 0\n", "", ""),
	  .want = "pod.yaml:5:16: spec.parallelism: expected an integer from 1 to 4096" },
	{ .text = JOB("", "  completions: 0\n", "", ""),
	  .want = "pod.yaml:5:16: spec.completions: expected an integer from 1 to 100000" },
	{ .text = JOB("", "  completions: 1000000\n", "", ""),
	  .want = "pod.yaml:5:16: spec.completions: expected an integer from 1 to 100000" },
	{ .text = JOB("", "  parallelsm: 2\n", "", ""),
	  .want = "pod.yaml:5:3: spec.parallelsm: unknown key; did you mean 'parallelism'?" },
	{ .text = JOB("", "  backoffLimit: -1\n", "", ""),
	  .want = "pod.yaml:5:17: spec.backoffLimit: expected an integer from 0 to 1000" },
	{ .text = JOB("", "  completionMode: Random\n", "", ""),
	  .want = "pod.yaml:5:19: spec.completionMode: expected NonIndexed or Indexed, not 'Random'" },
	{ .text = JOB("", "", "", "      restartPolicy: Always\n"),
	  .want = "pod.yaml:7:22: spec.template.spec.restartPolicy: expected Never or OnFailure, not "
	  "'Always'" },
	{ .text = JOB("", "  parallelism: two\n", "", ""),
	  .want = "pod.yaml:5:16: spec.parallelism: expected an integer from 1 to 4096" },
	{ .text = "apiVersion: batch/v1\n"
	  "kind: Job\n"
	  "metadata: {name: j}\n"
	  "spec: {parallelism: 1}\n",
	  .want = "pod.yaml:4:7: spec.template: expected a map with metadata and spec" },
	{ .text = "apiVersion: batch/v1\n"
	  "kind: Job\n"
	  "metadata: {name: j}\n"
	  "spec: {template: {metadata: {}}}\n",
	  .want = "pod.yaml:4:18: spec.template.spec: expected a map with containers" },
	{ .text = JOB("", "", "", "      nodeName: n1\n"),
	  .want = "pod.yaml:7:17: spec.template.spec.nodeName: gpuqd chooses the node: request one with "
	  "nodeSelector or nodeAffinity" },
	{ .text = JOB(", labels: {kueue.x-k8s.io/max-exec-time-seconds: \"soon\"}", "", "", ""),
	  .want = "pod.yaml:3:11: metadata: kueue.x-k8s.io/max-exec-time-seconds: expected seconds" },
	{ .text = JOB(", annotations: {kueue.x-k8s.io/podset-slice-size: \"2\"}", "", "", ""),
	  .want = "pod.yaml:3:11: metadata: kueue.x-k8s.io/podset-slice-size: expected a number of pods, and "
	  "podset-slice-required-topology beside it" },
	{ .text = JOB(", annotations: {kueue.x-k8s.io/job-min-parallelism: \"2\"}", "", "", ""),
	  .want = "pod.yaml:3:11: metadata: kueue.x-k8s.io/job-min-parallelism: expected 1 to parallelism" },
	{ .text = POD("", "", "") "---\n" POD("", "  nodeName: n1\n", ""),
	  .want = "pod.yaml:13:13: spec.nodeName: gpuqd chooses the node: request one with nodeSelector or "
	  "nodeAffinity" },
	{ .text = "apiVersion: v1\n"
	  "kind: List\n"
	  "items:\n"
	  "- apiVersion: v1\n"
	  "  kind: Pod\n"
	  "  metadata: {name: p}\n"
	  "  spec:\n"
	  "    nodeName: n1\n"
	  "    containers:\n"
	  "    - name: c\n"
	  "      image: i\n",
	  .want = "pod.yaml:8:15: items[0].spec.nodeName: gpuqd chooses the node: request one with "
	  "nodeSelector or nodeAffinity" },
	{ .text = POD("", "", ""),
	  .want = "--gpus: the manifest says this itself: change it there",
	  .argv = { "--gpus=2" } },
	{ .text = POD("", "", ""),
	  .want = "--image: the manifest says this itself: change it there",
	  .argv = { "--image=x" } },
	{ .text = POD("", "", ""),
	  .want = "--env: the manifest says this itself: change it there",
	  .argv = { "--env=A=b" } },
};
/* clang-format on */

SPEC_CASES(spec_manifest, accepts, accepted)
{
	spec_check_case("pod.yaml", &accepted[*ix]);
}

SPEC_CASES(spec_manifest, refuses, refused)
{
	spec_check_case("pod.yaml", &refused[*ix]);
}
