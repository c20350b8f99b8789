/* spool.h - a directory of records that forgets its oldest
 *
 * Owns     the files PREFIX-NNNNNNNN.mp in one directory, and their sum of sizes.
 * Touches  that directory, which it makes (0700, one level) when it is not there.
 * Used by  flow/schedule (recorded cycles).
 *
 * Records are appended to the newest file; when that has an eighth of what is allowed in
 * all, the next one begins, and the oldest are removed. Nothing is synced: what is kept
 * here is for looking at, and the last records may be lost with the machine.
 */
#ifndef GPUQD_BASE_SPOOL_H
#define GPUQD_BASE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "libgpuq/err.h"

struct spool;

/* max_bytes: of all files, > 0. Files of an earlier process count, and are forgotten
 * first. Returns 0; GPUQ_EIO, GPUQ_EPERM with the path; GPUQ_ENOMEM. */
int spool_open(const char *dir, const char *prefix, int64_t max_bytes, struct spool **out,
	       struct gpuq_err *err);
void spool_close(struct spool *s); /* NULL is allowed */

/* Returns 0; GPUQ_ETOOBIG (larger than all files may be together), GPUQ_EIO, and then
 * nothing of it is left in the file. */
int spool_add(struct spool *s, const void *bytes, size_t n, struct gpuq_err *err);

#endif
