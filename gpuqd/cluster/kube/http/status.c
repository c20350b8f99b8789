#include "gpuqd/cluster/kube/http/status.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"

/* The fault behind a refusal, by words of its message. An operator's slip (a missing object, a right
 * that was removed, a webhook that is down) is never the job's: the row names the object, whose
 * name follows the words, up to a quote, a blank or a colon. Rows without a kind hold as they
 * are. */
static const struct row {
	const char *words;
	enum status_kind kind;
	const char *object; /* its kind */
	enum refusal_scope scope;
} rows[] = {
	{ "exceeded quota", STATUS_QUOTA, NULL, 0 },
	{ "status unknown for quota", STATUS_QUOTA, NULL, 0 }, /* not counted up yet */
	{ "failed quota: ", STATUS_CLUSTER, "resourcequota/", REFUSED_JOB }, /* wants limits */
	{ "no PriorityClass with name ", STATUS_CLUSTER, "priorityclass/", REFUSED_QUEUE },
	{ "error looking up service account ", STATUS_CLUSTER, "serviceaccount/", REFUSED_QUEUE },
	{ "violates PodSecurity \"", STATUS_CLUSTER, "namespace/", REFUSED_JOB },
	{ "RuntimeClass \"", STATUS_CLUSTER, "runtimeclass/", REFUSED_JOB },
	{ "usage per Container is", STATUS_CLUSTER, "limitrange/", REFUSED_JOB },
	{ "usage per Pod is", STATUS_CLUSTER, "limitrange/", REFUSED_JOB },
	{ "limit to request ratio per", STATUS_CLUSTER, "limitrange/", REFUSED_JOB },
	{ "because it is being terminated", STATUS_CLUSTER, "namespace/", REFUSED_NAMESPACE },
	{ "failed calling webhook \"", STATUS_CLUSTER, "webhook/", REFUSED_NAMESPACE },
	{ "admission webhook \"", STATUS_CLUSTER, "webhook/", REFUSED_JOB },
	{ "ValidatingAdmissionPolicy '", STATUS_CLUSTER, "validatingadmissionpolicy/",
	  REFUSED_JOB },
	{ "cannot create resource \"", STATUS_CLUSTER, "right/create ", REFUSED_NAMESPACE },
};

static const struct row *row_of(const char *message)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strstr(message, rows[i].words))
			return &rows[i];
	return NULL;
}

/* Take the name that follows the words; "default/runner" is "runner". Without one, that of the
 * namespace is put in later. */
static void name_object(struct status *out, const struct row *row, const char *message)
{
	const char *name = strstr(message, row->words) + strlen(row->words), *slash;
	size_t n = strcspn(name, "\"' :");
	const bool has_name = *row->words && strchr("\"' ", row->words[strlen(row->words) - 1]);

	if (strstr(row->words, "PodSecurity")) {
		snprintf(out->level, sizeof(out->level), "%.*s", (int)n, name);
		n = 0;
	} else if (!has_name) {
		n = 0;
	}
	slash = n ? memchr(name, '/', n) : NULL;
	if (slash && !strstr(row->words, "webhook")) {
		n -= (size_t)(slash + 1 - name);
		name = slash + 1;
	}
	snprintf(out->object, sizeof(out->object), "%s%.*s", row->object, (int)n, name);
	out->scope = row->scope;
}

static bool version_too_large(const json_t *st)
{
	size_t i;
	json_t *c;

	json_array_foreach(kube_path(st, "details", "causes"), i,
			   c) if (strcmp(kube_str(c, "reason"), "ResourceVersionTooLarge") ==
				  0) return true;
	return strstr(kube_str(st, "message"), "Too large resource version") != NULL;
}

static enum status_kind kind_of(int code, const json_t *st)
{
	const char *reason = kube_str(st, "reason"), *message = kube_str(st, "message");

	switch (code) {
	case 404:
		return STATUS_GONE;
	case 409:
		return strcmp(reason, "AlreadyExists") == 0 ? STATUS_EXISTS : STATUS_CONFLICT;
	case 410:
		return STATUS_EXPIRED;
	case 403:
		return STATUS_FORBIDDEN;
	case 400:
	case 405:
	case 406:
	case 413:
	case 415:
	case 422:
		return STATUS_REFUSED;
	case 401:
	case 429:
	case 503:
		return STATUS_LATER;
	case 504:
		return version_too_large(st) ? STATUS_EXPIRED : STATUS_UNKNOWN;
	default:
		if (code >= 500)
			return strstr(message, "request is too large") ? STATUS_REFUSED
								       : STATUS_UNKNOWN;
		return STATUS_REFUSED;
	}
}

/* One line: anything may stand in a body. */
static void say(struct status *out, int code, const char *words, size_t n)
{
	size_t at = (size_t)snprintf(out->text, sizeof(out->text), "%d: ", code);

	for (size_t i = 0; i < n && at < sizeof(out->text) - 1; i++) {
		unsigned char c = (unsigned char)words[i];

		out->text[at++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
	}
	out->text[at] = '\0';
}

static void say_causes(struct status *out, const json_t *st)
{
	size_t i, at = strlen(out->text);
	json_t *c;

	json_array_foreach(kube_path(st, "details", "causes"), i, c)
	{
		const char *field = kube_str(c, "field"), *why = kube_str(c, "message");

		/* The message of a 422 holds them already. */
		if (!*why || strstr(out->text, why) || at >= sizeof(out->text) - 1)
			continue;
		at += (size_t)snprintf(out->text + at, sizeof(out->text) - at, "; %s%s%s", field,
				       *field ? ": " : "", why);
	}
}

/* The answers that a message tells more of than its code. A webhook may answer any code. */
static void look_closer(int code, const char *message, struct status *out)
{
	const struct row *row = row_of(message);

	if (code == 404 && strncmp(message, "namespaces ", 11) == 0) {
		/* The namespace, not the object, is what is missing. */
		out->kind = STATUS_CLUSTER;
		out->scope = REFUSED_NAMESPACE;
		snprintf(out->object, sizeof(out->object), "namespace/");
	} else if (row && (code == 403 || code == 400 || code == 422 || code >= 500)) {
		out->kind = row->kind;
		if (row->kind == STATUS_CLUSTER)
			name_object(out, row, message);
	}
}

void status_read(const struct http_answer *a, struct status *out)
{
	json_t *st = NULL;
	const char *message;

	memset(out, 0, sizeof(*out));
	if (a->status == 0) {
		out->kind = a->sent ? STATUS_UNKNOWN : STATUS_LATER;
		snprintf(out->text, sizeof(out->text), "no answer: %s", a->error);
		return;
	}
	if (a->status < 300) {
		out->kind = a->complete ? STATUS_DONE : STATUS_UNKNOWN;
		snprintf(out->text, sizeof(out->text), "%s", a->error);
		return;
	}
	if (a->n)
		st = json_loadb(a->body, a->n, JSON_ALLOW_NUL, NULL);
	message = kube_str(st, "message");
	out->kind = kind_of(a->status, st);
	look_closer(a->status, message, out);
	if (*message)
		say(out, a->status, message, strlen(message));
	else
		say(out, a->status, a->n ? a->body : a->error, a->n ? a->n : strlen(a->error));
	say_causes(out, st);
	if (a->status == 401) { /* its own word says nothing */
		const size_t n = strlen(out->text);

		snprintf(out->text + n, sizeof(out->text) - n,
			 "; the credentials of gpuqd have expired, or are not known there");
	}
	json_decref(st);
}
