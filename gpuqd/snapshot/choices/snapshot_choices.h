/* snapshot_choices.h - requests that accept instances of several MIG profiles, or alternatives of claims
 *
 * Owns     for one snapshot: the profiles that nodes have, or could be cut into, with their memory.
 * Touches  memory only.
 * Used by  snapshot_take.c, snapshot_take_jobs.c.
 *
 * A group that names several profiles, or accepts an instance in place of a share of a device (mig_ok), is
 * a request with others beside it: one for each profile that would do. So is one whose claims have
 * alternatives: one for each combination of them, over all groups (dra_choice.h); beside several profiles
 * these are not decided on, and charged as the largest. A job that runs has what its pods got.
 */
#ifndef GPUQD_SNAPSHOT_CHOICES_SNAPSHOT_CHOICES_H
#define GPUQD_SNAPSHOT_CHOICES_SNAPSHOT_CHOICES_H

#include "gpuqd/snapshot/snapshot_taking.h"
#include "gpuqd/state/fact.h"

#define CHOICE_SHARE "" /* of a device, with mig_ok */

/* True if instances of the profile, of that memory in MiB, do for a group that accepts them (mig_ok). */
bool snapshot_choices_hold(const char *profile, int64_t mib, int64_t gpus_milli, int64_t gpu_cores,
			   int64_t gpu_memory_bytes);
/* True if some node has instances that do for the group, in such a number, or may be cut into them: with
 * mig_ok, or of a profile that it names. */
bool snapshot_choices_on(const struct model *m, const struct node *n, const struct gpuq_group *g);

struct dra_choice;
/* One that would do. */
struct snap_choice {
	const char *
		profile; /* for the group, CHOICE_SHARE among others; NULL = claims alone are decided on */
	uint32_t group;
	const struct dra_choice
		*claims; /* by group, devices -1 = as it is; NULL = no group has alternatives */
};

/* Return what would do for the spec, of jobs in that queue: profiles that are charged the same in order of their
 * memory; alternatives in order of preference. *n = 0: it has no choice. At most GPUQ_MIG_TRIES_MAX. */
const struct snap_choice *snapshot_choices_of(struct taking *t, const struct request_spec *spec,
					      const struct queue *in, uint32_t *n);

/* Make the spec one that accepts this alone; NULL: no memory. */
const struct request_spec *snapshot_choices_pick(struct taking *t, const struct request_spec *spec,
						 const struct snap_choice *choice);

/* Return the spec of a job as its pods, or its nominated places, have it; spec itself where it has
 * none, or no choice. */
const struct request_spec *snapshot_choices_taken(struct taking *t, const struct job *j,
						  const struct request_spec *spec);

#endif
