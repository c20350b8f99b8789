/* http.h - requests to one apiserver
 *
 * Owns     two sets of connections: streams (watches, followed logs: HTTP/1.1, one
 *          connection each, so that a dead one takes nothing else down) and requests
 *          (HTTP/2 where the server offers it, else a few connections kept alive).
 * Touches  the network through libcurl; credentials through creds.h.
 * Used by  watch.c, api.c, logs.c.
 *
 * Nothing is called back from inside http_start() or http_cancel(). Bodies, tokens
 * and headers are never logged. A request that the server answers with 401 is sent
 * once more if there are other credentials to send it with.
 */
#ifndef GPUQD_CLUSTER_KUBE_HTTP_HTTP_H
#define GPUQD_CLUSTER_KUBE_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/cluster/kube/auth/config.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

struct loop;
struct http;
struct http_req;

struct http_answer {
	int status; /* 0 = the server gave none */
	bool sent; /* status 0: the server may have seen it all the same */
	bool complete; /* the whole body has come */
	int64_t retry_us; /* Retry-After; 0 = not reported */
	const char *body; /* of an error (cut at 64 KiB), and of any call without on_data */
	size_t n;
	const char *error; /* why there is no reply or no whole one, or "" */
	const char *warnings; /* texts of its Warning headers, a line each; "" none */
};

/* Result of a reader for bytes of a 2xx body. */
enum http_want {
	HTTP_MORE,
	HTTP_PAUSE, /* not taken: bring them again after http_resume() */
	HTTP_STOP, /* no more: end the request */
};

struct http_call {
	const char *method; /* "GET", "POST", "DELETE", "PATCH" */
	const char *path; /* "/api/v1/...?..."; copied */
	const char *body; /* copied; NULL = none */
	size_t n_body;
	const char *content_type; /* NULL = application/json */
	bool metadata; /* of an object: its metadata will do, where the server can leave out the rest */
	bool first; /* goes although others are held back */
	bool stream; /* no time limit as a whole */
	int64_t limit_us; /* of the whole (0 = 30 s); of a stream: longest silence, 0 = any */
	void (*on_open)(void *arg); /* 2xx has come, the body follows; may be NULL */
	enum http_want (*on_data)(void *arg, const char *bytes, size_t n);
	/* Set: no request is sent; the connection itself is wanted, and is there now. on_end
	 * is only called before. */
	void (*on_tunnel)(void *arg);
	void (*on_end)(void *arg, const struct http_answer *a); /* the request is gone */
	void *arg;
};

/* config must outlive the result. */
int http_new(struct loop *l, struct kube_config *config, struct http **out, struct gpuq_err *err);
void http_free(struct http *h); /* cancels what is under way */

/* Never NULL: what cannot be begun ends through on_end. */
struct http_req *http_start(struct http *h, const struct http_call *call);
void http_cancel(struct http_req *r); /* no callback after this; NULL is allowed */
void http_resume(struct http_req *r); /* after HTTP_PAUSE */

/* A connection of one's own, after on_tunnel: its descriptor, to be waited for; bytes on it,
 * 1 and *n, 0 when not ready, -1 when it is over. http_cancel() ends it. */
int http_tunnel_fd(struct http_req *r);
int http_tunnel_send(struct http_req *r, const void *bytes, size_t n, size_t *sent);
int http_tunnel_recv(struct http_req *r, void *bytes, size_t room, size_t *n);
/* The headers of any request to this server, credentials among them, a line each. */
void http_tunnel_headers(const struct http_req *r, struct gpuq_buf *out);
const char *http_prefix(const struct http *h); /* of every path: "" or "/k8s/cluster-1" */
/* The server said 401 there. true: other credentials are there, try again. */
bool http_unauthorized(struct http_req *r);

/* Send nothing but what is `first`, until this is said again with false. */
void http_hold(struct http *h, bool on);
/* From this instant of CLOCK_BOOTTIME on, likewise, until it is put later; 0 = for ever. It is
 * compared when a request is about to be sent, so a machine that slept sends nothing. */
void http_act_until(struct http *h, int64_t boot_us);

/* As many requests wait to be sent as are under way at most. */
bool http_is_busy(const struct http *h);

#endif
