#include "gpuqd/store/crc32c.h"

#include <pthread.h>
#include <string.h>

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0x82f63b78u ^ (c >> 1) : c >> 1;
		table[0][i] = c;
	}
	for (int t = 1; t < 8; t++)
		for (uint32_t i = 0; i < 256; i++)
			table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 0xff];
}

/* Slicing by eight: about 1.5 GB/s without any instruction set beyond the basic. */
uint32_t crc32c_by_tables(uint32_t crc, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint32_t c = ~crc;

	pthread_once(&once, make_tables);
	for (; n >= 8; n -= 8, p += 8) {
		uint32_t lo, hi;

		memcpy(&lo, p, 4);
		memcpy(&hi, p + 4, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		lo = __builtin_bswap32(lo);
		hi = __builtin_bswap32(hi);
#endif
		lo ^= c;
		c = table[7][lo & 0xff] ^ table[6][lo >> 8 & 0xff] ^ table[5][lo >> 16 & 0xff] ^
		    table[4][lo >> 24] ^ table[3][hi & 0xff] ^ table[2][hi >> 8 & 0xff] ^
		    table[1][hi >> 16 & 0xff] ^ table[0][hi >> 24];
	}
	for (; n; n--, p++)
		c = table[0][(c ^ *p) & 0xff] ^ c >> 8;
	return ~c;
}

#if defined(__x86_64__)
/* Ten times as fast, and a start checks every record. */
__attribute__((target("sse4.2"))) static uint32_t by_machine(uint32_t crc, const void *bytes,
							     size_t n)
{
	const unsigned char *p = bytes;
	uint64_t c = (uint32_t)~crc, word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; n; n--, p++)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p);
	return ~(uint32_t)c;
}

uint32_t crc32c_more(uint32_t crc, const void *bytes, size_t n)
{
	return __builtin_cpu_supports("sse4.2") ? by_machine(crc, bytes, n)
						: crc32c_by_tables(crc, bytes, n);
}
#else
uint32_t crc32c_more(uint32_t crc, const void *bytes, size_t n)
{
	return crc32c_by_tables(crc, bytes, n);
}
#endif

uint32_t crc32c(const void *bytes, size_t n)
{
	return crc32c_more(0, bytes, n);
}
