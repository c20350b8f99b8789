/* log_reader.h - reads the output file of a job with the identity of the job's owner
 *
 * Owns     nothing. Touches the one file, inotify, its standard input.
 * Used by  the shepherd program in a process of its own (--shepherd --read-output), which the
 *          daemon starts for `gpuq logs` of a job that has a file of its own.
 *
 * The path was chosen by the owner of the job and may lead to anything since: a link, a device,
 * a file system of its own that never answers. So neither the daemon nor root opens
 * it or reads from it: this process becomes the owner first and ends when it cannot, and what
 * hangs is this process alone. It shows the file only while it is the regular file that the
 * job opened (device and inode).
 *
 * Standard input is one end of a socket pair. The daemon sends one request; the bytes of the
 * file come back as they are, and the end of the stream is the end. As long as the daemon's
 * half is open the file is followed; once it is shut down, what the file holds is sent and
 * the process exits. A request is two NUL-terminated strings, the numbers and the path:
 *   "1 UID GID DEV INO OFFSET TAIL_LINES" PATH
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_LOG_READER_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_LOG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/cluster/local/shepherd/shepherd_log.h"
#include "libgpuq/buf.h"

#define LOG_READER_FLAG "--read-output"
#define LOG_READER_NO_ID UINT32_MAX /* as gid: the one of the password database */

struct log_request {
	uint32_t uid, gid; /* of the job's owner, by the ledger */
	struct log_target target; /* its uid is ignored */
	int64_t tail_lines; /* -1 = all, from target.offset on */
};

void log_request_write(struct gpuq_buf *b, const struct log_request *r);
/* False when text[0..n) is none. The path points into text. */
bool log_request_read(const char *text, size_t n, struct log_request *out);

/* The process. Returns the exit code. */
int log_reader_main(void);

/* Where the last n lines of fd begin, at `from` or behind it. A newline at the very end ends a
 * line and begins none. */
int64_t log_tail(int fd, int64_t from, int64_t n);

#endif
