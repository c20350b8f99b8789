/* bits.h - sets of small numbers as words
 *
 * Owns     nothing; a set is an array of bits_words(n) words, bits beyond n stay 0.
 * Used by  the scheduler: sets of nodes.
 */
#ifndef GPUQD_UTIL_BITS_H
#define GPUQD_UTIL_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint32_t bits_words(uint32_t n)
{
	return n / 64 + (n % 64 != 0);
}

static inline bool bits_has(const uint64_t *set, uint32_t i)
{
	return set[i / 64] >> (i % 64) & 1;
}

static inline void bits_add(uint64_t *set, uint32_t i)
{
	set[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline void bits_del(uint64_t *set, uint32_t i)
{
	set[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

static inline uint32_t bits_count(const uint64_t *set, uint32_t n_words)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < n_words; w++)
		n += (uint32_t)__builtin_popcountll(set[w]);
	return n;
}

/* Take the lowest member out of a word that is not 0; base is the word's first number. */
static inline uint32_t bits_pop(uint64_t *word, uint32_t base)
{
	uint32_t i = base + (uint32_t)__builtin_ctzll(*word);

	*word &= *word - 1;
	return i;
}

#endif
