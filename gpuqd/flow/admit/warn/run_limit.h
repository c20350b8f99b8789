/* run_limit.h - how long nodes that are requested may run
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/submit, after its check of flavors.
 */
#ifndef GPUQD_FLOW_ADMIT_WARN_RUN_LIMIT_H
#define GPUQD_FLOW_ADMIT_WARN_RUN_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/model.h"
#include "libgpuq/err.h"
#include "libgpuq/spec.h"

struct provision_machine;
/* True if a node of that shape could hold a pod of the group. */
bool run_limit_holds(const struct provision_machine *is, const struct gpuq_group *g);

/* Refuse a job whose time limit exceeds max_run of every pool that it may use: GPUQ_ELIMIT with the
 * largest. A pool whose nodes are not requested, or a node of none, could hold it at any length.
 * time_us: GPUQ_UNLIMITED is not refused. */
int run_limit_check(const struct model *m, const struct gpuq_spec *spec, int64_t time_us,
		    struct gpuq_err *err);

/* Warn of a time limit from which the boot of its node takes some: where every pool that the job may use would
 * request nodes for no longer. */
void run_limit_warn(const struct model *m, const struct gpuq_spec *spec, int64_t time_us,
		    struct gpuq_buf *warnings);

#endif
