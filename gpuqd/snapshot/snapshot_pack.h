/* snapshot_pack.h - a snapshot as bytes, so that its cycle can be run again elsewhere
 *
 * Owns     the form of those bytes.
 * Touches  memory only.
 * Used by  sched/cycle_record, the fuzz target of the scheduler.
 *
 * What a builder added is written, in the order in which it was added, and none of what
 * sealing derives: whoever reads it seals it anew, with the rules of his own release.
 * MessagePack, an array for each object: the plain fields in the order of the tables in
 * snapshot_pack.c, then its lists. New fields and lists are appended to their array;
 * what an older writer did not know has its default, what a newer one adds is skipped.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_PACK_H
#define GPUQD_SNAPSHOT_SNAPSHOT_PACK_H

#include "gpuqd/util/varint.h"
#include "gpuqd/snapshot/snapshot.h"

/* Append a snapshot that has not been sealed yet. out->failed tells when memory ran out. */
void snapshot_pack(const struct snapshot *s, struct gpuq_buf *out);

/* The next value of r as a snapshot, not sealed; free with snapshot_free(). Bytes from
 * anywhere are allowed: what points at nothing, or is beyond what sealing may be given,
 * is refused. Returns 0, GPUQ_ECORRUPT, GPUQ_ENOMEM. */
int snapshot_unpack(struct rec *r, struct snapshot **out, struct gpuq_err *err);

#endif
