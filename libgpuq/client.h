/* client.h - calls to a gpuqd over gpuq-rpc/1 (MessagePack-RPC)
 *
 * Owns     one connection and the calls under way on it.
 * Touches  its own socket, blocking with deadlines; for ssh:// the process ssh, which is its child and
 *          gets the environment. No globals, no signals (writes use MSG_NOSIGNAL).
 * Used by  the CLI and any program that links libgpuq.
 *
 * One call at a time: gpuq_call waits for its reply; gpuq_stream hands items to a
 * callback as they come and grants credit for more. After a broken connection a
 * call fails with GPUQ_EUNREACH (nothing was sent) or GPUQ_EUNKNOWN (it may have
 * happened: repeat with the same key); reconnecting is the caller's decision.
 */
#ifndef LIBGPUQ_CLIENT_H
#define LIBGPUQ_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct gpuq; /* opaque; one per connection, one thread */

/* Connect to "unix:/path", or to "ssh://[user@]host[:port]" by running ssh -T -o BatchMode=yes there
 * with `gpuq proxy`, and say hello. client names the program ("gpuq/0.1").
 * timeout_us bounds connecting and hello together; 0 = 10 s.
 * Returns 0 and *out (free: gpuq_close), GPUQ_EUNREACH with what to do, GPUQ_EPERM,
 * GPUQ_EVERSION, GPUQ_EPROTO, GPUQ_EINVAL (address). */
int gpuq_connect(const char *addr, const char *client, int64_t timeout_us, struct gpuq **out,
		 struct gpuq_err *err);
/* Like gpuq_connect(); this call and all later ones on the connection end with GPUQ_ECANCELED as
 * soon as stop_fd (-1: none) is readable, whether the server answers or not: for ^C. A call in
 * progress may have been executed; the connection cannot be used any more. */
int gpuq_connect_stop(const char *addr, const char *client, int64_t timeout_us, int stop_fd,
		      struct gpuq **out, struct gpuq_err *err);

/* All that a connection can be given; what is NULL or 0 has the meaning said. Set stop_fd to -1 for none. */
struct gpuq_connect_opts {
	const char *addr; /* also tls://host[:port][?pin=sha256:...] */
	const char *client;
	int64_t timeout_us; /* 0 = 10 s */
	int stop_fd;
	/* For tls:// only. The server is known by the pin in addr, else by ca, else by pin, else by the
	 * system's CAs, and then by its name. */
	const char *pin; /* "" = by nothing: examine gpuq_server_pin() before anything is sent */
	const char *ca; /* file */
	const char *cert, *key; /* files of a client certificate */
	const char *token; /* that proves who calls */
	const char *module; /* file of libgpuq-tls.so; NULL = where it was installed */
	bool no_hello; /* shake hands only: for the pin */
	/* Repeat for so long what the server refuses as busy, when it says to: gpuq_call(), and streams before
	 * their first item. 0 = not. */
	int64_t busy_us;
};
/* As gpuq_connect_stop(); also GPUQ_EAUTH: the server is not the one it should be, or takes no proof. */
int gpuq_connect_opts(const struct gpuq_connect_opts *o, struct gpuq **out, struct gpuq_err *err);
/* The pin of the server's key, or NULL where there is no TLS. */
const char *gpuq_server_pin(const struct gpuq *g);
void gpuq_close(struct gpuq *g);

/* The server's answer to hello: {version, proto, server, cluster: {kind}, user, role, limits}. */
const struct gpuq_val *gpuq_server_info(const struct gpuq *g);

/* Call method with params (a map, or NULL for an empty one).
 *
 * key (may be NULL) is the idempotency key, at most GPUQ_KEY_BYTES_MAX bytes.
 * deadline_us from now, 0 = none. *reply is made in a.
 * Returns 0 or the server's error (its code, sentence and field in err). */
int gpuq_call(struct gpuq *g, const char *method, const struct gpuq_val *params, const char *key,
	      int64_t deadline_us, struct gpuq_arena *a, struct gpuq_val **reply,
	      struct gpuq_err *err);

/* Called for each item of a stream; item lives until the callback returns. A
 * non-zero answer cancels the stream, and gpuq_stream returns it. item is NULL when
 * tick_us passed without one (progress lines, deadlines of the caller's own). */
typedef int (*gpuq_item_fn)(void *arg, const struct gpuq_val *item);

/* Call a method that streams; returns when the server ended it (0, *reply as for
 * gpuq_call), with its error, or with the callback's non-zero value. tick_us 0 =
 * no ticks. */
int gpuq_stream(struct gpuq *g, const char *method, const struct gpuq_val *params, int64_t tick_us,
		gpuq_item_fn fn, void *arg, struct gpuq_arena *a, struct gpuq_val **reply,
		struct gpuq_err *err);

/* The same of a list of jobs, of whose objects only the keys (ended by NULL) are wanted: fn
 * is shown a map of them for each job. A key may be that of a part: "pods.node" is the list
 * of each pod's node. A server that does not know this sends whole objects, which fn gets. */
int gpuq_stream_rows(struct gpuq *g, const char *method, const struct gpuq_val *params,
		     const char *const *keys, int64_t tick_us, gpuq_item_fn fn, void *arg,
		     struct gpuq_arena *a, struct gpuq_val **reply, struct gpuq_err *err);

/* For callers with many calls under way (benchmarks, event-driven programs): send
 * without waiting (*id identifies the reply), and take the next reply. */
int gpuq_send(struct gpuq *g, const char *method, const struct gpuq_val *params, const char *key,
	      uint32_t *id, struct gpuq_err *err);
int gpuq_recv(struct gpuq *g, int64_t deadline_us, uint32_t *id, struct gpuq_arena *a,
	      struct gpuq_val **reply, int *call_rc, struct gpuq_err *err);

#endif
