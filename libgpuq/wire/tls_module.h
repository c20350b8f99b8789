/* tls_module.h - what libgpuq and its TLS module agree on
 *
 * Owns     nothing. Used by  wire/tls.c, which loads the module, and tls/module.c, which is it.
 *
 * The module is a library of its own, because a program that links OpenSSL starts in four times the time: only
 * tls:// loads it. It shares no symbols with libgpuq; errors are sentences in a buffer of the caller.
 */
#ifndef LIBGPUQ_WIRE_TLS_MODULE_H
#define LIBGPUQ_WIRE_TLS_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define GPUQ_TLS_MODULE_VERSION 1
#define GPUQ_TLS_MODULE_SYMBOL "gpuq_tls_module"
#define GPUQ_TLS_WHY_BYTES 384

enum gpuq_tls_step { GPUQ_TLS_DONE, GPUQ_TLS_READ, GPUQ_TLS_WRITE, GPUQ_TLS_FAILED };

struct gpuq_tls_want {
	const char *host; /* the certificate must be for it, unless there is a pin */
	const char *alpn;
	const char *
		pin; /* "sha256:..." of the server's key; "" = any: the caller checks; NULL = by CA */
	const char *ca; /* file; NULL = the system's */
	const char *cert, *key; /* files of a client certificate; NULL = none */
};

struct gpuq_tls_module {
	unsigned version;
	/* A connection on fd, nonblocking. NULL and why. */
	void *(*start)(int fd, const struct gpuq_tls_want *want, char *why);
	enum gpuq_tls_step (*shake)(void *t, char *why);
	/* As recv() and send(); recv takes all that is there: after fewer than n bytes the socket reports
	 * what follows. why: of a negative result other than EAGAIN. */
	ssize_t (*recv)(void *t, void *bytes, size_t n, char *why);
	ssize_t (*send)(void *t, const void *bytes, size_t n, char *why);
	const char *(*pin)(void *t); /* of the server's key, once hands were shaken */
	void (*stop)(void *t);
};

#endif
