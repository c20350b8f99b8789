#include "config.h"

#include "gpuqd/cluster/local/shepherd/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 50 /* open directories at a time */
#define TRIES 1000

static int empty(int top, int parent, const char *name, int depth);

/* Remove an entry of the directory fd. One that is too deep is moved to the top, and removed from there. */
static int entry(int top, int fd, const char *name, int depth)
{
	static unsigned n_moved;
	char there[32];

	if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM && errno != EBUSY)
		return -1;
	if (depth < DEPTH_MAX)
		return empty(top, fd, name, depth + 1);
	snprintf(there, sizeof(there), ".deep-%u", n_moved++);
	return renameat(fd, name, top, there);
}

static int empty(int top, int parent, const char *name, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir;
	struct dirent *e;
	int rc = 0;

	/* Its owner may have taken the rights off it; without root's they are needed. */
	if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	(void)fchmod(fd, 0700);
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -1;
	}
	while (rc == 0 && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = entry(top < 0 ? fd : top, fd, e->d_name, depth);
	closedir(dir);
	return rc == 0 ? unlinkat(parent, name, AT_REMOVEDIR) : rc;
}

int tree_remove(int dirfd, const char *name)
{
	int rc = -1;

	/* Directories that were moved to the top may have been missed by the reading of it. */
	for (int i = 0; i < TRIES; i++) {
		rc = empty(-1, dirfd, name, 0);
		if (rc == 0 || errno != ENOTEMPTY)
			break;
	}
	return rc;
}
