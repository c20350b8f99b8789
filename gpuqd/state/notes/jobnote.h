/* jobnote.h - facts of a job that no decision depends on, in memory
 *
 * Owns     its form, which is that of labels (joblabel.h): "key=value" lines in one string.
 *          A value that has ends of lines has blanks there.
 * Touches  memory only.
 * Used by  state/model (a job keeps them), state/view/view.
 */
#ifndef GPUQD_STATE_NOTES_JOBNOTE_H
#define GPUQD_STATE_NOTES_JOBNOTE_H

#include <stddef.h>

#include "libgpuq/spec.h"

#define JOBNOTE_COMMENT "comment"
#define JOBNOTE_WORKDIR                                                                            \
	"workdir" /* where it runs; for a pod that sets none, where it was submitted */
#define JOBNOTE_STDOUT "stdout" /* absolute, with its marks (libgpuq/pattern.h) not expanded */
#define JOBNOTE_STDERR "stderr"
#define JOBNOTE_STDIN "stdin"
#define JOBNOTE_COMMAND "command" /* path of the script, or the command, and arguments */
#define JOBNOTE_INTERACTIVE "interactive" /* "1" = who submitted it attends it */
#define JOBNOTE_CODE "code" /* digest of the archive that it carries */
#define JOBNOTE_ORIGIN "origin" /* of pods that were not submitted: objects/origin.h */
#define JOBNOTE_PODS "pods"
#define JOBNOTE_RESUBMIT_OF "resubmit_of" /* the number of a job */

#define JOBNOTE_CANCELLED_BY "cancelled_by" /* a user */
#define JOBNOTE_REST                                                                               \
	"rest" /* elements of an array that ended unstarted: "CANCELLED 1764320400000000 2,4-5" */

/* Return the notes of a spec, freed by the caller; NULL = none. */
char *jobnote_take(const struct gpuq_spec *spec);

/* Return a copy with these pods in place of those that it names, freed by the caller; of one that names none, the
 * same. */
char *jobnote_with_pods(const char *notes, const char *pods, size_t n_pods);

/* Return a copy with this value of the key, n bytes, freed by the caller. */
char *jobnote_with(const char *notes, const char *key, const char *value, size_t n);

/* Return a value and its length, not ended by NUL; NULL = none. notes may be NULL. */
const char *jobnote_find(const char *notes, const char *key, size_t *n);

#endif
