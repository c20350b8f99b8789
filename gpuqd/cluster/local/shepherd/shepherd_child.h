/* shepherd_child.h - what happens between fork and exec
 *
 * Owns     the new process until it becomes the job.
 * Touches  identity, limits, descriptors, directory, environment.
 * Used by  shepherd_run.c, attendant.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_CHILD_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpuqd/cluster/local/shepherd/order.h"

/* A message of the child to its shepherd before it becomes the job: one packet each, over a
 * socket that keeps their bounds, so that no byte of a path or a command can end one. Only
 * numbers of the kernel's are taken from it; paths are never opened with the shepherd's
 * identity. Both ends are one program. */
enum tell_type {
	TELL_TARGET = 'T', /* standard output goes to a file of the job's own: text is its path */
	TELL_STDERR =
		'E', /* the packet has the file of standard error, if it is one: last_words.h */
	TELL_WHY = 'W', /* it could not start: text is a sentence */
};
struct tell {
	enum tell_type type;
	uint64_t dev, ino; /* of the file */
	int64_t size; /* of the file, before the job wrote to it */
	char text[8192]; /* NUL-terminated; no more of it is sent than is used */
};

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
	int tell_fd; /* takes struct tell; -1 none */
	pid_t shepherd; /* its parent, with which it dies */
};

/* Take on the identity of a user for good: uid, gid and groups. Nothing of root's stays: no
 * group, no capability, no keyring. False when that cannot be. */
bool shepherd_child_become(uid_t uid, gid_t gid);

/* Become the job. Does not return: exits 1 (directory or files), 126 or 127 (cannot
 * run) with a sentence in the output and on tell_fd. */
void shepherd_child_run(const struct shepherd_child *c) __attribute__((noreturn));

#endif
