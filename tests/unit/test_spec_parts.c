/* Specs in parts: what comes back, what is stored once, and when it goes. */
#include "gpuqd/store/spec_parts.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/varint.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/write.h"
#include "gpuqd/store/read.h"
#include "libgpuq/wire/mp.h"
#include "tests/prop/prop.h"

static size_t below(uint64_t *g, size_t n)
{
	return (size_t)(prop_random(g) % n);
}

/* ---- records in memory ---- */

struct row {
	enum table t;
	size_t key_len, val_len;
	unsigned char key[64];
	unsigned char *val;
};

static struct row rows[4096];
static size_t n_rows;

static struct row *find(enum table t, const void *key, size_t n)
{
	for (size_t i = 0; i < n_rows; i++)
		if (rows[i].t == t && rows[i].key_len == n && memcmp(rows[i].key, key, n) == 0)
			return &rows[i];
	return NULL;
}

static int get(void *arg, enum table t, const void *key, size_t key_len, const unsigned char **val,
	       size_t *val_len, struct gpuq_err *err)
{
	const struct row *r = find(t, key, key_len);

	(void)arg, (void)err;
	if (!r)
		return GPUQ_ENOENT;
	*val = r->val;
	*val_len = r->val_len;
	return 0;
}

static int put(void *arg, enum table t, const void *key, size_t key_len, const void *val,
	       size_t val_len, struct gpuq_err *err)
{
	struct row *r = find(t, key, key_len);

	(void)arg, (void)err;
	if (r) {
		free(r->val);
		*r = rows[--n_rows];
	}
	if (!val)
		return 0;
	r = &rows[n_rows++];
	r->t = t;
	r->key_len = key_len;
	memcpy(r->key, key, key_len);
	r->val = malloc(val_len + 1);
	memcpy(r->val, val, val_len);
	r->val_len = val_len;
	return 0;
}

static const struct spec_parts_io io = { get, put, NULL };

static void clear(void)
{
	while (n_rows > 0)
		free(rows[--n_rows].val);
}

static size_t count(enum table t)
{
	size_t n = 0;

	for (size_t i = 0; i < n_rows; i++)
		n += rows[i].t == t;
	return n;
}

static size_t bytes(void)
{
	size_t n = 0;

	for (size_t i = 0; i < n_rows; i++)
		n += rows[i].key_len + rows[i].val_len;
	return n;
}

/* ---- specs ---- */

static void text(char *out, size_t n, unsigned seed)
{
	for (size_t i = 0; i + 1 < n; i++)
		out[i] = (char)('a' + (i * i + i / 7 + (size_t)seed * (i % 13)) % 26);
	out[n - 1] = '\0';
}

/* A job as gpuq submits it, with that environment and that script; 0 = none. */
static struct gpuq_buf spec(unsigned id, unsigned environment, unsigned script)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&a), *context = gpuq_map(&a), *environ = gpuq_map(&a);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	static char big[3000];

	gpuq_put(&a, v, "name", gpuq_str(&a, gpuq_arena_printf(&a, "job-%u", id)));
	gpuq_put(&a, v, "gpus", gpuq_int(&a, 1));
	gpuq_put(&a, v, "share", gpuq_real(&a, 0.5));
	if (script) {
		text(big, 2000, script);
		gpuq_put(&a, v, "script", gpuq_str(&a, big));
	}
	for (unsigned i = 0; environment && i < 40; i++) {
		text(big, 60, environment * 64 + i);
		gpuq_put(&a, environ, gpuq_arena_printf(&a, "VARIABLE_%u", i),
			 gpuq_str(&a, gpuq_arena_strdup(&a, big)));
	}
	gpuq_put(&a, context, "cwd", gpuq_str(&a, gpuq_arena_printf(&a, "/runs/%u", id)));
	gpuq_put(&a, context, "environ", environ);
	gpuq_put(&a, v, "context", context);
	gpuq_mp_write(&b, v);
	gpuq_arena_done(&a);
	return b;
}

static int write_spec(struct spec_parts *p, unsigned id, const struct gpuq_buf *b)
{
	unsigned char key[4];

	return spec_parts_put(p, &io, key, change_key_u32(key, id), b ? b->data : NULL,
			      b ? b->len : 0, NULL);
}

static bool reads_back(unsigned id, const struct gpuq_buf *b)
{
	struct gpuq_buf out = GPUQ_BUF_INIT;
	unsigned char key[4];
	const struct row *r = find(TABLE_SPEC, key, change_key_u32(key, id));
	const bool same = r && spec_parts_get(&io, r->val, r->val_len, &out, NULL) == 0 &&
			  out.len == b->len && memcmp(out.data, b->data, b->len) == 0;

	gpuq_buf_done(&out);
	return same;
}

Test(spec_parts, equal_parts_are_stored_once_and_go_with_the_last_spec)
{
	struct spec_parts *p = spec_parts_new();
	struct gpuq_buf all[30];

	for (unsigned i = 0; i < 30; i++) {
		all[i] = spec(i, 1 + i / 10, 1 + i % 2);
		cr_assert_eq(write_spec(p, i, &all[i]), 0);
	}
	for (unsigned i = 0; i < 30; i++)
		cr_expect(reads_back(i, &all[i]));
	cr_expect_eq(count(TABLE_TEXT), 2 * (3 + 2), "three environments, two scripts");
	cr_expect_lt(bytes(), 30u * 160 + 5u * 1800, "%zu", bytes());

	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(write_spec(p, i, NULL), 0);
	cr_expect_eq(count(TABLE_TEXT), 2 * (2 + 2), "the first environment is gone");
	for (unsigned i = 10; i < 30; i++)
		cr_expect(reads_back(i, &all[i]));
	for (unsigned i = 0; i < 30; i++)
		cr_assert_eq(write_spec(p, i, NULL), 0, "the second time it is not there");
	cr_expect_eq(n_rows, 0u);
	for (unsigned i = 0; i < 30; i++)
		gpuq_buf_done(&all[i]);
	spec_parts_free(p);
}

Test(spec_parts, a_spec_that_is_replaced_keeps_what_both_have)
{
	struct spec_parts *p = spec_parts_new();
	struct gpuq_buf a = spec(1, 7, 1), b = spec(1, 7, 2), none = spec(1, 0, 0);

	cr_assert_eq(write_spec(p, 1, &a), 0);
	cr_assert_eq(write_spec(p, 1, &a), 0);
	cr_expect(reads_back(1, &a));
	cr_expect_eq(count(TABLE_TEXT), 4u);
	cr_assert_eq(write_spec(p, 1, &b), 0);
	cr_expect(reads_back(1, &b));
	cr_expect_eq(count(TABLE_TEXT), 4u);
	cr_assert_eq(write_spec(p, 1, &none), 0);
	cr_expect(reads_back(1, &none));
	cr_expect_eq(n_rows, 1u);
	clear();
	gpuq_buf_done(&a);
	gpuq_buf_done(&b);
	gpuq_buf_done(&none);
	spec_parts_free(p);
}

/* A hash that led to something else would give a job the script of another. */
Test(spec_parts, a_part_that_is_not_what_its_hash_says_is_refused)
{
	struct spec_parts *p = spec_parts_new();
	struct gpuq_buf a = spec(1, 0, 1), b = spec(2, 0, 2);
	struct gpuq_err err = GPUQ_ERR_INIT;
	unsigned char key[4], *swap;
	struct row *texts[2] = { NULL, NULL };
	size_t n = 0;

	cr_assert_eq(write_spec(p, 1, &a), 0);
	cr_assert_eq(write_spec(p, 2, &b), 0);
	for (size_t i = 0; i < n_rows && n < 2; i++)
		if (rows[i].t == TABLE_TEXT && rows[i].key[PARTS_HASH_BYTES] == 0)
			texts[n++] = &rows[i];
	cr_assert_eq(n, 2u);
	swap = texts[0]->val;
	n = texts[0]->val_len;
	texts[0]->val = texts[1]->val;
	texts[0]->val_len = texts[1]->val_len;
	texts[1]->val = swap;
	texts[1]->val_len = n;
	cr_expect_eq(spec_parts_put(p, &io, key, change_key_u32(key, 3), a.data, a.len, &err),
		     GPUQ_ECORRUPT);
	cr_expect_not_null(strstr(err.text, "not what its hash says"));
	/* A part that is missing is told as well. */
	put(NULL, TABLE_TEXT, texts[0]->key, texts[0]->key_len, NULL, 0, NULL);
	cr_expect(!reads_back(1, &a) || !reads_back(2, &b));
	clear();
	gpuq_buf_done(&a);
	gpuq_buf_done(&b);
	spec_parts_free(p);
}

/* Whatever the bytes are, they come back; nothing is left when they go. */
Test(spec_parts, any_bytes_come_back)
{
	struct spec_parts *p = spec_parts_new();

	for (unsigned round = 0; round < 3000; round++) {
		uint64_t g = round + 1;
		struct gpuq_buf b = GPUQ_BUF_INIT;
		unsigned char junk[2000];
		const size_t n = below(&g, sizeof(junk));

		if (round % 3 == 0) {
			for (size_t i = 0; i < n; i++)
				junk[i] = (unsigned char)below(&g, 256);
			gpuq_buf_add(&b, junk, n);
		} else {
			b = spec(round, (unsigned)below(&g, 4), (unsigned)below(&g, 4));
			/* Broken somewhere. */
			if (round % 3 == 1)
				for (unsigned i = 0; i < 3; i++)
					b.data[below(&g, b.len)] = (char)below(&g, 256);
		}
		cr_assert_eq(write_spec(p, round % 50, &b), 0);
		cr_assert(reads_back(round % 50, &b), "round %u", round);
		gpuq_buf_done(&b);
	}
	for (unsigned i = 0; i < 50; i++)
		cr_assert_eq(write_spec(p, i, NULL), 0);
	cr_expect_eq(n_rows, 0u);
	spec_parts_free(p);
}

/* Damaged records end in an error, or in bytes of the size that they say. */
Test(spec_parts, damaged_records_are_no_danger)
{
	struct spec_parts *p = spec_parts_new();
	struct gpuq_buf b = spec(1, 3, 2);
	unsigned char key[4];
	struct row *r;

	cr_assert_eq(write_spec(p, 1, &b), 0);
	r = find(TABLE_SPEC, key, change_key_u32(key, 1));
	cr_assert_not_null(r);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t g = i + 1;
		struct gpuq_buf out = GPUQ_BUF_INIT;
		struct row *hit = &rows[below(&g, n_rows)];
		const size_t at = below(&g, hit->val_len);
		const unsigned char was = hit->val[at];

		hit->val[at] = (unsigned char)below(&g, 256);
		(void)spec_parts_get(&io, r->val, below(&g, 8) ? r->val_len : at, &out, NULL);
		hit->val[at] = was;
		gpuq_buf_done(&out);
	}
	clear();
	gpuq_buf_done(&b);
	spec_parts_free(p);
}

/* ---- in a database ---- */

static void start(const char *dir, struct store **st)
{
	const struct store_opts o = { .unsafe_fs = true, .no_sync = true };
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool is_new;

	cr_assert_eq(store_open(dir, &o, st, &is_new, &err), 0, "%s", err.text);
}

static void audit(const char *dir, int expected)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct store *st;

	cr_assert_eq(store_open_to_read(dir, &st, &err), 0, "%s", err.text);
	cr_assert_eq(store_audit(st, NULL, &err), 0, "%s", err.text);
	cr_expect_eq(store_audit_parts(st, &err), expected, "%s", err.text);
	store_close(st);
}

Test(spec_parts, counts_hold_whatever_comes_and_goes)
{
	char dir[] = "/tmp/gpuq-parts.XXXXXX";
	struct gpuq_buf specs[20] = { 0 };
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct batch b;
	struct store *st;
	uint64_t g = 5;

	cr_assert_not_null(mkdtemp(dir));
	start(dir, &st);
	for (unsigned round = 0; round < 200; round++) {
		change_batch_init(&b);
		for (unsigned i = 0; i < 8; i++) {
			const unsigned id = (unsigned)below(&g, 20);

			gpuq_buf_done(&specs[id]);
			if (below(&g, 3))
				specs[id] =
					spec(id, (unsigned)below(&g, 3), (unsigned)below(&g, 3));
			change_batch_put(&b, TABLE_SPEC, key, change_key_u32(key, id),
					 specs[id].data, specs[id].len);
		}
		cr_assert_eq(store_write_now(st, &b, &err), 0, "%s", err.text);
		change_batch_done(&b);
		if (round % 50 == 0) {
			store_close(st);
			audit(dir, 0);
			start(dir, &st);
		}
	}
	for (unsigned i = 0; i < 20; i++) {
		struct gpuq_buf out = GPUQ_BUF_INIT;
		const int rc = store_get(st, TABLE_SPEC, key, change_key_u32(key, i), &out, NULL);

		cr_expect_eq(rc, specs[i].data ? 0 : GPUQ_ENOENT);
		cr_expect(out.len == specs[i].len &&
			  (out.len == 0 || memcmp(out.data, specs[i].data, out.len) == 0));
		gpuq_buf_done(&out);
		gpuq_buf_done(&specs[i]);
	}
	/* A count that is wrong is found. */
	specs[0] = spec(0, 9, 9);
	change_batch_init(&b);
	change_batch_put(&b, TABLE_SPEC, key, change_key_u32(key, 0), specs[0].data, specs[0].len);
	memset(key, 7, PARTS_HASH_BYTES);
	key[PARTS_HASH_BYTES] = 1;
	change_batch_put(&b, TABLE_TEXT, key, PARTS_HASH_BYTES + 1, "\x91\x02", 2);
	cr_assert_eq(store_write_now(st, &b, &err), 0, "%s", err.text);
	change_batch_done(&b);
	store_close(st);
	audit(dir, GPUQ_ECORRUPT);
	gpuq_buf_done(&specs[0]);
}
