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
	uint32_t
		number; /* own number of an array element; 0 = it has none yet, or it is no element */
	uint32_t index; /* of the pod */
	const char *name, *user, *node;
};

/* Append pattern to out with its marks replaced:
 *   %j the number of the job, of an array element its own ("17_3" before it has one)
 *   %J the same with the step: "17.batch"   %A the job, of an element that of its array
 *   %a array index   %b the same modulo 10   %x job name   %u user   %N node
 *   %n %t index of the pod   %s "batch"   %% a percent sign
 * A number in between fills with zeros: %4a (at most 10). Another letter is kept as it
 * stands. A backslash anywhere means: replace nothing, take the backslashes out. */
void pattern_expand(const char *pattern, const struct pattern_vars *v, struct gpuq_buf *out);

#endif
