/* keyset.h - a set of keys of one size, distinguished byte by byte
 *
 * Owns     copies of the keys; { .bytes = n } is an empty set of keys of n bytes.
 * Touches  memory only.
 * Used by  flow/dispatch and flow/reconcile: the pods that were requested, or seen.
 */
#ifndef GPUQD_UTIL_KEYSET_H
#define GPUQD_UTIL_KEYSET_H

#include <stdbool.h>
#include <stddef.h>

struct keyset_item;
struct keyset {
	struct keyset_item *items;
	size_t bytes; /* of a key; it has no padding */
};

bool keyset_has(const struct keyset *s, const void *key);
void keyset_add(struct keyset *s, const void *key); /* it may be there already */
void keyset_remove(struct keyset *s, const void *key); /* or not be there */
void keyset_clear(struct keyset *s);

#endif
