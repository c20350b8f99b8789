#include "gpuqd/state/record/change.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/grow.h"

const char *const table_names[N_TABLES] = {
#define X(sym, name, key, doc) name,
	TABLES(X)
#undef X
};

void change_batch_init(struct batch *b)
{
	memset(b, 0, sizeof(*b));
}

void change_batch_done(struct batch *b)
{
	gpuq_arena_done(&b->mem);
	free(b->items);
	change_batch_init(b);
}

void change_batch_put(struct batch *b, enum table t, const void *key, size_t key_len,
		      const void *val, size_t val_len)
{
	struct change *c;

	if (!grow_to(&b->items, &b->room, b->n + 1)) {
		b->failed = true;
		return;
	}
	c = &b->items[b->n];
	c->table = t;
	c->key_len = (uint16_t)key_len;
	/* Keys and values are copied: callers reuse their buffers. */
	c->key = (unsigned char *)gpuq_arena_strndup(&b->mem, key, key_len);
	c->val = val ? (unsigned char *)gpuq_arena_strndup(&b->mem, val, val_len) : NULL;
	c->val_len = val ? val_len : 0;
	if (!c->key || (val && !c->val))
		b->failed = true;
	else
		b->n++;
}

/* Numbers are written with the most significant byte first: the order of keys in the database is
 * that of the numbers. */
size_t change_key_u32(unsigned char *out, uint32_t x)
{
	for (int i = 0; i < 4; i++)
		out[i] = (unsigned char)(x >> (24 - 8 * i));
	return 4;
}

size_t change_key_job(unsigned char *out, uint32_t id, int64_t index)
{
	change_key_u32(out, id);
	/* An array (-1) comes before its elements. */
	change_key_u32(out + 4, (uint32_t)(index + 1));
	return 8;
}

size_t change_key_pod(unsigned char *out, uint32_t id, int64_t index, uint32_t attempt,
		      uint32_t pod)
{
	change_key_job(out, id, index);
	change_key_u32(out + 8, attempt);
	change_key_u32(out + 12, pod);
	return 16;
}

size_t change_key_cluster(unsigned char *out, size_t n, const char *cluster)
{
	size_t len = strlen(cluster);

	if (len > CLUSTER_BYTES_MAX)
		len = CLUSTER_BYTES_MAX;
	memcpy(out + n, cluster, len);
	return n + len;
}

void change_key_cluster_read(const unsigned char *key, size_t n, size_t from, char *out)
{
	size_t len = n > from ? n - from : 0;

	if (len > CLUSTER_BYTES_MAX)
		len = CLUSTER_BYTES_MAX;
	memcpy(out, key + from, len);
	out[len] = '\0';
}

size_t change_key_node(unsigned char *out, const char *cluster, const char *name)
{
	return change_key_strs(out, cluster, name, NULL);
}

uint32_t change_key_read_u32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool change_key_job_read(const unsigned char *key, size_t n, uint32_t *id, int64_t *index)
{
	if (n < 8)
		return false;
	*id = change_key_read_u32(key);
	*index = (int64_t)change_key_read_u32(key + 4) - 1;
	return true;
}

size_t change_key_outbox(unsigned char *out, uint64_t number)
{
	const size_t n = change_key_u32(out, (uint32_t)(number >> 32));

	return n + change_key_u32(out + n, (uint32_t)number);
}

uint64_t change_key_outbox_number(const unsigned char *key)
{
	uint64_t n = 0;

	for (int i = 0; i < OUTBOX_KEY_BYTES; i++)
		n = n << 8 | key[i];
	return n;
}

size_t change_key_audit(unsigned char *out, int64_t at_us, uint32_t number)
{
	change_key_u32(out, (uint32_t)(at_us >> 32));
	change_key_u32(out + 4, (uint32_t)at_us);
	change_key_u32(out + 8, number);
	return AUDIT_KEY_BYTES;
}

int64_t change_key_audit_time(const unsigned char *key)
{
	return (int64_t)((uint64_t)change_key_read_u32(key) << 32 | change_key_read_u32(key + 4));
}

size_t change_key_strs(unsigned char *out, ...)
{
	size_t n = 0;
	const char *s;
	va_list ap;

	va_start(ap, out);
	while ((s = va_arg(ap, const char *)) != NULL) {
		size_t len = strlen(s);

		/* Parts are separated by NULs, which no name has inside. */
		if (n && n < CHANGE_KEY_BYTES_MAX)
			out[n++] = '\0';
		if (len > CHANGE_KEY_BYTES_MAX - n)
			len = CHANGE_KEY_BYTES_MAX - n;
		memcpy(out + n, s, len);
		n += len;
	}
	va_end(ap);
	return n;
}
