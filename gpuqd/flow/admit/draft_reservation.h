/* draft_reservation.h - the reservation that a job names
 *
 * Touches  the model, which it reads.
 * Used by  submit.c.
 */
#ifndef GPUQD_FLOW_ADMIT_DRAFT_RESERVATION_H
#define GPUQD_FLOW_ADMIT_DRAFT_RESERVATION_H

#include "gpuqd/flow/admit/draft_int.h"

/* Check that the reservation it names exists, is usable by its owner, and that the job can start
 * inside it. */
int draft_check_reservation(struct draft *d, struct gpuq_err *err);

#endif
