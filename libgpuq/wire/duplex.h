/* duplex.h - a call whose items go both ways: exec, attach, port-forward
 *
 * Owns     what is on its way out of one call; the connection is the caller's, and serves
 *          nothing else while the call is open.
 * Touches  the connection's socket, without ever waiting.
 * Used by  the CLI's sessions.
 *
 * The caller polls gpuq_duplex_fd() for POLLIN (and POLLOUT while gpuq_duplex_unsent()) and
 * calls gpuq_duplex_turn() when something is ready, and once a second. Neither side is
 * given more than it has requested: gpuq_duplex_put() needs credit of the server's, and the
 * server needs gpuq_duplex_grant() after its first GPUQ_STREAM_CREDIT items.
 */
#ifndef LIBGPUQ_WIRE_DUPLEX_H
#define LIBGPUQ_WIRE_DUPLEX_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/client.h"

struct gpuq_duplex {
	struct gpuq *g; /* NULL = not open */
	uint32_t id, credit; /* credit: items that may be put */
	uint64_t seq;
};

/* Begin the call. Returns 0 or why the request did not leave. */
int gpuq_duplex_open(struct gpuq *g, const char *method, const struct gpuq_val *params,
		     struct gpuq_duplex *out, struct gpuq_err *err);
void gpuq_duplex_close(struct gpuq_duplex *d); /* forgets it; the connection is used up */

int gpuq_duplex_fd(const struct gpuq_duplex *d);
bool gpuq_duplex_unsent(const struct gpuq_duplex *d);

/* Queue one item. Needs d->credit > 0. Returns 0 or GPUQ_ENOMEM. */
int gpuq_duplex_put(struct gpuq_duplex *d, const struct gpuq_val *item);
void gpuq_duplex_grant(struct gpuq_duplex *d, uint32_t n);

/* Send what leaves and hand on what has come. 0: go on. 1: the call has ended, *code is 0
 * with *reply in a, or the server's error. Negative: the connection is lost. */
int gpuq_duplex_turn(struct gpuq_duplex *d, gpuq_item_fn fn, void *arg, struct gpuq_arena *a,
		     struct gpuq_val **reply, int *code, struct gpuq_err *err);

#endif
