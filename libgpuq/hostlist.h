/* hostlist.h - names of nodes as Slurm writes them: n[01-04,7],r[1-2]n[1-8],x
 *
 * Owns     nothing. Touches memory only.
 * Used by  spec, for --nodelist and `nodes`; the commands that name nodes. Not installed.
 */
#ifndef LIBGPUQ_HOSTLIST_H
#define LIBGPUQ_HOSTLIST_H

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

#define HOSTLIST_NAMES_MAX 4096u
#define HOSTLIST_BRACKETS_MAX 4u /* of one name */

enum hostlist_kind {
	HOSTLIST_NAMES,
	HOSTLIST_GLOBS, /* `*` and `?` pass as they are */
};

/* Append the names that text means to list: several separated by commas, each with up to
 * HOSTLIST_BRACKETS_MAX brackets of numbers and ranges. The last bracket counts fastest, and the
 * first number of a range gives the width: n[08-10] keeps its zeros. Returns 0, GPUQ_EINVAL,
 * GPUQ_ERANGE when list would hold more than HOSTLIST_NAMES_MAX names, or GPUQ_ENOMEM; some
 * names may then have been appended. */
int hostlist_expand(struct gpuq_arena *a, const char *text, enum hostlist_kind kind,
		    struct gpuq_val *list, struct gpuq_err *err);

#endif
