#include "gpuqd/state/view/view_ask.h"

#include <string.h>

#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/view/view_val.h"

/* Return the ask that the job waits for: the one it owns, else that of another job, or of its array's elements,
 * that it has a place on; NULL = none, or which one is not known. */
static const struct ask *ask_for(const struct model *m, const struct job *j, bool *rides)
{
	const struct outlook *o = j->outlook;
	const struct ask *a = ask_of_job(m, j->key);

	*rides = !a;
	if (a)
		return a->state != ASK_STATE_SERVED ? a : NULL;
	for (uint32_t i = 0; i < o->n_reasons && !a; i++)
		if (o->reasons[i].code == GPUQ_R_PROVISIONING && o->reasons[i].ask)
			a = ask_find(m, o->reasons[i].ask);
	return a && a->state != ASK_STATE_ENDED ? a : NULL;
}

/* Return how long the request may take; 0 = that is not known. */
static int64_t ask_deadline(const struct model *m, const struct ask *a)
{
	site_each(site_pool, m->site->pools, p)
		if (strcmp(p->name, a->pool) == 0 && p->provisioning)
			return a->state == ASK_STATE_PAUSED ? a->retry_us
			       : a->state < ASK_STATE_PROVISIONED
				       ? a->since_us + p->provisioning->timeout_us
				       : a->provisioned_us + p->provisioning->booking_us;
	return 0;
}

void view_ask_waits(struct gpuq_arena *a, struct gpuq_val *v, const struct ask_pool *known)
{
	const int64_t half = ask_pool_wait_s(known, 50), most = ask_pool_wait_s(known, 90);

	gpuq_put(a, v, "waits", gpuq_int(a, known ? known->n_waits : 0));
	gpuq_put(a, v, "wait_p50_s", half < 0 ? gpuq_null(a) : gpuq_int(a, half));
	gpuq_put(a, v, "wait_median_s", half < 0 ? gpuq_null(a) : gpuq_int(a, half));
	gpuq_put(a, v, "wait_p90_s", most < 0 ? gpuq_null(a) : gpuq_int(a, most));
}

struct gpuq_val *view_ask(struct gpuq_arena *a, const struct model *m, const struct job *j)
{
	bool rides;
	const struct ask *ask = ask_for(m, j, &rides);
	struct gpuq_val *v;
	char name[ASK_NAME_ROOM];

	if (!ask || j->state != GPUQ_JOB_PENDING)
		return gpuq_null(a);
	v = gpuq_map(a);
	ask_name(m, ask, name);
	gpuq_put(a, v, "flavor", gpuq_str(a, ask->flavor));
	gpuq_put(a, v, "pool", gpuq_str(a, ask->pool));
	gpuq_put(a, v, "request", gpuq_str(a, name));
	gpuq_put(a, v, "class", view_word(a, ask->class_));
	gpuq_put(a, v, "state", gpuq_str(a, ask_state_words[ask->state]));
	gpuq_put(a, v, "condition", view_word(a, ask->condition));
	gpuq_put(a, v, "condition_reason", view_word(a, ask->reason));
	gpuq_put(a, v, "message", view_word(a, ask->message));
	gpuq_put(a, v, "attempt", gpuq_int(a, ask->attempt));
	gpuq_put(a, v, "nodes", gpuq_int(a, ask->n_nodes));
	gpuq_put(a, v, "nodes_left", gpuq_int(a, ask_lacks(ask)));
	gpuq_put(a, v, "owner", rides ? gpuq_str(a, view_key(a, ask->owner)) : gpuq_null(a));
	gpuq_put(a, v, "since", view_instant(a, ask->made_us));
	gpuq_put(a, v, "deadline", view_instant(a, ask_deadline(m, ask)));
	gpuq_put(a, v, "deadline_time", view_instant(a, ask_deadline(m, ask)));
	view_ask_waits(a, v, ask_pool_find(m, ask->pool));
	return v;
}
