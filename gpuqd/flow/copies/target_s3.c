/* Object stores that speak S3 as targets of copies. A larger file is put in parts, which are no object before the last
 * of them is there. */
#include "gpuqd/flow/copies/target_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/net/s3.h"
#include "gpuqd/net/s3_xml.h"
#include "gpuqd/store/digest.h"

#define PART_BYTES (INT64_C(16) << 20) /* a store requires 5 MiB, of all but the last */
#define PARTS_MAX 10000
#define PAGES_MAX 10000 /* of a list, a thousand names each */
#define TOKEN_BYTES 2048
#define UPLOAD_BYTES 1024

/* ---- lists ---- */

static void list_query(const struct target *t, const char *prefix, const char *token,
		       struct gpuq_buf *out)
{
	if (*token) {
		gpuq_buf_adds(out, "continuation-token=");
		s3_encode(out, token);
		gpuq_buf_addc(out, '&');
	}
	gpuq_buf_adds(out, "list-type=2&prefix=");
	s3_encode(out, s3_prefix(t->s3));
	s3_encode(out, prefix);
}

/* The name of an object or upload without our prefix; NULL: it is deeper, or of others. */
static const char *name_of(const struct target *t, const struct s3_xml *item, char *key,
			   size_t size)
{
	const char *prefix = s3_prefix(t->s3);
	const size_t n = strlen(prefix);

	if (!s3_xml_text(item, "Key", key, size) || strncmp(key, prefix, n) != 0 ||
	    strchr(key + n, '/'))
		return NULL;
	return key + n;
}

static int take_page(const struct target *t, const struct gpuq_buf *answer, struct target_list *out,
		     char token[TOKEN_BYTES], struct gpuq_err *err)
{
	const struct s3_xml all = { answer->data, answer->len };
	struct s3_xml rest = all, item;
	char key[2048], bytes[24], more[8], next[TOKEN_BYTES];
	const char *name;
	int rc = 0;

	if (!s3_xml_next(&rest, "ListBucketResult", &item))
		return gpuq_fail(err, GPUQ_EIO, "%s: its answer is not a list of S3",
				 target_text(t));
	for (rest = all; rc == 0 && s3_xml_next(&rest, "Contents", &item);) {
		name = name_of(t, &item, key, sizeof(key));
		if (name)
			rc = target_list_add(out, name,
					     s3_xml_text(&item, "Size", bytes, sizeof(bytes))
						     ? strtoll(bytes, NULL, 10)
						     : -1,
					     err);
	}
	s3_xml_text(&all, "IsTruncated", more, sizeof(more));
	s3_xml_text(&all, "NextContinuationToken", next, sizeof(next));
	if (rc == 0 && strcmp(more, "true") == 0 && (!*next || strcmp(next, token) == 0))
		return gpuq_fail(err, GPUQ_EIO, "%s: its list ends without an end", target_text(t));
	snprintf(token, TOKEN_BYTES, "%s", strcmp(more, "true") == 0 ? next : "");
	return rc;
}

static void abort_upload(struct target *t, const char *name, const char *upload)
{
	struct s3_request q = S3_REQUEST_INIT("DELETE");
	struct gpuq_buf query = GPUQ_BUF_INIT;

	gpuq_buf_adds(&query, "uploadId=");
	s3_encode(&query, upload);
	q.name = name;
	q.query = gpuq_buf_str(&query);
	s3_call(t->s3, &q, NULL); /* what stays is listed by the next pass */
	gpuq_buf_done(&q.answer);
	gpuq_buf_done(&query);
}

/* Delete the parts of copies that an earlier daemon did not finish: none is under way, since the thread that lists also
 * puts copies. A restore has no stop, and changes nothing. */
static void abort_left_over(struct target *t, const char *prefix)
{
	struct s3_request q = S3_REQUEST_INIT("GET");
	struct gpuq_buf query = GPUQ_BUF_INIT;
	struct s3_xml rest, item;
	char key[2048], upload[UPLOAD_BYTES];
	const size_t end = strlen(NAMES_COPY);
	const char *name;
	size_t n;

	gpuq_buf_adds(&query, "prefix=");
	s3_encode(&query, s3_prefix(t->s3));
	s3_encode(&query, prefix);
	gpuq_buf_adds(&query, "&uploads=");
	q.query = gpuq_buf_str(&query);
	/* Not every store knows of it. */
	if (t->stop && s3_call(t->s3, &q, NULL) == 0) {
		rest = (struct s3_xml){ q.answer.data, q.answer.len };
		while (s3_xml_next(&rest, "Upload", &item)) {
			name = name_of(t, &item, key, sizeof(key));
			n = name ? strlen(name) : 0;
			if (n > end && strcmp(name + n - end, NAMES_COPY) == 0 &&
			    s3_xml_text(&item, "UploadId", upload, sizeof(upload)))
				abort_upload(t, name, upload);
		}
	}
	gpuq_buf_done(&q.answer);
	gpuq_buf_done(&query);
}

static int s3_list(struct target *t, const char *prefix, struct target_list *out,
		   struct gpuq_err *err)
{
	char token[TOKEN_BYTES] = "";
	int rc = 0, pages = 0;

	(void)FAILPOINT("backup.list");
	abort_left_over(t, prefix);
	do {
		struct s3_request q = S3_REQUEST_INIT("GET");
		struct gpuq_buf query = GPUQ_BUF_INIT;

		list_query(t, prefix, token, &query);
		q.query = gpuq_buf_str(&query);
		rc = s3_call(t->s3, &q, err);
		if (rc == 0)
			rc = take_page(t, &q.answer, out, token, err);
		gpuq_buf_done(&q.answer);
		gpuq_buf_done(&query);
	} while (rc == 0 && *token && ++pages < PAGES_MAX);
	if (rc == 0 && *token)
		rc = gpuq_fail(err, GPUQ_ETOOBIG, "%s has more than %d million names",
			       target_text(t), PAGES_MAX / 1000);
	return rc;
}

/* ---- put ---- */

struct upload {
	const char *name;
	char id[UPLOAD_BYTES];
	int fd;
	int64_t bytes, part_bytes;
	struct gpuq_buf parts; /* the list that completes it */
};

static int upload_call(struct target *t, const struct upload *u, struct s3_request *q,
		       const char *query, struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	int rc;

	gpuq_buf_adds(&text, query);
	s3_encode(&text, u->id);
	q->name = u->name;
	q->query = gpuq_buf_str(&text);
	rc = s3_call(t->s3, q, err);
	gpuq_buf_done(&text);
	return rc;
}

static int begin_upload(struct target *t, struct upload *u, struct gpuq_err *err)
{
	const struct gpuq_buf none = GPUQ_BUF_INIT;
	struct s3_request q = S3_REQUEST_INIT("POST");
	struct s3_xml all;
	int rc;

	q.text = &none;
	rc = upload_call(t, u, &q, "uploads=", err);
	all = (struct s3_xml){ q.answer.data, q.answer.len };
	if (rc == 0 && !s3_xml_text(&all, "UploadId", u->id, sizeof(u->id)))
		rc = gpuq_fail(err, GPUQ_EIO, "%s: its answer has no UploadId", target_text(t));
	gpuq_buf_done(&q.answer);
	return rc;
}

/* SHA-256 of some bytes of the file, as hex. */
static int digest_part(int fd, int64_t at, int64_t n, char hex[DIGEST_HEX_BYTES],
		       struct gpuq_err *err)
{
	unsigned char is[DIGEST_BYTES];
	struct digest *d = NULL;
	char chunk[65536];
	ssize_t got = 1;
	int rc = digest_new(&d, err);

	if (rc < 0)
		return rc;
	while (n > 0 && got > 0) {
		got = pread(fd, chunk, n < (int64_t)sizeof(chunk) ? (size_t)n : sizeof(chunk), at);
		if (got > 0)
			digest_add(d, chunk, (size_t)got);
		n -= got;
		at += got;
	}
	digest_end(d, is);
	digest_hex(is, hex);
	return got > 0 ? 0 : gpuq_fail(err, GPUQ_EIO, "a copy beside the database was cut short");
}

static int put_part(struct target *t, struct upload *u, int number, int64_t at,
		    struct gpuq_err *err)
{
	struct s3_request q = S3_REQUEST_INIT("PUT");
	char hex[DIGEST_HEX_BYTES], query[64];
	int rc;

	q.fd = u->fd;
	q.at = at;
	q.bytes = u->bytes - at < u->part_bytes ? u->bytes - at : u->part_bytes;
	q.sha256 = hex;
	rc = digest_part(u->fd, at, q.bytes, hex, err);
	snprintf(query, sizeof(query), "partNumber=%d&uploadId=", number);
	if (rc == 0)
		rc = upload_call(t, u, &q, query, err);
	if (rc == 0)
		gpuq_buf_printf(&u->parts,
				"<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", number,
				q.etag);
	gpuq_buf_done(&q.answer);
	return rc;
}

static int digest_text(const struct gpuq_buf *text, char hex[DIGEST_HEX_BYTES],
		       struct gpuq_err *err)
{
	unsigned char is[DIGEST_BYTES];
	struct digest *d = NULL;
	int rc = digest_new(&d, err);

	if (rc < 0)
		return rc;
	digest_add(d, text->data, text->len);
	digest_end(d, is);
	digest_hex(is, hex);
	return 0;
}

/* True if an object has that many bytes: the answer to the upload that made it was lost. */
static bool is_there(struct target *t, const char *name, int64_t bytes)
{
	struct target_list l = { .items = NULL };
	const struct target_item *it = NULL;

	if (target_list(t, name, &l, NULL) == 0)
		it = target_find(&l, name);
	target_list_done(&l);
	return it && it->bytes == bytes;
}

static int end_upload(struct target *t, struct upload *u, struct gpuq_err *err)
{
	struct s3_request q = S3_REQUEST_INIT("POST");
	char hex[DIGEST_HEX_BYTES];
	int rc;

	gpuq_buf_adds(&u->parts, "</CompleteMultipartUpload>");
	if (u->parts.failed)
		return gpuq_no_memory(err);
	rc = digest_text(&u->parts, hex, err);
	if (rc < 0)
		return rc;
	q.text = &u->parts;
	q.sha256 = hex;
	rc = upload_call(t, u, &q, "uploadId=", err);
	gpuq_buf_done(&q.answer);
	return rc == GPUQ_ENOENT && q.tries > 1 && is_there(t, u->name, u->bytes) ? 0 : rc;
}

static int put_in_parts(struct target *t, struct upload *u, struct gpuq_err *err)
{
	int rc = begin_upload(t, u, err), number = 0;

	if (rc < 0)
		return rc;
	while (u->part_bytes * PARTS_MAX < u->bytes)
		u->part_bytes *= 2;
	gpuq_buf_adds(&u->parts, "<CompleteMultipartUpload>");
	for (int64_t at = 0; rc == 0 && at < u->bytes; at += u->part_bytes)
		rc = put_part(t, u, ++number, at, err);
	(void)FAILPOINT("backup.s3.whole");
	if (rc == 0)
		rc = end_upload(t, u, err);
	if (rc < 0 && !target_ends(t))
		abort_upload(t, u->name, u->id);
	gpuq_buf_done(&u->parts);
	return rc;
}

static int s3_put(struct target *t, const char *name, int fd, const char *sha256, bool replace,
		  struct gpuq_err *err)
{
	struct upload u = { .name = name, .fd = fd, .part_bytes = PART_BYTES };
	struct s3_request q = S3_REQUEST_INIT("PUT");
	struct stat st;
	int rc;

	(void)replace;
	if (fstat(fd, &st) != 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: no size", name);
	u.bytes = q.bytes = st.st_size;
	if (u.bytes > u.part_bytes)
		return put_in_parts(t, &u, err);
	q.name = name;
	q.fd = fd;
	q.sha256 = sha256;
	rc = s3_call(t->s3, &q, err);
	gpuq_buf_done(&q.answer);
	return rc;
}

/* ---- the rest ---- */

static int s3_open(struct target *t, const char *name, int *fd, struct gpuq_err *err)
{
	struct s3_request q = S3_REQUEST_INIT("GET");
	int rc = q.out = target_scratch(t, err);

	if (rc < 0)
		return rc;
	q.name = name;
	rc = s3_call(t->s3, &q, err);
	gpuq_buf_done(&q.answer);
	if (rc == 0)
		*fd = q.out;
	else
		close(q.out);
	return rc;
}

static int s3_remove(struct target *t, const char *name, struct gpuq_err *err)
{
	struct s3_request q = S3_REQUEST_INIT("DELETE");
	int rc;

	q.name = name;
	rc = s3_call(t->s3, &q, err);
	gpuq_buf_done(&q.answer);
	return rc == GPUQ_ENOENT ? 0 : rc;
}

const struct target_ops target_s3_ops = { s3_list, NULL, s3_put, s3_open, s3_remove };
