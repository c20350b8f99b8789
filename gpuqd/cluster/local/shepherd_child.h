/* shepherd_child.h - what happens between fork and exec
 *
 * Owns     the new process until it becomes the job.
 * Touches  identity, limits, descriptors, directory, environment.
 * Used by  shepherd_run.c, attendant.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_CHILD_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "gpuqd/cluster/local/order.h"

struct shepherd_child {
	const struct order *order;
	const struct gpuq_strlist *command; /* another program in the job's place; NULL */
	const char *pod_dir; /* absolute */
	int pod_fd; /* the same, open */
	int lock_fd; /* closed first: a job must not hold its shepherd's lock; -1 none */
	int go_fd; /* one byte comes when it may begin; its end means never; -1 at once */
	int tty_fd; /* its terminal, for all three; -1 none */
	int in_fd; /* -1 = nothing to be read */
	int out_fd, err_fd; /* err_fd -1 = the same */
	int tell_fd; /* "T..." where output goes, "W..." why it could not start; -1 nobody asks */
	pid_t shepherd; /* its parent, with which it dies */
};

/* Take on the identity of the job's user. False when that cannot be. */
bool shepherd_child_become(const struct order *o);

/* Become the job. Does not return: exits 1 (directory or files), 126 or 127 (cannot
 * run) with a sentence in the output and on tell_fd. */
void shepherd_child_run(const struct shepherd_child *c) __attribute__((noreturn));

#endif
