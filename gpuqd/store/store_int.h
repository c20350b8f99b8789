/* store_int.h - what the files of store/ share
 *
 * Owns     nothing.
 * Used by  the files of store/ alone.
 */
#ifndef GPUQD_STORE_STORE_INT_H
#define GPUQD_STORE_STORE_INT_H

#include <pthread.h>
#include <stdint.h>

#include <lmdb.h>

#include "gpuqd/store/ballast.h"
#include "gpuqd/store/batchlog.h"
#include "gpuqd/store/check.h"
#include "gpuqd/store/guard.h"
#include "gpuqd/store/meta.h"
#include "gpuqd/store/spec_parts.h"
#include "gpuqd/store/seal.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"

#define DATA_FILE "data.mdb"
#define NEW_FILE DATA_FILE ".new"
#define MAP_BYTES_DEFAULT (INT64_C(64) << 30)
#define PATH_BYTES 4200 /* of a directory that make_dirs allows, and a name in it */

struct pending { /* one batch on its way through the writer */
	struct store *st;
	struct batch batch;
	uint64_t seq;
	int rc;
	struct gpuq_err err;
};

struct store {
	char *dir; /* NULL: one file, opened to read */
	int lock_fd;
	struct store_opts opts;
	unsigned schema;
	MDB_env *env;
	int env_fd; /* of LMDB; -1 = not open */
	MDB_dbi dbi[N_TABLES];
	uint32_t seeds[N_TABLES];
	struct store_meta state; /* as committed; under mu, changed by one thread at a time */
	struct check *check; /* NULL: a new file, nothing to check */
	int mark_fd; /* -1 = no mark is written */
	bool mark_failed; /* and that was logged */
	const char *copy; /* why it is a copy; NULL = it is none */
	bool map_full; /* why the last batch found no space; of the thread that writes */
	struct ballast *ballast; /* NULL: opened to read, or a file that is being made */
	struct batchlog *log; /* NULL = batches are not kept for a backup */
	struct spec_parts *parts; /* of the thread that writes; NULL before the first spec */
	pthread_mutex_t mu;
	struct worker *writer; /* NULL before store_attach() */
	store_done_fn fn;
	void *arg;
};

/* store.c */
struct store *store_alloc(const char *dir, const struct store_opts *o);
int store_fail(struct gpuq_err *err, int rc, const char *what);
void store_fsync_dir(const char *dir);
void store_close_env(struct store *st);
/* Open the file as a database of LMDB, and the handles of its tables. make: those that are
 * missing are made and st->state is stored, in one transaction. */
int store_open_env(struct store *st, const char *path, unsigned flags, bool make,
		   struct gpuq_err *err);
/* Damage that a read met: tell opts.damaged, which does not return; else err and its code. */
int store_damaged(struct store *st, const struct gpuq_err *err);

#endif
