/* list.h - GET of a collection
 *
 * Owns     the snapshots that pages of one list are cut from.
 */
#ifndef FAKEKUBE_LIST_H
#define FAKEKUBE_LIST_H

#include "api.h"

/* Answer a list. Returns true when the answer must wait (a resourceVersion
 * from the future); the caller asks again later with waited set. */
bool list_get(const struct call *call, bool waited, struct reply *r);

/* The objects of a type, in the order of their keys, as they are now. The caller
 * frees the array; the versions belong to the store. */
struct version **list_sorted(struct kind *kind, size_t *n);

/* Continue tokens from before now stop working, as after a compaction. */
void list_forget(void);

#endif
