#include "gpuqd/cluster/local/local_check.h"

#include <stdio.h>

/* An image has a command of its own that a process of this machine has not. */
int local_spec_check(struct cluster *c, const struct gpuq_spec *spec, const struct gpuq_spec *whole,
		     const char *queue_image, const struct site_walls *walls,
		     struct gpuq_buf *warnings, struct gpuq_err *err)
{
	bool image = false, volumes = false, runtime = false;
	char path[64];

	(void)c, (void)whole, (void)queue_image, (void)walls;
	for (size_t i = 0; i < spec->n_groups; i++) {
		const struct gpuq_group *g = &spec->groups[i];

		image |= g->image && *g->image;
		volumes |= g->n_volumes > 0;
		runtime |= g->runtime_class != NULL;
		if (g->n_claims) {
			snprintf(path, sizeof(path),
				 spec->n_groups > 1 ? "groups[%zu].claims" : "claims", i);
			return gpuq_fail_field(err, GPUQ_EINVAL, path,
					       "expected gpus: the local cluster has no claims of "
					       "devices");
		}
		if (g->command.n == 0 && !spec->script) {
			snprintf(path, sizeof(path),
				 spec->n_groups > 1 ? "groups[%zu].command" : "command", i);
			return gpuq_fail_field(
				err, GPUQ_EINVAL, path,
				"expected a command: jobs run as processes of this machine, "
				"where the one inside an image is not known");
		}
	}
	if (image)
		gpuq_buf_adds(warnings,
			      "image has no effect on the local cluster: the command runs "
			      "as a process of this machine\n");
	if (volumes)
		gpuq_buf_adds(warnings, "volumes have no effect on the local cluster\n");
	if (runtime)
		gpuq_buf_adds(warnings, "runtime_class has no effect on the local cluster\n");
	return 0;
}
