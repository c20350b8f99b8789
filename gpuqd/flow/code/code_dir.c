#include "gpuqd/flow/code/code_dir.h"
#include "libgpuq/base/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARCHIVE "archive.tgz" /* podspec_code.c looks for it */
#define PART ".archive.part"
#define CHUNK_BYTES (256u << 10)

static int io(const char *dir, const char *name, struct gpuq_err *err)
{
	return gpuq_fail(err, errno == ENOSPC || errno == EDQUOT ? GPUQ_ESTORAGE : GPUQ_EIO,
			 "%s%s%s: %s", dir, *name ? "/" : "", name, strerror(errno));
}

/* Open the directory of an archive; -1 with errno set. */
static int open_one(int top, const char *name)
{
	return openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Returns false with errno set. */
static bool copy(int from, int to)
{
	char *chunk = malloc(CHUNK_BYTES);
	bool ok = chunk != NULL;
	ssize_t n = -1;
	off_t at = 0;

	while (ok && (n = pread(from, chunk, CHUNK_BYTES, at)) > 0) {
		ok = gpuq_write_all(to, chunk, (size_t)n) == 0;
		at += n;
	}
	free(chunk);
	return ok && n == 0;
}

/* Pods may run as any user; those that may look into the volume from elsewhere are its administrator's affair. */
static bool put_at(int dir, int from)
{
	const int fd =
		openat(dir, PART, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fd >= 0 && copy(from, fd) && fchmod(fd, 0444) == 0 && fsync(fd) == 0;
	int why = errno;

	if (fd >= 0 && close(fd) != 0 && ok) {
		why = errno;
		ok = false;
	}
	if (ok && (renameat(dir, PART, dir, ARCHIVE) != 0 || fsync(dir) != 0)) {
		why = errno;
		ok = false;
	}
	if (!ok && fd >= 0)
		unlinkat(dir, PART, 0);
	errno = why;
	return ok;
}

int code_dir_put(const char *dir, const char *name, int fd, struct gpuq_err *err)
{
	const int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int one = -1, rc = 0;

	if (top < 0)
		return io(dir, "", err);
	if (mkdirat(top, name, 0755) != 0 && errno != EEXIST)
		rc = io(dir, name, err);
	if (rc == 0)
		one = open_one(top, name);
	if (rc == 0 && (one < 0 || fchmod(one, 0755) != 0 || !put_at(one, fd) || fsync(top) != 0))
		rc = io(dir, name, err);
	if (one >= 0)
		close(one);
	if (rc < 0)
		unlinkat(top, name, AT_REMOVEDIR);
	close(top);
	return rc;
}

int code_dir_remove(const char *dir, const char *name, struct gpuq_err *err)
{
	const int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int one, rc = 0;

	if (top < 0)
		return io(dir, "", err);
	one = open_one(top, name);
	if (one >= 0) {
		unlinkat(one, PART, 0);
		if (unlinkat(one, ARCHIVE, 0) != 0 && errno != ENOENT)
			rc = io(dir, name, err);
		close(one);
	} else if (errno != ENOENT) {
		rc = io(dir, name, err);
	}
	if (rc == 0 && one >= 0 && unlinkat(top, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
		rc = io(dir, name, err);
	close(top);
	return rc;
}
