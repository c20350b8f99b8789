/* shepherd_log.h - where a pod's output is kept
 *
 * Owns     DIR/logs/POD.log while the pod runs, and POD.to beside it.
 * Touches  those files.
 * Used by  the shepherd (writes); the file layout also by local_log.c.
 *
 * POD.log holds standard output and error as they came, unless the job sends them to
 * files of its own (--output); POD.to then says where, so that `gpuq logs` can show
 * that file: "DEV INO UID OFFSET PATH". The path is a wish of its user's and may lead
 * anywhere by now, and earlier shepherds took all of it from the job: POD.to grants
 * nothing. The file is read by a process with the identity of the job's owner, which the
 * ledger knows (log_reader.h), and only while it is the file that the job opened.
 *
 * No more than LOG_POD_BYTES_MAX of one pod are kept: the oldest go (a hole is punched
 * at the file's beginning, offsets stay), because the end is what people look for.
 *
 * Output leaves LOG_FREE_BYTES_MIN of the filesystem alone. The database is on it too, and on a
 * full disk needs what it kept for that (store/ballast.h) to cancel and end jobs: output would
 * take it faster than they can.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_LOG_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_POD_BYTES_MAX (INT64_C(256) << 20)
#define LOG_PUNCH_BYTES (INT64_C(16) << 20) /* how much goes at once */
#define LOG_FREE_BYTES_MIN (INT64_C(12) << 20)

/* Files of a pod's output are called STEM.log and STEM.to: POD.UID, so that a pod of the same
 * name that was another's has files of its own; POD where uid is "", as in older versions. */
void shepherd_log_stem(const char *pod, const char *uid, char out[256]);

struct shepherd_log {
	int fd; /* -1 = cannot be kept */
	int64_t size; /* bytes of the file */
	int64_t punched; /* of which this many at the beginning are gone */
	int64_t max_bytes; /* LOG_POD_BYTES_MAX */
	int64_t free_bytes; /* LOG_FREE_BYTES_MIN */
	int64_t lost; /* bytes that could not be written, not yet told */
};

/* Open LOGS/STEM.log for appending. A failure leaves a log that drops everything. */
void shepherd_log_open(struct shepherd_log *l, int logs_dirfd, const char *stem);
void shepherd_log_write(struct shepherd_log *l, const char *bytes, size_t n);
void shepherd_log_close(struct shepherd_log *l);

/* The same file, for reading; -1. */
int shepherd_log_reader(int logs_dirfd, const char *stem);

#define LOG_TARGET_BYTES_MAX 8448 /* of POD.to */

struct log_target {
	uint64_t dev, ino;
	uint32_t uid; /* of the job; not to be trusted when read */
	int64_t offset; /* where the job began to write */
	const char *path; /* absolute */
};

/* Write POD.to, as a whole or not at all. */
int shepherd_log_redirect(int logs_dirfd, const char *stem, const struct log_target *to);

/* Read POD.to into text[LOG_TARGET_BYTES_MAX]; out->path points there. False when the
 * output is in POD.log. */
bool shepherd_log_target(int logs_dirfd, const char *stem, char *text, struct log_target *out);

#endif
