/* gpuq's own form of a job (model.md section 2): the tables, and the few kinds of
 * value that are more than a scalar. Checks across fields are in spec_check.c. */
#include "libgpuq/spec_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* A custom kind is given one field's address; these lead to the struct around it. */
#define GROUP_OF(p, field) ((struct gpuq_group *)((char *)(p) - offsetof(struct gpuq_group, field)))
#define SPEC_OF(p, field) ((struct gpuq_spec *)((char *)(p) - offsetof(struct gpuq_spec, field)))
#define CGROUP_OF(p, field) \
	((const struct gpuq_group *)((const char *)(p) - offsetof(struct gpuq_group, field)))
#define CSPEC_OF(p, field) \
	((const struct gpuq_spec *)((const char *)(p) - offsetof(struct gpuq_spec, field)))

static int want_text(struct gpuq_reader *r, const struct gpuq_val *v, const char **out)
{
	*out = spec_scalar(r->arena, v);
	if (*out)
		return 0;
	return spec_fail(r, v, GPUQ_EINVAL, "expected a string, not %s", gpuq_type_name(v->type));
}

static struct gpuq_val *write_strlist(struct gpuq_arena *a, const struct gpuq_strlist *l)
{
	struct gpuq_val *list = l->n ? gpuq_list(a) : NULL;

	for (size_t i = 0; i < l->n; i++)
		gpuq_add(a, list, gpuq_str(a, l->items[i]));
	return list;
}

/* ---- pods: n or {min, max} ---- */

struct pods {
	int64_t min, max;
};

/* clang-format off */
static const struct gpuq_field pods_fields[] = {
	{ .key = "min", .kind = GPUQ_K_INT, .flags = GPUQ_F_REQUIRED, .min = 1, .max = GPUQ_PODS_MAX,
	  .offset = offsetof(struct pods, min), .doc = "Pods without which nothing starts." },
	{ .key = "max", .kind = GPUQ_K_INT, .flags = GPUQ_F_REQUIRED, .min = 1, .max = GPUQ_PODS_MAX,
	  .offset = offsetof(struct pods, max), .doc = "Pods it can use." },
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema pods_schema = { .name = "pods",
						.size = sizeof(struct pods),
						.fields = pods_fields };

static int pods_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_group *g = GROUP_OF(out, pods_min);
	struct pods p = { 0, 0 };

	if (v->type == GPUQ_MAP) {
		int rc = gpuq_schema_read(r, &pods_schema, v, &p);

		if (rc < 0)
			return rc;
		if (p.max < p.min)
			return spec_fail(r, v, GPUQ_ERANGE, "expected max >= min");
	} else if (v->type == GPUQ_INT && v->i >= 1 && v->i <= (int64_t)GPUQ_PODS_MAX) {
		p.min = p.max = v->i;
	} else {
		return spec_fail(r, v, v->type == GPUQ_INT ? GPUQ_ERANGE : GPUQ_EINVAL,
				 "expected a number of pods from 1 to %u, or {min: M, max: N}",
				 GPUQ_PODS_MAX);
	}
	g->pods_min = p.min;
	g->pods_max = p.max;
	return 0;
}

static struct gpuq_val *pods_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_group *g = CGROUP_OF(in, pods_min);
	struct gpuq_val *v;

	if (g->pods_min == g->pods_max)
		return g->pods_min == 1 ? NULL : gpuq_int(a, g->pods_min);
	v = gpuq_map(a);
	gpuq_put(a, v, "min", gpuq_int(a, g->pods_min));
	gpuq_put(a, v, "max", gpuq_int(a, g->pods_max));
	return v;
}

/* ---- gpus: whole devices, or hundredths of one ---- */

static int gpus_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	const int64_t most = GPUQ_GPUS_PER_POD_MAX;
	int64_t milli = -1;
	double d = -1;

	if (v->type == GPUQ_INT && v->i >= 0 && v->i <= most)
		milli = 1000 * v->i;
	else if (v->type == GPUQ_REAL)
		d = v->d;
	else if (v->type == GPUQ_STR && gpuq_milli_parse(v->s, &milli, NULL) == 0)
		d = (double)milli / 1000; /* also "500m" */
	/* A quantity finer than a hundredth would be rounded to more than was asked. */
	if (d >= 0 && d <= (double)most && fabs(d * 100 - round(d * 100)) < 1e-6)
		milli = 10 * llround(d * 100);
	else if (d != -1)
		milli = -1;
	if (milli < 0 || (milli > 1000 && milli % 1000))
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected whole devices (0 to %u) or a part of one in hundredths "
				 "(0.01 to 0.99)",
				 GPUQ_GPUS_PER_POD_MAX);
	*(int64_t *)out = milli;
	return 0;
}

static struct gpuq_val *gpus_write(struct gpuq_arena *a, const void *in)
{
	const int64_t milli = *(const int64_t *)in;

	if (milli <= 0)
		return NULL;
	return milli % 1000 ? gpuq_real(a, (double)milli / 1000) : gpuq_int(a, milli / 1000);
}

/* ---- command: a list, or a string for the shell ---- */

static int command_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct spec_list l = { 0 };
	const char *text;
	int rc;

	if (v->type != GPUQ_LIST) {
		rc = want_text(r, v, &text);
		if (rc < 0)
			return rc;
		if (spec_list_add(r->arena, &l, "/bin/sh") < 0 ||
		    spec_list_add(r->arena, &l, "-c") < 0 || spec_list_add(r->arena, &l, text) < 0)
			return spec_nomem(r->err);
		if (!*text)
			return spec_fail(r, v, GPUQ_EINVAL, "expected a command, not nothing");
	}
	for (size_t i = 0; v->type == GPUQ_LIST && i < v->n; i++) {
		const size_t mark = gpuq_reader_enter_item(r, i);

		rc = want_text(r, v->items[i], &text);
		if (rc < 0)
			return rc;
		if (i == 0 && !*text)
			return spec_fail(r, v->items[i], GPUQ_EINVAL,
					 "expected a program, not nothing");
		if (spec_list_add(r->arena, &l, text) < 0)
			return spec_nomem(r->err);
		gpuq_reader_leave(r, mark);
	}
	if (l.n == 0)
		return spec_fail(r, v, GPUQ_EINVAL, "expected a command and its arguments");
	*(struct gpuq_strlist *)out = spec_list_end(&l);
	return 0;
}

static struct gpuq_val *list_write(struct gpuq_arena *a, const void *in)
{
	return write_strlist(a, in);
}

/* ---- host lists ---- */

static int hosts_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct spec_list all = { 0 };
	const size_t n = v->type == GPUQ_LIST ? v->n : 1;

	for (size_t i = 0; i < n; i++) {
		const struct gpuq_val *item = v->type == GPUQ_LIST ? v->items[i] : v;
		struct gpuq_strlist hosts;
		struct gpuq_err err = GPUQ_ERR_INIT;
		const char *text;
		int rc = want_text(r, item, &text);

		if (rc < 0)
			return rc;
		rc = spec_hostlist(r->arena, text, &hosts, &err);
		if (rc < 0)
			return spec_fail(r, item, rc, "%s", err.text);
		for (size_t k = 0; k < hosts.n; k++)
			if (spec_list_add(r->arena, &all, hosts.items[k]) < 0)
				return spec_nomem(r->err);
	}
	*(struct gpuq_strlist *)out = spec_list_end(&all);
	return 0;
}

/* ---- node_selector, affinity, constraint: all of them go into `required` ---- */

static int selector_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	return spec_read_selector(r, v, GROUP_OF(out, required));
}

/* One term of plain equalities is what a node_selector says. */
static bool is_selector(const struct gpuq_group *g)
{
	if (g->n_required != 1)
		return false;
	for (size_t i = 0; i < g->required[0].n; i++) {
		const struct gpuq_require *q = &g->required[0].all[i];

		if (q->op != GPUQ_OP_IN || q->values.n != 1 || strcmp(q->key, "metadata.name") == 0)
			return false;
		for (size_t k = 0; k < i; k++)
			if (strcmp(g->required[0].all[k].key, q->key) == 0)
				return false;
	}
	return true;
}

static struct gpuq_val *selector_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_group *g = CGROUP_OF(in, required);
	struct gpuq_val *v;

	if (!is_selector(g))
		return NULL;
	v = gpuq_map(a);
	for (size_t i = 0; i < g->required[0].n; i++)
		gpuq_put(a, v, g->required[0].all[i].key,
			 gpuq_str(a, g->required[0].all[i].values.items[0]));
	return v;
}

static void preferred_defaults(void *obj)
{
	((struct gpuq_term *)obj)->weight = 0;
}

/* clang-format off */
#define MATCH_FIELD \
	{ .key = "match", .kind = GPUQ_K_OBJECTS, .flags = GPUQ_F_REQUIRED, \
	  .sub = &spec_require_schema, .offset = offsetof(struct gpuq_term, all), \
	  .doc = "Requirements {key, operator, values} that must all hold." }

static const struct gpuq_field required_fields[] = {
	MATCH_FIELD,
	{ .key = NULL },
};

static const struct gpuq_field preferred_fields[] = {
	{ .key = "weight", .kind = GPUQ_K_INT, .flags = GPUQ_F_REQUIRED, .min = 1, .max = 100,
	  .offset = offsetof(struct gpuq_term, weight), .doc = "How much it counts." },
	MATCH_FIELD,
	{ .key = NULL },
};

static const struct gpuq_schema required_schema = {
	.name = "term", .size = sizeof(struct gpuq_term), .fields = required_fields,
};
static const struct gpuq_schema preferred_schema = {
	.name = "preference", .size = sizeof(struct gpuq_term), .fields = preferred_fields,
	.defaults = preferred_defaults,
};

struct affinity {
	struct gpuq_objects required, preferred;
};

static const struct gpuq_field affinity_fields[] = {
	{ .key = "required", .kind = GPUQ_K_OBJECTS, .sub = &required_schema,
	  .offset = offsetof(struct affinity, required), .doc = "One of these terms must hold." },
	{ .key = "preferred", .kind = GPUQ_K_OBJECTS, .sub = &preferred_schema,
	  .offset = offsetof(struct affinity, preferred), .doc = "Terms that make a node better." },
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema affinity_schema = { .name = "affinity",
						    .size = sizeof(struct affinity),
						    .fields = affinity_fields };

static int affinity_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_group *g = GROUP_OF(out, required);
	struct affinity af = { 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = gpuq_schema_read(r, &affinity_schema, v, &af);

	if (rc < 0)
		return rc;
	rc = spec_require(r->arena, g, af.required.items, af.required.n, &err);
	if (rc < 0)
		return spec_fail(r, v, rc, "%s", err.text);
	g->preferred = af.preferred.items;
	g->n_preferred = af.preferred.n;
	return 0;
}

static struct gpuq_val *affinity_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_group *g = CGROUP_OF(in, required);
	struct affinity af = { .preferred = { g->preferred, g->n_preferred } };

	if (!is_selector(g))
		af.required = (struct gpuq_objects){ g->required, g->n_required };
	if (af.required.n == 0 && af.preferred.n == 0)
		return NULL;
	return gpuq_schema_write(a, &affinity_schema, &af);
}

static int constraint_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_term *terms;
	const char *text;
	size_t n;
	int rc = want_text(r, v, &text);

	if (rc < 0)
		return rc;
	rc = spec_constraint_parse(r->arena, text, &terms, &n, &err);
	if (rc == 0)
		rc = spec_require(r->arena, GROUP_OF(out, required), terms, n, &err);
	return rc < 0 ? spec_fail(r, v, rc, "%s", err.text) : 0;
}

static struct gpuq_val *write_nothing(struct gpuq_arena *a, const void *in)
{
	(void)a;
	(void)in;
	return NULL;
}

/* ---- topology ---- */

struct topology {
	const char *required, *preferred;
};

/* clang-format off */
static const struct gpuq_field topology_fields[] = {
	{ .key = "required", .kind = GPUQ_K_STR, .offset = offsetof(struct topology, required),
	  .doc = "All pods in one domain of this level, or no start." },
	{ .key = "preferred", .kind = GPUQ_K_STR, .offset = offsetof(struct topology, preferred),
	  .doc = "All pods in one domain of this level where that can be." },
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema topology_schema = { .name = "topology",
						    .size = sizeof(struct topology),
						    .fields = topology_fields };

static int topology_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_group *g = GROUP_OF(out, topology_required);
	struct topology t = { NULL, NULL };
	int rc = gpuq_schema_read(r, &topology_schema, v, &t);

	if (rc < 0)
		return rc;
	g->topology_required = t.required;
	g->topology_preferred = t.preferred;
	return 0;
}

static struct gpuq_val *topology_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_group *g = CGROUP_OF(in, topology_required);
	const struct topology t = { g->topology_required, g->topology_preferred };

	return t.required || t.preferred ? gpuq_schema_write(a, &topology_schema, &t) : NULL;
}

/* ---- array, depends, signal, licenses, retry, script ---- */

static int array_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *text;
	int rc = want_text(r, v, &text);

	if (rc < 0)
		return rc;
	rc = gpuq_array_parse(r->arena, text, out, &err);
	return rc < 0 ? spec_fail(r, v, rc, "%s", err.text) : 0;
}

static struct gpuq_val *array_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_array *array = in;
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val *v;

	if (array->n_ranges == 0)
		return NULL;
	gpuq_array_print(array, &b);
	if (array->throttle)
		gpuq_buf_printf(&b, "%%%lld", (long long)array->throttle);
	v = b.failed ? NULL : gpuq_strn(a, b.data, b.len);
	gpuq_buf_done(&b);
	return v;
}

static int depends_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_spec *s = SPEC_OF(out, depends);
	const size_t n = v->type == GPUQ_LIST ? v->n : 1;

	for (size_t i = 0; i < n; i++) {
		const struct gpuq_val *item = v->type == GPUQ_LIST ? v->items[i] : v;
		struct gpuq_err err = GPUQ_ERR_INIT;
		const char *text;
		int rc = want_text(r, item, &text);

		if (rc < 0)
			return rc;
		rc = spec_depends_parse(r->arena, text, s, &err);
		if (rc < 0)
			return spec_fail(r, item, rc, "%s", err.text);
		if (s->depends_any && n > 1)
			return spec_fail(r, item, GPUQ_EINVAL,
					 "expected one string such as \"afterok:1?afterok:2\": a "
					 "list means all of them");
	}
	return 0;
}

static struct gpuq_val *depends_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_spec *s = CSPEC_OF(in, depends);
	struct gpuq_val *list = s->n_depends ? gpuq_list(a) : NULL;
	const char *any = "";

	for (size_t i = 0; i < s->n_depends; i++) {
		const char *text = spec_depend_print(a, &s->depends[i]);

		if (s->depends_any && any && text)
			any = gpuq_arena_printf(a, "%s%s%s", any, *any ? "?" : "", text);
		gpuq_add(a, list, gpuq_str(a, text));
	}
	return s->depends_any && s->n_depends > 1 ? gpuq_str(a, any) : list;
}

static int signal_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *text;
	int rc = want_text(r, v, &text);

	if (rc < 0)
		return rc;
	rc = spec_signal_parse(text, SPEC_OF(out, signal), &err);
	return rc < 0 ? spec_fail(r, v, rc, "%s", err.text) : 0;
}

static struct gpuq_val *signal_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_spec *s = CSPEC_OF(in, signal);
	const char *name = gpuq_signal_name(s->signal);
	char number[16];

	if (s->signal == 0)
		return NULL;
	snprintf(number, sizeof(number), "%d", s->signal);
	return gpuq_str(a, gpuq_arena_printf(a, "%s%s@%lld", s->signal_batch_only ? "B:" : "",
					     name ? name : number,
					     (long long)(s->signal_lead_us / GPUQ_US_PER_S)));
}

static int licenses_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_strmap m = { 0 };
	const char *text;
	int rc;

	if (v->type != GPUQ_MAP) {
		rc = want_text(r, v, &text);
		if (rc < 0)
			return rc;
		rc = spec_licenses_parse(r->arena, text, out, &err);
		return rc < 0 ? spec_fail(r, v, rc, "%s", err.text) : 0;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct gpuq_pair *p = &v->pairs[i];
		const size_t mark = gpuq_reader_enter(r, p->key);

		if (!spec_name_ok(p->key) || p->val->type != GPUQ_INT || p->val->i < 1 ||
		    p->val->i > INT32_MAX)
			return spec_fail(r, p->val, GPUQ_EINVAL,
					 "expected NAME: COUNT, a count from 1");
		if (spec_map_set(r->arena, &m, p->key,
				 gpuq_arena_printf(r->arena, "%lld", (long long)p->val->i)) < 0)
			return spec_nomem(r->err);
		gpuq_reader_leave(r, mark);
	}
	*(struct gpuq_strmap *)out = m;
	return 0;
}

static struct gpuq_val *licenses_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_strmap *m = in;
	struct gpuq_val *v = m->n ? gpuq_map(a) : NULL;

	for (size_t i = 0; i < m->n; i++) {
		const char *p = m->vals[i];
		int64_t count = 0;

		spec_digits(&p, 1, INT32_MAX, &count);
		gpuq_put(a, v, m->keys[i], gpuq_int(a, count));
	}
	return v;
}

struct retry {
	int64_t limit;
	struct gpuq_strlist on;
};

/* clang-format off */
static const struct gpuq_field retry_fields[] = {
	{ .key = "limit", .kind = GPUQ_K_INT, .flags = GPUQ_F_REQUIRED, .min = 0, .max = GPUQ_RETRY_MAX,
	  .offset = offsetof(struct retry, limit), .doc = "Attempts beyond the first." },
	{ .key = "on", .kind = GPUQ_K_STRLIST, .offset = offsetof(struct retry, on),
	  .doc = "After what: infra, failure, oom, timeout, exit:CODE. Default: infra and failure." },
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema retry_schema = { .name = "retry",
						 .size = sizeof(struct retry),
						 .fields = retry_fields };

static int retry_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_retry got = { 0 };
	struct retry t = { 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (v->type == GPUQ_INT && v->i >= 0 && v->i <= (int64_t)GPUQ_RETRY_MAX) {
		t.limit = v->i;
	} else {
		rc = gpuq_schema_read(r, &retry_schema, v, &t);
		if (rc < 0)
			return rc;
	}
	got.limit = t.limit;
	for (size_t i = 0; i < t.on.n; i++) {
		rc = spec_retry_word(r->arena, t.on.items[i], &got, &err);
		if (rc < 0)
			return spec_fail(r, v, rc, "on: %s", err.text);
	}
	if (t.on.n == 0 && got.limit > 0)
		got.on = GPUQ_RETRY_INFRA | GPUQ_RETRY_FAILURE;
	*(struct gpuq_retry *)out = got;
	return 0;
}

static struct gpuq_val *retry_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_retry *t = in;
	struct gpuq_val *v, *on;

	if (t->limit == 0 && t->on == 0 && t->n_exits == 0)
		return NULL;
	v = gpuq_map(a);
	gpuq_put(a, v, "limit", gpuq_int(a, t->limit));
	on = gpuq_put(a, v, "on", gpuq_list(a));
	for (int i = 0; spec_retry_words[i]; i++)
		if (t->on & (1u << i))
			gpuq_add(a, on, gpuq_str(a, spec_retry_words[i]));
	for (size_t i = 0; i < t->n_exits; i++)
		gpuq_add(a, on, gpuq_str(a, gpuq_arena_printf(a, "exit:%u", t->exits[i])));
	return v;
}

static int script_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_spec *s = SPEC_OF(out, script);
	const char *text;
	int rc = want_text(r, v, &text);

	if (rc < 0)
		return rc;
	if (v->type == GPUQ_STR && strlen(v->s) != v->n)
		return spec_fail(r, v, GPUQ_EINVAL, "expected text without NUL bytes");
	if (strncmp(text, "#!", 2) != 0)
		text = gpuq_arena_printf(r->arena, "#!/bin/sh\n%s", text);
	if (!text)
		return spec_nomem(r->err);
	s->script = text;
	s->script_bytes = strlen(text);
	return 0;
}

static struct gpuq_val *script_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_spec *s = CSPEC_OF(in, script);

	return s->script ? gpuq_strn(a, s->script, s->script_bytes) : NULL;
}

static const struct gpuq_custom pods_kind = { pods_read, pods_write };
static const struct gpuq_custom gpus_kind = { gpus_read, gpus_write };
static const struct gpuq_custom command_kind = { command_read, list_write };
static const struct gpuq_custom hosts_kind = { hosts_read, list_write };
static const struct gpuq_custom selector_kind = { selector_read, selector_write };
static const struct gpuq_custom affinity_kind = { affinity_read, affinity_write };
static const struct gpuq_custom constraint_kind = { constraint_read, write_nothing };
static const struct gpuq_custom topology_kind = { topology_read, topology_write };
static const struct gpuq_custom array_kind = { array_read, array_write };
static const struct gpuq_custom depends_kind = { depends_read, depends_write };
static const struct gpuq_custom signal_kind = { signal_read, signal_write };
static const struct gpuq_custom licenses_kind = { licenses_read, licenses_write };
static const struct gpuq_custom retry_kind = { retry_read, retry_write };
static const struct gpuq_custom script_kind = { script_read, script_write };

/* ---- the tables ---- */

static int volume_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct gpuq_volume *o = obj;
	const int n = !!o->claim + !!o->config_map + !!o->secret + !!o->host_path +
		      (o->memory_bytes > 0);

	if (n != 1)
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected exactly one of claim, config_map, secret, host_path, memory");
	if (o->path[0] != '/')
		return spec_fail(r, v, GPUQ_EINVAL, "expected path to begin with '/', not '%.80s'",
				 o->path);
	return 0;
}

/* clang-format off */
#define G(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_##kind_, .offset = offsetof(struct gpuq_group, member), __VA_ARGS__ }
#define C(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_CUSTOM, .custom = &kind_##_kind, \
	  .offset = offsetof(struct gpuq_group, member), __VA_ARGS__ }
#define V(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_##kind_, .offset = offsetof(struct gpuq_volume, member), __VA_ARGS__ }
#define J(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_##kind_, .offset = offsetof(struct gpuq_spec, member), __VA_ARGS__ }
#define K(name, kind_, member, ...) \
	{ .key = name, .kind = GPUQ_K_CUSTOM, .custom = &kind_##_kind, \
	  .offset = offsetof(struct gpuq_spec, member), __VA_ARGS__ }

static const struct gpuq_field volume_fields[] = {
	V("claim", STR, claim, .doc = "A PersistentVolumeClaim of the queue's namespace."),
	V("config_map", STR, config_map, .doc = "A ConfigMap of the queue's namespace."),
	V("secret", STR, secret, .doc = "A Secret of the queue's namespace."),
	V("host_path", STR, host_path, .doc = "A directory of the node, where the queue allows it."),
	V("memory", BYTES, memory_bytes, .min = 1, .max = INT64_MAX,
	  .doc = "Memory of this size as a file system, for /dev/shm."),
	V("path", STR, path, .flags = GPUQ_F_REQUIRED, .doc = "Where the pod sees it."),
	V("read_only", BOOL, read_only, .doc = "The pod may not write to it."),
	{ .key = NULL },
};

static const struct gpuq_schema volume_schema = {
	.name = "volume", .size = sizeof(struct gpuq_volume), .fields = volume_fields,
	.check = volume_check,
};

static const struct gpuq_field group_fields[] = {
	G("name", NAME, name, .flags = GPUQ_F_KEY, .doc = "Name of the group; main when there is only one."),
	C("pods", pods, pods_min, .doc = "Pods that start together; {min, max} may grow and shrink."),
	C("gpus", gpus, gpus_milli, .doc = "Devices of each pod; 0.5 is half of one."),
	G("gpu_memory", BYTES, gpu_memory_bytes, .min = 1, .max = INT64_MAX,
	  .doc = "Memory of each device; alone it asks for a share of one device."),
	G("gpu_cores", INT, gpu_cores, .min = 1, .max = 100, .doc = "Percent of each device's cores."),
	G("mig", STR, mig, .doc = "MIG profile, such as 1g.10gb; gpus counts instances then."),
	G("cpus", MILLI, cpu_milli, .min = 0, .max = INT64_MAX,
	  .doc = "CPUs of each pod; default 1, not counted for pods with devices."),
	G("memory", BYTES, memory_bytes, .min = 0, .max = INT64_MAX, .doc = "Memory of each pod; not counted when absent."),
	G("image", STR, image, .doc = "Container image; the queue may have a default."),
	C("command", command, command, .doc = "Program and arguments; a string is run by /bin/sh -c."),
	G("args", STRLIST, args, .doc = "More arguments, behind the command."),
	G("env", STRMAP, env, .doc = "Environment variables."),
	G("volumes", OBJECTS, volumes, .sub = &volume_schema, .doc = "What is mounted into each pod."),
	G("workdir", STR, workdir, .doc = "Working directory in the container."),
	C("topology", topology, topology_required, .doc = "{required: LEVEL} or {preferred: LEVEL}: keep the pods close."),
	C("node_selector", selector, required, .doc = "Labels a node must have."),
	C("affinity", affinity, required, .doc = "{required, preferred}: terms over node labels."),
	C("constraint", constraint, required, .doc = "As sbatch --constraint: a&b, a|b, key=value."),
	G("tolerations", OBJECTS, tolerations, .sub = &spec_toleration_schema, .doc = "Taints it does not mind."),
	C("nodes", hosts, nodes, .doc = "Only these nodes; n[1-4] is four."),
	C("exclude", hosts, exclude, .doc = "None of these nodes."),
	G("template", VAL, template_, .flags = GPUQ_F_HIDDEN,
	  .doc = "Pod template of a manifest; the fields above are read from it."),
	{ .key = NULL },
};

const struct gpuq_schema gpuq_group_schema = {
	.name = "group", .size = sizeof(struct gpuq_group), .fields = group_fields,
	.defaults = spec_group_defaults, .check = spec_check_group,
};

static const struct gpuq_field checkpoint_fields[] = {
	{ .key = "signal", .kind = GPUQ_K_SIGNAL, .offset = offsetof(struct gpuq_checkpoint, signal),
	  .doc = "Sent when the job must leave." },
	{ .key = "grace", .kind = GPUQ_K_DURATION, .offset = offsetof(struct gpuq_checkpoint, grace_us),
	  .doc = "Time between that signal and the end." },
	{ .key = "interval", .kind = GPUQ_K_DURATION,
	  .offset = offsetof(struct gpuq_checkpoint, interval_us), .doc = "How often it saves itself." },
	{ .key = NULL },
};
static const struct gpuq_schema checkpoint_schema = {
	.name = "checkpoint", .size = sizeof(struct gpuq_checkpoint), .fields = checkpoint_fields,
};

static void context_defaults(void *obj)
{
	((struct gpuq_context *)obj)->umask = -1;
}

static const struct gpuq_field context_fields[] = {
	{ .key = "cwd", .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_context, cwd),
	  .doc = "Where it was submitted." },
	{ .key = "environ", .kind = GPUQ_K_STRMAP, .offset = offsetof(struct gpuq_context, environ),
	  .doc = "The submitter's environment." },
	{ .key = "umask", .kind = GPUQ_K_INT, .min = -1, .max = 0777,
	  .offset = offsetof(struct gpuq_context, umask), .doc = "The submitter's umask." },
	{ .key = NULL },
};
static const struct gpuq_schema context_schema = {
	.name = "context", .size = sizeof(struct gpuq_context), .fields = context_fields,
	.defaults = context_defaults,
};

static const struct gpuq_field spec_fields[] = {
	J("name", NAME, name, .doc = "Name of the job; default: the file's or the command's."),
	J("queue", NAME, queue, .doc = "Queue; default: the user's, else `default`."),
	J("account", NAME, account, .doc = "Recorded with the job, for reports."),
	J("namespace", NAME, namespace_, .doc = "Must be the queue's when it is given."),
	J("qos", NAME, qos, .doc = "Quality of service; default: normal."),
	J("time", DURATION, time_us, .min = 1, .max = INT64_MAX, .doc = "Walltime; default: the queue's."),
	J("begin", INSTANT, begin_us, .doc = "Not before this time."),
	J("deadline", INSTANT, deadline_us, .doc = "Must have ended by then."),
	J("nice", INT, nice, .min = -1000000, .max = 1000000, .doc = "Larger waits longer."),
	J("hold", BOOL, hold, .doc = "Waits until it is released."),
	J("requeue", BOOL, requeue, .doc = "May start again after an eviction; default true."),
	J("reservation", NAME, reservation, .doc = "Runs inside this reservation."),
	J("flavor", STRLIST, flavors, .doc = "Kinds of device, in order of preference."),
	K("licenses", licenses, licenses, .doc = "Licenses it takes: {NAME: COUNT}."),
	J("exclusive", BOOL, exclusive, .doc = "Whole nodes for itself."),
	K("array", array, array, .doc = "One job for each index: 0-99%10 (at most 10 at once)."),
	K("depends", depends, depends, .doc = "Jobs it waits for: [afterok:123]."),
	J("kill_on_invalid_dep", BOOL, kill_on_invalid_dep,
	  .doc = "Cancelled when what it waits for cannot happen any more."),
	K("retry", retry, retry, .doc = "{limit: N, on: [...]}: start again after a failure."),
	J("checkpoint", OBJECT, checkpoint, .sub = &checkpoint_schema, .doc = "How it saves itself."),
	J("grace", DURATION, grace_us, .doc = "Between TERM and KILL; default 30s."),
	K("signal", signal, signal, .doc = "[B:]SIGNAL[@SECONDS] before the walltime ends."),
	K("script", script, script, .doc = "Text of a script to run; /bin/sh without a #! line."),
	J("script_args", STRLIST, script_args, .doc = "The script's arguments."),
	J("ntasks", INT, ntasks, .min = 0, .max = INT32_MAX, .doc = "Becomes GPUQ_NTASKS."),
	J("ntasks_per_node", INT, ntasks_per_node, .min = 0, .max = INT32_MAX,
	  .doc = "Becomes GPUQ_NTASKS_PER_NODE."),
	J("cpus_per_task", INT, cpus_per_task, .min = 0, .max = INT32_MAX,
	  .doc = "Becomes GPUQ_CPUS_PER_TASK."),
	J("chdir", STR, chdir, .doc = "Working directory on the local cluster."),
	J("output", STR, output, .doc = "Output file there; sbatch's patterns (%j, %x...)."),
	J("error", STR, error, .doc = "Error file there."),
	J("input", STR, input, .doc = "Input file there."),
	J("append", BOOL, append, .doc = "Append to these files."),
	J("comment", STR, comment, .doc = "Any text."),
	J("mail_type", STRLIST, mail_type, .doc = "When to tell mail_user: BEGIN, END, FAIL..."),
	J("mail_user", STR, mail_user, .doc = "Whom to tell."),
	J("labels", STRMAP, labels, .doc = "Put on the pods."),
	J("annotations", STRMAP, annotations, .doc = "Put on the pods."),
	J("context", OBJECT, context, .sub = &context_schema, .flags = GPUQ_F_HIDDEN,
	  .doc = "How it was submitted; written by gpuq."),
	J("groups", OBJECTS, groups, .sub = &gpuq_group_schema,
	  .doc = "Several kinds of pods; fields of a group at top level go for all of them."),
	{ .key = NULL },
};
/* clang-format on */

const struct gpuq_schema gpuq_spec_schema = {
	.name = "job",
	.size = sizeof(struct gpuq_spec),
	.fields = spec_fields,
	.defaults = spec_defaults,
	.check = spec_check,
};

/* ---- both tables as one map ---- */

static bool has_field(const struct gpuq_schema *schema, const char *key)
{
	for (const struct gpuq_field *f = schema->fields; f->key; f++)
		if (strcmp(f->key, key) == 0)
			return true;
	return false;
}

/* "name" at top level is the job's. */
static bool is_group_key(const char *key)
{
	return strcmp(key, "name") != 0 && has_field(&gpuq_group_schema, key);
}

static int unknown_key(struct gpuq_reader *r, const struct gpuq_pair *p)
{
	const char *names[sizeof(spec_fields) / sizeof(spec_fields[0]) +
			  sizeof(group_fields) / sizeof(group_fields[0])];
	const struct gpuq_val at = { .at = p->at };
	const char *near;
	size_t n = 0;

	for (const struct gpuq_field *f = spec_fields; f->key; f++)
		names[n++] = f->key;
	for (const struct gpuq_field *f = group_fields; f->key; f++)
		names[n++] = f->key;
	names[n] = NULL;
	near = gpuq_nearest(p->key, names);
	gpuq_reader_enter(r, p->key);
	if (near)
		return spec_fail(r, &at, GPUQ_EINVAL, "unknown key; did you mean '%s'?", near);
	return spec_fail(r, &at, GPUQ_EINVAL, "unknown key of a job (gpuq-job(5) lists them)");
}

/* Each item of list with what the top level says for all groups behind it. */
static struct gpuq_val *groups_with(struct gpuq_arena *a, const struct gpuq_val *list,
				    const struct gpuq_val *common)
{
	struct gpuq_val *out = gpuq_list(a);

	for (size_t i = 0; i < list->n; i++) {
		const struct gpuq_val *item = list->items[i];
		struct gpuq_val *merged = gpuq_map(a);

		if (item->type != GPUQ_MAP || !merged) {
			gpuq_add(a, out, list->items[i]);
			continue;
		}
		merged->at = item->at;
		for (size_t k = 0; k < item->n; k++) {
			gpuq_put(a, merged, item->pairs[k].key, item->pairs[k].val);
			merged->pairs[merged->n - 1].at = item->pairs[k].at;
		}
		for (size_t k = 0; k < common->n; k++)
			if (!gpuq_get(item, common->pairs[k].key))
				gpuq_put(a, merged, common->pairs[k].key, common->pairs[k].val);
		gpuq_add(a, out, merged);
	}
	if (out)
		out->at = list->at;
	return out;
}

static int put_pair(struct gpuq_arena *a, struct gpuq_val *map, const struct gpuq_pair *p)
{
	if (!gpuq_put(a, map, p->key, p->val))
		return GPUQ_ENOMEM;
	map->pairs[map->n - 1].at = p->at;
	return 0;
}

int spec_tree_read(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_spec *out)
{
	struct gpuq_val *job = gpuq_map(r->arena), *group = gpuq_map(r->arena);
	const struct gpuq_val *groups = gpuq_get(v, "groups");
	struct gpuq_spec spec;
	int rc;

	if (!v || v->type != GPUQ_MAP)
		return spec_fail(r, v, GPUQ_EINVAL, "expected a job: a map of keys such as command");
	if (!job || !group)
		return spec_nomem(r->err);
	job->at = group->at = v->at;
	for (size_t i = 0; i < v->n; i++) {
		const struct gpuq_pair *p = &v->pairs[i];

		if (p->val == groups)
			continue;
		if (is_group_key(p->key))
			rc = put_pair(r->arena, group, p);
		else if (has_field(&gpuq_spec_schema, p->key))
			rc = put_pair(r->arena, job, p);
		else if (r->lenient)
			rc = 0;
		else
			return unknown_key(r, p);
		if (rc < 0)
			return spec_nomem(r->err);
	}
	if (groups && groups->type == GPUQ_LIST && groups->n) {
		struct gpuq_val *list = groups_with(r->arena, groups, group);

		if (!list || list->n != groups->n || !gpuq_put(r->arena, job, "groups", list))
			return spec_nomem(r->err);
	} else if (groups && groups->type != GPUQ_NULL) {
		gpuq_reader_enter(r, "groups");
		return spec_fail(r, groups, GPUQ_EINVAL, "expected a list of groups, at least one");
	}
	rc = gpuq_schema_read(r, &gpuq_spec_schema, job, &spec);
	if (rc < 0)
		return rc;
	if (spec.n_groups == 0) {
		spec.groups = gpuq_arena_calloc(r->arena, 1, sizeof(*spec.groups));
		if (!spec.groups)
			return spec_nomem(r->err);
		rc = gpuq_schema_read(r, &gpuq_group_schema, group, &spec.groups[0]);
		if (rc < 0)
			return rc;
		spec.n_groups = 1;
	}
	rc = spec_check_whole(r, v, &spec);
	if (rc < 0)
		return rc;
	*out = spec;
	return 0;
}

int gpuq_spec_read(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_spec *out)
{
	int rc = spec_tree_read(r, v, out);

	if (rc == 0 && !out->name)
		out->name = "job";
	return rc;
}

struct gpuq_val *gpuq_spec_write(struct gpuq_arena *a, const struct gpuq_spec *spec)
{
	struct gpuq_spec top = *spec;
	struct gpuq_val *v, *group;

	if (spec->n_groups != 1 || strcmp(spec->groups[0].name, "main") != 0)
		return gpuq_schema_write(a, &gpuq_spec_schema, spec);
	top.groups = NULL;
	top.n_groups = 0;
	v = gpuq_schema_write(a, &gpuq_spec_schema, &top);
	group = gpuq_schema_write(a, &gpuq_group_schema, &spec->groups[0]);
	if (!v || !group)
		return NULL;
	gpuq_unset(group, "name");
	for (size_t i = 0; i < group->n; i++)
		if (put_pair(a, v, &group->pairs[i]) < 0)
			return NULL;
	return v;
}
