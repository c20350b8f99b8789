#include "gpuqd/cluster/kube/capacity/node_keep.h"

#include <stdlib.h>
#include <string.h>
#define uthash_fatal(msg) abort() /* as loop_after(): the caller waits for an end */
#include <uthash.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/http/http_node.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define FIRST_US INT64_C(200000)
#define MOST_US INT64_C(30000000)
#define OURS "gpuq.io/keeps"

static const char *const marks[] = { "cluster-autoscaler.kubernetes.io/scale-down-disabled",
				     KUBE_A_DISRUPT };
#define N_MARKS (sizeof(marks) / sizeof(marks[0]))

struct item {
	UT_hash_handle hh; /* by node */
	struct node_keeps *in;
	char *node;
	bool on, changed; /* changed: since the node was read */
	struct http_req *req;
	struct loop_timer *timer;
	struct backoff back;
};

struct node_keeps {
	struct loop *loop;
	struct http *http;
	struct item *items;
	bool told; /* that it is not allowed */
};

static void look(struct item *it);

static void item_free(struct item *it)
{
	HASH_DEL(it->in->items, it);
	http_cancel(it->req);
	loop_cancel(it->timer);
	free(it->node);
	free(it);
}

static void on_timer(void *arg)
{
	struct item *it = arg;

	it->timer = NULL;
	look(it);
}

static void failed(struct item *it, const struct http_answer *a)
{
	struct status st;
	int64_t wait;

	status_read(a, &st);
	if (st.kind == STATUS_GONE) {
		item_free(it);
		return;
	}
	if (st.kind == STATUS_FORBIDDEN && !it->in->told) {
		it->in->told = true;
		log_warn("kube.node_keep_off",
			 "node=%s error=%s: autoscalers are not told of nodes that are to stay "
			 "(see gpuq doctor)",
			 LOGS(it->node), LOGS(st.text));
	}
	wait = backoff_next_us(&it->back, FIRST_US, MOST_US);
	if (st.kind == STATUS_FORBIDDEN)
		wait = MOST_US;
	it->timer = loop_after(it->in->loop, wait > a->retry_us ? wait : a->retry_us, on_timer, it);
}

static void on_written(void *arg, const struct http_answer *a)
{
	struct item *it = arg;

	it->req = NULL;
	if (a->status < 200 || a->status >= 300)
		failed(it, a);
	else if (it->changed)
		look(it);
	else
		item_free(it);
}

/* Return the annotations to be changed, with the version that they were read in; NULL = none. */
static json_t *change_of(const struct item *it, const json_t *meta)
{
	const json_t *has = json_object_get(meta, "annotations");
	const bool ours = *kube_str(has, OURS) != '\0';
	json_t *notes;

	if (ours == it->on)
		return NULL;
	for (size_t i = 0; i < N_MARKS && it->on; i++)
		if (json_object_get(has, marks[i]))
			return NULL; /* others have marked it: they decide */
	notes = json_object();
	json_object_set_new(notes, OURS, it->on ? json_string("true") : json_null());
	for (size_t i = 0; i < N_MARKS; i++)
		json_object_set_new(notes, marks[i], it->on ? json_string("true") : json_null());
	return json_pack("{s:{s:s, s:o}}", "metadata", "resourceVersion",
			 kube_str(meta, "resourceVersion"), "annotations", notes);
}

static void on_read(void *arg, const struct http_answer *a)
{
	struct item *it = arg;
	json_t *node = a->complete ? json_loadb(a->body, a->n, 0, NULL) : NULL;
	const json_t *meta = json_object_get(node, "metadata");
	json_t *change;

	it->req = NULL;
	if (a->status < 200 || a->status >= 300 || !meta) {
		failed(it, a);
	} else {
		it->changed = false;
		change = change_of(it, meta);
		(void)FAILPOINT("kube.node_keep");
		if (change)
			it->req = http_node_patch(it->in->http, it->node, change, on_written, it);
		else
			item_free(it);
	}
	json_decref(node);
}

static void look(struct item *it)
{
	it->req = http_node_read(it->in->http, it->node, on_read, it);
}

void node_keep(struct node_keeps *k, const char *node, bool on)
{
	struct item *it;

	HASH_FIND(hh, k->items, node, strlen(node), it);
	if (it) {
		it->changed |= it->on != on;
		it->on = on;
		return;
	}
	it = calloc(1, sizeof(*it));
	if (!it || !(it->node = strdup(node)))
		abort();
	it->in = k;
	it->on = on;
	HASH_ADD_KEYPTR(hh, k->items, it->node, strlen(it->node), it);
	look(it);
}

int node_keeps_new(struct loop *l, struct http *h, struct node_keeps **out, struct gpuq_err *err)
{
	struct node_keeps *k = calloc(1, sizeof(*k));

	if (!k)
		return gpuq_no_memory(err);
	k->loop = l;
	k->http = h;
	*out = k;
	return 0;
}

void node_keeps_free(struct node_keeps *k)
{
	struct item *it, *next;

	if (!k)
		return;
	HASH_ITER(hh, k->items, it, next)
		item_free(it);
	free(k);
}
