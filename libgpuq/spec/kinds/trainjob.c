/* TrainJob (trainer.kubeflow.org): its pods are described by a runtime in the cluster, which gpuq does
 * not read. */
#include "libgpuq/spec/kinds/manifest_int.h"

int kind_trainjob(struct manifest *m)
{
	const struct gpuq_val *ref = gpuq_get(m->spec, "runtimeRef");
	const char *name = gpuq_get_str(ref, "name", "");

	gpuq_reader_enter(m->r, "runtimeRef");
	return spec_fail(
		m->r, ref ? ref : m->spec, GPUQ_EINVAL,
		"the pods of a TrainJob are described by the runtime %.63s in the cluster, "
		"which gpuq does not read: submit a JobSet such as the runtime's template, "
		"or a job file with image, command and pods: N",
		*name ? name : "that it names");
}
