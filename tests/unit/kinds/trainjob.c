/* TrainJob: refused, with the runtime whose pods gpuq does not know. */
#include "tests/unit/spec_help.h"

/* clang-format off */
#define TRAIN(spec) "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec: {" spec "}\n"
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = TRAIN("runtimeRef: {name: torch}, trainer: {numNodes: 2}"),
	  .want = "job.yaml:3:20: spec.runtimeRef: the pods of a TrainJob are described by the runtime "
	  "torch in the cluster, which gpuq does not read: submit a JobSet such as the runtime's "
	  "template, or a job file with image, command and pods: N" },
	{ .text = TRAIN("trainer: {numNodes: 2}"),
	  .want = "job.yaml:3:7: spec.runtimeRef: the pods of a TrainJob are described by the runtime "
	  "that it names in the cluster, which gpuq does not read: submit a JobSet such as the "
	  "runtime's template, or a job file with image, command and pods: N" },
	{ .text = TRAIN("runtimeRef: torch"),
	  .want = "job.yaml:3:20: spec.runtimeRef: the pods of a TrainJob are described by the runtime "
	  "that it names in the cluster, which gpuq does not read: submit a JobSet such as the "
	  "runtime's template, or a job file with image, command and pods: N" },
	{ .text = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec: [a]\n",
	  .want = "job.yaml:3:7: spec: expected a map, not a list" },
	{ .text = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: PyTorchJob\nspec: {}\n",
	  .want = "job.yaml:2:7: kind: expected PyTorchJob of kubeflow.org/v1, not of "
	  "'trainer.kubeflow.org/v1alpha1'" },
};
/* clang-format on */

SPEC_CASES(kind_trainjob, refuses, refused)
{
	spec_check_case("job.yaml", &refused[*ix]);
}
