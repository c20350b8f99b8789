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

/* ---- words of systems that share devices, in labels and annotations (spec_words.c) ---- */

enum spec_word {
	SPEC_WORD_NEVER = 1, /* refused everywhere */
	SPEC_WORD_FLAVOR = 2, /* in a manifest only where it names no flavor */
	SPEC_WORD_MANIFEST = 4, /* read in a manifest, refused in a job file and options */
	SPEC_WORDS = 7,
};

/* Say to request something instead of key; NULL: it is no word of these kinds. */
const char *spec_word_fault(const char *key, unsigned kinds);

#endif
