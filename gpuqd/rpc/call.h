/* call.h - one call, from its message to its last answer
 *
 * Used by  conn.c, server.c. See rpc.h for the calls that methods make.
 */
#ifndef GPUQD_RPC_CALL_H
#define GPUQD_RPC_CALL_H

#include "gpuqd/rpc/conn.h"

/* call.c, for conn.c. call_start takes over the arena. */
void call_start(struct rpc_conn *c, const struct gpuq_wire_msg *m, struct gpuq_arena *a,
		size_t n_bytes);
struct rpc_call *call_find(const struct rpc_conn *c, uint32_t id);
void call_credit(struct rpc_call *call, int64_t n);
void call_cancel(struct rpc_call *call);
/* An item came for it. false: more than was granted, or out of order. */
bool call_item(struct rpc_call *call, const struct gpuq_val *seq, const struct gpuq_val *item);
void call_doom(struct rpc_call *call, const struct gpuq_err *why); /* fail it from outside */
void call_orphan(struct rpc_call *call); /* its connection is going away */
void call_resume_some(struct rpc_conn *c); /* after the output drained */
void call_abandon(struct rpc_call *call); /* the server is going away */

#endif
