/* write.h - all of some bytes into a file
 *
 * Owns     nothing. Touches the descriptor.
 * Used by  flow/code, flow/copies/target_dir.c, flow/logs/kept.c, store/batchlog.c and cluster/local/local_files.c of
 *          gpuqd; servers.c, cmd/site/cmd_backup.c, slurm/carry.c and pack/archive.c of gpuq.
 *
 * A signal or a short write does not end it. Both return 0, or -1 with errno; where nothing was taken without an
 * error, that is ENOSPC.
 */
#ifndef LIBGPUQ_WRITE_H
#define LIBGPUQ_WRITE_H

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

static inline int gpuq_write_all(int fd, const void *bytes, size_t n)
{
	for (const char *p = bytes, *end = p + n; p < end;) {
		const ssize_t k = write(fd, p, (size_t)(end - p));

		if (k < 0 && errno == EINTR)
			continue;
		if (k == 0)
			errno = ENOSPC;
		if (k <= 0)
			return -1;
		p += k;
	}
	return 0;
}

static inline int gpuq_write_all_at(int fd, const void *bytes, size_t n, int64_t at)
{
	for (const char *p = bytes, *end = p + n; p < end;) {
		const ssize_t k = pwrite(fd, p, (size_t)(end - p), (off_t)at);

		if (k < 0 && errno == EINTR)
			continue;
		if (k == 0)
			errno = ENOSPC;
		if (k <= 0)
			return -1;
		p += k;
		at += k;
	}
	return 0;
}

#endif
