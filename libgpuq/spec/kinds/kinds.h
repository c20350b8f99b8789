/* kinds.h - the kinds of Kubernetes objects that are jobs
 *
 * Owns     the table of kinds: one row and one file a kind, from which help, refusals and tests
 *          follow.
 * Touches  memory only.
 * Used by  spec_file.c; tests.
 */
#ifndef LIBGPUQ_SPEC_KINDS_KINDS_H
#define LIBGPUQ_SPEC_KINDS_KINDS_H

#include "libgpuq/spec.h"

struct manifest;

/* One row. A kind without `read` is not a job: `instead` says what to do with it, or is NULL for
 * objects that stand beside jobs. */
struct kind {
	const char *group; /* "batch", "" for the core group; any version of it, unless `version` */
	const char *version; /* the only one that is read; NULL = any */
	const char *name; /* "Job" */
	int (*read)(struct manifest *m);
	const char *instead;
};

extern const struct kind spec_kinds[]; /* ends with name == NULL */

/* The row of a document, or NULL. */
const struct kind *spec_kind_of(const struct gpuq_val *doc);

/* Is this document a manifest, and one that holds others (v1 List)? */
bool spec_is_manifest(const struct gpuq_val *doc);
bool spec_is_list(const struct gpuq_val *doc);

/* Read one object. */
int spec_manifest_read(struct gpuq_reader *r, struct gpuq_buf *warnings, const struct gpuq_val *doc,
		       struct gpuq_spec *out);

#endif
