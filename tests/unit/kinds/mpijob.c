/* MPIJob: a launcher alone is a job of one pod, workers are refused. */
#include "tests/unit/kinds/marks.h"

/* clang-format off */
#define JOB(fields, replicas) \
	"apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: m}\nspec:\n" fields \
	"  mpiReplicaSpecs:\n" replicas
#define ROLE_OF(role, fields) \
	"    " role ": {" fields "template: {spec: {containers: [{name: c, image: i}]}}}\n"
#define LAUNCHER(fields) ROLE_OF("Launcher", fields)
#define WORKER(fields) ROLE_OF("Worker", fields)
/* clang-format on */

/* clang-format off */
static const struct spec_case accepted[] = {
	{ .text = JOB("", LAUNCHER("")),
	  .want = "{\"name\":\"m\",\"retry\":{\"limit\":6,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("", LAUNCHER("replicas: 1, restartPolicy: Never, ") WORKER("replicas: 0, ")),
	  .want = "{\"name\":\"m\",\"cpus\":0,\"image\":\"i\"}",
	  .warns = "" },
	{ .text = JOB("  slotsPerWorker: 1\n  runPolicy: {backoffLimit: 1, activeDeadlineSeconds: 60}\n", LAUNCHER("")),
	  .want = "{\"name\":\"m\",\"time\":\"1m\",\"retry\":{\"limit\":1,\"on\":[\"infra\",\"failure\",\"oom\"]},\"cpus\":0,"
	  "\"image\":\"i\"}",
	  .warns = "" },
};
/* clang-format on */

/* clang-format off */
static const struct spec_case refused[] = {
	{ .text = JOB("", LAUNCHER("") WORKER("")),
	  .want = "job.yaml:7:13: spec.mpiReplicaSpecs.Worker: its operator makes keys for ssh and a "
	  "hostfile, and gpuqd makes neither: submit a job file with pods: N, whose command "
	  "starts mpirun with srun --mpi=launch, gpuq-slurm(7)" },
	{ .text = JOB("", LAUNCHER("") WORKER("replicas: 2, ")),
	  .want = "job.yaml:7:13: spec.mpiReplicaSpecs.Worker: its operator makes keys for ssh and a "
	  "hostfile, and gpuqd makes neither: submit a job file with pods: N, whose command "
	  "starts mpirun with srun --mpi=launch, gpuq-slurm(7)" },
	{ .text = JOB("", WORKER("replicas: 0, ")),
	  .want = "job.yaml:6:5: spec.mpiReplicaSpecs.Launcher: expected one launcher" },
	{ .text = JOB("", LAUNCHER("replicas: 0, ")),
	  .want = "job.yaml:6:15: spec.mpiReplicaSpecs.Launcher: expected one launcher" },
	{ .text = JOB("", LAUNCHER("replicas: 2, ")),
	  .want = "job.yaml:6:15: spec.mpiReplicaSpecs.Launcher: expected one launcher" },
	{ .text = JOB("", LAUNCHER("replicas: one, ")),
	  .want = "job.yaml:6:26: spec.mpiReplicaSpecs.Launcher.replicas: expected an integer from 0 to "
	  "4096" },
	{ .text = JOB("", LAUNCHER("") ROLE_OF("Master", "")),
	  .want = "job.yaml:7:5: spec.mpiReplicaSpecs.Master: unknown key" },
	{ .text = JOB("", "    Launcher: run\n"),
	  .want = "job.yaml:6:15: spec.mpiReplicaSpecs.Launcher: expected a map with replicas and "
	  "template" },
	{ .text = JOB("", "    Launcher: {replicas: 1}\n"),
	  .want = "job.yaml:6:15: spec.mpiReplicaSpecs.Launcher.template: expected a map with metadata "
	  "and spec" },
	{ .text = JOB("", "    Launcher: {template: {spec: {containers: []}}}\n"),
	  .want = "job.yaml:6:46: spec.mpiReplicaSpecs.Launcher.template.spec.containers: expected a "
	  "list of at least one container" },
	{ .text = JOB("", "    [a]\n"),
	  .want = "job.yaml:6:5: spec.mpiReplicaSpecs: expected a map, not a list" },
	{ .text = JOB("  slots: 1\n", LAUNCHER("")),
	  .want = "job.yaml:5:3: spec.slots: unknown key" },
	{ .text = JOB("  runPolicy: {backoffLimit: -1}\n", LAUNCHER("")),
	  .want = "job.yaml:5:29: spec.runPolicy.backoffLimit: expected an integer from 0 to 1000" },
	{ .text = "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspec: {}\n",
	  .want = "job.yaml:3:7: spec.mpiReplicaSpecs: expected a map with Launcher" },
};
/* clang-format on */

/* clang-format off */
static const struct mark_case marks[] = {
	{ JOB("", LAUNCHER("")),
	  0, "labels", "training.kubeflow.org/replica-type", "launcher" },
	{ JOB("", LAUNCHER("")),
	  0, "labels", "training.kubeflow.org/job-name", "m" },
};
/* clang-format on */

SPEC_CASES(kind_mpijob, accepts, accepted)
{
	spec_check_case("job.yaml", &accepted[*ix]);
}

SPEC_CASES(kind_mpijob, refuses, refused)
{
	spec_check_case("job.yaml", &refused[*ix]);
}

SPEC_CASES(kind_mpijob, marks_pods, marks)
{
	mark_check(&marks[*ix]);
}
