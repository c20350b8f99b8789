/* zones.h - the time zones that a site names
 *
 * Owns     nothing.
 * Touches  the files of zones (base/zonefile).
 * Used by  flow/admit/apply, daemon.c.
 *
 * A reservation names its zone; what is stored has the zone's rule beside the name, so that the
 * calendar means the same on another machine and needs no file.
 */
#ifndef GPUQD_FLOW_ADMIT_ZONES_H
#define GPUQD_FLOW_ADMIT_ZONES_H

#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/val.h"

/* Put the rule of this machine beside the name of every zone in the tree of a site. Names that are
 * not known here stay as they are: site_read() refuses those without a rule. */
void zones_settle(struct gpuq_arena *a, struct gpuq_val *tree, int64_t now_us);

#endif
