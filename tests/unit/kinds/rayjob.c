/* RayJob: refused, with what to write instead. */
#include "tests/unit/spec_help.h"

/* clang-format off */
#define RAY(spec) "apiVersion: ray.io/v1\nkind: RayJob\nspec: {" spec "}\n"
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = RAY("clusterSelector: {ray.io/cluster: c}"),
	  .want = "job.yaml:3:25: spec.clusterSelector: gpuq starts no work in a Ray cluster that it did "
	  "not start: use ray job submit" },
	{ .text = RAY("entrypoint: run, rayClusterSpec: {headGroupSpec: {rayStartParams: {}}}"),
	  .want = "job.yaml:3:74: spec.rayClusterSpec.headGroupSpec.rayStartParams: its operator writes "
	  "the commands of the pods from it: submit a job file with pods: N whose command runs "
	  "ray start --head in pod 0 (GPUQ_POD_INDEX) and ray start --address=$MASTER_ADDR:6379 "
	  "in the others" },
	{ .text = RAY("entrypoint: run, rayClusterSpec: {workerGroupSpecs: []}"),
	  .want = "job.yaml:3:41: spec.rayClusterSpec: its operator writes the commands of the pods from "
	  "it: submit a job file with pods: N whose command runs ray start --head in pod 0 "
	  "(GPUQ_POD_INDEX) and ray start --address=$MASTER_ADDR:6379 in the others" },
	{ .text = RAY("entrypoint: run, rayClusterSpec: text"),
	  .want = "job.yaml:3:41: spec.rayClusterSpec: its operator writes the commands of the pods from "
	  "it: submit a job file with pods: N whose command runs ray start --head in pod 0 "
	  "(GPUQ_POD_INDEX) and ray start --address=$MASTER_ADDR:6379 in the others" },
	{ .text = RAY("entrypoint: run"),
	  .want = "job.yaml:3:7: spec.rayClusterSpec: its operator writes the commands of the pods from "
	  "it: submit a job file with pods: N whose command runs ray start --head in pod 0 "
	  "(GPUQ_POD_INDEX) and ray start --address=$MASTER_ADDR:6379 in the others" },
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
