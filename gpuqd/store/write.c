#include "gpuqd/store/write.h"
#include "gpuqd/store/store_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/store/mark.h"
#include "gpuqd/store/place.h"

static int map_full(const struct store *st, struct gpuq_err *err)
{
	MDB_envinfo info = { 0 };

	mdb_env_info(st->env, &info);
	return gpuq_fail(
		err, GPUQ_ESTORAGE,
		"the database has reached map_size, %zu MiB: restart gpuqd with a larger one",
		info.me_mapsize >> 20);
}

/* Return how many bytes of the file are in free pages, in what LMDB keeps of them; no more than
 * enough are counted. */
static int64_t spare_bytes(const struct store *st, int64_t enough)
{
	const MDB_dbi free_pages = 0;
	MDB_txn *txn = NULL;
	MDB_cursor *c = NULL;
	MDB_stat stat = { 0 };
	MDB_val k, v;
	int64_t bytes = 0;
	size_t n;

	guard_here = (struct guard){ "of free pages", true };
	if (mdb_env_stat(st->env, &stat) == 0 &&
	    mdb_txn_begin(st->env, NULL, MDB_RDONLY, &txn) == 0 &&
	    mdb_cursor_open(txn, free_pages, &c) == 0)
		while (bytes < enough && mdb_cursor_get(c, &k, &v, MDB_NEXT) == 0 &&
		       v.mv_size >= sizeof(n)) {
			memcpy(&n, v.mv_data, sizeof(n)); /* the list begins with its length */
			bytes += (int64_t)(n * stat.ms_psize);
		}
	if (c)
		mdb_cursor_close(c);
	if (txn)
		mdb_txn_abort(txn);
	guard_here = (struct guard){ NULL, false };
	return bytes;
}

int store_has_space(const struct store *st, struct gpuq_err *err)
{
	MDB_envinfo info = { 0 };
	MDB_stat stat = { 0 };

	if (!ballast_ready(st->ballast, 0) &&
	    !ballast_ready(st->ballast, spare_bytes(st, BALLAST_SPARE_BYTES)))
		return gpuq_fail(
			err, GPUQ_ESTORAGE,
			"no space left in %s: %d MiB must be free before jobs are accepted",
			st->dir, BALLAST_BYTES >> 20);
	if (mdb_env_info(st->env, &info) != 0 || mdb_env_stat(st->env, &stat) != 0)
		return 0;
	/* Free pages inside the file are used before it grows; they are not counted here. */
	if (st->ballast &&
	    (info.me_last_pgno + 1) * stat.ms_psize + BALLAST_BYTES > info.me_mapsize)
		return map_full(st, err);
	return 0;
}

/* LMDB turns a short write into EIO, so a full disk looks like a broken one: the
 * filesystem itself tells which it was. A failed data write leaves the last commit
 * intact; a failed meta write does not tell, and LMDB then answers MDB_PANIC. */
static int commit_fail(const struct store *st, struct gpuq_err *err, int rc)
{
	const char *dir = st->dir ? st->dir : "the directory of the copy";
	struct statvfs v;

	if (rc == MDB_PANIC)
		return gpuq_fail(err, GPUQ_EUNKNOWN, "store: commit: %s", mdb_strerror(rc));
	if (rc == EIO && statvfs(dir, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < (1u << 20)) {
		unsigned flags = 0;

		mdb_env_get_flags(st->env, &flags);
		if (!(flags & 0x80000000u)) /* MDB_FATAL_ERROR: the meta page failed */
			return gpuq_fail(err, GPUQ_ESTORAGE, "no space left in %s", dir);
	}
	if (rc == MDB_MAP_FULL)
		return map_full(st, err);
	if (rc == ENOSPC || rc == EDQUOT)
		return gpuq_fail(err, GPUQ_ESTORAGE, "no space left in %s", dir);
	return gpuq_fail(err, GPUQ_EIO, "store: commit: %s", mdb_strerror(rc));
}

/* ---- one transaction ---- */

/* Cursors find their place again quickly, and keys of a table often come in a row. */
struct writing {
	struct store *st;
	MDB_txn *txn;
	MDB_cursor *cursors[N_TABLES]; /* freed by the end of txn */
	struct store_meta *next;
	int rc; /* of LMDB, behind an error of one of the functions for parts */
	int code; /* 0, or what they found; err says it */
	struct gpuq_err *err;
};

static int cursor_of(struct writing *w, enum table t, MDB_cursor **out)
{
	int rc = w->cursors[t] ? 0 : mdb_cursor_open(w->txn, w->st->dbi[t], &w->cursors[t]);

	*out = w->cursors[t];
	return rc;
}

static int put(struct writing *w, const struct change *c)
{
	struct seal_sum *sum = &w->next->sums[c->table];
	MDB_val k = { c->key_len, (void *)c->key };
	MDB_val v = { SEAL_BYTES + c->val_len, NULL };
	MDB_cursor *cur;
	int rc = cursor_of(w, c->table, &cur);

	if (rc == 0)
		rc = mdb_cursor_put(cur, &k, &v, MDB_RESERVE | MDB_NOOVERWRITE);
	if (rc == MDB_KEYEXIST) {
		seal_remove(sum, seal_crc(v.mv_data, v.mv_size));
		v = (MDB_val){ SEAL_BYTES + c->val_len, NULL };
		rc = mdb_cursor_put(cur, &k, &v, MDB_RESERVE);
	}
	if (rc != 0)
		return rc;
	seal_add(sum, seal_write(v.mv_data, w->st->seeds[c->table], c->key, c->key_len, c->val,
				 c->val_len));
	memcpy((unsigned char *)v.mv_data + SEAL_BYTES, c->val, c->val_len);
	return 0;
}

static int take_away(struct writing *w, const struct change *c)
{
	MDB_val k = { c->key_len, (void *)c->key }, v;
	MDB_cursor *cur;
	int rc = cursor_of(w, c->table, &cur);

	if (rc == 0)
		rc = mdb_cursor_get(cur, &k, &v, MDB_SET_KEY);
	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc != 0)
		return rc;
	seal_remove(&w->next->sums[c->table], seal_crc(v.mv_data, v.mv_size));
	return mdb_cursor_del(cur, 0);
}

/* ---- specs ---- */

static int part_fail(struct writing *w, int rc, struct gpuq_err *err)
{
	w->rc = rc;
	return store_fail(err, rc, "parts");
}

static int get_part(void *arg, enum table t, const void *key, size_t key_len,
		    const unsigned char **val, size_t *val_len, struct gpuq_err *err)
{
	struct writing *w = arg;
	MDB_val k = { key_len, (void *)key }, v;
	MDB_cursor *cur;
	uint32_t crc;
	int rc = cursor_of(w, t, &cur);

	if (rc == 0)
		rc = mdb_cursor_get(cur, &k, &v, MDB_SET_KEY);
	if (rc == MDB_NOTFOUND)
		return GPUQ_ENOENT;
	if (rc != 0)
		return part_fail(w, rc, err);
	if (!seal_holds(w->st->seeds[t], key, key_len, v.mv_data, v.mv_size, &crc))
		return gpuq_fail(err, GPUQ_ECORRUPT,
				 "store: a record of table %s is damaged: keep the files and "
				 "restore a backup",
				 table_names[t]);
	*val = (unsigned char *)v.mv_data + SEAL_BYTES;
	*val_len = v.mv_size - SEAL_BYTES;
	return 0;
}

static int put_part(void *arg, enum table t, const void *key, size_t key_len, const void *val,
		    size_t val_len, struct gpuq_err *err)
{
	const struct change c = { t, (uint16_t)key_len, key, val, val_len };
	struct writing *w = arg;
	int rc = val ? put(w, &c) : take_away(w, &c);

	return rc == 0 ? 0 : part_fail(w, rc, err);
}

/* Its parts, and their counts, with it. Returns as the functions above do. */
static int put_spec(struct writing *w, const struct change *c)
{
	const struct spec_parts_io io = { get_part, put_part, w };
	struct store *st = w->st;

	if (!st->parts && !(st->parts = spec_parts_new()))
		return ENOMEM;
	w->rc = 0;
	w->code = spec_parts_put(st->parts, &io, c->key, c->key_len, c->val, c->val_len, w->err);
	if (w->rc != 0)
		w->code = 0; /* an error of LMDB: a full disk is one that goes by */
	return w->code ? EIO : w->rc;
}

static int change(struct writing *w, const struct change *c)
{
	guard_here.table = table_names[c->table];
	if (c->table == TABLE_SPEC)
		return put_spec(w, c);
	return c->val ? put(w, c) : take_away(w, c);
}

int store_put_state(struct store *st, MDB_txn *txn, struct store_meta *next)
{
	unsigned char schema[SCHEMA_BYTES];
	MDB_val k = { strlen(SCHEMA_KEY), (void *)SCHEMA_KEY }, v = { sizeof(schema), schema };
	struct gpuq_buf b = GPUQ_BUF_INIT;
	int rc = 0;

	if (next->txn == 0) {
		schema_write(schema, STORE_SCHEMA);
		rc = mdb_put(txn, st->dbi[TABLE_META], &k, &v, 0);
	}
	next->txn = mdb_txn_id(txn);
	meta_write(next, &b);
	k = (MDB_val){ strlen(META_KEY), (void *)META_KEY };
	v = (MDB_val){ SEAL_BYTES + b.len, NULL };
	if (rc == 0 && b.failed)
		rc = ENOMEM;
	if (rc == 0)
		rc = mdb_put(txn, st->dbi[TABLE_META], &k, &v, MDB_RESERVE);
	if (rc == 0) {
		seal_write(v.mv_data, st->seeds[TABLE_META], k.mv_data, k.mv_size, b.data, b.len);
		memcpy((unsigned char *)v.mv_data + SEAL_BYTES, b.data, b.len);
	}
	gpuq_buf_done(&b);
	return rc;
}

static int fill(struct writing *w, const struct batch *b, enum table clear)
{
	int rc = 0;

	if (clear != N_TABLES) {
		guard_here.table = table_names[clear];
		rc = mdb_drop(w->txn, w->st->dbi[clear], 0);
		w->next->sums[clear] = (struct seal_sum){ 0 };
		if (clear == TABLE_META)
			w->next->txn = 0; /* the schema is written again, too */
	}
	for (size_t i = 0; b && rc == 0 && i < b->n; i++)
		rc = change(w, &b->items[i]);
	guard_here.table = table_names[TABLE_META];
	return rc == 0 ? store_put_state(w->st, w->txn, w->next) : rc;
}

int store_commit(struct store *st, const struct batch *b, enum table clear, struct store_meta *next,
		 struct gpuq_err *err)
{
	struct writing w = { .st = st, .next = next, .err = err };
	int rc;

	if (b && b->failed)
		return gpuq_fail(err, GPUQ_EUNKNOWN,
				 "store: out of memory while collecting changes");
	rc = check_wait(st->check, N_TABLES, err);
	if (rc < 0)
		return rc;
	next->id.seq++;
	guard_here.inside = true;
	rc = mdb_txn_begin(st->env, NULL, 0, &w.txn);
	if (rc == 0) {
		rc = fill(&w, b, clear);
		if (rc == 0) {
			if (st->log)
				batchlog_append(st->log, next, clear, b);
			(void)FAILPOINT("store.commit");
			rc = mdb_txn_commit(w.txn); /* frees txn also when it fails */
			(void)FAILPOINT("store.committed");
			if (rc != 0 && st->log)
				batchlog_undo(st->log);
		} else {
			mdb_txn_abort(w.txn);
		}
	}
	guard_here.inside = false;
	st->map_full = rc == MDB_MAP_FULL;
	if (rc != 0)
		return w.code ? w.code : commit_fail(st, err, rc);
	pthread_mutex_lock(&st->mu);
	st->state = *next;
	pthread_mutex_unlock(&st->mu);
	return 0;
}

static void keep_mark(struct store *st)
{
	if (st->mark_fd < 0 || mark_write(st->mark_fd, &st->state.id)) {
		st->mark_failed = false;
		return;
	}
	if (!st->mark_failed)
		log_warn("store.mark", "error=%s: the mark beside the database stays behind",
			 strerror(errno));
	st->mark_failed = true;
}

static int write_and_mark(struct store *st, const struct batch *b, enum table clear,
			  struct gpuq_err *err)
{
	struct store_meta next = st->state;
	int rc = store_commit(st, b, clear, &next, err);

	if (rc == GPUQ_ESTORAGE && !st->map_full && ballast_release(st->ballast)) {
		next = st->state;
		rc = store_commit(st, b, clear, &next, err);
	}
	if (rc < 0)
		return rc;
	keep_mark(st);
	return store_is_there(st, err);
}

int store_write_now(struct store *st, const struct batch *b, struct gpuq_err *err)
{
	return write_and_mark(st, b, N_TABLES, err);
}

int store_clear(struct store *st, enum table t, struct gpuq_err *err)
{
	return write_and_mark(st, NULL, t, err);
}

int store_is_there(const struct store *st, struct gpuq_err *err)
{
	int rc = place_is_file(st->dir, DATA_FILE, st->env_fd, err);

	return rc == 0 ? place_is_file(st->dir, LOCK_FILE, st->lock_fd, err) : rc;
}

/* ---- the writer ---- */

static void write_pending(void *arg)
{
	struct pending *p = arg;

	p->rc = store_write_now(p->st, &p->batch, &p->err);
	change_batch_done(&p->batch);
}

static void on_written(void *arg)
{
	struct pending *p = arg;

	p->st->fn(p->st->arg, p->seq, p->rc, &p->err);
	free(p);
}

static void drop_pending(void *arg)
{
	struct pending *p = arg;

	change_batch_done(&p->batch);
	free(p);
}

int store_attach(struct store *st, struct loop *l, store_done_fn fn, void *arg,
		 struct gpuq_err *err)
{
	int rc;

	st->fn = fn;
	st->arg = arg;
	rc = worker_new(l, &st->writer, err);
	if (rc == 0)
		rc = worker_start(st->writer, err);
	return rc < 0 ? gpuq_err_prefix(err, "store: the writer") : 0;
}

void store_write(struct store *st, struct batch *b, uint64_t seq)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		abort(); /* a lost batch must not look like a stored one */
	p->st = st;
	p->batch = *b;
	p->seq = seq;
	change_batch_init(b);
	if (worker_run(st->writer, write_pending, on_written, p, NULL) < 0)
		abort();
}

void store_close_writer(struct store *st)
{
	if (st)
		worker_finish(st->writer);
}

void store_free_writer(struct store *st)
{
	worker_free(st->writer, drop_pending);
	st->writer = NULL;
}
