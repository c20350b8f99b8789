/* batchlog.h - batches on their way to a target of backups, as segments
 *
 * Owns     DIR/batches: EPOCH-FIRST.open, which grows, and EPOCH-FIRST-LAST.seg, which are whole.
 * Touches  those files.
 * Used by  write.c (each commit); flow/copies (takes what is whole).
 *
 * A batch is written here before it is committed, without a flush: kill -9 leaves no gap, and what
 * was not committed is cut off at the next start. A crash of the machine, a full disk, or a target that
 * is away for long may leave a gap, which the numbers show: a full copy ends it. Nothing here
 * makes a commit fail.
 */
#ifndef GPUQD_STORE_BATCHLOG_H
#define GPUQD_STORE_BATCHLOG_H

#include "gpuqd/store/store.h"

struct batchlog;
struct store_meta;

#define BATCHLOG_DIR "batches"
#define BATCHLOG_NAME_BYTES 64

/* Batches of one epoch, first to last. */
struct batchlog_span {
	uint32_t epoch;
	uint64_t first, last;
};

struct batchlog_file {
	char name[BATCHLOG_NAME_BYTES]; /* in DIR/batches */
	struct batchlog_span span;
};

/* Make dir/batches. A file that an earlier start left open is closed: up to the position of is; files
 * of other databases are deleted. Beyond max_bytes no batch is kept. */
int batchlog_open(const char *dir, const struct store_identity *is, int64_t max_bytes,
		  struct batchlog **out, struct gpuq_err *err);
void batchlog_close(struct batchlog *b); /* NULL is fine */
/* Delete what is there of a time when there was a target. */
void batchlog_discard(const char *dir);

/* A transaction that is about to be committed; next: as META will say. By the thread that writes. */
void batchlog_append(struct batchlog *b, const struct store_meta *next, enum table clear,
		     const struct batch *changes);
void batchlog_undo(struct batchlog *b); /* it was not committed */

/* Close what is open, so that it may be taken. From any thread. */
int batchlog_cut(struct batchlog *b, struct gpuq_err *err);
/* Those that are closed, in order; free(*out). From any thread. */
int batchlog_list(struct batchlog *b, struct batchlog_file **out, size_t *n, struct gpuq_err *err);
int batchlog_fd(struct batchlog *b, const char *name, struct gpuq_err *err); /* to read one */
void batchlog_drop(struct batchlog *b, const char *name); /* it was taken */
/* The batches of the file that grows. first 0 = there are none. From any thread. */
struct batchlog_span batchlog_pending(struct batchlog *b);

/* The first number after a chain of spans that begins behind `after`: how far they reach without a
 * gap. spans are sorted. */
uint64_t batchlog_reach(const struct batchlog_span *spans, size_t n, uint32_t epoch,
			uint64_t after);

#endif
