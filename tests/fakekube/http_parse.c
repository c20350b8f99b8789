#include "http_parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int hex_digit(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch = (char)(ch | 0x20);
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* In place. '+' is a space in a query only. Returns false on a bad escape. */
static bool url_decode(char *s, bool query)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '+' && query) {
			*to++ = ' ';
		} else if (*s == '%') {
			const int hi = hex_digit(s[1]);
			const int lo = hi < 0 ? -1 : hex_digit(s[2]);

			if (lo < 0 || hi * 16 + lo == 0)
				return false;
			*to++ = (char)(hi * 16 + lo);
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
	return true;
}

static int parse_query(struct http_req *req, char *q)
{
	char *save = NULL;

	for (char *p = strtok_r(q, "&", &save); p; p = strtok_r(NULL, "&", &save)) {
		char *eq = strchr(p, '=');
		struct http_param *to = &req->params[req->n_params];

		if (req->n_params == HTTP_PARAMS_MAX)
			return 400;
		if (eq)
			*eq++ = '\0';
		to->key = p;
		to->value = eq ? eq : p + strlen(p);
		if (!url_decode(to->key, true) || !url_decode(to->value, true))
			return 400;
		req->n_params++;
	}
	return 0;
}

static int parse_header(char *line, struct http_req *req, struct http_framing *f)
{
	char *value = strchr(line, ':'), *end;
	const struct {
		const char *name;
		const char **to;
	} kept[] = {
		{ "content-type", &req->content_type },
		{ "accept", &req->accept },
		{ "authorization", &req->authorization },
		{ "upgrade", &req->upgrade },
		{ "sec-websocket-key", &req->ws_key },
		{ "sec-websocket-protocol", &req->ws_protocol },
	};

	if (!value || value == line || value[-1] == ' ')
		return 400;
	*value++ = '\0';
	value += strspn(value, " \t");
	for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
		*--end = '\0';
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		if (strcasecmp(line, kept[i].name) == 0)
			*kept[i].to = value;
	}
	if (strcasecmp(line, "content-length") == 0 && uint_parse(value, &f->length) != 0)
		return 400;
	if (strcasecmp(line, "transfer-encoding") == 0) {
		if (strcasecmp(value, "chunked") != 0)
			return 501;
		f->chunked = true;
	}
	if (strcasecmp(line, "connection") == 0) {
		if (strcasecmp(value, "close") == 0)
			f->keep_alive = false;
		else if (strcasecmp(value, "keep-alive") == 0)
			f->keep_alive = true;
	}
	if (strcasecmp(line, "expect") == 0 && strcasecmp(value, "100-continue") == 0)
		f->expect_continue = true;
	return 0;
}

int http_parse_head(const char *head, size_t n, struct http_req *req, struct http_framing *f)
{
	char *p, *target, *version, *query, *end;
	int rc;

	*f = (struct http_framing){ 0 };
	if (memchr(head, '\0', n))
		return 400;
	req->head = xstrndup(head, n);
	req->content_type = req->accept = req->authorization = "";
	req->upgrade = req->ws_key = req->ws_protocol = "";

	p = req->head;
	end = strpbrk(p, "\r\n");
	if (!end)
		return 400;
	*end++ = '\0';
	target = strchr(p, ' ');
	version = target ? strchr(target + 1, ' ') : NULL;
	if (!version || target[1] != '/' || strncmp(version + 1, "HTTP/1.", 7) != 0)
		return 400;
	*target++ = '\0';
	*version++ = '\0';
	req->method = p;
	req->path = target;
	f->keep_alive = strcmp(version, "HTTP/1.0") != 0;
	query = strchr(target, '?');
	if (query) {
		*query++ = '\0';
		rc = parse_query(req, query);
		if (rc)
			return rc;
	}
	if (!url_decode(req->path, false))
		return 400;
	for (p = end; *p; p = end) {
		p += strspn(p, "\r\n");
		if (!*p)
			break;
		end = p + strcspn(p, "\r\n");
		if (*end)
			*end++ = '\0';
		rc = parse_header(p, req, f);
		if (rc)
			return rc;
	}
	return 0;
}

long http_parse_chunked(const char *p, size_t n, size_t max, struct buf *out)
{
	size_t at = 0;

	out->len = 0;
	for (;;) {
		const char *eol = memmem(p + at, n - at, "\r\n", 2);
		uint64_t size = 0;
		size_t digits = 0;

		if (!eol)
			return n - at > 256 ? -1 : 0;
		for (; p + at < eol && hex_digit(p[at]) >= 0; at++, digits++)
			size = size * 16 + (uint64_t)hex_digit(p[at]);
		if (digits == 0 || digits > 8)
			return -1;
		at = (size_t)(eol - p) + 2;
		if (size == 0) { /* no trailers are taken */
			if (n - at < 2)
				return 0;
			return memcmp(p + at, "\r\n", 2) == 0 ? (long)at + 2 : -1;
		}
		if (out->len + size > max)
			return -2;
		if (n - at < size + 2)
			return 0;
		buf_add(out, p + at, size);
		at += size;
		if (memcmp(p + at, "\r\n", 2) != 0)
			return -1;
		at += 2;
	}
}

void http_req_free(struct http_req *req)
{
	if (!req)
		return;
	free(req->head);
	free(req->body);
	free(req);
}

const char *http_param(const struct http_req *req, const char *key)
{
	for (size_t i = 0; i < req->n_params; i++) {
		if (strcmp(req->params[i].key, key) == 0)
			return req->params[i].value;
	}
	return NULL;
}

bool http_param_true(const struct http_req *req, const char *key)
{
	const char *v = http_param(req, key);

	return v && (strcmp(v, "true") == 0 || strcmp(v, "1") == 0 || strcmp(v, "True") == 0);
}

const char *http_reason(int code)
{
	static const struct {
		int code;
		const char *text;
	} t[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 413, "Request Entity Too Large" },
		{ 415, "Unsupported Media Type" },
		{ 422, "Unprocessable Entity" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		if (t[i].code == code)
			return t[i].text;
	}
	return "Unknown";
}
