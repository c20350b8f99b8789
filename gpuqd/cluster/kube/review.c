#include "gpuqd/cluster/kube/review.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/watch/decode.h"

#define PATH "/apis/authentication.k8s.io/v1/tokenreviews"
#define LIMIT_US (3 * INT64_C(1000000)) /* hello has 5 s, and a refusal waits a second */
#define RIGHTS "etc/kubernetes/optional/identity.yaml gives it"

struct cluster_review {
	struct http_req *req;
	cluster_review_fn fn;
	void *arg;
	char audience[];
};

static bool has(const json_t *list, const char *word)
{
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i,
			   v) if (json_is_string(v) &&
				  strcmp(json_string_value(v), word) == 0) return true;
	return false;
}

static void tell(struct cluster_review *r, const struct http_answer *a)
{
	json_t *root = a->complete ? json_loadb(a->body, a->n, 0, NULL) : NULL;
	const json_t *st = json_object_get(root, "status");
	const char *user = kube_str(json_object_get(st, "user"), "username");
	struct status status;

	if (a->status < 200 || a->status >= 300 || !json_is_object(st)) {
		status_read(a, &status);
		r->fn(r->arg, REVIEW_UNKNOWN, "",
		      a->status == 403 ? "gpuqd has no right to ask whose a token is: " RIGHTS
				       : status.text);
	} else if (json_is_true(json_object_get(st, "authenticated")) && *user &&
		   has(json_object_get(st, "audiences"), r->audience)) {
		/* A server that knows no audiences names none: its word is not taken. */
		r->fn(r->arg, REVIEW_IS, user, "");
	} else {
		r->fn(r->arg, REVIEW_IS_NOT, "", kube_str(st, "error"));
	}
	json_decref(root);
}

static void on_end(void *arg, const struct http_answer *a)
{
	struct cluster_review *r = arg;

	tell(r, a);
	free(r);
}

struct cluster_review *review_start(struct http *h, const char *token, const char *audience,
				    cluster_review_fn fn, void *arg)
{
	struct cluster_review *r = calloc(1, sizeof(*r) + strlen(audience) + 1);
	json_t *root =
		json_pack("{s:s, s:s, s:{s:s, s:[s]}}", "apiVersion", "authentication.k8s.io/v1",
			  "kind", "TokenReview", "spec", "token", token, "audiences", audience);
	char *body = root ? json_dumps(root, JSON_COMPACT) : NULL;
	struct http_call call = { .method = "POST", .path = PATH, .limit_us = LIMIT_US };

	if (r && body) {
		call.body = body;
		call.n_body = strlen(body);
		call.on_end = on_end;
		call.arg = r;
		r->fn = fn;
		r->arg = arg;
		memcpy(r->audience, audience, strlen(audience) + 1);
		r->req = http_start(h, &call);
	} else {
		free(r);
		r = NULL;
	}
	if (body)
		explicit_bzero(body, strlen(body));
	free(body);
	json_decref(root);
	return r;
}

void review_cancel(struct cluster_review *r)
{
	if (r)
		http_cancel(r->req);
	free(r);
}
