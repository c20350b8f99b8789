/* search.h - what the parts of the search for victims know of one another
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  search*.c only.
 */
#ifndef GPUQD_SCHED_PREEMPT_SEARCH_H
#define GPUQD_SCHED_PREEMPT_SEARCH_H

#include "gpuqd/sched/preempt/preempt.h"

#define PACKS_MAX 256 /* tries to place the gang, for one claim */
#define MOVES_MAX 64 /* of them with others moved */

/* search_set.c: give back those taken last, until there are n; the one at i; all, and take
 * exactly those that were saved. */
void search_drop_to(struct cycle *c, struct claim *k, uint32_t n);
void search_drop_at(struct cycle *c, struct claim *k, uint32_t i);
void search_restore(struct cycle *c, struct claim *k, const struct victim *saved, uint32_t n);
/* Is the unit one of those that the search at hand is about? */
bool search_looks_at(const struct claim *k, const struct unit *u);

/* search_node.c: clear nodes for all pods of the gang, what costs least first. */
bool search_clear_nodes(struct cycle *c, struct claim *k);
/* The level of which its pods need one domain; NULL = none. */
const char *search_required_level(const struct snap_request *r);

/* Find victims with whom gone the job fits; all legal, none needless. */
bool search_victims(struct cycle *c, struct claim *k);

#endif
