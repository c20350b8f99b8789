/* spec_check.h - refusals and defaults of the readers of jobs
 *
 * Owns nothing. Touches memory only. Used by the files of libgpuq/spec and below.
 */
#ifndef LIBGPUQ_SPEC_SPEC_CHECK_H
#define LIBGPUQ_SPEC_SPEC_CHECK_H

#include "libgpuq/spec.h"

/* gpuq_reader_fail that accepts no value. */
int spec_fail(struct gpuq_reader *r, const struct gpuq_val *v, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

void spec_group_defaults(void *group);
void spec_defaults(void *spec);

#endif
