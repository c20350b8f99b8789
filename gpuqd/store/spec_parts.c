#include "gpuqd/store/spec_parts.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>
#include <zlib.h>

#include "gpuqd/util/varint.h"
#include "libgpuq/limits.h"

#define PART_BYTES_MIN 256 /* smaller members stay in the spec's own record */
#define PARTS_MAX 64 /* of one spec */
#define DEFLATE_LEVEL 3 /* a third of the time of the default, for two hundredths more bytes */
#define DEFLATE_BYTES_MIN 64
/* Stands for a part: a MessagePack extension of this type, with the hash. */
#define REF_TYPE 1
#define REF_BYTES (3 + PARTS_HASH_BYTES)

/* Key of a part, and of its count, which follows it. */
#define TEXT_KEY_BYTES (PARTS_HASH_BYTES + 1)
enum { TEXT_BYTES, TEXT_COUNT };

struct spec_parts {
	z_stream deflate;
	unsigned char *room;
	size_t n_room;
	/* The part that was compared last: jobs of one call have the same environment. */
	unsigned char last_hash[PARTS_HASH_BYTES];
	unsigned char *last;
	size_t n_last, room_last;
};

struct spec_parts *spec_parts_new(void)
{
	struct spec_parts *p = calloc(1, sizeof(*p));

	if (p && deflateInit(&p->deflate, DEFLATE_LEVEL) != Z_OK) {
		free(p);
		return NULL;
	}
	return p;
}

void spec_parts_free(struct spec_parts *p)
{
	if (!p)
		return;
	deflateEnd(&p->deflate);
	free(p->room);
	free(p->last);
	free(p);
}

/* ---- deflated bytes: how many there are, and they, which are deflated if they are fewer ---- */

static int write_bytes(struct spec_parts *p, const void *bytes, size_t n, struct gpuq_buf *out,
		       struct gpuq_err *err)
{
	z_stream *z = &p->deflate;

	varint_int(out, (int64_t)n);
	if (n < DEFLATE_BYTES_MIN) {
		varint_bin(out, bytes, n);
		return 0;
	}
	if (p->n_room < n) {
		unsigned char *room = realloc(p->room, n);

		if (!room)
			return gpuq_no_memory(err);
		p->room = room;
		p->n_room = n;
	}
	deflateReset(z);
	z->next_in = (unsigned char *)(uintptr_t)bytes; /* read only */
	z->avail_in = (uInt)n;
	z->next_out = p->room;
	z->avail_out = (uInt)n - 1;
	if (deflate(z, Z_FINISH) == Z_STREAM_END)
		varint_bin(out, p->room, n - 1 - z->avail_out);
	else
		varint_bin(out, bytes, n);
	return 0;
}

/* Append them to out. */
static int read_bytes(struct rec *r, struct gpuq_buf *out, struct gpuq_err *err)
{
	const int64_t n = rec_get_int(r);
	size_t n_in = 0;
	const char *in = rec_get_str(r, &n_in);
	uLongf n_out = (uLongf)n;
	unsigned char *bytes;
	int rc;

	if (r->bad || n < 0 || n > 4 * (int64_t)GPUQ_MSG_BYTES_MAX || (int64_t)n_in > n)
		return gpuq_fail(err, GPUQ_ECORRUPT, "store: a part of a spec is incomplete");
	if ((int64_t)n_in == n)
		return gpuq_buf_add(out, in ? in : "", n_in) == 0 ? 0 : gpuq_no_memory(err);
	bytes = malloc((size_t)n);
	if (!bytes)
		return gpuq_no_memory(err);
	if (uncompress(bytes, &n_out, (const unsigned char *)in, n_in) != Z_OK ||
	    n_out != (uLongf)n)
		rc = gpuq_fail(err, GPUQ_ECORRUPT, "store: a part of a spec does not inflate");
	else
		rc = gpuq_buf_add(out, bytes, (size_t)n) == 0 ? 0 : gpuq_no_memory(err);
	free(bytes);
	return rc;
}

/* ---- cutting ---- */

struct part {
	const unsigned char *bytes; /* of the spec that is being written */
	size_t n;
	unsigned char hash[PARTS_HASH_BYTES];
};

struct cut {
	struct gpuq_buf rest;
	struct part parts[PARTS_MAX];
	uint32_t n;
	bool plain; /* it is no map, or has extensions of its own: stored as it is */
};

static bool is_map(unsigned char h)
{
	return (h & 0xf0) == 0x80 || h == 0xde || h == 0xdf;
}

static bool is_ext(unsigned char h)
{
	return (h >= 0xc7 && h <= 0xc9) || (h >= 0xd4 && h <= 0xd8);
}

/* Bytes of a map's head, and its pairs. */
static size_t map_head(const unsigned char *p, const unsigned char *end, uint32_t *n)
{
	const size_t len = (*p & 0xf0) == 0x80 ? 1 : *p == 0xde ? 3 : 5;

	if ((size_t)(end - p) < len)
		return 0;
	*n = len == 1   ? *p & 0x0fu
	     : len == 3 ? (uint32_t)p[1] << 8 | p[2]
			: change_key_read_u32(p + 1);
	return len;
}

/* Is there an extension anywhere? Those are ours alone. */
static bool has_ext(const unsigned char *bytes, size_t n)
{
	struct rec r = { bytes, bytes + n, false };
	uint64_t left = 1;

	while (left > 0 && !r.bad) {
		uint32_t members = 0;

		left--;
		if (r.p >= r.end || is_ext(*r.p))
			return true;
		if (is_map(*r.p)) {
			const size_t head = map_head(r.p, r.end, &members);

			if (!head || members > (size_t)(r.end - r.p))
				return true;
			r.p += head;
			left += 2 * (uint64_t)members;
		} else if ((*r.p & 0xf0) == 0x90 || *r.p == 0xdc || *r.p == 0xdd) {
			left += rec_get_array(&r);
		} else {
			varint_skip(&r);
		}
	}
	return r.bad || r.p != r.end;
}

static void cut_off(struct cut *c, const unsigned char *bytes, size_t n)
{
	static const unsigned char head[] = { 0xc7, PARTS_HASH_BYTES, REF_TYPE };
	struct part *p = &c->parts[c->n++];

	*p = (struct part){ .bytes = bytes, .n = n };
	SHA256(bytes, n, p->hash);
	gpuq_buf_add(&c->rest, head, sizeof(head));
	gpuq_buf_add(&c->rest, p->hash, sizeof(p->hash));
}

/* Members of a map: large ones are cut off, or, of a large map in it, its large members. */
static void cut_map(struct cut *c, struct rec *r, bool inner)
{
	uint32_t n = 0;
	const size_t head = map_head(r->p, r->end, &n);

	gpuq_buf_add(&c->rest, r->p, head);
	r->p += head;
	for (uint32_t i = 0; i < n; i++) {
		const unsigned char *key = r->p, *val, *end;

		varint_skip(r);
		val = r->p;
		varint_skip(r);
		end = r->p;
		gpuq_buf_add(&c->rest, key, (size_t)(val - key));
		if (end - val < PART_BYTES_MIN || c->n == PARTS_MAX) {
			gpuq_buf_add(&c->rest, val, (size_t)(end - val));
		} else if (!inner && is_map(*val)) {
			struct rec in = { val, end, false };

			cut_map(c, &in, true);
		} else {
			cut_off(c, val, (size_t)(end - val));
		}
	}
}

static void cut(struct cut *c, const unsigned char *bytes, size_t n)
{
	struct rec r = { bytes, bytes + n, false };

	c->rest = (struct gpuq_buf)GPUQ_BUF_INIT;
	c->n = 0;
	c->plain = n == 0 || !is_map(*bytes) || has_ext(bytes, n);
	if (c->plain)
		gpuq_buf_add(&c->rest, bytes, n);
	else
		cut_map(c, &r, false);
}

/* ---- parts ---- */

static void text_key(unsigned char *key, const unsigned char *hash, int what)
{
	memcpy(key, hash, PARTS_HASH_BYTES);
	key[PARTS_HASH_BYTES] = (unsigned char)what;
}

static int lost(struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ECORRUPT, "store: a part that a spec names is not there");
}

/* Begin to read what is stored of a part. *r is the record behind its header of n_fields. */
static int get_text(const struct spec_parts_io *io, const unsigned char *hash, int what,
		    uint32_t n_fields, struct rec *r, struct gpuq_err *err)
{
	unsigned char key[TEXT_KEY_BYTES];
	const unsigned char *val;
	size_t n;
	int rc;

	text_key(key, hash, what);
	rc = io->get(io->arg, TABLE_TEXT, key, sizeof(key), &val, &n, err);
	if (rc != 0)
		return rc;
	*r = (struct rec){ val, val + n, false };
	rec_get_row(r, n_fields);
	return 0;
}

static int get_count(const struct spec_parts_io *io, const unsigned char *hash, int64_t *count,
		     struct gpuq_err *err)
{
	struct rec r;
	int rc = get_text(io, hash, TEXT_COUNT, 1, &r, err);

	*count = 0;
	if (rc != 0)
		return rc;
	*count = rec_get_int(&r);
	return r.bad || *count < 1 ? gpuq_fail(err, GPUQ_ECORRUPT,
					       "store: the count of a part of specs is incomplete")
				   : 0;
}

static int put_count(const struct spec_parts_io *io, const unsigned char *hash, int64_t count,
		     struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	unsigned char key[TEXT_KEY_BYTES];
	int rc;

	text_key(key, hash, TEXT_COUNT);
	varint_array(&b, 1);
	varint_int(&b, count);
	rc = b.failed ? gpuq_no_memory(err)
		      : io->put(io->arg, TABLE_TEXT, key, sizeof(key), count ? b.data : NULL, b.len,
				err);
	gpuq_buf_done(&b);
	return rc;
}

static int get_part(const struct spec_parts_io *io, const unsigned char *hash, struct gpuq_buf *out,
		    struct gpuq_err *err)
{
	struct rec r;
	int rc = get_text(io, hash, TEXT_BYTES, 2, &r, err);

	if (rc != 0)
		return rc == GPUQ_ENOENT ? lost(err) : rc;
	return read_bytes(&r, out, err);
}

/* Two of one hash would give a job the script of another: they are compared. */
static int same(struct spec_parts *p, const struct spec_parts_io *io, const struct part *part,
		struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	int rc;

	if (p->n_last == part->n && memcmp(p->last_hash, part->hash, sizeof(part->hash)) == 0 &&
	    memcmp(p->last, part->bytes, part->n) == 0)
		return 0;
	rc = get_part(io, part->hash, &b, err);
	if (rc == 0 && (b.len != part->n || memcmp(b.data, part->bytes, b.len) != 0))
		rc = gpuq_fail(err, GPUQ_ECORRUPT,
			       "store: a part of a spec is not what its hash says");
	gpuq_buf_done(&b);
	if (rc == 0) {
		if (p->room_last < part->n) {
			unsigned char *last = realloc(p->last, part->n);

			p->n_last = 0;
			if (!last)
				return gpuq_no_memory(err);
			p->last = last;
			p->room_last = part->n;
		}
		memcpy(p->last, part->bytes, part->n);
		memcpy(p->last_hash, part->hash, sizeof(part->hash));
		p->n_last = part->n;
	}
	return rc;
}

static int take(struct spec_parts *p, const struct spec_parts_io *io, const struct part *part,
		struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	unsigned char key[TEXT_KEY_BYTES];
	int64_t count;
	int rc = get_count(io, part->hash, &count, err);

	if (rc == 0) {
		rc = same(p, io, part, err);
	} else if (rc == GPUQ_ENOENT) {
		text_key(key, part->hash, TEXT_BYTES);
		varint_array(&b, 2);
		rc = write_bytes(p, part->bytes, part->n, &b, err);
		if (rc == 0 && b.failed)
			rc = gpuq_no_memory(err);
		if (rc == 0)
			rc = io->put(io->arg, TABLE_TEXT, key, sizeof(key), b.data, b.len, err);
		gpuq_buf_done(&b);
	}
	return rc == 0 ? put_count(io, part->hash, count + 1, err) : rc;
}

static int drop(const struct spec_parts_io *io, const unsigned char *hash, struct gpuq_err *err)
{
	unsigned char key[TEXT_KEY_BYTES];
	int64_t count;
	int rc = get_count(io, hash, &count, err);

	if (rc != 0)
		return rc == GPUQ_ENOENT ? lost(err) : rc;
	rc = put_count(io, hash, count - 1, err);
	if (rc != 0 || count > 1)
		return rc;
	text_key(key, hash, TEXT_BYTES);
	return io->put(io->arg, TABLE_TEXT, key, sizeof(key), NULL, 0, err);
}

/* ---- specs: their size, the rest, and the hashes of the parts ---- */

struct hashes {
	unsigned char at[PARTS_MAX][PARTS_HASH_BYTES];
	int n;
};

int spec_parts_refs(const unsigned char *val, size_t val_len, spec_parts_ref_fn fn, void *arg)
{
	struct rec r = { val, val + val_len, false };
	uint32_t n;

	rec_get_row(&r, 4);
	varint_skip_more(&r, 3);
	n = rec_get_array(&r);
	for (uint32_t i = 0; i < n && !r.bad; i++) {
		size_t len = 0;
		const char *hash = rec_get_str(&r, &len);

		if (len != PARTS_HASH_BYTES)
			r.bad = true;
		else
			fn(arg, (const unsigned char *)hash);
	}
	return r.bad || n > PARTS_MAX ? -1 : (int)n;
}

static void note_hash(void *arg, const unsigned char *hash)
{
	struct hashes *h = arg;

	if (h->n < PARTS_MAX)
		memcpy(h->at[h->n++], hash, PARTS_HASH_BYTES);
}

static int write_spec(struct spec_parts *p, const struct spec_parts_io *io, const void *key,
		      size_t key_len, const struct cut *c, size_t size, struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	int rc;

	varint_array(&b, 4);
	varint_int(&b, (int64_t)size);
	rc = write_bytes(p, c->rest.data ? c->rest.data : "", c->rest.len, &b, err);
	varint_array(&b, c->n);
	for (uint32_t i = 0; i < c->n; i++)
		varint_bin(&b, c->parts[i].hash, PARTS_HASH_BYTES);
	if (rc == 0 && (b.failed || c->rest.failed))
		rc = gpuq_no_memory(err);
	if (rc == 0)
		rc = io->put(io->arg, TABLE_SPEC, key, key_len, b.data, b.len, err);
	gpuq_buf_done(&b);
	return rc;
}

int spec_parts_put(struct spec_parts *p, const struct spec_parts_io *io, const void *key,
		   size_t key_len, const void *val, size_t val_len, struct gpuq_err *err)
{
	struct cut c = { .n = 0 };
	struct hashes old = { .n = 0 };
	const unsigned char *was;
	size_t n;
	int rc = io->get(io->arg, TABLE_SPEC, key, key_len, &was, &n, err);

	if (rc == 0 && spec_parts_refs(was, n, note_hash, &old) < 0)
		return gpuq_fail(err, GPUQ_ECORRUPT, "store: a spec is incomplete");
	if (rc != 0 && rc != GPUQ_ENOENT)
		return rc;
	if (val) {
		cut(&c, val, val_len);
		rc = 0;
		for (uint32_t i = 0; i < c.n && rc == 0; i++)
			rc = take(p, io, &c.parts[i], err);
		if (rc == 0)
			rc = write_spec(p, io, key, key_len, &c, val_len, err);
		gpuq_buf_done(&c.rest);
	} else if (rc == 0) {
		rc = io->put(io->arg, TABLE_SPEC, key, key_len, NULL, 0, err);
	} else {
		rc = 0; /* it is not there */
	}
	/* Behind the new ones, so that what both have stays where it is. */
	for (int i = 0; i < old.n && rc == 0; i++)
		rc = drop(io, old.at[i], err);
	return rc;
}

/* Put the parts where the rest names them. */
static int join(const struct spec_parts_io *io, struct rec *r, uint64_t left, uint32_t n_parts,
		struct gpuq_buf *out, struct gpuq_err *err)
{
	int rc = 0;

	while (left > 0 && rc == 0) {
		const unsigned char *from = r->p;
		uint32_t members = 0;

		left--;
		if (r->p < r->end && is_map(*r->p)) {
			const size_t head = map_head(r->p, r->end, &members);

			if (!head)
				break;
			r->p += head;
			left += 2 * (uint64_t)members;
		} else if (r->end - r->p >= REF_BYTES && is_ext(*r->p) && n_parts > 0) {
			n_parts--;
			r->p += REF_BYTES;
			rc = get_part(io, from + REF_BYTES - PARTS_HASH_BYTES, out, err);
			continue;
		} else {
			varint_skip(r);
		}
		if (r->bad)
			break;
		gpuq_buf_add(out, from, (size_t)(r->p - from));
	}
	if (rc == 0 && (left > 0 || r->bad || n_parts > 0))
		rc = gpuq_fail(err, GPUQ_ECORRUPT, "store: a spec is incomplete");
	return rc;
}

int spec_parts_get(const struct spec_parts_io *io, const unsigned char *val, size_t val_len,
		   struct gpuq_buf *out, struct gpuq_err *err)
{
	struct rec r = { val, val + val_len, false };
	struct gpuq_buf rest = GPUQ_BUF_INIT;
	const size_t before = out->len;
	int64_t size;
	uint32_t n;
	int rc;

	rec_get_row(&r, 4);
	size = rec_get_int(&r);
	rc = read_bytes(&r, &rest, err);
	n = rec_get_array(&r);
	if (rc == 0 && n == 0) {
		rc = gpuq_buf_add(out, rest.data ? rest.data : "", rest.len) == 0
			     ? 0
			     : gpuq_no_memory(err);
	} else if (rc == 0) {
		struct rec in = { (const unsigned char *)rest.data,
				  (const unsigned char *)rest.data + rest.len, false };

		rc = join(io, &in, 1, n, out, err);
	}
	gpuq_buf_done(&rest);
	if (rc == 0 && (r.bad || out->failed || (int64_t)(out->len - before) != size))
		rc = gpuq_fail(err, GPUQ_ECORRUPT, "store: a spec is incomplete");
	return rc;
}
