/* store.h - records on disk, in LMDB
 *
 * Owns     the state directory: the lock, the database, its schema version.
 * Touches  lmdb.h and files of the directory; no other room includes lmdb.h.
 * Used by  flow/journal (writes, reads), daemon.c (opens, loads).
 *
 * Writes go through one writer thread that commits one batch at a time; the loop
 * learns of the outcome through a callback. Each value carries a version, a CRC32C
 * and MessagePack. LMDB has no checksums of its own and believes what it maps.
 */
#ifndef GPUQD_STORE_STORE_H
#define GPUQD_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/core/change.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

struct loop;
struct store;

struct store_opts {
	int64_t map_bytes; /* address space, not disk; 0 = 64 GiB */
	bool unsafe_fs; /* allow network filesystems */
	bool no_sync; /* tests only: a crash of the machine loses data */
};

/* Open or make DIR (0700). Takes DIR/gpuqd.lock for as long as it is open.
 *
 * Returns 0 and *out; GPUQ_EBUSY (locked, err names the pid), GPUQ_EVERSION (newer
 * schema), GPUQ_ECORRUPT, GPUQ_EINVAL (a network filesystem), GPUQ_EPERM, GPUQ_EIO,
 * GPUQ_ESTORAGE. *fresh tells whether the database was made just now. */
int store_open(const char *dir, const struct store_opts *o, struct store **out, bool *fresh,
	       struct gpuq_err *err);

/* Let the writer finish what it was given and end it; outcomes are not delivered any
 * more. store_write_now and reads still work. NULL is fine. */
void store_close_writer(struct store *st);

/* Close; NULL is fine. */
void store_close(struct store *st);

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

/* One committed record into val (appended). Returns 0, GPUQ_ENOENT, GPUQ_ECORRUPT
 * (err names table and key), GPUQ_EIO. */
int store_get(struct store *st, enum table t, const void *key, size_t key_len, struct gpuq_buf *val,
	      struct gpuq_err *err);

/* All records of a table whose key begins with prefix, in key order, from `from` on
 * (NULL = the first). fn's non-zero answer stops and is returned. At most
 * max records (0 = all); long walks are the caller's to cut into pages. */
typedef int (*store_each_fn)(void *arg, const unsigned char *key, size_t key_len,
			     const unsigned char *val, size_t val_len);
int store_each(struct store *st, enum table t, const void *prefix, size_t prefix_len,
	       const void *from, size_t from_len, bool backwards, size_t max, store_each_fn fn,
	       void *arg, struct gpuq_err *err);

/* All records of those tables, one table after the other, as they stand at one moment,
 * whatever is written meanwhile. */
typedef int (*store_all_fn)(void *arg, enum table t, const unsigned char *key, size_t key_len,
			    const unsigned char *val, size_t val_len);
int store_all(struct store *st, const enum table *tables, size_t n, store_all_fn fn, void *arg,
	      struct gpuq_err *err);

/* Records of a table, without looking at them. 0 when it cannot be read. */
size_t store_count(struct store *st, enum table t);
/* Take all records of a table away. Blocking, for the start. */
int store_clear(struct store *st, enum table t, struct gpuq_err *err);

/* Is there space for ordinary work? Checked against the filesystem. */
bool store_has_space(const struct store *st);

/* What it takes. */
struct store_stats {
	uint64_t bytes; /* of the file that are in use */
	uint64_t map_bytes; /* that it may grow to */
	uint64_t free_bytes, disk_bytes; /* of its filesystem, for those who are not root; in all */
	uint64_t n_records[N_TABLES];
};
int store_stats(struct store *st, struct store_stats *out, struct gpuq_err *err);

/* A file of no name beside the database, for a copy of it; its descriptor, or GPUQ_EIO,
 * GPUQ_ESTORAGE (there is no room for one). */
int store_scratch(struct store *st, struct gpuq_err *err);

/* A consistent copy of what is stored, without gaps, into fd. From any thread; takes long.
 * As data.mdb of an empty state directory it is what was stored. */
int store_copy(struct store *st, int fd, struct gpuq_err *err);

/* A consistent copy of the database into dir (made, 0700). */
int store_backup(struct store *st, const char *dir, struct gpuq_err *err);

#endif
