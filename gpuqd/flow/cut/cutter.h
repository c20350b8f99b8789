/* cutter.h - have nodes cut into the layouts of MIG instances that were decided
 *
 * Owns     what was asked of the cluster for each cut in this run, and the timer of their limits.
 * Touches  the model through the journal; the cluster through its header.
 * Used by  daemon.c.
 *
 * It compares the labels of the node with the state of its cut (state/cuts/cut.h): a label is set only where
 * it is another, so that a step which was cut short is repeated, and one that was done is not. With the label the
 * progress of the manager is set to pending: what is read of it afterwards is of this layout. */
#ifndef GPUQD_FLOW_CUT_CUTTER_H
#define GPUQD_FLOW_CUT_CUTTER_H

#include "libgpuq/err.h"

struct cluster;
struct cutter;
struct journal;

int cutter_new(struct journal *j, struct cutter **out, struct gpuq_err *err);
void cutter_free(struct cutter *c); /* NULL is fine */
/* NULL = there is none. */
void cutter_set_cluster(struct cutter *c, struct cluster *cluster);

#endif
