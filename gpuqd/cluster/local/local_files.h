/* local_files.h - the directory of a pod
 *
 * Touches  DIR/local.
 * Used by  local.c, local_log.c, local_pod.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_FILES_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_FILES_H

#include "gpuqd/cluster/local/local_int.h"

#define STEPS_FILE "steps" /* counts the sruns of the pod */
#define STEPS_VARIABLE "GPUQ_STEP_COUNTER" /* its path */

bool local_name_ok(const char *name);
int local_files_create(int local_fd, const struct local_pod *p, struct gpuq_err *err);
/* reason: as in struct pod_ref. */
int local_files_leave(int pod_fd, int64_t grace_us, const char *reason, struct gpuq_err *err);
bool local_files_tell(int pod_fd, const char *line); /* false = there is no receiver */
/* Remove the directory. GPUQ_EBUSY while a shepherd has it. */
int local_files_remove(int local_fd, const char *name, struct gpuq_err *err);
void local_files_sweep(int local_fd); /* what a crash left half made or half removed */

#endif
