/* tls.h - TLS of the listening sockets: certificate and key, handshakes, bytes
 *
 * Owns     the context of new connections; what OpenSSL keeps of each connection.
 * Touches  the PEM files named, at start and when asked to check them again; sockets.
 * Used by  server.c, conn.c.
 *
 * TLS 1.3 only, with the ALPN protocol GPUQ_TLS_ALPN, which a client must offer; no session tickets, no
 * early data. A client certificate is requested where there is a CA for them, and never required: a token
 * may identify the client. Nothing of OpenSSL is visible here.
 */
#ifndef GPUQD_RPC_TLS_H
#define GPUQD_RPC_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libgpuq/err.h"

struct tls;
struct tls_conn;

struct tls_files {
	const char *cert, *key; /* PEM; the certificate with its chain */
	const char *client_ca; /* PEM; NULL = no client is identified by a certificate */
};

/* Read the files. Returns 0; GPUQ_EINVAL: one of them cannot be read, is not of its form, does not match
 * the other, or the key is readable by others. */
int tls_new(const struct tls_files *files, struct tls **out, struct gpuq_err *err);
void tls_free(struct tls *t); /* connections may live on */

/* Read them again if one has changed. Returns 1 when new connections get what is there now, 0 when
 * nothing has changed, or as tls_new(): the old ones stay. */
int tls_reload(struct tls *t, const struct tls_files *files, struct gpuq_err *err);

/* A connection on fd, which stays the caller's; NULL without memory. */
struct tls_conn *tls_accept(struct tls *t, int fd);
void tls_end(struct tls_conn *c); /* NULL is allowed; sends a last word if it can be sent */

enum tls_step { TLS_DONE, TLS_WANTS_READ, TLS_WANTS_WRITE, TLS_FAILED };

/* Go on with the handshake; *err of TLS_FAILED says why. */
enum tls_step tls_shake(struct tls_conn *c, struct gpuq_err *err);

/* As recv() and send() with MSG_DONTWAIT: -1 with errno EAGAIN when the socket must be waited for. */
ssize_t tls_recv(struct tls_conn *c, void *bytes, size_t n);
ssize_t tls_send(struct tls_conn *c, const void *bytes, size_t n);
bool tls_pending(const struct tls_conn *c); /* bytes lie here that the socket does not tell of */

enum tls_name { TLS_NAME_URI, TLS_NAME_EMAIL };

/* The name in the client's certificate, which was checked. Returns 1 and *name (free), 0 when it showed none;
 * GPUQ_EAUTH when there is not exactly one of this kind, or it holds other characters than names have. */
int tls_client_name(const struct tls_conn *c, enum tls_name kind, char **name,
		    struct gpuq_err *err);
/* When that certificate expires, in us since 1970; its fingerprint, 64 hex digits. */
long long tls_client_expires_us(const struct tls_conn *c);
void tls_client_print(const struct tls_conn *c, char out[65]);

/* Make a key and a certificate for these names and addresses, signed by itself, as cert.pem and key.pem in
 * the directory dir, which is made where it is missing. pin: of the new key (GPUQ_PIN_BYTES).
 * Returns 0, GPUQ_EEXIST (there is one already), GPUQ_EINVAL (a name), GPUQ_EIO. */
int tls_make_cert(const char *dir, const char *const *names, size_t n, char *pin,
		  struct gpuq_err *err);

#endif
