/* draft_resources.h - what a job's resources mean at this site
 *
 * Owns     nothing. Touches the draft's spec alone.
 * Used by  submit.c: a row of its checks.
 */
#ifndef GPUQD_FLOW_ADMIT_DRAFT_RESOURCES_H
#define GPUQD_FLOW_ADMIT_DRAFT_RESOURCES_H

#include "gpuqd/flow/admit/draft_int.h"

/* Replace gres/NAME by the resource that the site maps it to; count resources that a flavor names as
 * devices; and let a job that names its devices go to their flavors. Returns 0, or GPUQ_ENOENT,
 * GPUQ_EINVAL, GPUQ_ERANGE with the field. */
int draft_check_resources(struct draft *d, struct gpuq_err *err);

#endif
