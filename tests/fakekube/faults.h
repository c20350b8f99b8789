/* faults.h - rules that spoil requests
 *
 * Owns     the list of rules `on VERB RESOURCE ...` and their counters.
 */
#ifndef FAKEKUBE_FAULTS_H
#define FAKEKUBE_FAULTS_H

#include "api.h"

enum fault_act {
	FAULT_NONE,
	FAULT_STATUS, /* answer with a status code; nothing is written */
	FAULT_HTML, /* a proxy's error page */
	FAULT_GARBAGE, /* 200 and something that is not JSON */
	FAULT_DROP_BEFORE, /* close; nothing is written */
	FAULT_DROP_AFTER, /* do it, then close without an answer */
	FAULT_HANG_BEFORE, /* never answer; nothing is written */
	FAULT_HANG_AFTER, /* do it, never answer */
	FAULT_HALF_OPEN, /* streams: go silent, keep the connection */
	FAULT_CLOSE, /* streams: close in the middle */
	FAULT_GONE, /* lists: 410; watches: an ERROR event 410 */
};

struct fault {
	enum fault_act act;
	int status, retry_after_s; /* retry_after_s -1: no header */
	char *message, *reason; /* NULL: what goes with the status */
	int64_t delay_us, delay_after_us;
	struct http_fx fx;
	bool reset; /* close with RST instead of FIN */
	bool no_bookmarks;
	uint64_t after_events; /* streams: act after so many events ... */
	int64_t after_us; /* ... or so much time; 0 and 0: at once */
};

struct rule; /* see rules.c */

/* Read `on ...` without the `on` (words, n of them) into a new rule. Returns
 * NULL and sets *why (freed by the caller) when it is not one. */
struct rule *rule_parse(char **words, size_t n, const char *text, char **why);
void rule_add(struct rule *rule); /* takes over */
void rule_free(struct rule *rule);

/* The fault for this request: the first rule whose turn it is. NULL if none.
 * Valid until rules_clear(). */
const struct fault *rules_match(const struct call *call);
void rules_clear(void);
void rules_done(void);
json_t *rules_json(void);

/* The answer of FAULT_STATUS, FAULT_HTML, FAULT_GARBAGE and FAULT_GONE. */
void fault_reply(const struct fault *f, const struct call *call, struct reply *r);

#endif
