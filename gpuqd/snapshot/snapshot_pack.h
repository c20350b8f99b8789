/* snapshot_pack.h - a snapshot as bytes, so that its cycle can be run again elsewhere
 *
 * Owns     the form of those bytes.
 * Touches  memory only.
 * Used by  sched/cycle_record, the fuzz target of the scheduler.
 *
 * The bytes hold what a builder added, in the order in which it was added, and nothing that
 * sealing derives: a reader seals it anew, under the rules of its own release.
 * MessagePack, an array for each object: the plain fields in the order of the tables in
 * snapshot_pack.c, then its lists. New fields and lists are appended to their array;
 * a field that an older writer did not know has its default, one that a newer writer adds is
 * skipped.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_PACK_H
#define GPUQD_SNAPSHOT_SNAPSHOT_PACK_H

#include "gpuqd/util/varint.h"
#include "gpuqd/snapshot/snapshot.h"

/* Append a snapshot that has not been sealed yet. out->failed is set when memory ran out. */
void snapshot_pack(const struct snapshot *s, struct gpuq_buf *out);

/* Decode the next value of r into a snapshot, not sealed; free with snapshot_free(). The bytes need
 * not be trusted: dangling references, and values beyond what sealing accepts, are refused. Returns
 * 0, GPUQ_ECORRUPT, GPUQ_ENOMEM. */
int snapshot_unpack(struct rec *r, struct snapshot **out, struct gpuq_err *err);

#endif
