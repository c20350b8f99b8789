/* keys.h - idempotency keys: which call made which jobs
 *
 * Owns     the keys of the last days, packed, one behind the other in order of arrival.
 * Touches  memory only.
 * Used by  state/model (a submission adds one), flow/admit/submit (looks them up).
 *
 * Each job may have a key of its own, and keys stay for days: they take little more than
 * their bytes.
 */
#ifndef GPUQD_STATE_RECORD_KEYS_H
#define GPUQD_STATE_RECORD_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/util/table.h"

struct idem_key {
	uint64_t hash; /* of the request */
	int64_t at_us;
	uint32_t first_id, n_jobs; /* the jobs that the request made */
	uint16_t len;
	bool expired; /* removed from the table */
	unsigned char bytes[]; /* user NUL key */
};

struct key_chunk;

struct keys {
	struct slots slots; /* by their bytes */
	struct key_chunk *first, *last; /* in the order in which they came */
};

struct idem_key *keys_find(const struct keys *k, const void *bytes, size_t n);
/* Add a key of that time that is not in the table yet; the caller fills in the rest. */
struct idem_key *keys_add(struct keys *k, const void *bytes, size_t n, int64_t at_us);
void keys_reserve(struct keys *k, uint32_t n); /* make room for that many more */
/* Forget the keys that are not younger than that; fn is called for each before. */
typedef void (*keys_gone_fn)(void *arg, const struct idem_key *k);
void keys_expire(struct keys *k, int64_t until_us, keys_gone_fn fn, void *arg);
void keys_done(struct keys *k);

#endif
