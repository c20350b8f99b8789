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
 * position), data.mdb.schema-1 (what an upgrade kept), batches (batchlog.h).
 */
#ifndef GPUQD_STORE_STORE_H
#define GPUQD_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/record/change.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

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
 * end the process: a reply made without the record would be wrong. */
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

/* Keep batches from now on for a backup (batchlog.h), at most max_bytes of them; before the writer is
 * attached. The log is the store's. */
struct batchlog;
int store_log_begin(struct store *st, int64_t max_bytes, struct gpuq_err *err);
struct batchlog *store_log(const struct store *st); /* NULL = they are not kept */

/* Close; NULL is fine. */
void store_close(struct store *st);

#endif
