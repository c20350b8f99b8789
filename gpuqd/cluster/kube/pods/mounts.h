/* mounts.h - what a job's pods name of the namespace they run in, and whether they may
 *
 * Owns     nothing. Touches memory only.
 * Used by  kube/check.c (before anything is stored), owned.c (before a pod is created).
 *
 * The daemon's token creates the pods, so a job reads whatever they mount, whether or not its owner
 * may read it: the queue says what that is (site/walls.h). In every queue are refused: objects that
 * gpuqd itself makes for jobs, and mounts at paths by which the NVIDIA runtime allocates devices.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_MOUNTS_H
#define GPUQD_CLUSTER_KUBE_PODS_MOUNTS_H

#include "gpuqd/site/walls.h"
#include "libgpuq/err.h"
#include "libgpuq/spec.h"

enum mount_kind { MOUNT_SECRET, MOUNT_CONFIG_MAP, MOUNT_CLAIM, N_MOUNT_KINDS };

/* Called for each name, with the path of the field. A negative result ends the walk. */
typedef int (*mount_fn)(void *arg, enum mount_kind kind, const char *name, const char *path);

/* Walk over all names in the pods of one group. Returns the last result of fn. */
int mounts_each(const struct gpuq_group *g, mount_fn fn, void *arg);

const struct site_mounts *mounts_rule(const struct site_walls *w, enum mount_kind kind);
const char *mounts_key(enum mount_kind kind); /* of the site file: "secrets" */

/* Returns 0; GPUQ_EPERM with the path of the field and what is allowed. Whether an object is the
 * owner's is not known here. */
int mounts_check(const struct gpuq_spec *spec, const struct site_walls *walls,
		 struct gpuq_err *err);

#endif
