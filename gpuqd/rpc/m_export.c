/* The live state as a scenario, part by part. */
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/export.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/m_int.h"

int m_scenario_export(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	struct gpuq_val *list;
	int rc = export_scenario(journal_model(m->j), loop_now_us(journal_loop(m->j)),
				 rpc_call_arena(c), &list, err);

	(void)params;
	return rc < 0 ? rc : rpc_send_items(c, list, err);
}
