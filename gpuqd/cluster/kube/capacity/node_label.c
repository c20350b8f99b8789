#include "gpuqd/cluster/kube/capacity/node_label.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/http/http_node.h"
#include "gpuqd/cluster/kube/http/status.h"

#define FIRST_US INT64_C(200000)
#define MOST_US INT64_C(30000000)
#define FORBIDDEN_MAX 3 /* tries: it may pass */

struct node_label {
	struct node_label *next, **list;
	struct loop *loop;
	struct http *http;
	char *node;
	json_t *patch;
	cluster_labels_fn fn;
	void *arg;
	struct http_req *req;
	struct loop_timer *timer;
	struct backoff back;
};

static void free_one(struct node_label *s)
{
	struct node_label **at = s->list;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	http_cancel(s->req);
	loop_cancel(s->timer);
	free(s->node);
	json_decref(s->patch);
	free(s);
}

static void send(struct node_label *s);

static void on_timer(void *arg)
{
	struct node_label *s = arg;

	s->timer = NULL;
	send(s);
}

static void answered(void *arg, const struct http_answer *answer)
{
	struct node_label *s = arg;
	const cluster_labels_fn fn = s->fn;
	void *const fn_arg = s->arg;
	struct status st;
	int64_t wait;
	bool over;

	s->req = NULL;
	status_read(answer, &st);
	over = st.kind == STATUS_DONE || st.kind == STATUS_GONE || st.kind == STATUS_REFUSED ||
	       (st.kind == STATUS_FORBIDDEN && s->back.fails + 1 >= FORBIDDEN_MAX);
	if (!over) {
		wait = backoff_next_us(&s->back, FIRST_US, MOST_US);
		s->timer = loop_after(s->loop, wait > answer->retry_us ? wait : answer->retry_us,
				      on_timer, s);
		return;
	}
	fn(fn_arg, s->node,
	   st.kind == STATUS_DONE        ? NULL
	   : st.kind == STATUS_FORBIDDEN ? "gpuqd may not label it, see "
					   "etc/kubernetes/optional/mig.yaml"
					 : st.text);
	free_one(s);
}

static void send(struct node_label *s)
{
	s->req = http_node_patch(s->http, s->node, json_incref(s->patch), answered, s);
}

void node_label_set(struct loop *l, struct http *h, struct node_label **list,
		    const struct node_labels *labels, cluster_labels_fn fn, void *arg)
{
	struct node_label *s = calloc(1, sizeof(*s));
	json_t *map = json_object();

	if (!s || !map)
		abort(); /* as loop_after() */
	for (size_t i = 0; i < labels->n; i++)
		json_object_set_new(map, labels->keys[i],
				    labels->values[i] ? json_string(labels->values[i])
						      : json_null());
	*s = (struct node_label){ .next = *list, .list = list, .loop = l, .http = h, .fn = fn };
	s->arg = arg;
	s->node = strdup(labels->node);
	s->patch = json_pack("{s:{s:o}}", "metadata", "labels", map);
	if (!s->node || !s->patch)
		abort();
	*list = s;
	send(s);
}

void node_label_free_all(struct node_label **list)
{
	while (*list)
		free_one(*list);
}
