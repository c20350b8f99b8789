/* meta.h - what META says of the whole database: identity, position, counts and digests
 *
 * Owns     nothing. Touches memory only.
 * Used by  the files of store/.
 *
 * It is one record of META, "store", written anew by each transaction and sealed like any
 * other; beside it "schema" tells which version of gpuqd can read all the rest. Neither is part
 * of META's own count and digest.
 */
#ifndef GPUQD_STORE_META_H
#define GPUQD_STORE_META_H

#include "gpuqd/store/pages.h"
#include "gpuqd/store/seal.h"
#include "gpuqd/store/store.h"

#define META_KEY "store"
#define SCHEMA_KEY "schema"
#define META_OTHERS_MAX 64

/* A table that a later gpuqd made and this one does not know; it is left alone. */
struct meta_other {
	char name[PAGES_NAME_MAX + 1];
	struct seal_sum sum;
};

struct store_meta {
	struct store_identity id;
	bool marked; /* a mark was written, and must be there */
	uint64_t txn; /* the transaction that wrote this: another meta page would be damaged */
	bool has[N_TABLES];
	struct seal_sum sums[N_TABLES];
	struct meta_other others[META_OTHERS_MAX];
	uint32_t n_others;
};

/* A new identity, of nothing. */
int meta_init(struct store_meta *s, struct gpuq_err *err);
void meta_write(const struct store_meta *s, struct gpuq_buf *out);
/* Bytes behind the fields that are known are skipped. GPUQ_ECORRUPT. */
int meta_read(struct store_meta *s, const void *bytes, size_t n, struct gpuq_err *err);
/* The sum of a table of that name; NULL when it is not listed. */
const struct seal_sum *meta_sum(const struct store_meta *s, const char *table);
enum table meta_table(const char *name); /* N_TABLES: not known */
bool meta_is_key(const void *key, size_t n); /* one of the two */

#define SCHEMA_BYTES 8
void schema_write(unsigned char out[SCHEMA_BYTES], uint32_t version);
/* False when it is damaged. Schema 1 stored the number alone. */
bool schema_read(const void *bytes, size_t n, uint32_t *version);

#endif
