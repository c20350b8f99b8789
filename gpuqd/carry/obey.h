/* obey.h - a cluster that carries out every order at once
 *
 * Owns     nothing.
 * Touches  memory only; the caller decides where the events go.
 * Used by  flow/advise/whatif, gpuqd/sim: the outcome of a plan where no pod takes time.
 *
 * Pods that were placed run, pods that were signalled are gone, and the verdict on their attempt is
 * that of gpuqd (job_verdict): the job ends, or is pending again. */
#ifndef GPUQD_CARRY_OBEY_H
#define GPUQD_CARRY_OBEY_H

#include "gpuqd/state/event.h"
#include "gpuqd/state/model.h"
#include "libgpuq/err.h"

/* Where the events go; they carry no time of their own. */
struct obey_to {
	int (*apply)(void *arg, struct event *ev,
		     struct gpuq_err *err); /* the caller's model, or its journal */
	void *arg;
};

/* Start the pods of the job that were placed. Returns 0, or the error of the first event that apply
 * refused. */
int obey_start(const struct obey_to *to, const struct job *j, struct gpuq_err *err);

/* True if the job has pods that are to end. all: its attempt is over, else it goes on without
 * them. */
bool obey_leaves(const struct job *j, bool *all);

/* End such pods, or with `all` every pod of the job, with this exit code. A job that ends has left
 * the model afterwards. */
int obey_end(const struct obey_to *to, const struct job *j, bool all, int exit_code,
	     struct gpuq_err *err);

/* Lose the pods of the job on that node; the rest of it is ended where it cannot go on. */
int obey_lose(const struct obey_to *to, const struct job *j, const char *node, bool *over,
	      struct gpuq_err *err);

#endif
