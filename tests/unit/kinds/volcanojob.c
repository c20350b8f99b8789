/* Volcano's Job: a group for each task, with its plugins' variables. */
#include "tests/unit/kinds/marks.h"

/* clang-format off */
#define JOB(fields, tasks) \
	"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\nspec:\n" fields \
	"  tasks:\n" tasks
#define TASK_OF(fields, pod, container) \
	"  - {" fields "template: {spec: {" pod "containers: [{name: c, image: i" container "}]}}}\n"
#define TASK(fields) TASK_OF(fields, "", "")
#define NEVER(fields) TASK_OF(fields, "restartPolicy: Never, ", "")
/* clang-format on */

/* clang-format off */
static const struct spec_case accepted[] = {
	{ .text = JOB("", TASK("")),
	  .want = "{\"name\":\"v\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", NEVER("name: a, replicas: 3, ")),
	  .want = "{\"name\":\"v\",\"pods\":3,\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("  minAvailable: 2\n", NEVER("name: a, replicas: 3, ")),
	  .want = "{\"name\":\"v\",\"pods\":{\"min\":2,\"max\":3},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("  minAvailable: 3\n", NEVER("name: m, ") NEVER("name: w, replicas: 4, minAvailable: 2, ")),
	  .want = "{\"name\":\"v\",\"groups\":[{\"name\":\"m\",\"cpus\":0,\"image\":\"i\"},{\"name\":\"w\",\"pods\":{\"min\":2,"
	  "\"max\":4},\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "" },
	{ .text = JOB("", NEVER("") NEVER("replicas: 2, ")),
	  .want = "{\"name\":\"v\",\"groups\":[{\"name\":\"default0\",\"cpus\":0,\"image\":\"i\"},{\"name\":\"default1\","
	  "\"pods\":2,\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "" },
	{ .text = JOB("  plugins: {env: []}\n", NEVER("name: a, ")),
	  .want = "{\"name\":\"v\",\"cpus\":0,\"image\":\"i\",\"env\":{\"VC_TASK_INDEX\":\"0\",\"VK_TASK_INDEX\":\"0\"}}",
	  .warns = "" },
	{ .text = JOB("  plugins: {env: [], svc: []}\n", NEVER("name: p.s-1, ") NEVER("name: w, replicas: 2, ")),
	  .want = "{\"name\":\"v\",\"groups\":[{\"name\":\"p.s-1\",\"cpus\":0,\"image\":\"i\","
	  "\"env\":{\"VC_TASK_INDEX\":\"$(GPUQ_GROUP_INDEX)\",\"VK_TASK_INDEX\":\"$(GPUQ_GROUP_INDEX)\","
	  "\"VC_P_S_1_NUM\":\"1\",\"VC_W_NUM\":\"2\"}},{\"name\":\"w\",\"pods\":2,\"cpus\":0,\"image\":\"i\","
	  "\"env\":{\"VC_TASK_INDEX\":\"$(GPUQ_GROUP_INDEX)\",\"VK_TASK_INDEX\":\"$(GPUQ_GROUP_INDEX)\","
	  "\"VC_P_S_1_NUM\":\"1\",\"VC_W_NUM\":\"2\"}}]}",
	  .warns = "" },
	{ .text = JOB("  plugins: {pytorch: [--master=m, --port=1]}\n", NEVER("name: m, ") NEVER("name: w, replicas: 2, ")),
	  .want = "{\"name\":\"v\",\"groups\":[{\"name\":\"m\",\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"1\"}},"
	  "{\"name\":\"w\",\"pods\":2,\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_PORT\":\"1\"}}]}",
	  .warns = "" },
	{ .text = JOB("  policies: [{event: PodFailed, action: RestartJob}]\n", NEVER("name: a, ")),
	  .want = "{\"name\":\"v\",\"retry\":{\"limit\":3,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("  maxRetry: 5\n", NEVER("name: a, policies: [{event: PodFailed, action: RestartJob}], ")),
	  .want = "{\"name\":\"v\",\"retry\":{\"limit\":5,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("  maxRetry: 5\n  policies: [{event: PodEvicted, action: RestartJob}]\n", NEVER("name: a, ")),
	  .want = "{\"name\":\"v\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("  policies: [{event: PodFailed, action: AbortJob}, {event: TaskFailed, action: RestartTask}]\n", NEVER("name: a, ")),
	  .want = "{\"name\":\"v\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "job.yaml:5:52: spec.policies[1]: is not used: a job that failed is tried again as a "
	  "whole, or ends\n" },
	{ .text = JOB("  queue: q\n  schedulerName: volcano\n  priorityClassName: high\n", NEVER("name: a, topologyPolicy: none, ")),
	  .want = "{\"name\":\"v\",\"queue\":\"q\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "job.yaml:7:22: spec.priorityClassName: is not used: it comes from the "
	  "queue\njob.yaml:9:31: spec.tasks[0].topologyPolicy: is not used for placement\n" },
	{ .text = JOB("", TASK_OF("name: w, ", "restartPolicy: Never, ", ", args: [v-w-x, av-w-0]")),
	  .want = "{\"name\":\"v\",\"cpus\":0,\"image\":\"i\",\"args\":[\"v-w-x\",\"av-w-0\"]}",
	  .warns = "" },
};
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = JOB("  task: 1\n", TASK("name: a, ")),
	  .want = "job.yaml:5:3: spec.task: unknown key; did you mean 'tasks'?" },
	{ .text = JOB("  volumes: [{mountPath: /x}]\n", TASK("name: a, ")),
	  .want = "job.yaml:5:12: spec.volumes: expected volumes and volumeMounts in the templates" },
	{ .text = JOB("  minSuccess: 1\n", TASK("name: a, ")),
	  .want = "job.yaml:5:15: spec.minSuccess: a job has ended when all of its pods have: omit it" },
	{ .text = JOB("  networkTopology: {mode: hard}\n", TASK("name: a, ")),
	  .want = "job.yaml:5:20: spec.networkTopology: use topology in a job file, gpuq-job(5)" },
	{ .text = JOB("  maxRetry: -1\n", TASK("name: a, ")),
	  .want = "job.yaml:5:13: spec.maxRetry: expected an integer from 0 to 1000" },
	{ .text = JOB("  queue: a b\n", TASK("name: a, ")),
	  .want = "job.yaml:5:10: spec.queue: expected the name of a queue, not 'a b'" },
	{ .text = JOB("  queue: [q]\n", TASK("name: a, ")),
	  .want = "job.yaml:5:10: spec.queue: expected a string, not a list" },
	{ .text = JOB("  ttlSecondsAfterFinished: soon\n", TASK("name: a, ")),
	  .want = "job.yaml:5:28: spec.ttlSecondsAfterFinished: expected an integer from 0 to 2147483647" },
	{ .text = JOB("  minAvailable: 0\n", TASK("name: a, ")),
	  .want = "job.yaml:5:17: spec.minAvailable: expected an integer from 1 to 1" },
	{ .text = JOB("  minAvailable: 3\n", TASK("name: a, replicas: 2, ")),
	  .want = "job.yaml:5:17: spec.minAvailable: expected an integer from 1 to 2" },
	{ .text = JOB("  minAvailable: 2\n", TASK("name: a, ") TASK("name: b, replicas: 2, ")),
	  .want = "job.yaml:5:17: spec.minAvailable: expected 3, the pods of all tasks: give fewer as "
	  "minAvailable of each task" },
	{ .text = JOB("  plugins: {ssh: []}\n", TASK("name: a, ")),
	  .want = "job.yaml:5:18: spec.plugins.ssh: gpuqd makes no keys for ssh: let the pods find one "
	  "another by MASTER_ADDR and GPUQ_NODELIST" },
	{ .text = JOB("  plugins: {mpi: []}\n", TASK("name: a, ")),
	  .want = "job.yaml:5:18: spec.plugins.mpi: gpuqd makes no list of hosts for mpirun: start it "
	  "with srun --mpi=launch, gpuq-slurm(7)" },
	{ .text = JOB("  plugins: {tensorflow: []}\n", TASK("name: a, ")),
	  .want = "job.yaml:5:25: spec.plugins.tensorflow: TF_CONFIG is this plugin's: make it of "
	  "GPUQ_GROUP, GPUQ_GROUP_INDEX and GPUQ_NODELIST" },
	{ .text = JOB("  plugins: {ray: []}\n", TASK("name: a, ")),
	  .want = "job.yaml:5:18: spec.plugins.ray: gpuqd does not start Ray: let the command run ray "
	  "start" },
	{ .text = JOB("  plugins: {hcclrank: []}\n", TASK("name: a, ")),
	  .want = "job.yaml:5:23: spec.plugins.hcclrank: gpuqd gives no ranks of HCCL" },
	{ .text = JOB("  plugins: {pytorh: []}\n", TASK("name: a, ")),
	  .want = "job.yaml:5:13: spec.plugins.pytorh: unknown key; did you mean 'pytorch'?" },
	{ .text = JOB("  plugins: [env]\n", TASK("name: a, ")),
	  .want = "job.yaml:5:12: spec.plugins: expected a map, not a list" },
	{ .text = JOB("  plugins: {pytorch: [--master=m]}\n", TASK("name: w, ") TASK("name: m, ")),
	  .want = "job.yaml:8:12: spec.tasks[1].name: expected the master's task first: its pod has rank "
	  "0" },
	{ .text = JOB("  plugins: {pytorch: []}\n", TASK("name: w, ") TASK("name: master, ")),
	  .want = "job.yaml:8:12: spec.tasks[1].name: expected the master's task first: its pod has rank "
	  "0" },
	{ .text = JOB("  policies: [{event: TaskCompleted, action: CompleteJob}]\n", TASK("name: a, ")),
	  .want = "job.yaml:5:45: spec.policies[0].action: a job has ended when all of its pods have: "
	  "let the others end with it, and omit this policy" },
	{ .text = JOB("  policies: restart\n", TASK("name: a, ")),
	  .want = "job.yaml:5:13: spec.policies: expected a list, not a string" },
	{ .text = JOB("", TASK("name: a, policies: [{event: TaskCompleted, action: CompleteJob}], ")),
	  .want = "job.yaml:6:57: spec.tasks[0].policies[0].action: a job has ended when all of its pods "
	  "have: let the others end with it, and omit this policy" },
	{ .text = JOB("", "    []\n"),
	  .want = "job.yaml:6:5: spec.tasks: expected a list of 1 to 32 tasks" },
	{ .text = JOB("", "    a: b\n"),
	  .want = "job.yaml:6:5: spec.tasks: expected a list, not a map" },
	{ .text = JOB("", "  - a\n"),
	  .want = "job.yaml:6:5: spec.tasks[0]: expected a map with replicas and template" },
	{ .text = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {}\n",
	  .want = "job.yaml:3:7: spec.tasks: expected a list of 1 to 32 tasks" },
	{ .text = JOB("", TASK("name: a, replicas: 0, ")),
	  .want = "job.yaml:6:25: spec.tasks[0].replicas: expected an integer from 1 to 4096" },
	{ .text = JOB("", TASK("name: a, replicas: two, ")),
	  .want = "job.yaml:6:25: spec.tasks[0].replicas: expected an integer from 1 to 4096" },
	{ .text = JOB("", TASK("name: a, replicas: 2, minAvailable: 3, ")),
	  .want = "job.yaml:6:42: spec.tasks[0].minAvailable: expected an integer from 1 to 2" },
	{ .text = JOB("", TASK("name: a b, ")),
	  .want = "job.yaml:6:12: spec.tasks[0].name: expected a name" },
	{ .text = JOB("", TASK("name: 1, ")),
	  .want = "job.yaml:6:12: spec.tasks[0].name: expected a string, not an integer (quote it)" },
	{ .text = JOB("", TASK("names: a, ")),
	  .want = "job.yaml:6:6: spec.tasks[0].names: unknown key; did you mean 'name'?" },
	{ .text = JOB("", TASK("name: a, dependsOn: {name: [b]}, ")),
	  .want = "job.yaml:6:26: spec.tasks[0].dependsOn: the pods of a job start together: submit two "
	  "jobs, the second with --dependency" },
	{ .text = JOB("", TASK("name: a, partitionPolicy: {totalPartitions: 2}, ")),
	  .want = "job.yaml:6:32: spec.tasks[0].partitionPolicy: use topology in a job file, gpuq-job(5)" },
	{ .text = JOB("", TASK("name: a, ") TASK("name: a, ")),
	  .want = "job.yaml:7:12: spec.tasks[1].name: expected another name: 'a' is already a group of "
	  "the job" },
	{ .text = JOB("", "  - {name: a}\n"),
	  .want = "job.yaml:6:5: spec.tasks[0].template: expected a map with metadata and spec" },
	{ .text = JOB("", "  - {name: a, template: text}\n"),
	  .want = "job.yaml:6:25: spec.tasks[0].template: expected a map, not a string" },
	{ .text = JOB("", "  - {name: a, template: {metadata: {}}}\n"),
	  .want = "job.yaml:6:25: spec.tasks[0].template.spec: expected a map with containers" },
	{ .text = JOB("", "  - {name: a, template: {spec: {containers: a text that is no list}}}\n"),
	  .want = "job.yaml:6:45: spec.tasks[0].template.spec.containers: expected a list, not a string" },
	{ .text = JOB("", TASK_OF("name: a, ", "restartPolicy: Sometimes, ", "")),
	  .want = "job.yaml:6:48: spec.tasks[0].template.spec.restartPolicy: expected Never, OnFailure "
	  "or Always, not 'Sometimes'" },
	{ .text = JOB("", TASK_OF("name: a, ", "", ", args: a text that is no list")),
	  .want = "job.yaml:6:72: spec.tasks[0].template.spec.containers[0].args: expected a list, not a "
	  "string" },
	{ .text = JOB("", TASK_OF("name: a, ", "", ", args: [--hosts, /etc/volcano/a.host]")),
	  .want = "job.yaml:6:82: spec.tasks[0].template: /etc/volcano is written by Volcano's "
	  "controller and not by gpuqd: use GPUQ_NODELIST, MASTER_ADDR and GPUQ_GROUP_INDEX" },
	{ .text = JOB("", TASK_OF("name: a, ", "", ", command: [ssh, v-a-0.v]")),
	  .want = "job.yaml:6:81: spec.tasks[0].template.spec.containers[0].command[1]: names a pod "
	  "(v-a-N) by a Service that only its operator makes: use MASTER_ADDR, which gpuqd sets" },
	{ .text = JOB("", TASK_OF("name: a, ", "", ", env: [{name: PEER, value: v-a-1}]")),
	  .want = "job.yaml:6:92: spec.tasks[0].template.spec.containers[0].env[0]: names a pod (v-a-N) "
	  "by a Service that only its operator makes: use MASTER_ADDR, which gpuqd sets" },
	{ .text = JOB("  plugins: {pytorch: [--port=high]}\n", TASK("name: master, ")),
	  .want = "job.yaml:5:22: spec.plugins.pytorch: expected --port=N, from 1 to 65535, not 'high'" },
	{ .text = JOB("", TASK("name: default1, ") TASK("")),
	  .want = "job.yaml:7:5: spec.tasks[1].name: expected another name: 'default1' is already a "
	  "group of the job" },
};
/* clang-format on */

/* clang-format off */
static const struct mark_case marks[] = {
	{ JOB("", TASK("name: a, ") TASK("name: b, ")),
	  1, "labels", "volcano.sh/task-spec", "b" },
	{ JOB("", TASK("name: a, ") TASK("name: b, ")),
	  1, "annotations", "volcano.sh/task-spec", "b" },
	{ JOB("", TASK("name: a, ")),
	  0, "labels", "volcano.sh/job-name", "v" },
};
/* clang-format on */

SPEC_CASES(kind_volcanojob, accepts, accepted)
{
	spec_check_case("job.yaml", &accepted[*ix]);
}

SPEC_CASES(kind_volcanojob, refuses, refused)
{
	spec_check_case("job.yaml", &refused[*ix]);
}

SPEC_CASES(kind_volcanojob, marks_pods, marks)
{
	mark_check(&marks[*ix]);
}
