#include "gpuq/job.h"

#include <inttypes.h>
#include <stdio.h>

void job_name(int64_t id, int64_t index, char *out, size_t room)
{
	if (index < 0)
		snprintf(out, room, "%" PRId64, id);
	else
		snprintf(out, room, "%" PRId64 "_%" PRId64, id, index);
}

struct each {
	job_fn fn;
	void *arg;
	int verdict;
};

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct each *e = arg;

	if (item)
		e->verdict = e->fn(e->arg, item);
	return e->verdict ? 1 : 0;
}

/* One answer is one message; an array of thousands comes as a stream. */
static int stream(struct cli *c, int64_t id, int64_t index, struct each *e, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *ids = gpuq_list(a), *reply;
	char text[48];
	int rc;

	job_name(id, index, text, sizeof(text));
	gpuq_add(a, ids, gpuq_str(a, text));
	gpuq_put(a, params, "ids", ids);
	gpuq_put(a, params, "all", gpuq_bool(a, true));
	rc = gpuq_stream(c->conn, "job.list", params, 0, on_item, e, a, &reply, err);
	return rc < 0 ? rc : e->verdict;
}

int job_for_each(struct cli *c, int64_t id, int64_t index, job_fn fn, void *arg,
		 struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *reply;
	struct each e = { fn, arg, 0 };
	const struct gpuq_val *jobs;
	int rc;

	gpuq_put(a, params, "id", gpuq_int(a, id));
	if (index >= 0)
		gpuq_put(a, params, "index", gpuq_int(a, index));
	rc = cli_call(c, "job.get", params, "", &reply, err);
	if (rc == GPUQ_ETOOBIG)
		return stream(c, id, index, &e, err);
	if (rc < 0)
		return rc;
	jobs = gpuq_get(reply, "jobs");
	if (!jobs || jobs->type != GPUQ_LIST || jobs->n == 0)
		return gpuq_fail(err, GPUQ_EPROTO, "the server's reply has no job");
	for (size_t i = 0; i < jobs->n; i++) {
		rc = fn(arg, jobs->items[i]);
		if (rc != 0)
			return rc;
	}
	return 0;
}

const struct gpuq_val *job_with_spec(struct cli *c, int64_t id, int64_t index, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *reply;
	const struct gpuq_val *jobs;

	gpuq_put(a, params, "id", gpuq_int(a, id));
	if (index >= 0)
		gpuq_put(a, params, "index", gpuq_int(a, index));
	gpuq_put(a, params, "spec", gpuq_bool(a, true));
	if (cli_call(c, "job.get", params, "", &reply, err) < 0)
		return NULL;
	jobs = gpuq_get(reply, "jobs");
	if (!jobs || jobs->type != GPUQ_LIST || jobs->n == 0 || !gpuq_get(jobs->items[0], "spec")) {
		gpuq_fail(err, GPUQ_EPROTO, "the server's reply has no job");
		return NULL;
	}
	return jobs->items[0];
}
