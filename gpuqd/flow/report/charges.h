/* charges.h - the stored charges of single pods, a day at a time and some records a step
 *
 * Owns     where it reads, and which pods are left out.
 * Touches  the store, reads only.
 * Used by  ledger_report, reserved.
 */
#ifndef GPUQD_FLOW_REPORT_CHARGES_H
#define GPUQD_FLOW_REPORT_CHARGES_H

#include "gpuqd/state/model.h"

struct store;
struct charges;

#define CHARGES_NAME_BYTES 128 /* longer names are cut */

struct charges_row {
	const char *queue, *user, *flavor;
	int isolation; /* as in struct charges; ISOLATION_NO_DEVICES also where it was not recorded */
	int64_t price_micro; /* of a device and hour, when it ended */
	const struct charged *items;
	uint32_t n;
	const struct gpuq_amount
		*amounts; /* held while it was used; thousandths (accounting_amounts) */
	uint32_t n_amounts;
	struct used_sum used; /* by a pod that ended on that day */
};

/* Valid during the call. */
typedef void (*charges_fn)(void *arg, const struct charges_row *row);

struct charges *charges_new(struct store *st); /* NULL: no memory */
void charges_free(struct charges *c); /* NULL is fine */

/* Leave out the record of a pod that is still running: one that is written from now on does not count a second
 * time. False: no memory. */
bool charges_leave_out(struct charges *c, const struct job *j, uint32_t attempt, uint32_t pod);

/* Read on in that day. 1: there is more of it; 0: that was all; GPUQ_ENOMEM, GPUQ_ESTORAGE. */
int charges_step(struct charges *c, int64_t day, charges_fn fn, void *arg, struct gpuq_err *err);
/* True if the day read last had any record, left out or not. */
bool charges_found(const struct charges *c);

#endif
