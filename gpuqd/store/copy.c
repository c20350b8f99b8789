#include "gpuqd/store/copy.h"
#include "gpuqd/store/store_int.h"
#include "gpuqd/store/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/store/place.h"

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

static int read_stored(struct store *st, struct store_meta *out, struct gpuq_err *err)
{
	MDB_val k = { strlen(META_KEY), (void *)META_KEY }, v;
	MDB_txn *txn = NULL;
	uint32_t crc;
	int rc = mdb_txn_begin(st->env, NULL, MDB_RDONLY, &txn);

	if (rc == 0)
		rc = mdb_get(txn, st->dbi[TABLE_META], &k, &v);
	if (rc != 0)
		rc = store_fail(err, rc, "copy");
	else if (!seal_holds(st->seeds[TABLE_META], k.mv_data, k.mv_size, v.mv_data, v.mv_size,
			     &crc))
		rc = gpuq_fail(err, GPUQ_ECORRUPT, "store: record store of table meta is damaged");
	else
		rc = meta_read(out, (unsigned char *)v.mv_data + SEAL_BYTES, v.mv_size - SEAL_BYTES,
			       err);
	mdb_txn_abort(txn);
	return rc;
}

int store_flag_copy(int fd, struct store_identity *id, struct gpuq_err *err)
{
	static const struct store_opts opts = { .no_sync = true };
	struct store *st = store_alloc(NULL, &opts);
	struct store_meta next;
	char path[64];
	int rc;

	if (!st)
		return gpuq_fail(err, GPUQ_ENOMEM, "store: out of memory");
	/* The file may have no name any more. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = store_open_env(st, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, false, err);
	if (rc == 0)
		rc = read_stored(st, &next, err);
	if (rc == 0) {
		next.id.flagged_copy = true;
		next.id.seq--; /* the position stays */
		rc = store_commit(st, NULL, N_TABLES, &next, err);
	}
	if (rc == 0 && id)
		*id = next.id;
	store_close(st);
	return rc;
}

int store_copy(struct store *st, int fd, struct store_identity *id, struct gpuq_err *err)
{
	int rc = check_wait(st->check, N_TABLES, err);

	if (rc < 0)
		return rc;
	rc = mdb_env_copyfd2(st->env, fd, MDB_CP_COMPACT);
	return rc == 0 ? store_flag_copy(fd, id, err) : store_fail(err, rc, "copy");
}
