#include "gpuqd/net/s3.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/net/s3_keys.h"
#include "gpuqd/net/s3_xml.h"

#define SCHEME "https://"
#define URL_BYTES_MAX 1024
#define TRIES 4u
#define WAIT_MS 500 /* before the second; doubled before each of the next */
#define STEP_MS 50
#define CONNECT_S 30L
#define STALL_S 60L
#define SKEW_S 60
#define IDLE_MAX 2
#define SHA256_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct s3 {
	struct s3_opts o;
	char origin[URL_BYTES_MAX]; /* https://HOST:PORT */
	char bucket[URL_BYTES_MAX]; /* /BUCKET, or "" */
	char prefix[URL_BYTES_MAX]; /* "", or ends with a slash */
	char region[64];
	pthread_mutex_t lock;
	CURL *idle[IDLE_MAX]; /* with their connections */
};

/* One try of a request. */
struct attempt {
	const struct s3 *s;
	struct s3_request *q;
	CURL *easy;
	struct curl_slist *headers;
	struct s3_keys keys;
	int64_t moved; /* bytes that were sent or stored */
	int file_errno; /* of our own file */
	time_t date; /* of the server; -1 = not told */
	char region[64]; /* where the bucket is, if the server says that */
	CURLcode code;
	long status;
	char why[CURL_ERROR_SIZE];
};

/* ---- addresses ---- */

static bool is_part(const char *s, size_t n, const char *others)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !memchr(others, s[i], strlen(others)))
			return false;
	return n > 0;
}

/* Segments of a path as no client or server rewrites them. */
static bool is_path(const char *s)
{
	while (*s) {
		const size_t n = strcspn(s, "/");

		if (!is_part(s, n, "-._~") || strspn(s, ".") == n)
			return false;
		s += n;
		if (*s == '/' && !*++s)
			return false;
	}
	return true;
}

bool s3_is_url(const char *url, enum s3_style style, struct gpuq_err *err)
{
	const char *host = url + strlen(SCHEME), *path;
	size_t n;

	if (strncmp(url, SCHEME, strlen(SCHEME)) != 0 || strlen(url) >= URL_BYTES_MAX)
		return gpuq_fail(err, GPUQ_EINVAL, "expected https://HOST/BUCKET/PREFIX"), false;
	n = strcspn(host, "/");
	if (memchr(host, '@', n))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected no credentials in the address: use s3.credentials"),
		       false;
	if (!is_part(host, n, "-._:[]"))
		return gpuq_fail(err, GPUQ_EINVAL, "expected the name of a host after https://"),
		       false;
	path = host + n + (host[n] == '/');
	if (style == S3_STYLE_PATH && !*path)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected a bucket, as in https://HOST/BUCKET/PREFIX; one in the "
				 "name of the host needs s3: {style: host}"),
		       false;
	if (!is_path(path))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected a path of letters, digits and -._~ between single "
				 "slashes, without a trailing one"),
		       false;
	return true;
}

static void split_url(struct s3 *s)
{
	const size_t n = strlen(SCHEME) + strcspn(s->o.url + strlen(SCHEME), "/");
	const char *path = s->o.url + n;

	snprintf(s->origin, sizeof(s->origin), "%.*s", (int)n, s->o.url);
	if (s->o.style == S3_STYLE_PATH) {
		const size_t bucket = 1 + strcspn(path + 1, "/");

		snprintf(s->bucket, sizeof(s->bucket), "%.*s", (int)bucket, path);
		path += bucket;
	}
	if (*path == '/' && path[1])
		snprintf(s->prefix, sizeof(s->prefix), "%s/", path + 1);
}

static const char *section_of(const struct s3_opts *o)
{
	return o->section ? o->section : "backup";
}

static const char *region_of(const struct s3_opts *o)
{
	const char *words[] = { o->region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION") };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i] && *words[i])
			return words[i];
	return "us-east-1";
}

int s3_new(const struct s3_opts *o, struct s3 **out, struct gpuq_err *err)
{
	const char *region = region_of(o);
	struct s3_keys keys;
	struct s3 *s;
	int rc;

	if (!s3_is_url(o->url, o->style, err))
		return gpuq_err_prefix(err, "%s", o->url);
	if (!is_part(region, strlen(region), "-_") || strlen(region) >= sizeof(s->region))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "%s.s3.region, AWS_REGION: expected a name such as eu-west-1",
				 section_of(o));
	rc = s3_keys_read(section_of(o), o->credentials, &keys, err);
	if (rc < 0)
		return rc;
	explicit_bzero(&keys, sizeof(keys));
	s = calloc(1, sizeof(*s));
	if (!s)
		return gpuq_no_memory(err);
	s->o = *o;
	split_url(s);
	snprintf(s->region, sizeof(s->region), "%s", region);
	pthread_mutex_init(&s->lock, NULL);
	/* The first handle of the process sets up libcurl, which is not for two threads at once. */
	s->idle[0] = curl_easy_init();
	*out = s;
	return 0;
}

void s3_free(struct s3 *s)
{
	if (!s)
		return;
	for (int i = 0; i < IDLE_MAX; i++)
		curl_easy_cleanup(s->idle[i]);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const char *s3_prefix(const struct s3 *s)
{
	return s->prefix;
}

void s3_place(const struct s3 *s, struct s3_place *out)
{
	*out = (struct s3_place){ s->origin + strlen(SCHEME), s->bucket, s->region,
				  s->o.credentials, section_of(&s->o) };
}

void s3_encode(struct gpuq_buf *out, const char *text)
{
	for (; *text; text++) {
		if (is_part(text, 1, "-._~"))
			gpuq_buf_addc(out, *text);
		else
			gpuq_buf_printf(out, "%%%02X", (unsigned char)*text);
	}
}

/* ---- handles ---- */

static CURL *take_handle(struct s3 *s)
{
	CURL *e = NULL;

	pthread_mutex_lock(&s->lock);
	for (int i = 0; !e && i < IDLE_MAX; i++) {
		e = s->idle[i];
		s->idle[i] = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	return e ? e : curl_easy_init();
}

static void give_back(struct s3 *s, CURL *e)
{
	curl_easy_reset(e); /* the credentials go, the connections stay */
	pthread_mutex_lock(&s->lock);
	for (int i = 0; e && i < IDLE_MAX; i++)
		if (!s->idle[i]) {
			s->idle[i] = e;
			e = NULL;
		}
	pthread_mutex_unlock(&s->lock);
	curl_easy_cleanup(e);
}

/* ---- what libcurl calls ---- */

static size_t on_send(char *to, size_t size, size_t n, void *arg)
{
	struct attempt *a = arg;
	const int64_t left = a->q->bytes - a->moved;
	const size_t want = (int64_t)(size * n) < left ? size * n : (size_t)left;
	ssize_t got;

	(void)FAILPOINT("backup.s3.part");
	do
		got = pread(a->q->fd, to, want, a->q->at + a->moved);
	while (got < 0 && errno == EINTR);
	if (got < 0 || (got == 0 && want)) {
		a->file_errno = got < 0 ? errno : EIO;
		return CURL_READFUNC_ABORT;
	}
	a->moved += got;
	return (size_t)got;
}

static int on_seek(void *arg, curl_off_t offset, int origin)
{
	struct attempt *a = arg;

	if (origin != SEEK_SET)
		return CURL_SEEKFUNC_CANTSEEK;
	a->moved = offset;
	return CURL_SEEKFUNC_OK;
}

static bool store(struct attempt *a, const char *bytes, size_t n)
{
	while (n) {
		const ssize_t k = pwrite(a->q->out, bytes, n, a->moved);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			a->file_errno = k < 0 ? errno : EIO;
			return false;
		}
		a->moved += k;
		bytes += k;
		n -= (size_t)k;
	}
	return true;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct attempt *a = arg;
	long status = 0;

	curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
	if (a->q->out >= 0 && status == 200)
		return store(a, bytes, size * n) ? size * n : 0;
	gpuq_buf_add(&a->q->answer, bytes, size * n);
	return a->q->answer.failed ? 0 : size * n;
}

/* The value of a header line of that name, trimmed, to out. */
static bool header(const char *line, size_t n, const char *name, char *out, size_t size)
{
	const size_t n_name = strlen(name);

	if (n <= n_name || strncasecmp(line, name, n_name) != 0)
		return false;
	for (line += n_name, n -= n_name; n && isspace((unsigned char)*line); line++)
		n--;
	while (n && isspace((unsigned char)line[n - 1]))
		n--;
	if (n >= size)
		return false;
	memcpy(out, line, n);
	out[n] = '\0';
	return true;
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct attempt *a = arg;
	char date[64];

	if (header(line, size * n, "date:", date, sizeof(date)))
		a->date = curl_getdate(date, NULL);
	header(line, size * n, "x-amz-bucket-region:", a->region, sizeof(a->region));
	header(line, size * n, "etag:", a->q->etag, sizeof(a->q->etag));
	return size * n;
}

static bool ends(const struct s3 *s)
{
	return s->o.stop && atomic_load(s->o.stop);
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)a, (void)b, (void)c, (void)d;
	return ends(((struct attempt *)arg)->s);
}

static int on_new_socket(void *arg, curl_socket_t fd, curlsocktype type)
{
	(void)arg, (void)type;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return CURL_SOCKOPT_OK;
}

/* ---- one try ---- */

static bool add_header(struct attempt *a, const char *name, const char *value)
{
	char line[sizeof(a->keys.session) + 64];
	struct curl_slist *l;

	snprintf(line, sizeof(line), "%s: %s", name, value);
	l = curl_slist_append(a->headers, line);
	if (l)
		a->headers = l;
	explicit_bzero(line, sizeof(line));
	return l != NULL;
}

/* Both are signed, and not every version of libcurl sends the hash, or signs the port. */
static bool set_headers(struct attempt *a)
{
	const struct s3_request *q = a->q;

	return add_header(a, "Host", a->s->origin + strlen(SCHEME)) &&
	       add_header(a, "x-amz-content-sha256", q->sha256 ? q->sha256 : SHA256_OF_NOTHING) &&
	       (!q->text || add_header(a, "Content-Type", "application/xml")) &&
	       (!*a->keys.session || add_header(a, "x-amz-security-token", a->keys.session)) &&
	       curl_easy_setopt(a->easy, CURLOPT_HTTPHEADER, a->headers) == CURLE_OK;
}

static bool set_target(struct attempt *a)
{
	const struct s3 *s = a->s;
	const struct s3_request *q = a->q;
	struct gpuq_buf url = GPUQ_BUF_INIT;
	char sign[96];
	bool ok;

	gpuq_buf_printf(&url, "%s%s", s->origin, s->bucket);
	if (q->name || !*s->bucket)
		gpuq_buf_printf(&url, "/%s%s", q->name ? s->prefix : "", q->name ? q->name : "");
	if (q->query)
		gpuq_buf_printf(&url, "?%s", q->query);
	snprintf(sign, sizeof(sign), "aws:amz:%s:s3", s->region);
	ok = !url.failed &&
	     curl_easy_setopt(a->easy, CURLOPT_URL, gpuq_buf_str(&url)) == CURLE_OK &&
	     curl_easy_setopt(a->easy, CURLOPT_AWS_SIGV4, sign) == CURLE_OK &&
	     curl_easy_setopt(a->easy, CURLOPT_USERNAME, a->keys.id) == CURLE_OK &&
	     curl_easy_setopt(a->easy, CURLOPT_PASSWORD, a->keys.secret) == CURLE_OK &&
	     (!s->o.ca || curl_easy_setopt(a->easy, CURLOPT_CAINFO, s->o.ca) == CURLE_OK);
	gpuq_buf_done(&url);
	return ok && set_headers(a);
}

static void set_method(struct attempt *a)
{
	const struct s3_request *q = a->q;
	CURL *e = a->easy;

	if (strcmp(q->method, "PUT") == 0) {
		curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->bytes);
		curl_easy_setopt(e, CURLOPT_READFUNCTION, on_send);
		curl_easy_setopt(e, CURLOPT_READDATA, a);
		curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, on_seek);
		curl_easy_setopt(e, CURLOPT_SEEKDATA, a);
	} else if (q->text) {
		curl_easy_setopt(e, CURLOPT_POST, 1L);
		curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->text->len);
		curl_easy_setopt(e, CURLOPT_POSTFIELDS, q->text->data ? q->text->data : "");
	} else if (strcmp(q->method, "HEAD") == 0) {
		curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
	} else {
		curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->method);
	}
	if (!q->text) { /* an upload of parts may take minutes to be put together */
		curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, STALL_S);
	}
}

static bool set_up(struct attempt *a)
{
	CURL *e = a->easy;

	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(e, CURLOPT_PROXY, "");
	curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* a stuck resolver must not hold us */
	curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(a->s->o.timeout_us / 1000));
	curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, a->why);
	curl_easy_setopt(e, CURLOPT_USERAGENT, "gpuqd");
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, a);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, a);
	curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(e, CURLOPT_XFERINFODATA, a);
	set_method(a);
	return set_target(a);
}

/* ---- how it ended ---- */

static bool is_error(const struct s3_request *q)
{
	const struct s3_xml all = { q->answer.data, q->answer.len };
	struct s3_xml rest = all, inside;

	return q->text && s3_xml_next(&rest, "Error", &inside); /* in spite of 200 */
}

static bool is_elsewhere(const struct attempt *a)
{
	return *a->region && strcmp(a->region, a->s->region) != 0;
}

/* Name the clock or the region where it is the reason of a refusal. */
static int refused(const struct attempt *a, const char *what, const char *code,
		   struct gpuq_err *err)
{
	const double off = a->date > 0 ? difftime(time(NULL), a->date) : 0;

	if (off > SKEW_S || off < -SKEW_S)
		return gpuq_fail(err, GPUQ_EPERM,
				 "%s: %s: the clock here is %.0f s %s that of the server: set it",
				 what, code, off > 0 ? off : -off, off > 0 ? "ahead of" : "behind");
	if (is_elsewhere(a))
		return gpuq_fail(err, GPUQ_EPERM,
				 "%s: %s: the bucket is in region %s: set %s.s3.region", what, code,
				 a->region, section_of(&a->s->o));
	return gpuq_fail(err, GPUQ_EPERM,
			 "%s: %s: check the access key, its rights to the bucket, and "
			 "%s.s3.region",
			 what, code, section_of(&a->s->o));
}

static int judge_status(struct attempt *a, const char *what, struct gpuq_err *err)
{
	const struct s3_xml all = { a->q->answer.data, a->q->answer.len };
	char code[64], words[128], region[sizeof(a->region)], text[sizeof(code) + 32];

	s3_xml_text(&all, "Code", code, sizeof(code));
	s3_xml_text(&all, "Message", words, sizeof(words));
	if (s3_xml_text(&all, "Region", region, sizeof(region)))
		memcpy(a->region, region, sizeof(region));
	snprintf(text, sizeof(text), "HTTP status %ld%s%s", a->status, *code ? ", " : "", code);
	if (a->status == 404)
		return gpuq_fail(err, strcmp(code, "NoSuchBucket") == 0 ? GPUQ_EINVAL : GPUQ_ENOENT,
				 "%s: %s", what, text);
	if (a->status == 401 || a->status == 403 || (a->status < 500 && is_elsewhere(a)))
		return refused(a, what, text, err);
	return gpuq_fail(err, GPUQ_EIO, "%s: %s%s%s", what, text, *words ? ": " : "", words);
}

static int judge(struct attempt *a, struct gpuq_err *err)
{
	const struct s3_request *q = a->q;
	char what[512];

	snprintf(what, sizeof(what), "%s %.240s%s%.240s", q->method, a->s->o.url,
		 q->name ? "/" : "", q->name ? q->name : "");
	if (ends(a->s))
		return gpuq_fail(err, GPUQ_ECANCELED, "%s: the daemon stops", what);
	if (a->file_errno)
		return gpuq_fail(err, a->file_errno == ENOSPC ? GPUQ_ESTORAGE : GPUQ_EIO, "%s: %s",
				 what, strerror(a->file_errno));
	if (q->answer.failed)
		return gpuq_fail(err, GPUQ_ETOOBIG, "%s: an answer of more than %u bytes", what,
				 S3_ANSWER_BYTES_MAX);
	/* A status below 200 is not the last of an answer. */
	if (a->status >= 300 || (a->status >= 200 && is_error(q)))
		return judge_status(a, what, err);
	if (a->code != CURLE_OK || a->status < 200)
		return gpuq_fail(
			err, a->code == CURLE_OPERATION_TIMEDOUT ? GPUQ_ETIMEOUT : GPUQ_EUNREACH,
			"%s: %s", what, *a->why ? a->why : curl_easy_strerror(a->code));
	return 0;
}

static bool may_go_well_later(const struct attempt *a, int rc)
{
	static const CURLcode lasting[] = { CURLE_PEER_FAILED_VERIFICATION,
					    CURLE_SSL_CACERT_BADFILE, CURLE_FAILED_INIT,
					    CURLE_OUT_OF_MEMORY };

	if (rc == GPUQ_EIO && !a->file_errno)
		return a->status == 200 || a->status == 408 || a->status == 429 || a->status >= 500;
	for (size_t i = 0; i < sizeof(lasting) / sizeof(*lasting); i++)
		if (a->code == lasting[i])
			return false;
	return rc == GPUQ_EUNREACH;
}

static int try_once(struct s3 *s, struct s3_request *q, bool *again, struct gpuq_err *err)
{
	struct attempt a = { .s = s, .q = q, .date = -1 };
	int rc = s3_keys_read(section_of(&s->o), s->o.credentials, &a.keys, err);

	*again = false;
	if (rc < 0)
		return rc;
	gpuq_buf_clear(&q->answer);
	*q->etag = '\0';
	a.easy = take_handle(s);
	if (q->out >= 0 && ftruncate(q->out, 0) != 0)
		a.file_errno = errno;
	else if (!a.easy || !set_up(&a))
		a.code = CURLE_FAILED_INIT;
	else
		a.code = curl_easy_perform(a.easy);
	if (a.easy)
		curl_easy_getinfo(a.easy, CURLINFO_RESPONSE_CODE, &a.status);
	rc = judge(&a, err);
	*again = may_go_well_later(&a, rc);
	if (a.easy)
		give_back(s, a.easy);
	curl_slist_free_all(a.headers);
	explicit_bzero(&a.keys, sizeof(a.keys));
	return rc;
}

int s3_call(struct s3 *s, struct s3_request *q, struct gpuq_err *err)
{
	struct gpuq_err why = GPUQ_ERR_INIT;
	bool again = true;
	int rc = 0;

	for (q->tries = 0; again && q->tries < TRIES; q->tries++) {
		const int wait_ms = q->tries ? WAIT_MS << (q->tries - 1) : 0;

		for (int ms = 0; ms < wait_ms && !ends(s); ms += STEP_MS)
			poll(NULL, 0, STEP_MS);
		rc = try_once(s, q, &again, &why);
	}
	if (rc < 0)
		gpuq_fail(err, rc, "%s", why.text);
	return rc;
}
