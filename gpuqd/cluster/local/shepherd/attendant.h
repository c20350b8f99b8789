/* attendant.h - one program beside a job, or one connection to a port of it
 *
 * Owns     that program and everything below it until the client hangs up or the job ends.
 * Touches  processes, a terminal or pipes, the loopback.
 * Used by  shepherd_talk.c, which forks it; so the shepherd's job is its ancestor's, and
 *          the end of the job is its end.
 *
 * It speaks as talk.h says on one connection, whose end is a hang-up: SIGHUP to the
 * program's session, a moment later SIGKILL. Background processes of a program that ended by itself belong
 * to the job.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_ATTENDANT_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_ATTENDANT_H

#include <sys/types.h>

#include "gpuqd/cluster/local/shepherd/devlimit.h"
#include "gpuqd/cluster/local/shepherd/memlimit.h"
#include "gpuqd/cluster/local/shepherd/order.h"

/* Does not return. */
void attendant_run(const struct order *o, const char *dir, const struct memlimit *limit,
		   const struct devlimit *devices, int fd, pid_t shepherd)
	__attribute__((noreturn));

#endif
