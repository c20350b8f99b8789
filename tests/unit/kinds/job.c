/* batch/v1 Job: a gang or an array of completions, with the marks of its controller. */
#include "tests/unit/kinds/marks.h"

/* clang-format off */
#define JOB(fields, pod) \
	"apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {" fields "template: " pod "}\n"
#define POD "{spec: {containers: [{name: c, image: i}]}}"
/* clang-format on */

/* clang-format off */
static const struct spec_case accepted[] = {
	{ .text = JOB("", POD),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("completionMode: Indexed, completions: 3, parallelism: 3, ", POD),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"pods\":3,\"cpus\":0,"
	  "\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("completionMode: Indexed, completions: 6, parallelism: 2, ", POD),
	  .want = "{\"name\":\"j\",\"array\":\"0-5%2\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},"
	  "\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("completionMode: \"\", parallelism: 4, completions: 2, ", POD),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"pods\":2,\"cpus\":0,"
	  "\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("completionMode: Indexed, completions: 2, parallelism: 2, backoffLimit: 1, backoffLimitPerIndex: 3, ", POD),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":3,\"on\":[\"infra\",\"failure\",\"oom\"]},\"pods\":2,\"cpus\":0,"
	  "\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("backoffLimit: 0, activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 5, ", POD),
	  .want = "{\"name\":\"j\",\"time\":\"1m\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "job.yaml:4:77: spec.ttlSecondsAfterFinished: is not used: the pods go when the job "
	  "has ended, its record stays (gpuq history)\n" },
	{ .text = JOB("podFailurePolicy: {rules: []}, successPolicy: {rules: []}, maxFailedIndexes: 1, ", POD),
	  .want = "{\"name\":\"j\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "job.yaml:4:26: spec.podFailurePolicy: is not used\njob.yaml:4:54: spec.successPolicy: "
	  "is not used\njob.yaml:4:85: spec.maxFailedIndexes: is not used\n" },
	{ .text = JOB("", "{spec: {restartPolicy: Never, activeDeadlineSeconds: 30, containers: [{name: c, image: i}]}}"),
	  .want = "{\"name\":\"j\",\"time\":\"30s\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,"
	  "\"image\":\"i\"}",
	  .warns = "" },
};
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = JOB("completionMode: Indexd, ", POD),
	  .want = "job.yaml:4:24: spec.completionMode: expected NonIndexed or Indexed, not 'Indexd'" },
	{ .text = JOB("completionMode: [Indexed], ", POD),
	  .want = "job.yaml:4:24: spec.completionMode: expected a string, not a list" },
	{ .text = JOB("backoffLimitPerIndex: few, ", POD),
	  .want = "job.yaml:4:30: spec.backoffLimitPerIndex: expected an integer from 0 to 1000" },
	{ .text = JOB("activeDeadlineSeconds: 0, ", POD),
	  .want = "job.yaml:4:31: spec.activeDeadlineSeconds: expected an integer from 1 to 2147483647" },
	{ .text = JOB("ttlSecondsAfterFinished: [1], ", POD),
	  .want = "job.yaml:4:33: spec.ttlSecondsAfterFinished: expected an integer from 0 to 2147483647" },
	{ .text = JOB("completion: 2, ", POD),
	  .want = "job.yaml:4:8: spec.completion: unknown key; did you mean 'completions'?" },
	{ .text = JOB("", "[a]"),
	  .want = "job.yaml:4:18: spec.template: expected a map, not a list" },
	{ .text = JOB("", "null"),
	  .want = "job.yaml:4:7: spec.template: expected a map with metadata and spec" },
	{ .text = JOB("", "{metadata: {labels: [a]}, spec: {containers: [{name: c, image: i}]}}"),
	  .want = "job.yaml:4:38: spec.template.metadata.labels: expected a map, not a list" },
	{ .text = JOB("", "{spec: {containers: a text that is no list}}"),
	  .want = "job.yaml:4:38: spec.template.spec.containers: expected a list, not a string" },
	{ .text = JOB("", "{spec: [a]}"),
	  .want = "job.yaml:4:25: spec.template.spec: expected a map with containers" },
	{ .text = "apiVersion: batch/v2\nkind: Job\nspec: {}\n",
	  .want = "job.yaml:2:7: kind: expected Job of batch/v1, not of 'batch/v2'" },
	{ .text = "apiVersion: batch/v1\nkind: CronJob\nspec: {}\n",
	  .want = "job.yaml:2:7: kind: gpuq does not start jobs by a calendar: submit the jobTemplate as "
	  "a batch/v1 Job, at a time with gpuq submit --begin, or each time from cron(8)" },
};
/* clang-format on */

/* clang-format off */
static const struct mark_case marks[] = {
	{ JOB("completionMode: Indexed, ", POD),
	  0, "labels", "batch.kubernetes.io/job-name", "j" },
	{ JOB("completionMode: Indexed, ", POD),
	  0, "labels", "job-name", "j" },
	{ JOB("completionMode: Indexed, ", POD),
	  0, "annotations", "batch.kubernetes.io/job-completion-index", "" },
	{ JOB("", POD),
	  0, "labels", "job-name", "j" },
	{ JOB("", POD),
	  0, "annotations", "batch.kubernetes.io/job-completion-index", NULL },
};
/* clang-format on */

SPEC_CASES(kind_job, accepts, accepted)
{
	spec_check_case("job.yaml", &accepted[*ix]);
}

SPEC_CASES(kind_job, refuses, refused)
{
	spec_check_case("job.yaml", &refused[*ix]);
}

SPEC_CASES(kind_job, marks_pods, marks)
{
	mark_check(&marks[*ix]);
}
