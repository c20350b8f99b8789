#include "gpuqd/store/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/sdnotify.h"
#include "libgpuq/units.h"

#define WAIT_STEP_US GPUQ_US_PER_S
#define TREES_MAX (N_TABLES + META_OTHERS_MAX)

struct check {
	int fd;
	struct pages *pages;
	unsigned schema;
	struct store_meta state;
	struct pages_tree trees[TREES_MAX];
	enum table tables[TREES_MAX]; /* N_TABLES: not known to this gpuqd */
	size_t n_trees;
	uint64_t n_records;
	/* the thread; what follows is under mu, but `all` */
	pthread_t thread;
	bool running;
	pthread_mutex_t mu;
	pthread_cond_t wake;
	bool checked[N_TABLES];
	enum table wanted; /* a reader waits for it; N_TABLES = none */
	bool over; /* rc and err tell */
	int rc;
	struct gpuq_err err;
	atomic_bool all, quit;
	store_damaged_fn on_bad;
};

/* ---- one table ---- */

struct one {
	struct check *c;
	const char *name;
	uint32_t seed;
	enum table table;
	struct seal_sum sum;
	struct gpuq_err *err;
	/* of META */
	bool has_schema, has_state;
	uint32_t schema;
};

static int bad_record(const struct one *o, const unsigned char *key, size_t n)
{
	char hex[49] = "";

	for (size_t i = 0; i < n && i < 24; i++) {
		hex[2 * i] = "0123456789abcdef"[key[i] >> 4];
		hex[2 * i + 1] = "0123456789abcdef"[key[i] & 15];
		hex[2 * i + 2] = '\0';
	}
	return gpuq_fail(o->err, GPUQ_ECORRUPT,
			 "store: record %s of table %s is damaged: keep the files and restore a "
			 "backup",
			 hex, o->name);
}

static int on_record(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		     size_t val_len)
{
	struct one *o = arg;
	uint32_t crc;

	if (o->c->schema == 1)
		return seal_holds_1(val, val_len) ? 0 : bad_record(o, key, key_len);
	if (!seal_holds(o->seed, key, key_len, val, val_len, &crc))
		return bad_record(o, key, key_len);
	seal_add(&o->sum, crc);
	return atomic_load_explicit(&o->c->quit, memory_order_relaxed) ? GPUQ_ECANCELED : 0;
}

static int bad_sum(struct gpuq_err *err, const char *table, const struct seal_sum *is,
		   const struct seal_sum *should)
{
	return gpuq_fail(err, GPUQ_ECORRUPT,
			 "store: table %s is damaged: it has %llu records%s, %llu were stored: "
			 "keep the files and restore a backup",
			 table, (unsigned long long)is->n,
			 is->n == should->n ? " that are not those that were stored" : "",
			 (unsigned long long)should->n);
}

static int check_sum(const struct check *c, const char *table, const struct seal_sum *is,
		     struct gpuq_err *err)
{
	const struct seal_sum *should = meta_sum(&c->state, table);

	if (!should)
		return gpuq_fail(err, GPUQ_ECORRUPT,
				 "store: table %s is not one of those that were stored: keep the "
				 "files and restore a backup",
				 table);
	return is->n == should->n && is->digest == should->digest ? 0
								  : bad_sum(err, table, is, should);
}

static int check_table(struct check *c, size_t i, struct gpuq_err *err)
{
	const struct pages_tree *t = &c->trees[i];
	struct one o = { .c = c,
			 .name = t->name,
			 .seed = seal_seed(t->name),
			 .table = c->tables[i],
			 .err = err };
	int rc = pages_walk(c->pages, t, on_record, &o, err);

	return rc == 0 && c->schema > 1 ? check_sum(c, t->name, &o.sum, err) : rc;
}

/* ---- META ---- */

static int on_meta(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		   size_t val_len)
{
	struct one *o = arg;
	uint32_t crc;

	if (key_len == strlen(SCHEMA_KEY) && memcmp(key, SCHEMA_KEY, key_len) == 0) {
		o->has_schema = true;
		return schema_read(val, val_len, &o->schema) ? 0 : bad_record(o, key, key_len);
	}
	if (meta_is_key(key, key_len)) {
		o->has_state = true;
		if (!seal_holds(o->seed, key, key_len, val, val_len, &crc))
			return bad_record(o, key, key_len);
		return meta_read(&o->c->state, val + SEAL_BYTES, val_len - SEAL_BYTES, o->err);
	}
	/* The schema comes later than most keys: which it was is seen from the record. */
	if (seal_holds(o->seed, key, key_len, val, val_len, &crc))
		seal_add(&o->sum, crc);
	else if (!seal_holds_1(val, val_len))
		return bad_record(o, key, key_len);
	return 0;
}

static int no_state(struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ECORRUPT,
			 "store: table meta is damaged: its record of the schema or of what is "
			 "stored is missing: keep the files and restore a backup");
}

/* The counts of META must match the tables; META must list every table. */
static int compare_tables(const struct check *c, struct gpuq_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_trees; i++) {
		const struct seal_sum is = { c->trees[i].n_records, 0 };
		const struct seal_sum *should = meta_sum(&c->state, c->trees[i].name);

		if (!should)
			return check_sum(c, c->trees[i].name, &is, err);
		if (c->tables[i] != TABLE_META && is.n != should->n)
			return bad_sum(err, c->trees[i].name, &is, should);
		n++;
	}
	for (int t = 0; t < N_TABLES; t++)
		n -= c->state.has[t];
	return n == c->state.n_others ? 0
				      : gpuq_fail(err, GPUQ_ECORRUPT,
						  "store: a table is missing: keep the files and "
						  "restore a backup");
}

static int read_meta(struct check *c, struct gpuq_err *err)
{
	struct one o = { .c = c,
			 .name = table_names[TABLE_META],
			 .seed = seal_seed(table_names[TABLE_META]),
			 .table = TABLE_META,
			 .err = err };
	const struct pages_tree *t = check_tree(c, TABLE_META);
	int rc = t ? pages_walk(c->pages, t, on_meta, &o, err) : no_state(err);

	if (rc < 0)
		return rc;
	if (!o.has_schema)
		return no_state(err);
	c->schema = o.schema;
	if (o.schema == 0 || o.schema > STORE_SCHEMA)
		return gpuq_fail(err, GPUQ_EVERSION,
				 "the database has schema %u, this gpuqd knows %d: run the gpuqd "
				 "that wrote it, or restore an older backup",
				 o.schema, STORE_SCHEMA);
	if (o.schema == 1)
		return 0;
	if (!o.has_state)
		return no_state(err);
	if (c->state.txn != pages_txn(c->pages))
		return gpuq_fail(err, GPUQ_ECORRUPT,
				 "store: a meta page is damaged: it names transaction %llu, and "
				 "what is stored is of %llu: keep the files and restore a backup",
				 (unsigned long long)pages_txn(c->pages),
				 (unsigned long long)c->state.txn);
	rc = check_sum(c, table_names[TABLE_META], &o.sum, err);
	return rc == 0 ? compare_tables(c, err) : rc;
}

/* ---- opening ---- */

static int on_table(void *arg, const struct pages_tree *t)
{
	struct check *c = arg;

	if (c->n_trees == TREES_MAX)
		return gpuq_fail(&c->err, GPUQ_ECORRUPT, "store: more tables than there can be");
	c->tables[c->n_trees] = meta_table(t->name);
	c->trees[c->n_trees++] = *t;
	return 0;
}

int check_open(const char *path, struct check **out, struct gpuq_err *err)
{
	struct check *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;
	int rc = 0;

	if (!c)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	pthread_mutex_init(&c->mu, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &attr);
	pthread_condattr_destroy(&attr);
	c->wanted = N_TABLES;
	c->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0)
		rc = gpuq_fail(err,
			       errno == ENOENT   ? GPUQ_ENOENT
			       : errno == EACCES ? GPUQ_EPERM
						 : GPUQ_EIO,
			       "%s: %s", path, strerror(errno));
	if (rc == 0)
		rc = pages_open(c->fd, &c->pages, err);
	if (rc == 0) {
		rc = pages_tables(c->pages, on_table, c, err);
		if (rc < 0 && c->err.code)
			*err = c->err;
	}
	if (rc == 0)
		rc = read_meta(c, err);
	if (rc < 0) {
		check_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

void check_close(struct check *c)
{
	if (!c)
		return;
	atomic_store(&c->quit, true);
	if (c->running)
		pthread_join(c->thread, NULL);
	pages_close(c->pages);
	if (c->fd >= 0)
		close(c->fd);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->mu);
	free(c);
}

unsigned check_schema(const struct check *c)
{
	return c->schema;
}

const struct store_meta *check_state(const struct check *c)
{
	return &c->state;
}

struct pages *check_pages(struct check *c)
{
	return c->pages;
}

int check_fd(const struct check *c)
{
	return c->fd;
}

const struct pages_tree *check_tree(const struct check *c, enum table t)
{
	for (size_t i = 0; i < c->n_trees; i++)
		if (c->tables[i] == t)
			return &c->trees[i];
	return NULL;
}

uint64_t check_records(const struct check *c)
{
	return c->n_records;
}

/* ---- all of it ---- */

/* Tables in the order of need: first those that a start loads, then those needed soon, then the
 * rest. */
static const enum table first[] = { TABLE_META,    TABLE_SITE,  TABLE_NODE, TABLE_REQUEST,
				    TABLE_JOB,     TABLE_KEY,   TABLE_POD,  TABLE_USAGE,
				    TABLE_ACCOUNT, TABLE_TOKEN, TABLE_ASK,  TABLE_BESIDE,
				    TABLE_OUTBOX,  TABLE_SPEC,  TABLE_TEXT };
enum { N_FIRST = sizeof(first) / sizeof(first[0]) };

/* True for a table that a start does not need soon. */
static bool is_late(enum table t)
{
	for (size_t k = 0; k < N_FIRST; k++)
		if (first[k] == t)
			return false;
	return true;
}

/* The next table to check: one that is waited for, else the next of the list. TREES_MAX = none
 * is left. */
static size_t next_tree(struct check *c, const bool *begun)
{
	enum table want;

	pthread_mutex_lock(&c->mu);
	want = c->wanted;
	c->wanted = N_TABLES;
	pthread_mutex_unlock(&c->mu);
	for (size_t i = 0; want != N_TABLES && i < c->n_trees; i++)
		if (c->tables[i] == want && !begun[i])
			return i;
	for (size_t k = 0; k < N_FIRST; k++)
		for (size_t i = 0; i < c->n_trees; i++)
			if (c->tables[i] == first[k] && !begun[i])
				return i;
	for (size_t i = 0; i < c->n_trees; i++)
		if (!begun[i])
			return i;
	return TREES_MAX;
}

static void set_checked(struct check *c, enum table t)
{
	pthread_mutex_lock(&c->mu);
	if (t < N_TABLES)
		c->checked[t] = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->mu);
}

static int check_trees(struct check *c, struct gpuq_err *err)
{
	bool begun[TREES_MAX] = { false };
	size_t i;
	int rc = 0;

	while (rc == 0 && (i = next_tree(c, begun)) != TREES_MAX) {
		begun[i] = true;
		if (is_late(c->tables[i]))
			(void)FAILPOINT("store.check.late"); /* it sleeps */
		if (c->tables[i] != TABLE_META) /* it was read when the file was opened */
			rc = check_table(c, i, err);
		c->n_records += c->trees[i].n_records;
		if (rc == 0)
			set_checked(c, c->tables[i]);
	}
	return rc == 0 ? pages_check_free(c->pages, err) : rc;
}

static int run(struct check *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const int rc = check_trees(c, &err);

	pthread_mutex_lock(&c->mu);
	c->over = true;
	c->rc = rc;
	c->err = err;
	atomic_store(&c->all, rc == 0);
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->mu);
	return rc;
}

static void *thread(void *arg)
{
	struct check *c = arg;

	if (run(c) < 0 && !atomic_load(&c->quit) && c->on_bad)
		c->on_bad(&c->err);
	return NULL;
}

int check_start(struct check *c, store_damaged_fn on_bad, struct gpuq_err *err)
{
	if (c->over)
		return 0;
	c->on_bad = on_bad;
	if (pthread_create(&c->thread, NULL, thread, c) != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: cannot start a thread");
	c->running = true;
	return 0;
}

bool check_is_done(struct check *c, enum table t)
{
	bool done;

	if (!c || atomic_load_explicit(&c->all, memory_order_acquire))
		return true;
	pthread_mutex_lock(&c->mu);
	done = !c->running || c->over || c->checked[t];
	if (!done)
		c->wanted = t;
	pthread_mutex_unlock(&c->mu);
	return done;
}

int check_wait(struct check *c, enum table t, struct gpuq_err *err)
{
	int rc = 0;

	if (!c || atomic_load_explicit(&c->all, memory_order_acquire))
		return 0;
	if (!c->running && !c->over)
		run(c);
	pthread_mutex_lock(&c->mu);
	/* A table that is missing counts as one that waits for all. */
	while (!c->over && (t == N_TABLES || !c->checked[t])) {
		const int64_t us = loop_clock_us() + WAIT_STEP_US;
		const struct timespec until = { us / GPUQ_US_PER_S, us % GPUQ_US_PER_S * 1000 };

		if (t != N_TABLES)
			c->wanted = t;
		/* The event loop waits here, too: the service manager must not take a database
		 * of many gigabytes on a slow disk for a daemon that hangs. */
		if (pthread_cond_timedwait(&c->wake, &c->mu, &until) == ETIMEDOUT)
			sdnotify_watchdog();
	}
	if (c->over && c->rc < 0 && (t == N_TABLES || !c->checked[t])) {
		rc = c->rc;
		if (err)
			*err = c->err;
	}
	pthread_mutex_unlock(&c->mu);
	return rc;
}
