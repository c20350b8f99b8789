/* digest.h - SHA-256 of bytes and of files
 *
 * Owns     nothing. Touches libcrypto; the file of a descriptor, by pread(2).
 * Used by  segment.c; flow/copies.
 */
#ifndef GPUQD_STORE_DIGEST_H
#define GPUQD_STORE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "libgpuq/err.h"

#define DIGEST_BYTES 32
#define DIGEST_HEX_BYTES (2 * DIGEST_BYTES + 1)

struct digest;
int digest_new(struct digest **out, struct gpuq_err *err);
void digest_add(struct digest *d, const void *bytes, size_t n);
/* Write the digest of all that was added, and free it; NULL out: free alone. */
void digest_end(struct digest *d, unsigned char out[DIGEST_BYTES]);

/* Digest the first n bytes of a file (-1 = all of it); hex digits. Returns 0; GPUQ_EIO, also when the file is
 * shorter. *bytes (NULL is fine): how many there are. */
int digest_file(int fd, int64_t n, char hex[DIGEST_HEX_BYTES], int64_t *bytes,
		struct gpuq_err *err);
int digest_unhex(const char *hex, unsigned char out[DIGEST_BYTES]); /* GPUQ_EINVAL */
void digest_hex(const unsigned char digest[DIGEST_BYTES], char hex[DIGEST_HEX_BYTES]);

#endif
