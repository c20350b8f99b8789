/* store.h - records on disk, in LMDB
 *
 * Owns     the state directory: the lock, the database, its schema, its identity, the mark.
 * Touches  lmdb.h and files of the directory; no other room includes lmdb.h.
 * Used by  flow/journal (writes, reads), daemon.c (opens, loads, audits).
 *
 * Writes go through one writer thread that commits one batch at a time; the loop
 * learns of the outcome through a callback. LMDB has no checksums and believes what it
 * maps, so every record carries a CRC32C of its table, key and value, META holds a count
 * and a digest of every table, and the pages themselves are checked once after a start,
 * before the first record of their table is read and before the first batch is written.
 *
 * Files of DIR: gpuqd.lock, data.mdb and lock.mdb (the database), mark (identity and last
 * position), data.mdb.schema-1 (what an upgrade kept).
 */
#ifndef GPUQD_STORE_STORE_H
#define GPUQD_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/record/change.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

struct loop;
struct store;

/* Convert one record of an older schema: put into out what stands for it in the present one
 * (nothing: it is dropped; any tables and keys). t is the table's number here, whatever it was
 * there. Tables come one after the other in this order: META, SITE, NODE, REQUEST, SPEC, JOB,
 * then the others as TABLES lists them; records in key order. At the end it is called once with
 * t = N_TABLES and key = NULL, for what it collected (references, counts). out is empty at each
 * call, or holds what earlier calls put; it is written to a new database from time to time, so a
 * key that is put twice has the last value. A negative answer ends the upgrade: nothing has
 * changed then. */
typedef int (*store_upgrade_fn)(void *arg, unsigned from, enum table t, const unsigned char *key,
				size_t key_len, const unsigned char *val, size_t val_len,
				struct batch *out, struct gpuq_err *err);

/* Damage was found in what is stored, while it was read or checked. Called on any thread; must
 * end the process: an answer made without the record would be wrong. */
typedef void (*store_damaged_fn)(const struct gpuq_err *err);

/* How the process ends when the database breaks under LMDB: SIGBUS, SIGSEGV in its map, its
 * assertion. A line on standard error names the table. */
#define STORE_EXIT_DAMAGED 74

struct store_opts {
	int64_t map_bytes; /* address space, not disk; 0 = 64 GiB */
	bool unsafe_fs; /* allow network filesystems */
	bool no_sync; /* tests only: a crash of the machine loses data */
	bool new_state; /* begin anew beside logs, jobs or a mark whose database is missing */
	store_upgrade_fn upgrade; /* NULL: records of an older schema stay as they are */
	void *upgrade_arg;
	store_damaged_fn damaged; /* NULL: the call that finds it fails with GPUQ_ECORRUPT */
};

/* Open or make DIR (0700). Takes DIR/gpuqd.lock for as long as it is open.
 *
 * A database of an older schema is converted: a new file is written beside it, synced and
 * renamed into its place, which is the one step that counts; the old file stays as
 * data.mdb.schema-N. A crash at any point leaves the one or the other.
 *
 * Returns 0 and *out; GPUQ_EBUSY (locked, err names the pid), GPUQ_EVERSION (newer
 * schema), GPUQ_ECORRUPT (damaged, or missing beside files that a database left),
 * GPUQ_EINVAL (a network filesystem), GPUQ_EPERM, GPUQ_EIO, GPUQ_ESTORAGE. *fresh tells
 * whether the database was made just now. */
int store_open(const char *dir, const struct store_opts *o, struct store **out, bool *fresh,
	       struct gpuq_err *err);

/* Open a state directory or a database file (a backup) for reading: nothing there is changed
 * or made, records of an older schema stay as they are. GPUQ_EBUSY while a gpuqd runs on it.
 * Only reads, store_identity, store_schema, store_audit and store_close may follow. */
int store_open_to_read(const char *path, struct store **out, struct gpuq_err *err);

/* Make file, a copy of a database of this or an older schema, the database of dir, which has
 * none (GPUQ_ECONFLICT): it is checked, converted (o->upgrade), flagged as a copy, synced and
 * then put in place by a renaming. store_open finds it with store_is_copy true. */
int store_restore(const char *dir, const char *file, const struct store_opts *o,
		  struct gpuq_err *err);

/* Check every page and every record of every table, those of tables that this gpuqd does not
 * know included, against the counts and digests of META. Returns 0 or GPUQ_ECORRUPT, GPUQ_EIO;
 * adds the number of records to *n_records (NULL is fine). */
int store_audit(struct store *st, uint64_t *n_records, struct gpuq_err *err);

/* Check that each spec can be put together, and that each part has as many specs as its count
 * says. After store_audit. Returns 0, GPUQ_ECORRUPT, GPUQ_EIO, GPUQ_ENOMEM. */
int store_audit_parts(struct store *st, struct gpuq_err *err);

#define STORE_SCHEMA 2
/* Schema of what is open: STORE_SCHEMA, or less after store_open_to_read. */
unsigned store_schema(const struct store *st);

/* ---- identity ---- */

#define STORE_ID_BYTES 33

/* Which database this is, and how far it has come. The position (epoch, seq) rises by one seq
 * with each batch and is stored with it. */
struct store_identity {
	char store_id[STORE_ID_BYTES]; /* 32 hex digits, drawn when the database was made */
	uint32_t epoch; /* from 1; rises with each new identity */
	uint64_t seq; /* of the last batch */
	bool flagged_copy; /* store_copy made it */
};
struct store_identity store_identity(const struct store *st);

/* True when what is open is not the database that stood here last, or not its last state: a
 * copy that store_copy made; one whose mark beside it is missing, damaged or of another store;
 * or newer, so that batches are missing. A database that never had a mark (schema 1, a first
 * start) is none. It stays true, at the next start as well, until store_renew_identity: no mark
 * is written meanwhile. why (NULL is fine): a sentence for the log. */
bool store_is_copy(const struct store *st, const char **why);

/* Write b (NULL: nothing) and a new identity in one transaction: another store id, epoch + 1,
 * no copy any more; then a mark of it. Blocking, for the start. */
int store_renew_identity(struct store *st, const struct batch *b, struct gpuq_err *err);

/* 0 while DIR leads to the files that are open; GPUQ_EIO once it was removed, replaced,
 * unmounted or mounted over. Each commit checks it before its outcome is delivered. */
int store_is_there(const struct store *st, struct gpuq_err *err);

/* ---- end ---- */

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

/* Space for new work: 0, or GPUQ_ESTORAGE and the required free space. Ends and cancellations of
 * old work use the reserve of 8 MiB (ballast.h) and may continue while this fails; it recovers
 * automatically. */
int store_has_space(const struct store *st, struct gpuq_err *err);

/* Sizes of the database. */
struct store_stats {
	uint64_t bytes; /* of the file that are in use */
	uint64_t map_bytes; /* that it may grow to */
	uint64_t free_bytes,
		disk_bytes; /* of its filesystem: free for other users than root; in total */
	uint64_t n_records[N_TABLES];
};
int store_stats(struct store *st, struct store_stats *out, struct gpuq_err *err);

/* A file of no name beside the database, for a copy of it; its descriptor, or GPUQ_EIO,
 * GPUQ_ESTORAGE (there is no room for one). */
int store_scratch(struct store *st, struct gpuq_err *err);

/* A consistent copy of what is stored, without gaps, into fd (a file, open for reading and
 * writing); it is flagged as a copy inside. From any thread; takes long. As data.mdb of an
 * empty state directory it is what was stored. */
int store_copy(struct store *st, int fd, struct gpuq_err *err);

#endif
