/* joblabel.h - the labels of a job, in memory
 *
 * Owns     their form: "key=value" lines in one string; no label holds a line's end.
 * Touches  memory only.
 * Used by  state/model (a job keeps them), state/view/view, rpc (filters).
 */
#ifndef GPUQD_STATE_NOTES_JOBLABEL_H
#define GPUQD_STATE_NOTES_JOBLABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "libgpuq/spec.h"
#include "libgpuq/val.h"

/* Return the labels of the job and of the manifest's template, the job's first; freed by the
 * caller. NULL = none. */
char *joblabel_take(const struct gpuq_spec *spec);

/* Return the value of a label and its length, not ended by NUL; NULL = no such label. labels may be
 * NULL. */
const char *joblabel_find(const char *labels, const char *key, size_t n_key, size_t *n);

/* True if all selectors hold (libgpuq/selector.h). */
bool joblabel_match(const char *labels, const struct gpuq_strlist *selectors);

struct gpuq_val *joblabel_view(struct gpuq_arena *a, const char *labels); /* a map */

#endif
