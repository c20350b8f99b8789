/* profile.h - names of MIG profiles, and of the replicas of their instances
 *
 * Owns     the table of profiles whose cards are not cut into sevenths.
 * Touches  memory only.
 * Used by  spec/ (job files, manifests), cluster/kube (nodes, pods), the daemon's ledger, snapshot/, sim/.
 *
 * A profile is 1g.10gb; 1g.10gb+me of a job file is 1g.10gb.me where a resource has that name. Instances
 * that the device plugin offers in R replicas each are of another: a node has 1g.10gb.shared/R of them, or
 * 1g.10gb.shared:R where the plugin kept the name of whole instances for their resource. A job requests
 * 1g.10gb.shared, whatever R is, and gets one.
 */
#ifndef LIBGPUQ_SPEC_PROFILE_H
#define LIBGPUQ_SPEC_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUQ_PROFILE_SHARED ".shared"
#define GPUQ_PROFILE_ROOM 96
#define GPUQ_MIG_SLICES 7 /* of compute that a card is cut into: an instance has at most all */
#define GPUQ_REPLICAS_MAX 1000 /* of one device: a thousandth is the least part */

/* Compare profiles: a plus sign is a point. */
static inline bool gpuq_profile_same(const char *x, const char *y)
{
	for (; *x && (*x == *y || ((*x == '+' || *x == '.') && (*y == '+' || *y == '.'))); x++)
		y++;
	return *x == *y;
}

/* Return the length of the profile of the whole instances. */
size_t gpuq_profile_whole(const char *profile);
/* True if both are of the same instances, whole or in replicas. */
bool gpuq_profile_kin(const char *x, const char *y);
/* True if it is of replicas. */
bool gpuq_profile_is_shared(const char *profile);
/* True if it is of replicas, and not told of how many to an instance: several profiles of nodes may serve it. */
bool gpuq_profile_is_any(const char *profile);
/* A whole instance has so many of so many compute slices of its card; {1, 1} for a name that is no profile. */
struct gpuq_slices {
	int64_t has, of;
};
struct gpuq_slices gpuq_profile_slices(const char *profile);
/* Return the number of replicas of an instance; 1 = it is whole, or the number is not told. */
uint32_t gpuq_profile_replicas(const char *profile);
/* True if instances that a node has are such as are requested. */
bool gpuq_profile_serves(const char *has, const char *asked);

/* True if instances of the profile have that name behind nvidia.com/mig-. */
bool gpuq_profile_is_resource(const char *profile, const char *name);
/* Write a profile as people and jobs know it: 1g.10gb.shared. Returns out. */
const char *gpuq_profile_name(const char *profile, char out[GPUQ_PROFILE_ROOM]);
/* Write what is behind nvidia.com/mig- in the name of its resource. Returns out. */
const char *gpuq_profile_resource(const char *profile, char out[GPUQ_PROFILE_ROOM]);
/* Write the profile of replicas of an instance; renamed: they have a resource of their own; replicas 0: not known how
 * many. Returns out. */
const char *gpuq_profile_share(const char *whole, bool renamed, uint32_t replicas,
			       char out[GPUQ_PROFILE_ROOM]);

#endif
