#include "websocket.h"

#include <stdlib.h>
#include <string.h>
#include <event2/buffer.h>
#include <openssl/evp.h>

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define MESSAGE_MAX ((uint64_t)1 << 20)

struct ws {
	struct conn *c;
	void (*message)(void *arg, enum ws_op op, const char *p, size_t n);
	void (*gone)(void *arg);
	void *arg;
	bool busy, over; /* busy: memory is freed when the running callback has returned */
};

static void forget(struct ws *w)
{
	w->c = NULL;
	w->over = true;
	if (!w->busy)
		free(w);
}

static void on_gone(void *arg)
{
	struct ws *w = arg;

	w->gone(w->arg);
	forget(w);
}

/* The length of the frame at p (n bytes so far), 0 when it is not all there, -1 when it is none. */
static int64_t frame_bytes(const unsigned char *p, size_t n, size_t *head)
{
	uint64_t len;
	size_t more = 0;

	if (n < 2)
		return 0;
	if (!(p[0] & 0x80) || (p[0] & 0x70) || !(p[1] & 0x80))
		return -1; /* a part of a message, an extension, or not masked */
	len = p[1] & 0x7f;
	if (len >= 126)
		more = len == 126 ? 2 : 8;
	if (n < 2 + more + 4)
		return 0;
	if (more)
		len = 0;
	for (size_t i = 0; i < more; i++)
		len = len << 8 | p[2 + i];
	if (len > MESSAGE_MAX)
		return -1;
	*head = 2 + more + 4;
	return n < *head + len ? 0 : (int64_t)(*head + len);
}

static void on_data(void *arg, struct evbuffer *in)
{
	struct ws *w = arg;
	int64_t n = 1;

	w->busy = true;
	while (!w->over && n > 0) {
		const size_t have = evbuffer_get_length(in);
		unsigned char *p = evbuffer_pullup(in, -1);
		struct buf text = BUF_INIT;
		enum ws_op op;
		size_t head = 0;

		n = have ? frame_bytes(p, have, &head) : 0;
		if (n <= 0)
			break;
		op = (enum ws_op)(p[0] & 0x0f);
		for (size_t i = head; i < (size_t)n; i++)
			p[i] ^= p[head - 4 + (i - head) % 4];
		buf_add(&text, p + head, (size_t)n - head);
		evbuffer_drain(in, (size_t)n);
		w->message(w->arg, op, text.s, text.len);
		buf_done(&text);
	}
	w->busy = false;
	if (n < 0) {
		struct conn *c = w->c;

		w->gone(w->arg);
		free(w);
		http_stream_kill(c, true);
	} else if (w->over) {
		free(w);
	}
}

/* The key of the client, with the words of RFC 6455, as it wants them back. */
static void accept_text(const char *key, char out[64])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	struct buf text = BUF_INIT;
	unsigned n = 0;

	buf_addf(&text, "%s" GUID, key);
	EVP_Digest(text.s, text.len, sum, &n, EVP_sha1(), NULL);
	EVP_EncodeBlock((unsigned char *)out, sum, (int)n);
	buf_done(&text);
}

struct ws *ws_upgrade(struct http_req *req, const char *protocol,
		      void (*message)(void *arg, enum ws_op op, const char *p, size_t n),
		      void (*gone)(void *arg), void *arg)
{
	struct ws *w = xcalloc(1, sizeof(*w));
	struct buf headers = BUF_INIT;
	char accept[64];

	accept_text(req->ws_key, accept);
	buf_addf(&headers,
		 "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
		 "Sec-WebSocket-Protocol: %s\r\n",
		 accept, protocol);
	w->message = message;
	w->gone = gone;
	w->arg = arg;
	w->c = http_upgrade(req, headers.s, on_data, on_gone, w);
	buf_done(&headers);
	if (w->c)
		return w;
	free(w);
	return NULL;
}

void ws_send(struct ws *w, enum ws_op op, const void *p, size_t n)
{
	const unsigned char head[4] = { (unsigned char)(0x80 | op),
					n < 126 ? (unsigned char)n : 126, (unsigned char)(n >> 8),
					(unsigned char)n };
	struct buf b = BUF_INIT;

	buf_add(&b, head, n < 126 ? 2 : 4); /* none of ours is longer than 64 KiB */
	buf_add(&b, p, n);
	http_send_raw(w->c, b.s, b.len);
	buf_done(&b);
}

void ws_end(struct ws *w)
{
	struct conn *c = w->c;

	ws_send(w, WS_CLOSE, "\003\350", 2);
	forget(w);
	http_stream_kill(c, false);
}

void ws_kill(struct ws *w, bool reset)
{
	struct conn *c = w->c;

	forget(w);
	http_stream_kill(c, reset);
}

void ws_freeze(struct ws *w)
{
	http_stream_freeze(w->c);
}
