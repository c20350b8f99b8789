/* carry_asks.h - the requests of a plan become events
 *
 * Owns     nothing.
 * Touches  memory only; the caller decides where the events go.
 * Used by  flow/carry_out.
 *
 * The plan must be of a cycle that looked at all jobs, and nodes must be as they were in its snapshot:
 * then what it requests is still missing. */
#ifndef GPUQD_CARRY_CARRY_ASKS_H
#define GPUQD_CARRY_CARRY_ASKS_H

#include "gpuqd/carry/carry.h"

void carry_asks(const struct carry_to *to, const struct model *m, const struct plan *p);

#endif
