#include "libgpuq/wire/mp.h"

#include <math.h>
#include <string.h>

#include <msgpack.h>

#include "libgpuq/utf8.h"

enum shape { SCALAR, BODY, ARRAY, MAP, NONE };

/* Layouts of the bytes 0xc0..0xdf: `wide` bytes of length or, for SCALAR, of value; `extra`
 * bytes of body beyond the length (an ext's type). The MessagePack specification, section
 * "Formats". */
static const struct head {
	unsigned char shape, wide, extra;
} heads[32] = {
	/* c0 nil, c1 never, c2 false, c3 true */
	{ SCALAR, 0, 0 },
	{ NONE, 0, 0 },
	{ SCALAR, 0, 0 },
	{ SCALAR, 0, 0 },
	/* c4-c6 bin, c7-c9 ext */
	{ BODY, 1, 0 },
	{ BODY, 2, 0 },
	{ BODY, 4, 0 },
	{ BODY, 1, 1 },
	{ BODY, 2, 1 },
	{ BODY, 4, 1 },
	/* ca-cb float, cc-cf uint, d0-d3 int */
	{ SCALAR, 4, 0 },
	{ SCALAR, 8, 0 },
	{ SCALAR, 1, 0 },
	{ SCALAR, 2, 0 },
	{ SCALAR, 4, 0 },
	{ SCALAR, 8, 0 },
	{ SCALAR, 1, 0 },
	{ SCALAR, 2, 0 },
	{ SCALAR, 4, 0 },
	{ SCALAR, 8, 0 },
	/* d4-d8 fixext: type and 1, 2, 4, 8, 16 bytes */
	{ SCALAR, 2, 0 },
	{ SCALAR, 3, 0 },
	{ SCALAR, 5, 0 },
	{ SCALAR, 9, 0 },
	{ SCALAR, 17, 0 },
	/* d9-db str, dc-dd array, de-df map */
	{ BODY, 1, 0 },
	{ BODY, 2, 0 },
	{ BODY, 4, 0 },
	{ ARRAY, 2, 0 },
	{ ARRAY, 4, 0 },
	{ MAP, 2, 0 },
	{ MAP, 4, 0 },
};

static int too_big(const struct gpuq_mp_limits *lim, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ETOOBIG, "a message is larger than %zu bytes", lim->max_bytes);
}

static int ends_early(struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_EPROTO, "a message ends too early");
}

/* A small number, nil, or true or false. */
static bool is_one_byte(unsigned char c)
{
	return c < 0x80 || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3;
}

/* Bytes of a value that tells them by its first: one as above, or a short string; else 0. */
static size_t small_size(unsigned char c)
{
	return is_one_byte(c) ? 1 : (c & 0xe0) == 0xa0 ? 1u + (c & 0x1f) : 0;
}

/* Read the head of the value at p: how many bytes it has in all when it is no
 * container (*bytes) or of its head alone, and its members. 0 = more bytes needed. */
static int read_head(const unsigned char *p, size_t n, enum shape *shape, uint64_t *bytes,
		     uint64_t *members)
{
	unsigned char c = p[0];
	const struct head *h;
	uint64_t len = 0;

	*bytes = 1;
	*members = 0;
	*shape = SCALAR;
	if (c < 0x80 || c >= 0xe0)
		return 1;
	if (c < 0x90) {
		*shape = MAP;
		*members = c & 0x0f;
		return 1;
	}
	if (c < 0xa0) {
		*shape = ARRAY;
		*members = c & 0x0f;
		return 1;
	}
	if (c < 0xc0) {
		*bytes = 1 + (c & 0x1f);
		return 1;
	}
	h = &heads[c - 0xc0];
	*shape = h->shape;
	*bytes = 1 + h->wide;
	if (h->shape == SCALAR || h->shape == NONE)
		return 1;
	if (n < *bytes)
		return 0;
	for (unsigned i = 0; i < h->wide; i++)
		len = len << 8 | p[1 + i];
	if (h->shape == BODY)
		*bytes += len + h->extra;
	else
		*members = len;
	return 1;
}

/* One more value without members; false when none is owed any more. */
static bool step(struct gpuq_mp_scan *scan, size_t size)
{
	scan->at += size;
	scan->items++;
	while (scan->depth && --scan->left[scan->depth - 1] == 0)
		scan->depth--;
	return scan->depth > 0;
}

int gpuq_mp_next(struct gpuq_mp_scan *scan, const struct gpuq_mp_limits *lim, const void *bytes,
		 size_t n, size_t *len_bytes, struct gpuq_err *err)
{
	const unsigned char *p = bytes;
	const unsigned max_depth = lim->max_depth < sizeof(scan->left) / sizeof(scan->left[0])
					   ? lim->max_depth
					   : (unsigned)(sizeof(scan->left) / sizeof(scan->left[0]));

	/* scan->at always stands at the head of a value, so that a value that is
	 * not complete is simply examined again. */
	while (scan->at < n) {
		const size_t small = small_size(p[scan->at]);
		uint64_t size, members;
		enum shape shape;

		if (scan->at >= lim->max_bytes)
			return too_big(lim, err);
		/* Most values of most messages, in short. */
		if (small && small <= n - scan->at && small <= lim->max_bytes - scan->at &&
		    scan->items < lim->max_items) {
			if (step(scan, small))
				continue;
			*len_bytes = scan->at;
			return 1;
		}
		if (!read_head(p + scan->at, n - scan->at, &shape, &size, &members))
			break;
		if (shape == NONE)
			return gpuq_fail(err, GPUQ_EPROTO,
					 "byte 0xc1 at offset %zu is no MessagePack", scan->at);
		if (size > lim->max_bytes - scan->at)
			return too_big(lim, err);
		if (scan->items >= lim->max_items || members > lim->max_items)
			return gpuq_fail(err, GPUQ_ETOOBIG, "a message has more than %u values",
					 lim->max_items);
		if (shape == MAP)
			members *= 2;
		if (shape != SCALAR && shape != BODY && scan->depth >= max_depth)
			return gpuq_fail(err, GPUQ_EPROTO, "a message nests deeper than %u levels",
					 max_depth);
		/* Each member takes a byte at least: a count beyond the bytes that may
		 * still come is refused before they do. */
		if (members > lim->max_items - scan->items - 1)
			return gpuq_fail(err, GPUQ_ETOOBIG, "a message has more than %u values",
					 lim->max_items);
		if (members > lim->max_bytes - scan->at - size)
			return too_big(lim, err);
		if (size > n - scan->at)
			break;
		if (members) {
			scan->at += (size_t)size;
			scan->items++;
			scan->left[scan->depth++] = (uint32_t)members;
		} else if (!step(scan, (size_t)size)) {
			*len_bytes = scan->at;
			return 1;
		}
	}
	if (n >= lim->max_bytes)
		return too_big(lim, err);
	return 0;
}

static struct gpuq_val *convert(struct gpuq_arena *a, const msgpack_object *o,
				struct gpuq_err *err);

static struct gpuq_val *no_memory(struct gpuq_err *err)
{
	gpuq_fail(err, GPUQ_ENOMEM, "no memory for a message");
	return NULL;
}

static struct gpuq_val *refuse(struct gpuq_err *err, const char *what)
{
	gpuq_fail(err, GPUQ_EPROTO, "a message holds %s", what);
	return NULL;
}

static struct gpuq_val *convert_map(struct gpuq_arena *a, const msgpack_object *o,
				    struct gpuq_err *err)
{
	struct gpuq_val *m = gpuq_map(a);
	const struct gpuq_pair *again;
	bool exhausted = false;

	if (!m)
		return no_memory(err);
	for (uint32_t i = 0; i < o->via.map.size; i++) {
		const msgpack_object_kv *kv = &o->via.map.ptr[i];
		const msgpack_object_str *k = &kv->key.via.str;
		struct gpuq_val *v;
		char *key;

		if (kv->key.type != MSGPACK_OBJECT_STR)
			return refuse(err, "a map key that is no string");
		if ((k->size && memchr(k->ptr, '\0', k->size)) ||
		    gpuq_utf8_check(k->ptr, k->size) != k->size)
			return refuse(err, "a map key that is not UTF-8 text");
		v = convert(a, &kv->val, err);
		if (!v)
			return NULL;
		key = gpuq_arena_strndup(a, k->ptr, k->size);
		if (!key || !gpuq_put(a, m, key, v))
			return no_memory(err);
	}
	again = gpuq_map_repeat(a, m, &exhausted);
	if (exhausted)
		return no_memory(err);
	if (again) {
		gpuq_fail(err, GPUQ_EPROTO, "a map in a message has the key \"%.64s\" twice",
			  again->key);
		return NULL;
	}
	return m;
}

static struct gpuq_val *convert_list(struct gpuq_arena *a, const msgpack_object *o,
				     struct gpuq_err *err)
{
	struct gpuq_val *list = gpuq_list(a);

	if (!list)
		return no_memory(err);
	for (uint32_t i = 0; i < o->via.array.size; i++) {
		struct gpuq_val *v = convert(a, &o->via.array.ptr[i], err);

		if (!v)
			return NULL;
		if (!gpuq_add(a, list, v))
			return no_memory(err);
	}
	return list;
}

/* Recursion is bounded: the scan has seen to the depth. */
static struct gpuq_val *convert(struct gpuq_arena *a, const msgpack_object *o, struct gpuq_err *err)
{
	struct gpuq_val *v = NULL;

	switch (o->type) {
	case MSGPACK_OBJECT_NIL:
		v = gpuq_null(a);
		break;
	case MSGPACK_OBJECT_BOOLEAN:
		v = gpuq_bool(a, o->via.boolean);
		break;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		if (o->via.u64 > INT64_MAX)
			return refuse(err, "an integer beyond 64 bits with sign");
		v = gpuq_int(a, (int64_t)o->via.u64);
		break;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		v = gpuq_int(a, o->via.i64);
		break;
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		if (!isfinite(o->via.f64))
			return refuse(err, "a number that is not finite");
		v = gpuq_real(a, o->via.f64);
		break;
	case MSGPACK_OBJECT_STR:
		if (gpuq_utf8_check(o->via.str.ptr, o->via.str.size) != o->via.str.size)
			return refuse(err, "a string that is not UTF-8");
		v = gpuq_strn(a, o->via.str.ptr, o->via.str.size);
		break;
	case MSGPACK_OBJECT_BIN:
		v = gpuq_bin(a, o->via.bin.ptr, o->via.bin.size);
		break;
	case MSGPACK_OBJECT_ARRAY:
		return convert_list(a, o, err);
	case MSGPACK_OBJECT_MAP:
		return convert_map(a, o, err);
	case MSGPACK_OBJECT_EXT:
		return refuse(err, "an extension type");
	}
	return v ? v : no_memory(err);
}

int gpuq_mp_read(struct gpuq_arena *a, const struct gpuq_mp_limits *lim, const void *bytes,
		 size_t n, struct gpuq_val **out, struct gpuq_err *err)
{
	struct gpuq_mp_scan scan = { 0 };
	struct gpuq_err local = GPUQ_ERR_INIT;
	struct gpuq_val *v;
	msgpack_unpacked msg;
	size_t len, off = 0;
	int rc;

	if (!err)
		err = &local;
	rc = gpuq_mp_next(&scan, lim, bytes, n, &len, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return ends_early(err);
	if (len != n)
		return gpuq_fail(err, GPUQ_EPROTO, "%zu bytes follow a message", n - len);

	/* After the scan msgpack-c can only fail for want of memory. */
	msgpack_unpacked_init(&msg);
	if (msgpack_unpack_next(&msg, bytes, n, &off) == MSGPACK_UNPACK_SUCCESS)
		v = convert(a, &msg.data, err);
	else
		v = no_memory(err);
	msgpack_unpacked_destroy(&msg);
	if (!v)
		return err->code;
	*out = v;
	return 0;
}

int gpuq_mp_take_list(const char **p, const char *end, uint32_t *n, struct gpuq_err *err)
{
	uint64_t size, members;
	enum shape shape;

	if (*p == end ||
	    !read_head((const unsigned char *)*p, (size_t)(end - *p), &shape, &size, &members))
		return ends_early(err);
	if (shape != ARRAY)
		return gpuq_fail(err, GPUQ_EPROTO,
				 "a message has something else where a list "
				 "belongs");
	*p += size;
	*n = (uint32_t)members;
	return 0;
}

static int set_str(struct gpuq_arena *a, struct gpuq_val *v, const char *s, size_t n,
		   struct gpuq_err *err)
{
	if (gpuq_utf8_check(s, n) != n)
		return gpuq_fail(err, GPUQ_EPROTO, "a message holds a string that is not UTF-8");
	v->type = GPUQ_STR;
	v->n = (uint32_t)n;
	v->s = gpuq_arena_strndup(a, s, n);
	return v->s ? 0 : gpuq_fail(err, GPUQ_ENOMEM, "no memory for a message");
}

/* A list, a map, or something rare: as a message of its own. */
static int take_tree(struct gpuq_arena *a, const struct gpuq_mp_limits *lim, const char **p,
		     const char *end, struct gpuq_val *v, struct gpuq_err *err)
{
	struct gpuq_mp_scan scan = { 0 };
	struct gpuq_val *tree;
	size_t n;
	int rc = gpuq_mp_next(&scan, lim, *p, (size_t)(end - *p), &n, err);

	if (rc == 0)
		return ends_early(err);
	if (rc > 0)
		rc = gpuq_mp_read(a, lim, *p, n, &tree, err);
	if (rc < 0)
		return rc;
	*v = *tree;
	*p += n;
	return 0;
}

int gpuq_mp_take(struct gpuq_arena *a, const struct gpuq_mp_limits *lim, const char **p,
		 const char *end, struct gpuq_val *v, struct gpuq_err *err)
{
	const unsigned char *s = (const unsigned char *)*p, c = *p < end ? *s : 0xc1;
	const unsigned wide = c >= 0xc0 && c < 0xe0 ? heads[c - 0xc0].wide : 0;
	uint64_t size = 1, members = 0, u = 0;
	enum shape shape = SCALAR;
	int rc = 0;

	if (*p == end)
		return ends_early(err);
	if (!is_one_byte(c) && (!read_head(s, (size_t)(end - *p), &shape, &size, &members) ||
				size > (size_t)(end - *p)))
		return ends_early(err);
	for (unsigned i = 0; shape == SCALAR && i < wide && i < sizeof(u); i++)
		u = u << 8 | s[1 + i];
	v->type = GPUQ_INT; /* mostly */
	if (c < 0x80 || c >= 0xe0) {
		v->i = (signed char)c;
	} else if (c == 0xc0) {
		v->type = GPUQ_NULL;
	} else if ((c & 0xe0) == 0xa0 || (c >= 0xd9 && c <= 0xdb)) {
		rc = set_str(a, v, (const char *)s + 1 + wide, (size_t)size - 1 - wide, err);
	} else if (c >= 0xcc && c <= 0xcf && u <= INT64_MAX) {
		v->i = (int64_t)u;
	} else if (c >= 0xd0 && c <= 0xd3) {
		/* The sign is the highest bit of those that are there. */
		v->i = (int64_t)(u << (64 - 8 * wide)) >> (64 - 8 * wide);
	} else if (shape == ARRAY && members == 0) {
		*v = (struct gpuq_val){ .type = GPUQ_LIST };
	} else {
		return take_tree(a, lim, p, end, v, err);
	}
	*p += size;
	return rc;
}

static int pack_bytes(void *data, const char *bytes, size_t n)
{
	return gpuq_buf_add(data, bytes, n);
}

static void pack(msgpack_packer *p, const struct gpuq_val *v)
{
	switch (v ? v->type : GPUQ_NULL) {
	case GPUQ_NULL:
		msgpack_pack_nil(p);
		break;
	case GPUQ_BOOL:
		if (v->b)
			msgpack_pack_true(p);
		else
			msgpack_pack_false(p);
		break;
	case GPUQ_INT:
		msgpack_pack_int64(p, v->i);
		break;
	case GPUQ_REAL:
		msgpack_pack_double(p, v->d);
		break;
	case GPUQ_STR:
		msgpack_pack_str_with_body(p, v->s, v->n);
		break;
	case GPUQ_BIN:
		msgpack_pack_bin_with_body(p, v->s, v->n);
		break;
	case GPUQ_LIST:
		msgpack_pack_array(p, v->n);
		for (uint32_t i = 0; i < v->n; i++)
			pack(p, v->items[i]);
		break;
	case GPUQ_MAP:
		msgpack_pack_map(p, v->n);
		for (uint32_t i = 0; i < v->n; i++) {
			const char *key = v->pairs[i].key;

			msgpack_pack_str_with_body(p, key, strlen(key));
			pack(p, v->pairs[i].val);
		}
		break;
	}
}

void gpuq_mp_write_list(struct gpuq_buf *b, uint32_t n)
{
	msgpack_packer p;

	msgpack_packer_init(&p, b, pack_bytes);
	msgpack_pack_array(&p, n);
}

void gpuq_mp_write(struct gpuq_buf *b, const struct gpuq_val *v)
{
	msgpack_packer p;

	msgpack_packer_init(&p, b, pack_bytes);
	pack(&p, v);
}
