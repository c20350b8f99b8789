/* shepherd_child.h - what happens between fork and exec
 *
 * Owns     the new process until it becomes the job.
 * Touches  identity, limits, descriptors, directory, environment.
 * Used by  shepherd.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_CHILD_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_CHILD_H

#include <sys/types.h>

#include "gpuqd/cluster/local/order.h"

struct shepherd_child {
	const struct order *order;
	const char *pod_dir; /* absolute */
	int pod_fd; /* the same, open */
	int lock_fd; /* closed first: a job must not hold its shepherd's lock */
	int go_fd; /* one byte comes when it may begin; its end means never */
	int out_fd; /* pipe to the log */
	int tell_fd; /* "T..." where output goes, "W..." why it could not start */
	pid_t shepherd;
};

/* Become the job. Does not return: exits 1 (directory or files), 126 or 127 (cannot
 * run) with a sentence in the output and on tell_fd. */
void shepherd_child_run(const struct shepherd_child *c) __attribute__((noreturn));

#endif
