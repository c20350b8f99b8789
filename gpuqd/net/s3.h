/* s3.h - requests to an object store that speaks S3, signed with AWS Signature Version 4
 *
 * Owns     handles of libcurl with their connections, each used by one thread at a time.
 * Touches  the network through libcurl; a file of credentials or AWS_* of the environment, a file of CAs.
 * Used by  flow/copies/target_s3.c.
 *
 * Every call blocks, and repeats what may go well a moment later: never on the loop. Redirects, the
 * environment's proxy and ~/.netrc are not followed or looked at.
 */
#ifndef GPUQD_NET_S3_H
#define GPUQD_NET_S3_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

#define S3_ANSWER_BYTES_MAX (4u << 20)
#define S3_ETAG_BYTES 192

enum s3_style { S3_STYLE_PATH, S3_STYLE_HOST };

struct s3;

struct s3_opts {
	/* https://HOST/BUCKET/PREFIX, or https://BUCKET.HOST/PREFIX with S3_STYLE_HOST; not copied */
	const char *url;
	enum s3_style style;
	const char *region; /* NULL = AWS_REGION, AWS_DEFAULT_REGION, us-east-1 */
	const char
		*credentials; /* a file that only the owner may read; NULL = of the environment */
	const char *ca; /* PEM; NULL = the CAs of the system */
	const char *section; /* of gpuqd.yaml, for messages; NULL = backup */
	int64_t timeout_us; /* of a try */
	const atomic_bool *stop; /* once true, calls end with GPUQ_ECANCELED; NULL is fine */
};

/* True if url is one for s3_new; err says what was expected. */
bool s3_is_url(const char *url, enum s3_style style, struct gpuq_err *err);

/* Credentials are looked for, and read anew for each call. GPUQ_EINVAL. */
int s3_new(const struct s3_opts *o, struct s3 **out, struct gpuq_err *err);
void s3_free(struct s3 *s); /* NULL is fine */
/* The prefix of all names of objects: "", or a text that ends with a slash. */
const char *s3_prefix(const struct s3 *s);

/* Where its objects are; texts of s. */
struct s3_place {
	const char *host; /* with its port, as the address has it */
	const char *bucket; /* "/BUCKET", or "" */
	const char *region;
	const char *credentials, *section; /* as of s3_opts */
};
void s3_place(const struct s3 *s, struct s3_place *out);

struct s3_request {
	const char *method;
	const char *name; /* of an object, without the prefix; NULL = the bucket */
	const char *
		query; /* names in order, values percent-encoded: "list-type=2&prefix=a%2Fb"; NULL = none */
	const char *sha256; /* as hex, of what is sent; NULL = that is nothing */
	/* PUT: bytes of a file from at on */
	int fd;
	int64_t at, bytes;
	const struct gpuq_buf *text; /* POST */
	int out; /* GET: the file that takes the object; -1 = answer takes what there is */
	/* filled */
	struct gpuq_buf answer; /* the caller's to free */
	char etag[S3_ETAG_BYTES];
	unsigned tries; /* how often it was made */
};
#define S3_REQUEST_INIT(method_)                                                                   \
	{                                                                                          \
		.method = (method_), .fd = -1, .out = -1,                                          \
		.answer = GPUQ_BUF_INIT_MAX(S3_ANSWER_BYTES_MAX)                                   \
	}

/* Returns 0; GPUQ_ENOENT (no such object or upload), GPUQ_EINVAL (no such bucket), GPUQ_EPERM (the key, its
 * rights, the region or the clock), GPUQ_EUNREACH, GPUQ_ETIMEOUT, GPUQ_ECANCELED, GPUQ_ETOOBIG, GPUQ_EIO. */
int s3_call(struct s3 *s, struct s3_request *q, struct gpuq_err *err);

/* Append text with all but unreserved characters percent-encoded. */
void s3_encode(struct gpuq_buf *out, const char *text);

#endif
