/* spec_kinds.h - the kinds of value in a job that are more than a scalar
 *
 * Owns     nothing; private to spec_schema.c and the files of these kinds.
 * Touches  memory only.
 *
 * Each is given the address of the field it is named after; some fill its neighbours
 * in struct gpuq_spec or gpuq_group as well, which is why they must stand there and
 * nowhere else.
 */
#ifndef LIBGPUQ_SPEC_SPEC_KINDS_H
#define LIBGPUQ_SPEC_SPEC_KINDS_H

#include <stddef.h>

#include "libgpuq/spec/spec_int.h"

/* A custom kind is given one field's address; these lead to the struct around it. */
#define GROUP_OF(p, field)                                                                         \
	((struct gpuq_group *)(void *)((char *)(p)-offsetof(struct gpuq_group, field)))
#define CGROUP_OF(p, field)                                                                        \
	((const struct gpuq_group *)(const void *)((const char *)(p)-offsetof(struct gpuq_group,   \
									      field)))

/* At group.required: all three add to what is required, in any order. */
extern const struct gpuq_custom spec_selector_kind, spec_affinity_kind, spec_constraint_kind;

/* At the group's field of the same name; pods at pods_min, topology at
 * topology_required. */
extern const struct gpuq_custom spec_pods_kind, spec_gpus_kind, spec_command_kind, spec_hosts_kind,
	spec_topology_kind, spec_resources_kind, spec_cores_kind, spec_mig_kind;

/* At the job's field of the same name. */
extern const struct gpuq_custom spec_array_kind, spec_depends_kind, spec_signal_kind,
	spec_licenses_kind, spec_notify_kind, spec_retry_kind, spec_script_kind, spec_code_kind,
	spec_flavors_kind, spec_queues_kind, spec_account_kind;

/* Return 0 if text is a name, or several with commas. GPUQ_EINVAL, GPUQ_ERANGE: *bad is the one that is wrong, "" for
 * none at all; GPUQ_ENOMEM. (spec_names.c) */
int spec_queues_ok(struct gpuq_arena *a, const char *text, const char **bad);

bool spec_account_ok(const char *s); /* it may be an account */

#endif
