/* aside.h - work that would hold the loop up, done beside it
 *
 * Owns     one thread for each piece of work under way.
 * Touches  threads, an eventfd, the loop.
 * Used by  rpc/methods (questions that run the scheduler, backups).
 *
 * The work sees memory that is its own: a snapshot, a path. Its outcome is told in the
 * loop, where the model may be looked at again.
 */
#ifndef GPUQD_BASE_ASIDE_H
#define GPUQD_BASE_ASIDE_H

#include <stdbool.h>

#include "libgpuq/err.h"

struct aside;
struct loop;

/* work runs in a thread of its own; long ones ask aside_ends() now and then. done runs in
 * the loop, once for each piece that was taken, and also from aside_free(). */
typedef void (*aside_fn)(void *arg);

/* At most `most` pieces at a time. Returns 0, GPUQ_ENOMEM. */
int aside_new(struct loop *l, unsigned most, struct aside **out, struct gpuq_err *err);

/* Waits for what is under way and calls its done. Before the loop is freed. NULL is fine. */
void aside_free(struct aside *a);

/* Returns 0; GPUQ_EBUSY (as many as may be are under way), GPUQ_ENOMEM, and then neither
 * function is called. */
int aside_run(struct aside *a, aside_fn work, aside_fn done, void *arg, struct gpuq_err *err);

/* The daemon is stopping: what takes long had better end. From any thread. */
bool aside_ends(const struct aside *a);

unsigned aside_busy(const struct aside *a); /* pieces under way */

#endif
