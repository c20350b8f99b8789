#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_status(struct buf *b, int code, const char *reason, const struct kind *kind,
		       const char *name, const char *causes, int retry_s, const char *message)
{
	buf_addf(b, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
		    "\"status\":\"Failure\",\"message\":");
	buf_add_json(b, message, strlen(message));
	if (*reason)
		buf_addf(b, ",\"reason\":\"%s\"", reason);
	if (name || kind || causes || retry_s) {
		const char *sep = "";

		buf_adds(b, ",\"details\":{");
		if (name) {
			buf_adds(b, "\"name\":");
			buf_add_json(b, name, strlen(name));
			sep = ",";
		}
		if (kind && *kind->group) {
			buf_addf(b, "%s\"group\":\"%s\"", sep, kind->group);
			sep = ",";
		}
		if (kind) {
			buf_addf(b, "%s\"kind\":\"%s\"", sep, kind->plural);
			sep = ",";
		}
		if (causes) {
			buf_addf(b, "%s\"causes\":%s", sep, causes);
			sep = ",";
		}
		if (retry_s)
			buf_addf(b, "%s\"retryAfterSeconds\":%d", sep, retry_s);
		buf_adds(b, "}");
	}
	buf_addf(b, ",\"code\":%d}", code);
}

void status_text(struct buf *b, int code, const char *reason, const char *message)
{
	add_status(b, code, reason, NULL, NULL, NULL, 0, message);
}

__attribute__((format(printf, 7, 0))) static void
reply_status(struct reply *r, int code, const char *reason, const struct kind *kind,
	     const char *name, json_t *causes, const char *fmt, va_list ap)
{
	char *text = causes ? json_dumps(causes, JSON_COMPACT) : NULL;
	char message[2048];

	vsnprintf(message, sizeof(message), fmt, ap);
	r->code = code;
	r->type = "application/json";
	r->body.len = 0;
	add_status(&r->body, code, reason, kind, name, text, 0, message);
	buf_adds(&r->body, "\n");
	free(text);
	json_decref(causes);
}

void reply_error(struct reply *r, int code, const char *reason, const struct kind *kind,
		 const char *name, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	reply_status(r, code, reason, kind, name, NULL, fmt, ap);
	va_end(ap);
}

void reply_causes(struct reply *r, int code, const char *reason, const struct kind *kind,
		  const char *name, json_t *causes, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	reply_status(r, code, reason, kind, name, causes, fmt, ap);
	va_end(ap);
}

void reply_not_found(struct reply *r, const struct kind *kind, const char *name)
{
	reply_error(r, 404, "NotFound", kind, name, "%s%s%s \"%s\" not found", kind->plural,
		    *kind->group ? "." : "", kind->group, name);
}

void reply_success(struct reply *r, int code)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
		 "\"status\":\"Success\",\"code\":%d}\n",
		 code);
	reply_text(r, code, "application/json", text);
}

void reply_object(struct reply *r, int code, const struct version *v)
{
	r->code = code;
	r->type = "application/json";
	r->body.len = 0;
	version_text(v, &r->body);
	buf_adds(&r->body, "\n");
}

void reply_text(struct reply *r, int code, const char *type, const char *text)
{
	r->code = code;
	r->type = type;
	r->body.len = 0;
	buf_adds(&r->body, text);
}
