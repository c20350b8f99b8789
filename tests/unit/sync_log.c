/* A library to preload into a daemon: notes every file and directory that is made durable, with the
 * calls that link or rename, one line each, in $SYNC_LOG. Tests read there that nothing was answered
 * or started before what it rests on was on the disk. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void note(const char *what, const char *path)
{
	const char *file = getenv("SYNC_LOG");
	char line[5000];
	int n = snprintf(line, sizeof(line), "%s %s\n", what, path);
	int fd = file ? open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (fd < 0)
		return;
	if (write(fd, line, (size_t)n) != n)
		abort(); /* a line that is missing would look like a mistake of the daemon's */
	close(fd);
}

static void note_fd(const char *what, int fd)
{
	char link[64], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	note(what, path);
}

#define SYNC(name_)                                                                                \
	EXPORT int name_(int fd)                                                                   \
	{                                                                                          \
		int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name_);                         \
		const int rc = real(fd);                                                           \
                                                                                                   \
		if (rc == 0)                                                                       \
			note_fd("sync", fd);                                                       \
		return rc;                                                                         \
	}
SYNC(fsync)
SYNC(fdatasync)

EXPORT int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	int (*real)(int, const char *, int, const char *, int) =
		(int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat");
	const int rc = real(from_dir, from, to_dir, to, flags);

	if (rc == 0)
		note("link", to);
	return rc;
}
