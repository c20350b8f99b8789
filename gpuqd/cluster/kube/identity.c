#include "gpuqd/cluster/kube/identity.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/http/backoff.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define PATH "/api/v1/namespaces/kube-system"
#define FIRST_US INT64_C(500000)
#define MAX_US INT64_C(10000000)

struct identity {
	struct loop *loop;
	struct http *http;
	struct http_req *req;
	struct loop_timer *again;
	struct backoff back;
	bool told;
	identity_fn fn, silent;
	void *arg;
};

static void ask(struct identity *i);

static void on_again(void *arg)
{
	struct identity *i = arg;

	i->again = NULL;
	ask(i);
}

static void answered(void *arg, const struct http_answer *a)
{
	struct identity *i = arg;
	struct status st;
	int64_t wait;

	i->req = NULL;
	if (a->complete && a->status == 200) {
		json_t *o = json_loadb(a->body, a->n, 0, NULL);
		const char *uid = kube_str(json_object_get(o, "metadata"), "uid");

		i->fn(i->arg, uid);
		json_decref(o);
		return;
	}
	if (a->complete && (a->status == 403 || a->status == 404)) {
		log_notice("kube.identity",
			   "status=%d: the identity of the cluster is not checked; "
			   "the role gpuqd-observe lets gpuqd see the namespace kube-system",
			   a->status);
		i->fn(i->arg, "");
		return;
	}
	if (!i->told)
		log_warn("kube.no_answer", "status=%d error=%s", a->status, LOGS(a->error));
	i->told = true;
	status_read(a, &st);
	i->silent(i->arg, st.text);
	wait = backoff_next_us(&i->back, FIRST_US, MAX_US);
	i->again = loop_after(i->loop, a->retry_us > wait ? a->retry_us : wait, on_again, i);
}

static void ask(struct identity *i)
{
	const struct http_call call = { .method = "GET",
					.path = PATH,
					.metadata = true,
					.first = true,
					.on_end = answered,
					.arg = i };

	i->req = http_start(i->http, &call);
}

struct identity *identity_ask(struct loop *l, struct http *h, identity_fn fn, identity_fn silent,
			      void *arg)
{
	struct identity *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->loop = l;
	i->http = h;
	i->fn = fn;
	i->silent = silent;
	i->arg = arg;
	ask(i);
	return i;
}

void identity_free(struct identity *i)
{
	if (!i)
		return;
	http_cancel(i->req);
	loop_cancel(i->again);
	free(i);
}
