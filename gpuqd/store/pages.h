/* pages.h - the pages of a database file, read and checked without LMDB
 *
 * Owns     a bit per page (in use, seen). Touches a file, by pread(2) only.
 * Used by  store/check.c, store/upgrade.c, store/store_open.c.
 *
 * LMDB follows what a page says, out of the map or round in circles. Here every page that a
 * tree leads to is checked before anything is made of it: its number and kind, that its nodes
 * lie inside it and fill it, that keys ascend between the bounds of the branch above, that no
 * page is used twice, that counts are those of the tree. After that LMDB can trust the file.
 * The format is that of LMDB 0.9 (data version 1), as it lies in the file: of this machine's
 * byte order and word size.
 */
#ifndef GPUQD_STORE_PAGES_H
#define GPUQD_STORE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/err.h"

#define PAGES_NAME_MAX 63

struct pages;

/* A tree of pages, as its parent or the meta page describes it. */
struct pages_tree {
	char name[PAGES_NAME_MAX + 1]; /* of the table; for messages too */
	uint32_t depth;
	size_t n_branch, n_leaf, n_overflow, n_records, root;
};

/* Check the size and both meta pages of the file; fd stays the caller's and must stay open.
 * Returns 0; GPUQ_ENOENT (no transaction was ever committed to it, or it is empty),
 * GPUQ_ECORRUPT, GPUQ_EIO. */
int pages_open(int fd, struct pages **out, struct gpuq_err *err);
void pages_close(struct pages *p);

/* The number of the last transaction. */
uint64_t pages_txn(const struct pages *p);
/* Bytes that are in use, or were. */
uint64_t pages_bytes(const struct pages *p);

/* Read and check the list of tables. fn's non-zero answer stops and is returned. */
typedef int (*pages_table_fn)(void *arg, const struct pages_tree *t);
int pages_tables(struct pages *p, pages_table_fn fn, void *arg, struct gpuq_err *err);

/* Check all pages of a tree and hand over its records in key order; key and val are valid
 * during the call only. fn (NULL is fine) answers non-zero to stop: that is returned. Each
 * tree can be walked once. Different threads may walk different trees. */
typedef int (*pages_record_fn)(void *arg, const unsigned char *key, size_t key_len,
			       const unsigned char *val, size_t val_len);
int pages_walk(struct pages *p, const struct pages_tree *t, pages_record_fn fn, void *arg,
	       struct gpuq_err *err);

/* Forget what was walked: each tree can be walked again. */
void pages_forget(struct pages *p);

/* After every tree was walked: no page that is in use is in the list of free ones, which the
 * next transactions write to. */
int pages_check_free(struct pages *p, struct gpuq_err *err);

#endif
