/* shepherd_log.h - where a pod's output is kept
 *
 * Owns     DIR/logs/POD.log while the pod runs, and POD.to beside it.
 * Touches  those files.
 * Used by  the shepherd (writes); the file layout also by the log reader.
 *
 * POD.log holds standard output and error as they came, unless the job sends them to
 * files of its own (--output); POD.to then says where, so that `gpuq logs` can show
 * that file: "DEV INO UID OFFSET PATH", identity included, because a path that its
 * user may change by then is not to be followed blindly.
 *
 * No more than LOG_POD_BYTES_MAX of one pod are kept: the oldest go (a hole is punched
 * at the file's beginning, offsets stay), because the end is what people look for.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_LOG_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_POD_BYTES_MAX (INT64_C(256) << 20)
#define LOG_PUNCH_BYTES (INT64_C(16) << 20) /* how much goes at once */

struct shepherd_log {
	int fd; /* -1 = cannot be kept */
	int64_t size; /* bytes of the file */
	int64_t punched; /* of which this many at the beginning are gone */
	int64_t max_bytes; /* LOG_POD_BYTES_MAX */
	int64_t lost; /* bytes that could not be written, not yet told */
};

/* Open LOGS/POD.log for appending. A failure leaves a log that drops everything. */
void shepherd_log_open(struct shepherd_log *l, int logs_dirfd, const char *pod);
void shepherd_log_write(struct shepherd_log *l, const char *bytes, size_t n);
void shepherd_log_close(struct shepherd_log *l);

/* The same file, for reading; -1. */
int shepherd_log_reader(int logs_dirfd, const char *pod);

/* Write POD.to, as a whole or not at all. */
int shepherd_log_redirect(int logs_dirfd, const char *pod, const char *text);

#endif
