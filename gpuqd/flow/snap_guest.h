/* snap_guest.h - a snapshot with jobs that are not there
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  flow/estimate (what would become of this job?).
 */
#ifndef GPUQD_FLOW_SNAP_GUEST_H
#define GPUQD_FLOW_SNAP_GUEST_H

#include "gpuqd/core/model.h"
#include "gpuqd/core/snapshot.h"
#include "gpuqd/flow/estimate.h"

/* As snapshot_take(), with n guests behind all jobs: guest i has the id next_job_id + i
 * of the model, and index -1. Returns 0; GPUQ_ENOENT (no such queue), GPUQ_ENOMEM. */
int snapshot_take_guests(const struct model *m, int64_t now_us, const struct start_guest *guests,
			 uint32_t n, struct snapshot **out, struct gpuq_err *err);

#endif
