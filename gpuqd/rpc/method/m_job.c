/* job.get: one job and its elements, from the model or, once it is gone from there, from history. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/lease.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

struct get_params {
	int64_t id, index;
	bool spec; /* what was submitted as well: for owner, managers and operators */
};

static void get_defaults(void *obj)
{
	((struct get_params *)obj)->index = -1;
}

static const struct gpuq_field get_fields[] = {
	P(get_params, "id", GPUQ_K_INT, id, .flags = GPUQ_F_REQUIRED, .min = 1, .max = UINT32_MAX),
	P(get_params, "index", GPUQ_K_INT, index, .min = -1, .max = INT32_MAX),
	P(get_params, "spec", GPUQ_K_BOOL, spec),
	P_END,
};
const struct gpuq_schema p_job_get = { .name = "params",
				       .size = sizeof(struct get_params),
				       .fields = get_fields,
				       .defaults = get_defaults };

static int by_index(const void *a, const void *b)
{
	const struct gpuq_val *const *x = a, *const *y = b;
	int64_t i = gpuq_get_int(*x, "array_index", -1), k = gpuq_get_int(*y, "array_index", -1);

	return i < k ? -1 : i > k;
}

bool job_had_element(const struct gpuq_val *job, int64_t index, struct gpuq_arena *a)
{
	const char *indices = gpuq_get_str(gpuq_get(job, "array"), "indices", NULL);
	struct gpuq_array array = { 0 };

	if (!indices || gpuq_array_parse(a, indices, &array, NULL) < 0)
		return false;
	for (size_t i = 0; i < array.n_ranges; i++) {
		const struct gpuq_range *r = &array.ranges[i];

		if (index >= r->first && index <= r->last && (index - r->first) % r->step == 0)
			return true;
	}
	return false;
}

/* An array of more elements is a list to request, piece by piece. */
#define GET_MAX 1000u

/* A get that misses in memory must see what left memory in this very turn: it examines
 * history once that is durable. */
struct get {
	struct methods *m;
	struct rpc_call *c;
	struct get_params p;
};

/* Put what was submitted into the job's object. */
static int put_spec(const struct get *g, struct gpuq_val *job, struct gpuq_err *err)
{
	const struct model *model = journal_model(g->m->j);
	struct gpuq_arena *a = rpc_call_arena(g->c);
	const struct submit_who who = peer_who(g->m, g->c);
	const char *owner = gpuq_get_str(job, "user", "");
	const uint32_t id = (uint32_t)gpuq_get_int(job, "id", 0);
	struct gpuq_spec spec;
	struct gpuq_val *tree;
	int rc;

	if (!access_job(model, model_find_queue(model, gpuq_get_str(job, "queue", "")), owner,
			&who))
		return gpuq_fail(err, GPUQ_EPERM, "job %" PRIu32 " belongs to another user", id);
	rc = order_spec(journal_store(g->m->j), id, a, &spec, err);
	if (rc == GPUQ_ENOENT)
		return gpuq_fail(err, rc, "the submission of job %" PRIu32 " is not known", id);
	if (rc < 0)
		return rc;
	tree = gpuq_spec_write(a, &spec);
	if (!tree)
		return gpuq_no_memory(err);
	gpuq_set(a, job, "spec", tree);
	return 0;
}

/* The job itself, without the elements of an array, and what was submitted. */
static void get_spec(struct get *g, struct job_key key)
{
	const struct model *model = journal_model(g->m->j);
	struct gpuq_arena *a = rpc_call_arena(g->c);
	struct gpuq_val *list = gpuq_list(a), *v = gpuq_map(a), *job;
	const struct job *j = model_find_job(model, key);
	struct gpuq_err err;

	if (!j && key.index >= 0) {
		j = model_find_job(model, (struct job_key){ key.id, -1 });
		if (j && !(j->array && model_element_waits(j->array, key.index)))
			j = NULL;
	}
	job = j ? view_job(a, model, j, loop_now_us(journal_loop(g->m->j)))
		: history_job(journal_store(g->m->j), key, a);
	if (!job) {
		no_such_job(key, &err);
		rpc_fail(g->c, &err);
	} else if (put_spec(g, job, &err) < 0) {
		rpc_fail(g->c, &err);
	} else {
		gpuq_add(a, list, job);
		gpuq_put(a, v, "jobs", list);
		rpc_reply(g->c, v);
	}
}

static void get_answer(void *arg, int rc, const struct gpuq_err *failed)
{
	struct get *g = arg;
	const struct model *model = journal_model(g->m->j);
	int64_t now = loop_now_us(journal_loop(g->m->j));
	const struct job_key key = job_id_of_call(g->m, g->p.id, g->p.index);
	struct gpuq_arena *a = rpc_call_arena(g->c);
	struct gpuq_val *list = gpuq_list(a), *v = gpuq_map(a);
	const struct job *j;
	struct gpuq_err err;

	if (rc < 0) {
		rpc_fail(g->c, failed);
		return;
	}
	if (g->p.spec) {
		get_spec(g, key);
		return;
	}
	j = model_find_job(model, key);
	/* Without waiting ones, all its elements stand for themselves. */
	if (j && !(j->array && j->array->n_waiting == 0 && !j->ended))
		gpuq_add(a, list, view_job(a, model, j, now));
	for (j = key.index < 0 ? index_elements(model, key.id) : NULL;
	     j && list && list->n <= GET_MAX; j = j->life->kin_next)
		gpuq_add(a, list, view_job(a, model, j, now));
	if (key.index >= 0 && list->n == 0) {
		struct gpuq_val *old = history_job(journal_store(g->m->j), key, a);
		const struct job *master = model_find_job(model, (struct job_key){ key.id, -1 });

		if (!old && master && master->array &&
		    model_element_waits(master->array, key.index))
			old = view_job(a, model, master, now);
		if (!old && !master) {
			old = history_job(journal_store(g->m->j), (struct job_key){ key.id, -1 },
					  a);
			if (old && !job_had_element(old, key.index, a))
				old = NULL;
		}
		if (old)
			gpuq_add(a, list, old);
	} else if (key.index < 0 && list && list->n <= GET_MAX) {
		history_jobs(journal_store(g->m->j), key.id, GET_MAX + 1 - list->n, a, list);
	}
	if (list && list->n > GET_MAX) {
		gpuq_fail(&err, GPUQ_ETOOBIG,
			  "array %lld has more elements than fit in one reply: list them",
			  (long long)g->p.id);
		rpc_fail(g->c, &err);
		return;
	}
	if (!list || list->n == 0) {
		no_such_job(key, &err);
		rpc_fail(g->c, &err);
		return;
	}
	if (strcmp(gpuq_get_str(list->items[0], "user", ""), rpc_call_peer(g->c)->user) == 0)
		lease_renew(g->m->lease, key.id);
	qsort(list->items, list->n, sizeof(*list->items), by_index);
	gpuq_put(a, v, "jobs", list);
	rpc_reply(g->c, v);
}

int m_job_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct get *g = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*g));

	if (!g)
		return gpuq_no_memory(err);
	*g = (struct get){ arg, c, *(const struct get_params *)params };
	journal_after(g->m->j, get_answer, g);
	return 0;
}
