/* snapshot_choices.h - requests that accept instances of several MIG profiles
 *
 * Owns     for one snapshot: the profiles that nodes have, or could be cut into, with their memory.
 * Touches  memory only.
 * Used by  snapshot_take.c, snapshot_take_jobs.c.
 *
 * A group that names several profiles, or accepts an instance in place of a share of a device (mig_ok), is
 * a request with others beside it: one for each profile that would do. A job that runs has the one that its
 * pods got.
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

/* Return the profiles that would do for the spec, CHOICE_SHARE among them, and the group that accepts
 * them; those that are charged the same are in order of their memory. *n = 0: it has no choice. */
const char *const *snapshot_choices_of(struct taking *t, const struct request_spec *spec,
				       uint32_t *group, uint32_t *n);

/* Make the spec one that accepts this profile alone; NULL: no memory. */
const struct request_spec *snapshot_choices_pick(struct taking *t, const struct request_spec *spec,
						 uint32_t group, const char *profile);

/* Return the spec of a job as its pods, or its nominated places, have it; spec itself where it has
 * none, or no choice. */
const struct request_spec *snapshot_choices_taken(struct taking *t, const struct job *j,
						  const struct request_spec *spec);

#endif
