#include "gpuqd/store/meta.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "gpuqd/util/varint.h"
#include "gpuqd/store/crc32c.h"

#define FIELDS 7

static int new_id(char out[STORE_ID_BYTES], struct gpuq_err *err)
{
	unsigned char bytes[(STORE_ID_BYTES - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return gpuq_fail(err, GPUQ_EIO, "store: no random numbers");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int meta_init(struct store_meta *s, struct gpuq_err *err)
{
	memset(s, 0, sizeof(*s));
	s->id.epoch = 1;
	for (int t = 0; t < N_TABLES; t++)
		s->has[t] = true;
	return new_id(s->id.store_id, err);
}

static void write_sum(struct gpuq_buf *out, const char *name, const struct seal_sum *sum)
{
	varint_array(out, 3);
	varint_str(out, name);
	varint_int(out, (int64_t)sum->n);
	varint_int(out, (int64_t)sum->digest);
}

void meta_write(const struct store_meta *s, struct gpuq_buf *out)
{
	uint32_t n = s->n_others;

	for (int t = 0; t < N_TABLES; t++)
		n += s->has[t];
	varint_array(out, FIELDS);
	varint_str(out, s->id.store_id);
	varint_int(out, s->id.epoch);
	varint_int(out, (int64_t)s->id.seq);
	varint_bool(out, s->id.flagged_copy);
	varint_bool(out, s->marked);
	varint_int(out, (int64_t)s->txn);
	varint_array(out, n);
	for (int t = 0; t < N_TABLES; t++)
		if (s->has[t])
			write_sum(out, table_names[t], &s->sums[t]);
	for (uint32_t i = 0; i < s->n_others; i++)
		write_sum(out, s->others[i].name, &s->others[i].sum);
}

enum table meta_table(const char *name)
{
	for (int t = 0; t < N_TABLES; t++)
		if (strcmp(name, table_names[t]) == 0)
			return (enum table)t;
	return N_TABLES;
}

static bool read_text(struct rec *r, char *out, size_t room)
{
	size_t n;
	const char *s = rec_get_str(r, &n);

	if (!s || n >= room)
		return false;
	memcpy(out, s, n);
	out[n] = '\0';
	return true;
}

static bool read_sum(struct store_meta *s, struct rec *r)
{
	const uint32_t n = rec_get_array(r);
	char name[PAGES_NAME_MAX + 1];
	struct seal_sum sum;
	enum table t;

	if (n < 3 || !read_text(r, name, sizeof(name)))
		return false;
	sum.n = (uint64_t)rec_get_int(r);
	sum.digest = (uint64_t)rec_get_int(r);
	for (uint32_t i = 3; i < n; i++)
		varint_skip(r);
	t = meta_table(name);
	if (t != N_TABLES) {
		s->has[t] = true;
		s->sums[t] = sum;
	} else if (s->n_others < META_OTHERS_MAX) {
		struct meta_other *o = &s->others[s->n_others++];

		memcpy(o->name, name, sizeof(name));
		o->sum = sum;
	} else {
		return false;
	}
	return !r->bad;
}

int meta_read(struct store_meta *s, const void *bytes, size_t n, struct gpuq_err *err)
{
	struct rec r = { bytes, (const unsigned char *)bytes + n, false };
	bool ok = rec_get_array(&r) >= FIELDS;

	memset(s, 0, sizeof(*s));
	ok = ok && read_text(&r, s->id.store_id, sizeof(s->id.store_id));
	s->id.epoch = (uint32_t)rec_get_int(&r);
	s->id.seq = (uint64_t)rec_get_int(&r);
	s->id.flagged_copy = varint_get_bool(&r);
	s->marked = varint_get_bool(&r);
	s->txn = (uint64_t)rec_get_int(&r);
	for (uint32_t k = rec_get_array(&r); ok && k && !r.bad; k--)
		ok = read_sum(s, &r);
	return ok && !r.bad ? 0
			    : gpuq_fail(err, GPUQ_ECORRUPT,
					"store: record store of table meta cannot be read: keep "
					"the files and restore a backup");
}

const struct seal_sum *meta_sum(const struct store_meta *s, const char *table)
{
	const enum table t = meta_table(table);

	if (t != N_TABLES)
		return s->has[t] ? &s->sums[t] : NULL;
	for (uint32_t i = 0; i < s->n_others; i++)
		if (strcmp(s->others[i].name, table) == 0)
			return &s->others[i].sum;
	return NULL;
}

bool meta_is_key(const void *key, size_t n)
{
	return (n == strlen(META_KEY) && memcmp(key, META_KEY, n) == 0) ||
	       (n == strlen(SCHEMA_KEY) && memcmp(key, SCHEMA_KEY, n) == 0);
}

void schema_write(unsigned char out[SCHEMA_BYTES], uint32_t version)
{
	const uint32_t crc = crc32c(&version, sizeof(version));

	memcpy(out, &version, sizeof(version));
	memcpy(out + sizeof(version), &crc, sizeof(crc));
}

bool schema_read(const void *bytes, size_t n, uint32_t *version)
{
	unsigned char whole[SCHEMA_BYTES];

	if (n != sizeof(*version) && n != SCHEMA_BYTES)
		return false;
	memcpy(version, bytes, sizeof(*version));
	if (n == sizeof(*version))
		return *version == 1;
	schema_write(whole, *version);
	return memcmp(whole, bytes, SCHEMA_BYTES) == 0;
}
