#include "gpuqd/cluster/kube/http/http_node.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/http/url.h"

static struct http_req *start(struct http *h, const char *node, const char *query,
			      struct http_call *call)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_req *req;

	gpuq_buf_adds(&path, "/api/v1/nodes/");
	url_escape(&path, node);
	gpuq_buf_adds(&path, query);
	call->path = gpuq_buf_str(&path);
	call->metadata = true;
	req = http_start(h, call);
	gpuq_buf_done(&path);
	return req;
}

struct http_req *http_node_read(struct http *h, const char *node, http_node_fn fn, void *arg)
{
	struct http_call call = { .method = "GET", .on_end = fn, .arg = arg };

	return start(h, node, "", &call);
}

struct http_req *http_node_patch(struct http *h, const char *node, json_t *patch, http_node_fn fn,
				 void *arg)
{
	char *text = patch ? json_dumps(patch, JSON_COMPACT) : NULL;
	struct http_call call = { .method = "PATCH",
				  .content_type = "application/merge-patch+json",
				  .body = text,
				  .on_end = fn,
				  .arg = arg };
	struct http_req *req;

	if (!text)
		abort(); /* as loop_after() */
	call.n_body = strlen(text);
	req = start(h, node, "?fieldManager=gpuqd", &call);
	json_decref(patch);
	free(text);
	return req;
}
