/* victims.h - what the parts of the search for victims know of one another
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  victims*.c only.
 */
#ifndef GPUQD_CORE_VICTIMS_H
#define GPUQD_CORE_VICTIMS_H

#include "gpuqd/core/claim.h"

#define PACKS_MAX 256 /* tries to place the gang, for one claim */
#define MOVES_MAX 64 /* of them with others moved */

/* victims_set.c: give back those taken last, until there are n; the one at i; all, and take
 * exactly those that were saved. */
void claim_drop_to(struct cycle *c, struct claim *k, uint32_t n);
void claim_drop_at(struct cycle *c, struct claim *k, uint32_t i);
void claim_restore(struct cycle *c, struct claim *k, const struct victim *saved, uint32_t n);
/* Is the unit one of those that the search at hand is about? */
bool claim_looks_at(const struct claim *k, const struct unit *u);

/* victims_node.c: clear nodes for all pods of the gang, what costs least first. */
bool claim_clear_nodes(struct cycle *c, struct claim *k);
/* The level of which its pods need one domain; NULL = none. */
const char *claim_required_level(const struct snap_request *r);

#endif
