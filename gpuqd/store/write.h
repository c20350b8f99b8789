/* write.h - records of a store, written
 *
 * Owns     the thread that writes.
 * Touches  the database, the mark beside it.
 * Used by  flow/journal, flow/report/history_keep, daemon.c; the other files of store.
 */
#ifndef GPUQD_STORE_WRITE_H
#define GPUQD_STORE_WRITE_H

#include "gpuqd/store/store.h"

struct MDB_txn;
struct loop;
struct store_meta;

/* 0 while DIR leads to the files that are open; GPUQ_EIO once it was removed, replaced,
 * unmounted or mounted over. Each commit checks it before its outcome is delivered. */
int store_is_there(const struct store *st, struct gpuq_err *err);

/* Let the writer finish what it was given and end it; outcomes are not delivered any
 * more. store_write_now and reads still work. NULL is fine. */
void store_close_writer(struct store *st);

/* Outcome of one batch. rc: 0; GPUQ_ESTORAGE (no space: nothing of it is stored, the
 * store goes on); GPUQ_EIO, GPUQ_EUNKNOWN (not known what is stored: the process must
 * end). */
typedef void (*store_done_fn)(void *arg, uint64_t seq, int rc, const struct gpuq_err *err);

/* Deliver outcomes on the loop. */
int store_attach(struct store *st, struct loop *l, store_done_fn fn, void *arg,
		 struct gpuq_err *err);

/* Hand b to the writer; b is taken (emptied). Outcomes come in the order of calls.
 * seq is the caller's number for it. */
void store_write(struct store *st, struct batch *b, uint64_t seq);

/* Blocking write on the caller's thread, for start and tools. */
int store_write_now(struct store *st, const struct batch *b, struct gpuq_err *err);
/* Take all records of a table away. Blocking, for the start. */
int store_clear(struct store *st, enum table t, struct gpuq_err *err);

/* Space for new work: 0, or GPUQ_ESTORAGE and the required free space. Ends and cancellations of
 * old work use the reserve of 8 MiB (ballast.h) and may continue while this fails; it recovers
 * automatically. */
int store_has_space(const struct store *st, struct gpuq_err *err);

/* Write b (NULL: nothing) and next, with counts and digests as they are then; clear: a table
 * that is emptied first, N_TABLES: none. next replaces st->state once it is committed. */
int store_commit(struct store *st, const struct batch *b, enum table clear, struct store_meta *next,
		 struct gpuq_err *err);
/* Begin a transaction; end it with store_commit's steps or mdb_txn_abort. */
int store_put_state(struct store *st, struct MDB_txn *txn, struct store_meta *next);

/* Ends the writer; outcomes not yet delivered are dropped. */
void store_free_writer(struct store *st);

#endif
