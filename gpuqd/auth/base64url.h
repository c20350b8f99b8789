/* base64url.h - base64url without padding, RFC 4648 section 5, strictly: no two texts of the same bytes
 *
 * Owns     nothing. Touches memory only.
 * Used by  jwt.c, jwks.c. libcjose ends the process at a text that is cut: it gets none that was not read here.
 */
#ifndef GPUQD_AUTH_BASE64URL_H
#define GPUQD_AUTH_BASE64URL_H

#include <stddef.h>

/* out has room for n bytes. 0 and their number, or GPUQ_EINVAL. */
int base64url_read(const char *s, size_t n, unsigned char *out, size_t *n_out);

#endif
