/* hints.h - labels and annotations of a manifest that name its queue, time, flavor...
 *
 * Owns nothing. Touches memory only. Used by manifest.c, and spec_file.c for job files.
 */
#ifndef LIBGPUQ_SPEC_KINDS_HINTS_H
#define LIBGPUQ_SPEC_KINDS_HINTS_H

#include "libgpuq/spec.h"

/* meta: the object's metadata, or NULL; that of the pods is in the templates of out's groups. The path
 * stands at metadata. */
int hints_read(struct gpuq_reader *r, struct gpuq_buf *warnings, const struct gpuq_val *meta,
	       struct gpuq_spec *out);
/* Warn of each annotation of a job or of metadata by which other systems place pods, without effect here. */
void hints_warn(struct gpuq_reader *r, struct gpuq_buf *warnings, const struct gpuq_val *of);

#endif
