#include "gpuqd/cluster/kube/http/ws_frame.h"

#include <string.h>

#define FIN 0x80u
#define RESERVED 0x70u
#define MASKED 0x80u

void ws_put(struct gpuq_buf *b, enum ws_opcode op, const void *head, size_t n_head,
	    const void *bytes, size_t n, const unsigned char mask[4])
{
	const size_t all = n_head + n;
	unsigned char h[14] = { (unsigned char)(FIN | op) };
	size_t at = 2, from;

	if (all < 126) {
		h[1] = (unsigned char)(MASKED | all);
	} else if (all < 65536) {
		h[1] = MASKED | 126;
		h[2] = (unsigned char)(all >> 8);
		h[3] = (unsigned char)all;
		at = 4;
	} else {
		h[1] = MASKED | 127;
		for (size_t i = 0; i < 8; i++)
			h[2 + i] = (unsigned char)((uint64_t)all >> (56 - 8 * i));
		at = 10;
	}
	memcpy(h + at, mask, 4);
	gpuq_buf_add(b, h, at + 4);
	from = b->len;
	if (n_head)
		gpuq_buf_add(b, head, n_head);
	if (n)
		gpuq_buf_add(b, bytes, n);
	for (size_t i = 0; !b->failed && i < all; i++)
		b->data[from + i] = (char)((unsigned char)b->data[from + i] ^ mask[i % 4]);
}

void ws_feed(struct ws_reader *r, const void *bytes, size_t n)
{
	gpuq_buf_add(&r->in, bytes, n);
}

void ws_reader_done(struct ws_reader *r)
{
	gpuq_buf_done(&r->in);
	gpuq_buf_done(&r->message);
}

struct frame {
	unsigned op;
	bool fin;
	const char *bytes;
	size_t n, whole; /* whole: with its head */
};

static int next_frame(const struct gpuq_buf *in, struct frame *f, struct gpuq_err *err)
{
	const unsigned char *p = (const unsigned char *)in->data;
	size_t head = 2;
	uint64_t n;

	if (in->len < 2)
		return 0;
	f->op = p[0] & 0x0fu;
	f->fin = p[0] & FIN;
	n = p[1] & 0x7fu;
	if (p[0] & RESERVED || p[1] & MASKED || (f->op > WS_BINARY && f->op < WS_CLOSE) ||
	    f->op > WS_PONG)
		return gpuq_fail(err, GPUQ_EPROTO,
				 "the reply is not a WebSocket frame of a server");
	if (f->op >= WS_CLOSE && (n > WS_CONTROL_BYTES_MAX || !f->fin))
		return gpuq_fail(err, GPUQ_EPROTO, "a control frame of an unknown kind");
	if (n >= 126) {
		const size_t bytes = n == 126 ? 2 : 8;

		head += bytes;
		if (in->len < head)
			return 0;
		n = 0;
		for (size_t i = 0; i < bytes; i++)
			n = n << 8 | p[2 + i];
	}
	if (n > WS_MESSAGE_BYTES_MAX)
		return gpuq_fail(err, GPUQ_ETOOBIG, "a message of more than %u bytes",
				 WS_MESSAGE_BYTES_MAX);
	if (in->len - head < n)
		return 0;
	f->bytes = in->data + head;
	f->n = (size_t)n;
	f->whole = head + (size_t)n;
	return 1;
}

/* A data frame: all of a message, or a part of one. */
static int add_part(struct ws_reader *r, const struct frame *f, struct gpuq_err *err)
{
	if ((f->op == WS_CONTINUATION) != r->begun)
		return gpuq_fail(err, GPUQ_EPROTO, "parts of messages out of order");
	if (!r->begun) {
		r->op = (enum ws_opcode)f->op;
		gpuq_buf_clear(&r->message);
	}
	if (r->message.len + f->n > WS_MESSAGE_BYTES_MAX)
		return gpuq_fail(err, GPUQ_ETOOBIG, "a message of more than %u bytes",
				 WS_MESSAGE_BYTES_MAX);
	if (f->n)
		gpuq_buf_add(&r->message, f->bytes, f->n);
	r->begun = !f->fin;
	return r->message.failed ? gpuq_fail(err, GPUQ_ENOMEM, "no memory") : 0;
}

int ws_next(struct ws_reader *r, struct ws_message *out, struct gpuq_err *err)
{
	/* Payload of a control frame, which may come between the parts of a message. */
	static _Thread_local char control[WS_CONTROL_BYTES_MAX];
	struct frame f = { 0 };
	int rc;

	if (r->in.failed)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	for (;;) {
		rc = next_frame(&r->in, &f, err);
		if (rc <= 0)
			return rc;
		if (f.op >= WS_CLOSE) {
			if (f.n)
				memcpy(control, f.bytes, f.n);
			*out = (struct ws_message){ (enum ws_opcode)f.op, control, f.n };
			gpuq_buf_drop(&r->in, f.whole);
			return 1;
		}
		rc = add_part(r, &f, err);
		if (rc < 0)
			return rc;
		gpuq_buf_drop(&r->in, f.whole);
		if (r->begun)
			continue;
		*out = (struct ws_message){ r->op, r->message.data, r->message.len };
		return 1;
	}
}
