/* inside.h - a whole gpuqd without sockets, for fuzz targets: real store, model, scheduler and
 * methods, on a cluster of two nodes that it plays itself
 *
 * Owns     a directory of its own in memory (/dev/shm) or /tmp, removed by inside_done().
 * Used by  fuzz_rpc.c.
 *
 * A site with three queues and eight jobs of two users is there at the beginning: running,
 * pending, held, in an array, and ended.
 */
#ifndef TESTS_FUZZ_INSIDE_H
#define TESTS_FUZZ_INSIDE_H

#include "gpuqd/rpc/conn.h"

#define INSIDE_JOBS 8 /* their numbers are 1 to this */

struct inside;

/* Abort where it cannot be made. */
struct inside *inside_new(void);
void inside_done(struct inside *in);

/* A connection of ann (0, a user), bob (1, a manager of queue lab) or root (2, an operator). */
struct rpc_conn *inside_connect(struct inside *in, unsigned who, bool says_hello);
const struct rpc_method *inside_methods(const struct inside *in);

/* Let the loop turn until all that was changed is durable and nothing is left to do at once;
 * bounded in time. */
void inside_settle(struct inside *in);

/* Abort when what the model says of itself does not add up, or when a model loaded from the
 * disk says something else. */
void inside_check(struct inside *in);

#endif
