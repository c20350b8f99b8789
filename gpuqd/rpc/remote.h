/* remote.h - tls:// sockets, and what their clients may cost before it is known who they are
 *
 * Owns     the listening sockets of the network, the context of TLS, a count for each address.
 * Touches  TCP sockets, the files of struct rpc_tls.
 * Used by  server.c.
 *
 * Bounded, with the numbers of limits.h: connections in all and of one address that have not said who they
 * are, and handshakes a second of one address; further ones wait.
 */
#ifndef GPUQD_RPC_REMOTE_H
#define GPUQD_RPC_REMOTE_H

#include "gpuqd/rpc/conn.h"

struct remote;
struct stranger;

struct remote *remote_new(struct rpc_server *s); /* NULL without memory */
void remote_free(struct remote *r); /* connections are gone already */
void remote_stop(struct remote *r); /* takes no more connections */

/* addr: what follows "tls://": address:port, [address]:port or a host's name and port. */
int remote_listen(struct remote *r, const char *addr, struct gpuq_err *err);
/* Look at the certificates again; says in the log what came of it. */
void remote_reload(struct remote *r);

/* As rpc_call_net(). */
void remote_net(const struct rpc_conn *c, char out[RPC_NET_BYTES]);

/* It is no stranger any more, or gone. */
void remote_known(struct remote *r, struct rpc_conn *c);

#endif
