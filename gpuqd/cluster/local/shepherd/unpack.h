/* unpack.h - the files that a job carries, in a directory of its own
 *
 * Owns     the directory `code` of a pod's directory; the archive there is `code.tgz`.
 * Touches  files; starts tar.
 * Used by  shepherd_child.c (unpack), shepherd_run.c (removes it), local_files.c, local_order.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_UNPACK_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_UNPACK_H

#include <stddef.h>
#include <sys/types.h>

#define CODE_DIR "code"
#define CODE_ARCHIVE "code.tgz"

/* Make the directory, of the job's user: called with the identity of the daemon. Returns a descriptor of it, and of
 * the archive in *archive; -1 with errno. */
int unpack_prepare(int pod_fd, uid_t uid, gid_t gid, int *archive);

/* Unpack, as the job's user. Returns 0, or -1 with a sentence. */
int unpack_run(int dir_fd, int archive_fd, char *why, size_t room);

#endif
