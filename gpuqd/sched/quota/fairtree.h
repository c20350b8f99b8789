/* fairtree.h - ranks of users by past usage against their shares
 *
 * Owns     nothing; works in the caller's arena.
 * Touches  memory only.
 * Used by  priority.c, gpuq-sim shares, tests.
 *
 * Every sibling has a level share S / U: its portion of the weights over its portion of the usage
 * (unused: infinite, weight 0: none). The tree is walked depth first, the larger level share first,
 * and users are numbered as they are met; users of one queue likewise. So every user of a queue
 * that had less than its share comes before every user of a queue that had more. Users with equal
 * level shares get the same number; queues with equal ones are walked as one.
 * Source: Slurm's Fair Tree (priority/multifactor, fair_tree). */
#ifndef GPUQD_SCHED_QUOTA_FAIRTREE_H
#define GPUQD_SCHED_QUOTA_FAIRTREE_H

#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"

/* Return the rank of every user of a queue (snapshot.usages): n_usages is the best, 1 the worst;
 * rank / n_usages is the fair-share factor. NULL when there is no memory. */
uint32_t *fairtree_ranks(const struct snapshot *s, struct gpuq_arena *mem);

#endif
