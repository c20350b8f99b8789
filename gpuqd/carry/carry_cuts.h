/* carry_cuts.h - nodes of a plan that get another layout become events
 *
 * Owns     nothing.
 * Touches  memory only; the caller decides where the events go.
 * Used by  flow/carry_out, sim/.
 *
 * Nodes must be as they were in the snapshot of the plan. */
#ifndef GPUQD_CARRY_CARRY_CUTS_H
#define GPUQD_CARRY_CARRY_CUTS_H

#include "gpuqd/carry/carry.h"

void carry_cuts(const struct carry_to *to, const struct model *m, const struct snapshot *s,
		const struct plan *p);

#endif
