/* place_warn.h - warning about nodes, labels and directories that do not exist
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/submit, beside its check of sizes.
 */
#ifndef GPUQD_FLOW_ADMIT_PLACE_WARN_H
#define GPUQD_FLOW_ADMIT_PLACE_WARN_H

#include "gpuqd/state/model.h"
#include "libgpuq/buf.h"
#include "libgpuq/spec.h"

/* Append a line to warnings for each node that spec names and that is not there, and for a requirement on
 * labels that no node meets, with what is there: the job is accepted and stays pending, since nodes come
 * and go, but most such names are mistakes. Nothing while no node is known. */
void place_warn(const struct model *m, const struct gpuq_spec *spec, struct gpuq_buf *warnings);

/* Refuse a --chdir that leaves the files that the job carries; warn of one that none of
 * its pods has. whole is the spec with what the site adds; known: that is all its pods on Kubernetes get. */
int place_check_dir(struct gpuq_arena *a, const struct gpuq_spec *spec,
		    const struct gpuq_spec *whole, bool known, struct gpuq_buf *warnings,
		    struct gpuq_err *err);

#endif
