/* worker.h - one long thing at a time beside the loop
 *
 * Owns     a thread while it has something to do, and the way back into the loop.
 * Touches  threads, libevent.
 * Used by  flow/estimate.
 *
 * What the thread works on must be its own until it has ended.
 */
#ifndef GPUQD_BASE_WORKER_H
#define GPUQD_BASE_WORKER_H

#include <stdbool.h>

#include "libgpuq/err.h"

struct loop;
struct worker;

typedef void (*worker_fn)(void *arg);

int worker_new(struct loop *l, struct worker **out, struct gpuq_err *err);
/* Waits for what is under way; its `done` is not called. NULL is allowed. */
void worker_free(struct worker *w);

/* work(arg) in a thread, then done(arg) in the loop. Returns 0; GPUQ_EBUSY while another
 * is under way, GPUQ_ENOMEM. */
int worker_run(struct worker *w, worker_fn work, worker_fn done, void *arg, struct gpuq_err *err);
bool worker_is_busy(const struct worker *w);

#endif
