/* policy.h - limits on the requests of a job for its pods
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/submit (before anything is stored); podspec.c writes what passed.
 *
 * The daemon's token creates the pods, so a job must not borrow powers through it.
 * `baseline` and `restricted` are the levels of these names in the Kubernetes
 * documentation, "Pod Security Standards"; the cluster's own admission may demand more.
 * Fields that `restricted` requires and a job omits are written into its pods
 * (podspec_restrict.c); fields that violate it are refused.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_POLICY_H
#define GPUQD_CLUSTER_KUBE_PODS_POLICY_H

#include "libgpuq/err.h"
#include "libgpuq/spec.h"

enum kube_policy { KUBE_POLICY_RESTRICTED, KUBE_POLICY_BASELINE, KUBE_POLICY_PRIVILEGED };

/* Returns 0; GPUQ_EPERM with the path of the field in err->field ("groups[0].template
 * .spec.hostNetwork") and what is allowed instead; GPUQ_EINVAL for what gpuq cannot
 * run at any level (scheduling gates, device claims). */
int podspec_check(const struct gpuq_spec *spec, enum kube_policy level, struct gpuq_err *err);
/* Pods that others made get nothing that `restricted` requires: refuse those that lack it. */
int podspec_check_made(const struct gpuq_spec *spec, enum kube_policy level, struct gpuq_err *err);

#endif
