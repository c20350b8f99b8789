/* figures.h - statistics of the store
 *
 * Owns     nothing. Touches the store (reads).
 * Used by  rpc/method/m_diag.c.
 */
#ifndef GPUQD_FLOW_REPORT_FIGURES_H
#define GPUQD_FLOW_REPORT_FIGURES_H

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct journal;

/* out: {bytes, map_bytes, disk_free_bytes, disk_bytes, records {by table}}. Returns 0 or the error
 * of the read. */
int figures_store(struct journal *j, struct gpuq_arena *a, struct gpuq_val **out,
		  struct gpuq_err *err);

#endif
