#include "gpuqd/rpc/token_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#define PREFIX "gpuq_"
#define SECRET_AT (sizeof(PREFIX) - 1 + TOKEN_TEXT_ID + 1)
#define SECRET_RAW 32
#define SECRET_CHARS 43
#define CHECK_AT (SECRET_AT + SECRET_CHARS)
#define CHECK_CHARS 6

_Static_assert(CHECK_AT + CHECK_CHARS + 1 == TOKEN_TEXT_BYTES, "the parts make the whole");

static uint32_t crc32_of(const char *p, size_t n)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < n; i++) {
		crc ^= (unsigned char)p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
	}
	return ~crc;
}

/* base64url without padding. */
static void encode(char *out, const unsigned char *in, size_t n, size_t chars)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint32_t bits = 0;
	unsigned have = 0;
	size_t k = 0;

	for (size_t i = 0; k < chars; i++) {
		bits = bits << 8 | (i < n ? in[i] : 0);
		have += 8;
		for (; have >= 6 && k < chars; have -= 6)
			out[k++] = digits[bits >> (have - 6) & 63];
	}
}

static void put_check(char *out, const char *text)
{
	const uint32_t crc = crc32_of(text, CHECK_AT);
	const unsigned char raw[] = { (unsigned char)(crc >> 24), (unsigned char)(crc >> 16),
				      (unsigned char)(crc >> 8), (unsigned char)crc };

	encode(out, raw, sizeof(raw), CHECK_CHARS);
}

static bool hash(const char *secret, unsigned char out[TOKEN_TEXT_HASH])
{
	unsigned n = 0;

	return EVP_Digest(secret, SECRET_CHARS, out, &n, EVP_sha256(), NULL) == 1 &&
	       n == TOKEN_TEXT_HASH;
}

int token_text_new(char text[TOKEN_TEXT_BYTES], struct token_text *out, struct gpuq_err *err)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char raw[SECRET_RAW], id[TOKEN_TEXT_ID];
	bool made = RAND_bytes(raw, sizeof(raw)) == 1 && RAND_bytes(id, sizeof(id)) == 1;

	for (size_t i = 0; i < sizeof(id); i++)
		out->id[i] = digits[id[i] & 31];
	out->id[sizeof(id)] = '\0';
	snprintf(text, TOKEN_TEXT_BYTES, PREFIX "%s_", out->id);
	encode(text + SECRET_AT, raw, sizeof(raw), SECRET_CHARS);
	put_check(text + CHECK_AT, text);
	text[TOKEN_TEXT_BYTES - 1] = '\0';
	made = made && hash(text + SECRET_AT, out->hash);
	OPENSSL_cleanse(raw, sizeof(raw));
	return made ? 0 : gpuq_fail(err, GPUQ_EIO, "no random bytes for a token");
}

bool token_text_is(const char *text)
{
	return strncmp(text, PREFIX, sizeof(PREFIX) - 1) == 0;
}

int token_text_read(const char *text, struct token_text *out, struct gpuq_err *err)
{
	const char *id = text + sizeof(PREFIX) - 1;
	char check[CHECK_CHARS];

	if (!token_text_is(text) || strnlen(text, TOKEN_TEXT_BYTES) != TOKEN_TEXT_BYTES - 1 ||
	    strspn(id, "abcdefghijklmnopqrstuvwxyz234567") != TOKEN_TEXT_ID ||
	    id[TOKEN_TEXT_ID] != '_')
		return gpuq_fail(err, GPUQ_EAUTH,
				 "expected a token as gpuq token create prints it");
	put_check(check, text);
	if (memcmp(check, text + CHECK_AT, CHECK_CHARS) != 0)
		return gpuq_fail(err, GPUQ_EAUTH, "the token is incomplete or mistyped");
	memcpy(out->id, id, TOKEN_TEXT_ID);
	out->id[TOKEN_TEXT_ID] = '\0';
	return hash(text + SECRET_AT, out->hash)
		       ? 0
		       : gpuq_fail(err, GPUQ_EIO, "the token cannot be hashed");
}

bool token_text_same(const unsigned char a[TOKEN_TEXT_HASH], const unsigned char b[TOKEN_TEXT_HASH])
{
	return CRYPTO_memcmp(a, b, TOKEN_TEXT_HASH) == 0;
}

void token_text_wipe(void *text, size_t n)
{
	OPENSSL_cleanse(text, n);
}
