/* RayJob (ray.io): its operator writes the commands of its pods, so that there is nothing to run as it
 * stands. */
#include <string.h>

#include "libgpuq/spec/kinds/manifest_int.h"

int kind_rayjob(struct manifest *m)
{
	static const char *const keys[] = { "clusterSelector", "rayClusterSpec", NULL };
	const struct gpuq_val *v = NULL;
	const char *key = "rayClusterSpec";

	for (int i = 0; keys[i] && !v; i++) {
		v = gpuq_get(m->spec, keys[i]);
		key = keys[i];
	}
	gpuq_reader_enter(m->r, key);
	if (v && strcmp(key, "clusterSelector") == 0)
		return spec_fail(m->r, v, GPUQ_EINVAL,
				 "gpuq starts no work in a Ray cluster that it did not start: use "
				 "ray job submit");
	if (gpuq_path(v, "headGroupSpec", "rayStartParams", NULL)) {
		gpuq_reader_enter(m->r, "headGroupSpec");
		gpuq_reader_enter(m->r, "rayStartParams");
		v = gpuq_path(v, "headGroupSpec", "rayStartParams", NULL);
	}
	return spec_fail(
		m->r, v ? v : m->spec, GPUQ_EINVAL,
		"its operator writes the commands of the pods from it: submit a job file "
		"with pods: N whose command runs ray start --head in pod 0 (GPUQ_POD_INDEX) "
		"and ray start --address=$MASTER_ADDR:6379 in the others");
}
