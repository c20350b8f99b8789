#include "gpuqd/store/digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#define CHUNK_BYTES (256u << 10)

struct digest {
	EVP_MD_CTX *ctx;
};

int digest_new(struct digest **out, struct gpuq_err *err)
{
	struct digest *d = calloc(1, sizeof(*d));

	if (d)
		d->ctx = EVP_MD_CTX_new();
	if (!d || !d->ctx || EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) != 1) {
		digest_end(d, NULL);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a SHA-256");
	}
	*out = d;
	return 0;
}

void digest_add(struct digest *d, const void *bytes, size_t n)
{
	EVP_DigestUpdate(d->ctx, bytes, n);
}

void digest_end(struct digest *d, unsigned char out[DIGEST_BYTES])
{
	unsigned n = 0;

	if (!d)
		return;
	if (out)
		EVP_DigestFinal_ex(d->ctx, out, &n);
	EVP_MD_CTX_free(d->ctx);
	free(d);
}

void digest_hex(const unsigned char digest[DIGEST_BYTES], char hex[DIGEST_HEX_BYTES])
{
	for (size_t i = 0; i < DIGEST_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

int digest_unhex(const char *hex, unsigned char out[DIGEST_BYTES])
{
	unsigned byte;

	for (size_t i = 0; i < DIGEST_BYTES; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return GPUQ_EINVAL;
		out[i] = (unsigned char)byte;
	}
	return 0;
}

static int add_file(struct digest *d, int fd, int64_t n, int64_t *bytes, struct gpuq_err *err)
{
	char *chunk = malloc(CHUNK_BYTES);
	int64_t at = 0;
	ssize_t got = 0;
	int rc = 0;

	if (!chunk)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a SHA-256");
	while (n < 0 || at < n) {
		const int64_t left = n < 0 ? CHUNK_BYTES : n - at;

		got = pread(fd, chunk, left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		digest_add(d, chunk, (size_t)got);
		at += got;
	}
	if (got < 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s", strerror(errno));
	else if (at < n)
		rc = gpuq_fail(err, GPUQ_EIO, "it is cut short");
	free(chunk);
	*bytes = at;
	return rc;
}

int digest_file(int fd, int64_t n, char hex[DIGEST_HEX_BYTES], int64_t *bytes, struct gpuq_err *err)
{
	unsigned char raw[DIGEST_BYTES];
	struct digest *d = NULL;
	int64_t is = 0;
	int rc = digest_new(&d, err);

	if (rc == 0)
		rc = add_file(d, fd, n, &is, err);
	digest_end(d, rc == 0 ? raw : NULL);
	if (rc < 0)
		return rc;
	digest_hex(raw, hex);
	if (bytes)
		*bytes = is;
	return 0;
}
