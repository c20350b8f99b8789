/* nodeset.h - names of nodes as lists are printed: n[01-04],x
 *
 * Touches  memory only.
 * Used by  cmd_drain.c, cmd_nodes.c, cmd_reserve.c, filter.c.
 */
#ifndef GPUQ_NODESET_H
#define GPUQ_NODESET_H

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

/* Append the names that text means: several separated by commas outside of brackets, each
 * with at most one bracket of numbers and ranges, whose first number gives the width.
 * Globs (dgx-*) pass as they are. At most 4096 names. Returns 0 or GPUQ_EINVAL, GPUQ_ENOMEM. */
int nodeset_expand(struct gpuq_arena *a, const char *text, struct gpuq_val *list,
		   struct gpuq_err *err);

#endif
