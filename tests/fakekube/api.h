/* api.h - one request to the Kubernetes API, and its answer
 *
 * Owns     the path's meaning, the verbs, and the shape of errors.
 */
#ifndef FAKEKUBE_API_H
#define FAKEKUBE_API_H

#include <stdbool.h>
#include <jansson.h>

#include "http.h"
#include "store.h"

enum verb { VERB_GET, VERB_LIST, VERB_WATCH, VERB_POST, VERB_PUT, VERB_PATCH, VERB_DELETE };

/* A request, taken apart. Pointers live as long as req. */
struct call {
	struct http_req *req;
	enum verb verb;
	struct kind *kind; /* NULL: discovery and probes */
	char ns[256], name[256], sub[32];
};

/* An answer being made. */
struct reply {
	int code; /* 0: none yet */
	const char *type;
	char headers[128]; /* whole lines */
	struct buf body;
};

/* token: a bearer token to ask for, or NULL. */
void api_init(struct event_base *base, const char *token);
void api_done(void);
void api_set_token(const char *token);
void api_on_request(struct http_req *req);

/* A Status object of failure. kind and name may be NULL. */
void reply_error(struct reply *r, int code, const char *reason, const struct kind *kind,
		 const char *name, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* The same with causes: a JSON array, whose reference is taken. */
void reply_causes(struct reply *r, int code, const char *reason, const struct kind *kind,
		  const char *name, json_t *causes, const char *fmt, ...)
	__attribute__((format(printf, 7, 8)));
void reply_not_found(struct reply *r, const struct kind *kind, const char *name);
void reply_success(struct reply *r, int code);
void reply_object(struct reply *r, int code, const struct version *v);
void reply_text(struct reply *r, int code, const char *type, const char *text);
/* The text of a Status object, for an ERROR event. */
void status_text(struct buf *b, int code, const char *reason, const char *message);

#endif
