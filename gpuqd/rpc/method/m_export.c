/* The live state as a scenario, part by part. A thread makes it, of what is stored. */
#include "gpuqd/flow/report/export.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/advise/twin.h"
#include "gpuqd/rpc/method/m_ask.h"

static void item(void *arg, const struct gpuq_val *v)
{
	ask_item(arg, v);
}

static int make(struct ask *ask, struct gpuq_err *err)
{
	struct model *m = NULL;
	int rc = twin_load(ask->arg, &m, err);

	if (rc == 0)
		rc = export_scenario(m, ask->now_us, item, ask, err);
	model_free(m);
	return rc;
}

static void drop(void *arg)
{
	twin_free(arg);
}

struct later {
	struct methods *m;
	struct rpc_call *c;
};

static void begin(void *arg, int rc, const struct gpuq_err *failed)
{
	struct later *x = arg;
	struct rpc_call *c = x->c;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct twin *twin = NULL;
	struct ask *ask = NULL;

	if (rc < 0)
		err = *failed;
	else
		ask = ask_bare(x->m, c, &err);
	rc = ask ? twin_new(x->m->j, &twin, &err) : GPUQ_ENOMEM;
	if (rc == 0) {
		ask->arg = twin;
		ask->drop_arg = drop;
		ask->stream = ask->slow = true;
		rc = ask_run(ask, make, &err);
	} else if (ask) {
		ask_drop(ask);
	}
	if (rc < 0)
		rpc_fail(c, &err);
}

int m_scenario_export(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct later *x = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*x));

	(void)params;
	if (!x)
		return gpuq_no_memory(err);
	*x = (struct later){ arg, c };
	journal_after(x->m->j, begin, x);
	return 0;
}
