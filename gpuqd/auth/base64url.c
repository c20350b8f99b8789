#include "gpuqd/auth/base64url.h"

#include <string.h>

#include "libgpuq/err.h"

static int digit(char c)
{
	static const char all[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	const char *at = c ? strchr(all, c) : NULL;

	return at ? (int)(at - all) : -1;
}

int base64url_read(const char *s, size_t n, unsigned char *out, size_t *n_out)
{
	unsigned bits = 0, have = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		const int d = digit(s[i]);

		if (d < 0)
			return GPUQ_EINVAL;
		bits = (bits << 6 | (unsigned)d) & 0xffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[k++] = (unsigned char)(bits >> have);
		}
	}
	if (have >= 6 || (bits & ((1u << have) - 1)) != 0)
		return GPUQ_EINVAL;
	*n_out = k;
	return 0;
}
