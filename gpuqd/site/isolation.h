/* isolation.h - the isolation that queues demand for their jobs
 *
 * Owns     nothing.
 * Touches  the site that is being read.
 * Used by  site.c. */
#ifndef GPUQD_SITE_ISOLATION_H
#define GPUQD_SITE_ISOLATION_H

#include "gpuqd/site/site.h"
#include "libgpuq/schema.h"

/* Refuse a queue that demands less isolation than one above it, which counts for its jobs as well. Earlier versions
 * stored such, without effect. None is what a queue demands that says nothing. */
int isolation_check(struct gpuq_reader *r, const struct gpuq_val *v, struct site *s, size_t i);

#endif
