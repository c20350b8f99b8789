/* RayJob: a gang where its templates have the commands, else refused with what to write instead. */
#include "tests/unit/spec_help.h"

/* clang-format off */
#define RAY(spec) "apiVersion: ray.io/v1\nkind: RayJob\nspec: {" spec "}\n"
/* clang-format on */

/* clang-format off */
#define OR ", or write the commands into the templates, with the annotation ray.io/overwrite-container-cmd"
#define OWN "metadata: {annotations: {ray.io/overwrite-container-cmd: 'true'}}"
#define TMPL(container) "template: {" OWN ", spec: {containers: [{name: c, image: i" container "}]}}"
#define OWNS(spec, cluster) \
	"apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: r}\nspec:\n" spec "  rayClusterSpec:\n" cluster
#define HEAD(fields, container) "    headGroupSpec: {" fields TMPL(container) "}\n"
#define WORKERS(fields, container) "    workerGroupSpecs:\n    - {" fields TMPL(container) "}\n"
#define VARS(group) "\"RAY_CLUSTER_NAME\":\"r\",\"RAY_NODE_TYPE_NAME\":\"" group "\",\"RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE\":\"1\"}"
#define IN_HEAD(port) "\"env\":{\"RAY_PORT\":\"" port "\",\"RAY_ADDRESS\":\"127.0.0.1:" port "\"," VARS("headgroup")
#define IN_WORKER(port, group) \
	"\"env\":{\"FQ_RAY_IP\":\"$(MASTER_ADDR)\",\"RAY_IP\":\"$(MASTER_ADDR)\",\"RAY_PORT\":\"" port "\"," \
	"\"RAY_ADDRESS\":\"$(MASTER_ADDR):" port "\"," VARS(group)

static const struct spec_case accepted[] = {
	{ .text = OWNS("", HEAD("", ", command: [run]")),
	  .want = "{\"name\":\"r\",\"groups\":[{\"name\":\"head\",\"cpus\":0,\"image\":\"i\",\"command\":[\"run\"]," IN_HEAD("6379") "}]}",
	  .warns = "" },
	{ .text = OWNS("  backoffLimit: 2\n  activeDeadlineSeconds: 60\n",
		       HEAD("rayStartParams: {}, ", ", args: [run], ports: [{name: gcs-server, containerPort: 6380}]")
		       WORKERS("groupName: w, replicas: 2, minReplicas: 1, maxReplicas: 3, numOfHosts: 2, ",
			       ", command: [work], resources: {limits: {nvidia.com/gpu: 1}}")),
	  .want = "{\"name\":\"r\",\"time\":\"1m\",\"retry\":{\"limit\":2,\"on\":[\"infra\",\"failure\",\"oom\"]},\"groups\":[{\"name\":\"head\","
	  "\"cpus\":0,\"image\":\"i\",\"args\":[\"run\"]," IN_HEAD("6380") "},{\"name\":\"w\",\"pods\":4,\"gpus\":1,\"cpus\":0,\"image\":\"i\","
	  "\"command\":[\"work\"]," IN_WORKER("6380", "w") "}]}",
	  .warns = "" },
	{ .text = OWNS("", HEAD("rayStartParams: {port: '7000'}, ", ", command: [run]")
		       WORKERS("groupName: w, replicas: 0, ", ", command: [work]")),
	  .want = "{\"name\":\"r\",\"groups\":[{\"name\":\"head\",\"cpus\":0,\"image\":\"i\",\"command\":[\"run\"]," IN_HEAD("7000") "}]}",
	  .warns = "job.yaml:6:37: spec.rayClusterSpec.headGroupSpec.rayStartParams: is not used: the command of the template "
	  "starts Ray\n" },
};
/* clang-format on */

SPEC_CASES(kind_rayjob, accepts, accepted)
{
	spec_check_case("job.yaml", &accepted[*ix]);
}

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = OWNS("  entrypoint: python a.py\n", HEAD("", ", command: [run]")),
	  .want = "job.yaml:5:15: spec.entrypoint: its operator runs it by ray job submit: let the command of the head's "
	  "template run it, and omit it" },
	{ .text = OWNS("  entrypoints: a\n", HEAD("", ", command: [run]")),
	  .want = "job.yaml:5:3: spec.entrypoints: unknown key; did you mean 'entrypoint'?" },
	{ .text = OWNS("", HEAD("", "")),
	  .want = "job.yaml:6:119: spec.rayClusterSpec.headGroupSpec.template: expected command or args: with "
	  "ray.io/overwrite-container-cmd the first container starts Ray itself" },
	{ .text = OWNS("", HEAD("", ", command: [sh, -c, $KUBERAY_GEN_RAY_START_CMD]")),
	  .want = "job.yaml:6:157: spec.rayClusterSpec.headGroupSpec.template: KUBERAY_GEN_RAY_START_CMD is made by the operator "
	  "from rayStartParams: write ray start with its options" },
	{ .text = OWNS("", "    enableInTreeAutoscaling: true\n" HEAD("", ", command: [run]")),
	  .want = "job.yaml:6:30: spec.rayClusterSpec.enableInTreeAutoscaling: gpuqd starts all pods together: omit it, or submit a "
	  "job file with pods: {min: M, max: N}" },
	{ .text = OWNS("", HEAD("", ", command: [run]") WORKERS("replicas: 1, ", ", command: [work]")),
	  .want = "job.yaml:8:7: spec.rayClusterSpec.workerGroupSpecs[0].groupName: expected a name" },
	{ .text = OWNS("", HEAD("", ", command: [run]") WORKERS("groupName: head, ", ", command: [work]")),
	  .want = "job.yaml:8:19: spec.rayClusterSpec.workerGroupSpecs[0].groupName: expected another name: 'head' is already a group of the job" },
	{ .text = OWNS("", HEAD("", ", command: [run]") "    workerGroupSpecs: [{groupName: w, rayStartParams: {}, template: {spec: {containers: []}}}]\n"),
	  .want = "job.yaml:7:55: spec.rayClusterSpec.workerGroupSpecs[0].rayStartParams: its operator writes the commands of the "
	  "pods from it: submit a job file with pods: N whose command runs ray start --head in pod 0 (GPUQ_POD_INDEX) and ray start "
	  "--address=$MASTER_ADDR:6379 in the others" OR },
	{ .text = RAY("clusterSelector: {ray.io/cluster: c}"),
	  .want = "job.yaml:3:25: spec.clusterSelector: gpuq starts no work in a Ray cluster that it did "
	  "not start: use ray job submit" },
	{ .text = RAY("entrypoint: run, rayClusterSpec: {headGroupSpec: {rayStartParams: {}}}"),
	  .want = "job.yaml:3:74: spec.rayClusterSpec.headGroupSpec.rayStartParams: its operator writes "
	  "the commands of the pods from it: submit a job file with pods: N whose command runs "
	  "ray start --head in pod 0 (GPUQ_POD_INDEX) and ray start --address=$MASTER_ADDR:6379 "
	  "in the others" OR },
	{ .text = RAY("entrypoint: run, rayClusterSpec: {workerGroupSpecs: []}"),
	  .want = "job.yaml:3:41: spec.rayClusterSpec: its operator writes the commands of the pods from "
	  "it: submit a job file with pods: N whose command runs ray start --head in pod 0 "
	  "(GPUQ_POD_INDEX) and ray start --address=$MASTER_ADDR:6379 in the others" OR },
	{ .text = RAY("entrypoint: run, rayClusterSpec: text"),
	  .want = "job.yaml:3:41: spec.rayClusterSpec: its operator writes the commands of the pods from "
	  "it: submit a job file with pods: N whose command runs ray start --head in pod 0 "
	  "(GPUQ_POD_INDEX) and ray start --address=$MASTER_ADDR:6379 in the others" OR },
	{ .text = RAY("entrypoint: run"),
	  .want = "job.yaml:3:7: spec.rayClusterSpec: its operator writes the commands of the pods from "
	  "it: submit a job file with pods: N whose command runs ray start --head in pod 0 "
	  "(GPUQ_POD_INDEX) and ray start --address=$MASTER_ADDR:6379 in the others" OR },
	{ .text = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: r}\n",
	  .want = "job.yaml:1:1: spec: expected a map" },
	{ .text = "apiVersion: ray.io/v1\nkind: RayCluster\nspec: {}\n",
	  .want = "job.yaml:2:7: kind: a RayCluster is not a job: submit what it runs as a v1 Pod or "
	  "batch/v1 Job" },
	{ .text = "apiVersion: ray.io/v1\nkind: RayJobs\nspec: {}\n",
	  .want = "job.yaml:2:7: kind: expected a Pod, Job, JobSet, PyTorchJob or another kind of job "
	  "(gpuq-job(5)), not 'ray.io/v1 RayJobs'; did you mean RayJob?" },
};
/* clang-format on */

SPEC_CASES(kind_rayjob, refuses, refused)
{
	spec_check_case("job.yaml", &refused[*ix]);
}
