/* worker.h - one thread beside the loop, for work longer than a turn may take
 *
 * Owns     the thread and the jobs handed to it, which it does one after another.
 * Touches  pthreads, an eventfd.
 * Used by  flow/admit/apply (preview of evictions).
 *
 * A job owns its data and shares nothing with the loop but objects made for sharing
 * (the store's reads). The outcome is reported on the loop.
 */
#ifndef GPUQD_BASE_WORKER_H
#define GPUQD_BASE_WORKER_H

#include "gpuqd/base/loop.h"
#include "libgpuq/err.h"

struct worker;

/* The thread is started by the first job. */
int worker_new(struct loop *l, struct worker **out, struct gpuq_err *err);

/* Do work(arg) on the thread, then done(arg) on the loop. */
#define worker_run(w, work, done, arg, err) worker_run_as(w, LOOP_HERE, work, done, arg, err)
int worker_run_as(struct worker *w, const char *name, void (*work)(void *arg),
		  void (*done)(void *arg), void *arg, struct gpuq_err *err);

/* Waits for the job under way; for every job that was not finished dropped(arg) is called
 * instead of done. NULL is allowed. */
void worker_free(struct worker *w, void (*dropped)(void *arg));

#endif
