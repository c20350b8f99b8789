/* s3_presign.h - addresses by which whoever has them may read one object for a while
 *
 * Owns     nothing.
 * Touches  libcrypto; the credentials, as s3.h does.
 * Used by  flow/copies/target.c.
 *
 * AWS Signature Version 4 in the query: the address has the id of the key and a signature, never the key.
 */
#ifndef GPUQD_NET_S3_PRESIGN_H
#define GPUQD_NET_S3_PRESIGN_H

#include <stdint.h>
#include <time.h>

#include "gpuqd/net/s3_keys.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

#define S3_PRESIGN_S_MAX 604800 /* more is refused by stores */

struct s3;

struct s3_presign {
	const char *host; /* with its port, unless that is 443 */
	const char *path; /* /BUCKET/NAME, or /NAME; of unreserved characters and slashes */
	const char *region;
	const struct s3_keys *keys;
	time_t now;
	int64_t valid_s;
};

/* Append the address of a GET. */
void s3_presign_write(const struct s3_presign *p, struct gpuq_buf *out);

/* Append that of an object of s, without the prefix, from now on. GPUQ_EINVAL: no credentials. */
int s3_presign(const struct s3 *s, const char *name, int64_t valid_s, struct gpuq_buf *out,
	       struct gpuq_err *err);

#endif
