#include "gpuqd/store/upgrade.h"
#include "gpuqd/store/store_int.h"
#include "gpuqd/store/write.h"
#include "gpuqd/store/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/store/place.h"

#define BATCH_RECORDS 20000u /* written at a time: bounds the memory it takes */
#define BATCH_BYTES (8u << 20)
#define KEPT_MAX 100 /* names that are tried for the old file */

/* ---- conversion ---- */

struct convert {
	struct store *to;
	struct store_meta next;
	unsigned from;
	const struct store_opts *opts;
	enum table table;
	struct batch out;
	size_t bytes; /* of records read since the last write */
	uint64_t n_records;
	struct gpuq_err *err;
};

static int write_out(struct convert *c)
{
	int rc = store_commit(c->to, &c->out, N_TABLES, &c->next, c->err);

	change_batch_done(&c->out);
	c->bytes = 0;
	return rc;
}

static int hand_over(struct convert *c, const unsigned char *key, size_t key_len,
		     const unsigned char *val, size_t val_len)
{
	if (c->opts->upgrade)
		return c->opts->upgrade(c->opts->upgrade_arg, c->from, c->table, key, key_len, val,
					val_len, &c->out, c->err);
	if (key)
		change_batch_put(&c->out, c->table, key, key_len, val, val_len);
	return 0;
}

static int bad_record(const struct convert *c)
{
	return gpuq_fail(c->err, GPUQ_ECORRUPT,
			 "store: a record of table %s is damaged: keep the files and restore a "
			 "backup",
			 table_names[c->table]);
}

static int on_record(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		     size_t val_len)
{
	struct convert *c = arg;
	int rc;

	if (c->table == TABLE_META && meta_is_key(key, key_len))
		return 0;
	if (!seal_holds_1(val, val_len))
		return bad_record(c);
	rc = hand_over(c, key, key_len, val + SEAL_BYTES_1, val_len - SEAL_BYTES_1);
	c->n_records++;
	c->bytes += key_len + val_len;
	if (rc == 0 && (c->out.n >= BATCH_RECORDS || c->bytes >= BATCH_BYTES))
		rc = write_out(c);
	return rc;
}

/* Tables that other records refer to come first. */
static const enum table first[] = { TABLE_META,    TABLE_SITE, TABLE_NODE,
				    TABLE_REQUEST, TABLE_SPEC, TABLE_JOB };
enum { N_FIRST = sizeof(first) / sizeof(first[0]) };

static bool is_first(enum table t)
{
	for (size_t i = 0; i < N_FIRST; i++)
		if (first[i] == t)
			return true;
	return false;
}

static int convert_table(struct convert *c, struct check *old, enum table t)
{
	const struct pages_tree *tree = check_tree(old, t);

	c->table = t;
	return tree ? pages_walk(check_pages(old), tree, on_record, c, c->err) : 0;
}

static int convert_all(struct convert *c, struct check *old)
{
	int rc = 0;

	pages_forget(check_pages(old)); /* META was read when it was opened */
	for (size_t i = 0; i < N_FIRST && rc == 0; i++)
		rc = convert_table(c, old, first[i]);
	for (int t = 0; t < N_TABLES && rc == 0; t++)
		if (!is_first((enum table)t))
			rc = convert_table(c, old, (enum table)t);
	c->table = N_TABLES;
	if (rc == 0)
		rc = hand_over(c, NULL, 0, NULL, 0);
	return rc == 0 ? write_out(c) : rc;
}

static int has_room(const char *dir, uint64_t bytes, struct gpuq_err *err)
{
	struct statvfs v;
	uint64_t there;

	if (statvfs(dir, &v) != 0)
		return 0;
	there = (uint64_t)v.f_bavail * v.f_frsize;
	if (there > bytes + BALLAST_BYTES)
		return 0;
	return gpuq_fail(err, GPUQ_ESTORAGE,
			 "%s: the new database takes up to %llu MiB beside the old one, %llu MiB "
			 "are free: free space and start again",
			 dir, (unsigned long long)((bytes + BALLAST_BYTES) >> 20) + 1,
			 (unsigned long long)(there >> 20));
}

int store_convert(const char *dir, struct check *old, const struct store_opts *o, bool flag,
		  struct gpuq_err *err)
{
	struct store_opts opts = { .map_bytes = o->map_bytes };
	struct convert c = { .from = check_schema(old), .opts = o, .err = err };
	char path[PATH_BYTES];
	int rc = has_room(dir, pages_bytes(check_pages(old)), err);

	if (rc < 0)
		return rc;
	c.to = store_alloc(NULL, &opts);
	if (!c.to)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	change_batch_init(&c.out);
	snprintf(path, sizeof(path), "%.4000s/" NEW_FILE, dir);
	unlink(path);
	rc = meta_init(&c.to->state, err);
	c.to->state.id.flagged_copy = flag;
	/* Its name counts only once it is whole: its transactions need no fsync each. */
	if (rc == 0)
		rc = store_open_env(c.to, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, true, err);
	c.next = c.to->state;
	if (rc == 0)
		rc = convert_all(&c, old);
	if (rc == 0 && mdb_env_sync(c.to->env, 1) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	change_batch_done(&c.out);
	store_close(c.to);
	if (rc < 0)
		unlink(path);
	(void)FAILPOINT("upgrade.written");
	return rc;
}

/* ---- in its place ---- */

/* Give the old file a second name that stays; what stands there of an earlier upgrade is kept. */
static int keep_old(const char *dir, struct check *old, struct gpuq_err *err)
{
	char path[PATH_BYTES], kept[PATH_BYTES];
	struct stat is, other;
	int n;

	snprintf(path, sizeof(path), "%.4000s/" DATA_FILE, dir);
	if (fstat(check_fd(old), &is) != 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	n = snprintf(kept, sizeof(kept), "%.4000s/" DATA_FILE ".schema-%u", dir, check_schema(old));
	for (int i = 2; link(path, kept) != 0; i++) {
		if (errno != EEXIST || i > KEPT_MAX)
			return gpuq_fail(err, GPUQ_EIO, "%s: %s", kept, strerror(errno));
		if (stat(kept, &other) == 0 && other.st_ino == is.st_ino &&
		    other.st_dev == is.st_dev)
			return 0; /* an upgrade came that far and was ended */
		snprintf(kept + n, sizeof(kept) - (size_t)n, ".%d", i);
	}
	return 0;
}

static int put_in_place(const char *dir, struct gpuq_err *err)
{
	char path[PATH_BYTES], made[PATH_BYTES];

	snprintf(path, sizeof(path), "%.4000s/" DATA_FILE, dir);
	snprintf(made, sizeof(made), "%.4000s/" NEW_FILE, dir);
	store_fsync_dir(dir);
	(void)FAILPOINT("upgrade.kept");
	if (rename(made, path) != 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	(void)FAILPOINT("upgrade.renamed");
	store_fsync_dir(dir);
	return 0;
}

int store_upgrade(const char *dir, struct check *old, const struct store_opts *o,
		  struct gpuq_err *err)
{
	int rc = store_convert(dir, old, o, false, err);

	if (rc == 0)
		rc = keep_old(dir, old, err);
	if (rc == 0)
		rc = put_in_place(dir, err);
	if (rc == 0)
		log_notice("store.upgraded",
			   "from=%u to=%d dir=%s: the old database is kept beside it",
			   check_schema(old), STORE_SCHEMA, LOGS(dir));
	return rc;
}

/* ---- a copy that becomes the database ---- */

static int copy_file(int from, const char *path, struct gpuq_err *err)
{
	char chunk[1 << 16];
	off_t at = 0;
	ssize_t n;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	while ((n = pread(from, chunk, sizeof(chunk), at)) > 0) {
		if (write(fd, chunk, (size_t)n) != n)
			break;
		at += n;
	}
	if (n != 0) {
		gpuq_fail(err, errno == ENOSPC ? GPUQ_ESTORAGE : GPUQ_EIO, "%s: %s", path,
			  strerror(errno));
		close(fd);
		return err->code;
	}
	return fd;
}

static int restore_file(const char *dir, struct check *old, struct gpuq_err *err)
{
	char path[PATH_BYTES];
	int fd, rc = check_wait(old, N_TABLES, err);

	if (rc == 0)
		rc = has_room(dir, pages_bytes(check_pages(old)), err);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%.4000s/" NEW_FILE, dir);
	fd = copy_file(check_fd(old), path, err);
	if (fd < 0)
		return fd;
	rc = store_flag_copy(fd, NULL, err);
	if (rc == 0 && fsync(fd) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	close(fd);
	return rc;
}

int store_restore_place(const char *dir, struct gpuq_err *err)
{
	char path[PATH_BYTES];
	int rc = place_make(dir, err);

	snprintf(path, sizeof(path), "%.4000s/" DATA_FILE, dir);
	if (rc == 0 && access(path, F_OK) == 0)
		rc = gpuq_fail(err, GPUQ_ECONFLICT,
			       "%s exists: a backup is restored into a state directory without a "
			       "database; move it away first",
			       path);
	return rc;
}

int store_restore(const char *dir, const char *file, const struct store_opts *o,
		  int (*amend)(void *arg, const char *path, struct gpuq_err *err), void *arg,
		  struct gpuq_err *err)
{
	struct check *old = NULL;
	char path[PATH_BYTES];
	int rc = place_make(dir, err), lock = -1;

	if (rc == 0 && !o->unsafe_fs)
		rc = place_check_fs(dir, err);
	if (rc == 0)
		rc = lock = place_lock(dir, err);
	if (rc >= 0)
		rc = store_restore_place(dir, err);
	snprintf(path, sizeof(path), "%.4000s/" NEW_FILE, dir);
	if (rc >= 0)
		rc = check_open(file, &old, err);
	if (rc == GPUQ_ENOENT && access(file, F_OK) == 0)
		rc = gpuq_fail(err, GPUQ_ECORRUPT, "%s holds no database", file);
	if (rc == 0)
		rc = check_schema(old) < STORE_SCHEMA ? store_convert(dir, old, o, true, err)
						      : restore_file(dir, old, err);
	if (rc == 0)
		rc = amend ? amend(arg, path, err) : 0;
	if (rc == 0)
		rc = put_in_place(dir, err);
	else if (old)
		unlink(path);
	check_close(old);
	if (lock >= 0)
		close(lock);
	return rc;
}
