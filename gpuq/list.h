/* list.h - the commands that print a list: call, print, and with --watch again
 *
 * Touches  the server, standard output.
 * Used by  cmd_queue.c, cmd_nodes.c, cmd_queues.c.
 */
#ifndef GPUQ_LIST_H
#define GPUQ_LIST_H

#include "gpuq/cli.h"
#include "gpuq/out.h"

/* Which objects of the stream are shown; NULL: all. */
typedef bool (*list_keep_fn)(const struct cli *c, const struct gpuq_val *obj);

/* Print what method streams. shown: columns instead of def's usual, or NULL. fill
 * (may be NULL) puts the parameters together once there is a connection.
 * Returns the exit code. */
int list_run(struct cli *c, const char *method, const struct out_def *def, const char *shown,
	     int (*fill)(struct cli *c, struct gpuq_val *params, struct gpuq_err *err),
	     list_keep_fn keep);

/* The same, and after these objects those that `more` adds to the list; its error ends it. */
int list_run_more(struct cli *c, const char *method, const struct out_def *def, const char *shown,
		  int (*fill)(struct cli *c, struct gpuq_val *params, struct gpuq_err *err),
		  list_keep_fn keep,
		  int (*more)(struct cli *c, struct out *out, struct gpuq_err *err));

/* Take method's objects into out, once; the caller prints with out_flush. Returns 0 or
 * an error code. */
int list_once(struct cli *c, const char *method, const struct gpuq_val *params, struct out *out,
	      list_keep_fn keep, struct gpuq_err *err);

/* Seconds between two repaints as microseconds, 0 without --watch; negative after a
 * message for a wrong value. */
int64_t watch_us(const struct cli *c);

/* Clear the terminal, or put an empty line between two lists in a pipe; then a line
 * that says what is shown and when. */
void watch_head(const struct cli *c, bool first);

/* Wait for the next turn; false when a signal ends the watching. */
bool watch_pause(int64_t us);

/* once() again and again as --watch says, until it fails or a signal comes; without
 * --watch it is called once. Returns the exit code. */
int watch_run(struct cli *c, int (*once)(struct cli *c));

/* Put the arguments and the words of option id (separated by commas) into params as
 * `names`, so that the server refuses a name that is none. */
void list_names(struct cli *c, enum opt_id id, struct gpuq_val *params);

/* Put the words of option id (separated by commas) into params under key; nothing when
 * there are none. */
void list_put(struct cli *c, enum opt_id id, struct gpuq_val *params, const char *key);

/* Put the users that --users and --me name into params as `users`. Needs a connection. */
void list_users(struct cli *c, struct gpuq_val *params);

/* A word of a comma separated list (NULL: everything matches). */
bool list_has(const char *words, const char *word);

#endif
