/* place.h - the state directory: its filesystem, its lock, what lies in it
 *
 * Owns     nothing; the lock's descriptor is the caller's.
 * Used by  store/.
 */
#ifndef GPUQD_STORE_PLACE_H
#define GPUQD_STORE_PLACE_H

#include "libgpuq/err.h"

#define LOCK_FILE "gpuqd.lock"

/* Make dir (0700) and what leads to it. */
int place_make(const char *dir, struct gpuq_err *err);
/* GPUQ_EINVAL on a network filesystem. */
int place_check_fs(const char *dir, struct gpuq_err *err);
/* Take dir's lock: a descriptor, or GPUQ_EBUSY (err names the process), GPUQ_EPERM, GPUQ_EIO. */
int place_lock(const char *dir, struct gpuq_err *err);
/* The same to read only, without a trace: -1 when there is no lock to take. */
int place_lock_shared(const char *dir, struct gpuq_err *err);
/* GPUQ_ECORRUPT when dir holds what only a database leads to: jobs, logs, a mark. */
int place_is_empty(const char *dir, struct gpuq_err *err);
/* GPUQ_EIO when dir/file is not the file of fd. */
int place_is_file(const char *dir, const char *file, int fd, struct gpuq_err *err);

#endif
