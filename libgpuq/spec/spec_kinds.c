/* The kinds of value in a job that are more than a scalar: how each is read, and how
 * it is written in the one form that reads back. */
#include "libgpuq/spec/spec_kinds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* As GROUP_OF, of the job. */
#define SPEC_OF(p, field) ((struct gpuq_spec *)((char *)(p)-offsetof(struct gpuq_spec, field)))
#define CSPEC_OF(p, field)                                                                         \
	((const struct gpuq_spec *)((const char *)(p)-offsetof(struct gpuq_spec, field)))

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
	  .offset = offsetof(struct pods, min), .doc = "Minimum number of pods." },
	{ .key = "max", .kind = GPUQ_K_INT, .flags = GPUQ_F_REQUIRED, .min = 1, .max = GPUQ_PODS_MAX,
	  .offset = offsetof(struct pods, max), .doc = "Maximum number of pods." },
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema pods_schema = { .name = "range of pods",
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

/* ---- gpus: whole devices, or a part of one ---- */

static int gpus_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	const int64_t most = GPUQ_GPUS_PER_POD_MAX;
	int64_t milli = -1, rounded;
	double d = -1, asked = NAN;
	char near[SPEC_NEAREST_ROOM];

	if (v->type == GPUQ_INT)
		asked = (double)v->i;
	if (v->type == GPUQ_INT && v->i >= 0 && v->i <= most)
		milli = 1000 * v->i;
	else if (v->type == GPUQ_REAL)
		d = v->d;
	else if (v->type == GPUQ_STR && gpuq_milli_parse(v->s, &milli, NULL) == 0)
		d = (double)milli / 1000; /* also "500m" */
	if (v->type == GPUQ_REAL || d >= 0)
		asked = d;
	/* A quantity that is finer would be rounded to more than was asked. Those finer than a hundredth are what claims of
	 * parts of cards count: check_devices(). */
	rounded = d >= 0 && d <= (double)most ? (int64_t)(d * 1000 + 0.5) : -1;
	if (rounded >= 0 && fabs(d * 1000 - (double)rounded) < 1e-6)
		milli = rounded;
	else if (d != -1)
		milli = -1;
	if (milli < 0 || (milli > 1000 && milli % 1000))
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected whole devices (0 to %u) or a part of one in hundredths "
				 "(0.01 to 0.99)%s",
				 GPUQ_GPUS_PER_POD_MAX,
				 spec_nearest_devices(asked, (double)most, near));
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
			return gpuq_no_memory(r->err);
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
			return gpuq_no_memory(r->err);
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
		if (all.n + hosts.n > GPUQ_PODS_MAX)
			return spec_fail(r, item, GPUQ_ERANGE, "expected at most %u node names",
					 GPUQ_PODS_MAX);
		for (size_t k = 0; k < hosts.n; k++)
			if (spec_list_add(r->arena, &all, hosts.items[k]) < 0)
				return gpuq_no_memory(r->err);
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
	  .offset = offsetof(struct gpuq_term, weight), .doc = "Weight of the term." },
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
	  .offset = offsetof(struct affinity, preferred), .doc = "Preferred terms." },
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
	/* Those of sbatch's option alone: how many pods there are is known behind all options only. */
	if (strchr(text, '['))
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected labels without brackets, such as a|b, not '%.80s'",
				 text);
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
	struct gpuq_objects slices; /* struct gpuq_slice */
};

/* clang-format off */
static const struct gpuq_field slice_fields[] = {
	{ .key = "level", .kind = GPUQ_K_STR, .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct gpuq_slice, level), .doc = "Level of the domain." },
	{ .key = "size", .kind = GPUQ_K_INT, .flags = GPUQ_F_REQUIRED, .min = 1, .max = GPUQ_PODS_MAX,
	  .offset = offsetof(struct gpuq_slice, size), .doc = "Number of pods in one domain." },
	{ .key = NULL },
};

static const struct gpuq_schema slice_schema = {
	.name = "slice", .size = sizeof(struct gpuq_slice), .fields = slice_fields,
};

static const struct gpuq_field topology_fields[] = {
	{ .key = "required", .kind = GPUQ_K_STR, .offset = offsetof(struct topology, required),
	  .doc = "Level of one domain for all pods; required." },
	{ .key = "preferred", .kind = GPUQ_K_STR, .offset = offsetof(struct topology, preferred),
	  .doc = "Level of one domain for all pods, if possible." },
	{ .key = "slices", .kind = GPUQ_K_OBJECTS, .sub = &slice_schema,
	  .offset = offsetof(struct topology, slices),
	  .doc = "Every SIZE pods in one domain of LEVEL, or no start; outermost first." },
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema topology_schema = { .name = "topology",
						    .size = sizeof(struct topology),
						    .fields = topology_fields };

static int topology_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_group *g = GROUP_OF(out, topology_required);
	struct topology t = { 0 };
	const struct gpuq_slice *slices;
	int rc = gpuq_schema_read(r, &topology_schema, v, &t);

	if (rc < 0)
		return rc;
	slices = t.slices.items;
	if (t.slices.n > GPUQ_SLICES_MAX)
		return spec_fail(r, v, GPUQ_ERANGE, "expected at most %u layers of slices",
				 GPUQ_SLICES_MAX);
	for (size_t i = 1; i < t.slices.n; i++)
		if (slices[i - 1].size % slices[i].size)
			return spec_fail(r, v, GPUQ_EINVAL,
					 "slices of %lld pods cannot consist of slices of %lld",
					 (long long)slices[i - 1].size, (long long)slices[i].size);
	g->topology_required = t.required;
	g->topology_preferred = t.preferred;
	g->slices = t.slices.items;
	g->n_slices = t.slices.n;
	return 0;
}

static struct gpuq_val *topology_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_group *g = CGROUP_OF(in, topology_required);
	const struct topology t = { g->topology_required,
				    g->topology_preferred,
				    { g->slices, g->n_slices } };

	return t.required || t.preferred || t.slices.n ? gpuq_schema_write(a, &topology_schema, &t)
						       : NULL;
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
		const char *text = gpuq_depend_print(a, &s->depends[i]);

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
		rc = spec_map_set(r->arena, &m, p->key,
				  gpuq_arena_printf(r->arena, "%lld", (long long)p->val->i));
		if (rc < 0)
			return spec_map_failed(r->err, rc);
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
	  .offset = offsetof(struct retry, limit), .doc = "Number of retries." },
	{ .key = "on", .kind = GPUQ_K_STRLIST, .offset = offsetof(struct retry, on),
	  .doc = "Causes: infra, failure, oom, timeout, exit:CODE. Default: infra and failure." },
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

	if (v->type == GPUQ_INT) {
		t.limit = v->i;
		if (v->i < 0 || v->i > (int64_t)GPUQ_RETRY_MAX)
			return spec_fail(r, v, GPUQ_ERANGE, "expected 0 to %u", GPUQ_RETRY_MAX);
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
		return gpuq_no_memory(r->err);
	s->script = text;
	s->script_bytes = strlen(text);
	return 0;
}

static struct gpuq_val *script_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_spec *s = CSPEC_OF(in, script);

	return s->script ? gpuq_strn(a, s->script, s->script_bytes) : NULL;
}

const struct gpuq_custom spec_pods_kind = { pods_read, pods_write };
const struct gpuq_custom spec_gpus_kind = { gpus_read, gpus_write };
const struct gpuq_custom spec_command_kind = { command_read, list_write };
const struct gpuq_custom spec_hosts_kind = { hosts_read, list_write };
const struct gpuq_custom spec_selector_kind = { selector_read, selector_write };
const struct gpuq_custom spec_affinity_kind = { affinity_read, affinity_write };
const struct gpuq_custom spec_constraint_kind = { constraint_read, write_nothing };
const struct gpuq_custom spec_topology_kind = { topology_read, topology_write };
const struct gpuq_custom spec_array_kind = { array_read, array_write };
const struct gpuq_custom spec_depends_kind = { depends_read, depends_write };
const struct gpuq_custom spec_signal_kind = { signal_read, signal_write };
const struct gpuq_custom spec_licenses_kind = { licenses_read, licenses_write };
const struct gpuq_custom spec_retry_kind = { retry_read, retry_write };
const struct gpuq_custom spec_script_kind = { script_read, script_write };
