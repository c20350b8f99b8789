#include "gpuqd/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <lmdb.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/store/crc32c.h"

#define SCHEMA_VERSION 1
#define RECORD_VERSION 1
#define HEAD_BYTES 6 /* version, table, CRC32C of both and the value */
#define MAP_BYTES_DEFAULT (INT64_C(64) << 30)
#define DEAD_TRIES 250 /* of 20 ms */
#define DEAD_STEP_MS 20
#define BALLAST_BYTES (8 << 20) /* kept free so that cancels still fit when users filled the disk */

struct pending { /* one batch on its way through the writer */
	struct pending *next;
	struct batch batch;
	uint64_t seq;
	int rc;
	struct gpuq_err err;
};

struct store {
	char *dir;
	int lock_fd;
	MDB_env *env;
	MDB_dbi dbi[N_TABLES];
	/* writer */
	pthread_t thread;
	bool running;
	pthread_mutex_t mu;
	pthread_cond_t wake;
	struct pending *todo, **todo_end, *done, **done_end;
	bool quit;
	int done_fd;
	/* loop side */
	struct event *ev;
	store_done_fn fn;
	void *arg;
};

static int store_fail(struct gpuq_err *err, int rc, const char *what)
{
	int code = GPUQ_EIO;

	if (rc == MDB_MAP_FULL || rc == ENOSPC || rc == EDQUOT)
		code = GPUQ_ESTORAGE;
	else if (rc == MDB_NOTFOUND)
		code = GPUQ_ENOENT;
	else if (rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND || rc == MDB_INVALID)
		code = GPUQ_ECORRUPT;
	else if (rc == EACCES || rc == EPERM || rc == EROFS)
		code = GPUQ_EPERM;
	else if (rc == MDB_VERSION_MISMATCH)
		code = GPUQ_EVERSION;
	return gpuq_fail(err, code, "store: %s: %s", what, mdb_strerror(rc));
}

bool store_has_space(const struct store *st)
{
	struct statvfs v;

	return statvfs(st->dir, &v) != 0 || (uint64_t)v.f_bavail * v.f_frsize > BALLAST_BYTES;
}

/* LMDB turns a short write into EIO, so a full disk looks like a broken one: the
 * filesystem itself tells which it was. A failed data write leaves the last commit
 * intact; a failed meta write does not tell, and LMDB then answers MDB_PANIC. */
static int commit_fail(const struct store *st, struct gpuq_err *err, int rc)
{
	struct statvfs v;

	if (rc == MDB_PANIC)
		return gpuq_fail(err, GPUQ_EUNKNOWN, "store: commit: %s", mdb_strerror(rc));
	if (rc == EIO && statvfs(st->dir, &v) == 0 &&
	    (uint64_t)v.f_bavail * v.f_frsize < (1u << 20)) {
		unsigned flags = 0;

		mdb_env_get_flags(st->env, &flags);
		if (!(flags & 0x80000000u)) /* MDB_FATAL_ERROR: the meta page failed */
			return gpuq_fail(err, GPUQ_ESTORAGE, "no space left in %s", st->dir);
	}
	if (rc == ENOSPC || rc == EDQUOT || rc == MDB_MAP_FULL)
		return gpuq_fail(err, GPUQ_ESTORAGE, "no space left in %s", st->dir);
	return gpuq_fail(err, GPUQ_EIO, "store: commit: %s", mdb_strerror(rc));
}

/* ---- opening ---- */

/* A container's own overlayfs is let through: a file made there lies on one local disk,
 * and whoever tries gpuq in a container has nothing else. */
static int check_fs(const char *dir, struct gpuq_err *err)
{
	static const struct {
		long magic;
		const char *name;
	} bad[] = {
		{ 0x6969, "NFS" },      { 0x517b, "SMB" },        { 0xfe534d42, "SMB2" },
		{ 0xff534d42, "CIFS" }, { 0x01021997, "9p" },     { 0x65735546, "FUSE" },
		{ 0x47504653, "GPFS" }, { 0x0bd00bd0, "Lustre" }, { 0x19830326, "BeeGFS" },
	};
	struct statfs f;

	if (statfs(dir, &f) != 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", dir, strerror(errno));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if ((uint32_t)f.f_type == (uint32_t)bad[i].magic)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "%s lies on %s, where a database of this kind can be "
					 "damaged: use a local disk (--state DIR), or "
					 "--unsafe-fs for a trial",
					 dir, bad[i].name);
	return 0;
}

static int make_dirs(const char *dir, struct gpuq_err *err)
{
	char path[4096];
	size_t n = strlen(dir);

	if (n == 0 || n >= sizeof(path))
		return gpuq_fail(err, GPUQ_EINVAL, "state directory: bad path");
	memcpy(path, dir, n + 1);
	for (char *p = path + 1;; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		bool last = *p == '\0';

		*p = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return gpuq_fail(err, errno == EACCES ? GPUQ_EPERM : GPUQ_EIO,
					 "cannot make %s: %s", path, strerror(errno));
		if (last)
			return 0;
		*p = '/';
	}
}

static int take_lock(struct store *st, struct gpuq_err *err)
{
	char path[4200], pid[32] = "";
	pid_t holder;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/gpuqd.lock", st->dir);
	st->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (st->lock_fd < 0)
		return gpuq_fail(err, errno == EACCES ? GPUQ_EPERM : GPUQ_EIO, "%s: %s", path,
				 strerror(errno));
	for (int tries = 0; flock(st->lock_fd, LOCK_EX | LOCK_NB) != 0; tries++) {
		n = pread(st->lock_fd, pid, sizeof(pid) - 1, 0);
		pid[n > 0 ? n : 0] = '\0';
		pid[strcspn(pid, "\n")] = '\0';
		/* One that was killed while it started a process is outlived by it until that
		 * has become its program, and so is the lock. */
		holder = (pid_t)strtol(pid, NULL, 10);
		if (tries < DEAD_TRIES && holder > 0 && kill(holder, 0) != 0 && errno == ESRCH) {
			poll(NULL, 0, DEAD_STEP_MS); /* at start: there is no loop to hold up yet */
			continue;
		}
		return gpuq_fail(err, GPUQ_EBUSY,
				 "%s is in use by another gpuqd (pid %s): stop that one first, or "
				 "use another --state",
				 st->dir, n > 0 ? pid : "unknown");
	}
	snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	if (ftruncate(st->lock_fd, 0) != 0 ||
	    pwrite(st->lock_fd, pid, strlen(pid), 0) != (ssize_t)strlen(pid))
		return gpuq_fail(err, errno == ENOSPC ? GPUQ_ESTORAGE : GPUQ_EIO, "%s: %s", path,
				 strerror(errno));
	return 0;
}

static void fsync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

static int open_env(struct store *st, const struct store_opts *o, bool *fresh, struct gpuq_err *err)
{
	unsigned flags = MDB_NOTLS | (o->no_sync ? MDB_NOSYNC : 0);
	char path[4200];
	MDB_txn *txn = NULL;
	MDB_val k, v;
	int rc, fd;
	uint32_t version;

	snprintf(path, sizeof(path), "%s/data.mdb", st->dir);
	*fresh = access(path, F_OK) != 0;
	rc = mdb_env_create(&st->env);
	if (rc == 0)
		rc = mdb_env_set_mapsize(st->env,
					 (size_t)(o->map_bytes ? o->map_bytes : MAP_BYTES_DEFAULT));
	if (rc == 0)
		rc = mdb_env_set_maxdbs(st->env, N_TABLES);
	if (rc == 0)
		rc = mdb_env_open(st->env, st->dir, flags, 0600);
	if (rc != 0)
		return store_fail(err, rc, "open");
	if (mdb_env_get_fd(st->env, &fd) == 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC); /* LMDB 0.9 leaves this one open to children */
	mdb_reader_check(st->env, NULL);

	rc = mdb_txn_begin(st->env, NULL, 0, &txn);
	if (rc != 0)
		return commit_fail(st, err, rc);
	for (int t = 0; rc == 0 && t < N_TABLES; t++)
		rc = mdb_dbi_open(txn, table_names[t], MDB_CREATE, &st->dbi[t]);
	if (rc != 0) {
		mdb_txn_abort(txn);
		return store_fail(err, rc, "open tables");
	}
	k.mv_data = (void *)"schema";
	k.mv_size = 6;
	rc = mdb_get(txn, st->dbi[TABLE_META], &k, &v);
	if (rc == MDB_NOTFOUND) {
		*fresh = true;
		version = SCHEMA_VERSION;
		v.mv_data = &version;
		v.mv_size = sizeof(version);
		rc = mdb_put(txn, st->dbi[TABLE_META], &k, &v, 0);
	} else if (rc == 0) {
		version = 0;
		memcpy(&version, v.mv_data, v.mv_size < 4 ? v.mv_size : 4);
		if (version != SCHEMA_VERSION) {
			mdb_txn_abort(txn);
			return gpuq_fail(
				err, GPUQ_EVERSION,
				"%s was written with schema %u, this gpuqd knows %d: run the "
				"gpuqd that wrote it, or restore an older backup",
				st->dir, version, SCHEMA_VERSION);
		}
	}
	if (rc != 0) {
		mdb_txn_abort(txn);
		return store_fail(err, rc, "schema");
	}
	rc = mdb_txn_commit(txn);
	if (rc != 0)
		return commit_fail(st, err, rc);
	if (*fresh)
		fsync_dir(st->dir); /* LMDB does not do it for a new file */
	return 0;
}

/* ---- writing ---- */

static int put(struct store *st, MDB_txn *txn, const struct change *c)
{
	MDB_val k = { c->key_len, (void *)c->key };
	MDB_val v = { c->val_len + HEAD_BYTES, NULL };
	unsigned char *p;
	uint32_t crc;
	int rc;

	if (!c->val) {
		rc = mdb_del(txn, st->dbi[c->table], &k, NULL);
		return rc == MDB_NOTFOUND ? 0 : rc;
	}
	rc = mdb_put(txn, st->dbi[c->table], &k, &v, MDB_RESERVE);
	if (rc != 0)
		return rc;
	p = v.mv_data;
	p[0] = RECORD_VERSION;
	p[1] = (unsigned char)c->table;
	memcpy(p + HEAD_BYTES, c->val, c->val_len);
	crc = crc32c(c->val, c->val_len) ^ ((uint32_t)p[0] << 8 | p[1]);
	memcpy(p + 2, &crc, 4);
	return 0;
}

static int write_batch(struct store *st, const struct batch *b, struct gpuq_err *err)
{
	MDB_txn *txn = NULL;
	int rc;

	if (b->failed)
		return gpuq_fail(err, GPUQ_EUNKNOWN,
				 "store: out of memory while collecting changes");
	rc = mdb_txn_begin(st->env, NULL, 0, &txn);
	if (rc != 0)
		return commit_fail(st, err, rc);
	for (size_t i = 0; i < b->n; i++) {
		rc = put(st, txn, &b->items[i]);
		if (rc != 0) {
			mdb_txn_abort(txn);
			return commit_fail(st, err, rc);
		}
	}
	(void)FAILPOINT("store.commit");
	rc = mdb_txn_commit(txn); /* frees txn also when it fails */
	(void)FAILPOINT("store.committed");
	return rc == 0 ? 0 : commit_fail(st, err, rc);
}

static void *writer(void *arg)
{
	struct store *st = arg;
	struct pending *j;
	uint64_t one = 1;

	pthread_mutex_lock(&st->mu);
	for (;;) {
		while (!st->todo && !st->quit)
			pthread_cond_wait(&st->wake, &st->mu);
		j = st->todo;
		if (!j)
			break;
		st->todo = j->next;
		if (!st->todo)
			st->todo_end = &st->todo;
		pthread_mutex_unlock(&st->mu);

		j->rc = write_batch(st, &j->batch, &j->err);
		batch_done(&j->batch);

		pthread_mutex_lock(&st->mu);
		j->next = NULL;
		*st->done_end = j;
		st->done_end = &j->next;
		if (write(st->done_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
			break;
	}
	pthread_mutex_unlock(&st->mu);
	return NULL;
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
	struct store *st = arg;
	struct pending *list, *next;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		log_err("store.eventfd", "error=%s", strerror(errno));
	pthread_mutex_lock(&st->mu);
	list = st->done;
	st->done = NULL;
	st->done_end = &st->done;
	pthread_mutex_unlock(&st->mu);
	for (; list; list = next) {
		next = list->next;
		st->fn(st->arg, list->seq, list->rc, &list->err);
		free(list);
	}
}

int store_open(const char *dir, const struct store_opts *o, struct store **out, bool *fresh,
	       struct gpuq_err *err)
{
	struct store *st = calloc(1, sizeof(*st));
	int rc;

	if (!st || !(st->dir = strdup(dir))) {
		free(st);
		return gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	}
	st->lock_fd = st->done_fd = -1;
	st->todo_end = &st->todo;
	st->done_end = &st->done;
	pthread_mutex_init(&st->mu, NULL);
	pthread_cond_init(&st->wake, NULL);
	rc = make_dirs(dir, err);
	if (rc == 0 && !o->unsafe_fs)
		rc = check_fs(dir, err);
	if (rc == 0)
		rc = take_lock(st, err);
	if (rc == 0)
		rc = open_env(st, o, fresh, err);
	if (rc != 0) {
		store_close(st);
		return rc;
	}
	*out = st;
	return 0;
}

int store_attach(struct store *st, struct loop *l, store_done_fn fn, void *arg,
		 struct gpuq_err *err)
{
	st->fn = fn;
	st->arg = arg;
	st->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (st->done_fd >= 0)
		st->ev = event_new(loop_base(l), st->done_fd, EV_READ | EV_PERSIST, on_done, st);
	if (!st->ev || event_add(st->ev, NULL) != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: cannot watch the writer");
	if (pthread_create(&st->thread, NULL, writer, st) != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: cannot start the writer");
	st->running = true;
	return 0;
}

void store_write(struct store *st, struct batch *b, uint64_t seq)
{
	struct pending *j = calloc(1, sizeof(*j));

	if (!j)
		abort(); /* a lost batch must not look like a stored one */
	j->batch = *b;
	j->seq = seq;
	batch_init(b);
	pthread_mutex_lock(&st->mu);
	*st->todo_end = j;
	st->todo_end = &j->next;
	pthread_cond_signal(&st->wake);
	pthread_mutex_unlock(&st->mu);
}

int store_write_now(struct store *st, const struct batch *b, struct gpuq_err *err)
{
	return write_batch(st, b, err);
}

void store_close_writer(struct store *st)
{
	if (!st || !st->running)
		return;
	pthread_mutex_lock(&st->mu);
	st->quit = true;
	pthread_cond_signal(&st->wake);
	pthread_mutex_unlock(&st->mu);
	pthread_join(st->thread, NULL);
	st->running = false;
}

void store_close(struct store *st)
{
	struct pending *next;

	if (!st)
		return;
	store_close_writer(st);
	for (struct pending *j = st->done; j; j = next) {
		next = j->next;
		free(j);
	}
	if (st->ev)
		event_free(st->ev);
	if (st->done_fd >= 0)
		close(st->done_fd);
	if (st->env)
		mdb_env_close(st->env);
	if (st->lock_fd >= 0)
		close(st->lock_fd);
	pthread_cond_destroy(&st->wake);
	pthread_mutex_destroy(&st->mu);
	free(st->dir);
	free(st);
}

/* ---- reading ---- */

static int check_record(enum table t, const MDB_val *k, const MDB_val *v, struct gpuq_err *err)
{
	const unsigned char *p = v->mv_data, *kp = k->mv_data;
	char hex[49];
	uint32_t crc;
	size_t n;

	if (v->mv_size >= HEAD_BYTES && p[0] == RECORD_VERSION && p[1] == (unsigned char)t) {
		memcpy(&crc, p + 2, 4);
		if (crc == (crc32c(p + HEAD_BYTES, v->mv_size - HEAD_BYTES) ^
			    ((uint32_t)p[0] << 8 | p[1])))
			return 0;
	}
	for (n = 0; n < k->mv_size && n < 24; n++)
		snprintf(hex + 2 * n, 3, "%02x", kp[n]);
	hex[2 * n] = '\0';
	return gpuq_fail(err, GPUQ_ECORRUPT,
			 "store: record %s of table %s is damaged: keep the files and restore a "
			 "backup",
			 hex, table_names[t]);
}

int store_get(struct store *st, enum table t, const void *key, size_t key_len, struct gpuq_buf *val,
	      struct gpuq_err *err)
{
	MDB_val k = { key_len, (void *)key }, v;
	MDB_txn *txn = NULL;
	int rc = mdb_txn_begin(st->env, NULL, MDB_RDONLY, &txn);

	if (rc != 0)
		return store_fail(err, rc, "read");
	rc = mdb_get(txn, st->dbi[t], &k, &v);
	if (rc != 0) {
		rc = store_fail(err, rc, table_names[t]);
	} else {
		rc = check_record(t, &k, &v, err);
		if (rc == 0)
			rc = gpuq_buf_add(val, (char *)v.mv_data + HEAD_BYTES,
					  v.mv_size - HEAD_BYTES);
	}
	mdb_txn_abort(txn);
	return rc;
}

/* What a walk through a table looks for. */
struct range {
	const void *prefix, *from;
	size_t prefix_len, from_len, max;
	bool backwards;
};

static int walk(struct store *st, MDB_txn *txn, enum table t, const struct range *r,
		store_each_fn fn, void *arg, struct gpuq_err *err)
{
	MDB_val k = { r->from ? r->from_len : r->prefix_len,
		      (void *)(r->from ? r->from : r->prefix) },
		v;
	MDB_cursor *cur = NULL;
	MDB_cursor_op op = k.mv_size == 0 ? (r->backwards ? MDB_LAST : MDB_FIRST) : MDB_SET_RANGE;
	size_t n = 0;
	int rc, answer = 0;

	rc = mdb_cursor_open(txn, st->dbi[t], &cur);
	if (rc == 0)
		rc = mdb_cursor_get(cur, &k, &v, op);
	/* SET_RANGE finds the first key at or above: going back starts one before. */
	if (r->backwards && op == MDB_SET_RANGE) {
		if (rc == MDB_NOTFOUND)
			rc = mdb_cursor_get(cur, &k, &v, MDB_LAST);
		else if (rc == 0 &&
			 (k.mv_size != r->from_len || memcmp(k.mv_data, r->from, r->from_len) != 0))
			rc = mdb_cursor_get(cur, &k, &v, MDB_PREV);
	}
	while (rc == 0 && answer == 0 && (r->max == 0 || n < r->max)) {
		if (r->prefix_len &&
		    (k.mv_size < r->prefix_len || memcmp(k.mv_data, r->prefix, r->prefix_len) != 0))
			break;
		if (!(t == TABLE_META && k.mv_size == 6 && memcmp(k.mv_data, "schema", 6) == 0)) {
			rc = check_record(t, &k, &v, err);
			if (rc != 0) {
				answer = rc;
				break;
			}
			answer =
				fn(arg, k.mv_data, k.mv_size,
				   (unsigned char *)v.mv_data + HEAD_BYTES, v.mv_size - HEAD_BYTES);
			n++;
		}
		rc = mdb_cursor_get(cur, &k, &v, r->backwards ? MDB_PREV : MDB_NEXT);
	}
	if (cur)
		mdb_cursor_close(cur);
	if (answer != 0)
		return answer;
	return rc == 0 || rc == MDB_NOTFOUND ? 0 : store_fail(err, rc, table_names[t]);
}

int store_each(struct store *st, enum table t, const void *prefix, size_t prefix_len,
	       const void *from, size_t from_len, bool backwards, size_t max, store_each_fn fn,
	       void *arg, struct gpuq_err *err)
{
	const struct range r = { prefix, from, prefix_len, from_len, max, backwards };
	MDB_txn *txn = NULL;
	int rc = mdb_txn_begin(st->env, NULL, MDB_RDONLY, &txn);

	if (rc != 0)
		return store_fail(err, rc, table_names[t]);
	rc = walk(st, txn, t, &r, fn, arg, err);
	mdb_txn_abort(txn);
	return rc;
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
	MDB_txn *txn = NULL;
	int rc = mdb_txn_begin(st->env, NULL, MDB_RDONLY, &txn);

	if (rc != 0)
		return store_fail(err, rc, "read");
	for (size_t i = 0; i < n && rc == 0; i++) {
		x.table = tables[i];
		rc = walk(st, txn, x.table, &all, one_of_all, &x, err);
	}
	mdb_txn_abort(txn);
	return rc;
}

size_t store_count(struct store *st, enum table t)
{
	MDB_stat stat = { 0 };
	MDB_txn *txn = NULL;

	if (mdb_txn_begin(st->env, NULL, MDB_RDONLY, &txn) != 0)
		return 0;
	if (mdb_stat(txn, st->dbi[t], &stat) != 0)
		stat.ms_entries = 0;
	mdb_txn_abort(txn);
	return stat.ms_entries;
}

int store_clear(struct store *st, enum table t, struct gpuq_err *err)
{
	MDB_txn *txn = NULL;
	int rc = mdb_txn_begin(st->env, NULL, 0, &txn);

	if (rc == 0)
		rc = mdb_drop(txn, st->dbi[t], 0);
	if (rc == 0)
		rc = mdb_txn_commit(txn);
	else if (txn)
		mdb_txn_abort(txn);
	return rc == 0 ? 0 : commit_fail(st, err, rc);
}

int store_backup(struct store *st, const char *dir, struct gpuq_err *err)
{
	int rc = make_dirs(dir, err);

	if (rc < 0)
		return rc;
	rc = mdb_env_copy2(st->env, dir, 0);
	if (rc != 0)
		return store_fail(err, rc, "backup");
	fsync_dir(dir);
	return 0;
}

/* ---- figures and copies ---- */

int store_stats(struct store *st, struct store_stats *out, struct gpuq_err *err)
{
	MDB_txn *txn = NULL;
	MDB_envinfo info;
	MDB_stat stat;
	struct statvfs v;
	int rc = mdb_txn_begin(st->env, NULL, MDB_RDONLY, &txn);

	if (rc != 0)
		return store_fail(err, rc, "read");
	*out = (struct store_stats){ 0 };
	for (int t = 0; rc == 0 && t < N_TABLES; t++) {
		rc = mdb_stat(txn, st->dbi[t], &stat);
		out->n_records[t] = stat.ms_entries;
	}
	mdb_txn_abort(txn);
	if (rc == 0)
		rc = mdb_env_info(st->env, &info);
	if (rc != 0)
		return store_fail(err, rc, "read");
	out->bytes = (uint64_t)(info.me_last_pgno + 1) * stat.ms_psize;
	out->map_bytes = info.me_mapsize;
	if (statvfs(st->dir, &v) == 0) {
		out->free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
		out->disk_bytes = (uint64_t)v.f_blocks * v.f_frsize;
	}
	return 0;
}

int store_scratch(struct store *st, struct gpuq_err *err)
{
	struct store_stats s;
	char path[4200];
	int fd, rc = store_stats(st, &s, err);

	if (rc < 0)
		return rc;
	/* The copy must not be what fills the disk. */
	if (s.free_bytes < s.bytes + BALLAST_BYTES)
		return gpuq_fail(err, GPUQ_ESTORAGE,
				 "%s: a copy takes up to %llu MiB, %llu MiB are free", st->dir,
				 (unsigned long long)(s.bytes >> 20),
				 (unsigned long long)(s.free_bytes >> 20));
	snprintf(path, sizeof(path), "%s/copy-XXXXXX", st->dir);
	fd = mkstemp(path);
	if (fd < 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	unlink(path); /* however this ends, nothing is left behind */
	return fd;
}

int store_copy(struct store *st, int fd, struct gpuq_err *err)
{
	int rc = mdb_env_copyfd2(st->env, fd, MDB_CP_COMPACT);

	return rc == 0 ? 0 : store_fail(err, rc, "copy");
}
