/* slurm_env.h - the variables that scripts written for Slurm read
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/order.
 *
 * The list is that of sbatch(1); gpuq-slurm(7) says which of its variables are set, and from what.
 */
#ifndef GPUQD_FLOW_ENV_SLURM_ENV_H
#define GPUQD_FLOW_ENV_SLURM_ENV_H

#include <stdint.h>

#include "gpuqd/flow/env/pod_env.h"
#include "libgpuq/spec.h"

/* Facts that the variables of gpuq do not have. */
struct slurm_env_job {
	const struct gpuq_spec *spec;
	const struct gpuq_group *group; /* of the pod */
	uint32_t number; /* of the job, for an element its own */
	uint32_t uid, gid;
	uint32_t n_pods, n_devices; /* of the attempt; of the pod */
	int64_t start_us, limit_us; /* wall clock; GPUQ_UNLIMITED */
};

/* Add them behind those of gpuq, which must be complete. */
void slurm_env_fill(struct pod_env *e, const struct slurm_env_job *j);

#endif
