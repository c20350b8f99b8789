/* keys.h - idempotency keys: which call made which jobs
 *
 * Owns     the keys of the last days, packed, one behind the other as they came.
 * Touches  memory only.
 * Used by  state/model (a submission leaves one), flow/admit/submit (looks them up).
 *
 * Each job may have brought its own, and they stay for days: they take little more than
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
	uint32_t first_id, n_jobs;
	uint16_t len;
	bool expired; /* it is in the table no more */
	unsigned char bytes[]; /* user NUL key */
};

struct key_chunk;

struct keys {
	struct slots slots;
	struct key_chunk *first, *last;
};

struct idem_key *keys_find(const struct keys *k, const void *bytes, size_t n);
/* One of that time that is not there yet; the rest of it is the caller's to fill. */
struct idem_key *keys_add(struct keys *k, const void *bytes, size_t n, int64_t at_us);
void keys_reserve(struct keys *k, uint32_t n); /* so many are going to come */
/* Forget those that are not younger than that; fn is told of each before. */
typedef void (*keys_gone_fn)(void *arg, const struct idem_key *k);
void keys_expire(struct keys *k, int64_t until_us, keys_gone_fn fn, void *arg);
void keys_done(struct keys *k);

#endif
