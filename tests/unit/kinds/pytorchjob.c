/* PyTorchJob: a gang of master and workers with its operator's variables. */
#include "tests/unit/kinds/marks.h"

/* clang-format off */
#define JOB(fields, replicas) \
	"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\nspec:\n" fields \
	"  pytorchReplicaSpecs:\n" replicas
#define ROLE_OF(role, fields, container) \
	"    " role ": {" fields "template: {spec: {containers: [{name: c, image: i" container "}]}}}\n"
#define MASTER(fields) ROLE_OF("Master", fields, "")
#define WORKER(fields) ROLE_OF("Worker", fields, "")
/* clang-format on */

/* clang-format off */
static const struct spec_case accepted[] = {
	{ .text = JOB("", MASTER("")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("", WORKER("replicas: 2, ")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"worker\",\"pods\":2,\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("", MASTER("replicas: 1, ") WORKER("replicas: 3, ")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\"}},{\"name\":\"worker\",\"pods\":3,\"cpus\":0,\"image\":\"i\","
	  "\"env\":{\"MASTER_PORT\":\"23456\",\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("", WORKER("replicas: 3, ") MASTER("")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\"}},{\"name\":\"worker\",\"pods\":3,\"cpus\":0,\"image\":\"i\","
	  "\"env\":{\"MASTER_PORT\":\"23456\",\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("", MASTER("") WORKER("replicas: 0, ")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("", "    Master: null\n" WORKER("")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"worker\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("  nprocPerNode: \"2\"\n", MASTER("")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\",\"PET_NPROC_PER_NODE\":\"2\"}}]}",
	  .warns = "" },
	{ .text = JOB("  nprocPerNode: auto\n", MASTER("")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\",\"PET_NPROC_PER_NODE\":\"auto\"}}]}",
	  .warns = "" },
	{ .text = JOB("", ROLE_OF("Master", "", ", ports: [{name: pytorchjob-port, containerPort: 29500}]") WORKER("")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"29500\","
	  "\"PYTHONUNBUFFERED\":\"1\"}},{\"name\":\"worker\",\"cpus\":0,\"image\":\"i\","
	  "\"env\":{\"MASTER_PORT\":\"29500\",\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("", ROLE_OF("Master", "", ", env: [{name: MASTER_PORT, value: \"1\"}]")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"1\","
	  "\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("", ROLE_OF("Worker", "", ", args: [t-worker, at-master-0]")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"worker\",\"cpus\":0,\"image\":\"i\",\"args\":[\"t-worker\",\"at-master-0\"],"
	  "\"env\":{\"MASTER_PORT\":\"23456\",\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("  runPolicy: {backoffLimit: 2, activeDeadlineSeconds: 60, schedulingPolicy: {queue: q}}\n", MASTER("")),
	  .want = "{\"name\":\"t\",\"queue\":\"q\",\"time\":\"1m\",\"retry\":{\"limit\":2,\"on\":[\"infra\",\"failure\","
	  "\"oom\"]},\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("  runPolicy: {cleanPodPolicy: None, schedulingPolicy: {minAvailable: 1}}\n", MASTER("")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "job.yaml:5:70: spec.runPolicy.schedulingPolicy.minAvailable: is not used: all pods "
	  "start together\njob.yaml:5:31: spec.runPolicy.cleanPodPolicy: is not used: the pods go "
	  "when the job has ended\n" },
	{ .text = JOB("", MASTER("restartPolicy: Never, ")),
	  .want = "{\"name\":\"t\",\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\","
	  "\"env\":{\"MASTER_PORT\":\"23456\",\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("  runPolicy: {backoffLimit: 0}\n", MASTER("restartPolicy: ExitCode, ")),
	  .want = "{\"name\":\"t\",\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\","
	  "\"env\":{\"MASTER_PORT\":\"23456\",\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("", MASTER("restartPolicy: Always, ")),
	  .want = "{\"name\":\"t\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"master\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"23456\","
	  "\"PYTHONUNBUFFERED\":\"1\"}}]}",
	  .warns = "job.yaml:6:29: spec.pytorchReplicaSpecs.Master.restartPolicy: a job ends: it is not "
	  "started again after success\n" },
};
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = JOB("  nproc: 2\n", MASTER("")),
	  .want = "job.yaml:5:3: spec.nproc: unknown key" },
	{ .text = JOB("  nprocPerNode: [2]\n", MASTER("")),
	  .want = "job.yaml:5:17: spec.nprocPerNode: expected a number, auto, gpu or cpu" },
	{ .text = JOB("  elasticPolicy: {minReplicas: 1, maxReplicas: 3}\n", MASTER("")),
	  .want = "job.yaml:5:18: spec.elasticPolicy: its rendezvous is the operator's: submit a job "
	  "file with pods: {min: M, max: N}, gpuq-job(5)" },
	{ .text = JOB("  runPolicy: {backofLimit: 1}\n", MASTER("")),
	  .want = "job.yaml:5:15: spec.runPolicy.backofLimit: unknown key; did you mean 'backoffLimit'?" },
	{ .text = JOB("  runPolicy: {backoffLimit: many}\n", MASTER("")),
	  .want = "job.yaml:5:29: spec.runPolicy.backoffLimit: expected an integer from 0 to 1000" },
	{ .text = JOB("  runPolicy: {activeDeadlineSeconds: 0}\n", MASTER("")),
	  .want = "job.yaml:5:38: spec.runPolicy.activeDeadlineSeconds: expected an integer from 1 to "
	  "2147483647" },
	{ .text = JOB("  runPolicy: {cleanPodPolicy: Some}\n", MASTER("")),
	  .want = "job.yaml:5:31: spec.runPolicy.cleanPodPolicy: expected None, Running or All, not "
	  "'Some'" },
	{ .text = JOB("  runPolicy: {ttlSecondsAfterFinished: -1}\n", MASTER("")),
	  .want = "job.yaml:5:40: spec.runPolicy.ttlSecondsAfterFinished: expected an integer from 0 to "
	  "2147483647" },
	{ .text = JOB("  runPolicy: {schedulingPolicy: {queue: a b}}\n", MASTER("")),
	  .want = "job.yaml:5:41: spec.runPolicy.schedulingPolicy.queue: expected the name of a queue, "
	  "not 'a b'" },
	{ .text = JOB("  runPolicy: {schedulingPolicy: q}\n", MASTER("")),
	  .want = "job.yaml:5:33: spec.runPolicy.schedulingPolicy: expected a map, not a string" },
	{ .text = JOB("  runPolicy: [a]\n", MASTER("")),
	  .want = "job.yaml:5:14: spec.runPolicy: expected a map, not a list" },
	{ .text = JOB("", "    []\n"),
	  .want = "job.yaml:6:5: spec.pytorchReplicaSpecs: expected a map, not a list" },
	{ .text = JOB("", "    {}\n"),
	  .want = "job.yaml:6:5: spec.pytorchReplicaSpecs: expected Master or Worker, or both" },
	{ .text = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec: {}\n",
	  .want = "job.yaml:3:7: spec.pytorchReplicaSpecs: expected a map with Master or Worker, or both" },
	{ .text = "apiVersion: kubeflow.org/v2\nkind: PyTorchJob\nspec: {}\n",
	  .want = "job.yaml:2:7: kind: expected PyTorchJob of kubeflow.org/v1, not of 'kubeflow.org/v2'" },
	{ .text = JOB("", ROLE_OF("Chief", "", "")),
	  .want = "job.yaml:6:5: spec.pytorchReplicaSpecs.Chief: unknown key" },
	{ .text = JOB("", MASTER("replicas: 2, ")),
	  .want = "job.yaml:6:24: spec.pytorchReplicaSpecs.Master.replicas: expected 1" },
	{ .text = JOB("", MASTER("replicas: 0, ")),
	  .want = "job.yaml:6:24: spec.pytorchReplicaSpecs.Master.replicas: expected 1" },
	{ .text = JOB("", WORKER("replicas: 0, ")),
	  .want = "job.yaml:6:5: spec.pytorchReplicaSpecs: expected Master or Worker, or both" },
	{ .text = JOB("", WORKER("replicas: -1, ")),
	  .want = "job.yaml:6:24: spec.pytorchReplicaSpecs.Worker.replicas: expected an integer from 0 "
	  "to 4096" },
	{ .text = JOB("", WORKER("replicas: two, ")),
	  .want = "job.yaml:6:24: spec.pytorchReplicaSpecs.Worker.replicas: expected an integer from 0 "
	  "to 4096" },
	{ .text = JOB("", WORKER("replica: 2, ")),
	  .want = "job.yaml:6:14: spec.pytorchReplicaSpecs.Worker.replica: unknown key; did you mean "
	  "'replicas'?" },
	{ .text = JOB("", WORKER("restartPolicy: Sometimes, ")),
	  .want = "job.yaml:6:29: spec.pytorchReplicaSpecs.Worker.restartPolicy: expected Always, "
	  "OnFailure, Never or ExitCode, not 'Sometimes'" },
	{ .text = JOB("", "    Worker: [a]\n"),
	  .want = "job.yaml:6:13: spec.pytorchReplicaSpecs.Worker: expected a map with replicas and "
	  "template" },
	{ .text = JOB("", "    Worker: {replicas: 2}\n"),
	  .want = "job.yaml:6:13: spec.pytorchReplicaSpecs.Worker.template: expected a map with metadata "
	  "and spec" },
	{ .text = JOB("", "    Worker: {template: [a]}\n"),
	  .want = "job.yaml:6:24: spec.pytorchReplicaSpecs.Worker.template: expected a map, not a list" },
	{ .text = JOB("", "    Worker: {template: {metadata: {}}}\n"),
	  .want = "job.yaml:6:24: spec.pytorchReplicaSpecs.Worker.template.spec: expected a map with "
	  "containers" },
	{ .text = JOB("", "    Worker: {template: {spec: a text that is no map}}\n"),
	  .want = "job.yaml:6:31: spec.pytorchReplicaSpecs.Worker.template.spec: expected a map with "
	  "containers" },
	{ .text = JOB("", "    Worker: {template: {spec: {containers: a text that is no list}}}\n"),
	  .want = "job.yaml:6:44: spec.pytorchReplicaSpecs.Worker.template.spec.containers: expected a "
	  "list, not a string" },
	{ .text = JOB("", ROLE_OF("Worker", "", ", ports: a text that is no list, args: a text that is no list")),
	  .want = "job.yaml:6:102: spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].args: "
	  "expected a list, not a string" },
	{ .text = JOB("", ROLE_OF("Worker", "", ", args: [--rdzv=t-master-0:29400]")),
	  .want = "job.yaml:6:72: spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].args[0]: "
	  "names a pod (t-master-N) by a Service that only its operator makes: use MASTER_ADDR, "
	  "which gpuqd sets" },
	{ .text = JOB("", MASTER("") ROLE_OF("Worker", "", ", env: [{name: PEER, value: t-worker-1}]")),
	  .want = "job.yaml:7:91: spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].env[0]: "
	  "names a pod (t-worker-N) by a Service that only its operator makes: use MASTER_ADDR, "
	  "which gpuqd sets" },
};
/* clang-format on */

/* clang-format off */
static const struct mark_case marks[] = {
	{ JOB("", MASTER("") WORKER("")),
	  0, "labels", "training.kubeflow.org/replica-type", "master" },
	{ JOB("", MASTER("") WORKER("")),
	  1, "labels", "training.kubeflow.org/replica-type", "worker" },
	{ JOB("", MASTER("") WORKER("")),
	  1, "labels", "training.kubeflow.org/job-name", "t" },
};
/* clang-format on */

SPEC_CASES(kind_pytorchjob, accepts, accepted)
{
	spec_check_case("job.yaml", &accepted[*ix]);
}

SPEC_CASES(kind_pytorchjob, refuses, refused)
{
	spec_check_case("job.yaml", &refused[*ix]);
}

SPEC_CASES(kind_pytorchjob, marks_pods, marks)
{
	mark_check(&marks[*ix]);
}
