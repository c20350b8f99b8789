/* hash.h - where bytes are looked for
 *
 * Owns     nothing.
 * Touches  memory only. A hash decides where a thing is looked for, never an order.
 * Used by  core: intern.c, blob.c, keys.c, the model's table of jobs, requests.
 */
#ifndef GPUQD_UTIL_HASH_H
#define GPUQD_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libgpuq/base/fnv.h"

/* All bits of x bear on each of those of the result. */
static inline uint32_t hash_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(x >> 32);
}

/* Hash a number from a series: eight in a row are looked for side by side, in one line of the
 * processor's cache, so that a walk in order of number seldom waits for memory. */
static inline uint32_t hash_number(uint64_t x)
{
	return hash_mix((x >> 3) * UINT64_C(0x9e3779b97f4a7c15)) << 3 | (uint32_t)(x & 7);
}

/* FNV-1a over words, then a mixing step: keys here are small structs and names. */
static inline uint32_t hash_bytes(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t h = GPUQ_FNV_START;
	uint64_t word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return hash_mix(gpuq_fnv(h, p, n));
}

#endif
