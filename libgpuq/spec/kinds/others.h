/* others.h - objects beside the jobs of a manifest
 *
 * Owns nothing. Touches memory only. Used by spec_file.c.
 */
#ifndef LIBGPUQ_SPEC_KINDS_OTHERS_H
#define LIBGPUQ_SPEC_KINDS_OTHERS_H

#include "libgpuq/spec.h"

/* How many jobs the documents are; others beside them are told by spec_others(). */
size_t spec_jobs_count(struct gpuq_val *const *docs, size_t n);

/* Objects that are not jobs, in a file that also holds jobs: refused with their list, or with
 * `ignore` told in warnings with the command that creates them. 0 where there are none. */
int spec_others(struct gpuq_reader *r, struct gpuq_buf *warnings, struct gpuq_val *const *docs,
		size_t n, const char *text, size_t n_text, bool ignore);

#endif
