/* ws_frame.h - frames and messages of a WebSocket (RFC 6455), a client's end
 *
 * Owns     the message that is being put together. Touches memory only.
 * Used by  websocket.c; tests.
 *
 * libcurl as Debian builds it speaks no WebSocket; what is needed of the protocol is this
 * one file, smaller than what a library would want to be told.
 */
#ifndef GPUQD_CLUSTER_KUBE_HTTP_WS_FRAME_H
#define GPUQD_CLUSTER_KUBE_HTTP_WS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

#define WS_MESSAGE_BYTES_MAX (1u << 20) /* servers here send 32 KiB at a time */
#define WS_CONTROL_BYTES_MAX 125u

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

/* Append a whole message as one frame: `head` (n_head bytes, may be 0), then bytes[0..n). */
void ws_put(struct gpuq_buf *b, enum ws_opcode op, const void *head, size_t n_head,
	    const void *bytes, size_t n, const unsigned char mask[4]);

struct ws_reader {
	struct gpuq_buf in; /* bytes that were not examined */
	struct gpuq_buf message; /* parts that came */
	bool begun;
	enum ws_opcode op; /* of the message that was begun */
};

struct ws_message {
	enum ws_opcode op; /* never WS_CONTINUATION */
	const char *bytes; /* until the next call */
	size_t n;
};

void ws_feed(struct ws_reader *r, const void *bytes, size_t n);

/* The next message: 1, 0 when more bytes are needed, or GPUQ_EPROTO, GPUQ_ETOOBIG,
 * GPUQ_ENOMEM: then the connection is of no further use. */
int ws_next(struct ws_reader *r, struct ws_message *out, struct gpuq_err *err);

void ws_reader_done(struct ws_reader *r);

#endif
