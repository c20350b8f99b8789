/* servers.h - what `gpuq login` keeps of servers: pins, certificates, tokens
 *
 * Owns     the file $XDG_CONFIG_HOME/gpuq/servers.yaml (~/.config), mode 0600.
 * Touches  that file; the environment for its place, and for tokens.
 * Used by  server.c, cmd_login.c.
 */
#ifndef GPUQ_SERVERS_H
#define GPUQ_SERVERS_H

#include <stdbool.h>

#include "libgpuq/arena.h"
#include "libgpuq/client.h"
#include "libgpuq/err.h"

/* One of them. A member is NULL where nothing is kept. */
struct servers_entry {
	const char *address; /* without ?pin= */
	const char *pin, *ca, *cert, *key, *token;
};

/* What is kept of this address; all NULL when nothing is. GPUQ_EINVAL: the file is not of its form, or
 * readable by others. */
int servers_find(struct gpuq_arena *a, const char *address, struct servers_entry *out,
		 struct gpuq_err *err);
/* Keep e in place of what was kept of its address, and remember it as the last one. */
int servers_put(struct gpuq_arena *a, const struct servers_entry *e, struct gpuq_err *err);
/* Forget the address: 1, or 0 when nothing was kept. */
int servers_forget(struct gpuq_arena *a, const char *address, struct gpuq_err *err);
/* The server that was logged in to last: 1 and *address, 0 = none. */
int servers_last(struct gpuq_arena *a, const char **address, struct gpuq_err *err);

/* The token from --token-file (NULL = not given), $GPUQ_TOKEN_FILE, $GPUQ_TOKEN or
 * /var/run/secrets/gpuq/token: 1 and *token, 0 = none of them is there. */
int servers_token(struct gpuq_arena *a, const char *file, const char **token, struct gpuq_err *err);

/* From the command line; they hold for every server of this call. NULL = not given. */
struct servers_given {
	const char *ca, *token_file;
};
extern struct servers_given servers_given;

/* Fill o for o->addr from what was given, and what is kept. */
int servers_opts(struct gpuq_arena *a, struct gpuq_connect_opts *o, struct gpuq_err *err);
/* The module of tls:// beside a program that was not installed, else NULL. */
const char *servers_module(struct gpuq_arena *a);

#endif
