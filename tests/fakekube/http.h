/* http.h - a small HTTP/1.1 server that can also misbehave
 *
 * Owns     connections, the reading of requests within limits, and the writing
 *          of answers: whole, cut short, byte by byte, or never.
 * Touches  sockets on the loopback interface.
 *
 * evhttp is not used because the faults need the connection itself: answers
 * that trickle, streams that go silent with the connection open, connections
 * that end after the request took effect.
 */
#ifndef FAKEKUBE_HTTP_H
#define FAKEKUBE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <event2/event.h>

#include "util.h"

#define HTTP_HEADER_MAX (64 * 1024) /* request line and headers, bytes */
#define HTTP_BODY_MAX (3 * 1024 * 1024) /* as the real apiserver */
#define HTTP_PARAMS_MAX 64
#define HTTP_CONNS_MAX 4096
#define HTTP_READ_S 30 /* a request must have arrived whole after this */
#define HTTP_IDLE_S 90 /* between requests */
#define HTTP_BACKLOG_MAX (256u * 1024 * 1024) /* unsent bytes of a stream */

struct conn;
struct evbuffer;

struct http_param {
	char *key, *value;
};

struct http_req {
	struct conn *c; /* NULL once the client is gone */
	char *head; /* what the fields below point into */
	const char *method;
	char *path; /* decoded */
	struct http_param params[HTTP_PARAMS_MAX];
	size_t n_params;
	const char *content_type, *accept, *authorization; /* "" if not given */
	const char *upgrade, *ws_key, *ws_protocol; /* the same */
	char *body;
	size_t body_len;
};

/* How an answer is to be spoiled. Zero is: not at all. */
struct http_fx {
	size_t slow_bytes; /* send so many bytes each ... */
	int64_t slow_us; /* ... so many microseconds */
	bool truncate; /* close after so many bytes of the body */
	size_t truncate_bytes;
};

/* The handler owns req until it calls one of the ways out below. */
typedef void (*http_handler)(struct http_req *req);

/* Listen on 127.0.0.1:port (0: any free one). Returns the port, or -1 with errno. */
int http_start(struct event_base *base, int port, http_handler handler);
void http_stop(void);
/* Stop listening, so that clients are refused; and come back on the same port. With quiet the
 * socket stays without accepting: a black hole. */
void http_listen_stop(bool quiet);
void http_listen_again(void);
/* Close every connection but the one of keep (may be NULL). */
void http_drop_all(const struct http_req *keep);
unsigned http_conn_count(void);

/* Ways out. Each takes over req and works, as nothing, for a client that left.
 * http_reply may take the body's text over and leave body empty. */
void http_reply(struct http_req *req, int code, const char *type, const char *headers,
		struct buf *body, const struct http_fx *fx);
void http_drop(struct http_req *req, bool reset);
void http_hang(struct http_req *req);

/* A way out too: begin an answer without end. on_close runs once, when the
 * connection goes for whatever reason. Returns NULL if the client has left. */
struct conn *http_stream(struct http_req *req, const char *type, const struct http_fx *fx,
			 void (*on_close)(void *arg), void *arg);
void http_send(struct conn *c, const void *p, size_t n);
/* Upgrade: reply 101 with these headers (whole lines), and the connection is no longer HTTP.
 * Input is passed on, to be removed from in. */
struct conn *http_upgrade(struct http_req *req, const char *headers,
			  void (*on_data)(void *arg, struct evbuffer *in),
			  void (*on_close)(void *arg), void *arg);
void http_send_raw(struct conn *c, const void *p, size_t n);
/* End the stream properly; the connection lives on. on_close is not called. */
void http_stream_end(struct conn *c);
void http_stream_kill(struct conn *c, bool reset);
/* Send nothing more and keep the connection: a half-open peer. */
void http_stream_freeze(struct conn *c);
size_t http_backlog(const struct conn *c);

/* A query parameter; NULL if absent. */
const char *http_param(const struct http_req *req, const char *key);
bool http_param_true(const struct http_req *req, const char *key);

#endif
