/* export.h - the live state as a scenario, for trying things on a copy
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  rpc/method/m_export.
 *
 * Writes the input of gpuq-sim(1): the cluster, its queues, the running and pending jobs, as the
 * scheduler sees them at this moment. Scripts and environments are not included. Anything that the
 * format cannot express is approximated: devices in foreign use and unhealthy ones are held by
 * jobs named foreign-NODE, jobs that are pending for anything but the scheduler are held.
 */
#ifndef GPUQD_FLOW_REPORT_EXPORT_H
#define GPUQD_FLOW_REPORT_EXPORT_H

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

/* Call fn for maps {part, value}, in the order config, nodes, queues, running, pending: the
 * scenario has the value of part config, and lists of the others. An item lives during its call;
 * where there was no memory for it, gpuq_val_ok() says so. Returns 0, GPUQ_ENOMEM. */
typedef void (*export_fn)(void *arg, const struct gpuq_val *item);
int export_scenario(const struct model *m, int64_t now_us, export_fn fn, void *arg,
		    struct gpuq_err *err);

#endif
