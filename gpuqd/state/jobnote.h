/* jobnote.h - what a job tells of itself that nothing is decided by, in memory
 *
 * Owns     its form, which is that of labels (joblabel.h): "key=value" lines in one string.
 *          A value that has ends of lines has blanks there.
 * Touches  memory only.
 * Used by  state/model (a job keeps them), state/view/view.
 */
#ifndef GPUQD_STATE_JOBNOTE_H
#define GPUQD_STATE_JOBNOTE_H

#include <stddef.h>

#include "libgpuq/spec.h"

#define JOBNOTE_COMMENT "comment"
#define JOBNOTE_WORKDIR                                                                            \
	"workdir" /* where it runs; in a pod that says nothing, where it was submitted */
#define JOBNOTE_STDOUT "stdout" /* absolute, its marks (libgpuq/pattern.h) as they were given */
#define JOBNOTE_STDERR "stderr"

/* Freed by the caller; NULL = there are none. */
char *jobnote_take(const struct gpuq_spec *spec);

/* The value and its length, not ended by NUL; NULL = there is none. notes may be NULL. */
const char *jobnote_find(const char *notes, const char *key, size_t *n);

#endif
