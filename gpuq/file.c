#include "gpuq/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* ---- files of gpuq ---- */

ssize_t file_self(char *out, size_t room)
{
	static const char loader[] = "/" FILE_CARRIED_LOADER;
	const size_t tail = sizeof(loader) - 1;
	const ssize_t n = readlink("/proc/self/exe", out, room - 1);

	if (n <= 0)
		return -1;
	out[n] = '\0';
	/* Carried into a pod, where its loader runs it (carry.h). */
	if ((size_t)n <= tail || strcmp(out + n - tail, loader) != 0)
		return n;
	snprintf(out + n - tail, tail, "/gpuq");
	return (ssize_t)strlen(out);
}

static bool path_beside(const char *file, char out[FILE_PATH_BYTES])
{
	const size_t room = FILE_PATH_BYTES - strlen(file) - 2;
	const ssize_t n = file_self(out, room);
	char *slash;

	out[n > 0 ? n : 0] = '\0';
	slash = strrchr(out, '/');
	if (slash)
		memcpy(slash + 1, file, strlen(file) + 1);
	return slash != NULL;
}

bool file_beside(const char *file, char out[FILE_PATH_BYTES])
{
	return path_beside(file, out) && access(out, R_OK) == 0;
}

const char *file_exec_beside(const char *program, char *const argv[])
{
	static char path[FILE_PATH_BYTES];
	char moved[80];

	if (path_beside(program, path))
		execv(path, argv);
	snprintf(moved, sizeof(moved), FILE_MOVED_LIBEXEC "%s", program);
	if (path_beside(moved, path))
		execv(path, argv);
	snprintf(path, sizeof(path), "%s/%s", PKGLIBEXECDIR, program);
	execv(path, argv);
	return path;
}
