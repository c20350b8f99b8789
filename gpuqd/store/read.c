#include "gpuqd/store/read.h"
#include "gpuqd/store/store_int.h"

#include <stdio.h>
#include <string.h>

static int check_record(struct store *st, enum table t, const MDB_val *k, const MDB_val *v,
			struct gpuq_err *err)
{
	const unsigned char *kp = k->mv_data;
	char hex[49];
	uint32_t crc;
	size_t n;

	if (seal_holds(st->seeds[t], k->mv_data, k->mv_size, v->mv_data, v->mv_size, &crc))
		return 0;
	for (n = 0; n < k->mv_size && n < 24; n++)
		snprintf(hex + 2 * n, 3, "%02x", kp[n]);
	hex[2 * n] = '\0';
	return gpuq_fail(err, GPUQ_ECORRUPT,
			 "store: record %s of table %s is damaged: keep the files and restore a "
			 "backup",
			 hex, table_names[t]);
}

/* ---- specs ---- */

struct reading {
	struct store *st;
	MDB_txn *txn;
};

static int get_part(void *arg, enum table t, const void *key, size_t key_len,
		    const unsigned char **val, size_t *val_len, struct gpuq_err *err)
{
	const struct reading *r = arg;
	MDB_val k = { key_len, (void *)key }, v;
	int rc;

	if (!r->st->dbi[t])
		return GPUQ_ENOENT;
	guard_here.inside = true;
	rc = mdb_get(r->txn, r->st->dbi[t], &k, &v);
	guard_here.inside = false;
	if (rc == MDB_NOTFOUND)
		return GPUQ_ENOENT;
	if (rc != 0)
		return store_fail(err, rc, table_names[t]);
	*val = (unsigned char *)v.mv_data + SEAL_BYTES;
	*val_len = v.mv_size - SEAL_BYTES;
	return check_record(r->st, t, &k, &v, err);
}

/* Append what a caller stored as this value. */
static int value(struct store *st, MDB_txn *txn, enum table t, const MDB_val *v,
		 struct gpuq_buf *out, struct gpuq_err *err)
{
	const unsigned char *bytes = (unsigned char *)v->mv_data + SEAL_BYTES;
	struct reading r = { st, txn };
	const struct spec_parts_io io = { get_part, NULL, &r };

	if (t == TABLE_SPEC)
		return spec_parts_get(&io, bytes, v->mv_size - SEAL_BYTES, out, err);
	return gpuq_buf_add(out, bytes, v->mv_size - SEAL_BYTES);
}

bool store_is_checked(struct store *st, enum table t)
{
	return check_is_done(st->check, t);
}

/* ---- a reading transaction of one table ---- */

/* Nothing is read of a table before it was checked. */
static int begin(struct store *st, enum table t, MDB_txn **txn, struct gpuq_err *err)
{
	int rc = check_wait(st->check, t, err);

	if (rc == 0 && t == TABLE_SPEC)
		rc = check_wait(st->check, TABLE_TEXT, err);
	if (rc < 0)
		return rc;
	guard_here = (struct guard){ table_names[t], true };
	rc = mdb_txn_begin(st->env, NULL, MDB_RDONLY, txn);
	guard_here.inside = false;
	return rc == 0 ? 0 : store_fail(err, rc, table_names[t]);
}

static int end(struct store *st, MDB_txn *txn, int rc, const struct gpuq_err *err)
{
	mdb_txn_abort(txn);
	guard_here = (struct guard){ NULL, false };
	return rc == GPUQ_ECORRUPT ? store_damaged(st, err) : rc;
}

/* An answer of LMDB while it read a table. */
static int read_fail(enum table t, int rc, struct gpuq_err *err)
{
	if (rc == MDB_NOTFOUND)
		return gpuq_fail(err, GPUQ_ENOENT, "store: %s: no such record", table_names[t]);
	store_fail(err, rc, table_names[t]);
	return err->code == GPUQ_ECORRUPT
		       ? gpuq_fail(err, GPUQ_ECORRUPT,
				   "store: table %s is damaged: %s: keep the files and restore a "
				   "backup",
				   table_names[t], mdb_strerror(rc))
		       : err->code;
}

int store_get(struct store *st, enum table t, const void *key, size_t key_len, struct gpuq_buf *val,
	      struct gpuq_err *err)
{
	MDB_val k = { key_len, (void *)key }, v;
	struct gpuq_err here = GPUQ_ERR_INIT;
	MDB_txn *txn = NULL;
	int rc;

	if (!err)
		err = &here;
	rc = begin(st, t, &txn, err);
	if (rc < 0)
		return rc;
	guard_here.inside = true;
	rc = !st->dbi[t] ? MDB_NOTFOUND : mdb_get(txn, st->dbi[t], &k, &v);
	guard_here.inside = false;
	if (rc != 0) {
		rc = read_fail(t, rc, err);
	} else {
		rc = check_record(st, t, &k, &v, err);
		if (rc == 0)
			rc = value(st, txn, t, &v, val, err);
	}
	return end(st, txn, rc, err);
}

/* ---- walks ---- */

static int tell_spec(struct store *st, MDB_txn *txn, const MDB_val *k, const MDB_val *v,
		     store_each_fn fn, void *arg, struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	int rc = value(st, txn, TABLE_SPEC, v, &b, err);

	if (rc == 0)
		rc = fn(arg, k->mv_data, k->mv_size, (unsigned char *)b.data, b.len);
	gpuq_buf_done(&b);
	return rc;
}

struct range {
	const void *prefix, *from;
	size_t prefix_len, from_len, max;
	bool backwards, raw; /* raw: specs as they are stored */
};

static int next(MDB_cursor *cur, MDB_val *k, MDB_val *v, MDB_cursor_op op)
{
	int rc;

	guard_here.inside = true;
	rc = mdb_cursor_get(cur, k, v, op);
	guard_here.inside = false;
	return rc;
}

/* Find the record to begin with. SET_RANGE finds the first key at or above: going back starts
 * one before. */
static int seek(MDB_cursor *cur, const struct range *r, MDB_val *k, MDB_val *v)
{
	const MDB_cursor_op op = k->mv_size ? MDB_SET_RANGE : r->backwards ? MDB_LAST : MDB_FIRST;
	int rc = next(cur, k, v, op);

	if (!r->backwards || op != MDB_SET_RANGE)
		return rc;
	if (rc == MDB_NOTFOUND)
		return next(cur, k, v, MDB_LAST);
	if (rc == 0 && (k->mv_size != r->from_len || memcmp(k->mv_data, r->from, r->from_len) != 0))
		return next(cur, k, v, MDB_PREV);
	return rc;
}

static bool is_in(const struct range *r, const MDB_val *k)
{
	return r->prefix_len == 0 ||
	       (k->mv_size >= r->prefix_len && memcmp(k->mv_data, r->prefix, r->prefix_len) == 0);
}

static int walk(struct store *st, MDB_txn *txn, enum table t, const struct range *r,
		store_each_fn fn, void *arg, struct gpuq_err *err)
{
	MDB_val k = { r->from ? r->from_len : r->prefix_len,
		      (void *)(r->from ? r->from : r->prefix) },
		v;
	MDB_cursor *cur = NULL;
	MDB_stat stat = { 0 };
	size_t n = 0, seen = 0;
	int rc, answer = 0;

	if (!st->dbi[t])
		return 0; /* opened to read, of an earlier gpuqd: it has none */
	guard_here.table = table_names[t];
	rc = mdb_cursor_open(txn, st->dbi[t], &cur);
	if (rc == 0)
		rc = mdb_stat(txn, st->dbi[t], &stat);
	if (rc == 0)
		rc = seek(cur, r, &k, &v);
	while (rc == 0 && answer == 0 && (r->max == 0 || n < r->max) && is_in(r, &k)) {
		if (seen++ == stat.ms_entries)
			answer = gpuq_fail(err, GPUQ_ECORRUPT,
					   "store: table %s is damaged: it contains a cycle: "
					   "keep the files and restore a backup",
					   table_names[t]);
		else if (t != TABLE_META || !meta_is_key(k.mv_data, k.mv_size)) {
			answer = check_record(st, t, &k, &v, err);
			if (answer == 0 && t == TABLE_SPEC && !r->raw)
				answer = tell_spec(st, txn, &k, &v, fn, arg, err);
			else if (answer == 0)
				answer = fn(arg, k.mv_data, k.mv_size,
					    (unsigned char *)v.mv_data + SEAL_BYTES,
					    v.mv_size - SEAL_BYTES);
			n++;
		}
		if (answer == 0)
			rc = next(cur, &k, &v, r->backwards ? MDB_PREV : MDB_NEXT);
	}
	if (cur)
		mdb_cursor_close(cur);
	if (answer != 0)
		return answer;
	return rc == 0 || rc == MDB_NOTFOUND ? 0 : read_fail(t, rc, err);
}

static int each(struct store *st, enum table t, const struct range *r, store_each_fn fn, void *arg,
		struct gpuq_err *err)
{
	struct gpuq_err here = GPUQ_ERR_INIT;
	MDB_txn *txn = NULL;
	int rc;

	if (!err)
		err = &here;
	rc = begin(st, t, &txn, err);
	if (rc < 0)
		return rc;
	rc = walk(st, txn, t, r, fn, arg, err);
	return end(st, txn, rc, err);
}

int store_each(struct store *st, enum table t, const void *prefix, size_t prefix_len,
	       const void *from, size_t from_len, bool backwards, size_t max, store_each_fn fn,
	       void *arg, struct gpuq_err *err)
{
	const struct range r = { prefix, from, prefix_len, from_len, max, backwards, false };

	return each(st, t, &r, fn, arg, err);
}

int store_each_raw(struct store *st, enum table t, store_each_fn fn, void *arg,
		   struct gpuq_err *err)
{
	static const struct range all = { .raw = true };

	return each(st, t, &all, fn, arg, err);
}

struct all {
	store_all_fn fn;
	void *arg;
	enum table table;
};

static int one_of_all(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		      size_t val_len)
{
	const struct all *x = arg;

	return x->fn(x->arg, x->table, key, key_len, val, val_len);
}

int store_all(struct store *st, const enum table *tables, size_t n, store_all_fn fn, void *arg,
	      struct gpuq_err *err)
{
	static const struct range all = { .prefix = NULL };
	struct all x = { fn, arg, TABLE_META };
	struct gpuq_err here = GPUQ_ERR_INIT;
	MDB_txn *txn = NULL;
	int rc;

	if (!err)
		err = &here;
	rc = begin(st, TABLE_META, &txn, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n && rc == 0; i++) {
		x.table = tables[i];
		rc = check_wait(st->check, x.table, err);
		if (rc == 0 && x.table == TABLE_SPEC)
			rc = check_wait(st->check, TABLE_TEXT, err);
		if (rc == 0)
			rc = walk(st, txn, x.table, &all, one_of_all, &x, err);
	}
	return end(st, txn, rc, err);
}

static MDB_stat stat_of(struct store *st, enum table t)
{
	MDB_stat stat = { 0 };
	MDB_txn *txn = NULL;

	if (!st->dbi[t] || mdb_txn_begin(st->env, NULL, MDB_RDONLY, &txn) != 0)
		return stat;
	if (mdb_stat(txn, st->dbi[t], &stat) != 0)
		stat = (MDB_stat){ 0 };
	mdb_txn_abort(txn);
	return stat;
}

size_t store_count(struct store *st, enum table t)
{
	return stat_of(st, t).ms_entries;
}

int64_t store_bytes(struct store *st, enum table t)
{
	const MDB_stat s = stat_of(st, t);

	return (int64_t)s.ms_psize *
	       (int64_t)(s.ms_branch_pages + s.ms_leaf_pages + s.ms_overflow_pages);
}
