/* import_checks.h - AdmissionChecks that have nodes provisioned, as `provisioning` of pools
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  import_kueue.c. */
#ifndef GPUQ_IMPORT_IMPORT_CHECKS_H
#define GPUQ_IMPORT_IMPORT_CHECKS_H

#include "gpuq/import/import_int.h"

/* Read the pools of --pools; their flavors are added. */
int import_shapes(struct import *im, const struct import_doc *docs, size_t n);
/* Give pools their provisioning. */
int import_checks(struct import *im);

#endif
