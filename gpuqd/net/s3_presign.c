#include "gpuqd/net/s3_presign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "gpuqd/net/s3.h"

#define HASH_BYTES 32
#define SERVICE "s3"
#define ENDS "aws4_request"
#define DEFAULT_PORT ":443"

static void hex_of(const unsigned char in[HASH_BYTES], char out[2 * HASH_BYTES + 1])
{
	for (int i = 0; i < HASH_BYTES; i++)
		snprintf(out + 2 * (size_t)i, 3, "%02x", in[i]);
}

static void mac(const void *key, size_t n, const char *text, unsigned char out[HASH_BYTES])
{
	unsigned char result[EVP_MAX_MD_SIZE] = { 0 };

	HMAC(EVP_sha256(), key, (int)n, (const unsigned char *)text, strlen(text), result, NULL);
	memcpy(out, result, HASH_BYTES);
	explicit_bzero(result, sizeof(result));
}

/* The key of a day, a region and a service, and with it the signature. */
static void sign(const struct s3_presign *p, const char *day, const char *text,
		 char out[2 * HASH_BYTES + 1])
{
	const char *parts[] = { day, p->region, SERVICE, ENDS };
	unsigned char key[HASH_BYTES], next[HASH_BYTES];
	char first[sizeof(p->keys->secret) + 8];

	snprintf(first, sizeof(first), "AWS4%s", p->keys->secret);
	mac(first, strlen(first), parts[0], key);
	for (size_t i = 1; i < sizeof(parts) / sizeof(*parts); i++) {
		mac(key, sizeof(key), parts[i], next);
		memcpy(key, next, sizeof(key));
	}
	mac(key, sizeof(key), text, next);
	hex_of(next, out);
	explicit_bzero(first, sizeof(first));
	explicit_bzero(key, sizeof(key));
}

void s3_presign_write(const struct s3_presign *p, struct gpuq_buf *out)
{
	struct gpuq_buf scope = GPUQ_BUF_INIT, query = GPUQ_BUF_INIT, text = GPUQ_BUF_INIT;
	unsigned char hash[EVP_MAX_MD_SIZE] = { 0 };
	char hex[2 * HASH_BYTES + 1], day[16], when[24];
	struct tm tm;

	gmtime_r(&p->now, &tm);
	strftime(day, sizeof(day), "%Y%m%d", &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	gpuq_buf_printf(&scope, "%s/%s/" SERVICE "/" ENDS, day, p->region);
	gpuq_buf_adds(&query, "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=");
	s3_encode(&query, p->keys->id);
	gpuq_buf_adds(&query, "%2F");
	s3_encode(&query, gpuq_buf_str(&scope));
	gpuq_buf_printf(&query, "&X-Amz-Date=%s&X-Amz-Expires=%" PRId64, when, p->valid_s);
	if (*p->keys->session) {
		gpuq_buf_adds(&query, "&X-Amz-Security-Token=");
		s3_encode(&query, p->keys->session);
	}
	gpuq_buf_adds(&query, "&X-Amz-SignedHeaders=host");
	gpuq_buf_printf(&text, "GET\n%s\n%s\nhost:%s\n\nhost\nUNSIGNED-PAYLOAD", p->path,
			gpuq_buf_str(&query), p->host);
	EVP_Digest(gpuq_buf_str(&text), text.len, hash, NULL, EVP_sha256(), NULL);
	hex_of(hash, hex);
	gpuq_buf_clear(&text);
	gpuq_buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", when, gpuq_buf_str(&scope), hex);
	sign(p, day, gpuq_buf_str(&text), hex);
	gpuq_buf_printf(out, "https://%s%s?%s&X-Amz-Signature=%s", p->host, p->path,
			gpuq_buf_str(&query), hex);
	gpuq_buf_done(&scope);
	gpuq_buf_done(&query);
	gpuq_buf_done(&text);
}

int s3_presign(const struct s3 *s, const char *name, int64_t valid_s, struct gpuq_buf *out,
	       struct gpuq_err *err)
{
	struct gpuq_buf path = GPUQ_BUF_INIT, host = GPUQ_BUF_INIT;
	struct s3_place at;
	struct s3_keys keys;
	size_t n;
	int rc;

	s3_place(s, &at);
	rc = s3_keys_read(at.section, at.credentials, &keys, err);
	if (rc < 0)
		return rc;
	n = strlen(at.host);
	/* Clients leave it out of what is signed. */
	if (n > strlen(DEFAULT_PORT) &&
	    strcmp(at.host + n - strlen(DEFAULT_PORT), DEFAULT_PORT) == 0)
		n -= strlen(DEFAULT_PORT);
	gpuq_buf_add(&host, at.host, n);
	gpuq_buf_printf(&path, "%s/%s%s", at.bucket, s3_prefix(s), name);
	s3_presign_write(&(struct s3_presign){ .host = gpuq_buf_str(&host),
					       .path = gpuq_buf_str(&path),
					       .region = at.region,
					       .keys = &keys,
					       .now = time(NULL),
					       .valid_s = valid_s },
			 out);
	gpuq_buf_done(&host);
	gpuq_buf_done(&path);
	explicit_bzero(&keys, sizeof(keys));
	return out->failed ? gpuq_no_memory(err) : 0;
}
