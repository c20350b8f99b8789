/* TrainJob: of the runtime torch-distributed a gang of the trainer's container, else refused. */
#include "tests/unit/spec_help.h"

/* clang-format off */
#define TRAIN(spec) "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: t}\nspec: {" spec "}\n"
#define TORCH(trainer) TRAIN("runtimeRef: {name: torch-distributed}, trainer: {image: i, command: [torchrun, a.py], " trainer "}")
#define UNKNOWN " in the cluster, which gpuq does not read: submit a JobSet such as the runtime's template, or a job file " \
	"with image, command and pods: N"
/* clang-format on */

/* clang-format off */
#define RETRY "\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]}"
#define WARNED "job.yaml:4:20: spec.runtimeRef: the runtime torch-distributed is taken as Kubeflow Trainer ships it: a " \
	"container, and the variables of torchrun\n"

static const struct spec_case accepted[] = {
	{ .text = TORCH("numNodes: 2, numProcPerNode: 4"),
	  .want = "{\"name\":\"t\"," RETRY ",\"groups\":[{\"name\":\"node\",\"pods\":2,\"cpus\":0,\"image\":\"i\","
	  "\"command\":[\"torchrun\",\"a.py\"],\"env\":{\"PET_NPROC_PER_NODE\":\"4\"}}]}",
	  .warns = WARNED },
	{ .text = TORCH("numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}"),
	  .want = "{\"name\":\"t\"," RETRY ",\"groups\":[{\"name\":\"node\",\"pods\":2,\"gpus\":8,\"cpus\":0,\"image\":\"i\","
	  "\"command\":[\"torchrun\",\"a.py\"]}]}",
	  .warns = WARNED },
	{ .text = TORCH("args: [x], env: [{name: A, value: b}], resourcesPerNode: {requests: {cpu: 2500m}}"),
	  .want = "{\"name\":\"t\"," RETRY ",\"groups\":[{\"name\":\"node\",\"cpus\":2.5,\"image\":\"i\","
	  "\"command\":[\"torchrun\",\"a.py\"],\"args\":[\"x\"],\"env\":{\"A\":\"b\",\"PET_NPROC_PER_NODE\":\"3\",\"PET_NNODES\":\"1\","
	  "\"PET_NODE_RANK\":\"0\",\"PET_MASTER_ADDR\":\"127.0.0.1\",\"PET_MASTER_PORT\":\"29500\"}}]}",
	  .warns = WARNED },
	{ .text = TORCH("resourcesPerNode: {limits: {nvidia.com/gpu: 2}}") "\n",
	  .want = "{\"name\":\"t\"," RETRY ",\"groups\":[{\"name\":\"node\",\"gpus\":2,\"cpus\":0,\"image\":\"i\","
	  "\"command\":[\"torchrun\",\"a.py\"],\"env\":{\"PET_NNODES\":\"1\",\"PET_NODE_RANK\":\"0\","
	  "\"PET_MASTER_ADDR\":\"127.0.0.1\",\"PET_MASTER_PORT\":\"29500\",\"PET_NPROC_PER_NODE\":\"$(GPUQ_GPUS)\"}}]}",
	  .warns = WARNED },
};
/* clang-format on */

SPEC_CASES(kind_trainjob, accepts, accepted)
{
	spec_check_case("job.yaml", &accepted[*ix]);
}

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = TRAIN("runtimeRef: {name: torch}, trainer: {numNodes: 2}"),
	  .want = "job.yaml:4:20: spec.runtimeRef: the pods of a TrainJob are described by the runtime torch" UNKNOWN },
	{ .text = TRAIN("runtimeRef: {name: torch-distributed, kind: TrainingRuntime}"),
	  .want = "job.yaml:4:20: spec.runtimeRef: the pods of a TrainJob are described by the runtime torch-distributed" UNKNOWN },
	{ .text = TRAIN("trainer: {numNodes: 2}"),
	  .want = "job.yaml:4:7: spec.runtimeRef: the pods of a TrainJob are described by the runtime that it names" UNKNOWN },
	{ .text = TRAIN("runtimeRef: torch"),
	  .want = "job.yaml:4:20: spec.runtimeRef: the pods of a TrainJob are described by the runtime that it names" UNKNOWN },
	{ .text = TRAIN("runtimeRef: {named: torch}"),
	  .want = "job.yaml:4:21: spec.runtimeRef.named: unknown key; did you mean 'name'?" },
	{ .text = TRAIN("runtimeRef: {name: torch-distributed}"),
	  .want = "job.yaml:4:7: spec.trainer: expected a map with image, command and numNodes" },
	{ .text = TRAIN("runtimeRef: {name: torch-distributed}, trainer: {command: [a]}"),
	  .want = "job.yaml:4:56: spec.trainer: expected image: gpuq does not know the one of the runtime" },
	{ .text = TRAIN("runtimeRef: {name: torch-distributed}, trainer: {image: i}"),
	  .want = "job.yaml:4:56: spec.trainer: expected command or args: gpuq does not know those of the runtime" },
	{ .text = TRAIN("runtimeRef: {name: torch-distributed}, initializer: {dataset: {storageUri: s3://b}}"),
	  .want = "job.yaml:4:60: spec.initializer: gpuqd starts no initializers: submit a job that fetches the data, and this one "
	  "with --dependency" },
	{ .text = TRAIN("runtimeRef: {name: torch-distributed}, podTemplateOverrides: [{targetJobs: [{name: node}]}]"),
	  .want = "job.yaml:4:69: spec.podTemplateOverrides: gpuq does not patch a runtime: submit a JobSet, whose template says it" },
	{ .text = TORCH("numNode: 2"), .want = "job.yaml:4:94: spec.trainer.numNode: unknown key; did you mean 'numNodes'?" },
	{ .text = TORCH("numNodes: 0"), .want = "job.yaml:4:104: spec.trainer.numNodes: expected an integer from 1 to 4096" },
	{ .text = TORCH("numProcPerNode: many"),
	  .want = "job.yaml:4:110: spec.trainer.numProcPerNode: expected auto, cpu or gpu, not 'many'" },
	{ .text = TORCH("env: {A: b}"), .want = "job.yaml:4:99: spec.trainer.env: expected a list, not a map" },
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
