/* apart.h - free devices that are enough, but apart
 *
 * Owns     the choice of the job that they are charged to. Touches the journal.
 * Used by  publish.c, in every cycle.
 *
 * Many jobs may wait for the same devices to lie together (reason Fragmented). They are
 * charged, as waste, to one: of each flavor the job that has waited longest, as long as it
 * does, and as many as it asks for.
 */
#ifndef GPUQD_FLOW_APART_H
#define GPUQD_FLOW_APART_H

#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"

struct job;
struct journal;
struct apart_choice;

/* Lives in mem; NULL = no memory, which the others take: then nothing changes. */
struct apart_choice *apart_begin(struct gpuq_arena *mem, const struct snapshot *sn);

/* A job that waits, its entry in the snapshot, and whether it waits for just that. */
void apart_note(struct apart_choice *c, const struct job *j, uint32_t at, bool fragmented);

/* All were noted: tell the model whom they are charged to from now on. */
void apart_tell(const struct apart_choice *c, struct journal *journal);

#endif
