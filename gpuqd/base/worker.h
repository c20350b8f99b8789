/* worker.h - one thread beside the loop, for work longer than a turn may take
 *
 * Owns     the thread and the jobs handed to it, which it does one after another.
 * Touches  pthreads, an eventfd.
 * Used by  store (writes); flow/admit, flow/advise and rpc/method (answers that take long, backups).
 *
 * A job owns its data and shares nothing with the loop but objects made for sharing
 * (the store's reads). The outcome is reported on the loop.
 */
#ifndef GPUQD_BASE_WORKER_H
#define GPUQD_BASE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/base/loop.h"
#include "libgpuq/err.h"

struct worker;

/* The thread is started by the first job, or by worker_start. */
int worker_new(struct loop *l, struct worker **out, struct gpuq_err *err);
/* From the first job on: left idle for a moment, return the memory that jobs took and freed to
 * the system. For those whose jobs take much and come seldom: the next one pays for it again. */
void worker_give_back(struct worker *w);
int worker_start(struct worker *w, struct gpuq_err *err);

/* Do work(arg) on the thread, then done(arg) on the loop. */
#define worker_run(w, work, done, arg, err) worker_run_as(w, LOOP_HERE, work, done, arg, err)
int worker_run_as(struct worker *w, const char *name, void (*work)(void *arg),
		  void (*done)(void *arg), void *arg, struct gpuq_err *err);

/* Wait until every job handed over so far is done, and end the thread: later jobs are not done.
 * Outcomes still come on the loop. NULL is allowed. */
void worker_finish(struct worker *w);

/* End the thread after the job under way, and wait for that so long: true = it has ended. Jobs that
 * were not begun are not done. False: it still works, and worker_free would wait for it. NULL is
 * allowed. */
bool worker_end_within(struct worker *w, int64_t us);

/* Waits for the job under way; for every job that was not finished dropped(arg) is called
 * instead of done. NULL is allowed. */
void worker_free(struct worker *w, void (*dropped)(void *arg));

#endif
