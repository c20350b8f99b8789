/* memlimit.h - a memory limit for one pod, where the kernel lets us set one
 *
 * Owns     one control group per pod, named by the uid of the pod: names of pods come again,
 *          and groups are shared by all daemons of a machine.
 * Touches  /sys/fs/cgroup (version 2, or version 1's memory controller); needs root and
 *          a writable tree. Where that is not so a pod has no limit, and an end for
 *          lack of memory looks like any other SIGKILL.
 * Used by  the shepherd.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_MEMLIMIT_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_MEMLIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct memlimit {
	char path[512]; /* "" = there is none */
};

/* Make the group of the pod with this uid and put process pid in. False (and path "") when
 * it cannot be done: the pod runs without. */
bool memlimit_begin(struct memlimit *m, const char *uid, int64_t bytes, int pid);

/* Put another process under the same limit, if there is one. */
void memlimit_join(const struct memlimit *m, int pid);

/* Has the kernel killed a process of the group for its limit? */
bool memlimit_hit(const struct memlimit *m);

struct pod_used;

/* Set what the group has counted of its processes: memory, CPU time and I/O, each where the kernel has it. */
void memlimit_used(const struct memlimit *m, struct pod_used *u);

/* Remove the group of the pod with this uid, whether this process made it or one before it
 * did. */
void memlimit_end(const char *uid);

#endif
