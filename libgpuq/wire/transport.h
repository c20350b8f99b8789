/* transport.h - a blocking connection that ends with its deadlines
 *
 * Owns     one socket and the bytes that came but were not taken.
 * Touches  the socket, the process ssh and the monotonic clock; raises no signal.
 * Used by  client.c. Not installed.
 */
#ifndef LIBGPUQ_WIRE_TRANSPORT_H
#define LIBGPUQ_WIRE_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/wire/mp.h"
#include "libgpuq/wire/ssh.h"
#include "libgpuq/wire/tls.h"

#define GPUQ_NO_DEADLINE INT64_MAX

struct gpuq_transport {
	int fd; /* -1 = closed */
	int stop_fd; /* waiting ends once it can be read; -1 = there is none */
	struct gpuq_buf in;
	size_t taken; /* of `in`, by the messages that were returned */
	struct gpuq_mp_scan scan;
	int64_t heard_us; /* when bytes came last */
	bool ended; /* the peer has closed, or reading failed */
	struct gpuq_ssh ssh; /* of ssh:// only */
	struct gpuq_tls *tls; /* of tls:// only; else NULL */
};

int64_t gpuq_mono_us(void);

/* Connect to o->addr. deadline_us is on the clock of gpuq_mono_us.
 * Returns 0, GPUQ_EINVAL (address), GPUQ_EUNREACH, GPUQ_EPERM, GPUQ_EAUTH, GPUQ_ETIMEOUT, GPUQ_ECANCELED
 * (stop_fd). */
int gpuq_transport_open(struct gpuq_transport *t, const struct gpuq_connect_opts *o,
			int64_t deadline_us, struct gpuq_err *err);
void gpuq_transport_close(struct gpuq_transport *t);

/* The connection ended before the server said a word: close it, and replace err by the reason where
 * another program knows it. */
void gpuq_transport_explain(struct gpuq_transport *t, const char *addr, struct gpuq_err *err);

/* Send n bytes. *sent (always set) tells how many left, also on failure. Reads what
 * comes meanwhile, so that two full pipes do not wait for each other.
 * Returns 0, GPUQ_EUNREACH, GPUQ_ETIMEOUT or GPUQ_ECANCELED (stop_fd). */
int gpuq_transport_write(struct gpuq_transport *t, const void *bytes, size_t n, int64_t deadline_us,
			 size_t *sent, struct gpuq_err *err);

/* Read the next message: 1 and its bytes, valid until the next call; 0 when the deadline passed;
 * GPUQ_EUNREACH when the peer is gone; GPUQ_EPROTO, GPUQ_ETOOBIG; GPUQ_ECANCELED (stop_fd), with
 * which the connection is closed, as an unclaimed reply may be on its way. */
int gpuq_transport_next(struct gpuq_transport *t, int64_t deadline_us, const char **bytes,
			size_t *n, struct gpuq_err *err);

#endif
