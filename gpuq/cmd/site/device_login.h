/* device_login.h - a token by a login in a browser, which the server runs (auth.begin, auth.finish)
 *
 * Owns     nothing. Touches the server, standard error.
 * Used by  cmd_login.c.
 */
#ifndef GPUQ_DEVICE_LOGIN_H
#define GPUQ_DEVICE_LOGIN_H

#include "libgpuq/arena.h"
#include "libgpuq/client.h"
#include "libgpuq/err.h"

/* Show where to confirm the login and wait for it. issuer NULL = the server's only one. Returns 1 and *token; 0: the
 * server has no such logins, and none was named; or the error that ended it. An interrupt ends the program: nothing
 * is left of the login but what the server forgets by itself. */
int device_login(struct gpuq_arena *a, const struct gpuq_connect_opts *server, const char *issuer,
		 const char **token, struct gpuq_err *err);

#endif
