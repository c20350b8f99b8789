/* site.get and site.apply: the objects of the site, read and changed while the daemon runs. */
#include "gpuqd/site/site_merge.h"
#include "gpuqd/flow/admit/apply.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"

struct apply_params {
	const char *text, *file;
	struct gpuq_val *site;
	struct gpuq_strlist remove;
	bool prune, dry_run, existing, fresh;
	int64_t generation, yes_evict;
};

static void apply_defaults(void *obj)
{
	((struct apply_params *)obj)->generation = -1;
}

static const struct gpuq_field apply_fields[] = {
	P(apply_params, "text", GPUQ_K_STR, text),
	P(apply_params, "file", GPUQ_K_STR, file),
	P(apply_params, "site", GPUQ_K_VAL, site),
	P(apply_params, "remove", GPUQ_K_STRLIST, remove),
	P(apply_params, "prune", GPUQ_K_BOOL, prune),
	P(apply_params, "dry_run", GPUQ_K_BOOL, dry_run),
	P(apply_params, "existing", GPUQ_K_BOOL, existing),
	P(apply_params, "fresh", GPUQ_K_BOOL, fresh),
	P(apply_params, "generation", GPUQ_K_INT, generation, .min = -1, .max = UINT32_MAX),
	P(apply_params, "yes_evict", GPUQ_K_INT, yes_evict, .min = 0, .max = INT64_MAX),
	P_END,
};
const struct gpuq_schema p_site_apply = { .name = "params",
					  .size = sizeof(struct apply_params),
					  .fields = apply_fields,
					  .defaults = apply_defaults };

static void answered(void *arg, int rc, const struct gpuq_err *err, const struct gpuq_val *result)
{
	struct rpc_call *c = arg;

	if (rc < 0)
		rpc_fail(c, err);
	else
		rpc_reply(c, result);
}

int m_site_apply(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct apply_params *p = params;
	const struct apply_ask ask = { .text = p->text,
				       .file = p->file,
				       .tree = p->site,
				       .remove = p->remove,
				       .prune = p->prune,
				       .dry_run = p->dry_run,
				       .existing = p->existing,
				       .fresh = p->fresh,
				       .generation = p->generation,
				       .yes_evict = p->yes_evict,
				       .who = rpc_call_peer(c)->user,
				       .operator_ = peer_is_operator(c),
				       .arena = rpc_call_arena(c) };

	if (!p->text && !p->site && !p->remove.n)
		return gpuq_fail(err, GPUQ_EINVAL, "expected a text, a site or objects to remove");
	return apply_start(m->apply, &ask, answered, c, err);
}

int m_site_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct model *model = journal_model(m->j);
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = gpuq_map(a);

	(void)params;
	gpuq_put(a, v, "generation", gpuq_int(a, model->site_generation));
	gpuq_put(a, v, "site", site_sorted(a, model->site->tree));
	if (!gpuq_val_ok(v))
		return gpuq_no_memory(err);
	rpc_reply(c, v);
	return 0;
}
