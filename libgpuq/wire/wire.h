/* wire.h - gpuq-rpc/1: the messages both ends agree on
 *
 * Owns     the names of the protocol and the form of an error on it.
 * Touches  memory only.
 * Used by  client.c and gpuqd/rpc/. Not installed.
 *
 * MessagePack-RPC as its specification has it, and by convention on top of it:
 *   request       [0, msgid, method, [params]]   params is one map; its key "$" is
 *                 the call's own: {k: idempotency key, dl: deadline in ms from now}
 *   response      [1, msgid, error, result]      error is nil or a map {code, name,
 *                 msg, field?, retry_ms?}
 *   notification  [2, "$/item", [msgid, seq, value]]   one item of a stream, seq from 1
 *                 [2, "$/credit", [msgid, n]]          n more items are welcome
 *                 [2, "$/cancel", [msgid]]             the client wants no more
 *                 [2, "$/ping", []]                    either end is alive
 *                 [2, "$/error", [error]]              why the server closes now
 * Lists of jobs take {keys: [...]}: their items are then lists of rows, and a row is the list
 * of the values of those keys, in their order (gpuqd/state/view/view.h). {order: [...], first: n}
 * says what will be done with them: the server may leave out what is behind the first n in
 * that order.
 * Items and credit go both ways. A server begins a stream with GPUQ_STREAM_CREDIT items'
 * credit; a client may send items of a call only when the server has given it credit.
 * The first call is hello {proto: [major, minor], client, auth: {token}}; auth is for connections that are
 * not unix sockets. A reader skips keys and
 * notifications that it does not know.
 */
#ifndef LIBGPUQ_WIRE_WIRE_H
#define LIBGPUQ_WIRE_WIRE_H

#include <stdint.h>

#include "libgpuq/wire/mp.h"

#define GPUQ_PROTO_MAJOR 1
#define GPUQ_PROTO_MINOR 0
#define GPUQ_TLS_ALPN "gpuq-rpc/1"
#define GPUQ_TLS_PORT "7441"

enum gpuq_wire_type { GPUQ_WIRE_REQUEST = 0, GPUQ_WIRE_RESPONSE = 1, GPUQ_WIRE_NOTE = 2 };

#define GPUQ_WIRE_META "$"
#define GPUQ_WIRE_KEY "k"
#define GPUQ_WIRE_DEADLINE "dl"
#define GPUQ_WIRE_ITEM "$/item"
#define GPUQ_WIRE_CREDIT "$/credit"
#define GPUQ_WIRE_CANCEL "$/cancel"
#define GPUQ_WIRE_PING "$/ping"
#define GPUQ_WIRE_ERROR "$/error"

/* Limits of one message, before and after hello. */
extern const struct gpuq_mp_limits gpuq_wire_limits_hello, gpuq_wire_limits;

/* A message taken apart; everything points into the tree it came from. */
struct gpuq_wire_msg {
	enum gpuq_wire_type type;
	uint32_t id; /* requests and responses */
	const char *method; /* requests and notifications */
	const struct gpuq_val *params; /* requests: the map, or NULL for [] or [nil];
					* notifications: the list */
	const struct gpuq_val *error; /* responses: NULL when there is none */
	const struct gpuq_val *result;
};

/* Take a message apart. Returns 0 or GPUQ_EPROTO. */
int gpuq_wire_split(const struct gpuq_val *v, struct gpuq_wire_msg *m, struct gpuq_err *err);

/* Take the method from the beginning of a message that gpuq_mp_next has examined, though it need not be
 * complete. False: it is not there yet, there is none, or it has room bytes or more. */
bool gpuq_wire_peek(const char *bytes, size_t n, char *method, size_t room);

/* The id of a notification's call, its first parameter; false when there is none. */
bool gpuq_wire_note_id(const struct gpuq_wire_msg *m, uint32_t *id);

/* An error as a map, and back. Reading never fails: what is missing is replaced. */
struct gpuq_val *gpuq_wire_error(struct gpuq_arena *a, const struct gpuq_err *err);
void gpuq_wire_error_read(const struct gpuq_val *v, struct gpuq_err *err);

/* Append one message. Values may be NULL (nil). */
void gpuq_wire_request(struct gpuq_buf *b, uint32_t id, const char *method,
		       const struct gpuq_val *params);
void gpuq_wire_response(struct gpuq_buf *b, uint32_t id, const struct gpuq_val *error,
			const struct gpuq_val *result);
void gpuq_wire_item(struct gpuq_buf *b, uint32_t id, uint64_t seq, const struct gpuq_val *value);
/* The same of a value that is written already; and where that of an item of call id begins in a
 * message that gpuq_mp_next has passed (NULL: it is none). */
void gpuq_wire_item_bytes(struct gpuq_buf *b, uint32_t id, uint64_t seq, const void *value,
			  size_t n);
const char *gpuq_wire_item_value(const char *bytes, size_t n, uint32_t id);
void gpuq_wire_credit(struct gpuq_buf *b, uint32_t id, uint32_t n);
void gpuq_wire_cancel(struct gpuq_buf *b, uint32_t id);
void gpuq_wire_ping(struct gpuq_buf *b);
void gpuq_wire_closing(struct gpuq_buf *b, const struct gpuq_err *err);

#endif
