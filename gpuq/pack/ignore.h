/* ignore.h - which files of a directory are left out: the rules of .gitignore and .gpuqignore
 *
 * Owns     the rules that were read.
 * Touches  memory only.
 * Used by  tree.c; tests.
 *
 * The rules are those of gitignore(5). A file's rules hold for the directory that it is in and for all below;
 * of several that match, the last one read decides. A file of a directory that is left out is never asked for.
 */
#ifndef GPUQ_PACK_IGNORE_H
#define GPUQ_PACK_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "libgpuq/arena.h"

struct ignore_rule {
	const char *
		base; /* the directory of the file that has it, "" or "a/b"; without "/" at its end */
	const char *pattern; /* without "!", and without "/" at either end */
	bool keeps; /* "!": what matches is not left out */
	bool folder; /* for directories alone */
	bool whole; /* the path below base has to match; else the last part of it */
};

struct ignore {
	struct gpuq_arena *a;
	struct ignore_rule *rules;
	size_t n, room;
};

/* Add the rules of a file: text of n bytes, found in the directory base. False: no memory. */
bool ignore_add(struct ignore *ig, const char *base, const char *text, size_t n);

/* Rules from the n-th on are forgotten: their directory has been read. */
void ignore_cut(struct ignore *ig, size_t n);

/* True if the path, which is relative to the top, is left out. */
bool ignore_has(const struct ignore *ig, const char *path, bool folder);

#endif
