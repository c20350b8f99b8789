/* packer.h - one pod after the other onto a cluster that nobody leaves
 *
 * Owns     the state of such a cluster. The placing itself is that of a cycle (pack.c):
 *          there is no second implementation.
 * Touches  memory only.
 * Used by  gpuq-sim pack, tests.
 *
 * The kinds of pods are the pending jobs of a snapshot. How many of a kind wait there
 * (the elements of an array) says how often it is expected; a packer places as many of
 * each as it is asked to.
 */
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

/* Place one gang of the kind that the job of this index is, on any of its flavors.
 *
 * Returns 1 and the pods with their devices (indexes on their node; pods[].device_first
 * counts into *devices), which stand until the next call; 0 = no room, nothing changed;
 * GPUQ_ENOMEM. */
int packer_place(struct packer *p, uint32_t job, const struct plan_pod **pods, uint32_t *n_pods,
		 const uint32_t **devices, struct gpuq_err *err);

#endif
