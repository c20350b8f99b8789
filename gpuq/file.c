#include "gpuq/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES (64u << 10)

int file_read(const char *path, struct gpuq_buf *out, struct gpuq_err *err)
{
	const int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int rc = 0;

	if (fd < 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	for (;;) {
		size_t room = PIECE_BYTES;

		if (out->max_bytes && room > out->max_bytes - out->len)
			room = out->max_bytes - out->len;
		if (room == 0) {
			char one;

			/* Full: it fits only if this is the end. */
			n = read(fd, &one, 1);
			if (n > 0)
				rc = gpuq_fail(err, GPUQ_ETOOBIG, "%s: larger than %zu KiB", path,
					       out->max_bytes >> 10);
		} else {
			rc = gpuq_buf_reserve(out, room);
			if (rc < 0) {
				gpuq_fail(err, rc, "%s: out of memory", path);
				break;
			}
			n = read(fd, out->data + out->len, room);
			if (n > 0)
				out->len += (size_t)n;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
		if (n <= 0 || rc < 0)
			break;
	}
	if (fd != STDIN_FILENO)
		close(fd);
	return rc;
}
