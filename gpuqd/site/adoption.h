/* adoption.h - namespaces whose pods become jobs although they were not submitted
 *
 * Owns     the structs, their keys (gpuq-site(5)) and checks. Touches memory only.
 * Used by  site.c, flow/adopt.
 */
#ifndef GPUQD_SITE_ADOPTION_H
#define GPUQD_SITE_ADOPTION_H

#include "libgpuq/schema.h"

struct site;

struct site_adopted {
	const char *name; /* of the namespace */
	const char *queue; /* of its pods that name none; NULL = they are not adopted */
	const char *user; /* who owns these jobs; NULL = kube:NAMESPACE, which no login has */
};

struct site_adopt {
	struct gpuq_objects namespaces; /* struct site_adopted */
};

extern const struct gpuq_schema site_adopt_schema;

int adoption_check(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s);
/* Names that cannot be of anything, and queues of other namespaces. Sites of old may hold them: not checked when those are read. */
int adoption_check_names(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s);
/* NULL = pods of that namespace are not adopted. */
const struct site_adopted *adoption_of(const struct site *s, const char *namespace_);

#endif
