#include "config.h"

#include "gpuq/slurm/mpi/hmac.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 64
#define DIGEST 32

struct sha {
	uint32_t h[8];
	uint64_t n; /* bytes so far */
	unsigned char block[BLOCK];
};

/* clang-format off */
static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* clang-format on */

static uint32_t right(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void take_block(struct sha *s)
{
	uint32_t w[64], v[8];

	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
		       (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
	for (size_t i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (right(w[i - 15], 7) ^ right(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (right(w[i - 2], 17) ^ right(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, s->h, sizeof(v));
	for (size_t i = 0; i < 64; i++) {
		const uint32_t one = v[7] + k[i] + w[i] + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
				     (right(v[4], 6) ^ right(v[4], 11) ^ right(v[4], 25)),
			       two = (right(v[0], 2) ^ right(v[0], 13) ^ right(v[0], 22)) +
				     ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += one;
		v[0] = one + two;
	}
	for (size_t i = 0; i < 8; i++)
		s->h[i] += v[i];
}

static void start(struct sha *s)
{
	*s = (struct sha){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				  0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

static void add(struct sha *s, const void *data, size_t n)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++) {
		s->block[s->n++ % BLOCK] = p[i];
		if (s->n % BLOCK == 0)
			take_block(s);
	}
}

static void end(struct sha *s, unsigned char out[DIGEST])
{
	const uint64_t bits = s->n * 8;
	unsigned char length[8];

	add(s, "\x80", 1);
	while (s->n % BLOCK != BLOCK - sizeof(length))
		add(s, "", 1);
	for (size_t i = 0; i < sizeof(length); i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	add(s, length, sizeof(length));
	for (size_t i = 0; i < DIGEST; i++)
		out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- HMAC ---- */

static void start_keyed(struct sha *s, const unsigned char key[BLOCK], unsigned char mask)
{
	start(s);
	for (size_t i = 0; i < BLOCK; i++) {
		const unsigned char one = key[i] ^ mask;

		add(s, &one, 1);
	}
}

static void pad_key(const void *key, size_t n, unsigned char out[BLOCK])
{
	struct sha s;

	memset(out, 0, BLOCK);
	if (n <= BLOCK) {
		memcpy(out, key, n);
		return;
	}
	start(&s);
	add(&s, key, n);
	end(&s, out);
}

static void finish(struct sha *inner, const unsigned char key[BLOCK], char out[HMAC_HEX_BYTES])
{
	unsigned char raw[DIGEST];
	struct sha outer;

	end(inner, raw);
	start_keyed(&outer, key, 0x5c);
	add(&outer, raw, sizeof(raw));
	end(&outer, raw);
	for (size_t i = 0; i < DIGEST; i++)
		snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

void hmac_words(const char *key, const char *const *words, char out[HMAC_HEX_BYTES])
{
	unsigned char padded[BLOCK];
	struct sha s;

	pad_key(key, strlen(key), padded);
	start_keyed(&s, padded, 0x36);
	for (; *words; words++)
		add(&s, *words, strlen(*words) + 1);
	finish(&s, padded, out);
}

void hmac_bytes(const void *key, size_t n_key, const void *data, size_t n, char out[HMAC_HEX_BYTES])
{
	unsigned char padded[BLOCK];
	struct sha s;

	pad_key(key, n_key, padded);
	start_keyed(&s, padded, 0x36);
	add(&s, data, n);
	finish(&s, padded, out);
}
