#include "gpuqd/cluster/kube/check.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/pods/mounts.h"
#include "gpuqd/cluster/kube/pods/podspec_output.h"
#include "gpuqd/cluster/kube/pods/policy.h"
#include "libgpuq/limits.h"

#define CONFIG_MAP_SPARE 4096 /* names of its keys, and the like */

/* True if the file has no effect. */
static bool is_lost(const struct gpuq_spec *spec, const char *file)
{
	return file && *file && !podspec_output_kept(&spec->groups[0], file);
}

/* A ConfigMap brings both into the pod. */
static int check_code(bool code_store, const struct gpuq_spec *spec, struct gpuq_err *err)
{
	const int64_t bytes = spec->code.bytes + (int64_t)spec->script_bytes;

	if (!spec->code.digest || bytes + CONFIG_MAP_SPARE <= (int64_t)GPUQ_CODE_POD_BYTES ||
	    (code_store && spec->code.bytes > (int64_t)GPUQ_CODE_CONFIG_MAP_BYTES))
		return 0;
	return gpuq_fail_field(err, GPUQ_ETOOBIG, "code",
			       "code: %.80s takes %lld KiB compressed, and %u KiB fit into a "
			       "ConfigMap: leave files "
			       "out with .gpuqignore, or put them on a volume of the job or of the "
			       "queue and submit "
			       "from there (administrators: code_store of gpuqd.yaml)",
			       spec->code.dir, (long long)(bytes + 1023) / 1024,
			       GPUQ_CODE_POD_BYTES >> 10);
}

int kube_spec_check(bool code_store, const struct gpuq_spec *spec, const struct gpuq_spec *whole,
		    const char *queue_image, const struct site_walls *walls,
		    struct gpuq_buf *warnings, struct gpuq_err *err)
{
	const char *policy = walls->pod_policy;
	enum kube_policy level = strcmp(policy, "privileged") == 0   ? KUBE_POLICY_PRIVILEGED
				 : strcmp(policy, "restricted") == 0 ? KUBE_POLICY_RESTRICTED
								     : KUBE_POLICY_BASELINE;
	int rc;
	char path[64];

	rc = check_code(code_store, spec, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < spec->n_groups; i++) {
		const struct gpuq_group *g = &spec->groups[i];

		if ((g->image && *g->image) || g->template_ || *queue_image)
			continue;
		snprintf(path, sizeof(path), spec->n_groups > 1 ? "groups[%zu].image" : "image", i);
		return gpuq_fail_field(
			err, GPUQ_EINVAL, path,
			"expected an image: name one (image:, --image), or have one set "
			"for the queue");
	}
	if (is_lost(whole, spec->output) || is_lost(whole, spec->error) ||
	    is_lost(whole, spec->input))
		gpuq_buf_adds(warnings,
			      "output files that are not on a volume of the job are ignored "
			      "on Kubernetes: see gpuq logs\n");
	rc = podspec_check(whole, level, err);
	if (rc == 0 && spec->context.origin)
		rc = podspec_check_made(whole, level, err);
	return rc == 0 ? mounts_check(spec, walls, err) : rc;
}
