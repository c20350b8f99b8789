#include "list.h"
#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOTS 8
#define SNAPSHOT_US (300 * SECOND_US) /* etcd is compacted every five minutes */
#define ANY_RV UINT64_MAX /* in a token: go on from the key, whatever is there now */

struct snapshot {
	struct kind *kind;
	uint64_t rv;
	int64_t made_us, used_us;
	struct version **v;
	size_t n;
};

static struct snapshot snapshots[SNAPSHOTS];

static int by_key(const void *a, const void *b)
{
	const struct facts *x = (*(struct version *const *)a)->facts;
	const struct facts *y = (*(struct version *const *)b)->facts;
	const int ns = strcmp(x->ns, y->ns);

	return ns ? ns : strcmp(x->name, y->name);
}

struct version **list_sorted(struct kind *kind, size_t *n)
{
	struct version **v = xmalloc(store_count(kind) * sizeof(*v));
	struct obj *o, *tmp;

	*n = 0;
	HASH_ITER(hh, kind->objs, o, tmp)
		v[(*n)++] = o->v;
	qsort(v, *n, sizeof(*v), by_key);
	return v;
}

static void snapshot_drop(struct snapshot *s)
{
	for (size_t i = 0; i < s->n; i++)
		version_unref(s->v[i]);
	free(s->v);
	*s = (struct snapshot){ 0 };
}

void list_forget(void)
{
	for (size_t i = 0; i < SNAPSHOTS; i++)
		snapshot_drop(&snapshots[i]);
}

static struct snapshot *snapshot_find(const struct kind *kind, uint64_t rv)
{
	for (size_t i = 0; i < SNAPSHOTS; i++) {
		struct snapshot *s = &snapshots[i];

		if (s->kind == kind && s->rv == rv && mono_us() - s->made_us < SNAPSHOT_US)
			return s;
	}
	return NULL;
}

static struct snapshot *snapshot_make(struct kind *kind)
{
	struct snapshot *s = snapshot_find(kind, store_rv()), *oldest = &snapshots[0];

	if (s)
		return s;
	for (size_t i = 1; i < SNAPSHOTS; i++) {
		if (snapshots[i].used_us < oldest->used_us)
			oldest = &snapshots[i];
	}
	snapshot_drop(oldest);
	oldest->kind = kind;
	oldest->rv = store_rv();
	oldest->made_us = mono_us();
	oldest->v = list_sorted(kind, &oldest->n);
	for (size_t i = 0; i < oldest->n; i++)
		version_ref(oldest->v[i]);
	return oldest;
}

struct token {
	uint64_t rv;
	char ns[256], name[256]; /* the last object of the page before */
};

static char *token_make(uint64_t rv, const struct version *last)
{
	json_t *j = json_pack("{s:s,s:I,s:s,s:s}", "v", "meta.k8s.io/v1", "rv",
			      rv == ANY_RV ? (json_int_t)-1 : (json_int_t)rv, "ns", last->facts->ns,
			      "name", last->facts->name);
	char *text = json_dumps(j, JSON_COMPACT);
	char *token = base64_encode(text, strlen(text));

	free(text);
	json_decref(j);
	return token;
}

static int token_read(const char *s, struct token *t)
{
	size_t len;
	char *text = base64_decode(s, &len);
	json_t *j = text ? json_loadb(text, len, 0, NULL) : NULL;
	const char *ns, *name;
	json_int_t rv;
	int rc = -1;

	if (j && json_unpack(j, "{s:I,s:s,s:s}", "rv", &rv, "ns", &ns, "name", &name) == 0 &&
	    strlen(ns) < sizeof(t->ns) && strlen(name) < sizeof(t->name)) {
		t->rv = rv < 0 ? ANY_RV : (uint64_t)rv;
		strcpy(t->ns, ns);
		strcpy(t->name, name);
		rc = 0;
	}
	json_decref(j);
	free(text);
	return rc;
}

/* The first object behind the token's. */
static size_t token_start(const struct token *t, struct version *const *v, size_t n)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		const int ns = strcmp(v[mid]->facts->ns, t->ns);

		if (ns < 0 || (ns == 0 && strcmp(v[mid]->facts->name, t->name) <= 0))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void reply_expired(const struct token *t, struct reply *r)
{
	struct facts like = { .ns = t->ns, .name = t->name };
	const struct version last = { .facts = &like };
	char *token = token_make(ANY_RV, &last);

	reply_text(r, 410, "application/json", "");
	buf_addf(
		&r->body,
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":\"%s\"},"
		"\"status\":\"Failure\",\"message\":\"The provided continue parameter is too old "
		"to "
		"display a consistent list result. You can start a new list without the continue "
		"parameter, or use the continue token in this response to retrieve the remainder "
		"of "
		"the results. Continuing with the provided token results in an inconsistent list - "
		"objects that were created, modified, or deleted between the time the first chunk "
		"was returned and now may show up in the list.\",\"reason\":\"Expired\","
		"\"code\":410}\n",
		token);
	free(token);
}

static json_t *match_cause(void)
{
	return json_pack("[{s:s,s:s,s:s}]", "reason", "FieldValueForbidden", "message",
			 "Forbidden: resourceVersionMatch is forbidden here", "field",
			 "resourceVersionMatch");
}

/* Check the resourceVersion parameters. Returns 1 to wait, -1 when answered. */
static int check_rv(const struct call *call, bool waited, struct reply *r)
{
	const char *text = http_param(call->req, "resourceVersion");
	const char *match = http_param(call->req, "resourceVersionMatch");
	const char *token = http_param(call->req, "continue");
	uint64_t rv = 0;
	json_t *causes;

	if (http_param(call->req, "sendInitialEvents"))
		match = "sendInitialEvents";
	if (match && *match &&
	    (!text || !*text || (token && *token) ||
	     (strcmp(match, "Exact") != 0 && strcmp(match, "NotOlderThan") != 0) ||
	     (strcmp(match, "Exact") == 0 && strcmp(text, "0") == 0))) {
		reply_causes(r, 422, "Invalid", NULL, NULL, match_cause(),
			     "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: "
			     "Forbidden: resourceVersionMatch is forbidden here");
		return -1;
	}
	if (!text || !*text)
		return 0;
	if (uint_parse(text, &rv) != 0) {
		reply_error(r, 400, "BadRequest", NULL, NULL,
			    "invalid resource version \"%s\": strconv.ParseUint: parsing \"%s\": "
			    "invalid syntax",
			    text, text);
		return -1;
	}
	if (token && *token && rv) {
		reply_error(r, 400, "BadRequest", NULL, NULL,
			    "specifying resource version is not allowed when using continue");
		return -1;
	}
	if (rv > store_rv() && !waited)
		return 1;
	if (rv > store_rv()) {
		causes = json_pack("[{s:s,s:s}]", "reason", "ResourceVersionTooLarge", "message",
				   "Too large resource version");
		reply_causes(r, 504, "Timeout", NULL, NULL, causes,
			     "Timeout: Too large resource version: %llu, current: %llu",
			     (unsigned long long)rv, (unsigned long long)store_rv());
		snprintf(r->headers, sizeof(r->headers), "Retry-After: 1\r\n");
		return -1;
	}
	if (match && strcmp(match, "Exact") == 0 && rv != store_rv() &&
	    !snapshot_find(call->kind, rv)) {
		reply_error(r, 410, "Expired", NULL, NULL,
			    "The resourceVersion for the provided list is too old.");
		return -1;
	}
	return 0;
}

static void list_body(const struct call *call, const struct snapshot *s, size_t from, uint64_t rv,
		      const struct selector *sel, uint64_t limit, struct buf *b)
{
	const struct version *last = NULL;
	struct buf items = BUF_INIT;
	uint64_t n = 0;
	size_t i;

	for (i = from; i < s->n; i++) {
		const struct version *v = s->v[i];

		if (*call->ns && strcmp(v->facts->ns, call->ns) != 0)
			continue;
		if (!selector_match(sel, v))
			continue;
		if (limit && n == limit)
			break;
		buf_add(&items, v->s, v->len + 1);
		last = v;
		n++;
	}
	buf_addf(b,
		 "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%"
		 "llu\"",
		 call->kind->name, call->kind->api_version, (unsigned long long)rv);
	if (i < s->n && last) {
		char *token = token_make(s->rv, last);

		buf_addf(b, ",\"continue\":\"%s\"", token);
		if (!sel) {
			size_t rest = 0;

			for (; i < s->n; i++)
				rest += !*call->ns || strcmp(s->v[i]->facts->ns, call->ns) == 0;
			buf_addf(b, ",\"remainingItemCount\":%zu", rest);
		}
		free(token);
	}
	buf_adds(b, "},\"items\":[");
	if (items.len)
		buf_add(b, items.s, items.len - 1); /* not the last comma */
	buf_adds(b, "]}\n");
	buf_done(&items);
}

bool list_get(const struct call *call, bool waited, struct reply *r)
{
	const char *limit_text = http_param(call->req, "limit");
	const char *continue_text = http_param(call->req, "continue");
	const char *rv_text = http_param(call->req, "resourceVersion");
	struct selector *sel = NULL;
	struct snapshot *s = NULL;
	struct token t = { 0 };
	uint64_t limit = 0, rv = 0;
	char *why = NULL;
	int rc;

	rc = check_rv(call, waited, r);
	if (rc)
		return rc > 0;
	if (limit_text && uint_parse(limit_text, &limit) != 0) {
		reply_error(r, 400, "BadRequest", NULL, NULL, "invalid limit \"%s\"", limit_text);
		return false;
	}
	if (rv_text && strcmp(rv_text, "0") == 0)
		limit = 0; /* served from the watch cache, which has no pages */
	if (selector_parse(call->kind, http_param(call->req, "labelSelector"),
			   http_param(call->req, "fieldSelector"), &sel, &why) != 0) {
		reply_error(r, 400, "BadRequest", NULL, NULL, "%s", why);
		free(why);
		return false;
	}
	if (continue_text && *continue_text) {
		if (token_read(continue_text, &t) != 0) {
			reply_error(r, 400, "BadRequest", NULL, NULL, "continue key is not valid");
			goto out;
		}
		s = t.rv == ANY_RV ? snapshot_make(call->kind) : snapshot_find(call->kind, t.rv);
		if (!s) {
			reply_expired(&t, r);
			goto out;
		}
	} else if (rv_text && uint_parse(rv_text, &rv) == 0 &&
		   http_param(call->req, "resourceVersionMatch") &&
		   strcmp(http_param(call->req, "resourceVersionMatch"), "Exact") == 0) {
		s = rv == store_rv() ? snapshot_make(call->kind) : snapshot_find(call->kind, rv);
	} else {
		s = snapshot_make(call->kind);
	}
	s->used_us = mono_us();
	reply_text(r, 200, "application/json", "");
	list_body(call, s, *t.name ? token_start(&t, s->v, s->n) : 0, s->rv, sel, limit, &r->body);
out:
	selector_free(sel);
	return false;
}
