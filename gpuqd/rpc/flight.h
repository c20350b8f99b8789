/* flight.h - bytes in flight: what connections and calls hold, bounded per user and in all; calls a second
 *
 * Owns     the sums, and the connections that wait for a part of the bounds.
 * Touches  memory only.
 * Used by  gpuqd/rpc/ only.
 *
 * Counted are unfinished messages (as the whole that their method allows, so that a message
 * that was admitted can always be finished), calls under way (their message's size) and replies
 * that have not been read. A message of up to GPUQ_MSG_BYTES_SMALL needs no admission: hello, and
 * short calls, are taken while both bounds are full.
 * A longer one whose part does not fit waits: its connection is not read. As parts become free, the
 * waiting connection goes on whose user holds the fewest bytes, of one user the one that waits longest.
 */
#ifndef GPUQD_RPC_FLIGHT_H
#define GPUQD_RPC_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rpc_conn;
struct rpc_server;

/* The part of one user. It lives as long as the server. */
struct flight_user {
	unsigned connections;
	unsigned lasting; /* calls that last */
	size_t bytes;
	int64_t call_us,
		submit_us; /* monotonic: the next call, and submit, if all came at an even pace */
};

struct flight {
	size_t bytes;
	unsigned n_waiting;
	unsigned long turn; /* number of the next that waits */
};

/* Count one call of the user: 0, or the time until it may be made, us. */
int64_t flight_pace(struct flight_user *u, bool submits, int64_t now_us);

/* True if n more bytes fit the bounds; operators pass that of the server. */
bool flight_fits(const struct rpc_conn *c, size_t n);

void flight_add(struct rpc_server *s, struct flight_user *u, size_t n);
void flight_drop(struct rpc_server *s, struct flight_user *u, size_t n);

/* Take n bytes for an unfinished message: true. False: the connection waits, and conn_admitted()
 * follows. */
bool flight_admit(struct rpc_conn *c, size_t n);
/* The message is finished, or its connection is gone: what it took is free, and it waits no more. */
void flight_leave(struct rpc_conn *c);

/* Count the output of a connection anew. */
void flight_output(struct rpc_conn *c);
/* True if the output of c is to wait: its own is large, or its bounds are full and it is not small. */
bool flight_output_full(const struct rpc_conn *c);
/* True if more replies may not wait: the user's bound is full, or that of the server and the user has much
 * of it, and the connection reads too slowly. */
bool flight_output_over(const struct rpc_conn *c);

#endif
