/* text.h - texts that may be NULL
 *
 * Owns     nothing. Touches memory only.
 * Used by  wire/schema_write.c; site/pod_keys.c, auth/rule.c and auth/issuer.c of gpuqd.
 */
#ifndef LIBGPUQ_TEXT_H
#define LIBGPUQ_TEXT_H

#include <stdbool.h>
#include <string.h>

/* True if both are NULL, or neither and they are equal. */
static inline bool gpuq_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

#endif
