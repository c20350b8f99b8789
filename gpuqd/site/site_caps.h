/* site_caps.h - limits by user, queue and job, and what becomes of the jobs of a lost node
 *
 * Owns     how these values are written. Touches memory only.
 * Used by  site.c (rows of its tables).
 */
#ifndef GPUQD_SITE_SITE_CAPS_H
#define GPUQD_SITE_SITE_CAPS_H

#include "gpuqd/site/site.h"

#define SITE_CAP_MOST 1000000000

#define SITE_NO_CAP                                                                                \
	{                                                                                          \
		GPUQ_UNLIMITED, GPUQ_UNLIMITED, GPUQ_UNLIMITED                                     \
	}
extern const struct site_cap site_caps_none;

/* 20, or {user: 20, job: 8, queue: 100}: of devices; of jobs, which are counted, so that there is no cap of
 * a single one. */
extern const struct gpuq_custom site_caps_custom, site_caps_count_custom;

/* strict, or {mode: available, after: 5m} */
extern const struct gpuq_custom site_caps_loss_custom;
void site_caps_loss_defaults(void *obj);

#endif
