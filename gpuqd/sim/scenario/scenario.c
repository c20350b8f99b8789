#include "gpuqd/sim/scenario/scenario_int.h"
#include "gpuqd/sim/scenario/scenario_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/yaml.h"

/* Cases, their steps, and files of them. */

const char *const scenario_events[] = { "finish",       "cancel",     "submit", "advance",
					"node_down",    "node_up",    "hold",   "release",
					"set_priority", "set_queue",  "use",    "request_failed",
					"node_cut",     "cut_failed", NULL };

const char *scenario_subject(const struct sc_step *s)
{
	if (s->submit)
		return s->submit->name;
	return s->job ? s->job : s->node ? s->node : s->pool ? s->pool : "";
}

static const struct gpuq_field step_fields[] = {
	{ .key = "event",
	  .kind = GPUQ_K_ENUM,
	  .flags = GPUQ_F_REQUIRED,
	  .names = scenario_events,
	  .offset = offsetof(struct sc_step, event),
	  .doc = "what happens" },
	STR(sc_step, "job", job, "the job"),
	STR(sc_step, "node", node, "the node"),
	STR(sc_step, "queue", queue, "queue to which it moves"),
	STR(sc_step, "pool", pool, "pool of the requested nodes"),
	NUM(sc_step, "count", count, "number of these nodes"),
	NUM(sc_step, "at", at, "when"),
	NUM(sc_step, "to", to, "time to advance by"),
	NUM(sc_step, "priority", priority, "new priority"),
	NUM(sc_step, "exit_code", exit_code, "exit code of the job"),
	NUM(sc_step, "use", use,
	    "utilization of its devices from then on, in percent; -1 = not known"),
	{ .key = "then",
	  .kind = GPUQ_K_VAL,
	  .offset = offsetof(struct sc_step, then),
	  .doc = "expectations after the step" },
	{ 0 },
};

static void step_defaults(void *obj)
{
	struct sc_step *s = obj;

	s->at = s->to = SC_ABSENT;
	s->count = 1000;
}

/* Keys that an event requires. */
static const struct {
	int event; /* enum sc_event */
	const char *key, * or ;
} step_needs[] = {
	{ SC_FINISH, "job", NULL },
	{ SC_CANCEL, "job", NULL },
	{ SC_HOLD, "job", NULL },
	{ SC_RELEASE, "job", NULL },
	{ SC_SET_PRIORITY, "job", NULL },
	{ SC_SET_PRIORITY, "priority", NULL },
	{ SC_SET_QUEUE, "job", NULL },
	{ SC_SET_QUEUE, "queue", NULL },
	{ SC_USE, "job", NULL },
	{ SC_USE, "use", NULL },
	{ SC_NODE_DOWN, "node", NULL },
	{ SC_NODE_UP, "node", "pool" },
	{ SC_REQUEST_FAILED, "pool", NULL },
	{ SC_NODE_CUT, "node", NULL },
	{ SC_CUT_FAILED, "node", NULL },
	{ SC_ADVANCE, "to", "at" },
};

static int step_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct sc_step *s = obj;

	for (size_t i = 0; i < sizeof(step_needs) / sizeof(step_needs[0]); i++)
		if (step_needs[i].event == s->event && !gpuq_get(v, step_needs[i].key) &&
		    !(step_needs[i].or &&gpuq_get(v, step_needs[i].or)))
			return gpuq_reader_fail(r, v, GPUQ_EINVAL, "%s needs '%s'",
						scenario_events[s->event], step_needs[i].key);
	return 0;
}

static const struct gpuq_schema step_schema = {
	.name = "step",
	.size = sizeof(struct sc_step),
	.fields = step_fields,
	.defaults = step_defaults,
	.check = step_check,
};

/* A submit is a step with the keys of a job in it (or below "pending"). */
static int read_submit(struct gpuq_reader *r, const struct gpuq_val *v, struct sc_step *out)
{
	struct gpuq_val *job = gpuq_get(v, "pending"), *rest = gpuq_map(r->arena);

	out->submit = gpuq_arena_alloc(r->arena, sizeof(*out->submit));
	if (!out->submit || !rest)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	out->event = SC_SUBMIT;
	out->at = SC_ABSENT;
	out->then = gpuq_get(v, "then");
	if (gpuq_get(v, "at")) {
		int rc = scenario_number(r, gpuq_get(v, "at"), &out->at);

		if (rc < 0)
			return rc;
	}
	if (!job) {
		rest->at = v->at;
		for (uint32_t i = 0; i < v->n; i++) {
			const struct gpuq_pair *p = &v->pairs[i];

			if (strcmp(p->key, "event") != 0 && strcmp(p->key, "then") != 0 &&
			    strcmp(p->key, "at") != 0) {
				gpuq_put(r->arena, rest, p->key, p->val);
				rest->pairs[rest->n - 1].at = p->at;
			}
		}
		job = rest;
	}
	return gpuq_schema_read(r, &scenario_job, job, out->submit);
}

static int read_steps(struct gpuq_reader *r, const struct gpuq_val *v, struct sc_case *c)
{
	size_t steps = gpuq_reader_enter(r, "steps");
	int rc = 0;

	if (v->type != GPUQ_LIST)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected a list");
	c->steps = gpuq_arena_calloc(r->arena, v->n, sizeof(*c->steps));
	if (!c->steps)
		return gpuq_fail(r->err, GPUQ_ENOMEM, "no memory");
	c->n_steps = v->n;
	for (size_t i = 0; rc == 0 && i < v->n; i++) {
		size_t mark = gpuq_reader_enter_item(r, i);

		if (strcmp(gpuq_get_str(v->items[i], "event", ""), "submit") == 0)
			rc = read_submit(r, v->items[i], &c->steps[i]);
		else
			rc = gpuq_schema_read(r, &step_schema, v->items[i], &c->steps[i]);
		gpuq_reader_leave(r, mark);
	}
	gpuq_reader_leave(r, steps);
	return rc;
}

struct raw_case { /* as the table reads it; steps are read separately */
	struct sc_case c;
	const struct gpuq_val *steps, *version;
};

static const struct gpuq_field case_fields[] = {
	{ .key = "version",
	  .kind = GPUQ_K_VAL,
	  .offset = offsetof(struct raw_case, version),
	  .doc = "1" },
	{ .key = "id",
	  .kind = GPUQ_K_STR,
	  .offset = offsetof(struct raw_case, c.id),
	  .doc = "name" },
	{ .key = "title",
	  .kind = GPUQ_K_STR,
	  .offset = offsetof(struct raw_case, c.title),
	  .doc = "one-line description" },
	{ .key = "config",
	  .kind = GPUQ_K_OBJECT,
	  .sub = &scenario_config,
	  .offset = offsetof(struct raw_case, c.config),
	  .doc = "time and policy" },
	{ .key = "nodes",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &scenario_node,
	  .offset = offsetof(struct raw_case, c.nodes),
	  .doc = "the cluster" },
	{ .key = "pools",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &scenario_pool,
	  .offset = offsetof(struct raw_case, c.pools),
	  .doc = "that can grow" },
	{ .key = "queues",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &scenario_queue,
	  .offset = offsetof(struct raw_case, c.queues),
	  .doc = "the oldest first" },
	{ .key = "users",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &scenario_user,
	  .offset = offsetof(struct raw_case, c.users),
	  .doc = "use of users before the case" },
	{ .key = "running",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &scenario_job,
	  .offset = offsetof(struct raw_case, c.running),
	  .doc = "jobs that have started" },
	{ .key = "pending",
	  .kind = GPUQ_K_OBJECTS,
	  .sub = &scenario_job,
	  .offset = offsetof(struct raw_case, c.pending),
	  .doc = "pending jobs" },
	{ .key = "steps",
	  .kind = GPUQ_K_VAL,
	  .offset = offsetof(struct raw_case, steps),
	  .doc = "steps" },
	{ .key = "expect",
	  .kind = GPUQ_K_VAL,
	  .offset = offsetof(struct raw_case, c.expect),
	  .doc = "expectations" },
	{ 0 },
};
static const struct gpuq_schema case_schema = {
	.name = "case",
	.size = sizeof(struct raw_case),
	.fields = case_fields,
};

static void read_case(struct gpuq_arena *a, const char *file, const struct gpuq_val *v,
		      const char *path, size_t ix, struct sc_result *out)
{
	struct gpuq_reader r = { .arena = a, .file = file, .err = &out->err };
	struct raw_case *raw = gpuq_arena_alloc(a, sizeof(*raw));
	int rc;

	out->id = gpuq_get_str(v, "id", NULL);
	if (!out->id)
		out->id = gpuq_arena_printf(a, "%s#%zu", file, ix + 1);
	out->expect = gpuq_get(v, "expect");
	if (!raw || !out->id) {
		gpuq_fail(&out->err, GPUQ_ENOMEM, "no memory");
		return;
	}
	if (path)
		gpuq_reader_enter(&r, path);
	if (path)
		gpuq_reader_enter_item(&r, ix);
	rc = gpuq_schema_read(&r, &case_schema, v, raw);
	if (rc == 0 && raw->steps)
		rc = read_steps(&r, raw->steps, &raw->c);
	if (rc < 0)
		return;
	scenario_take_config(&raw->c.config);
	for (size_t i = 0; i < raw->c.pools.n; i++)
		scenario_pool_machine((struct sc_pool *)raw->c.pools.items + i);
	for (size_t i = 0; i < raw->c.queues.n; i++)
		scenario_take_queue(raw->c.config.unit, (struct sc_queue *)raw->c.queues.items + i);
	raw->c.id = out->id;
	raw->c.file = file;
	raw->c.src = v;
	out->c = &raw->c;
}

int64_t scenario_us(int unit, int64_t milli_units)
{
	static const int64_t seconds[] = { 1, 60, 3600, 86400 };
	int64_t us;

	if (__builtin_mul_overflow(milli_units, seconds[unit] * (GPUQ_US_PER_S / 1000), &us) ||
	    us > INT64_MAX / 4 || us < INT64_MIN / 4)
		return milli_units < 0 ? INT64_MIN / 4 : INT64_MAX / 4;
	return us;
}

int scenario_within(struct gpuq_err *err, const char *list, size_t i)
{
	char field[sizeof(err->field)];

	if (!err)
		return GPUQ_EINVAL;
	snprintf(field, sizeof(field), "%s[%zu]%s%.64s", list, i, *err->field ? "." : "",
		 err->field);
	memcpy(err->field, field, sizeof(field));
	return err->code;
}

/* Return the value at the path, "steps[2].queue", or the last one on the way there. */
static const struct gpuq_val *nearest(const struct gpuq_val *v, const char *path)
{
	char key[sizeof(((struct gpuq_err *)NULL)->field)];

	while (*path) {
		const struct gpuq_val *next = NULL;
		const size_t n = strcspn(path, ".[");
		char *end;

		if (*path == '[') {
			const unsigned long i = strtoul(path + 1, &end, 10);

			if (v->type == GPUQ_LIST && i < v->n)
				next = v->items[i];
			path = end + (*end == ']');
		} else {
			snprintf(key, sizeof(key), "%.*s", (int)n, path);
			next = gpuq_get(v, key);
			path += n;
		}
		path += *path == '.';
		if (!next)
			break;
		v = next;
	}
	return v;
}

int scenario_place(const struct sc_case *c, struct gpuq_err *err)
{
	const struct gpuq_val *at = c->src ? nearest(c->src, err->field) : NULL;

	if (at && *err->field)
		gpuq_err_prefix(err, "%s:%u:%u: %s", c->file, at->at.line, at->at.col, err->field);
	return err->code;
}

int scenario_read(struct gpuq_arena *a, const char *file, const char *text, size_t n,
		  struct sc_result **out, size_t *n_out, struct gpuq_err *err)
{
	struct gpuq_val **docs, *cases;
	struct sc_result *results;
	size_t n_docs, n_cases = 0, at = 0;
	/* As large as the export of a busy daemon. */
	int rc = gpuq_yaml_parse_large(a, file, text, n, n, SIZE_MAX, &docs, &n_docs, err);

	if (rc < 0)
		return rc;
	for (size_t d = 0; d < n_docs; d++) {
		struct gpuq_reader r = { .arena = a, .file = file, .err = err };

		if (docs[d]->type != GPUQ_MAP)
			return gpuq_reader_fail(&r, docs[d], GPUQ_EINVAL,
						"expected a map with cases");
		if (gpuq_get_int(docs[d], "version", 1) != 1)
			return gpuq_reader_fail(&r, gpuq_get(docs[d], "version"), GPUQ_EINVAL,
						"version: expected 1");
		cases = gpuq_get(docs[d], "cases");
		if (cases && cases->type != GPUQ_LIST)
			return gpuq_reader_fail(&r, cases, GPUQ_EINVAL, "cases: expected a list");
		for (const struct gpuq_field *f = case_fields; cases && f->key; f++)
			if (strcmp(f->key, "version") != 0 && gpuq_get(docs[d], f->key) &&
			    f->kind != GPUQ_K_STR)
				return gpuq_reader_fail(&r, gpuq_get(docs[d], f->key), GPUQ_EINVAL,
							"%s: belongs into a case, not beside cases",
							f->key);
		n_cases += cases ? cases->n : 1;
	}
	if (n_cases == 0)
		return gpuq_fail(err, GPUQ_EINVAL, "%s: there is no case in it", file);
	results = gpuq_arena_calloc(a, n_cases, sizeof(*results));
	if (!results)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	for (size_t d = 0; d < n_docs; d++) {
		cases = gpuq_get(docs[d], "cases");
		for (size_t i = 0; cases && i < cases->n; i++)
			read_case(a, file, cases->items[i], "cases", i, &results[at++]);
		if (!cases)
			read_case(a, file, docs[d], NULL, d, &results[at++]);
	}
	*out = results;
	*n_out = n_cases;
	return 0;
}
