#include "gpuqd/rpc/tls.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "libgpuq/limits.h"
#include "libgpuq/wire/wire.h"

struct seen {
	struct timespec changed;
	ino_t ino;
	off_t size;
};

struct tls {
	SSL_CTX *ctx;
	struct seen cert, key, client_ca;
};

struct tls_conn {
	SSL *ssl;
	bool failed; /* no last word can be sent */
	bool dry; /* nothing can be read until the socket has more */
};

static const unsigned char alpn[] = "\x0a" GPUQ_TLS_ALPN;
_Static_assert(sizeof(alpn) == 12, "the length stands in front of the name");

/* The innermost reason of OpenSSL. */
static const char *reason(void)
{
	const unsigned long e = ERR_peek_last_error();
	const char *s = e ? ERR_reason_error_string(e) : NULL;

	ERR_clear_error();
	return s ? s : "no reason given";
}

static int look(const char *what, const char *path, bool secret, struct seen *out,
		struct gpuq_err *err)
{
	struct stat st;

	memset(out, 0, sizeof(*out));
	if (!path)
		return 0;
	if (stat(path, &st) != 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "tls.%s: %s: %s; gpuqd --make-cert NAME creates a pair", what,
				 path, strerror(errno));
	if (secret && st.st_mode & 077)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "tls.%s: %s is readable by others (mode %04o): chmod 600 %s", what,
				 path, (unsigned)st.st_mode & 07777, path);
	*out = (struct seen){ st.st_mtim, st.st_ino, st.st_size };
	return 0;
}

static int look_at_all(const struct tls_files *f, struct tls *out, struct gpuq_err *err)
{
	int rc = look("cert", f->cert, false, &out->cert, err);

	if (rc == 0)
		rc = look("key", f->key, true, &out->key, err);
	return rc < 0 ? rc : look("client_ca", f->client_ca, false, &out->client_ca, err);
}

/* The one protocol must be offered. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
		   unsigned n_in, void *arg)
{
	unsigned char *chosen;

	(void)ssl, (void)arg;
	if (SSL_select_next_proto(&chosen, n, alpn, sizeof(alpn) - 1, in, n_in) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* A client that offers none at all is never asked above. */
static int on_hello(SSL *ssl, int *alert, void *arg)
{
	const unsigned char *ext;
	size_t n;

	(void)arg;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &ext,
				      &n))
		return SSL_CLIENT_HELLO_SUCCESS;
	*alert = SSL_AD_NO_APPLICATION_PROTOCOL;
	return SSL_CLIENT_HELLO_ERROR;
}

static int no_password(char *buf, int size, int rw, void *arg)
{
	(void)buf, (void)size, (void)rw, (void)arg;
	return 0;
}

static int load_own(SSL_CTX *ctx, const struct tls_files *f, struct gpuq_err *err)
{
	if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1)
		return gpuq_fail(err, GPUQ_EINVAL, "tls.cert: %s is not a certificate in PEM (%s)",
				 f->cert, reason());
	if (X509_check_purpose(SSL_CTX_get0_certificate(ctx), X509_PURPOSE_SSL_SERVER, 0) != 1)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "tls.cert: %s is no certificate for a server: its extended key "
				 "usage lacks serverAuth",
				 f->cert);
	if (SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) != 1)
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"tls.key: %s is not a key in PEM without passphrase, or not that of "
			"%s (%s)",
			f->key, f->cert, reason());
	return 0;
}

static int load_ca(SSL_CTX *ctx, const char *file, struct gpuq_err *err)
{
	STACK_OF(X509_NAME) * names;

	if (!file)
		return 0;
	names = SSL_load_client_CA_file(file);
	if (!names || SSL_CTX_load_verify_file(ctx, file) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return gpuq_fail(err, GPUQ_EINVAL,
				 "tls.client_ca: %s holds no certificates in PEM (%s)", file,
				 reason());
	}
	SSL_CTX_set_client_CA_list(ctx, names);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_purpose(ctx, X509_PURPOSE_SSL_CLIENT);
	return 0;
}

static int load(const struct tls_files *f, SSL_CTX **out, struct gpuq_err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	int rc = ctx ? 0 : gpuq_no_memory(err);

	if (rc == 0) {
		SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
		SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION);
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
						 SSL_OP_IGNORE_UNEXPECTED_EOF);
		SSL_CTX_set_num_tickets(ctx, 0);
		SSL_CTX_set_max_early_data(ctx, 0);
		SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
		SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					      SSL_MODE_RELEASE_BUFFERS);
		SSL_CTX_set1_groups_list(ctx, "X25519:P-256");
		SSL_CTX_set_default_passwd_cb(ctx, no_password);
		SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
		SSL_CTX_set_client_hello_cb(ctx, on_hello, NULL);
		SSL_CTX_set_max_cert_list(ctx, GPUQ_MSG_BYTES_MAX_HELLO);
		rc = load_own(ctx, f, err);
	}
	if (rc == 0)
		rc = load_ca(ctx, f->client_ca, err);
	if (rc < 0) {
		SSL_CTX_free(ctx);
		return rc;
	}
	*out = ctx;
	return 0;
}

int tls_new(const struct tls_files *files, struct tls **out, struct gpuq_err *err)
{
	struct tls *t = calloc(1, sizeof(*t));
	int rc = t ? look_at_all(files, t, err) : gpuq_no_memory(err);

	if (rc == 0)
		rc = load(files, &t->ctx, err);
	if (rc < 0) {
		free(t);
		return rc;
	}
	*out = t;
	return 0;
}

static bool same(const struct seen *a, const struct seen *b)
{
	return a->ino == b->ino && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec;
}

int tls_reload(struct tls *t, const struct tls_files *files, struct gpuq_err *err)
{
	struct tls now = { .ctx = NULL };
	int rc = look_at_all(files, &now, err);

	if (rc == 0 && same(&t->cert, &now.cert) && same(&t->key, &now.key) &&
	    same(&t->client_ca, &now.client_ca))
		return 0;
	if (rc == 0)
		rc = load(files, &now.ctx, err);
	if (rc < 0)
		return rc;
	SSL_CTX_free(t->ctx);
	*t = now;
	return 1;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->ctx);
	free(t);
}

/* ---- a connection ---- */

struct tls_conn *tls_accept(struct tls *t, int fd)
{
	struct tls_conn *c = calloc(1, sizeof(*c));

	if (c)
		c->ssl = SSL_new(t->ctx);
	if (!c || !c->ssl || SSL_set_fd(c->ssl, fd) != 1) {
		if (c)
			SSL_free(c->ssl);
		free(c);
		ERR_clear_error();
		return NULL;
	}
	SSL_set_accept_state(c->ssl);
	return c;
}

void tls_end(struct tls_conn *c)
{
	if (!c)
		return;
	ERR_clear_error();
	if (!c->failed && SSL_is_init_finished(c->ssl))
		SSL_shutdown(c->ssl);
	ERR_clear_error();
	SSL_free(c->ssl);
	free(c);
}

enum tls_step tls_shake(struct tls_conn *c, struct gpuq_err *err)
{
	int n;

	ERR_clear_error();
	n = SSL_do_handshake(c->ssl);
	if (n == 1) {
		/* From now on a read of the socket takes all that is there; what is left over is has_pending. */
		SSL_set_read_ahead(c->ssl, 1);
		return TLS_DONE;
	}
	switch (SSL_get_error(c->ssl, n)) {
	case SSL_ERROR_WANT_READ:
		return TLS_WANTS_READ;
	case SSL_ERROR_WANT_WRITE:
		return TLS_WANTS_WRITE;
	default:
		c->failed = true;
		gpuq_fail(err, GPUQ_EAUTH, "TLS handshake: %s",
			  ERR_peek_last_error() ? reason() : "the client closed the connection");
		return TLS_FAILED;
	}
}

/* After a return value below 1: as recv() and send() say it. */
static ssize_t outcome(struct tls_conn *c, int n)
{
	switch (SSL_get_error(c->ssl, n)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		c->failed = true;
		ERR_clear_error();
		errno = ECONNRESET;
		return -1;
	}
}

/* As many records as there are: each message of a client is one, and a turn of the loop for each would cost more than
 * the message. */
ssize_t tls_recv(struct tls_conn *c, void *bytes, size_t n)
{
	size_t got = 0;
	ssize_t rc;

	c->dry = false;
	if (n > INT_MAX)
		n = INT_MAX;
	while (got < n) {
		int more;

		ERR_clear_error();
		more = SSL_read(c->ssl, (char *)bytes + got, (int)(n - got));
		if (more <= 0) {
			rc = outcome(c, more);
			c->dry = rc < 0 && errno == EAGAIN;
			return got > 0 ? (ssize_t)got : rc;
		}
		got += (size_t)more;
	}
	return (ssize_t)got;
}

ssize_t tls_send(struct tls_conn *c, const void *bytes, size_t n)
{
	ssize_t sent;
	int got;

	ERR_clear_error();
	got = SSL_write(c->ssl, bytes, n > INT_MAX ? INT_MAX : (int)n);
	if (got > 0)
		return got;
	sent = outcome(c, got);
	if (sent == 0) { /* the peer has said goodbye */
		errno = EPIPE;
		sent = -1;
	}
	return sent;
}

bool tls_pending(const struct tls_conn *c)
{
	return !c->dry && (c->failed || SSL_has_pending(c->ssl) == 1 ||
			   SSL_get_shutdown(c->ssl) & SSL_RECEIVED_SHUTDOWN);
}

/* ---- the certificate of the client ---- */

/* The characters of names from outside, and no NUL among them. */
static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
		      (s[i] >= '0' && s[i] <= '9') || (s[i] && strchr("._:/@+-", s[i]))))
			return false;
	return n > 0 && n <= GPUQ_IDENTITY_BYTES_MAX;
}

int tls_client_name(const struct tls_conn *c, enum tls_name kind, char **name, struct gpuq_err *err)
{
	const int type = kind == TLS_NAME_URI ? GEN_URI : GEN_EMAIL;
	const char *word = kind == TLS_NAME_URI ? "a URI" : "an email address";
	X509 *x = SSL_get0_peer_certificate(c->ssl);
	const ASN1_IA5STRING *found = NULL;
	GENERAL_NAMES *names;
	unsigned n = 0;
	int rc = 1;

	if (!x || SSL_get_verify_result(c->ssl) != X509_V_OK)
		return 0;
	names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);

		if (g->type != type)
			continue;
		found = g->d.ia5;
		n++;
	}
	if (n != 1)
		rc = gpuq_fail(err, GPUQ_EAUTH,
			       "the client's certificate has %u subject alternative names that are "
			       "%s; exactly one is expected",
			       n, word);
	else if (!is_name((const char *)ASN1_STRING_get0_data(found),
			  (size_t)ASN1_STRING_length(found)))
		rc = gpuq_fail(
			err, GPUQ_EAUTH,
			"the name in the client's certificate is longer than %u bytes or has "
			"other characters than letters, digits and ._:/@+-",
			GPUQ_IDENTITY_BYTES_MAX);
	else if (!(*name = strndup((const char *)ASN1_STRING_get0_data(found),
				   (size_t)ASN1_STRING_length(found))))
		rc = gpuq_no_memory(err);
	GENERAL_NAMES_free(names);
	ERR_clear_error();
	return rc;
}

long long tls_client_expires_us(const struct tls_conn *c)
{
	X509 *x = SSL_get0_peer_certificate(c->ssl);
	ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
	int days = 0, seconds = 0;

	if (x && epoch)
		ASN1_TIME_diff(&days, &seconds, epoch, X509_get0_notAfter(x));
	ASN1_TIME_free(epoch);
	return ((long long)days * 86400 + seconds) * 1000000;
}

void tls_client_print(const struct tls_conn *c, char out[65])
{
	static const char hex[] = "0123456789abcdef";
	X509 *x = SSL_get0_peer_certificate(c->ssl);
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (!x || X509_digest(x, EVP_sha256(), sum, &n) != 1)
		n = 0;
	for (unsigned i = 0; i < n && i < 32; i++) {
		out[2 * i] = hex[sum[i] >> 4];
		out[2 * i + 1] = hex[sum[i] & 15];
	}
	out[2 * (n < 32 ? n : 32)] = '\0';
}
