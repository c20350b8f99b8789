/* shepherd_run.h - one pod from its start to its end
 *
 * Owns     the job's process and what it leaves behind, until nothing of it runs.
 * Touches  processes, signals, the pod's state, control FIFO and log.
 * Used by  shepherd.c, once per process.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_RUN_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_RUN_H

#include "gpuqd/cluster/local/shepherd/order.h"

/* In each job's environment, with the object's uid: what a dead shepherd left behind is
 * found by it. */
#define SHEPHERD_MARK "GPUQ_POD_UID"

/* Time beyond its time limit after which the shepherd ends a job itself (the daemon should have,
 * long before). */
#define SHEPHERD_OVERTIME_US (INT64_C(60) * 1000000)

/* Run the pod of dir (absolute; pod_fd is the same, lock_fd its lock, held). Returns an
 * exit code when the pod's end is written. */
int shepherd_run(const struct order *order, const char *dir, int pod_fd, int lock_fd);

#endif
