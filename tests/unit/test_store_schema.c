/* The schema of the database: identity and mark, copies, what a later or an earlier gpuqd left. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lmdb.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/store/crc32c.h"
#include "gpuqd/store/mark.h"
#include "gpuqd/store/meta.h"
#include "gpuqd/store/seal.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "gpuqd/store/upgrade.h"
#include "gpuqd/store/read.h"
#include "gpuqd/store/copy.h"

#define N_OLD 30000u

static char dir[64];

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/gpuq-schema.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
}

static void path_of(char out[128], const char *name)
{
	snprintf(out, 128, "%s/%s", dir, name);
}

static void drop(const char *name)
{
	char path[128];

	path_of(path, name);
	unlink(path);
}

static void remove_dir(void)
{
	static const char *const names[] = { "data.mdb",     "lock.mdb", "gpuqd.lock",
					     "mark",         "mark.new", "data.mdb.schema-1",
					     "data.mdb.new", "copy.mdb", "ballast" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		drop(names[i]);
	rmdir(dir);
}

TestSuite(schema, .init = make_dir, .fini = remove_dir);

static const struct store_opts plain = { .map_bytes = 256 << 20,
					 .unsafe_fs = true,
					 .no_sync = true };

static struct store *open_with(const struct store_opts *o)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store *st = NULL;
	bool fresh;

	cr_assert_eq(store_open(dir, o, &st, &fresh, &err), 0, "%s", err.text);
	return st;
}

static int open_fails(const struct store_opts *o, struct gpuq_err *err)
{
	struct store *st = NULL;
	bool fresh;

	return store_open(dir, o, &st, &fresh, err);
}

static void put(struct store *st, enum table t, uint32_t id, const char *val)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct batch b;

	change_batch_init(&b);
	change_batch_put(&b, t, key, change_key_u32(key, id), val, strlen(val));
	cr_assert_eq(store_write_now(st, &b, &err), 0, "%s", err.text);
	change_batch_done(&b);
}

static bool has(struct store *st, enum table t, uint32_t id, const char *val)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;
	bool is = store_get(st, t, key, change_key_u32(key, id), &b, NULL) == 0 &&
		  strcmp(gpuq_buf_str(&b), val) == 0;

	gpuq_buf_done(&b);
	return is;
}

/* ---- records ---- */

Test(seal, a_record_holds_under_its_own_key_and_table_alone)
{
	unsigned char rec[SEAL_BYTES + 5];
	const uint32_t job = seal_seed("job"), spec = seal_seed("spec");
	uint32_t crc;

	memcpy(rec + SEAL_BYTES, "value", 5);
	seal_write(rec, job, "key", 3, "value", 5);
	cr_expect(seal_holds(job, "key", 3, rec, sizeof(rec), &crc));
	cr_expect_not(seal_holds(spec, "key", 3, rec, sizeof(rec), &crc));
	cr_expect_not(seal_holds(job, "kez", 3, rec, sizeof(rec), &crc));
	cr_expect_not(seal_holds(job, "key", 3, rec, sizeof(rec) - 1, &crc));
	for (size_t bit = 0; bit < 8 * sizeof(rec); bit++) {
		rec[bit / 8] ^= (unsigned char)(1u << bit % 8);
		cr_expect_not(seal_holds(job, "key", 3, rec, sizeof(rec), &crc), "bit %zu", bit);
		rec[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

Test(seal, a_sum_does_not_depend_on_the_order_and_sees_an_older_record)
{
	struct seal_sum a = { 0 }, b = { 0 };

	for (uint32_t i = 0; i < 100; i++) {
		seal_add(&a, i * 77);
		seal_add(&b, (99 - i) * 77);
	}
	cr_expect(a.n == b.n && a.digest == b.digest);
	seal_remove(&b, 5 * 77);
	cr_expect_neq(a.n, b.n);
	seal_add(&b, 5 * 77 + 1);
	cr_expect(a.n == b.n && a.digest != b.digest);
}

Test(meta, skips_fields_of_a_later_gpuqd_and_keeps_its_tables)
{
	struct store_meta m, again;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(meta_init(&m, &err), 0);
	m.id.seq = 7;
	m.sums[TABLE_JOB] = (struct seal_sum){ 3, UINT64_C(0xfedcba9876543210) };
	m.n_others = 1;
	snprintf(m.others[0].name, sizeof(m.others[0].name), "bookings");
	m.others[0].sum = (struct seal_sum){ 2, 99 };
	meta_write(&m, &b);
	b.data[0]++; /* one field more */
	gpuq_buf_add(&b, "\xa5later", 6);
	cr_assert_eq(meta_read(&again, b.data, b.len, &err), 0, "%s", err.text);
	cr_expect_str_eq(again.id.store_id, m.id.store_id);
	cr_expect_eq(again.id.seq, 7);
	cr_expect_eq(again.sums[TABLE_JOB].digest, UINT64_C(0xfedcba9876543210));
	cr_assert_eq(again.n_others, 1);
	cr_expect_str_eq(again.others[0].name, "bookings");
	cr_expect_eq(again.others[0].sum.digest, 99);
	for (size_t n = 0; n < b.len - 6; n++)
		cr_expect_lt(meta_read(&again, b.data, n, NULL), 0, "%zu bytes", n);
	gpuq_buf_done(&b);
}

/* ---- identity ---- */

Test(schema, identity_and_position_stay_and_rise)
{
	struct store *st = open_with(&plain);
	const struct store_identity first = store_identity(st);
	struct store_identity mark;

	cr_expect_eq(strlen(first.store_id), 32);
	cr_expect_eq(first.epoch, 1);
	cr_expect_not(store_is_copy(st, NULL));
	put(st, TABLE_JOB, 1, "one");
	put(st, TABLE_JOB, 2, "two");
	cr_expect_eq(store_identity(st).seq, first.seq + 2);
	cr_assert_eq(mark_read(dir, &mark), 0);
	cr_expect_eq(mark.seq, first.seq + 2);
	cr_expect_str_eq(mark.store_id, first.store_id);
	store_close(st);
	st = open_with(&plain);
	cr_expect_str_eq(store_identity(st).store_id, first.store_id);
	cr_expect_eq(store_identity(st).seq, first.seq + 2);
	cr_expect_not(store_is_copy(st, NULL));
	store_close(st);
}

static void write_mark(const char *id, uint32_t epoch, uint64_t seq)
{
	struct store_identity x = { .epoch = epoch, .seq = seq };
	int fd;

	memcpy(x.store_id, id, sizeof(x.store_id));
	fd = mark_make(dir, &x, NULL);
	cr_assert_geq(fd, 0);
	close(fd);
}

static bool is_copy(void)
{
	struct store *st = open_with(&plain);
	const bool copy = store_is_copy(st, NULL);

	store_close(st);
	return copy;
}

Test(schema, a_mark_that_is_missing_newer_damaged_or_of_another_tells_a_copy)
{
	struct store *st = open_with(&plain);
	struct store_identity id;
	char path[128], other[STORE_ID_BYTES];
	struct batch b;

	for (uint32_t i = 0; i < 5; i++)
		put(st, TABLE_JOB, i, "x");
	id = store_identity(st);
	store_close(st);
	cr_expect_not(is_copy());
	write_mark(id.store_id, 1, id.seq - 3); /* after a power cut */
	cr_expect_not(is_copy());
	write_mark(id.store_id, 1, id.seq + 1);
	cr_expect(is_copy());
	write_mark(id.store_id, 2, 0);
	cr_expect(is_copy());
	memset(other, 'a', sizeof(other) - 1);
	other[sizeof(other) - 1] = '\0';
	write_mark(other, 1, id.seq);
	cr_expect(is_copy());
	write_mark(id.store_id, 1, id.seq);
	path_of(path, "mark");
	cr_assert_eq(truncate(path, 60), 0);
	cr_expect(is_copy());
	drop("mark");
	cr_expect(is_copy());
	/* Writing does not make it the original again; a new identity does. */
	st = open_with(&plain);
	put(st, TABLE_JOB, 9, "nine");
	store_close(st);
	cr_expect(is_copy());
	st = open_with(&plain);
	change_batch_init(&b);
	change_batch_put(&b, TABLE_JOB, "abcd", 4, "with it", 7);
	cr_assert_eq(store_renew_identity(st, &b, NULL), 0);
	change_batch_done(&b);
	cr_expect_not(store_is_copy(st, NULL));
	cr_expect_eq(store_identity(st).epoch, 2);
	cr_expect_str_neq(store_identity(st).store_id, id.store_id);
	cr_expect(has(st, TABLE_JOB, 0x61626364, "with it"));
	store_close(st);
	cr_expect_not(is_copy());
}

static void copy_to(struct store *st, const char *name)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char path[128];
	int fd;

	path_of(path, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(store_copy(st, fd, NULL, &err), 0, "%s", err.text);
	close(fd);
}

Test(schema, a_copy_is_flagged_whole_and_can_be_restored)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store *st = open_with(&plain), *copy = NULL;
	char path[128], data[128];
	uint64_t n = 0;

	put(st, TABLE_JOB, 1, "one");
	put(st, TABLE_LOG, 2, "two");
	copy_to(st, "copy.mdb");
	cr_expect_not(store_identity(st).flagged_copy);
	store_close(st);
	path_of(path, "copy.mdb");
	path_of(data, "data.mdb");
	cr_assert_eq(store_open_to_read(path, &copy, &err), 0, "%s", err.text);
	cr_assert_eq(store_audit(copy, &n, &err), 0, "%s", err.text);
	cr_expect_eq(n, 4, "two, and two of META: %d", (int)n);
	cr_expect(store_identity(copy).flagged_copy);
	cr_expect(has(copy, TABLE_LOG, 2, "two"));
	store_close(copy);
	cr_expect_eq(store_restore(dir, path, &plain, NULL, NULL, &err), GPUQ_ECONFLICT);
	drop("data.mdb");
	cr_assert_eq(store_restore(dir, path, &plain, NULL, NULL, &err), 0, "%s", err.text);
	st = open_with(&plain);
	cr_expect(store_is_copy(st, NULL));
	cr_expect(has(st, TABLE_JOB, 1, "one"));
	store_close(st);
}

/* ---- what another gpuqd left ---- */

struct raw {
	MDB_env *env;
	MDB_txn *txn;
};

static struct raw raw_begin(void)
{
	struct raw r = { NULL, NULL };

	cr_assert_eq(mdb_env_create(&r.env), 0);
	mdb_env_set_mapsize(r.env, 256 << 20);
	mdb_env_set_maxdbs(r.env, 64);
	cr_assert_eq(mdb_env_open(r.env, dir, MDB_NOSYNC, 0600), 0);
	cr_assert_eq(mdb_txn_begin(r.env, NULL, 0, &r.txn), 0);
	return r;
}

static void raw_end(struct raw *r)
{
	cr_assert_eq(mdb_txn_commit(r->txn), 0);
	mdb_env_close(r->env);
}

static MDB_dbi raw_table(struct raw *r, const char *name)
{
	MDB_dbi dbi;

	cr_assert_eq(mdb_dbi_open(r->txn, name, MDB_CREATE, &dbi), 0);
	return dbi;
}

static void raw_put(struct raw *r, MDB_dbi dbi, const void *key, size_t n, const void *val,
		    size_t len)
{
	MDB_val k = { n, (void *)key }, v = { len, (void *)val };

	cr_assert_eq(mdb_put(r->txn, dbi, &k, &v, 0), 0);
}

/* Write the meta record of a gpuqd with other tables. */
static void raw_meta(struct raw *r, const struct store_meta *m)
{
	struct gpuq_buf b = GPUQ_BUF_INIT, rec = GPUQ_BUF_INIT;
	unsigned char head[SEAL_BYTES];

	meta_write(m, &b);
	seal_write(head, seal_seed("meta"), META_KEY, strlen(META_KEY), b.data, b.len);
	gpuq_buf_add(&rec, head, sizeof(head));
	gpuq_buf_add(&rec, b.data, b.len);
	raw_put(r, raw_table(r, "meta"), META_KEY, strlen(META_KEY), rec.data, rec.len);
	gpuq_buf_done(&b);
	gpuq_buf_done(&rec);
}

static struct store_meta raw_read_meta(struct raw *r)
{
	MDB_val k = { strlen(META_KEY), (void *)META_KEY }, v;
	struct store_meta m;

	cr_assert_eq(mdb_get(r->txn, raw_table(r, "meta"), &k, &v), 0);
	cr_assert_eq(meta_read(&m, (char *)v.mv_data + SEAL_BYTES, v.mv_size - SEAL_BYTES, NULL),
		     0);
	m.txn = mdb_txn_id(r->txn);
	return m;
}

Test(schema, a_table_of_a_later_gpuqd_is_kept_and_one_that_it_lacks_is_made)
{
	unsigned char rec[SEAL_BYTES + 2] = { 0 };
	struct store *st = open_with(&plain);
	struct store_meta m;
	struct raw r;
	uint64_t n = 0;

	put(st, TABLE_JOB, 1, "one");
	store_close(st);
	r = raw_begin();
	m = raw_read_meta(&r);
	memcpy(rec + SEAL_BYTES, "hi", 2);
	snprintf(m.others[0].name, sizeof(m.others[0].name), "bookings");
	m.n_others = 1;
	seal_add(&m.others[0].sum, seal_write(rec, seal_seed("bookings"), "k", 1, "hi", 2));
	raw_put(&r, raw_table(&r, "bookings"), "k", 1, rec, sizeof(rec));
	cr_assert_eq(mdb_drop(r.txn, raw_table(&r, table_names[TABLE_OUTBOX]), 1), 0);
	m.has[TABLE_OUTBOX] = false;
	raw_meta(&r, &m);
	raw_end(&r);

	st = open_with(&plain);
	cr_expect(has(st, TABLE_JOB, 1, "one"));
	put(st, TABLE_OUTBOX, 2, "made");
	store_close(st);
	cr_assert_eq(store_open_to_read(dir, &st, NULL), 0);
	cr_expect_eq(store_audit(st, &n, NULL), 0);
	cr_expect_eq(n, 5);
	cr_expect(has(st, TABLE_OUTBOX, 2, "made"));
	store_close(st);

	/* It is known whether its records are those that were stored. */
	r = raw_begin();
	m = raw_read_meta(&r);
	cr_assert_eq(m.n_others, 1);
	m.others[0].sum.digest++;
	raw_meta(&r, &m);
	raw_end(&r);
	cr_assert_eq(store_open_to_read(dir, &st, NULL), 0);
	cr_expect_eq(store_audit(st, NULL, NULL), GPUQ_ECORRUPT);
	store_close(st);
}

/* Every record holds and is counted, but the meta page is not that of what gpuqd wrote last. */
Test(schema, pages_of_another_transaction_are_refused)
{
	struct store *st = open_with(&plain);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store_meta m;
	struct raw r;

	put(st, TABLE_JOB, 1, "one");
	store_close(st);
	r = raw_begin();
	m = raw_read_meta(&r);
	raw_meta(&r, &m);
	raw_end(&r);
	store_close(open_with(&plain));
	r = raw_begin();
	m = raw_read_meta(&r);
	m.txn--;
	raw_meta(&r, &m);
	raw_end(&r);
	cr_expect_eq(open_fails(&plain, &err), GPUQ_ECORRUPT);
	cr_expect_not_null(strstr(err.text, "transaction"), "%s", err.text);
}

Test(schema, a_newer_schema_is_refused)
{
	struct store *st = open_with(&plain);
	unsigned char version[SCHEMA_BYTES];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct raw r;

	store_close(st);
	r = raw_begin();
	schema_write(version, STORE_SCHEMA + 1);
	raw_put(&r, raw_table(&r, "meta"), SCHEMA_KEY, strlen(SCHEMA_KEY), version,
		sizeof(version));
	raw_end(&r);
	cr_expect_eq(open_fails(&plain, &err), GPUQ_EVERSION, "%s", err.text);
	cr_expect_not_null(strstr(err.text, "schema 3"));
}

/* ---- an upgrade ---- */

static void raw_put_1(struct raw *r, MDB_dbi dbi, unsigned char table, uint32_t id, const char *val)
{
	const size_t n = strlen(val);
	unsigned char key[4], rec[64] = { 1, table };
	const uint32_t crc = crc32c(val, n) ^ ((uint32_t)1 << 8 | table);

	change_key_u32(key, id);
	memcpy(rec + 2, &crc, 4);
	memcpy(rec + SEAL_BYTES_1, val, n);
	raw_put(r, dbi, key, 4, rec, SEAL_BYTES_1 + n);
}

/* A database as 0.1.0 wrote it. */
static void make_schema_1(void)
{
	const uint32_t version = 1;
	struct raw r = raw_begin();
	MDB_dbi job, log;

	raw_put(&r, raw_table(&r, "meta"), "schema", 6, &version, sizeof(version));
	for (int t = 0; t < N_TABLES; t++)
		raw_table(&r, table_names[t]);
	job = raw_table(&r, "job");
	log = raw_table(&r, "log");
	for (uint32_t i = 0; i < N_OLD; i++) {
		raw_put_1(&r, job, TABLE_JOB, i, "a job of schema 1");
		raw_put_1(&r, log, TABLE_LOG, i, "its log");
	}
	raw_end(&r);
	drop("lock.mdb");
}

struct seen {
	uint32_t n_jobs, n_logs, n_ends;
	bool mixed; /* a log before the last job */
};

/* Jobs get another key and value, logs are dropped but each tenth, the end adds one record. */
static int upgrade(void *arg, unsigned from, enum table t, const unsigned char *key, size_t key_len,
		   const unsigned char *val, size_t val_len, struct batch *out,
		   struct gpuq_err *err)
{
	struct seen *s = arg;
	unsigned char to[CHANGE_KEY_BYTES_MAX];
	uint32_t id;

	(void)err;
	cr_assert_eq(from, 1);
	if (t == N_TABLES) {
		cr_assert_null(key);
		s->n_ends++;
		change_batch_put(out, TABLE_SITE, to, change_key_u32(to, s->n_jobs), "end", 3);
		return 0;
	}
	id = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
	if (t == TABLE_JOB) {
		cr_assert(val_len == 17 && memcmp(val, "a job of schema 1", 17) == 0);
		s->n_jobs++;
		s->mixed |= s->n_logs != 0;
		change_batch_put(out, TABLE_JOB, to, change_key_u32(to, id * 2654435761u), "new",
				 3);
	} else if (t == TABLE_LOG) {
		s->n_logs++;
		if (id % 10 == 0)
			change_batch_put(out, TABLE_LOG, key, key_len, val, val_len);
	}
	return 0;
}

static void expect_upgraded(struct store *st)
{
	cr_expect_eq(store_count(st, TABLE_JOB), N_OLD);
	cr_expect_eq(store_count(st, TABLE_LOG), N_OLD / 10);
	for (uint32_t i = 0; i < N_OLD; i += 997)
		cr_expect(has(st, TABLE_JOB, i * 2654435761u, "new"));
	cr_expect(has(st, TABLE_SITE, N_OLD, "end"));
	cr_expect_not(store_is_copy(st, NULL), "its numbers stay");
}

Test(schema, an_older_database_is_converted_and_kept)
{
	struct seen s = { 0 };
	struct store_opts o = plain;
	struct store *st;
	char path[128];
	struct stat now, kept;

	make_schema_1();
	path_of(path, "data.mdb");
	cr_assert_eq(stat(path, &now), 0);
	o.upgrade = upgrade;
	o.upgrade_arg = &s;
	st = open_with(&o);
	cr_expect(s.n_jobs == N_OLD && s.n_logs == N_OLD && s.n_ends == 1 && !s.mixed);
	expect_upgraded(st);
	store_close(st);
	path_of(path, "data.mdb.schema-1");
	cr_assert_eq(stat(path, &kept), 0);
	cr_expect_eq(kept.st_ino, now.st_ino, "the old file itself");
	st = open_with(&plain);
	expect_upgraded(st);
	store_close(st);
	cr_assert_eq(store_open_to_read(path, &st, NULL), 0);
	cr_expect_eq(store_schema(st), 1);
	cr_expect_eq(store_audit(st, NULL, NULL), 0);
	store_close(st);
}

static int upgrade_fails(void *arg, unsigned from, enum table t, const unsigned char *key,
			 size_t key_len, const unsigned char *val, size_t val_len,
			 struct batch *out, struct gpuq_err *err)
{
	(void)arg, (void)from, (void)key, (void)key_len, (void)val, (void)val_len, (void)out;
	return t == TABLE_LOG ? gpuq_fail(err, GPUQ_ECORRUPT, "a log that cannot be read") : 0;
}

Test(schema, an_upgrade_that_fails_changes_nothing)
{
	struct store_opts o = plain;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct seen s = { 0 };
	struct store *st;
	char path[128];

	make_schema_1();
	o.upgrade = upgrade_fails;
	cr_expect_eq(open_fails(&o, &err), GPUQ_ECORRUPT);
	cr_expect_not_null(strstr(err.text, "a log that cannot be read"));
	path_of(path, "data.mdb.schema-1");
	cr_expect_neq(access(path, F_OK), 0);
	path_of(path, "data.mdb.new");
	cr_expect_neq(access(path, F_OK), 0);
	o.upgrade = upgrade;
	o.upgrade_arg = &s;
	st = open_with(&o);
	expect_upgraded(st);
	store_close(st);
}

#ifdef GPUQ_FAILPOINTS
static void killed_at(const char *point)
{
	struct store_opts o = plain;
	struct seen s = { 0 };
	struct store *st;
	int status;
	pid_t pid;

	make_schema_1();
	o.upgrade = upgrade;
	o.upgrade_arg = &s;
	pid = fork();
	if (pid == 0) {
		char text[64];

		snprintf(text, sizeof(text), "%s=kill", point);
		setenv("GPUQ_FAILPOINT", text, 1);
		open_with(&o);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%s: status %d", point,
		  status);
	st = open_with(&o);
	expect_upgraded(st);
	store_close(st);
}

Test(schema, a_crash_before_the_old_one_is_kept_leaves_it)
{
	killed_at("upgrade.written");
}

Test(schema, a_crash_before_the_renaming_leaves_the_old_one)
{
	killed_at("upgrade.kept");
}

Test(schema, a_crash_after_the_renaming_leaves_the_new_one)
{
	killed_at("upgrade.renamed");
}
#endif

/* ---- missing ---- */

Test(schema, a_missing_database_beside_a_mark_is_refused_but_by_word)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store_opts o = plain;
	struct store *st = open_with(&plain);
	char path[128];

	put(st, TABLE_JOB, 1, "one");
	store_close(st);
	drop("data.mdb");
	cr_expect_eq(open_fails(&plain, &err), GPUQ_ECORRUPT);
	cr_expect_not_null(strstr(err.text, "--new-state"), "%s", err.text);
	path_of(path, "data.mdb");
	cr_expect_neq(access(path, F_OK), 0, "nothing is made");
	o.new_state = true;
	st = open_with(&o);
	cr_expect_eq(store_count(st, TABLE_JOB), 0);
	cr_expect_not(store_is_copy(st, NULL));
	store_close(st);
	cr_expect_not(is_copy());
}

/* The child's exit status; what it said is in said. */
static int in_child(void (*fn)(void), char said[512])
{
	int status, fds[2];
	ssize_t n;
	pid_t pid;

	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(fds[1]);
	n = read(fds[0], said, 511);
	said[n > 0 ? n : 0] = '\0';
	close(fds[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void read_a_file_that_is_cut(void)
{
	struct store *st = open_with(&plain);
	char path[128];

	put(st, TABLE_LOG, 1, "one");
	path_of(path, "data.mdb");
	if (truncate(path, 0) != 0)
		_exit(1);
	has(st, TABLE_LOG, 1, "one");
}

Test(schema, a_file_that_is_cut_under_a_reader_ends_it_with_74_and_the_table)
{
	char said[512];

	cr_expect_eq(in_child(read_a_file_that_is_cut, said), STORE_EXIT_DAMAGED);
	cr_expect_not_null(strstr(said, "table log is damaged"), "%s", said);
}

/* Each page but the two of META becomes one of a tree with a single child, which LMDB never writes and
 * asserts not to find. */
static void read_a_tree_of_one_child(void)
{
	struct store *st = open_with(&plain);
	const uint16_t branch = 1, lower = 16 + 2;
	char path[128];
	struct stat sb;
	int fd;

	put(st, TABLE_LOG, 1, "one");
	path_of(path, "data.mdb");
	fd = open(path, O_RDWR);
	if (fd < 0 || fstat(fd, &sb) != 0)
		_exit(1);
	for (off_t at = 2 * 4096; at < sb.st_size; at += 4096)
		if (pwrite(fd, &branch, 2, at + 10) != 2 || pwrite(fd, &lower, 2, at + 12) != 2)
			_exit(1);
	has(st, TABLE_LOG, 1, "one");
}

Test(schema, an_assertion_of_lmdb_ends_it_with_74_and_the_table)
{
	char said[512];

	cr_expect_eq(in_child(read_a_tree_of_one_child, said), STORE_EXIT_DAMAGED, "%s", said);
	cr_expect_not_null(strstr(said, "table log is damaged"), "%s", said);
}

#ifndef __SANITIZE_ADDRESS__ /* which reports such a fault and exits by itself */
static void fault_elsewhere(void)
{
	struct store *st = open_with(&plain);

	put(st, TABLE_LOG, 1, "one");
	raise(SIGSEGV);
}

Test(schema, a_fault_that_is_not_the_stores_stays_one)
{
	char said[512];

	cr_expect_eq(in_child(fault_elsewhere, said), -SIGSEGV);
}
#endif

Test(schema, a_directory_that_is_renamed_or_replaced_is_noticed)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store *st = open_with(&plain);
	char moved[80];
	struct batch b;

	cr_expect_eq(store_is_there(st, &err), 0, "%s", err.text);
	snprintf(moved, sizeof(moved), "%s.moved", dir);
	cr_assert_eq(rename(dir, moved), 0);
	cr_expect_eq(store_is_there(st, &err), GPUQ_EIO);
	change_batch_init(&b);
	change_batch_put(&b, TABLE_JOB, "k", 1, "v", 1);
	cr_expect_eq(store_write_now(st, &b, &err), GPUQ_EIO, "committed elsewhere, and not told");
	change_batch_done(&b);
	cr_assert_eq(mkdir(dir, 0700), 0);
	cr_expect_eq(store_is_there(st, &err), GPUQ_EIO);
	cr_assert_eq(rmdir(dir), 0);
	cr_assert_eq(rename(moved, dir), 0);
	cr_expect_eq(store_is_there(st, &err), 0);
	store_close(st);
}
