/* read.h - records of a store, read
 *
 * Touches  the database, which it does not change.
 * Used by  flow; audit_parts.c, upgrade.c.
 */
#ifndef GPUQD_STORE_READ_H
#define GPUQD_STORE_READ_H

#include "gpuqd/store/store.h"

/* True if readers of the table do not wait for its check at the start, so that the event loop may
 * read it; if false, it is checked next. */
bool store_is_checked(struct store *st, enum table t);

/* One committed record into val (appended). Returns 0, GPUQ_ENOENT, GPUQ_ECORRUPT
 * (err names table and key), GPUQ_EIO. */
int store_get(struct store *st, enum table t, const void *key, size_t key_len, struct gpuq_buf *val,
	      struct gpuq_err *err);

/* All records of a table whose key begins with prefix, in key order, from `from` on
 * (NULL = the first). fn's non-zero answer stops and is returned. At most
 * max records (0 = all); long walks are the caller's to cut into pages. */
typedef int (*store_each_fn)(void *arg, const unsigned char *key, size_t key_len,
			     const unsigned char *val, size_t val_len);
int store_each(struct store *st, enum table t, const void *prefix, size_t prefix_len,
	       const void *from, size_t from_len, bool backwards, size_t max, store_each_fn fn,
	       void *arg, struct gpuq_err *err);

/* All records of those tables, one table after the other, as they stand at one moment,
 * whatever is written meanwhile. */
typedef int (*store_all_fn)(void *arg, enum table t, const unsigned char *key, size_t key_len,
			    const unsigned char *val, size_t val_len);
int store_all(struct store *st, const enum table *tables, size_t n, store_all_fn fn, void *arg,
	      struct gpuq_err *err);

/* Records of a table, without looking at them. 0 when it cannot be read. */
size_t store_count(struct store *st, enum table t);
/* Return the bytes of the pages of a table. 0 when it cannot be read. */
int64_t store_bytes(struct store *st, enum table t);

/* All records of a table as they are stored, specs in parts. */
int store_each_raw(struct store *st, enum table t, store_each_fn fn, void *arg,
		   struct gpuq_err *err);

#endif
