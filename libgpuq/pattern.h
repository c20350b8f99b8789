/* pattern.h - file names with %j and the like, as sbatch has them
 *
 * Owns     nothing. Touches memory only.
 * Used by  the local cluster, for --output, --error and --input; the CLI, which tells where
 *          they are. Not installed.
 */
#ifndef LIBGPUQ_PATTERN_H
#define LIBGPUQ_PATTERN_H

#include <stdint.h>

#include "libgpuq/buf.h"

struct pattern_vars {
	uint32_t job;
	int64_t array_index; /* -1 = no array */
	uint32_t index; /* of the pod */
	const char *name, *user, *node;
};

/* Append pattern to out with its marks replaced:
 *   %j %J job ("17_3" in an array, so that elements keep apart)   %A job alone
 *   %a array index   %b the same modulo 10   %x job name   %u user   %N node
 *   %n %t index of the pod   %s "batch"   %% a percent sign
 * A number in between fills with zeros: %4a (at most 10). Another letter is kept as it
 * stands. A backslash anywhere means: replace nothing, take the backslashes out. */
void pattern_expand(const char *pattern, const struct pattern_vars *v, struct gpuq_buf *out);

#endif
