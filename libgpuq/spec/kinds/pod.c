/* v1 Pod: a job of one pod. */
#include <string.h>

#include "libgpuq/spec/kinds/manifest_int.h"

int kind_pod(struct manifest *m)
{
	static const char *const policies[] = { "Never", "OnFailure", "Always", NULL };
	const char *policy = "Never";
	size_t mark;
	int rc;

	gpuq_reader_leave(m->r, m->top); /* the object is its own template */
	rc = manifest_template(m, m->doc, &m->out->groups[0]);
	if (rc == 0)
		rc = manifest_restart(m, m->spec, policies, &policy);
	if (rc < 0)
		return rc;
	if (strcmp(policy, "OnFailure") == 0)
		manifest_retry(m, KIND_BACKOFF);
	mark = gpuq_reader_enter(m->r, "spec");
	if (strcmp(policy, "Always") == 0)
		manifest_unused(m, m->spec, "restartPolicy",
				"a job ends: it is not started again after success");
	gpuq_reader_leave(m->r, mark);
	return 0;
}
