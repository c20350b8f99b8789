/* kubeflow.h - what the kinds of Kubeflow's training operator share
 *
 * Owns nothing. Touches memory only. Used by pytorchjob.c, mpijob.c.
 */
#ifndef LIBGPUQ_SPEC_KINDS_KUBEFLOW_H
#define LIBGPUQ_SPEC_KINDS_KUBEFLOW_H

#include "libgpuq/spec/kinds/manifest_int.h"

struct replica {
	const struct gpuq_val *v; /* NULL = not there */
	int64_t replicas;
	const char *policy; /* restartPolicy, OnFailure where none is given */
};

/* spec.runPolicy; *backoff is KIND_BACKOFF where none is given. The path stands at spec. */
int kubeflow_run_policy(struct manifest *m, int64_t *backoff);

/* One member of map, by its role's name. The path stands at map. */
int kubeflow_replica(struct manifest *m, const struct gpuq_val *map, const char *role,
		     struct replica *out);

/* Its pods as group g. The path stands at map. */
int kubeflow_group(struct manifest *m, const char *role, const struct replica *rep,
		   struct gpuq_group *g);

/* How the job is tried again, by the policy of its roles. */
int kubeflow_retry(struct manifest *m, const char *policy, int64_t backoff);

#endif
