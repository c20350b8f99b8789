/* http_multi.h - a curl multi handle on the daemon's event loop
 *
 * Owns     one CURLM, its sockets' events and its timer.
 * Touches  sockets through libcurl; no thread but libcurl's resolver.
 * Used by  cluster/kube (http.c), webhook.c.
 *
 * libcurl must not be called from its own callbacks: its users add, remove and resume
 * from the loop only.
 */
#ifndef GPUQD_NET_HTTP_MULTI_H
#define GPUQD_NET_HTTP_MULTI_H

#include <curl/curl.h>

#include "libgpuq/err.h"

struct loop;
struct http_multi;

struct http_multi_sink {
	void *arg;
	/* A transfer has ended; it has been removed from the multi. */
	void (*done)(void *arg, CURL *easy, CURLcode code);
	/* libcurl has lost its footing: every transfer of this multi is over, each has
	 * been removed and its outcome is not known. */
	void (*broken)(void *arg, struct http_multi *m);
};

/* connections: at most that many to the server; 0 = one for each transfer. */
int http_multi_new(struct loop *l, long connections, const struct http_multi_sink *sink,
		   struct http_multi **out, struct gpuq_err *err);
/* Keep a finished handle in the multi until it is removed: libcurl drops the connection of a
 * connect-only handle on removal. */
void http_multi_keep(struct http_multi *m);
void http_multi_free(struct http_multi *m); /* after every transfer was removed */

int http_multi_add(struct http_multi *m, CURL *easy);
void http_multi_remove(struct http_multi *m, CURL *easy);

/* Throw the CURLM away and take a new one; the caller has removed its transfers. */
int http_multi_renew(struct http_multi *m);

#endif
