#include "faults.h"
#include "pods.h"
#include "script.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
	struct rule *next;
	char *text; /* as it was written */
	char *resource, *sub; /* NULL: any; sub "" for none */
	int verb; /* -1: any */
	char *ns, *name; /* globs, or NULL */
	uint64_t nth, every, from, count;
	double prob;
	uint64_t seen, hits;
	struct fault fault;
};

static struct rule *rules, *retired;

enum option_type { OPT_ACT, OPT_FLAG, OPT_UINT, OPT_INT, OPT_DURATION, OPT_TEXT, OPT_OTHER };

static int set_slow(struct rule *r, const char *value);
static int set_truncate(struct rule *r, const char *value);
static int set_after(struct rule *r, const char *value);
static int set_status(struct rule *r, const char *value);
static int set_prob(struct rule *r, const char *value);

/* A row per word of a rule. */
static const struct option {
	const char *word;
	enum option_type type;
	size_t offset;
	enum fault_act act;
	int (*set)(struct rule *r, const char *value);
} options[] = {
	/* clang-format off */
	{ "nth",                OPT_UINT,     offsetof(struct rule, nth), 0, NULL },
	{ "every",              OPT_UINT,     offsetof(struct rule, every), 0, NULL },
	{ "from",               OPT_UINT,     offsetof(struct rule, from), 0, NULL },
	{ "count",              OPT_UINT,     offsetof(struct rule, count), 0, NULL },
	{ "prob",               OPT_OTHER,    0, 0, set_prob },
	{ "ns",                 OPT_TEXT,     offsetof(struct rule, ns), 0, NULL },
	{ "name",               OPT_TEXT,     offsetof(struct rule, name), 0, NULL },
	{ "status",             OPT_OTHER,    0, FAULT_STATUS, set_status },
	{ "retry-after",        OPT_INT,      offsetof(struct rule, fault.retry_after_s), 0, NULL },
	{ "message",            OPT_TEXT,     offsetof(struct rule, fault.message), 0, NULL },
	{ "reason",             OPT_TEXT,     offsetof(struct rule, fault.reason), 0, NULL },
	{ "delay",              OPT_DURATION, offsetof(struct rule, fault.delay_us), 0, NULL },
	{ "delay-after",        OPT_DURATION, offsetof(struct rule, fault.delay_after_us), 0, NULL },
	{ "slow-bytes",         OPT_OTHER,    0, 0, set_slow },
	{ "truncate",           OPT_OTHER,    0, 0, set_truncate },
	{ "after",              OPT_OTHER,    0, 0, set_after },
	{ "reset",              OPT_FLAG,     offsetof(struct rule, fault.reset), 0, NULL },
	{ "no-bookmarks",       OPT_FLAG,     offsetof(struct rule, fault.no_bookmarks), 0, NULL },
	{ "html",               OPT_ACT,      0, FAULT_HTML, NULL },
	{ "garbage",            OPT_ACT,      0, FAULT_GARBAGE, NULL },
	{ "drop-before-commit", OPT_ACT,      0, FAULT_DROP_BEFORE, NULL },
	{ "drop-after-commit",  OPT_ACT,      0, FAULT_DROP_AFTER, NULL },
	{ "hang-before-commit", OPT_ACT,      0, FAULT_HANG_BEFORE, NULL },
	{ "hang-after-commit",  OPT_ACT,      0, FAULT_HANG_AFTER, NULL },
	{ "hang",               OPT_ACT,      0, FAULT_HANG_BEFORE, NULL },
	{ "half-open",          OPT_ACT,      0, FAULT_HALF_OPEN, NULL },
	{ "close",              OPT_ACT,      0, FAULT_CLOSE, NULL },
	{ "gone",               OPT_ACT,      0, FAULT_GONE, NULL },
	/* clang-format on */
};

static const char *const verbs[] = {
	[VERB_GET] = "GET", [VERB_LIST] = "LIST",   [VERB_WATCH] = "WATCH",   [VERB_POST] = "POST",
	[VERB_PUT] = "PUT", [VERB_PATCH] = "PATCH", [VERB_DELETE] = "DELETE",
};

static int set_slow(struct rule *r, const char *value)
{
	char *copy = xstrdup(value), *slash = strchr(copy, '/');
	uint64_t n = 0;
	int rc = -1;

	if (slash) {
		*slash = '\0';
		if (uint_parse(copy, &n) == 0 && n > 0 &&
		    duration_parse(slash + 1, &r->fault.fx.slow_us) == 0 &&
		    r->fault.fx.slow_us > 0) {
			r->fault.fx.slow_bytes = n;
			rc = 0;
		}
	}
	free(copy);
	return rc;
}

static int set_truncate(struct rule *r, const char *value)
{
	uint64_t n;

	if (uint_parse(value, &n) != 0)
		return -1;
	r->fault.fx.truncate = true;
	r->fault.fx.truncate_bytes = n;
	return 0;
}

/* A count of events or, with a unit, a time. */
static int set_after(struct rule *r, const char *value)
{
	if (uint_parse(value, &r->fault.after_events) == 0)
		return 0;
	return duration_parse(value, &r->fault.after_us);
}

static int set_status(struct rule *r, const char *value)
{
	uint64_t n;

	if (uint_parse(value, &n) != 0 || n < 300 || n > 599)
		return -1;
	r->fault.status = (int)n;
	return 0;
}

static int set_prob(struct rule *r, const char *value)
{
	char *end;

	r->prob = strtod(value, &end);
	return *value && *end == '\0' && r->prob > 0 && r->prob <= 1 ? 0 : -1;
}

static int set_option(struct rule *r, const struct option *o, const char *value)
{
	void *to = (char *)r + o->offset;
	uint64_t n;

	switch (o->type) {
	case OPT_ACT:
	case OPT_FLAG:
		if (value)
			return -1;
		if (o->type == OPT_FLAG)
			*(bool *)to = true;
		break;
	case OPT_UINT:
		if (!value || uint_parse(value, to) != 0 || *(uint64_t *)to == 0)
			return -1;
		break;
	case OPT_INT:
		if (!value || uint_parse(value, &n) != 0 || n > 86400)
			return -1;
		*(int *)to = (int)n;
		break;
	case OPT_DURATION:
		if (!value || duration_parse(value, to) != 0)
			return -1;
		break;
	case OPT_TEXT:
		if (!value)
			return -1;
		free(*(char **)to);
		*(char **)to = xstrdup(value);
		break;
	case OPT_OTHER:
		if (!value || o->set(r, value) != 0)
			return -1;
		break;
	}
	return 0;
}

static int read_option(struct rule *r, char *word, struct buf *why)
{
	const size_t len = strcspn(word, "=");
	const char *value = word[len] ? word + len + 1 : NULL;

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const struct option *o = &options[i];

		if (strlen(o->word) != len || memcmp(o->word, word, len) != 0)
			continue;
		if (set_option(r, o, value) != 0) {
			buf_addf(why, "bad value in '%s'", word);
			return -1;
		}
		if (o->act == FAULT_NONE)
			return 0;
		if (r->fault.act != FAULT_NONE) {
			buf_addf(why, "'%s': a rule does one thing; there was another before",
				 word);
			return -1;
		}
		r->fault.act = o->act;
		return 0;
	}
	buf_addf(why, "unknown word '%s' (see fakekube --help)", word);
	return -1;
}

static int read_verb_word(struct rule *r, const char *word)
{
	if (strcmp(word, "ANY") == 0 || strcmp(word, "*") == 0) {
		r->verb = -1;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(verbs[i], word) == 0) {
			r->verb = (int)i;
			return 0;
		}
	}
	return -1;
}

/* "pods", "pods/binding", "*". Returns false when word is no resource. */
static bool read_resource_word(struct rule *r, const char *word)
{
	const size_t n = strcspn(word, "/");
	char *plural = xstrndup(word, n);
	const bool any = strcmp(word, "*") == 0;
	const bool known = any || kind_by_plural(plural);

	if (known && !any) {
		r->resource = plural;
		r->sub = xstrdup(word[n] ? word + n + 1 : "");
		return true;
	}
	free(plural);
	return known;
}

/* Each act has verbs it can happen to. */
static int check_sense(const struct rule *r, struct buf *why)
{
	const struct fault *f = &r->fault;
	const bool stream = r->verb == VERB_WATCH ||
			    (r->sub && (strcmp(r->sub, "log") == 0 || pods_session_kind(r->sub)));

	if (f->act == FAULT_NONE && !f->delay_us && !f->delay_after_us && !f->fx.slow_bytes &&
	    !f->fx.truncate && !f->no_bookmarks) {
		buf_adds(why, "the rule does nothing: name a fault");
		return -1;
	}
	if ((f->act == FAULT_HALF_OPEN || f->act == FAULT_CLOSE) && !stream) {
		buf_adds(why,
			 "half-open and close are for WATCH, and for GET of pods/log, exec, attach "
			 "and portforward");
		return -1;
	}
	if (f->act == FAULT_GONE && r->verb != VERB_WATCH && r->verb != VERB_LIST) {
		buf_adds(why, "gone is for LIST and WATCH");
		return -1;
	}
	if ((f->after_events || f->after_us) && !stream) {
		buf_adds(why, "after= is for WATCH, and for GET of pods/log, exec, attach and "
			      "portforward");
		return -1;
	}
	if (stream &&
	    (f->fx.truncate || f->act == FAULT_DROP_AFTER || f->act == FAULT_HANG_AFTER)) {
		buf_adds(why, "a stream has no end to spoil: use close or half-open");
		return -1;
	}
	return 0;
}

struct rule *rule_parse(char **words, size_t n, const char *text, char **why)
{
	struct rule *r = xcalloc(1, sizeof(*r));
	struct buf b = BUF_INIT;
	size_t i = 1;

	r->text = xstrdup(text);
	r->fault.retry_after_s = -1;
	if (n == 0 || read_verb_word(r, words[0]) != 0) {
		buf_addf(&b, "on: expected GET, LIST, WATCH, POST, PUT, PATCH, DELETE or ANY%s%s",
			 n ? ", found " : "", n ? words[0] : "");
		goto bad;
	}
	if (n > 1 && read_resource_word(r, words[1]))
		i = 2;
	for (; i < n; i++) {
		if (read_option(r, words[i], &b) != 0)
			goto bad;
	}
	if (check_sense(r, &b) != 0)
		goto bad;
	return r;
bad:
	rule_free(r);
	*why = b.s;
	return NULL;
}

void rule_add(struct rule *rule)
{
	struct rule **at = &rules;

	while (*at)
		at = &(*at)->next;
	rule->next = NULL;
	*at = rule;
}

void rule_free(struct rule *r)
{
	free(r->text);
	free(r->resource);
	free(r->sub);
	free(r->ns);
	free(r->name);
	free(r->fault.message);
	free(r->fault.reason);
	free(r);
}

static bool matches(const struct rule *r, const struct call *call)
{
	if (!call->kind) /* discovery and probes: only rules for everything */
		return r->verb == -1 && !r->resource && !r->ns && !r->name;
	if (r->verb != -1 && r->verb != (int)call->verb)
		return false;
	if (r->resource && strcmp(r->resource, call->kind->plural) != 0)
		return false;
	if (r->resource && strcmp(r->sub, call->sub) != 0)
		return false;
	if (r->ns && fnmatch(r->ns, call->ns, 0) != 0)
		return false;
	return !r->name || fnmatch(r->name, call->name, 0) == 0;
}

static bool its_turn(const struct rule *r)
{
	if (r->count && r->hits >= r->count)
		return false;
	if (r->nth && r->seen != r->nth)
		return false;
	if (r->from && r->seen < r->from)
		return false;
	if (r->every && r->seen % r->every != 0)
		return false;
	return r->prob == 0 || (double)(rand_u64() >> 11) / (double)(UINT64_C(1) << 53) < r->prob;
}

const struct fault *rules_match(const struct call *call)
{
	struct rule *hit = NULL;

	for (struct rule *r = rules; r; r = r->next) {
		if (!matches(r, call))
			continue;
		r->seen++;
		if (!hit && its_turn(r))
			hit = r;
	}
	if (!hit)
		return NULL;
	hit->hits++;
	return &hit->fault;
}

/* Requests that wait still use the texts of their rule: keep it aside. */
void rules_clear(void)
{
	struct rule **at = &retired;

	while (*at)
		at = &(*at)->next;
	*at = rules;
	rules = NULL;
}

void rules_done(void)
{
	rules_clear();
	while (retired) {
		struct rule *next = retired->next;

		rule_free(retired);
		retired = next;
	}
}

json_t *rules_json(void)
{
	json_t *list = json_array();

	for (const struct rule *r = rules; r; r = r->next)
		json_array_append_new(list,
				      json_pack("{s:s,s:I,s:I}", "rule", r->text, "seen",
						(json_int_t)r->seen, "hits", (json_int_t)r->hits));
	return list;
}

static const struct {
	int code;
	const char *reason, *message;
} statuses[] = {
	{ 400, "BadRequest", "bad request" },
	{ 401, "Unauthorized", "Unauthorized" },
	{ 403, "Forbidden", "forbidden: User \"system:serviceaccount:gpuq:gpuqd\" cannot do this" },
	{ 404, "NotFound", "the server could not find the requested resource" },
	{ 409, "Conflict", "Operation cannot be fulfilled: the object has been modified" },
	{ 410, "Expired", "The provided resource version is too old." },
	{ 413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728" },
	{ 422, "Invalid", "the object is invalid" },
	{ 500, "InternalError", "Internal error occurred: etcdserver: leader changed" },
	{ 503, "ServiceUnavailable", "apiserver is shutting down" },
	{ 504, "Timeout", "Timeout: request did not complete within requested timeout" },
};

static void status_reply(const struct fault *f, const struct call *call, struct reply *r)
{
	const char *reason = "", *message = "a fault was asked for";

	/* Priority and fairness answers plain text, not a Status. */
	if (f->status == 429 && !f->reason) {
		reply_text(r, 429, "text/plain; charset=utf-8",
			   f->message ? f->message
				      : "Too many requests, please try again later.\n");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		if (statuses[i].code == f->status) {
			reason = statuses[i].reason;
			message = statuses[i].message;
		}
	}
	reply_error(r, f->status, f->reason ? f->reason : reason, call->kind,
		    *call->name ? call->name : NULL, "%s", f->message ? f->message : message);
}

void fault_reply(const struct fault *f, const struct call *call, struct reply *r)
{
	switch (f->act) {
	case FAULT_HTML:
		reply_text(r, 502, "text/html",
			   "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
			   "<center><h1>502 Bad "
			   "Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n"
			   "</body>\r\n</html>\r\n");
		break;
	case FAULT_GARBAGE:
		reply_text(r, 200, "application/json",
			   "{\"kind\":\"PodList\",\"items\":[{\"meta\x01");
		break;
	case FAULT_GONE:
		reply_error(r, 410, "Expired", NULL, NULL,
			    "The provided resource version is too old.");
		break;
	default:
		status_reply(f, call, r);
		break;
	}
	if (f->retry_after_s >= 0)
		snprintf(r->headers, sizeof(r->headers), "Retry-After: %d\r\n", f->retry_after_s);
}
