/* search.h - the search for victims, and its bounds
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  preempt.c, minimise.c; search_*.c for the bounds.
 */
#ifndef GPUQD_SCHED_PREEMPT_SEARCH_H
#define GPUQD_SCHED_PREEMPT_SEARCH_H

#include "gpuqd/sched/preempt/preempt_int.h"

#define PACKS_MAX 256 /* attempts to place the gang, for one claim */
#define MOVES_MAX 64 /* of them with others relocated */

/* Find victims without which the job fits; all legal, none unnecessary. */
bool search_victims(struct cycle *c, struct claim *k);

#endif
