/* identify.h - hello: which user is at the other end
 *
 * Owns     the question whose a token is, while it is open.
 * Used by  conn.c.
 *
 * On a unix socket the kernel knows, and what hello says about it is not examined. Elsewhere a token counts
 * before a certificate. A wrong proof is answered after GPUQ_AUTH_DELAY_S, logged and noted in the audit.
 */
#ifndef GPUQD_RPC_IDENTIFY_H
#define GPUQD_RPC_IDENTIFY_H

#include "gpuqd/rpc/conn.h"

struct ask;

/* The first message. c->client is set once hello was accepted, perhaps later. */
void identify_hello(struct rpc_conn *c, const struct gpuq_wire_msg *m);

/* True if the message is a call that needs no hello, and the first of its connection. */
bool identify_may_call(struct rpc_conn *c, const struct gpuq_wire_msg *m);

/* Its connection goes: the reply is not wanted any more. */
void identify_forget(struct rpc_conn *c);

#endif
