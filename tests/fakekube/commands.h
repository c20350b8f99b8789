/* commands.h - the commands of scripts
 *
 * Owns     a table: a row is a command, with its words, its help and its deed.
 */
#ifndef FAKEKUBE_COMMANDS_H
#define FAKEKUBE_COMMANDS_H

#include <jansson.h>
#include <event2/event.h>
#include "http.h"

#define COMMAND_ARGS 4
#define COMMAND_OPTIONS 6

/* The words of one command, checked against its row. */
struct args {
	const char *arg[COMMAND_ARGS];
	size_t n;
	const char *option[COMMAND_OPTIONS]; /* in the row's order; NULL: not given */
	const struct http_req *keep;
};

struct command {
	const char *name;
	size_t min, max; /* arguments */
	const char *options[COMMAND_OPTIONS]; /* "to:u": name and type u(int) d(uration) t(ext) */
	/* Return the error in the arguments, or NULL. May be NULL itself. */
	const char *(*check)(const struct args *a);
	/* Do it. Returns a JSON object to show, or NULL and fills why. */
	json_t *(*run)(const struct args *a, struct buf *why);
};

extern const struct command commands[];
extern const size_t n_commands;

void commands_init(struct event_base *base);
void commands_done(void);

#endif
