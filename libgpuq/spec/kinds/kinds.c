#include "libgpuq/spec/kinds/kinds.h"

#include <string.h>

#include "libgpuq/spec/kinds/manifest_int.h"

/* clang-format off */
#define NOT_JOB(name) "a " name " is not a job: submit what it runs as a v1 Pod or batch/v1 Job"
/* clang-format on */

/* clang-format off */
const struct kind spec_kinds[] = {
	{ "", "v1", "Pod", kind_pod, NULL },
	{ "batch", "v1", "Job", kind_job, NULL },
	{ "jobset.x-k8s.io", NULL, "JobSet", kind_jobset, NULL },
	{ "kubeflow.org", "v1", "PyTorchJob", kind_pytorchjob, NULL },
	{ "kubeflow.org", NULL, "MPIJob", kind_mpijob, NULL },
	{ "trainer.kubeflow.org", NULL, "TrainJob", kind_trainjob, NULL },
	{ "ray.io", NULL, "RayJob", kind_rayjob, NULL },
	{ "batch.volcano.sh", NULL, "Job", kind_volcanojob, NULL },
	{ "batch", NULL, "CronJob", NULL,
	  "gpuq does not start jobs by a calendar: submit the jobTemplate as a batch/v1 Job, at a time with "
	  "gpuq submit --begin, or each time from cron(8)" },
	{ "batch.volcano.sh", NULL, "CronJob", NULL,
	  "gpuq does not start jobs by a calendar: submit the jobTemplate as a Job, at a time with gpuq submit "
	  "--begin, or each time from cron(8)" },
	{ "apps", NULL, "Deployment", NULL, NOT_JOB("Deployment") },
	{ "apps", NULL, "StatefulSet", NULL, NOT_JOB("StatefulSet") },
	{ "apps", NULL, "DaemonSet", NULL, NOT_JOB("DaemonSet") },
	{ "apps", NULL, "ReplicaSet", NULL, NOT_JOB("ReplicaSet") },
	{ "ray.io", NULL, "RayCluster", NULL, NOT_JOB("RayCluster") },
	{ "ray.io", NULL, "RayService", NULL, NOT_JOB("RayService") },
	{ "argoproj.io", NULL, "Workflow", NULL,
	  "submit its steps as jobs that depend on one another (gpuq submit --dependency)" },
	{ "kubeflow.org", NULL, "TFJob", NULL,
	  "TF_CONFIG is its operator's: submit its roles as groups of a job file, gpuq-job(5)" },
	{ "kubeflow.org", NULL, "XGBoostJob", NULL,
	  "submit its roles as groups of a job file, gpuq-job(5)" },
	{ "kubeflow.org", NULL, "JAXJob", NULL,
	  "submit its workers as pods: N of a job file, gpuq-job(5)" },
	{ NULL, NULL, NULL, NULL, NULL },
};
/* clang-format on */

bool spec_is_manifest(const struct gpuq_val *doc)
{
	return gpuq_get(doc, "apiVersion") != NULL;
}

bool spec_is_list(const struct gpuq_val *doc)
{
	return spec_is_manifest(doc) && strcmp(gpuq_get_str(doc, "kind", ""), "List") == 0;
}

const struct kind *spec_kind_of(const struct gpuq_val *doc)
{
	const char *api = gpuq_get_str(doc, "apiVersion", "");
	const char *name = gpuq_get_str(doc, "kind", ""), *slash = strchr(api, '/');
	const size_t n = slash ? (size_t)(slash - api) : 0;

	for (const struct kind *k = spec_kinds; k->name; k++)
		if (strcmp(k->name, name) == 0 && strlen(k->group) == n &&
		    strncmp(k->group, api, n) == 0 &&
		    (!k->version || strcmp(k->version, slash ? slash + 1 : api) == 0))
			return k;
	return NULL;
}
