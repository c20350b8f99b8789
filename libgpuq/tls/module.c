/* The TLS of clients: TLS 1.3, the server known by its CA and name or by the pin of its key. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "libgpuq/limits.h"
#include "libgpuq/wire/tls_module.h"

struct conn {
	SSL_CTX *ctx;
	SSL *ssl;
	char *pin; /* NULL = by CA; "" = any */
	char *host;
	char seen[GPUQ_PIN_BYTES];
	bool failed;
};

__attribute__((format(printf, 2, 3))) static void say(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, GPUQ_TLS_WHY_BYTES, fmt, ap);
	va_end(ap);
}

static const char *reason(void)
{
	const unsigned long e = ERR_peek_last_error();
	const char *s = e ? ERR_reason_error_string(e) : NULL;

	ERR_clear_error();
	return s ? s : "the server closed the connection";
}

static void stop(void *t)
{
	struct conn *c = t;

	if (!c)
		return;
	ERR_clear_error();
	if (c->ssl && !c->failed && SSL_is_init_finished(c->ssl))
		SSL_shutdown(c->ssl);
	ERR_clear_error();
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	free(c->pin);
	free(c->host);
	free(c);
}

/* Every certificate will do: what is examined is the key. */
static int accept_any(int ok, X509_STORE_CTX *x)
{
	(void)ok, (void)x;
	return 1;
}

static bool trust(struct conn *c, const struct gpuq_tls_want *w, char *why)
{
	if (w->pin) {
		SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, accept_any);
		return true;
	}
	SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
	if (w->ca ? SSL_CTX_load_verify_file(c->ctx, w->ca) == 1
		  : SSL_CTX_set_default_verify_paths(c->ctx) == 1)
		return true;
	say(why, "%s holds no certificates of CAs in PEM (%s)",
	    w->ca ? w->ca : "the system's folder", reason());
	return false;
}

static bool show(struct conn *c, const struct gpuq_tls_want *w, char *why)
{
	if (!w->cert)
		return true;
	if (SSL_CTX_use_certificate_chain_file(c->ctx, w->cert) != 1)
		say(why, "%s is not a certificate in PEM (%s)", w->cert, reason());
	else if (SSL_CTX_use_PrivateKey_file(c->ctx, w->key ? w->key : w->cert, SSL_FILETYPE_PEM) !=
		 1)
		say(why,
		    "%s is not a key in PEM without passphrase, or not that of the certificate "
		    "(%s)",
		    w->key ? w->key : w->cert, reason());
	else
		return true;
	return false;
}

static int no_password(char *buf, int size, int rw, void *arg)
{
	(void)buf, (void)size, (void)rw, (void)arg;
	return 0;
}

/* ---- the socket: OpenSSL's own would raise SIGPIPE in a program that is not ours ---- */

struct end {
	int fd;
	bool eof;
};

static int sock_write(BIO *b, const char *p, int n)
{
	const struct end *e = BIO_get_data(b);
	const ssize_t k = send(e->fd, p, (size_t)n, MSG_NOSIGNAL);

	BIO_clear_retry_flags(b);
	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(b);
	return (int)k;
}

static int sock_read(BIO *b, char *p, int n)
{
	struct end *e = BIO_get_data(b);
	const ssize_t k = recv(e->fd, p, (size_t)n, 0);

	BIO_clear_retry_flags(b);
	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	e->eof = k == 0;
	return (int)k;
}

static long sock_ctrl(BIO *b, int cmd, long n, void *arg)
{
	const struct end *e = BIO_get_data(b);

	(void)n, (void)arg;
	return cmd == BIO_CTRL_FLUSH ? 1 : cmd == BIO_CTRL_EOF ? e->eof : 0;
}

static int sock_end(BIO *b)
{
	free(BIO_get_data(b));
	return 1;
}

static BIO *sock_new(int fd)
{
	static BIO_METHOD *method; /* as long as the module */
	struct end *e = calloc(1, sizeof(*e));
	BIO *b = NULL;

	if (!method)
		method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gpuq socket");
	if (e && method && BIO_meth_set_write(method, sock_write) == 1 &&
	    BIO_meth_set_read(method, sock_read) == 1 &&
	    BIO_meth_set_ctrl(method, sock_ctrl) == 1 &&
	    BIO_meth_set_destroy(method, sock_end) == 1)
		b = BIO_new(method);
	if (!b) {
		free(e);
		return NULL;
	}
	e->fd = fd;
	BIO_set_data(b, e);
	BIO_set_init(b, 1);
	return b;
}

static bool aim(struct conn *c, const struct gpuq_tls_want *w, int fd)
{
	unsigned char alpn[32], raw[16];
	const size_t n = strlen(w->alpn);
	const bool ip =
		inet_pton(AF_INET, w->host, raw) == 1 || inet_pton(AF_INET6, w->host, raw) == 1;
	X509_VERIFY_PARAM *p;
	BIO *b;

	c->ssl = SSL_new(c->ctx);
	b = c->ssl && n < sizeof(alpn) ? sock_new(fd) : NULL;
	if (!b)
		return false;
	SSL_set_bio(c->ssl, b, b);
	alpn[0] = (unsigned char)n;
	memcpy(alpn + 1, w->alpn, n);
	p = SSL_get0_param(c->ssl);
	X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
						   X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (!w->pin && (ip ? X509_VERIFY_PARAM_set1_ip_asc(p, w->host)
			   : X509_VERIFY_PARAM_set1_host(p, w->host, 0)) != 1)
		return false;
	if (!ip && SSL_set_tlsext_host_name(c->ssl, w->host) != 1)
		return false;
	SSL_set_connect_state(c->ssl);
	return SSL_set_alpn_protos(c->ssl, alpn, (unsigned)n + 1) == 0;
}

static void *start(int fd, const struct gpuq_tls_want *w, char *why)
{
	struct conn *c = calloc(1, sizeof(*c));
	bool done;

	if (!c) {
		say(why, "no memory");
		return NULL;
	}
	c->ctx = SSL_CTX_new(TLS_client_method());
	c->host = strdup(w->host);
	c->pin = w->pin ? strdup(w->pin) : NULL;
	done = c->ctx && c->host && (!w->pin || c->pin);
	if (!done) {
		say(why, "no memory");
	} else {
		SSL_CTX_set_min_proto_version(c->ctx, TLS1_3_VERSION);
		SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_OFF);
		SSL_CTX_set_options(c->ctx, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
		SSL_CTX_set_mode(c->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
						 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
		SSL_CTX_set_default_passwd_cb(c->ctx, no_password);
		done = trust(c, w, why) && show(c, w, why);
		if (done && !aim(c, w, fd)) {
			say(why, "TLS cannot be prepared (%s)", reason());
			done = false;
		}
	}
	ERR_clear_error();
	if (done)
		return c;
	stop(c);
	return NULL;
}

static void read_pin(struct conn *c)
{
	X509 *x = SSL_get0_peer_certificate(c->ssl);
	unsigned char *der = NULL, sum[EVP_MAX_MD_SIZE], text[64];
	const int n = x ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der) : 0;
	unsigned n_sum = 0;
	int len;

	if (n > 0 && EVP_Digest(der, (size_t)n, sum, &n_sum, EVP_sha256(), NULL) == 1) {
		len = EVP_EncodeBlock(text, sum, (int)n_sum);
		while (len > 0 && text[len - 1] == '=')
			len--;
		for (int i = 0; i < len; i++)
			text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
		snprintf(c->seen, sizeof(c->seen), "sha256:%.*s", len, (const char *)text);
	}
	OPENSSL_free(der);
}

static enum gpuq_tls_step failed(struct conn *c, char *why)
{
	const long verdict = SSL_get_verify_result(c->ssl);

	c->failed = true;
	read_pin(c);
	if (!c->pin && verdict != X509_V_OK)
		say(why,
		    "the certificate is not trusted: %s; --ca names its CA, gpuq login keeps the "
		    "pin of its "
		    "key",
		    X509_verify_cert_error_string(verdict));
	else
		say(why, "TLS handshake: %s", reason());
	ERR_clear_error();
	return GPUQ_TLS_FAILED;
}

static enum gpuq_tls_step shake(void *t, char *why)
{
	struct conn *c = t;
	const unsigned char *alpn;
	unsigned n_alpn;
	int n;

	ERR_clear_error();
	n = SSL_do_handshake(c->ssl);
	if (n != 1) {
		switch (SSL_get_error(c->ssl, n)) {
		case SSL_ERROR_WANT_READ:
			return GPUQ_TLS_READ;
		case SSL_ERROR_WANT_WRITE:
			return GPUQ_TLS_WRITE;
		default:
			return failed(c, why);
		}
	}
	read_pin(c);
	SSL_get0_alpn_selected(c->ssl, &alpn, &n_alpn);
	if (n_alpn == 0)
		say(why, "the server at %s speaks TLS, but is no gpuqd", c->host);
	else if (c->pin && *c->pin && strcmp(c->pin, c->seen) != 0)
		say(why,
		    "the key of the server has changed: its pin is %s, expected %s; if that is "
		    "right, gpuq "
		    "login again",
		    c->seen, c->pin);
	else {
		/* Many messages a read of the socket. */
		SSL_set_read_ahead(c->ssl, 1);
		return GPUQ_TLS_DONE;
	}
	c->failed = true;
	return GPUQ_TLS_FAILED;
}

static ssize_t outcome(struct conn *c, int n, char *why)
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
		if (ERR_peek_last_error())
			say(why, "TLS: %s", reason());
		ERR_clear_error();
		errno = ECONNRESET;
		return -1;
	}
}

/* Read as many records as are there: fewer than n bytes say that the socket reports what follows. */
static ssize_t receive(void *t, void *bytes, size_t n, char *why)
{
	struct conn *c = t;
	size_t all = 0;
	int got;

	ERR_clear_error();
	do {
		const size_t room = n - all;

		got = SSL_read(c->ssl, (char *)bytes + all, room > INT_MAX ? INT_MAX : (int)room);
		if (got <= 0)
			return all > 0 ? (ssize_t)all : outcome(c, got, why);
		all += (size_t)got;
	} while (all < n && SSL_has_pending(c->ssl) == 1);
	return (ssize_t)all;
}

static ssize_t transmit(void *t, const void *bytes, size_t n, char *why)
{
	struct conn *c = t;
	ssize_t rc;
	int got;

	ERR_clear_error();
	got = SSL_write(c->ssl, bytes, n > INT_MAX ? INT_MAX : (int)n);
	if (got > 0)
		return got;
	rc = outcome(c, got, why);
	if (rc == 0)
		errno = EPIPE;
	return rc == 0 ? -1 : rc;
}

static const char *pin(void *t)
{
	return ((struct conn *)t)->seen;
}

extern const struct gpuq_tls_module gpuq_tls_module;
__attribute__((visibility("default"))) const struct gpuq_tls_module gpuq_tls_module = {
	.version = GPUQ_TLS_MODULE_VERSION,
	.start = start,
	.shake = shake,
	.recv = receive,
	.send = transmit,
	.pin = pin,
	.stop = stop,
};
