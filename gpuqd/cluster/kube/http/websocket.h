/* websocket.h - one WebSocket to the apiserver
 *
 * Owns     a connection of its own, from the request to upgrade it until its end; what
 *          waits to be sent on it.
 * Touches  the network through http.h; credentials through it.
 * Used by  session.c.
 *
 * No callback is made from inside these calls; ended() is the last, and the one from which
 * it is to be closed.
 */
#ifndef GPUQD_CLUSTER_KUBE_HTTP_WEBSOCKET_H
#define GPUQD_CLUSTER_KUBE_HTTP_WEBSOCKET_H

#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/http/ws_frame.h"

#define WEBSOCKET_FULL_BYTES (64u << 10) /* unsent, beyond which more is not welcome */

struct websocket;

struct websocket_sink {
	void *arg;
	void (*open)(void *arg, const char *protocol); /* which of those that were offered */
	/* A message; false = no more until websocket_resume(). */
	bool (*message)(void *arg, const struct ws_message *m);
	void (*drained)(void *arg); /* after websocket_send() said no */
	/* a->status: of a request that was not upgraded; 0 else. a->complete: the other end
	 * has closed it in order. */
	void (*ended)(void *arg, const struct http_answer *a);
};

/* path and protocols ("v5.x, v4.x") are copied. Never NULL. */
struct websocket *websocket_open(struct loop *l, struct http *h, const char *path,
				 const char *protocols, const struct websocket_sink *sink);

/* A binary message: head and bytes in one, all of it taken. false = enough for now. */
bool websocket_send(struct websocket *w, const void *head, size_t n_head, const void *bytes,
		    size_t n);
void websocket_resume(struct websocket *w);

/* Say goodbye, as far as that goes without waiting, and forget it. */
void websocket_close(struct websocket *w);

#endif
