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
uint32_t order_next(const struct cycle *c); /* the next job; SNAP_NONE = none is left */
void order_done(struct cycle *c, uint32_t job); /* it has had its turn */
void order_changed(struct cycle *c, uint32_t job); /* its queue's holdings changed */

#endif
