#include "gpuqd/flow/copies/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/flow/journal.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/copy.h"

struct backup {
	struct store *store;
	int fd;
	int64_t bytes;
	struct store_identity id;
	/* of a file that is kept: its directory, its name, and its name while it is written */
	int dir;
	char *name, *part;
};

int backup_new(struct journal *j, struct backup **out, struct gpuq_err *err)
{
	struct backup *b = calloc(1, sizeof(*b));

	if (!b)
		return gpuq_no_memory(err);
	b->store = journal_store(j);
	b->dir = -1;
	b->fd = store_scratch(b->store, err);
	if (b->fd < 0) {
		free(b);
		return err->code;
	}
	*out = b;
	return 0;
}

void backup_free(struct backup *b)
{
	if (!b)
		return;
	if (b->part)
		unlinkat(b->dir, b->part, 0);
	if (b->fd >= 0)
		close(b->fd);
	if (b->dir >= 0)
		close(b->dir);
	free(b->name);
	free(b->part);
	free(b);
}

static int taken(const char *path, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ECONFLICT, "%s exists and is not overwritten: name another file",
			 path);
}

/* The directory stays open, so that later changes of the path do not matter. */
static int open_at(struct backup *b, const char *path, struct gpuq_err *err)
{
	char dir[PATH_MAX];
	unsigned salt;
	char *slash;

	if (path[0] != '/' || strlen(path) >= sizeof(dir) || path[strlen(path) - 1] == '/')
		return gpuq_fail(err, GPUQ_EINVAL, "%.200s: expected an absolute path", path);
	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	b->name = strdup(slash + 1);
	slash[slash == dir] = '\0';
	b->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->dir < 0)
		return gpuq_fail(err, GPUQ_EINVAL, "%s: %s", dir, strerror(errno));
	if (faccessat(b->dir, b->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return taken(path, err);
	if (getrandom(&salt, sizeof(salt), 0) != (ssize_t)sizeof(salt))
		return gpuq_fail(err, GPUQ_EIO, "no random numbers");
	b->part = malloc(strlen(b->name) + 24);
	if (!b->name || !b->part)
		return gpuq_no_memory(err);
	snprintf(b->part, strlen(b->name) + 24, ".%s.%08x.part", b->name, salt);
	b->fd = openat(b->dir, b->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b->fd < 0) {
		free(b->part);
		b->part = NULL;
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	}
	return 0;
}

int backup_new_at(struct journal *j, const char *path, struct backup **out, struct gpuq_err *err)
{
	struct backup *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return gpuq_no_memory(err);
	b->store = journal_store(j);
	b->fd = b->dir = -1;
	rc = open_at(b, path, err);
	if (rc < 0) {
		backup_free(b);
		return rc;
	}
	*out = b;
	return 0;
}

int backup_keep(struct backup *b, struct gpuq_err *err)
{
	/* A link, not a rename, which would replace a file created meanwhile. */
	if (fsync(b->fd) != 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", b->name, strerror(errno));
	if (linkat(b->dir, b->part, b->dir, b->name, 0) != 0)
		return errno == EEXIST
			       ? taken(b->name, err)
			       : gpuq_fail(err, GPUQ_EIO, "%s: %s", b->name, strerror(errno));
	if (fsync(b->dir) != 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: its directory: %s", b->name, strerror(errno));
	return 0;
}

int backup_make(struct backup *b, struct gpuq_err *err)
{
	struct stat st;
	int rc = store_copy(b->store, b->fd, &b->id, err);

	if (rc == 0 && fstat(b->fd, &st) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "backup: %s", strerror(errno));
	if (rc == 0)
		b->bytes = st.st_size;
	return rc;
}

int64_t backup_bytes(const struct backup *b)
{
	return b->bytes;
}

struct store_identity backup_identity(const struct backup *b)
{
	return b->id;
}

int backup_fd(const struct backup *b)
{
	return b->fd;
}

int64_t backup_read(struct backup *b, int64_t at, void *out, size_t room, struct gpuq_err *err)
{
	const ssize_t n = pread(b->fd, out, room, at);

	if (n < 0)
		return gpuq_fail(err, GPUQ_EIO, "backup: %s", strerror(errno));
	return n;
}
