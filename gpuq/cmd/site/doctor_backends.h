/* doctor_backends.h - systems that share devices: usable, not there, or there and broken
 *
 * Owns     the signs by which each is known, its faults and their remedies.
 * Touches  the replies of the server that the caller has.
 * Used by  cmd_doctor.c.
 */
#ifndef GPUQ_CMD_SITE_DOCTOR_BACKENDS_H
#define GPUQ_CMD_SITE_DOCTOR_BACKENDS_H

#include "libgpuq/val.h"

struct doctor_backend {
	const char *backend; /* "gpushare" */
	const char *state; /* "usable", "absent", "broken", "unserved" */
	const char *text, *advice; /* advice: of a broken one; "" none */
};

/* Call fn for each backend in turn, more than once for one with several faults. nodes: those of node.list;
 * rights: the reply of cluster.rights, NULL = not known; requests: why pools that grow get no nodes by
 * requests, "" = they do. Strings are in the arena. */
void doctor_backends(struct gpuq_arena *a, const struct gpuq_val *nodes,
		     const struct gpuq_val *rights, const char *requests,
		     void (*fn)(void *arg, const struct doctor_backend *b), void *arg);

/* Return whether the cluster has a thing that gpuqd asked for beside its rights; -1 = not known. */
int doctor_has(const struct gpuq_val *rights, const char *name);

#endif
