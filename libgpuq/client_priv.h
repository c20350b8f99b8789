/* client_priv.h - what client.c and duplex.c share; private to them */
#ifndef LIBGPUQ_CLIENT_PRIV_H
#define LIBGPUQ_CLIENT_PRIV_H

#include "libgpuq/client.h"
#include "libgpuq/limits.h"
#include "libgpuq/transport.h"
#include "libgpuq/wire.h"

/* An answer that came while another one was waited for. */
struct answer {
	struct answer *next;
	uint32_t id;
	size_t n;
	char bytes[];
};

struct gpuq {
	struct gpuq_transport t;
	uint32_t last_id;
	uint32_t sent[GPUQ_OUTSTANDING_MAX]; /* ids of gpuq_send without an answer */
	size_t n_sent;
	struct answer *answers, **last_answer;
	bool streaming; /* inside gpuq_stream, or with a duplex open: no other call */
	/* Of a duplex: its call, items granted since it asked, and what has not left: whatever
	 * is said meanwhile goes behind it. */
	bool duplex;
	uint32_t credit_id, credit;
	struct gpuq_buf out;
	struct gpuq_err closing; /* what the server said before it closed */
	struct gpuq_arena info_arena;
	struct gpuq_val *info;
};

/* One message and what it was made in. */
struct gpuq_incoming {
	const char *bytes;
	size_t n;
	struct gpuq_wire_msg msg;
};

/* The next response or item, read into a. Returns 1, 0 at the deadline, or an error. */
int gpuq_client_next(struct gpuq *g, int64_t until_us, struct gpuq_arena *a,
		     struct gpuq_incoming *in, struct gpuq_err *err);

/* Send a request. Fails with what became of it: when none of it left the connection
 * is as it was; when a part did, it is of no further use. */
int gpuq_client_send_request(struct gpuq *g, const char *method, const struct gpuq_val *params,
			     const char *key, int64_t deadline_us, int64_t until_us, uint32_t *id,
			     struct gpuq_err *err);

/* The connection ended while a call was under way: what that means to the caller. */
int gpuq_client_lost(struct gpuq *g, int rc, struct gpuq_err *err);

/* A response: 0 and *reply, or the server's error. */
int gpuq_client_settle(const struct gpuq_wire_msg *m, struct gpuq_val **reply,
		       struct gpuq_err *err);

/* Keep an answer to gpuq_send for gpuq_recv; drop what nobody waits for any more. */
int gpuq_client_keep(struct gpuq *g, const struct gpuq_incoming *in, struct gpuq_err *err);

int gpuq_client_busy(const struct gpuq *g, struct gpuq_err *err);

#endif
