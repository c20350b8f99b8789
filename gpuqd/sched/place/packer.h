/* packer.h - place one pod after the other on a cluster where no pod ends
 *
 * Owns     the state of such a cluster. The placement itself is that of a cycle (pack.c): there is
 *          no second implementation.
 * Touches  memory only.
 * Used by  gpuq-sim pack, tests.
 *
 * The kinds of pods are the pending jobs of a snapshot. The number pending of a kind (the elements
 * of an array) is its expected frequency; a packer places as many of each as its caller
 * requests. */
#ifndef GPUQD_SCHED_PLACE_PACKER_H
#define GPUQD_SCHED_PLACE_PACKER_H

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/err.h"

enum packer_policy {
	PACKER_DEFAULT, /* as gpuqd places */
	PACKER_BESTFIT, /* the fullest node, by cpu and devices */
	PACKER_FGD, /* fragmentation gradient descent, as published */
};

struct packer;

/* s must be sealed and outlive the packer, which the caller frees.
 * Returns 0, GPUQ_EINVAL (not sealed), GPUQ_ENOMEM. */
int packer_new(const struct snapshot *s, enum packer_policy policy, struct packer **out,
	       struct gpuq_err *err);
void packer_free(struct packer *p); /* NULL is allowed */

/* Place one gang of the kind given by the job of this index, on any of its flavors.
 *
 * Returns 1 and the pods with their devices (indexes on their node; pods[].device_first counts into
 * *devices), which are valid until the next call; 0 = no room, nothing changed; GPUQ_ENOMEM. */
int packer_place(struct packer *p, uint32_t job, const struct plan_pod **pods, uint32_t *n_pods,
		 const uint32_t **devices, struct gpuq_err *err);

#endif
