#include "gpuqd/cluster/kube/http/status.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/cluster/kube/watch/decode.h"

/* Words in the message of a 403 that make it permanent. Any other may be transient: a server
 * that has lost its etcd reports Forbidden, too. */
static const struct {
	const char *words;
	enum status_kind kind;
} forbidden[] = {
	{ "exceeded quota", STATUS_QUOTA },
	{ "status unknown for quota", STATUS_QUOTA }, /* not counted up yet */
	{ "failed quota", STATUS_REFUSED }, /* must specify limits */
	{ "no PriorityClass with name", STATUS_REFUSED },
	{ "error looking up service account", STATUS_REFUSED },
	{ "violates PodSecurity", STATUS_REFUSED },
	{ "usage per Container is", STATUS_REFUSED }, /* LimitRange */
	{ "usage per Pod is", STATUS_REFUSED },
	{ "limit to request ratio per", STATUS_REFUSED },
	{ "because it is being terminated", STATUS_REFUSED },
};

static enum status_kind forbidden_kind(const char *message)
{
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		if (strstr(message, forbidden[i].words))
			return forbidden[i].kind;
	return STATUS_FORBIDDEN;
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
		/* The namespace, not the object, is what is missing. */
		if (strncmp(message, "namespaces ", 11) == 0)
			return STATUS_REFUSED;
		return STATUS_GONE;
	case 409:
		return strcmp(reason, "AlreadyExists") == 0 ? STATUS_EXISTS : STATUS_CONFLICT;
	case 410:
		return STATUS_EXPIRED;
	case 403:
		return forbidden_kind(message);
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
	if (*message)
		say(out, a->status, message, strlen(message));
	else
		say(out, a->status, a->n ? a->body : a->error, a->n ? a->n : strlen(a->error));
	say_causes(out, st);
	json_decref(st);
}
