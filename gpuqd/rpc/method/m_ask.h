/* m_ask.h - questions that run the scheduler on a copy of the state, beside the loop
 *
 * Owns     the packed state and the memory of one question.
 * Touches  the model (once, in the loop), threads of struct methods.
 * Used by  m_plan.c m_prio.c m_shares.c m_why.c.
 */
#ifndef GPUQD_RPC_METHOD_M_ASK_H
#define GPUQD_RPC_METHOD_M_ASK_H

#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/buf.h"

struct ask;

/* Runs in a thread. Puts the reply, made in a->mem, into a->answer. */
typedef int (*ask_fn)(struct ask *a, struct gpuq_err *err);

struct ask {
	struct methods *m;
	struct rpc_call *call; /* NULL = the client is gone */
	struct gpuq_buf packed; /* the state: snapshot_pack.h */
	struct gpuq_arena mem;
	int64_t now_us; /* when that was */
	void *arg; /* the question's own, in mem */
	ask_fn fn;
	bool stream; /* there are items, made by ask_item(), and no reply */
	struct gpuq_buf items;
	size_t items_at; /* so far they have been sent */
	void (*drop_arg)(void *arg); /* NULL = arg needs nothing */
	bool slow; /* it runs the scheduler many times */
	/* Use the thread's result instead of replying with it; takes over a. NULL: the reply is
	 * sent. */
	void (*then)(struct ask *a);
	struct gpuq_val *answer;
	int rc;
	struct gpuq_err err;
};

/* Begin: copies the state. Identical pending jobs may be merged there, but not the one that it
 * is about (NULL = about none). NULL with *err: no memory. */
struct ask *ask_new(struct methods *m, struct rpc_call *c, const struct job_key *about,
		    struct gpuq_err *err);

/* The same without the state: the caller copies the thread's input itself. */
struct ask *ask_bare(struct methods *m, struct rpc_call *c, struct gpuq_err *err);

/* It is not asked after all. */
void ask_drop(struct ask *a);
void ask_dropped(void *ask); /* its thread has ended without it */

/* Hand it to a thread; the call is finished when that is done. a is used up, also on
 * failure: GPUQ_EBUSY (too many questions wait), GPUQ_ENOMEM. */
int ask_run(struct ask *a, ask_fn fn, struct gpuq_err *err);

/* In the thread: v is sent, behind what was before it, once all of them are there. */
void ask_item(struct ask *a, const struct gpuq_val *v);

/* The state as a snapshot that is not sealed yet, or sealed; snapshot_free(). */
int ask_open(const struct ask *a, struct snapshot **out, struct gpuq_err *err);
int ask_snapshot(const struct ask *a, struct snapshot **out, struct gpuq_err *err);

#endif
