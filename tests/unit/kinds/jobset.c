/* JobSet: a group for each of its Jobs, with the marks of its controller. */
#include "tests/unit/kinds/marks.h"

/* clang-format off */
#define POD "{spec: {containers: [{name: c, image: i}]}}"
#define JOBSET(fields, jobs) \
	"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec:\n" fields \
	"  replicatedJobs:\n" jobs
#define JOBS(fields, job) "  - {" fields ", template: {spec: {" job "template: " POD "}}}\n"
#define ONE(fields, job, pod) \
	JOBSET("", "  - {name: a" fields ", template: {spec: {" job "template: " pod "}}}\n")
#define WORDS(text) "{spec: {containers: [{name: c, image: i, " text "}]}}"
/* clang-format on */

/* clang-format off */
static const struct spec_case accepted[] = {
	{ .text = JOBSET("", JOBS("name: a", "")),
	  .want = "{\"name\":\"s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"groups\":[{\"name\":\"a\","
	  "\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "" },
	{ .text = JOBSET("", JOBS("name: a", "parallelism: 4, ")),
	  .want = "{\"name\":\"s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"groups\":[{\"name\":\"a\","
	  "\"pods\":4,\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "" },
	{ .text = JOBSET("", JOBS("name: driver", "") JOBS("name: w, replicas: 2", "parallelism: 3, completions: 3, ")),
	  .want = "{\"name\":\"s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"driver\",\"cpus\":0,\"image\":\"i\"},{\"name\":\"w-0\",\"pods\":3,\"cpus\":0,"
	  "\"image\":\"i\"},{\"name\":\"w-1\",\"pods\":3,\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "" },
	{ .text = JOBSET("", JOBS("name: a", "") JOBS("name: b, replicas: 0", "")),
	  .want = "{\"name\":\"s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"groups\":[{\"name\":\"a\","
	  "\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "" },
	{ .text = JOBSET("  failurePolicy: {maxRestarts: 2}\n", JOBS("name: a", "backoffLimit: 1, ")),
	  .want = "{\"name\":\"s\",\"retry\":{\"limit\":3,\"on\":[\"infra\",\"failure\",\"oom\"]},\"groups\":[{\"name\":\"a\","
	  "\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "" },
	{ .text = JOBSET("", JOBS("name: a", "activeDeadlineSeconds: 90, ") JOBS("name: b", "activeDeadlineSeconds: 60, ")),
	  .want = "{\"name\":\"s\",\"time\":\"1m\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"a\",\"cpus\":0,\"image\":\"i\"},{\"name\":\"b\",\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "" },
	{ .text = JOBSET("  failurePolicy: {rules: [{action: FailJobSet}]}\n", JOBS("name: a, replicas: 2", "")),
	  .want = "{\"name\":\"s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"groups\":[{\"name\":\"a-0\",\"cpus\":0,\"image\":\"i\"},{\"name\":\"a-1\",\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "job.yaml:5:26: spec.failurePolicy.rules: is not used: every failure is tried again, "
	  "up to the limit\n" },
	{ .text = JOBSET("  startupPolicy: {startupPolicyOrder: AnyOrder}\n  successPolicy: {operator: All}\n", JOBS("name: a", "")),
	  .want = "{\"name\":\"s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"groups\":[{\"name\":\"a\","
	  "\"cpus\":0,\"image\":\"i\"}]}",
	  .warns = "" },
	{ .text = ONE("", "", WORDS("env: [{name: MASTER_ADDR, value: s-a-0-0.s}]")),
	  .want = "{\"name\":\"s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"groups\":[{\"name\":\"a\","
	  "\"cpus\":0,\"image\":\"i\",\"env\":{\"MASTER_ADDR\":\"s-a-0-0.s\"}}]}",
	  .warns = "" },
	{ .text = ONE("", "", WORDS("args: [as-a-0-0, s-a-x, s-b-0-0]")),
	  .want = "{\"name\":\"s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"groups\":[{\"name\":\"a\","
	  "\"cpus\":0,\"image\":\"i\",\"args\":[\"as-a-0-0\",\"s-a-x\",\"s-b-0-0\"]}]}",
	  .warns = "" },
};
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = JOBSET("  replicas: 2\n", JOBS("name: a", "")),
	  .want = "job.yaml:5:3: spec.replicas: unknown key" },
	{ .text = JOBSET("  coordinator: {replicatedJob: a}\n", JOBS("name: a", "")),
	  .want = "job.yaml:5:16: spec.coordinator: gpuqd coordinates by the first pod: use MASTER_ADDR" },
	{ .text = JOBSET("  startupPolicy: {startupPolicyOrder: InOrder}\n", JOBS("name: a", "")),
	  .want = "job.yaml:5:39: spec.startupPolicy.startupPolicyOrder: expected AnyOrder, not 'InOrder'" },
	{ .text = JOBSET("  startupPolicy: InOrder\n", JOBS("name: a", "")),
	  .want = "job.yaml:5:18: spec.startupPolicy: expected a map, not a string" },
	{ .text = JOBSET("  successPolicy: {operator: Any}\n", JOBS("name: a", "")),
	  .want = "job.yaml:5:29: spec.successPolicy.operator: expected All, not 'Any'" },
	{ .text = JOBSET("  successPolicy: {operator: All, targetReplicatedJobs: [a]}\n", JOBS("name: a", "")),
	  .want = "job.yaml:5:56: spec.successPolicy.targetReplicatedJobs: a job has ended when all of "
	  "its pods have: omit it" },
	{ .text = JOBSET("  failurePolicy: {maxRestarts: -1}\n", JOBS("name: a", "")),
	  .want = "job.yaml:5:32: spec.failurePolicy.maxRestarts: expected an integer from 0 to 1000" },
	{ .text = JOBSET("  failurePolicy: [a]\n", JOBS("name: a", "")),
	  .want = "job.yaml:5:18: spec.failurePolicy: expected a map, not a list" },
	{ .text = JOBSET("  ttlSecondsAfterFinished: soon\n", JOBS("name: a", "")),
	  .want = "job.yaml:5:28: spec.ttlSecondsAfterFinished: expected an integer from 0 to 2147483647" },
	{ .text = JOBSET("", "    []\n"),
	  .want = "job.yaml:6:5: spec.replicatedJobs: expected a list of at least one replicated job" },
	{ .text = JOBSET("", "    a: b\n"),
	  .want = "job.yaml:6:5: spec.replicatedJobs: expected a list, not a map" },
	{ .text = JOBSET("", "  - a\n"),
	  .want = "job.yaml:6:5: spec.replicatedJobs[0]: expected a map with name and template" },
	{ .text = "apiVersion: jobset.x-k8s.io/v1\nkind: JobSet\nspec: {}\n",
	  .want = "job.yaml:3:7: spec.replicatedJobs: expected a list of at least one replicated job" },
	{ .text = JOBSET("", JOBS("name: a, replica: 2", "")),
	  .want = "job.yaml:6:15: spec.replicatedJobs[0].replica: unknown key; did you mean 'replicas'?" },
	{ .text = JOBSET("", JOBS("name: a, replicas: two", "")),
	  .want = "job.yaml:6:25: spec.replicatedJobs[0].replicas: expected an integer from 0 to 32" },
	{ .text = JOBSET("", JOBS("name: a, replicas: 0", "")),
	  .want = "job.yaml:6:3: spec.replicatedJobs: expected 1 to 32 Jobs (the sum of replicas): each "
	  "is a group" },
	{ .text = JOBSET("", JOBS("name: a, replicas: 33", "")),
	  .want = "job.yaml:6:25: spec.replicatedJobs[0].replicas: expected an integer from 0 to 32" },
	{ .text = JOBSET("", JOBS("name: a, replicas: 32", "") JOBS("name: b", "")),
	  .want = "job.yaml:6:3: spec.replicatedJobs: expected 1 to 32 Jobs (the sum of replicas): each "
	  "is a group" },
	{ .text = JOBSET("", JOBS("replicas: 1", "")),
	  .want = "job.yaml:6:5: spec.replicatedJobs[0].name: expected a name" },
	{ .text = JOBSET("", JOBS("name: [a]", "")),
	  .want = "job.yaml:6:12: spec.replicatedJobs[0].name: expected a string, not a list" },
	{ .text = JOBSET("", JOBS("name: a b", "")),
	  .want = "job.yaml:6:12: spec.replicatedJobs[0].name: expected a name" },
	{ .text = JOBSET("", JOBS("name: a, dependsOn: [{name: b, status: Ready}]", "")),
	  .want = "job.yaml:6:26: spec.replicatedJobs[0].dependsOn: the pods of a job start together: "
	  "submit two jobs, the second with --dependency" },
	{ .text = JOBSET("", JOBS("name: a", "") JOBS("name: a", "")),
	  .want = "job.yaml:7:12: spec.replicatedJobs[1].name: expected another name: 'a' is already a "
	  "group of the job" },
	{ .text = JOBSET("", JOBS("name: a-0", "") JOBS("name: a, replicas: 2", "")),
	  .want = "job.yaml:7:12: spec.replicatedJobs[1].name: expected another name: 'a-0' is already a "
	  "group of the job" },
	{ .text = JOBSET("", JOBS("name: a", "completions: 4, parallelism: 2, ")),
	  .want = "job.yaml:6:46: spec.replicatedJobs[0].template.spec.completions: expected as many as "
	  "parallelism, which is 2: the pods of a job start together" },
	{ .text = JOBSET("", JOBS("name: a", "parallelism: 0, ")),
	  .want = "job.yaml:6:46: spec.replicatedJobs[0].template.spec.parallelism: expected an integer "
	  "from 1 to 4096" },
	{ .text = JOBSET("", JOBS("name: a", "completionMode: Random, ")),
	  .want = "job.yaml:6:49: spec.replicatedJobs[0].template.spec.completionMode: expected "
	  "NonIndexed or Indexed, not 'Random'" },
	{ .text = JOBSET("", JOBS("name: a", "parallelsm: 2, ")),
	  .want = "job.yaml:6:33: spec.replicatedJobs[0].template.spec.parallelsm: unknown key; did you "
	  "mean 'parallelism'?" },
	{ .text = JOBSET("", "  - {name: a}\n"),
	  .want = "job.yaml:6:5: spec.replicatedJobs[0].template.spec: expected the spec of a batch/v1 "
	  "Job" },
	{ .text = JOBSET("", "  - {name: a, template: {metadata: {}}}\n"),
	  .want = "job.yaml:6:5: spec.replicatedJobs[0].template.spec: expected the spec of a batch/v1 "
	  "Job" },
	{ .text = JOBSET("", "  - {name: a, template: {spec: {parallelism: 2}}}\n"),
	  .want = "job.yaml:6:32: spec.replicatedJobs[0].template.spec.template: expected a map with "
	  "metadata and spec" },
	{ .text = JOBSET("", "  - {name: a, template: {spec: []}}\n"),
	  .want = "job.yaml:6:32: spec.replicatedJobs[0].template.spec: expected a map, not a list" },
	{ .text = ONE("", "", "[a]"),
	  .want = "job.yaml:6:43: spec.replicatedJobs[0].template.spec.template: expected a map, not a "
	  "list" },
	{ .text = ONE("", "", "{metadata: {}}"),
	  .want = "job.yaml:6:43: spec.replicatedJobs[0].template.spec.template.spec: expected a map "
	  "with containers" },
	{ .text = ONE("", "", "{spec: {restartPolicy: Always, containers: [{name: c, image: i}]}}"),
	  .want = "job.yaml:6:66: spec.replicatedJobs[0].template.spec.template.spec.restartPolicy: "
	  "expected Never or OnFailure, not 'Always'" },
	{ .text = ONE("", "", "{spec: {containers: a text that is no list}}"),
	  .want = "job.yaml:6:63: spec.replicatedJobs[0].template.spec.template.spec.containers: "
	  "expected a list, not a string" },
	{ .text = ONE("", "", "{spec: {containers: {name: c, image: i}}}"),
	  .want = "job.yaml:6:63: spec.replicatedJobs[0].template.spec.template.spec.containers: "
	  "expected a list, not a map" },
	{ .text = ONE("", "", WORDS("command: a text that is no list")),
	  .want = "job.yaml:6:93: spec.replicatedJobs[0].template.spec.template.spec.containers[0]."
	  "command: expected a list, not a string" },
	{ .text = ONE("", "", WORDS("command: [run, --at=s-a-0-0.s]")),
	  .want = "job.yaml:6:99: spec.replicatedJobs[0].template.spec.template.spec.containers[0]."
	  "command[1]: names a pod (s-a-N) by a Service that only its operator makes: use MASTER_ADDR, "
	  "which gpuqd sets" },
	{ .text = ONE("", "", WORDS("env: [{name: PEER, value: s-a-0-1}]")),
	  .want = "job.yaml:6:110: spec.replicatedJobs[0].template.spec.template.spec.containers[0].env[0"
	  "]: names a pod (s-a-N) by a Service that only its operator makes: use MASTER_ADDR, "
	  "which gpuqd sets" },
};
/* clang-format on */

/* clang-format off */
static const struct mark_case marks[] = {
	{ JOBSET("", JOBS("name: d", "completionMode: NonIndexed, ") JOBS("name: w, replicas: 2", "")),
	  0, "labels", "jobset.sigs.k8s.io/jobset-name", "s" },
	{ JOBSET("", JOBS("name: d", "completionMode: NonIndexed, ") JOBS("name: w, replicas: 2", "")),
	  0, "labels", "jobset.sigs.k8s.io/replicatedjob-name", "d" },
	{ JOBSET("", JOBS("name: d", "completionMode: NonIndexed, ") JOBS("name: w, replicas: 2", "")),
	  0, "labels", "batch.kubernetes.io/job-name", "s-d-0" },
	{ JOBSET("", JOBS("name: d", "completionMode: NonIndexed, ") JOBS("name: w, replicas: 2", "")),
	  0, "annotations", "batch.kubernetes.io/job-completion-index", NULL },
	{ JOBSET("", JOBS("name: d", "completionMode: NonIndexed, ") JOBS("name: w, replicas: 2", "")),
	  2, "labels", "jobset.sigs.k8s.io/replicatedjob-replicas", "2" },
	{ JOBSET("", JOBS("name: d", "completionMode: NonIndexed, ") JOBS("name: w, replicas: 2", "")),
	  2, "annotations", "jobset.sigs.k8s.io/job-index", "1" },
	{ JOBSET("", JOBS("name: d", "completionMode: NonIndexed, ") JOBS("name: w, replicas: 2", "")),
	  2, "labels", "jobset.sigs.k8s.io/job-global-index", "2" },
	{ JOBSET("", JOBS("name: d", "completionMode: NonIndexed, ") JOBS("name: w, replicas: 2", "")),
	  2, "labels", "job-name", "s-w-1" },
	{ JOBSET("", JOBS("name: d", "completionMode: NonIndexed, ") JOBS("name: w, replicas: 2", "")),
	  2, "annotations", "batch.kubernetes.io/job-completion-index", "" },
};
/* clang-format on */

SPEC_CASES(kind_jobset, accepts, accepted)
{
	spec_check_case("job.yaml", &accepted[*ix]);
}

SPEC_CASES(kind_jobset, refuses, refused)
{
	spec_check_case("job.yaml", &refused[*ix]);
}

SPEC_CASES(kind_jobset, marks_pods, marks)
{
	mark_check(&marks[*ix]);
}
