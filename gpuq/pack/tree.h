/* tree.h - the files of a directory that --code carries, in one order
 *
 * Owns     the list of them.
 * Touches  the directory, to read.
 * Used by  main.c; tests.
 *
 * Left out are .git and what the ignore files of the directory say (ignore.h). Whatever cannot be carried is an
 * error that names it: sockets, devices, pipes, links that leave the directory, files that cannot be read.
 */
#ifndef GPUQ_PACK_TREE_H
#define GPUQ_PACK_TREE_H

#include <stdint.h>
#include <sys/stat.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"

struct tree_file {
	const char *path; /* relative to the top; of a directory as well without "/" at its end */
	const char *link; /* what a symbolic link says; NULL = none */
	struct stat st;
};

struct tree {
	int fd; /* of the directory */
	const char *name; /* for messages */
	struct tree_file
		*files; /* sorted by path, part by part: a directory comes before what is in it */
	size_t n, room;
	int64_t bytes; /* of all plain files */
};

/* Read the directory; memory is of a. Returns 0; GPUQ_ENOENT, GPUQ_EINVAL (a file of another kind), GPUQ_ETOOBIG
 * (more files or bytes than limits.h allows), GPUQ_EIO, GPUQ_ENOMEM. */
int tree_read(struct gpuq_arena *a, const char *dir, struct tree *out, struct gpuq_err *err);
void tree_done(struct tree *t);

/* True if it is still the file that was listed. */
bool tree_same(const struct stat *a, const struct stat *b);

#endif
