/* device_reply.h - what an issuer answers in the device flow, RFC 8628 sections 3.2 and 3.5
 *
 * Owns     nothing. Touches memory only.
 * Used by  device.c, unit tests.
 *
 * Texts of an issuer go to a user's terminal: they are of printable ASCII and short, and addresses are of https.
 */
#ifndef GPUQD_AUTH_DEVICE_REPLY_H
#define GPUQD_AUTH_DEVICE_REPLY_H

#include <stdint.h>

#include "libgpuq/err.h"

struct fetched;

struct device_codes {
	char *device_code, *user_code, *uri, *uri_complete; /* uri_complete NULL = none was given */
	int64_t expires_s, interval_s;
};

/* name: of the issuer, for messages. 0, or GPUQ_EUNREACH and what is wrong with the answer. */
int device_read_codes(const char *name, const struct fetched *got, struct device_codes *out,
		      struct gpuq_err *err);
void device_codes_done(struct device_codes *c);

enum device_outcome {
	DEVICE_PENDING,
	DEVICE_SLOWER, /* pending, and asked too often */
	DEVICE_HAS_TOKEN,
	DEVICE_FAILED, /* err: it is over */
	DEVICE_AWAY, /* err: nothing was learned; ask again */
};
/* got NULL: it could not be asked, by why. *token is the caller's. */
enum device_outcome device_read_token(const char *name, const struct fetched *got,
				      const struct gpuq_err *why, char **token,
				      struct gpuq_err *err);

#endif
