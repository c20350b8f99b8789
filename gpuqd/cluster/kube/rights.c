#include "gpuqd/cluster/kube/rights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"

#define PATH "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define AT_ONCE 4u

/* A right, as etc/kubernetes/base and optional give it. */
static const struct right {
	const char *feature;
	bool needed; /* of base */
	bool spaced; /* in each namespace of jobs; else in the whole cluster */
	const char *group, *resource, *subresource, *name;
	const char *verbs[5];
} table[] = {
	{ "seeing nodes", true, false, "", "nodes", "", "", { "get", "list", "watch" } },
	{ "seeing pods", true, false, "", "pods", "", "", { "get", "list", "watch" } },
	{ "knowing the cluster again",
	  true,
	  false,
	  "",
	  "namespaces",
	  "",
	  "kube-system",
	  { "get" } },
	{ "running jobs", true, true, "", "pods", "", "", { "create", "delete", "patch" } },
	{ "gpuq logs", true, true, "", "pods", "log", "", { "get" } },
	{ "scripts", true, true, "", "configmaps", "", "", { "get", "create", "delete" } },
	{ "gangs", true, true, "", "services", "", "", { "get", "create", "delete" } },
	{ "start: bind", false, true, "", "pods", "binding", "", { "create" } },
	{ "gpuq exec", false, true, "", "pods", "exec", "", { "create" } },
	{ "gpuq attach", false, true, "", "pods", "attach", "", { "create" } },
	{ "gpuq port-forward", false, true, "", "pods", "portforward", "", { "create" } },
	{ "users by token",
	  false,
	  false,
	  "authentication.k8s.io",
	  "tokenreviews",
	  "",
	  "",
	  { "create" } },
	{ "users by token",
	  false,
	  false,
	  "authorization.k8s.io",
	  "subjectaccessreviews",
	  "",
	  "",
	  { "create" } },
};

struct question {
	struct rights *r;
	const struct right *right;
	struct http_req *req;
	struct cluster_right answer;
	char resource[64], why[160], ns[64];
};

struct rights {
	struct http *http;
	cluster_rights_fn fn;
	void *arg;
	struct question *questions;
	size_t n, n_asked, n_answered;
};

static void ask_more(struct rights *r);

static void finish(struct rights *r)
{
	struct cluster_right *list = calloc(r->n, sizeof(*list));
	const cluster_rights_fn fn = r->fn;
	void *const arg = r->arg;

	for (size_t i = 0; list && i < r->n; i++)
		list[i] = r->questions[i].answer;
	fn(arg, list, list ? r->n : 0);
	free(list);
	rights_free(r);
}

static void answered(void *arg, const struct http_answer *a)
{
	struct question *q = arg;
	struct rights *r = q->r;
	json_t *root = a->complete ? json_loadb(a->body, a->n, 0, NULL) : NULL;
	const json_t *st = json_object_get(root, "status");

	q->req = NULL;
	if (a->status >= 200 && a->status < 300 && json_is_object(st)) {
		q->answer.asked = true;
		q->answer.allowed = json_is_true(json_object_get(st, "allowed"));
		snprintf(q->why, sizeof(q->why), "%s", kube_str(st, "reason"));
	} else if (a->status) {
		snprintf(q->why, sizeof(q->why), "HTTP status %d", a->status);
	} else {
		snprintf(q->why, sizeof(q->why), "%.150s", a->error);
	}
	json_decref(root);
	r->n_answered++;
	if (r->n_answered == r->n)
		finish(r);
	else
		ask_more(r);
}

static char *body_of(const struct question *q)
{
	const struct right *t = q->right;
	json_t *root = json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:s, s:s, s:s, s:s}}}", "apiVersion",
				 "authorization.k8s.io/v1", "kind", "SelfSubjectAccessReview",
				 "spec", "resourceAttributes", "namespace", q->ns, "verb",
				 q->answer.verb, "group", t->group, "resource", t->resource,
				 "subresource", t->subresource, "name", t->name);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

static void ask_more(struct rights *r)
{
	while (r->n_asked < r->n && r->n_asked - r->n_answered < AT_ONCE) {
		struct question *q = &r->questions[r->n_asked++];
		char *body = body_of(q);
		const struct http_call call = { .method = "POST",
						.path = PATH,
						.body = body ? body : "{}",
						.n_body = body ? strlen(body) : 2,
						.first = true,
						.on_end = answered,
						.arg = q };

		q->req = http_start(r->http, &call);
		free(body);
	}
}

static size_t fill(struct rights *r, const char *const *namespaces, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (size_t k = 0; k < (table[i].spaced ? n : 1); k++)
			for (size_t v = 0; table[i].verbs[v]; v++, at++) {
				struct question *q = r->questions ? &r->questions[at] : NULL;

				if (!q)
					continue;
				q->r = r;
				q->right = &table[i];
				snprintf(q->ns, sizeof(q->ns), "%s",
					 table[i].spaced ? namespaces[k] : "");
				snprintf(q->resource, sizeof(q->resource), "%s%s%s",
					 table[i].resource, *table[i].subresource ? "/" : "",
					 table[i].subresource);
				q->answer = (struct cluster_right){
					.feature = table[i].feature,
					.verb = table[i].verbs[v],
					.resource = q->resource,
					.namespace_ = q->ns,
					.why = q->why,
					.needed = table[i].needed,
				};
			}
	return at;
}

int rights_ask(struct http *h, const char *const *namespaces, size_t n, cluster_rights_fn fn,
	       void *arg, struct rights **out, struct gpuq_err *err)
{
	struct rights *r = calloc(1, sizeof(*r));

	if (!r)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	r->http = h;
	r->fn = fn;
	r->arg = arg;
	r->n = fill(r, namespaces, n);
	r->questions = calloc(r->n, sizeof(*r->questions));
	if (!r->questions) {
		free(r);
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	}
	fill(r, namespaces, n);
	*out = r;
	ask_more(r);
	return 0;
}

void rights_free(struct rights *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		http_cancel(r->questions[i].req);
	free(r->questions);
	free(r);
}
