/* MPIJob (kubeflow.org): without workers a job of one pod. With them its operator makes what the
 * templates do not say, keys for ssh and a list of hosts, so that is refused. */
#include <string.h>

#include "libgpuq/spec/kinds/kubeflow.h"

static const char *const keys[] = { "slotsPerWorker",    "mpiReplicaSpecs",
				    "runPolicy",         "cleanPodPolicy",
				    "sshAuthMountPath",  "launcherCreationPolicy",
				    "mpiImplementation", "runLauncherAsWorker",
				    "mainContainer",     NULL };

int kind_mpijob(struct manifest *m)
{
	static const char *const roles[] = { "Launcher", "Worker", NULL };
	const struct gpuq_val *map;
	struct replica launcher, worker;
	int64_t backoff;
	size_t mark;
	int rc = manifest_keys(m, m->spec, keys);

	if (rc == 0)
		rc = kubeflow_run_policy(m, &backoff);
	if (rc == 0)
		rc = spec_want_type(m->r, m->spec, "mpiReplicaSpecs", GPUQ_MAP, &map);
	if (rc < 0)
		return rc;
	mark = gpuq_reader_enter(m->r, "mpiReplicaSpecs");
	if (!map)
		return spec_fail(m->r, m->spec, GPUQ_EINVAL, "expected a map with Launcher");
	rc = manifest_keys(m, map, roles);
	if (rc == 0)
		rc = kubeflow_replica(m, map, "Launcher", &launcher);
	if (rc == 0)
		rc = kubeflow_replica(m, map, "Worker", &worker);
	if (rc < 0)
		return rc;
	if (worker.v && worker.replicas > 0) {
		gpuq_reader_enter(m->r, "Worker");
		return spec_fail(m->r, worker.v, GPUQ_EINVAL,
				 "its operator makes keys for ssh and a hostfile, and gpuqd makes "
				 "neither: submit a job file with pods: N, whose command starts "
				 "mpirun with srun --mpi=launch, gpuq-slurm(7)");
	}
	if (!launcher.v || launcher.replicas != 1) {
		gpuq_reader_enter(m->r, "Launcher");
		return spec_fail(m->r, launcher.v ? launcher.v : map, GPUQ_EINVAL,
				 "expected one launcher");
	}
	rc = kubeflow_group(m, "Launcher", &launcher, &m->out->groups[0]);
	if (rc < 0)
		return rc;
	m->out->groups[0].name = NULL;
	gpuq_reader_leave(m->r, mark);
	return kubeflow_retry(m, launcher.policy, backoff);
}
