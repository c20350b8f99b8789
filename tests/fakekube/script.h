/* script.h - lines that tell the server what to do and when
 *
 * Owns     the grammar of scripts: rules (`on ...`, see rules.c), commands that
 *          act at once, and commands that wait for a time or a count.
 */
#ifndef FAKEKUBE_SCRIPT_H
#define FAKEKUBE_SCRIPT_H

#include <event2/event.h>
#include <jansson.h>
#include "http.h"

void script_init(struct event_base *base);
void script_done(void);

/* Read all lines of text; when all can be read, do them in order. keep: the
 * request that must survive `down`, or NULL. Returns one result per line that
 * did something (the caller drops it), or NULL and *why with "FILE:LINE: ...",
 * which the caller frees; then nothing was done. */
json_t *script_run(const char *file, const char *text, const struct http_req *keep, char **why);
/* Read only. Returns 0 or -1 as above. */
int script_check(const char *file, const char *text, char **why);

json_t *script_json(void); /* commands that wait */
const char *script_help(void);

#endif
