/* server.h - where the server is
 *
 * Owns     the order of places: --server, $GPUQ_SERVER, the user's configuration, the
 *          system's, the server that was logged in to last, then the sockets where a daemon listens that was told nothing:
 *          one's own, the system's.
 * Touches  the environment, configuration files, the socket (through client.h).
 * Used by  cli.c.
 */
#ifndef GPUQ_SERVER_H
#define GPUQ_SERVER_H

#include <stddef.h>

#include "libgpuq/arena.h"
#include "libgpuq/client.h"
#include "libgpuq/err.h"

#define SERVER_PLACES_MAX 8

/* The source of the address, and the addresses to try in order. */
struct server_places {
	const char *source; /* "--server", "$GPUQ_SERVER", a file's name, "default" */
	const char *addr[SERVER_PLACES_MAX];
	size_t n;
};

/* Find the addresses; a value may list some, separated by commas. option is --server's value or NULL. A name that was given
 * stands alone; only without any are both default sockets tried. An absolute path is
 * taken as unix:PATH. Returns 0, GPUQ_EINVAL for a configuration that cannot be read
 * (file:line:col) or an empty address, GPUQ_ENOMEM. */
int server_find(struct gpuq_arena *a, const char *option, struct server_places *out,
		struct gpuq_err *err);

/* Connect to the first of them that answers. Returns as gpuq_connect_stop; GPUQ_EUNREACH
 * says what was tried and how to start a server. */
int server_connect(struct gpuq_arena *a, const struct server_places *places, int stop_fd,
		   struct gpuq **out, struct gpuq_err *err);

#endif
