#include "gpuqd/cluster/kube/pods/refused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct refused {
	UT_hash_handle hh;
	struct asks *asks;
	struct http_req *req; /* NULL = it is not being asked */
	char *key, *namespace_, *path, *body, *pod_policy, *words;
	char object[288];
	enum refusal_scope scope;
};

static char *copy(const char *s)
{
	char *out = strdup(s ? s : "");

	if (!out)
		abort(); /* as loop_after() */
	return out;
}

static int rank_of(const char *level)
{
	static const char *const levels[] = { "privileged", "baseline", "restricted" };

	for (int i = 0; i < 3; i++)
		if (strcmp(level, levels[i]) == 0)
			return i;
	return 1; /* baseline, where a queue says nothing */
}

bool refused_by_policy(const struct status *st, const char *pod_policy)
{
	size_t n = strcspn(st->level, ":");
	char level[sizeof(st->level)];

	if (!*st->level)
		return false;
	snprintf(level, sizeof(level), "%.*s", (int)n, st->level);
	return rank_of(level) <= rank_of(pod_policy ? pod_policy : "");
}

static void empty(struct refused *r)
{
	free(r->path);
	free(r->body);
	free(r->pod_policy);
	free(r->words);
}

static void drop(struct refused *r)
{
	HASH_DEL(r->asks->refused, r);
	http_cancel(r->req);
	empty(r);
	free(r->key);
	free(r->namespace_);
	free(r);
}

static struct refused *find(struct asks *a, const char *key)
{
	struct refused *r;

	HASH_FIND_STR(a->refused, key, r);
	return r;
}

/* Print "serviceaccount/runner". An object without a name is called as its namespace is. */
static void print_object(const struct status *st, const char *namespace_, char *out, size_t room)
{
	const char *object = *st->object ? st->object : "namespace/";

	snprintf(out, room, "%s%s", object, object[strlen(object) - 1] == '/' ? namespace_ : "");
}

static char *key_of(const struct status *st, const char *namespace_)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	char object[288];
	char *key;

	print_object(st, namespace_, object, sizeof(object));
	gpuq_buf_printf(&b, "%d %s %s", (int)(*st->object ? st->scope : REFUSED_JOB), namespace_,
			object);
	key = copy(gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return key;
}

void refused_note(struct asks *a, const struct post_call *call, const char *collection,
		  const struct status *st, struct refusal *out)
{
	char *key = key_of(st, call->namespace_);
	struct refused *r = find(a, key);
	struct gpuq_buf path = GPUQ_BUF_INIT;

	if (!r) {
		r = calloc(1, sizeof(*r));
		if (!r)
			abort();
		r->asks = a;
		r->key = key;
		r->namespace_ = copy(call->namespace_);
		HASH_ADD_KEYPTR(hh, a->refused, r->key, strlen(r->key), r);
	} else {
		free(key);
		http_cancel(r->req); /* of the older request */
		r->req = NULL;
		empty(r);
	}
	gpuq_buf_printf(&path, "%s&dryRun=All", collection);
	r->path = copy(gpuq_buf_str(&path));
	gpuq_buf_done(&path);
	r->body = copy(call->body);
	r->pod_policy = copy(call->pod_policy);
	r->words = copy(st->text);
	r->scope = *st->object ? st->scope : REFUSED_JOB;
	print_object(st, r->namespace_, r->object, sizeof(r->object));
	*out = (struct refusal){ r->key, r->scope, r->namespace_, r->object, r->words };
}

/* No reply, or none that tells: it is not known to be repaired. */
static bool is_taken(const struct refused *r, const struct http_answer *a)
{
	struct status st;
	char *key;
	bool same;

	status_read(a, &st);
	switch (st.kind) {
	case STATUS_LATER:
	case STATUS_UNKNOWN:
		return false;
	case STATUS_CLUSTER:
	case STATUS_FORBIDDEN:
		key = key_of(&st, r->namespace_);
		same = strcmp(key, r->key) == 0 && !refused_by_policy(&st, r->pod_policy);
		free(key);
		return !same;
	default:
		return true;
	}
}

static void answered(void *arg, const struct http_answer *a)
{
	struct refused *r = arg;
	const struct cluster_sink *sink = r->asks->sink;
	const bool taken = is_taken(r, a);
	char *key = copy(r->key); /* r may be forgotten by whoever hears of it */

	r->req = NULL;
	asks_paused(r->asks, a);
	if (sink->probed)
		sink->probed(sink->arg, key, taken);
	free(key);
}

bool refused_probe(struct asks *a, const char *key)
{
	struct refused *r = find(a, key);
	struct http_call call = { .method = "POST", .on_end = answered, .arg = r };

	if (!r)
		return false;
	if (r->req)
		return true;
	call.path = r->path;
	call.body = r->body;
	call.n_body = strlen(r->body);
	r->req = http_start(a->http, &call);
	return true;
}

void refused_forget(struct asks *a, const char *key)
{
	struct refused *r = find(a, key);

	if (r)
		drop(r);
}

void refused_free_all(struct asks *a)
{
	struct refused *r, *next;

	HASH_ITER(hh, a->refused, r, next)
		drop(r);
}
