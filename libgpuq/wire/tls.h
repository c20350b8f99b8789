/* tls.h - a connection to tls://host[:port], by the module that has OpenSSL
 *
 * Owns     the module, once it is loaded, until the process ends; a connection's state.
 * Touches  TCP sockets, name resolution, the module's file.
 * Used by  transport.c. Not installed.
 */
#ifndef LIBGPUQ_WIRE_TLS_H
#define LIBGPUQ_WIRE_TLS_H

#include <stdint.h>
#include <sys/types.h>

#include "libgpuq/client.h"

struct gpuq_tls; /* of one connection */

/* Connect and shake hands; *fd is nonblocking and the caller's, *out ends before it does. Returns 0,
 * GPUQ_EINVAL (address), GPUQ_EUNREACH, GPUQ_EAUTH (the server is not who it should be), GPUQ_ETIMEOUT,
 * GPUQ_ECANCELED. */
int gpuq_tls_open(const struct gpuq_connect_opts *o, int64_t deadline_us, int *fd,
		  struct gpuq_tls **out, struct gpuq_err *err);
void gpuq_tls_close(struct gpuq_tls *t); /* NULL is allowed */

/* As recv() and send() on a nonblocking socket; see recv of tls_module.h. */
ssize_t gpuq_tls_recv(struct gpuq_tls *t, void *bytes, size_t n);
ssize_t gpuq_tls_send(struct gpuq_tls *t, const void *bytes, size_t n);

const char *gpuq_tls_pin(const struct gpuq_tls *t); /* "sha256:..." */
/* Return the reason of TLS for a failure; "" none. */
const char *gpuq_tls_why(const struct gpuq_tls *t);

#endif
