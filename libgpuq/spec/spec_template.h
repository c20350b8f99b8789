/* spec_template.h - the pod template of a manifest, and members of maps by type
 *
 * Owns nothing. Touches memory only. Used by the files of libgpuq/spec and below.
 */
#ifndef LIBGPUQ_SPEC_SPEC_TEMPLATE_H
#define LIBGPUQ_SPEC_SPEC_TEMPLATE_H

#include "libgpuq/spec.h"

/* A line "file:line:col: path: text" to `to` (may be NULL). */
void spec_warn(struct gpuq_reader *r, struct gpuq_buf *to, const struct gpuq_val *v,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Check a pod template (metadata + spec) and read the group's fields from it. */
int spec_template_read(struct gpuq_reader *r, struct gpuq_buf *warnings,
		       const struct gpuq_val *tmpl, struct gpuq_group *g);

/* Labels and annotations: strings, with keys that are not gpuqd's. r stands at
 * metadata, which may be NULL. */
int spec_read_metadata(struct gpuq_reader *r, const struct gpuq_val *meta);

/* The claims of a pod template. */
int spec_read_claims(struct gpuq_reader *r, const struct gpuq_val *spec, struct gpuq_group *g);
/* True if both have the same claims of devices, of those that a template may have. */
bool spec_claims_same(const struct gpuq_group *a, const struct gpuq_group *b);

/* Members of a map by type; *out stays when one is absent or null, other types are
 * refused (spec_want_type: *out is NULL then). */
int spec_want_type(struct gpuq_reader *r, const struct gpuq_val *map, const char *key,
		   enum gpuq_type type, const struct gpuq_val **out);
int spec_want_str(struct gpuq_reader *r, const struct gpuq_val *map, const char *key,
		  const char **out);
int spec_want_int(struct gpuq_reader *r, const struct gpuq_val *map, const char *key, int64_t min,
		  int64_t max, int64_t *out);

#endif
