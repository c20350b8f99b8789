/* reserved.h - what became of reservations between two instants: used, unused, at what price
 *
 * Owns     the sums while they are added up.
 * Touches  the model and the store, reads only.
 * Used by  rpc/method/m_reservation.c.
 *
 * The use of a reservation is what its queue and users used while it was in effect, up to what it
 * reserves. It is taken from the records of single pods, a piece at a time, so that the loop is not
 * held, and from running pods as of now. Before the first of these records nothing is known.
 */
#ifndef GPUQD_FLOW_REPORT_RESERVED_H
#define GPUQD_FLOW_REPORT_RESERVED_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/model.h"

struct store;
struct reserved;

/* A reservation of the site. Times in device-us. */
struct reserved_row {
	const char *name, *queue; /* queue NULL: of users, or a maintenance */
	bool maintenance;
	uint32_t n_windows; /* that began in that time, or before it and reached into it */
	uint32_t n_no_shows; /* of these over by now, and nothing was used */
	int64_t reserved_us, used_us;
	int64_t cost_micro; /* of what is reserved, at the present price */
};

/* Begin; instants are ledger time. NULL: out of memory. */
struct reserved *reserved_new(const struct model *m, struct store *st, int64_t since_us,
			      int64_t until_us, int64_t now_us);
void reserved_free(struct reserved *r); /* NULL is allowed */

/* Read on; first called when what was applied before reserved_new() is durable. 1: call again;
 * 0: done; negative: the store failed. */
int reserved_step(struct reserved *r, struct gpuq_err *err);

/* Return the rows, in the order of the site, of those with windows; valid until it is freed. */
const struct reserved_row *reserved_rows(struct reserved *r, size_t *n);

#endif
