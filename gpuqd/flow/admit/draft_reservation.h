/* draft_reservation.h - the reservation that a job names
 *
 * Touches  the model, which it reads.
 * Used by  submit.c.
 */
#ifndef GPUQD_FLOW_ADMIT_DRAFT_RESERVATION_H
#define GPUQD_FLOW_ADMIT_DRAFT_RESERVATION_H

#include "gpuqd/flow/admit/draft_int.h"

/* draft_reservation.c: the one that it names is there for it; it starts inside. */
int draft_check_reservation(struct draft *d, struct gpuq_err *err);

#endif
