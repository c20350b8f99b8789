/* slurm_claim.h - what the steps of a pod have for themselves: devices, CPUs
 *
 * Owns     names of the kernel, for as long as its process lives.
 * Touches  sockets of the abstract namespace, environment variables.
 * Used by  slurm_step.c.
 *
 * The sruns of a pod know nothing of each other. Each device, and each CPU, is a name that one process at a
 * time can have; the kernel takes it back when that ends, however it does. An srun takes all that it needs at
 * once, or waits.
 */
#ifndef GPUQ_SLURM_SLURM_CLAIM_H
#define GPUQ_SLURM_SLURM_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/arena.h"

struct claim {
	long devices; /* so many of this pod; -1 = all of them, with others */
	long cpus; /* so many of this pod; 0 = whatever others have */
	bool shared; /* others may have these devices as well */
	bool quiet; /* do not say that it waits */
};

/* Read the N of "[TYPE:]N" or of a list with "gpu[:TYPE][:N]"; -1 = of nothing that we know, or no number. */
long claim_number(const char *text, bool gres);
/* Return a number for the pod that this runs in, as far as its environment tells it from others. */
uint64_t claim_pod(void);
/* Wait until they are free, and keep them. CUDA_VISIBLE_DEVICES becomes those. Returns 0, or -1 with a message. */
int claim_take(struct gpuq_arena *a, const struct claim *c);

#endif
