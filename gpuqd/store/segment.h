/* segment.h - the format of a segment: batches as they were committed, one after the other
 *
 * Owns     nothing.
 * Touches  a descriptor, by pread(2).
 * Used by  batchlog.c (writes), replay.c (reads).
 *
 * A head says which database, which epoch and which batch is the first; records, each with its length
 * and CRC32C, are the batches; an end has the number of the last one and the SHA-256 of all before.
 * Without its end a segment is one that is cut short. Integers have the least significant byte
 * first; a record is MessagePack:
 *   [number, time, table that is emptied first or -1, digest of all tables afterwards,
 *    [[table, key, value or nil], ...]]
 */
#ifndef GPUQD_STORE_SEGMENT_H
#define GPUQD_STORE_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/store/store.h"
#include "gpuqd/util/varint.h"

struct store_meta;

#define SEGMENT_HEAD_BYTES 68
#define SEGMENT_END_BYTES 52

struct segment_head {
	unsigned schema;
	struct store_identity id; /* seq: of its first batch */
	int64_t begun_us; /* wall clock of that */
};

struct segment_batch {
	uint64_t seq;
	int64_t at_us; /* wall clock */
	enum table clear; /* N_TABLES = none */
	uint64_t sum; /* segment_sum() after it */
	/* the changes, to be read by segment_change */
	struct rec changes;
	uint32_t n_changes;
};

void segment_head_write(const struct segment_head *h, struct gpuq_buf *out);
void segment_batch_write(const struct segment_batch *b, const struct batch *changes,
			 struct gpuq_buf *out); /* b->changes is not examined */
/* Behind it comes the SHA-256 of all before, this included. */
void segment_end_write(uint64_t last, int64_t last_us, struct gpuq_buf *out);
/* Counts and digests of all tables, as one number. */
uint64_t segment_sum(const struct store_meta *s);

/* ---- read ---- */

struct segment {
	int fd;
	int64_t bytes; /* of the file */
	struct segment_head head;
	int64_t at; /* of the next record */
	bool ended; /* the end was met */
	uint64_t last; /* what the end says */
	struct gpuq_buf record;
};

/* fd stays the caller's. GPUQ_ECORRUPT (no segment, or its head is cut short), GPUQ_EVERSION. */
int segment_open(struct segment *s, int fd, struct gpuq_err *err);
void segment_close(struct segment *s);
/* The next batch into *out, which lives until the next call. Returns 1; 0 at the end; GPUQ_ECORRUPT
 * where the file is cut short or damaged, s->at is where. */
int segment_next(struct segment *s, struct segment_batch *out, struct gpuq_err *err);
/* Append the changes of b to batch. GPUQ_ECORRUPT. */
int segment_changes(const struct segment_batch *b, struct batch *out, struct gpuq_err *err);
/* The number and the time of its last batch, as its end says; false: there is no end. NULL is fine. */
bool segment_last(const struct segment *s, uint64_t *last, int64_t *last_us);
/* Is all of it there: its end, and the SHA-256 that the end says. */
int segment_check(const struct segment *s, struct gpuq_err *err);

#endif
