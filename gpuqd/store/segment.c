#include "gpuqd/store/segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/store/crc32c.h"
#include "gpuqd/store/digest.h"
#include "gpuqd/store/meta.h"

#define MAGIC "gpuqseg1"
#define MAGIC_LEN 8
#define ID_LEN (STORE_ID_BYTES - 1)
#define RECORD_HEAD 8 /* length, CRC */
#define END_MARK UINT32_MAX
#define FNV UINT64_C(1099511628211)

static void put(struct gpuq_buf *out, uint64_t x, int n)
{
	for (int i = 0; i < n; i++)
		gpuq_buf_addc(out, (char)(x >> 8 * i));
}

static uint64_t get(const unsigned char *p, int n)
{
	uint64_t x = 0;

	for (int i = 0; i < n; i++)
		x |= (uint64_t)p[i] << 8 * i;
	return x;
}

uint64_t segment_sum(const struct store_meta *s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	/* A table that has nothing is as one that is not there: a later gpuqd has more. */
	for (int t = 0; t < N_TABLES; t++) {
		if (!s->sums[t].n)
			continue;
		h = (h ^ (uint64_t)t) * FNV;
		h = (h ^ s->sums[t].n) * FNV;
		h = (h ^ s->sums[t].digest) * FNV;
	}
	return h;
}

void segment_head_write(const struct segment_head *h, struct gpuq_buf *out)
{
	const size_t from = out->len;

	gpuq_buf_add(out, MAGIC, MAGIC_LEN);
	put(out, h->schema, 4);
	put(out, h->id.epoch, 4);
	put(out, h->id.seq, 8);
	put(out, (uint64_t)h->begun_us, 8);
	gpuq_buf_add(out, h->id.store_id, ID_LEN);
	if (!out->failed)
		put(out, crc32c(out->data + from, out->len - from), 4);
}

void segment_batch_write(const struct segment_batch *b, const struct batch *changes,
			 struct gpuq_buf *out)
{
	struct gpuq_buf body = GPUQ_BUF_INIT;

	varint_array(&body, 5);
	varint_int(&body, (int64_t)b->seq);
	varint_int(&body, b->at_us);
	varint_int(&body, b->clear == N_TABLES ? -1 : (int64_t)b->clear);
	varint_int(&body, (int64_t)b->sum);
	varint_array(&body, changes ? (uint32_t)changes->n : 0);
	for (size_t i = 0; changes && i < changes->n; i++) {
		const struct change *c = &changes->items[i];

		varint_array(&body, 3);
		varint_int(&body, c->table);
		varint_bin(&body, c->key, c->key_len);
		if (c->val)
			varint_bin(&body, c->val, c->val_len);
		else
			varint_str(&body, NULL);
	}
	if (body.failed || body.len >= END_MARK) {
		out->failed = true;
	} else {
		put(out, body.len, 4);
		put(out, crc32c(body.data, body.len), 4);
		gpuq_buf_add(out, body.data, body.len);
	}
	gpuq_buf_done(&body);
}

void segment_end_write(uint64_t last, int64_t last_us, struct gpuq_buf *out)
{
	put(out, END_MARK, 4);
	put(out, last, 8);
	put(out, (uint64_t)last_us, 8);
}

/* ---- read ---- */

static int short_(const struct segment *s, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ECORRUPT, "cut short or damaged at byte %lld of %lld",
			 (long long)s->at, (long long)s->bytes);
}

static bool read_at(const struct segment *s, int64_t at, void *out, size_t n)
{
	size_t done = 0;

	while (done < n) {
		const ssize_t k = pread(s->fd, (char *)out + done, n - done, at + (int64_t)done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		done += (size_t)k;
	}
	return true;
}

int segment_open(struct segment *s, int fd, struct gpuq_err *err)
{
	unsigned char h[SEGMENT_HEAD_BYTES];
	struct stat st;

	*s = (struct segment){ .fd = fd, .record = GPUQ_BUF_INIT };
	if (fstat(fd, &st) != 0)
		return gpuq_fail(err, GPUQ_EIO, "%s", strerror(errno));
	s->bytes = st.st_size;
	if (!read_at(s, 0, h, sizeof(h)) || memcmp(h, "gpuqseg", MAGIC_LEN - 1) != 0)
		return short_(s, err);
	if (h[MAGIC_LEN - 1] != MAGIC[MAGIC_LEN - 1])
		return gpuq_fail(err, GPUQ_EVERSION,
				 "of version %c, this gpuqd knows %c: use the gpuqd that wrote it",
				 h[MAGIC_LEN - 1] < ' ' ? '?' : h[MAGIC_LEN - 1],
				 MAGIC[MAGIC_LEN - 1]);
	if (get(h + sizeof(h) - 4, 4) != crc32c(h, sizeof(h) - 4))
		return short_(s, err);
	s->head.schema = (unsigned)get(h + 8, 4);
	s->head.id.epoch = (uint32_t)get(h + 12, 4);
	s->head.id.seq = get(h + 16, 8);
	s->head.begun_us = (int64_t)get(h + 24, 8);
	memcpy(s->head.id.store_id, h + 32, ID_LEN);
	s->at = SEGMENT_HEAD_BYTES;
	return 0;
}

void segment_close(struct segment *s)
{
	gpuq_buf_done(&s->record);
}

static bool read_body(struct segment_batch *b, const struct gpuq_buf *body)
{
	struct rec r = { (const unsigned char *)body->data,
			 (const unsigned char *)body->data + body->len, false };
	int64_t clear;

	if (rec_get_array(&r) < 5)
		return false;
	b->seq = (uint64_t)rec_get_int(&r);
	b->at_us = rec_get_int(&r);
	clear = rec_get_int(&r);
	b->clear = clear < 0 || clear >= N_TABLES ? N_TABLES : (enum table)clear;
	b->sum = (uint64_t)rec_get_int(&r);
	b->n_changes = rec_get_array(&r);
	b->changes = r;
	return !r.bad && clear < N_TABLES;
}

int segment_next(struct segment *s, struct segment_batch *out, struct gpuq_err *err)
{
	unsigned char h[RECORD_HEAD + 16];
	struct segment_batch b;
	uint32_t n;

	if (s->ended)
		return 0;
	if (!read_at(s, s->at, h, 4))
		return short_(s, err);
	n = (uint32_t)get(h, 4);
	if (n == END_MARK) {
		if (s->bytes - s->at != SEGMENT_END_BYTES || !read_at(s, s->at, h, 12))
			return short_(s, err);
		s->last = get(h + 4, 8);
		s->ended = true;
		return 0;
	}
	if (!read_at(s, s->at, h, RECORD_HEAD) || n > s->bytes - s->at - RECORD_HEAD)
		return short_(s, err);
	gpuq_buf_clear(&s->record);
	if (gpuq_buf_reserve(&s->record, n) < 0)
		return gpuq_no_memory(err);
	if (!read_at(s, s->at + RECORD_HEAD, s->record.data, n))
		return short_(s, err);
	s->record.len = n;
	if (get(h + 4, 4) != crc32c(s->record.data, n) || !read_body(&b, &s->record))
		return short_(s, err);
	s->at += RECORD_HEAD + (int64_t)n;
	*out = b;
	return 1;
}

int segment_changes(const struct segment_batch *b, struct batch *out, struct gpuq_err *err)
{
	struct rec r = b->changes;

	for (uint32_t i = 0; i < b->n_changes && !r.bad; i++) {
		const uint32_t n = rec_get_array(&r);
		const int64_t t = rec_get_int(&r);
		size_t key_len = 0, val_len = 0;
		const char *key = rec_get_str(&r, &key_len), *val = rec_get_str(&r, &val_len);

		if (n < 3 || r.bad || !key || key_len > CHANGE_KEY_BYTES_MAX || t < 0)
			r.bad = true;
		else if (t >= N_TABLES)
			return gpuq_fail(err, GPUQ_EVERSION,
					 "a batch of a later gpuqd: use the gpuqd that wrote it");
		else
			change_batch_put(out, (enum table)t, key, key_len, val, val_len);
		for (uint32_t k = 3; k < n && !r.bad; k++)
			varint_skip(&r);
	}
	if (out->failed)
		return gpuq_no_memory(err);
	return r.bad ? gpuq_fail(err, GPUQ_ECORRUPT, "batch %llu is damaged",
				 (unsigned long long)b->seq)
		     : 0;
}

bool segment_last(const struct segment *s, uint64_t *last, int64_t *last_us)
{
	unsigned char end[SEGMENT_END_BYTES];
	const int64_t at = s->bytes - SEGMENT_END_BYTES;

	if (at < SEGMENT_HEAD_BYTES || !read_at(s, at, end, sizeof(end)) || get(end, 4) != END_MARK)
		return false;
	if (last)
		*last = get(end + 4, 8);
	if (last_us)
		*last_us = (int64_t)get(end + 12, 8);
	return true;
}

int segment_check(const struct segment *s, struct gpuq_err *err)
{
	unsigned char end[SEGMENT_END_BYTES];
	char is[DIGEST_HEX_BYTES], should[DIGEST_HEX_BYTES];
	const int64_t body = s->bytes - SEGMENT_END_BYTES;
	int rc;

	if (body < SEGMENT_HEAD_BYTES || !read_at(s, body, end, sizeof(end)) ||
	    get(end, 4) != END_MARK)
		return gpuq_fail(err, GPUQ_ECORRUPT, "cut short at byte %lld", (long long)s->bytes);
	rc = digest_file(s->fd, s->bytes - DIGEST_BYTES, is, NULL, err);
	if (rc < 0)
		return rc;
	digest_hex(end + SEGMENT_END_BYTES - DIGEST_BYTES, should);
	return strcmp(is, should) == 0
		       ? 0
		       : gpuq_fail(err, GPUQ_ECORRUPT, "damaged: its SHA-256 is another one");
}
