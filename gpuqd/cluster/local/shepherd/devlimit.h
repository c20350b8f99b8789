/* devlimit.h - which NVIDIA devices one pod can open, where the kernel lets us say so
 *
 * Owns     one control group per pod, named by the uid of the pod as in memlimit.h, and the
 *          rule of that group.
 * Touches  control groups: version 2 with a program of the kind BPF_PROG_TYPE_CGROUP_DEVICE
 *          (bpf(2)), or version 1's devices controller. Needs root.
 * Used by  the shepherd; local.c asks once whether it can be done.
 *
 * The group opens and makes none of the character devices 195:0 to 195:253 but its own; 254 (modeset) and 255 (control) stay, as do all devices of other majors: nvidia-uvm,
 * nvidia-caps and what has nothing to do with NVIDIA. The kernel asks for every member of the
 * group and all that they start, whatever user they are.
 *
 * Unlike a memory limit this one is not best effort: where the key is set no pod runs
 * without it.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_DEVLIMIT_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_DEVLIMIT_H

#include <stdbool.h>
#include <stddef.h>

#define DEVLIMIT_MAJOR 195
#define DEVLIMIT_MINORS 254 /* 0 to 253 are devices */

struct devlimit {
	char path[512]; /* of the group; "" = there is none */
};

/* The ways there are, tried in this order. */
size_t devlimit_n_ways(void);
const char *devlimit_way(size_t way);

/* Make the group of the pod with this uid, that opens only the minors of the list ("0,3", ""
 * none), and put process pid in (0 = none yet). False, why in words and no group when it
 * cannot be done. */
bool devlimit_begin(struct devlimit *d, const char *uid, const char *minors, int pid,
		    char why[200]);
/* In this way alone. */
bool devlimit_begin_in(size_t way, struct devlimit *d, const char *uid, const char *minors, int pid,
		       char why[200]);

/* Put another process under the same rule; true when there is none. */
bool devlimit_join(const struct devlimit *d, int pid);

/* Remove the group of the pod with this uid, made by this process or an earlier one. */
void devlimit_end(const char *uid);

/* Can it be done here? Makes a group and removes it. */
bool devlimit_check(char why[200]);

#endif
