/* pool.list: pools, and what was requested for those that grow. */
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/site/price.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/state/view/view_ask.h"

struct pool_params {
	struct gpuq_strlist names;
};

static const struct gpuq_field pool_fields[] = {
	P(pool_params, "names", GPUQ_K_STRLIST, names),
	P_END,
};
const struct gpuq_schema p_pool_list = P_SCHEMA(pool_params, pool_fields);

struct counts {
	int64_t nodes, asked, requests; /* there; requested and not there; under way */
	int64_t unmet; /* that an autoscaler is to make now */
};

static struct counts count(const struct model *m, const char *pool)
{
	struct counts n = { model_pool_nodes(m, pool), 0, 0, 0 };

	for (const struct ask *a = m->asks; a; a = a->hh.next) {
		if (strcmp(a->pool, pool) != 0 || a->state == ASK_STATE_ENDED)
			continue;
		n.asked += ask_lacks(a);
		n.requests += a->state < ASK_STATE_SERVED;
		n.unmet += ask_stands(a) && a->state < ASK_STATE_SERVED ? ask_lacks(a) : 0;
	}
	return n;
}

static const char *state_of(const struct model *m, const struct site_pool *p,
			    const struct ask_pool *known, const struct counts *n, int64_t now_us)
{
	if (!site_pool_grows(p))
		return "fixed";
	if (!ask_pool_is_open(m, p))
		return "off";
	if (known && known->closed_until_us > now_us)
		return "failing";
	if ((site_pool_requests(p) && n->requests >= p->provisioning->max_requests) ||
	    n->nodes + n->asked >= p->provisioning->max_nodes)
		return "full";
	return "open";
}

static struct gpuq_val *view_failure(struct gpuq_arena *a, const struct ask_pool *known)
{
	struct gpuq_val *v;

	if (!known || !known->failed_us)
		return gpuq_null(a);
	v = gpuq_map(a);
	gpuq_put(a, v, "time", view_instant(a, known->failed_us));
	gpuq_put(a, v, "message", gpuq_str(a, known->message));
	return v;
}

static struct gpuq_val *view(struct gpuq_arena *a, const struct model *m, const struct site_pool *p,
			     int64_t now_us)
{
	const struct provision *how = site_pool_grows(p) ? p->provisioning : NULL;
	const struct ask_pool *known = how ? ask_pool_find(m, p->name) : NULL;
	const struct counts n = count(m, p->name);
	const int64_t micro = price_micro(m->site, p->name, p->flavor);
	const bool closed = known && known->closed_until_us > now_us;
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "name", gpuq_str(a, p->name));
	gpuq_put(a, v, "flavor", gpuq_str(a, p->flavor));
	gpuq_put(a, v, "state", gpuq_str(a, state_of(m, p, known, &n, now_us)));
	gpuq_put(a, v, "class", how && how->class_ ? gpuq_str(a, how->class_) : gpuq_null(a));
	gpuq_put(a, v, "nodes", gpuq_int(a, n.nodes));
	gpuq_put(a, v, "asked", gpuq_int(a, n.asked));
	gpuq_put(a, v, "unmet_nodes",
		 how && !site_pool_requests(p) ? gpuq_int(a, n.unmet) : gpuq_null(a));
	gpuq_put(a, v, "min", how ? gpuq_int(a, how->min_nodes) : gpuq_null(a));
	gpuq_put(a, v, "max", how ? gpuq_int(a, how->max_nodes) : gpuq_null(a));
	gpuq_put(a, v, "max_nodes", how ? gpuq_int(a, how->max_nodes) : gpuq_null(a));
	gpuq_put(a, v, "gpus_per_node", how ? gpuq_int(a, how->machine->gpus) : gpuq_null(a));
	gpuq_put(a, v, "requests", gpuq_int(a, n.requests));
	gpuq_put(a, v, "max_requests",
		 site_pool_requests(p) ? gpuq_int(a, how->max_requests) : gpuq_null(a));
	gpuq_put(a, v, "price", micro ? gpuq_real(a, (double)micro / 1e6) : gpuq_null(a));
	gpuq_put(a, v, "last_failure", view_failure(a, known));
	gpuq_put(a, v, "failed_time", view_instant(a, known ? known->failed_us : 0));
	gpuq_put(a, v, "failure",
		 known && known->failed_us ? gpuq_str(a, known->message) : gpuq_null(a));
	gpuq_put(a, v, "closed_until_time", view_instant(a, closed ? known->closed_until_us : 0));
	view_ask_waits(a, v, known);
	return v;
}

struct gpuq_val *view_unmet(const struct model *m, struct gpuq_arena *a)
{
	struct gpuq_val *v = gpuq_map(a);

	site_each(site_pool, m->site->pools, p)
		if (site_pool_grows(p) && !site_pool_requests(p))
			gpuq_put(a, v, p->name, gpuq_int(a, count(m, p->name).unmet));
	return v;
}

struct gpuq_val *view_growing(const struct model *m, struct gpuq_arena *a, int64_t now_us)
{
	struct gpuq_val *list = gpuq_list(a);

	site_each(site_pool, m->site->pools, p)
		if (site_pool_grows(p))
			gpuq_add(a, list, view(a, m, p, now_us));
	return list;
}

struct gpuq_val *view_provisioning(const struct model *m, struct gpuq_arena *a)
{
	int64_t nodes = 0, gpus = 0;
	struct gpuq_val *v = gpuq_map(a);

	site_each(site_pool, m->site->pools, p) {
		const int64_t asked = site_pool_grows(p) ? count(m, p->name).asked : 0;

		nodes += asked;
		gpus += asked ? asked * p->provisioning->machine->gpus : 0;
	}
	gpuq_put(a, v, "nodes", gpuq_int(a, nodes));
	gpuq_put(a, v, "gpus", gpuq_int(a, gpus));
	return v;
}

int m_pool_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct pool_params *p = params;
	const struct model *model = journal_model(m->j);
	const int64_t now = loop_now_us(journal_loop(m->j));
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *list = gpuq_list(a);

	for (size_t i = 0; i < p->names.n; i++) {
		bool known = false;

		site_each(site_pool, model->site->pools, pool)
			known |= strcmp(pool->name, p->names.items[i]) == 0;
		if (!known)
			return gpuq_fail(err, GPUQ_ENOENT, "no pool is named %s",
					 p->names.items[i]);
	}
	site_each(site_pool, model->site->pools, pool)
		if (gpuq_strlist_passes(&p->names, pool->name))
			gpuq_add(a, list, view(a, model, pool, now));
	return rpc_send_items(c, list, err);
}
