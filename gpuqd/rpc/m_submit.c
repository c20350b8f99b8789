#include "gpuqd/flow/submit.h"

#include <string.h>

#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/m_int.h"

struct submit_params {
	struct gpuq_val *specs;
	bool dry_run;
};

static const struct gpuq_field submit_fields[] = {
	P(submit_params, "specs", GPUQ_K_VAL, specs, .flags = GPUQ_F_REQUIRED,
	  .doc = "normalised job specs"),
	P(submit_params, "dry_run", GPUQ_K_BOOL, dry_run, .doc = "check, and store nothing"),
	P_END,
};
const struct gpuq_schema p_job_submit = P_SCHEMA(submit_params, submit_fields);

static int submit(struct methods *m, struct rpc_call *c, const struct submit_params *p,
		  struct gpuq_err *err)
{
	const struct rpc_peer *peer = rpc_call_peer(c);
	struct submit_who who = { peer->user, peer->uid, peer->gid, peer_is_operator(c) };
	struct gpuq_arena *a = rpc_call_arena(c);
	struct submit_result r;
	struct gpuq_val *v;
	int rc = submit_jobs(m->j, m->cluster, &who, p->specs, rpc_call_key(c), p->dry_run, a, &r,
			     err);

	if (rc < 0)
		return rc;
	v = gpuq_map(a);
	gpuq_put(a, v, "jobs", r.jobs);
	gpuq_put(a, v, "repeated", gpuq_bool(a, r.repeated));
	rpc_reply(c, v);
	return 0;
}

struct again {
	struct methods *m;
	struct rpc_call *c;
	const struct submit_params *p;
};

static void submit_again(void *arg, int rc, const struct gpuq_err *failed)
{
	struct again *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (rc < 0)
		rpc_fail(x->c, failed);
	else if (submit(x->m, x->c, x->p, &err) < 0)
		rpc_fail(x->c, &err);
}

/* A job or key that has just left memory is in history only once that is durable: what
 * cannot be found is looked for once more then. */
int m_job_submit(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct again *x;
	int rc = submit(arg, c, params, err);

	if (rc != GPUQ_ENOENT || strcmp(err->field, "depends") != 0)
		return rc;
	x = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*x));
	if (!x)
		return rc;
	*x = (struct again){ arg, c, params };
	journal_after(x->m->j, submit_again, x);
	return 0;
}
