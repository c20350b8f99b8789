/* server.h - the server, as its connections and calls see it
 *
 * Owns     the socket and the list of connections.
 * Used by  call.c, conn.c, flight.c. See rpc.h for the calls that the daemon makes.
 */
#ifndef GPUQD_RPC_SERVER_H
#define GPUQD_RPC_SERVER_H

#include "gpuqd/rpc/conn.h"

struct loop *server_loop(const struct rpc_server *s);
const struct rpc_opts *server_opts(const struct rpc_server *s);
const struct rpc_method *server_method(const struct rpc_server *s, const char *name);
enum rpc_role server_role(const struct rpc_server *s, const struct rpc_peer *peer);
struct rpc_call **server_calls(struct rpc_server *s);
struct flight *server_flight(struct rpc_server *s);
struct flight_user *server_share(struct rpc_server *s, const struct rpc_peer *peer);
struct rpc_conn *server_conns(struct rpc_server *s);
/* Whether c may begin a call that lasts: 0, or GPUQ_EBUSY. */
int server_may_last(const struct rpc_server *s, struct rpc_conn *c, struct gpuq_err *err);
/* It is known who is at the other end of c: peer, whose name is copied. 0; GPUQ_EBUSY, GPUQ_ENOMEM: it may
 * not stay. */
int server_conn_known(struct rpc_server *s, struct rpc_conn *c, const struct rpc_peer *peer,
		      struct gpuq_err *err);
/* Say in the log, and in the audit, that an identity was refused; at most once a second. */
void server_log_refused(struct rpc_server *s, const struct rpc_conn *c, const struct gpuq_err *err);
void server_log_turned_away(struct rpc_server *s, const char *address, const char *why);
void server_count_call(struct rpc_server *s, bool failed);
void server_conn_opened(struct rpc_server *s, struct rpc_conn *c);
void server_conn_gone(struct rpc_server *s, struct rpc_conn *c);
/* Say in the log why a connection ended; a flood of them is cut to one a second. */
void server_log_closed(struct rpc_server *s, const struct rpc_conn *c, const struct gpuq_err *err);

#endif
