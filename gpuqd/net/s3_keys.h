/* s3_keys.h - the credentials of S3: of a file as the tools of AWS have it, or of the environment
 *
 * Owns     nothing.
 * Touches  a file, the environment.
 * Used by  s3.c.
 *
 *   [default]
 *   aws_access_key_id = ...
 *   aws_secret_access_key = ...
 *   aws_session_token = ...
 */
#ifndef GPUQD_NET_S3_KEYS_H
#define GPUQD_NET_S3_KEYS_H

#include "libgpuq/err.h"

struct s3_keys {
	char id[256], secret[256], session[4096]; /* session: "" = none */
};

/* section: of gpuqd.yaml, for messages. file NULL: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. GPUQ_EINVAL: there are none,
 * others may read the file, a line of it is none; no message has a word of them. */
int s3_keys_read(const char *section, const char *file, struct s3_keys *out, struct gpuq_err *err);

#endif
