#include "config.h"

#include "gpuqd/cluster/local/shepherd/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int unpack_prepare(int pod_fd, uid_t uid, gid_t gid, int *archive)
{
	int fd, a = openat(pod_fd, CODE_ARCHIVE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (a < 0)
		return -1;
	if (mkdirat(pod_fd, CODE_DIR, 0700) != 0 && errno != EEXIST)
		goto fail;
	fd = openat(pod_fd, CODE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		goto fail;
	if (geteuid() == 0 && fchown(fd, uid, gid) != 0) {
		close(fd);
		goto fail;
	}
	*archive = a;
	return fd;
fail:
	close(a);
	return -1;
}

static void __attribute__((noreturn)) run_tar(int dir_fd, int archive_fd)
{
	/* gzip's part is tar's, which knows where its program is. */
	static char *const argv[] = { (char *)"tar", (char *)"-xzf", (char *)"-", NULL };

	if (fchdir(dir_fd) != 0 || dup2(archive_fd, STDIN_FILENO) < 0)
		_exit(126);
	execvp(argv[0], argv);
	_exit(127);
}

int unpack_run(int dir_fd, int archive_fd, char *why, size_t room)
{
	const pid_t pid = fork();
	int status = 0;
	pid_t got;

	if (pid == 0)
		run_tar(dir_fd, archive_fd);
	while ((got = pid < 0 ? -1 : waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	if (got < 0)
		snprintf(why, room, "the code of the job was not unpacked: %s", strerror(errno));
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		snprintf(why, room,
			 "the code of the job was not unpacked: this machine has no program tar");
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		snprintf(why, room,
			 "the code of the job was not unpacked: tar ended with status %d",
			 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	else
		return 0;
	return -1;
}
