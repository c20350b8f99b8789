/* client_int.h - what client.c, duplex.c and rows.c share; private to them */
#ifndef LIBGPUQ_WIRE_CLIENT_INT_H
#define LIBGPUQ_WIRE_CLIENT_INT_H

#include "libgpuq/client.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/transport.h"
#include "libgpuq/wire/wire.h"

/* A reply that came while another one was waited for. */
struct answer {
	struct answer *next;
	uint32_t id;
	size_t n;
	char bytes[];
};

/* A stream of rows under way. */
struct gpuq_rows {
	uint32_t id; /* of its call */
	struct gpuq_val map, *vals; /* the row that is shown: keys, and what follows each */
	const char *p, *end; /* of the message that has come: what is left of it */
	struct gpuq_arena keep, one; /* as long as the stream, and the row */
};

struct gpuq {
	struct gpuq_transport t;
	uint32_t last_id;
	uint32_t sent[GPUQ_OUTSTANDING_MAX]; /* ids of gpuq_send without a reply */
	size_t n_sent;
	struct answer *answers, **last_answer;
	int64_t busy_us; /* as in gpuq_connect_opts */
	bool streaming; /* inside gpuq_stream, or with a duplex open: no other call */
	struct gpuq_rows *rows; /* of the stream, when that is one of rows */
	/* For a duplex call: its id, items granted since the start, and unsent data, behind which
	 * further data queues. */
	bool duplex;
	uint32_t credit_id, credit;
	struct gpuq_buf out;
	struct gpuq_err closing; /* what the server said before it closed */
	struct gpuq_arena info_arena;
	struct gpuq_val *info;
};

/* One message. */
struct gpuq_incoming {
	const char *bytes;
	size_t n;
	bool rows; /* it is g->rows, and msg is not made */
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

/* Keep a reply to gpuq_send for gpuq_recv; drop one that is no longer expected. */
int gpuq_client_keep(struct gpuq *g, const struct gpuq_incoming *in, struct gpuq_err *err);

/* keys ends with NULL and lives on. *out: params (may be NULL) with them, as long as r.
 * 0 or GPUQ_ENOMEM; free it in either case. */
int gpuq_rows_init(struct gpuq_rows *r, const char *const *keys, const struct gpuq_val *params,
		   struct gpuq_val **out, struct gpuq_err *err);
void gpuq_rows_done(struct gpuq_rows *r);
/* The message is an item with rows: they are the next of gpuq_rows_each. */
bool gpuq_rows_here(struct gpuq_rows *r, const char *bytes, size_t n);
/* Show each to fn until its *verdict is not 0. 0, GPUQ_EPROTO, GPUQ_ENOMEM. */
int gpuq_rows_each(struct gpuq_rows *r, gpuq_item_fn fn, void *arg, int *verdict,
		   struct gpuq_err *err);

int gpuq_client_busy(const struct gpuq *g, struct gpuq_err *err);

#endif
