#include "gpuqd/store/seal.h"

#include <string.h>

#include "gpuqd/store/crc32c.h"

#define RECORD_VERSION 2
#define RECORD_VERSION_1 1

uint32_t seal_seed(const char *table)
{
	return crc32c(table, strlen(table));
}

static uint32_t checksum(uint32_t seed, const void *key, size_t key_len, const void *val,
			 size_t val_len)
{
	const unsigned char n[2] = { (unsigned char)(key_len >> 8), (unsigned char)key_len };
	uint32_t crc = crc32c_more(seed, n, sizeof(n));

	crc = crc32c_more(crc, key, key_len);
	return crc32c_more(crc, val, val_len);
}

uint32_t seal_write(unsigned char head[SEAL_BYTES], uint32_t seed, const void *key, size_t key_len,
		    const void *val, size_t val_len)
{
	const uint32_t crc = checksum(seed, key, key_len, val, val_len);

	head[0] = RECORD_VERSION;
	memcpy(head + 1, &crc, sizeof(crc));
	return crc;
}

uint32_t seal_crc(const void *record, size_t n)
{
	uint32_t crc = 0;

	if (n >= SEAL_BYTES)
		memcpy(&crc, (const unsigned char *)record + 1, sizeof(crc));
	return crc;
}

bool seal_holds(uint32_t seed, const void *key, size_t key_len, const void *record, size_t n,
		uint32_t *crc)
{
	const unsigned char *p = record;

	if (n < SEAL_BYTES || p[0] != RECORD_VERSION)
		return false;
	*crc = seal_crc(record, n);
	return *crc == checksum(seed, key, key_len, p + SEAL_BYTES, n - SEAL_BYTES);
}

bool seal_holds_1(const void *record, size_t n)
{
	const unsigned char *p = record;
	uint32_t crc;

	if (n < SEAL_BYTES_1 || p[0] != RECORD_VERSION_1)
		return false;
	memcpy(&crc, p + 2, sizeof(crc));
	return crc == (crc32c(p + SEAL_BYTES_1, n - SEAL_BYTES_1) ^ ((uint32_t)p[0] << 8 | p[1]));
}

/* The finalizer of splitmix64: a sum of plain checksums would forgive two changes that undo one
 * another in one bit. */
static uint64_t mix(uint32_t crc)
{
	uint64_t x = crc + UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

void seal_add(struct seal_sum *s, uint32_t crc)
{
	s->n++;
	s->digest += mix(crc);
}

void seal_remove(struct seal_sum *s, uint32_t crc)
{
	s->n--;
	s->digest -= mix(crc);
}
