#include "gpuqd/store/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEAD_TRIES 250 /* of 20 ms */
#define DEAD_STEP_MS 20

/* A container's own overlayfs is let through: a file made there lies on one local disk,
 * and whoever tries gpuq in a container has nothing else. */
int place_check_fs(const char *dir, struct gpuq_err *err)
{
	static const struct {
		long magic;
		const char *name;
	} bad[] = {
		{ 0x6969, "NFS" },      { 0x517b, "SMB" },        { 0xfe534d42, "SMB2" },
		{ 0xff534d42, "CIFS" }, { 0x01021997, "9p" },     { 0x65735546, "FUSE" },
		{ 0x47504653, "GPFS" }, { 0x0bd00bd0, "Lustre" }, { 0x19830326, "BeeGFS" },
	};
	struct statfs f;

	if (statfs(dir, &f) != 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", dir, strerror(errno));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if ((uint32_t)f.f_type == (uint32_t)bad[i].magic)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "%s is on %s, which can damage the database: use a local "
					 "disk (--state DIR), or --unsafe-fs for tests",
					 dir, bad[i].name);
	return 0;
}

int place_make(const char *dir, struct gpuq_err *err)
{
	char path[4096];
	size_t n = strlen(dir);

	if (n == 0 || n >= sizeof(path))
		return gpuq_fail(err, GPUQ_EINVAL, "state directory: bad path");
	memcpy(path, dir, n + 1);
	for (char *p = path + 1;; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		bool last = *p == '\0';

		*p = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return gpuq_fail(err, errno == EACCES ? GPUQ_EPERM : GPUQ_EIO,
					 "cannot make %s: %s", path, strerror(errno));
		if (last)
			return 0;
		*p = '/';
	}
}

int place_lock(const char *dir, struct gpuq_err *err)
{
	char path[4200], pid[32] = "";
	pid_t holder;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/gpuqd.lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return gpuq_fail(err, errno == EACCES ? GPUQ_EPERM : GPUQ_EIO, "%s: %s", path,
				 strerror(errno));
	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
		n = pread(fd, pid, sizeof(pid) - 1, 0);
		pid[n > 0 ? n : 0] = '\0';
		pid[strcspn(pid, "\n")] = '\0';
		/* One that was killed while it started a process is outlived by it until that
		 * has become its program, and so is the lock. */
		holder = (pid_t)strtol(pid, NULL, 10);
		if (tries < DEAD_TRIES && holder > 0 && kill(holder, 0) != 0 && errno == ESRCH) {
			poll(NULL, 0, DEAD_STEP_MS); /* at start: there is no loop to hold up yet */
			continue;
		}
		close(fd);
		return gpuq_fail(err, GPUQ_EBUSY,
				 "%s is in use by another gpuqd (pid %s): stop that one first, or "
				 "use another --state",
				 dir, n > 0 ? pid : "unknown");
	}
	snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, strlen(pid), 0) != (ssize_t)strlen(pid)) {
		gpuq_fail(err, errno == ENOSPC ? GPUQ_ESTORAGE : GPUQ_EIO, "%s: %s", path,
			  strerror(errno));
		close(fd);
		return err->code;
	}
	return fd;
}

int place_lock_shared(const char *dir, struct gpuq_err *err)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%.4000s/" LOCK_FILE, dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -1
				       : gpuq_fail(err, errno == EACCES ? GPUQ_EPERM : GPUQ_EIO,
						   "%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_SH | LOCK_NB) == 0)
		return fd;
	close(fd);
	return gpuq_fail(err, GPUQ_EBUSY,
			 "%s is in use by a gpuqd: stop it first, or audit a backup of it", dir);
}

/* ---- what lies in it ---- */

static bool has_entries(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d)) != NULL)
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	return found;
}

int place_is_empty(const char *dir, struct gpuq_err *err)
{
	static const struct {
		const char *name;
		bool is_dir;
	} left[] = {
		{ "mark", false }, { "data.mdb.schema-1", false },
		{ "local", true }, { "logs", true },
		{ "spool", true },
	};
	char path[4200];

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		snprintf(path, sizeof(path), "%.4000s/%s", dir, left[i].name);
		if (left[i].is_dir ? has_entries(path) : access(path, F_OK) == 0)
			return gpuq_fail(err, GPUQ_ECORRUPT,
					 "data.mdb is missing or empty beside %s: put it back, "
					 "restore a backup, or start empty with --new-state: %s",
					 left[i].name, dir);
	}
	return 0;
}

int place_is_file(const char *dir, const char *file, int fd, struct gpuq_err *err)
{
	char path[4200];
	struct stat is, was;

	snprintf(path, sizeof(path), "%.4000s/%s", dir, file);
	if (fstat(fd, &was) != 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	if (stat(path, &is) != 0)
		return gpuq_fail(err, GPUQ_EIO,
				 "%s: %s: the state directory was removed, renamed or unmounted",
				 path, strerror(errno));
	if (is.st_dev != was.st_dev || is.st_ino != was.st_ino)
		return gpuq_fail(err, GPUQ_EIO,
				 "%s is not the open file: the state directory was replaced", path);
	return 0;
}
