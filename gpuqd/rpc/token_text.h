/* token_text.h - the text of a token: gpuq_<id>_<secret><check>
 *
 * Owns     its form. Touches memory, the random source of OpenSSL.
 * Used by  rpc/method/m_token.c, fuzz and unit tests.
 *
 * The id is 12 of a-z2-7, the secret 43 characters of base64url (256 bits), the check six: a CRC-32 of all
 * before it, so that a token that was cut or mistyped is distinguished from a wrong one without a look at the
 * database, and scanners for secrets recognise one.
 */
#ifndef GPUQD_RPC_TOKEN_TEXT_H
#define GPUQD_RPC_TOKEN_TEXT_H

#include <stdbool.h>

#include "libgpuq/err.h"

#define TOKEN_TEXT_ID 12
#define TOKEN_TEXT_HASH 32
#define TOKEN_TEXT_BYTES 68 /* with the NUL */

struct token_text {
	char id[TOKEN_TEXT_ID + 1];
	unsigned char hash[TOKEN_TEXT_HASH]; /* SHA-256 of the secret */
};

/* A new one; text is the only place where its secret is. GPUQ_EIO: no random bytes. */
int token_text_new(char text[TOKEN_TEXT_BYTES], struct token_text *out, struct gpuq_err *err);
/* Read one. GPUQ_EAUTH: it has another form, or the check does not hold. */
int token_text_read(const char *text, struct token_text *out, struct gpuq_err *err);
bool token_text_is(const char *text); /* it begins as one */
/* In the same time wherever they differ. */
bool token_text_same(const unsigned char a[TOKEN_TEXT_HASH],
		     const unsigned char b[TOKEN_TEXT_HASH]);
void token_text_wipe(void *text, size_t n);

#endif
