#include "gpuqd/carry/obey.h"

#include <string.h>

#include "libgpuq/arena.h"

#define EXIT_TERMINATED 143 /* exit code of a pod that is terminated */

int obey_start(const struct obey_to *to, const struct job *j, struct gpuq_err *err)
{
	const struct pod *p, *next;
	int rc = 0;

	DL_FOREACH_SAFE2(j->pods, p, next, job_next) {
		struct event ev = { .type = EV_POD_STARTED };

		if (p->state >= GPUQ_POD_RUNNING || p->dropped)
			continue;
		ev.pod = model_pod_key(p);
		rc = to->apply(to->arg, &ev, err);
		if (rc < 0)
			break;
	}
	return rc;
}

bool obey_leaves(const struct job *j, bool *all)
{
	const struct pod *p;

	*all = model_job_is_live(j) && model_job_is_over(j);
	if (*all)
		return true;
	DL_FOREACH2(j->pods, p, job_next)
		if (p->dropped && model_pod_takes(p))
			return true;
	return false;
}

/* Selects pods: all, those that are dropped, those of a node. */
struct which {
	bool all;
	const char *node; /* those there alone; NULL = all */
};

static bool is_one(const struct which *w, const struct pod *p)
{
	return model_pod_takes(p) &&
	       (w->all || (w->node ? strcmp(p->node->name, w->node) == 0 : p->dropped));
}

/* Return the keys of those pods, n of them, without gaps. */
static struct pod_key *keys_of(const struct job *j, const struct which *w, struct gpuq_arena *mem,
			       size_t *n)
{
	const struct pod *p;
	struct pod_key *keys;
	size_t most = 0;

	DL_FOREACH2(j->pods, p, job_next)
		most += is_one(w, p);
	keys = gpuq_arena_calloc(mem, most + 1, sizeof(*keys));
	*n = 0;
	DL_FOREACH2(j->pods, p, job_next)
		if (keys && is_one(w, p))
			keys[(*n)++] = model_pod_key(p);
	return keys;
}

/* Let pods end. */
static int end_all(const struct obey_to *to, const struct pod_key *keys, size_t n, int exit_code,
		   enum pod_fault fault, struct gpuq_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct event ev = { .type = EV_POD_ENDED, .pod = keys[i] };

		ev.pod_ended.exit_code = exit_code;
		ev.pod_ended.fault = fault;
		ev.pod_ended.message = "";
		rc = to->apply(to->arg, &ev, err);
	}
	return rc;
}

/* Let them be gone from the cluster, which releases their devices. */
static int gone_all(const struct obey_to *to, const struct pod_key *keys, size_t n,
		    struct gpuq_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct event ev = { .type = EV_POD_GONE, .pod = keys[i] };

		rc = to->apply(to->arg, &ev, err);
	}
	return rc;
}

int obey_end(const struct obey_to *to, const struct job *j, bool all, int exit_code,
	     struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct which which = { all, NULL };
	struct event verdict;
	size_t n;
	const struct pod_key *keys = keys_of(j, &which, &mem, &n);
	int rc = keys ? end_all(to, keys, n, exit_code, POD_FAULT_NONE, err) : gpuq_no_memory(err);

	if (rc == 0 && all && model_job_is_live(j) && model_job_attempt_over(j)) {
		job_verdict(j, &verdict);
		rc = to->apply(to->arg, &verdict, err);
	}
	if (rc == 0)
		rc = gone_all(to, keys, n, err);
	gpuq_arena_done(&mem);
	return rc;
}

int obey_lose(const struct obey_to *to, const struct job *j, const char *node, bool *over,
	      struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct which which = { false, node };
	size_t n;
	const struct pod_key *keys = keys_of(j, &which, &mem, &n);
	int rc = keys ? end_all(to, keys, n, -1, POD_FAULT_INFRA, err) : gpuq_no_memory(err);

	if (rc == 0)
		rc = gone_all(to, keys, n, err);
	gpuq_arena_done(&mem);
	*over = rc == 0 && n > 0 && model_job_is_live(j) && model_job_is_over(j);
	return *over ? obey_end(to, j, true, EXIT_TERMINATED, err) : rc;
}
