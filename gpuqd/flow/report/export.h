/* export.h - the live state as a scenario, to be looked at on paper
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  rpc/method/m_export.
 *
 * What gpuq-sim(1) reads: the cluster, its queues, what runs and what waits, as the
 * scheduler sees it at this moment. Scripts and environments are not in it. What the form
 * has no word for is put as near as it goes: devices of others and ill ones are held by
 * jobs named foreign-NODE, what waits for anything but the scheduler is on hold.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_H
#define GPUQD_FLOW_REPORT_EXPORT_H

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

/* Calls fn for maps {part, value}, in the order config, nodes, queues, running, pending: the
 * case has the value of part config, and lists of the others. An item lives during its call;
 * where there was no memory for it, gpuq_val_ok() says so. Returns 0, GPUQ_ENOMEM. */
typedef void (*export_fn)(void *arg, const struct gpuq_val *item);
int export_scenario(const struct model *m, int64_t now_us, export_fn fn, void *arg,
		    struct gpuq_err *err);

#endif
