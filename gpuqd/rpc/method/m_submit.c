/* The method job.submit, called by the table of methods.c: specs are checked, tried on the cluster where there
 * is one, and made jobs in one event each. */
#include "gpuqd/flow/admit/submit.h"

#include <string.h>

#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/lease.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/units.h"

struct submit_params {
	struct gpuq_val *specs, *context;
	int64_t lease_us;
	bool dry_run, brief;
};

static const struct gpuq_field submit_fields[] = {
	P(submit_params, "specs", GPUQ_K_VAL, specs, .flags = GPUQ_F_REQUIRED,
	  .doc = "normalised job specs"),
	P(submit_params, "context", GPUQ_K_VAL, context,
	  .doc = "context of the submission, for specs without one"),
	P(submit_params, "lease", GPUQ_K_DURATION, lease_us,
	  .doc = "cancel the jobs if no wait or logs call for them is open for this long"),
	P(submit_params, "dry_run", GPUQ_K_BOOL, dry_run, .doc = "check, and store nothing"),
	P(submit_params, "brief", GPUQ_K_BOOL, brief,
	  .doc = "reply with ids and warnings only: whole objects may not fit in a message"),
	P_END,
};
const struct gpuq_schema p_job_submit = P_SCHEMA(submit_params, submit_fields);

static struct gpuq_val *brief(struct gpuq_arena *a, const struct gpuq_val *jobs)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; i < jobs->n; i++) {
		struct gpuq_val *v = gpuq_map(a);
		struct gpuq_val *warnings = gpuq_get(jobs->items[i], "warnings");

		gpuq_put(a, v, "id", gpuq_get(jobs->items[i], "id"));
		if (warnings && warnings->n)
			gpuq_put(a, v, "warnings", warnings);
		gpuq_add(a, list, v);
	}
	return list;
}

/* Append the cluster's notes to the warnings of each job. */
static void add_notes(struct gpuq_arena *a, const struct gpuq_val *jobs,
		      const struct gpuq_val *notes)
{
	for (uint32_t i = 0; notes && i < notes->n && i < jobs->n; i++) {
		struct gpuq_val *warnings = gpuq_get(jobs->items[i], "warnings");

		for (uint32_t k = 0; warnings && k < notes->items[i]->n; k++)
			gpuq_add(a, warnings, notes->items[i]->items[k]);
	}
}

static int submit(struct methods *m, struct rpc_call *c, const struct submit_params *p,
		  const struct gpuq_val *notes, struct gpuq_err *err)
{
	const struct submit_who who = peer_who(m, c);
	struct gpuq_arena *a = rpc_call_arena(c);
	struct submit_result r;
	struct gpuq_val *v;
	int rc;

	if (p->lease_us && (p->lease_us < LEASE_LEAST_US || p->lease_us == GPUQ_UNLIMITED))
		return gpuq_fail_field(err, GPUQ_EINVAL, "lease", "expected a lease of 5s or more");
	rc = submit_jobs(m->j, m->cluster, &who, p->specs, rpc_call_key(c), p->lease_us, p->dry_run,
			 a, &r, err);
	if (rc < 0)
		return rc;
	add_notes(a, r.jobs, notes);
	v = gpuq_map(a);
	gpuq_put(a, v, "jobs", p->brief ? brief(a, r.jobs) : r.jobs);
	gpuq_put(a, v, "repeated", gpuq_bool(a, r.repeated));
	rpc_reply(c, v);
	return 0;
}

struct again {
	struct methods *m;
	struct rpc_call *c;
	const struct submit_params *p;
	struct gpuq_val *notes; /* of the cluster, a list for each job; NULL none */
};

static void submit_again(void *arg, int rc, const struct gpuq_err *failed)
{
	struct again *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (rc < 0)
		rpc_fail(x->c, failed);
	else if (submit(x->m, x->c, x->p, x->notes, &err) < 0)
		rpc_fail(x->c, &err);
}

/* A job or key that has just left memory is in history only once that is durable: what
 * cannot be found is looked for once more then. */
static int is_later(struct again *x, int rc, const struct gpuq_err *err)
{
	if (rc != GPUQ_ENOENT || strcmp(err->field, "depends") != 0)
		return rc;
	journal_after(x->m->j, submit_again, x);
	return 0;
}

static void on_tried(void *arg, struct gpuq_val *notes)
{
	struct again *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	x->notes = notes;
	if (is_later(x, submit(x->m, x->c, x->p, notes, &err), &err) < 0)
		rpc_fail(x->c, &err);
}

int m_job_submit(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct submit_params *p = params;
	struct again *x = gpuq_arena_calloc(rpc_call_arena(c), 1, sizeof(*x));
	int rc;

	if (!x)
		return gpuq_no_memory(err);
	*x = (struct again){ arg, c, params, NULL };
	rc = codes_check(x->m, c, p->specs, p->dry_run, err);
	if (rc < 0)
		return rc;
	/* Once on the wire, however many jobs a file holds: an environment each would not
	 * fit into a message. */
	for (uint32_t i = 0; p->context && p->specs->type == GPUQ_LIST && i < p->specs->n; i++)
		if (p->specs->items[i]->type == GPUQ_MAP &&
		    !gpuq_get(p->specs->items[i], "context"))
			gpuq_put(rpc_call_arena(c), p->specs->items[i], "context", p->context);
	/* Dependencies that are not durable yet are the business of is_later(). */
	if (try_needed(x->m, c, p->specs)) {
		rc = try_start(x->m, c, p->specs, on_tried, x, err);
		if (rc != GPUQ_ENOENT)
			return rc;
	}
	return is_later(x, submit(arg, c, params, NULL, err), err);
}
