/* replay.h - apply segments to a copy that is about to become the database
 *
 * Owns     the copy, open, until store_replay_end.
 * Touches  the file of the copy.
 * Used by  flow/copies/restore.c, by way of store_restore.
 *
 * Each batch goes through the same function as when it was first committed; counts and digests of
 * all tables must come out the same.
 */
#ifndef GPUQD_STORE_REPLAY_H
#define GPUQD_STORE_REPLAY_H

#include "gpuqd/store/store.h"

struct replay;

/* Where to stop: behind the last batch that is not later than at_us and not beyond epoch/seq. */
struct replay_until {
	int64_t at_us; /* INT64_MAX = whenever */
	uint64_t seq; /* UINT64_MAX = any */
};

int store_replay_begin(const char *path, int64_t map_bytes, struct replay **out,
		       struct gpuq_err *err);
/* Apply what the segment of fd has behind the present position. *done: what is next is beyond until.
 * GPUQ_ECORRUPT (cut short, damaged, batches missing before it, or another state comes out),
 * GPUQ_EVERSION, GPUQ_ECONFLICT (of another database). The segments before it stay applied. */
int store_replay(struct replay *r, int fd, const struct replay_until *until, bool *done,
		 struct gpuq_err *err);
struct store *store_replay_store(const struct replay *r); /* to read from */
struct store_identity store_replay_position(const struct replay *r);
int64_t
store_replay_time(const struct replay *r); /* of the last batch that was applied; 0 = none */
/* Sync it and close. */
int store_replay_end(struct replay *r, struct gpuq_err *err);

#endif
