/* view_reason.h - why a job is pending, or not running yet, as clients see it
 *
 * Owns     the members of a job's reasons in gpuq-json(5).
 * Touches  memory only; reads the model, never changes it.
 * Used by  view_job.c, joblog.c.
 */
#ifndef GPUQD_STATE_VIEW_VIEW_REASON_H
#define GPUQD_STATE_VIEW_VIEW_REASON_H

#include <stddef.h>

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

/* Return the number of reasons of a job that has not started, the first of which explains it; before the first
 * evaluation, that there was none. *out points to them: to the model's, or to *now. */
size_t view_reason_list(const struct job *j, const struct reason **out, struct reason *now);
/* Return the reasons for which the job is pending, or not running yet; NULL when a is exhausted. */
struct gpuq_val *view_reasons(struct gpuq_arena *a, const struct model *m, const struct job *j);
/* Return the role that can end a trouble: "user", "operator"; the word for none if it ends by itself. */
const char *view_reason_trouble_who(enum trouble_whose whose);

#endif
