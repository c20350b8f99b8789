/* http_parts.h - what http.c (a request's life) and http_easy.c (its curl handle) share;
 * private to them */
#ifndef GPUQD_CLUSTER_KUBE_HTTP_HTTP_PARTS_H
#define GPUQD_CLUSTER_KUBE_HTTP_HTTP_PARTS_H

#include <sys/queue.h>

#include "gpuqd/cluster/kube/auth/creds.h"
#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/net/http_multi.h"
#include "libgpuq/buf.h"

struct http_req {
	TAILQ_ENTRY(http_req) link;
	struct http *http;
	struct http_call call;
	CURL *easy; /* NULL = waiting to be sent */
	struct curl_slist *headers, *connect_to;
	struct creds_view *creds;
	int status;
	int64_t retry_us, last_us; /* last_us: when bytes came, monotonic */
	bool opened, cancelled, stopped, silent, resume, again, overflow;
	struct gpuq_buf body, warnings;
	struct loop_timer *silence;
	char why[CURL_ERROR_SIZE];
};

TAILQ_HEAD(req_list, http_req);

struct http {
	struct loop *loop;
	struct kube_config *config;
	struct creds *creds;
	struct http_multi *streams, *requests, *tunnels;
	struct req_list waiting, running;
	size_t n_waiting, n_flight; /* n_flight: requests running, streams not counted */
	struct event *pump;
	bool h2;
	bool held;
	int64_t act_until_us; /* http_act_until(); 0 = for ever */
	bool cancelled; /* a request was active since the last walk through both lists */
};

/* Make r->easy from r->call and r->creds. false: no memory; what was made is r's. */
bool http_make(struct http_req *r);

/* curl's callbacks, set by http_make(). */
size_t http_on_header(char *line, size_t size, size_t n, void *arg);
size_t http_on_body(char *bytes, size_t size, size_t n, void *arg);

#endif
