/* cost.h - what quotas count for shares of devices and for MIG instances
 *
 * Touches  memory only.
 * Used by  snapshot sealing, holdings.c.
 */
#ifndef GPUQD_SNAPSHOT_COST_H
#define GPUQD_SNAPSHOT_COST_H

#include "gpuqd/snapshot/snapshot.h"

/* Return the thousandths of a device that one instance of a MIG profile counts: its compute slices
 * of seven (of four on devices that have four), rounded up; of one of R replicas of it, an R-th, rounded down, as
 * those of whole devices are. 1000 for a name that is no profile. */
int64_t cost_of_profile(const char *profile);
#define COST_EXACT INT64_C(1000000000) /* of cost_exact: a device */
/* Return what so many of them are of devices, rounded once, in billionths, down. */
int64_t cost_exact(const char *profile, int64_t count);
/* Return the sum that a limit on thousandths of devices allows where instances are among them: sevenths are
 * rounded up, so that those of a whole device are a thousandth more than it. Never an instance more. */
int64_t cost_allowed(int64_t limit_milli);
/* Return its memory in MiB, as its name has it, of a replica its part; -1 for a name that is no profile. */
int64_t cost_profile_mib(const char *profile);
/* Return the profile that counts least of those of which a pod takes one: mig and more; NULL where mig is. */
const char *cost_least_profile(const char *mig, const struct gpuq_strlist *more);
/* Return the number of instances of the profile, or of their replicas, that a card of the product has room for. */
int64_t cost_instances(const char *profile, const char *product);

/* Return the same for a pod of a job that has not started: its devices, its instances of the profile
 * (NULL = none), or the part of one by its cores or memory (0 = not given); of_bytes is the memory of
 * a device, 0 not known. */
int64_t cost_of_ask(const char *mig, int64_t gpus_milli, int64_t cores, int64_t bytes,
		    int64_t of_bytes);

/* Return the thousandths that a share of each device of the node counts: its part, or its memory if that is
 * more of the device. */
int64_t cost_of_share(const struct snap_group *g, const struct snap_node *n, int64_t part);

/* Return the same for all pods of a spec, each group at its minimum, on devices with that memory (0 = not
 * known). */
int64_t cost_of_spec(const struct gpuq_spec *spec, int64_t of_bytes);

/* Return the thousandths of devices that one pod of the group counts on a flavor (SNAP_NONE: the
 * maximum over all flavors). */
int64_t cost_of_pod(const struct snapshot *s, const struct snap_group *g, uint32_t flavor);

/* Return the same for all groups of a request, each at its minimum. */
int64_t cost_of_request(const struct snapshot *s, const struct snap_request *r, uint32_t flavor);

/* Return the thousandths of devices that a pod counts: those of the devices it holds, where they
 * are known. */
int64_t cost_of_alloc(const struct snapshot *s, const struct snap_alloc *a);

/* Return the flavor that n pods of one job are charged to: that of their devices. Pods without
 * devices are passed over. SNAP_NONE = none of them has devices. */
uint32_t cost_flavor(const struct snapshot *s, const struct snap_alloc *pods, uint32_t n);

/* Return the work, in device-milliseconds, that ending pods of a job would lose: the time since its
 * last checkpoint or its start, plus its restart cost. gpus_milli: the devices of those pods. */
int64_t cost_of_loss(const struct snapshot *s, const struct snap_job *j, int64_t gpus_milli);

#endif
