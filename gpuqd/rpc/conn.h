/* conn.h - one connection and its calls, inside the room
 *
 * Used by  gpuqd/rpc/ only, and by the tests that feed bytes without a socket.
 */
#ifndef GPUQD_RPC_CONN_H
#define GPUQD_RPC_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/rpc/flight.h"
#include "gpuqd/rpc/rpc.h"
#include "libgpuq/buf.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/wire/wire.h"

struct ask;
struct event;
struct rpc_conn;
struct stranger;
struct tls_conn;

/* A message on its way out. It outlives its connection when it is held back. */
struct rpc_frame {
	struct rpc_frame *next;
	struct rpc_conn *conn; /* NULL = its connection is gone */
	uint32_t id; /* of its call */
	bool item; /* else a response */
	bool released;
	struct gpuq_buf bytes;
};

struct rpc_call {
	struct rpc_server *server;
	struct rpc_conn *conn; /* NULL = the client is gone */
	struct rpc_call *next, **link; /* of the connection's calls */
	struct rpc_call *all_next, **all_link; /* of the server's */
	uint32_t id;
	const struct rpc_method *method;
	struct gpuq_arena arena;
	struct flight_user *share;
	size_t bytes; /* of its message */
	struct gpuq_val *params;
	struct rpc_peer peer;
	const char *key;
	int64_t deadline_us;
	uint64_t seq; /* items sent */
	uint32_t credit; /* items that may be sent */
	bool paused; /* rpc_item said no */
	bool in_fn; /* its method runs: the memory stays until it returns */
	bool finished;
	bool lasting; /* counted as such in its share */
	void (*resume)(void *arg);
	void (*closed)(void *arg, int why);
	void (*item)(void *arg, const struct gpuq_val *item); /* NULL = it takes none */
	uint64_t taken; /* items that came */
	uint32_t granted; /* items that may still come */
	void *watch_arg;
	struct loop_timer *tell_timer; /* closed is to be called once no function runs on it */
	int tell_why;
	struct loop_timer *deny_timer; /* to fail with deny_why */
	struct gpuq_err *deny_why;
};

struct rpc_conn {
	struct rpc_server *server;
	struct rpc_conn *next, **link; /* of the server's connections */
	int fd; /* -1 in tests */
	struct event *readable, *writable;
	struct rpc_peer peer;
	char *client; /* what it calls itself, once it said hello */
	char *claims; /* the same until hello was accepted */
	char address[64]; /* of the other machine; "" = unix */
	struct stranger *stranger; /* until it is known who it is: remote.h */
	char *queues, *groups, *credential; /* of peer */
	struct ask *asking; /* whose a token is has been asked: nothing is parsed meanwhile */
	struct tls_conn *tls; /* NULL = unix */
	bool called; /* once, before hello */
	bool shaking; /* the handshake is not over */
	struct loop_timer *start_timer; /* until its address may shake hands again */
	struct flight_user *share; /* of its user */
	size_t granted; /* bytes that its unfinished message may have; 0 = none were requested */
	size_t waits; /* this many it waits for; 0 = it does not */
	unsigned long turn; /* since when, as a number */
	size_t counted; /* bytes of output that are counted */
	bool reserve; /* beyond the user's bound: for short calls */
	/* in */
	struct gpuq_buf in;
	size_t taken; /* bytes of `in` that are dealt with */
	struct gpuq_mp_scan scan;
	struct loop_timer *hello_timer, *frame_timer;
	struct loop_timer *more_timer; /* messages wait in `in` for the next turn */
	int64_t active_us; /* last call or last byte, monotonic */
	/* out */
	struct gpuq_buf out; /* released bytes */
	size_t sent; /* of `out` */
	struct rpc_frame *frames, **last_frame; /* not all released */
	size_t held_bytes; /* in frames */
	int64_t wrote_us;
	struct loop_timer *close_timer; /* set = closing: what is under way leaves, then it ends */
	struct rpc_call *calls;
	unsigned n_calls;
};

/* Take over fd (nonblocking, or -1). NULL without memory; fd is then still the caller's. */
struct rpc_conn *conn_new(struct rpc_server *s, int fd, const struct rpc_peer *peer);

/* The same with TLS on fd; tls is the connection's unless it returns NULL. Its handshake begins in wait_us. */
struct rpc_conn *conn_new_tls(struct rpc_server *s, int fd, struct tls_conn *tls,
			      const char *address, int64_t wait_us);

/* Hello was accepted: calls may come. */
void conn_welcome(struct rpc_conn *c);

/* Let go of it at once; its calls hear of it. Not from inside a method. */
void conn_kill(struct rpc_conn *c);

/* Deal with bytes from the peer. */
void conn_feed(struct rpc_conn *c, const void *bytes, size_t n);

/* Say why (NULL = nothing to say) and end once that and all answers have left. */
void conn_close(struct rpc_conn *c, const struct gpuq_err *why);

/* Once in a while: idle connections end, open streams hear a ping. */
void conn_sweep(struct rpc_conn *c, int64_t now_us);

/* Queue a message after the others; takes over bytes. call is the origin; NULL for a message
 * that depends on no change and need not be held back. */
void conn_send(struct rpc_conn *c, struct rpc_call *call, uint32_t id, bool item,
	       struct gpuq_buf *bytes);

/* Its message may grow again: flight.h. */
void conn_admitted(struct rpc_conn *c);

/* Unsent bytes are so many that streams should wait. */
bool conn_congested(const struct rpc_conn *c);

#endif
