/* order.h - which job is served next
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched.c.
 */
#ifndef GPUQD_SCHED_ORDER_H
#define GPUQD_SCHED_ORDER_H

#include "gpuqd/sched/quota/cycle.h"

void order_init(struct cycle *c);
uint32_t order_next(const struct cycle *c); /* whose turn it is; SNAP_NONE = nobody's */
void order_done(struct cycle *c, uint32_t job); /* it leaves the line */
void order_changed(struct cycle *c, uint32_t job); /* its queue holds something new */

#endif
