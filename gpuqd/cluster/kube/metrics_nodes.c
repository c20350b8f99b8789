#include "gpuqd/cluster/kube/metrics_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "libgpuq/grow.h"
#include "libgpuq/limits.h"

#define AT_ONCE 8u
#define ANSWER_MAX_US INT64_C(10000000)

/* A node that is asked in this round. */
struct page {
	struct metrics_nodes *n;
	char *node;
	struct http_req *req; /* NULL = it was not asked, or has answered */
	struct metrics_text text;
	size_t n_bytes;
};

struct metrics_nodes {
	struct loop *loop;
	struct http *http;
	const struct watch *watch;
	metrics_amount_fn amount;
	void (*done)(void *arg, const char *why);
	void *arg;
	char **names; /* of nodes with pods of ours, ascending */
	size_t n_names, names_room;
	struct page *pages;
	size_t n_pages, n_asked, n_answered;
	char *last; /* the last one asked in the previous round; NULL = none */
	char why[256];
};

static void drop_names(struct metrics_nodes *n)
{
	for (size_t i = 0; i < n->n_names; i++)
		free(n->names[i]);
	n->n_names = 0;
}

static void drop_pages(struct metrics_nodes *n)
{
	for (size_t i = 0; i < n->n_pages; i++) {
		if (n->pages[i].req) {
			http_cancel(n->pages[i].req);
			metrics_text_done(&n->pages[i].text);
		}
		free(n->pages[i].node);
	}
	free(n->pages);
	n->pages = NULL;
	n->n_pages = n->n_asked = n->n_answered = 0;
}

static void on_pod(void *arg, const struct known_thing *t)
{
	struct metrics_nodes *n = arg;
	char *name;

	if (!*t->token || !*t->node || t->phase != POD_RUNNING ||
	    !grow_to(&n->names, &n->names_room, n->n_names + 1))
		return;
	name = strdup(t->node);
	if (name)
		n->names[n->n_names++] = name;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sort the names, each once. */
static void sort_names(struct metrics_nodes *n)
{
	size_t k = 0;

	if (n->n_names)
		qsort(n->names, n->n_names, sizeof(*n->names), by_name);
	for (size_t i = 0; i < n->n_names; i++) {
		if (k && strcmp(n->names[k - 1], n->names[i]) == 0)
			free(n->names[i]);
		else
			n->names[k++] = n->names[i];
	}
	n->n_names = k;
}

/* Make the pages of this round: the names behind the last one, then from the beginning. */
static void choose(struct metrics_nodes *n)
{
	const size_t most = n->n_names < METRICS_NODES_A_ROUND ? n->n_names : METRICS_NODES_A_ROUND;
	size_t from = 0;

	n->pages = calloc(most + 1, sizeof(*n->pages));
	if (!n->pages)
		return;
	while (n->last && from < n->n_names && strcmp(n->names[from], n->last) <= 0)
		from++;
	for (size_t i = 0; i < most; i++) {
		struct page *p = &n->pages[i];

		p->n = n;
		p->node = strdup(n->names[(from + i) % n->n_names]);
		if (!p->node)
			break;
		n->n_pages++;
	}
	free(n->last);
	n->last = n->n_pages ? strdup(n->pages[n->n_pages - 1].node) : NULL;
}

static void ask_more(struct metrics_nodes *n);

static enum http_want on_data(void *arg, const char *bytes, size_t len)
{
	struct page *p = arg;

	p->n_bytes += len;
	if (p->n_bytes > GPUQ_METRICS_BYTES_MAX)
		return HTTP_STOP;
	metrics_text_feed(&p->text, bytes, len);
	return HTTP_MORE;
}

static void on_end(void *arg, const struct http_answer *a)
{
	struct page *p = arg;
	struct metrics_nodes *n = p->n;

	p->req = NULL;
	metrics_text_done(&p->text);
	if (p->n_bytes > GPUQ_METRICS_BYTES_MAX)
		snprintf(n->why, sizeof(n->why), "kubelet of %.63s: the page is larger than %u MiB",
			 p->node, GPUQ_METRICS_BYTES_MAX >> 20);
	else if (a->status == 403)
		snprintf(n->why, sizeof(n->why),
			 "kubelet_metrics: gpuqd lacks the right get nodes/proxy");
	else if (a->status < 200 || a->status >= 300 || !a->complete)
		snprintf(n->why, sizeof(n->why), "kubelet of %.63s: status %d%s%.90s", p->node,
			 a->status, *a->error ? ", " : "", a->error);
	n->n_answered++;
	ask_more(n);
}

static void ask(struct metrics_nodes *n, struct page *p)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET",
				  .limit_us = ANSWER_MAX_US,
				  .on_data = on_data,
				  .on_end = on_end,
				  .arg = p };

	metrics_text_init(&p->text, loop_wall_us(n->loop), NULL, n->arg);
	p->text.amount = n->amount;
	gpuq_buf_adds(&path, "/api/v1/nodes/");
	url_escape(&path, p->node);
	gpuq_buf_adds(&path, "/proxy/metrics/resource");
	call.path = gpuq_buf_str(&path);
	p->req = http_start(n->http, &call);
	gpuq_buf_done(&path);
}

static void ask_more(struct metrics_nodes *n)
{
	if (n->n_answered == n->n_pages) {
		drop_pages(n);
		n->done(n->arg, n->why);
		return;
	}
	while (n->n_asked < n->n_pages && n->n_asked - n->n_answered < AT_ONCE)
		ask(n, &n->pages[n->n_asked++]);
}

void metrics_nodes_ask(struct metrics_nodes *n)
{
	n->why[0] = '\0';
	drop_names(n);
	watch_each_pod(n->watch, on_pod, n);
	sort_names(n);
	choose(n);
	ask_more(n);
}

int metrics_nodes_new(struct loop *l, struct http *http, const struct watch *watch,
		      metrics_amount_fn amount, void (*done)(void *arg, const char *why), void *arg,
		      struct metrics_nodes **out, struct gpuq_err *err)
{
	struct metrics_nodes *n = calloc(1, sizeof(*n));

	if (!n)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	*n = (struct metrics_nodes){
		.loop = l, .http = http, .watch = watch, .amount = amount, .done = done, .arg = arg
	};
	*out = n;
	return 0;
}

void metrics_nodes_free(struct metrics_nodes *n)
{
	if (!n)
		return;
	drop_pages(n);
	drop_names(n);
	free(n->names);
	free(n->last);
	free(n);
}
