/* obey.h - a cluster that does at once what it is told
 *
 * Owns     nothing.
 * Touches  memory only; what is done with the events is the caller's.
 * Used by  flow/advise/whatif, gpuqd/sim: what becomes of a plan where no pod takes time.
 *
 * Pods that were placed run, pods that were told to leave are gone, and the attempt they belong
 * to is decided on as gpuqd decides (job_verdict): the job ends, or waits again.
 */
#ifndef GPUQD_CARRY_OBEY_H
#define GPUQD_CARRY_OBEY_H

#include "gpuqd/state/event.h"
#include "gpuqd/state/model.h"
#include "libgpuq/err.h"

/* Where the events go, which bring no time of their own. */
struct obey_to {
	int (*apply)(void *arg, struct event *ev, struct gpuq_err *err);
	void *arg;
};

/* Start the pods of the job that were placed. Returns 0, or what apply said of the first that
 * it refused. */
int obey_start(const struct obey_to *to, const struct job *j, struct gpuq_err *err);

/* Does the job have pods that are to leave? all: its attempt is over, else it goes on without
 * them. */
bool obey_leaves(const struct job *j, bool *all);

/* End such pods, or with `all` every pod of the job, with this exit code. The job has left the model
 * afterwards where it has ended. */
int obey_end(const struct obey_to *to, const struct job *j, bool all, int exit_code,
	     struct gpuq_err *err);

/* Lose the pods of the job on that node; what is left of it is ended where it cannot go on. */
int obey_lose(const struct obey_to *to, const struct job *j, const char *node, bool *over,
	      struct gpuq_err *err);

#endif
