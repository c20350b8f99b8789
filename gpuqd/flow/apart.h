/* apart.h - waste: free devices that suffice, but are fragmented
 *
 * Owns     the choice of the job that is charged for them. Touches the journal.
 * Used by  publish.c, in every cycle.
 *
 * Many jobs may be pending because the same devices are fragmented (reason Fragmented). The
 * devices are charged, as waste, to one of them: for each flavor the job that has been pending
 * longest, as long as it is, and as many devices as it requests.
 */
#ifndef GPUQD_FLOW_APART_H
#define GPUQD_FLOW_APART_H

#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"

struct job;
struct journal;
struct apart_choice;

/* Begin the choice. It lives in mem; NULL = no memory, which the functions below accept: nothing
 * changes then. */
struct apart_choice *apart_begin(struct gpuq_arena *mem, const struct snapshot *sn);

/* Note a pending job, its entry in the snapshot, and whether fragmentation is its reason. */
void apart_note(struct apart_choice *c, const struct job *j, uint32_t at, bool fragmented);

/* After all were noted: tell the model which jobs are charged from now on. */
void apart_tell(const struct apart_choice *c, struct journal *journal);

#endif
