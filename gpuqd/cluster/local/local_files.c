#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/cluster/local/local_files.h"
#include "gpuqd/cluster/local/shepherd/tree.h"
#include "gpuqd/cluster/local/shepherd/unpack.h"
#include "libgpuq/base/write.h"

/* Directories that a dot begins are not pods: being made, being removed. */
#define MAKING ".new-"
#define REMOVING ".gone-"

/* An order may hold megabytes of its submitter's: what is kept of a full disk to end jobs is not
 * for starting more of them. */
#define FREE_BYTES_MIN (INT64_C(256) << 10)

bool local_name_ok(const char *name)
{
	const size_t n = strlen(name);

	if (n == 0 || n > 200 || *name == '.')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._",
			    name[i]))
			return false;
	return true;
}

static int write_file(int dirfd, const char *name, mode_t mode, const char *bytes, size_t n)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);

	if (fd < 0)
		return -1;
	if (gpuq_write_all(fd, bytes, n) < 0) {
		const int why = errno;

		close(fd);
		errno = why;
		return -1;
	}
	return close(fd);
}

/* Remove the directory of a pod. A directory in it is there only if its shepherd was killed. */
static int remove_dir(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			if (unlinkat(dirfd(dir), e->d_name, 0) != 0 && errno == EISDIR)
				tree_remove(dirfd(dir), e->d_name);
	closedir(dir);
	return unlinkat(parent_fd, name, AT_REMOVEDIR);
}

static int fill(int fd, const struct local_pod *p)
{
	if (write_file(fd, "order", 0600, p->record.data, p->record.len) != 0 ||
	    write_file(fd, "lock", 0600, "", 0) != 0 || mkfifoat(fd, "ctl", 0600) != 0)
		return -1;
	if (p->has_steps &&
	    (write_file(fd, STEPS_FILE, 0600, "", 0) != 0 ||
	     (geteuid() == 0 && fchownat(fd, STEPS_FILE, p->job_uid, p->job_gid, 0) != 0)))
		return -1;
	/* A second name: the archive may go while the job is there. */
	if (p->code && linkat(AT_FDCWD, p->code, fd, CODE_ARCHIVE, 0) != 0)
		return -1;
	if (!p->has_script)
		return 0;
	if (write_file(fd, "script", 0700, p->script.data, p->script.len) != 0)
		return -1;
	return geteuid() != 0 ? 0 : fchownat(fd, "script", p->job_uid, p->job_gid, 0);
}

static bool has_room(int local_fd, const struct local_pod *p)
{
	struct statvfs v;

	return fstatvfs(local_fd, &v) != 0 ||
	       (int64_t)v.f_bavail * (int64_t)v.f_frsize >=
		       FREE_BYTES_MIN + (int64_t)(p->record.len + p->script.len);
}

/* The rename is the pod's birth: before it there is nothing, after it there is all. It
 * is made durable by the shepherd before it starts anything; a power cut in between
 * loses a pod of which nothing has run. */
int local_files_create(int local_fd, const struct local_pod *p, struct gpuq_err *err)
{
	char fresh[256];
	int fd, rc = -1, why;

	if (!has_room(local_fd, p))
		return gpuq_fail(err, GPUQ_EIO, "cannot write the order of pod %s: %s", p->name,
				 strerror(ENOSPC));
	snprintf(fresh, sizeof(fresh), MAKING "%s", p->name);
	remove_dir(local_fd, fresh);
	if (mkdirat(local_fd, fresh, 0711) != 0)
		return gpuq_fail(err, GPUQ_EIO, "cannot make the directory of pod %s: %s", p->name,
				 strerror(errno));
	fd = openat(local_fd, fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		rc = fchmod(fd, 0711); /* its user may pass to the script; the umask is ours */
	if (rc == 0)
		rc = fill(fd, p);
	if (FAILPOINT("local.create.filled")) {
		rc = -1;
		errno = EIO;
	}
	if (rc == 0)
		rc = renameat2(local_fd, fresh, local_fd, p->name, RENAME_NOREPLACE);
	if (rc != 0 && errno == EINVAL) /* a filesystem without the flag; a full one refuses too */
		rc = renameat(local_fd, fresh, local_fd, p->name);
	why = errno;
	if (fd >= 0)
		close(fd);
	(void)FAILPOINT("local.create.renamed");
	if (rc == 0)
		return 0;
	remove_dir(local_fd, fresh);
	return gpuq_fail(err, why == EEXIST || why == ENOTEMPTY ? GPUQ_EEXIST : GPUQ_EIO,
			 "cannot write the order of pod %s: %s", p->name, strerror(why));
}

int local_files_leave(int pod_fd, int64_t grace_us, const char *reason, struct gpuq_err *err)
{
	char text[96], line[48];
	int n = snprintf(text, sizeof(text), "%" PRId64 "%s%.60s", grace_us, reason ? "\n" : "",
			 reason ? reason : ""),
	    why;

	if (FAILPOINT("local.leave.write") ||
	    write_file(pod_fd, ".leave", 0600, text, (size_t)n) != 0 ||
	    renameat(pod_fd, ".leave", pod_fd, "leave") != 0) {
		why = errno;
		/* A full disk must not keep a job running that fills it. */
		snprintf(line, sizeof(line), "leave %" PRId64 "\n", grace_us);
		local_files_tell(pod_fd, line);
		return gpuq_fail(err, GPUQ_EIO, "cannot write that it is to leave: %s",
				 strerror(why));
	}
	(void)FAILPOINT("local.leave.written");
	local_files_tell(pod_fd, "leave\n");
	return 0;
}

bool local_files_tell(int pod_fd, const char *line)
{
	const size_t n = strlen(line);
	bool ok;
	int fd = openat(pod_fd, "ctl", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return false;
	ok = write(fd, line, n) == (ssize_t)n;
	close(fd);
	return ok;
}

int local_files_remove(int local_fd, const char *name, struct gpuq_err *err)
{
	char gone[256];
	int fd, lock, rc, why;

	fd = openat(local_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return gpuq_fail(err, GPUQ_EIO, "cannot open pod %s: %s", name, strerror(errno));
	/* A shepherd that comes late must find either all or nothing, so its lock is held
	 * until the order is gone. */
	lock = state_lock(fd);
	why = errno;
	close(fd);
	if (lock < 0)
		return gpuq_fail(err, GPUQ_EBUSY, "pod %s is in use: %s", name, strerror(why));
	snprintf(gone, sizeof(gone), REMOVING "%s", name);
	remove_dir(local_fd, gone);
	rc = renameat(local_fd, name, local_fd, gone);
	why = errno;
	(void)FAILPOINT("local.remove.renamed");
	if (rc == 0)
		remove_dir(local_fd, gone);
	close(lock);
	return rc == 0 ? 0
		       : gpuq_fail(err, GPUQ_EIO, "cannot remove pod %s: %s", name, strerror(why));
}

void local_files_sweep(int local_fd)
{
	int fd = openat(local_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(dir)))
		if (strncmp(e->d_name, MAKING, strlen(MAKING)) == 0 ||
		    strncmp(e->d_name, REMOVING, strlen(REMOVING)) == 0)
			remove_dir(local_fd, e->d_name);
	closedir(dir);
}
