/* Do the counts of parts say how many specs name them? */
#include "gpuqd/store/store.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/store/read.h"
#include "gpuqd/util/varint.h"
#include "gpuqd/store/store_int.h"
#include "libgpuq/grow.h"

struct hash {
	unsigned char bytes[PARTS_HASH_BYTES];
};

struct audit {
	struct hash *refs; /* of all specs, sorted before the parts are examined */
	size_t n, room, at;
	bool no_memory;
	struct gpuq_err *err;
};

static void note(void *arg, const unsigned char *hash)
{
	struct audit *a = arg;

	if (!grow_to(&a->refs, &a->room, a->n + 1)) {
		a->no_memory = true;
		return;
	}
	memcpy(a->refs[a->n++].bytes, hash, PARTS_HASH_BYTES);
}

static int on_spec(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		   size_t val_len)
{
	struct audit *a = arg;

	(void)key, (void)key_len;
	if (spec_parts_refs(val, val_len, note, a) < 0)
		return gpuq_fail(a->err, GPUQ_ECORRUPT, "store: a spec is incomplete");
	return a->no_memory ? gpuq_no_memory(a->err) : 0;
}

static int by_bytes(const void *x, const void *y)
{
	return memcmp(x, y, PARTS_HASH_BYTES);
}

/* Parts come in the order of their hashes, each before its count. */
static int on_text(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		   size_t val_len)
{
	struct rec r = { val, val + val_len, false };
	struct audit *a = arg;
	int64_t count, n = 0;

	if (key_len != PARTS_HASH_BYTES + 1)
		return gpuq_fail(a->err, GPUQ_ECORRUPT, "store: a key of table text is incomplete");
	if (key[PARTS_HASH_BYTES] == 0)
		return 0;
	rec_get_array(&r);
	count = rec_get_int(&r);
	for (; a->at < a->n && memcmp(a->refs[a->at].bytes, key, PARTS_HASH_BYTES) == 0; a->at++)
		n++;
	if (r.bad || n != count)
		return gpuq_fail(a->err, GPUQ_ECORRUPT,
				 "store: %lld specs name a part whose count is %lld", (long long)n,
				 (long long)count);
	return 0;
}

/* Each spec comes together from its parts, too: a walk reads them all. */
static int on_whole(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		    size_t val_len)
{
	(void)arg, (void)key, (void)key_len, (void)val, (void)val_len;
	return 0;
}

int store_audit_parts(struct store *st, struct gpuq_err *err)
{
	struct audit a = { .err = err };
	int rc = store_each_raw(st, TABLE_SPEC, on_spec, &a, err);

	if (rc == 0) {
		if (a.n)
			qsort(a.refs, a.n, sizeof(*a.refs), by_bytes);
		rc = store_each_raw(st, TABLE_TEXT, on_text, &a, err);
	}
	if (rc == 0 && a.at != a.n)
		rc = gpuq_fail(err, GPUQ_ECORRUPT,
			       "store: a part that a spec names is not there, or has no count");
	if (rc == 0)
		rc = store_each(st, TABLE_SPEC, NULL, 0, NULL, 0, false, 0, on_whole, NULL, err);
	free(a.refs);
	return rc;
}
