#include "gpuqd/store/store_int.h"
#include "gpuqd/store/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/store/mark.h"
#include "gpuqd/store/place.h"
#include "gpuqd/store/write.h"

int store_fail(struct gpuq_err *err, int rc, const char *what)
{
	int code = GPUQ_EIO;

	if (rc == MDB_MAP_FULL || rc == ENOSPC || rc == EDQUOT)
		code = GPUQ_ESTORAGE;
	else if (rc == MDB_NOTFOUND)
		code = GPUQ_ENOENT;
	else if (rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND || rc == MDB_INVALID ||
		 rc == MDB_CURSOR_FULL)
		code = GPUQ_ECORRUPT;
	else if (rc == EACCES || rc == EPERM || rc == EROFS)
		code = GPUQ_EPERM;
	else if (rc == MDB_VERSION_MISMATCH)
		code = GPUQ_EVERSION;
	return gpuq_fail(err, code, "store: %s: %s", what, mdb_strerror(rc));
}

int store_damaged(struct store *st, const struct gpuq_err *err)
{
	if (err && st->opts.damaged && err->code == GPUQ_ECORRUPT)
		st->opts.damaged(err);
	return err ? err->code : GPUQ_ECORRUPT;
}

struct store *store_alloc(const char *dir, const struct store_opts *o)
{
	struct store *st = calloc(1, sizeof(*st));

	if (st && dir)
		st->dir = strdup(dir);
	if (!st || (dir && !st->dir)) {
		free(st);
		return NULL;
	}
	st->opts = *o;
	st->lock_fd = st->env_fd = st->mark_fd = -1;
	st->schema = STORE_SCHEMA;
	pthread_mutex_init(&st->mu, NULL);
	for (int t = 0; t < N_TABLES; t++)
		st->seeds[t] = seal_seed(table_names[t]);
	return st;
}

void store_fsync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

/* ---- the database ---- */

static void on_assert(MDB_env *env, const char *what)
{
	(void)env;
	guard_exit(what);
}

static int open_tables(struct store *st, bool make, struct gpuq_err *err)
{
	struct store_meta next = st->state;
	MDB_txn *txn = NULL;
	int rc = mdb_txn_begin(st->env, NULL, make ? 0 : MDB_RDONLY, &txn);

	if (rc != 0)
		return store_fail(err, rc, "open");
	for (int t = 0; rc == 0 && t < N_TABLES; t++) {
		rc = mdb_dbi_open(txn, table_names[t], make ? MDB_CREATE : 0, &st->dbi[t]);
		next.has[t] |= make;
		if (rc == MDB_NOTFOUND && !make) {
			st->dbi[t] = 0; /* opened to read: it has none */
			rc = 0;
		}
	}
	if (rc == 0 && make) {
		rc = store_put_state(st, txn, &next);
		if (rc == 0)
			rc = mdb_txn_commit(txn);
		else
			mdb_txn_abort(txn);
		if (rc == 0)
			st->state = next;
	} else if (rc == 0) {
		rc = mdb_txn_commit(txn); /* the handles stay */
	} else {
		mdb_txn_abort(txn);
	}
	return rc == 0 ? 0 : store_fail(err, rc, "open tables");
}

int store_open_env(struct store *st, const char *path, unsigned flags, bool make,
		   struct gpuq_err *err)
{
	int rc = mdb_env_create(&st->env);

	if (rc == 0)
		rc = mdb_env_set_mapsize(st->env, (size_t)(st->opts.map_bytes ? st->opts.map_bytes
									      : MAP_BYTES_DEFAULT));
	if (rc == 0)
		rc = mdb_env_set_maxdbs(st->env, N_TABLES);
	if (rc == 0)
		rc = mdb_env_set_assert(st->env, on_assert);
	if (rc == 0)
		rc = mdb_env_open(st->env, path, flags | MDB_NOTLS, 0600);
	if (rc == 0)
		rc = mdb_env_get_fd(st->env, &st->env_fd);
	if (rc != 0) {
		mdb_env_close(st->env);
		st->env = NULL;
		return store_fail(err, rc, "open");
	}
	fcntl(st->env_fd, F_SETFD, FD_CLOEXEC); /* LMDB 0.9 leaves this one open to children */
	guard_map(st->env_fd);
	return open_tables(st, make, err);
}

void store_close_env(struct store *st)
{
	if (!st->env)
		return;
	guard_unmap(st->env_fd);
	mdb_env_close(st->env);
	st->env = NULL;
	st->env_fd = -1;
}

static bool lacks_a_table(const struct store_meta *s)
{
	for (int t = 0; t < N_TABLES; t++)
		if (!s->has[t])
			return true;
	return false;
}

/* ---- opening ---- */

static int open_old(struct store *st, const char *path, struct gpuq_err *err)
{
	int rc = check_open(path, &st->check, err);

	if (rc == 0 && check_schema(st->check) < STORE_SCHEMA) {
		rc = store_upgrade(st->dir, st->check, &st->opts, err);
		check_close(st->check);
		st->check = NULL;
		if (rc == 0)
			rc = check_open(path, &st->check, err);
	}
	if (rc == 0)
		st->state = *check_state(st->check);
	return rc;
}

static int open_data(struct store *st, bool *fresh, struct gpuq_err *err)
{
	const unsigned flags = st->opts.no_sync ? MDB_NOSYNC : 0;
	char path[PATH_BYTES];
	bool make;
	int rc;

	snprintf(path, sizeof(path), "%s/" NEW_FILE, st->dir);
	unlink(path); /* of an upgrade that did not come to its end */
	snprintf(path, sizeof(path), "%s/" DATA_FILE, st->dir);
	rc = open_old(st, path, err);
	*fresh = rc == GPUQ_ENOENT;
	if (*fresh) {
		rc = st->opts.new_state ? 0 : place_is_empty(st->dir, err);
		if (rc == 0)
			rc = meta_init(&st->state, err);
	}
	if (rc < 0)
		return rc;
	make = *fresh || lacks_a_table(&st->state);
	/* The new database must not overwrite pages that are in use. */
	if (make && !*fresh)
		rc = check_wait(st->check, N_TABLES, err);
	if (rc == 0)
		rc = store_open_env(st, st->dir, flags, make, err);
	if (rc == 0 && *fresh)
		store_fsync_dir(st->dir); /* LMDB does not do it for a new file */
	return rc;
}

/* ---- identity ---- */

static const char *why_copy(const struct store *st)
{
	const struct store_identity *is = &st->state.id;
	struct store_identity mark;
	int rc;

	if (is->flagged_copy)
		return "the database is a copy made by gpuq backup";
	if (!st->state.marked)
		return NULL;
	rc = mark_read(st->dir, &mark);
	if (rc == GPUQ_ENOENT)
		return "its mark is missing";
	if (rc < 0)
		return "its mark is damaged";
	if (strcmp(mark.store_id, is->store_id) != 0)
		return "its mark is that of another database";
	if (mark.epoch > is->epoch || (mark.epoch == is->epoch && mark.seq > is->seq))
		return "its mark is newer: batches are missing";
	return NULL;
}

/* META says that there is a mark only from the batch after the first mark on: so a start that
 * ends in between is no copy, and makes it again. */
static int make_mark(struct store *st, struct gpuq_err *err)
{
	if (st->mark_fd >= 0)
		close(st->mark_fd);
	st->mark_fd = mark_make(st->dir, &st->state.id, err);
	if (st->mark_fd < 0)
		return st->mark_fd;
	st->state.marked = true;
	return 0;
}

static int begin_mark(struct store *st, struct gpuq_err *err)
{
	st->copy = why_copy(st);
	if (st->copy)
		return 0;
	if (!st->state.marked)
		return make_mark(st, err);
	st->mark_fd = mark_open(st->dir, err);
	return st->mark_fd < 0 ? st->mark_fd : 0;
}

struct store_identity store_identity(const struct store *st)
{
	struct store *x = (struct store *)st;
	struct store_identity id;

	pthread_mutex_lock(&x->mu);
	id = x->state.id;
	pthread_mutex_unlock(&x->mu);
	return id;
}

bool store_is_copy(const struct store *st, const char **why)
{
	if (why)
		*why = st->copy;
	return st->copy != NULL;
}

int store_renew_identity(struct store *st, const struct batch *b, struct gpuq_err *err)
{
	struct store_meta next, fresh;
	int rc = meta_init(&fresh, err);

	if (rc < 0)
		return rc;
	next = st->state;
	fresh.id.epoch = next.id.epoch + 1;
	fresh.id.seq = next.id.seq;
	next.id = fresh.id;
	next.marked = false;
	rc = store_commit(st, b, N_TABLES, &next, err);
	if (rc == 0)
		rc = make_mark(st, err);
	if (rc == 0)
		st->copy = NULL;
	return rc;
}

int store_log_begin(struct store *st, int64_t max_bytes, struct gpuq_err *err)
{
	return batchlog_open(st->dir, &st->state.id, max_bytes, &st->log, err);
}

struct batchlog *store_log(const struct store *st)
{
	return st->log;
}

unsigned store_schema(const struct store *st)
{
	return st->schema;
}

/* ---- open and close ---- */

int store_open(const char *dir, const struct store_opts *o, struct store **out, bool *fresh,
	       struct gpuq_err *err)
{
	struct store *st = store_alloc(dir, o);
	int rc;

	if (!st)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	rc = place_make(dir, err);
	if (rc == 0 && !o->unsafe_fs)
		rc = place_check_fs(dir, err);
	if (rc == 0)
		rc = st->lock_fd = place_lock(dir, err);
	if (rc >= 0)
		rc = open_data(st, fresh, err);
	if (rc == 0) {
		mdb_reader_check(st->env, NULL);
		rc = begin_mark(st, err);
	}
	if (rc == 0 && st->check)
		rc = check_start(st->check, o->damaged, err);
	if (rc == 0 && !(st->ballast = ballast_open(dir)))
		rc = gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	if (rc < 0) {
		store_close(st);
		return rc;
	}
	*out = st;
	return 0;
}

int store_open_to_read(const char *path, struct store **out, struct gpuq_err *err)
{
	static const struct store_opts opts = { .map_bytes = 0 };
	struct store *st = store_alloc(NULL, &opts);
	char file[PATH_BYTES];
	struct stat s;
	int rc = 0;

	if (!st)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	snprintf(file, sizeof(file), "%.4000s", path);
	if (stat(path, &s) != 0)
		rc = gpuq_fail(err, GPUQ_ENOENT, "%s: %s", path, strerror(errno));
	else if (S_ISDIR(s.st_mode)) {
		snprintf(file, sizeof(file), "%.4000s/" DATA_FILE, path);
		st->lock_fd = place_lock_shared(path, err);
		rc = st->lock_fd == -1 ? 0 : st->lock_fd;
	}
	if (rc >= 0)
		rc = check_open(file, &st->check, err);
	if (rc == GPUQ_ENOENT)
		rc = gpuq_fail(err, GPUQ_ECORRUPT, "%s: no database is there, or an empty one",
			       file);
	if (rc == 0) {
		st->schema = check_schema(st->check);
		if (st->schema == STORE_SCHEMA)
			st->state = *check_state(st->check);
	}
	if (rc < 0) {
		store_close(st);
		return rc;
	}
	*out = st;
	return 0;
}

int store_audit(struct store *st, uint64_t *n_records, struct gpuq_err *err)
{
	char path[64];
	int rc = check_wait(st->check, N_TABLES, err);

	if (rc < 0)
		return rc;
	if (n_records)
		*n_records += check_records(st->check);
	/* Only what was found whole is mapped. */
	if (st->env || st->schema < STORE_SCHEMA)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", check_fd(st->check));
	return store_open_env(st, path, MDB_RDONLY | MDB_NOLOCK | MDB_NOSUBDIR, false, err);
}

void store_close(struct store *st)
{
	if (!st)
		return;
	store_close_writer(st);
	store_free_writer(st);
	check_close(st->check);
	store_close_env(st);
	batchlog_close(st->log);
	spec_parts_free(st->parts);
	ballast_close(st->ballast);
	if (st->mark_fd >= 0)
		close(st->mark_fd);
	if (st->lock_fd >= 0)
		close(st->lock_fd);
	pthread_mutex_destroy(&st->mu);
	free(st->dir);
	free(st);
}
