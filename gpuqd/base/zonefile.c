#include "gpuqd/base/zonefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if it can be the name of a zone: no part of it leads out of the directory. */
static bool is_name(const char *name)
{
	static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/_+-";

	return *name && *name != '/' && strlen(name) <= 64 && name[strspn(name, known)] == '\0';
}

static int read_all(int fd, const char *name, struct gpuq_buf *out, struct gpuq_err *err)
{
	char chunk[4096];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return gpuq_fail(err, GPUQ_EIO, ZONEFILE_DIR "/%s: %s", name,
					 strerror(errno));
		gpuq_buf_add(out, chunk, (size_t)n);
		if (out->failed)
			return gpuq_fail(err, GPUQ_ETOOBIG,
					 ZONEFILE_DIR "/%s: larger than a time zone", name);
	}
	return 0;
}

int zonefile_read(const char *name, struct gpuq_buf *out, struct gpuq_err *err)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, rc;

	if (!is_name(name))
		return gpuq_fail(err, GPUQ_ENOENT, "no time zone is named %s", name);
	snprintf(path, sizeof(path), ZONEFILE_DIR "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return gpuq_fail(err, errno == ENOENT || errno == ENOTDIR ? GPUQ_ENOENT : GPUQ_EIO,
				 "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		rc = gpuq_fail(err, GPUQ_ENOENT, "%s: not a time zone", path);
	else
		rc = read_all(fd, name, out, err);
	close(fd);
	return rc;
}
