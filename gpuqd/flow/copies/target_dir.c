/* Directories as targets of copies: of this machine, or mounted from another one. */
#include "gpuqd/flow/copies/target_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/store/ballast.h"
#include "libgpuq/base/write.h"

/* While a file is being stored its name is .NAME.MARK SALT.part, without the space. */
#define PART ".part"
#define CHUNK_BYTES (256u << 10)

static int io(const struct target *t, const char *name, struct gpuq_err *err)
{
	return gpuq_fail(err, errno == ENOSPC || errno == EDQUOT ? GPUQ_ESTORAGE : GPUQ_EIO,
			 "%s%s%s: %s", t->plan.to, *name ? "/" : "", name, strerror(errno));
}

static int open_dir(const struct target *t, struct gpuq_err *err)
{
	const int fd = open(t->plan.to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? io(t, "", err) : fd;
}

/* True for a partial file of an earlier daemon: the files of our own threads have our mark. */
static bool is_left_over(const struct target *t, const char *prefix, const char *name)
{
	const size_t n = strlen(name), end = strlen(PART);
	char ours[16];

	snprintf(ours, sizeof(ours), ".%08" PRIx32, t->mark);
	return name[0] == '.' && strncmp(name + 1, prefix, strlen(prefix)) == 0 && n > end &&
	       strcmp(name + n - end, PART) == 0 && !strstr(name, ours);
}

static int dir_list(struct target *t, const char *prefix, struct target_list *out,
		    struct gpuq_err *err)
{
	DIR *d;
	struct dirent *e;
	struct stat st;
	int rc = 0;

	(void)FAILPOINT("backup.list");
	d = opendir(t->plan.to);
	if (!d)
		return io(t, "", err);
	for (errno = 0; rc == 0 && (e = readdir(d)); errno = 0) {
		if (is_left_over(t, prefix, e->d_name))
			unlinkat(dirfd(d), e->d_name, 0);
		if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
		    fstatat(dirfd(d), e->d_name, &st, 0) == 0)
			rc = target_list_add(out, e->d_name, st.st_size, err);
	}
	if (rc == 0 && errno)
		rc = io(t, "", err);
	closedir(d);
	return rc;
}

static int dir_has_room(struct target *t, int64_t bytes, struct gpuq_err *err)
{
	struct statvfs v;
	uint64_t left;

	if (statvfs(t->plan.to, &v) != 0)
		return io(t, "", err);
	left = (uint64_t)v.f_bavail * v.f_frsize;
	if (left >= (uint64_t)bytes + BALLAST_BYTES)
		return 0;
	return gpuq_fail(err, GPUQ_ESTORAGE,
			 "%s: a copy takes up to %" PRId64 " MiB, %" PRIu64 " MiB are free",
			 t->plan.to, bytes >> 20, left >> 20);
}

/* ---- put ---- */

/* Returns false with errno set. */
static bool copy_bytes(const struct target *t, int from, int to)
{
	char *chunk = malloc(CHUNK_BYTES);
	ssize_t n = -1;
	int64_t at = 0;
	bool ok = chunk != NULL;

	while (ok && (n = pread(from, chunk, CHUNK_BYTES, at)) > 0) {
		ok = gpuq_write_all(to, chunk, (size_t)n) == 0;
		at += n;
		(void)FAILPOINT("backup.put.part");
		if (ok && target_ends(t)) {
			errno = ECANCELED;
			ok = false;
		}
	}
	free(chunk);
	return ok && n == 0;
}

static int make_part(const struct target *t, int dir, const char *name, char part[NAMES_BYTES + 24],
		     struct gpuq_err *err)
{
	uint32_t salt;
	int fd;

	if (getrandom(&salt, sizeof(salt), 0) != (ssize_t)sizeof(salt))
		return gpuq_fail(err, GPUQ_EIO, "no random numbers");
	snprintf(part, NAMES_BYTES + 24, ".%s.%08" PRIx32 "%08" PRIx32 PART, name, t->mark, salt);
	fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? io(t, name, err) : fd;
}

/* A link does not replace a file of that name, a rename does. */
static int give_name(const struct target *t, int dir, const char *part, const char *name,
		     bool replace, struct gpuq_err *err)
{
	if (!replace && linkat(dir, part, dir, name, 0) != 0)
		return errno == EEXIST
			       ? gpuq_fail(err, GPUQ_ECONFLICT, "%s/%s exists", t->plan.to, name)
			       : io(t, name, err);
	if (replace ? renameat(dir, part, dir, name) != 0 : unlinkat(dir, part, 0) != 0)
		return io(t, name, err);
	return fsync(dir) == 0 ? 0 : io(t, name, err);
}

static int dir_put(struct target *t, const char *name, int fd, const char *sha256, bool replace,
		   struct gpuq_err *err)
{
	char part[NAMES_BYTES + 24];
	int to = -1, dir = open_dir(t, err), rc = dir;

	(void)sha256;
	if (rc >= 0)
		rc = to = make_part(t, dir, name, part, err);
	if (to >= 0) {
		rc = copy_bytes(t, fd, to) && fsync(to) == 0 ? 0 : io(t, name, err);
		(void)FAILPOINT("backup.put.whole");
		if (rc == 0)
			rc = give_name(t, dir, part, name, replace, err);
		if (rc < 0)
			unlinkat(dir, part, 0);
		close(to);
	}
	if (dir >= 0)
		close(dir);
	return rc;
}

static int dir_open(struct target *t, const char *name, int *fd, struct gpuq_err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", t->plan.to, name);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd >= 0)
		return 0;
	if (errno == ENOENT)
		return gpuq_fail(err, GPUQ_ENOENT, "%s: %s", path, strerror(errno));
	return io(t, name, err);
}

static int dir_remove(struct target *t, const char *name, struct gpuq_err *err)
{
	int dir = open_dir(t, err), rc = dir < 0 ? dir : 0;

	if (rc == 0 && unlinkat(dir, name, 0) != 0 && errno != ENOENT)
		rc = io(t, name, err);
	if (dir >= 0)
		close(dir);
	return rc;
}

const struct target_ops target_dir_ops = { dir_list, dir_has_room, dir_put, dir_open, dir_remove };
