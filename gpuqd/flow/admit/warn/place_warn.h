/* place_warn.h - warnings about nodes, labels and directories that do not exist, and sizes that no node has
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/submit.
 */
#ifndef GPUQD_FLOW_ADMIT_WARN_PLACE_WARN_H
#define GPUQD_FLOW_ADMIT_WARN_PLACE_WARN_H

#include "gpuqd/state/model.h"
#include "libgpuq/buf.h"
#include "libgpuq/spec.h"

/* Append a line to warnings for each node that spec names and that is not there, and for a requirement on
 * labels that no node meets, with what is there: the job is accepted and stays pending, since nodes come
 * and go, but most such names are mistakes. Nothing while no node is known. */
void place_warn(const struct model *m, const struct gpuq_spec *spec, struct gpuq_buf *warnings);

/* Append a line for each group of which no node could hold a pod, even if it were empty, nor one that a pool
 * could get: with what it lacks, devices or parts of them in the way that it requests them among that. q: whose namespace has
 * the objects that its claims name. */
void place_warn_size(const struct model *m, const struct queue *q, const struct gpuq_spec *spec,
		     struct gpuq_buf *warnings);

/* Refuse a --chdir that leaves the files that the job carries; warn of one that none of
 * its pods has. whole is the spec with what the site adds; known: that is all its pods on Kubernetes get. */
int place_check_dir(struct gpuq_arena *a, const struct gpuq_spec *spec,
		    const struct gpuq_spec *whole, bool known, struct gpuq_buf *warnings,
		    struct gpuq_err *err);

#endif
