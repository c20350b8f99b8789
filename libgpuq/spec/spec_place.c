/* Where a pod may run: host lists, constraints, node selectors, affinity, tolerations. */
#include "libgpuq/spec/spec_int.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/hostlist.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/toleration.h"

#define TERMS_MAX 64u /* of one group: each is tried on each node */

/* ---- host lists ---- */

int spec_hostlist(struct gpuq_arena *a, const char *text, struct gpuq_strlist *out,
		  struct gpuq_err *err)
{
	struct gpuq_val *list = gpuq_list(a);
	const char **names;
	int rc = hostlist_expand(a, text, HOSTLIST_NAMES, list, err);

	if (rc < 0)
		return rc;
	names = gpuq_arena_calloc(a, list->n, sizeof(*names));
	if (!names)
		return gpuq_no_memory(err);
	for (uint32_t i = 0; i < list->n; i++)
		names[i] = list->items[i]->s;
	*out = (struct gpuq_strlist){ names, list->n };
	return 0;
}

/* ---- terms ---- */

static int terms_and(struct gpuq_arena *a, const struct gpuq_term *x, size_t nx,
		     const struct gpuq_term *y, size_t ny, struct gpuq_term **out, size_t *n,
		     struct gpuq_err *err)
{
	struct gpuq_term *t;

	if (nx * ny > TERMS_MAX)
		return gpuq_fail(
			err, GPUQ_ERANGE,
			"expected at most %u alternatives of node requirements, these make %zu",
			TERMS_MAX, nx * ny);
	t = gpuq_arena_calloc(a, nx * ny, sizeof(*t));
	if (!t)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < nx * ny; i++) {
		const struct gpuq_term *l = &x[i / ny], *r = &y[i % ny];

		t[i].n = l->n + r->n;
		t[i].all = gpuq_arena_calloc(a, t[i].n, sizeof(*t[i].all));
		if (!t[i].all)
			return gpuq_no_memory(err);
		if (l->n)
			memcpy(t[i].all, l->all, l->n * sizeof(*l->all));
		if (r->n)
			memcpy(t[i].all + l->n, r->all, r->n * sizeof(*r->all));
	}
	*out = t;
	*n = nx * ny;
	return 0;
}

static int terms_or(struct gpuq_arena *a, const struct gpuq_term *x, size_t nx,
		    const struct gpuq_term *y, size_t ny, struct gpuq_term **out, size_t *n,
		    struct gpuq_err *err)
{
	struct gpuq_term *t;

	if (nx + ny > TERMS_MAX)
		return gpuq_fail(err, GPUQ_ERANGE,
				 "expected at most %u alternatives of node requirements",
				 TERMS_MAX);
	t = gpuq_arena_calloc(a, nx + ny, sizeof(*t));
	if (!t)
		return gpuq_no_memory(err);
	memcpy(t, x, nx * sizeof(*t));
	memcpy(t + nx, y, ny * sizeof(*t));
	*out = t;
	*n = nx + ny;
	return 0;
}

int spec_require(struct gpuq_arena *a, struct gpuq_group *g, const struct gpuq_term *terms,
		 size_t n, struct gpuq_err *err)
{
	static const struct gpuq_term anything = { 0 };

	if (n == 0)
		return 0;
	if (g->n_required == 0)
		return terms_and(a, &anything, 1, terms, n, &g->required, &g->n_required, err);
	return terms_and(a, g->required, g->n_required, terms, n, &g->required, &g->n_required,
			 err);
}

/* ---- Slurm's constraint ---- */

struct constraint {
	struct gpuq_arena *a;
	const char *text, *p;
	struct gpuq_err *err;
	int depth;
};

struct terms {
	struct gpuq_term *t;
	size_t n;
};

static int constraint_bad(struct constraint *c)
{
	return gpuq_fail(
		c->err, GPUQ_EINVAL,
		"expected labels of nodes such as a100, zone=b, a&b, (a|b)&!c, not '%.80s'",
		c->text);
}

/* gpu*4, [a*2&b*4]: so many nodes with the label. */
static int counted(struct constraint *c)
{
	return gpuq_fail(c->err, GPUQ_EINVAL,
			 "'%.80s': counts of nodes for each label are not offered: --nodes for all "
			 "of them, or groups of a job file with a count each",
			 c->text);
}

static int constraint_or(struct constraint *c, struct terms *out);

static int constraint_word(struct constraint *c, struct terms *out)
{
	const char *start;
	struct gpuq_require *r;
	bool not = false;
	size_t n;

	while (isspace((unsigned char)*c->p))
		c->p++;
	/* Brackets: the same one for all nodes of a job; see spec_opts_end(). */
	if (*c->p == '(' || *c->p == '[') {
		const char end = *c->p == '(' ? ')' : ']';
		int rc;

		c->p++;
		if (++c->depth > 16)
			return constraint_bad(c);
		rc = constraint_or(c, out);
		if (rc < 0)
			return rc;
		if (*c->p != end)
			return constraint_bad(c);
		c->p++;
		c->depth--;
		return 0;
	}
	if (*c->p == '!') {
		not = true;
		c->p++;
	}
	start = c->p;
	while (isalnum((unsigned char)*c->p) || (*c->p && strchr("._-/", *c->p)))
		c->p++;
	n = (size_t)(c->p - start);
	if (n == 0)
		return constraint_bad(c);
	out->t = gpuq_arena_calloc(c->a, 1, sizeof(*out->t));
	r = gpuq_arena_calloc(c->a, 1, sizeof(*r));
	if (!out->t || !r)
		return gpuq_no_memory(c->err);
	r->key = gpuq_arena_strndup(c->a, start, n);
	r->op = not ? GPUQ_OP_NOT_EXISTS : GPUQ_OP_EXISTS;
	if (*c->p == '=') {
		struct spec_list l = { 0 };

		start = ++c->p;
		while (isalnum((unsigned char)*c->p) || (*c->p && strchr("._-", *c->p)))
			c->p++;
		r->op = not ? GPUQ_OP_NOT_IN : GPUQ_OP_IN;
		if (spec_list_add(c->a, &l,
				  gpuq_arena_strndup(c->a, start, (size_t)(c->p - start))) < 0)
			return gpuq_no_memory(c->err);
		r->values = spec_list_end(&l);
	}
	if (!r->key)
		return gpuq_no_memory(c->err);
	*out->t = (struct gpuq_term){ .all = r, .n = 1 };
	out->n = 1;
	while (isspace((unsigned char)*c->p))
		c->p++;
	return 0;
}

static int constraint_and(struct constraint *c, struct terms *out)
{
	int rc = constraint_word(c, out);

	while (rc == 0 && (*c->p == '&' || *c->p == ',')) {
		struct terms more = { 0 };

		c->p++;
		rc = constraint_word(c, &more);
		if (rc == 0)
			rc = terms_and(c->a, out->t, out->n, more.t, more.n, &out->t, &out->n,
				       c->err);
	}
	return rc;
}

static int constraint_or(struct constraint *c, struct terms *out)
{
	int rc = constraint_and(c, out);

	while (rc == 0 && *c->p == '|') {
		struct terms more = { 0 };

		c->p++;
		rc = constraint_and(c, &more);
		if (rc == 0)
			rc = terms_or(c->a, out->t, out->n, more.t, more.n, &out->t, &out->n,
				      c->err);
	}
	return rc;
}

int spec_constraint_parse(struct gpuq_arena *a, const char *text, struct gpuq_term **terms,
			  size_t *n, struct gpuq_err *err)
{
	struct constraint c = { .a = a, .text = text, .p = text, .err = err };
	struct terms out = { 0 };
	int rc;

	if (strlen(text) > GPUQ_TEXT_BYTES_MAX)
		return gpuq_fail(err, GPUQ_ERANGE, "expected at most %u bytes",
				 GPUQ_TEXT_BYTES_MAX);
	rc = constraint_or(&c, &out);
	if (rc < 0)
		return *c.p == '*' ? counted(&c) : rc;
	if (*c.p == '*')
		return counted(&c);
	if (*c.p)
		return constraint_bad(&c);
	*terms = out.t;
	*n = out.n;
	return 0;
}

/* ---- requirements as Kubernetes writes them ---- */

const char *const spec_op_names[] = { "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", NULL };

static int require_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct gpuq_require *q = obj;
	const char *p;
	int64_t n;

	switch (q->op) {
	case GPUQ_OP_EXISTS:
	case GPUQ_OP_NOT_EXISTS:
		if (q->values.n)
			return spec_fail(r, v, GPUQ_EINVAL, "expected no values with operator %s",
					 spec_op_names[q->op]);
		return 0;
	case GPUQ_OP_GT:
	case GPUQ_OP_LT:
		p = q->values.n ? q->values.items[0] : "";
		if (*p == '-')
			p++;
		if (q->values.n != 1 || !spec_digits(&p, 0, INT64_MAX, &n) || *p)
			return spec_fail(r, v, GPUQ_EINVAL,
					 "expected values with one integer for operator %s",
					 spec_op_names[q->op]);
		return 0;
	default:
		if (q->values.n == 0)
			return spec_fail(r, v, GPUQ_EINVAL,
					 "expected at least one of values with operator %s",
					 spec_op_names[q->op]);
		return 0;
	}
}

/* clang-format off */
static const struct gpuq_field require_fields[] = {
	{ .key = "key", .kind = GPUQ_K_STR, .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct gpuq_require, key), .doc = "Label of nodes." },
	{ .key = "operator", .kind = GPUQ_K_ENUM, .flags = GPUQ_F_REQUIRED,
	  .offset = offsetof(struct gpuq_require, op), .names = spec_op_names,
	  .doc = "How the label's value is compared." },
	{ .key = "values", .kind = GPUQ_K_STRLIST, .offset = offsetof(struct gpuq_require, values),
	  .doc = "Values to compare with." },
	{ .key = NULL },
};
/* clang-format on */

/* The operator is always written: there is no default to leave out. */
static void require_defaults(void *obj)
{
	((struct gpuq_require *)obj)->op = -1;
}

const struct gpuq_schema spec_require_schema = {
	.name = "requirement",
	.size = sizeof(struct gpuq_require),
	.fields = require_fields,
	.defaults = require_defaults,
	.check = require_check,
};

int spec_read_selector(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_group *g)
{
	struct gpuq_term term = { 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (v->type == GPUQ_NULL)
		return 0;
	if (v->type != GPUQ_MAP)
		return spec_fail(r, v, GPUQ_EINVAL, "expected a map of labels, not %s",
				 gpuq_type_name(v->type));
	term.all = gpuq_arena_calloc(r->arena, v->n, sizeof(*term.all));
	if (!term.all)
		return gpuq_no_memory(r->err);
	for (; term.n < v->n; term.n++) {
		const struct gpuq_pair *p = &v->pairs[term.n];
		const size_t mark = gpuq_reader_enter(r, p->key);
		const char *text = spec_scalar(r->arena, p->val);
		struct spec_list l = { 0 };

		if (!text)
			return spec_fail(r, p->val, GPUQ_EINVAL, "expected a string, not %s",
					 gpuq_type_name(p->val->type));
		if (spec_list_add(r->arena, &l, text) < 0)
			return gpuq_no_memory(r->err);
		term.all[term.n].key = p->key;
		term.all[term.n].op = GPUQ_OP_IN;
		term.all[term.n].values = spec_list_end(&l);
		gpuq_reader_leave(r, mark);
	}
	if (term.n == 0)
		return 0;
	rc = spec_require(r->arena, g, &term, 1, &err);
	return rc < 0 ? spec_fail(r, v, rc, "%s", err.text) : 0;
}

/* matchExpressions and matchFields of one nodeSelectorTerm. */
static int read_kube_term(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_term *out)
{
	static const char *const keys[] = { "matchExpressions", "matchFields", NULL };
	size_t n = 0;

	if (v->type != GPUQ_MAP)
		return spec_fail(r, v, GPUQ_EINVAL, "expected a map with matchExpressions, not %s",
				 gpuq_type_name(v->type));
	for (int k = 0; keys[k]; k++) {
		const struct gpuq_val *list = gpuq_get(v, keys[k]);

		if (list && list->type == GPUQ_LIST)
			n += list->n;
	}
	out->all = gpuq_arena_calloc(r->arena, n, sizeof(*out->all));
	if (!out->all)
		return gpuq_no_memory(r->err);
	for (int k = 0; keys[k]; k++) {
		const struct gpuq_val *list = gpuq_get(v, keys[k]);
		const size_t mark = gpuq_reader_enter(r, keys[k]);

		if (list && list->type != GPUQ_LIST && list->type != GPUQ_NULL)
			return spec_fail(r, list, GPUQ_EINVAL, "expected a list, not %s",
					 gpuq_type_name(list->type));
		for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
			const size_t item = gpuq_reader_enter_item(r, i);
			struct gpuq_require *q = &out->all[out->n];
			int rc = gpuq_schema_read(r, &spec_require_schema, list->items[i], q);

			if (rc < 0)
				return rc;
			if (k == 1 && strcmp(q->key, "metadata.name") != 0)
				return spec_fail(r, list->items[i], GPUQ_EINVAL,
						 "expected key metadata.name: nodes have no other "
						 "field to match");
			out->n++;
			gpuq_reader_leave(r, item);
		}
		gpuq_reader_leave(r, mark);
	}
	return 0;
}

static int read_required(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_group *g)
{
	const struct gpuq_val *list = gpuq_get(v, "nodeSelectorTerms");
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_term *terms;
	size_t n = 0, mark;
	int rc;

	if (!list || list->type != GPUQ_LIST || list->n == 0)
		return spec_fail(r, list ? list : v, GPUQ_EINVAL,
				 "expected nodeSelectorTerms: a list of at least one term");
	mark = gpuq_reader_enter(r, "nodeSelectorTerms");
	terms = gpuq_arena_calloc(r->arena, list->n, sizeof(*terms));
	if (!terms)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < list->n; i++) {
		const size_t item = gpuq_reader_enter_item(r, i);

		rc = read_kube_term(r, list->items[i], &terms[n]);
		if (rc < 0)
			return rc;
		n += terms[n].n > 0; /* an empty term matches no node, says Kubernetes */
		gpuq_reader_leave(r, item);
	}
	if (n == 0)
		return spec_fail(
			r, list, GPUQ_EINVAL,
			"expected a term with matchExpressions: empty terms match no node");
	rc = spec_require(r->arena, g, terms, n, &err);
	if (rc < 0)
		return spec_fail(r, list, rc, "%s", err.text);
	gpuq_reader_leave(r, mark);
	return 0;
}

static int read_preferred(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_group *g)
{
	if (v->type != GPUQ_LIST)
		return spec_fail(r, v, GPUQ_EINVAL, "expected a list, not %s",
				 gpuq_type_name(v->type));
	if (v->n > TERMS_MAX)
		return spec_fail(r, v, GPUQ_ERANGE, "expected at most %u preferences", TERMS_MAX);
	g->preferred = gpuq_arena_calloc(r->arena, v->n, sizeof(*g->preferred));
	if (!g->preferred)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < v->n; i++) {
		const size_t item = gpuq_reader_enter_item(r, i);
		const struct gpuq_val *term = gpuq_get(v->items[i], "preference");
		struct gpuq_term *t = &g->preferred[g->n_preferred];
		size_t mark;
		int rc;

		if (!term)
			return spec_fail(r, v->items[i], GPUQ_EINVAL,
					 "expected a map with weight and preference");
		t->weight = 0;
		rc = spec_want_int(r, v->items[i], "weight", 1, 100, &t->weight);
		if (rc < 0)
			return rc;
		if (t->weight == 0)
			return spec_fail(r, v->items[i], GPUQ_EINVAL,
					 "expected weight: an integer from 1 to 100");
		mark = gpuq_reader_enter(r, "preference");
		rc = read_kube_term(r, term, t);
		if (rc < 0)
			return rc;
		g->n_preferred += t->n > 0; /* an empty preference prefers nothing */
		gpuq_reader_leave(r, mark);
		gpuq_reader_leave(r, item);
	}
	return 0;
}

int spec_read_node_affinity(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_group *g)
{
	static const struct {
		const char *key;
		int (*read)(struct gpuq_reader *r, const struct gpuq_val *v, struct gpuq_group *g);
	} parts[] = {
		{ "requiredDuringSchedulingIgnoredDuringExecution", read_required },
		{ "preferredDuringSchedulingIgnoredDuringExecution", read_preferred },
	};

	if (v->type != GPUQ_MAP)
		return spec_fail(r, v, GPUQ_EINVAL, "expected a map, not %s",
				 gpuq_type_name(v->type));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct gpuq_val *part = gpuq_get(v, parts[i].key);
		const size_t mark = gpuq_reader_enter(r, parts[i].key);

		if (part && part->type != GPUQ_NULL) {
			int rc = parts[i].read(r, part, g);

			if (rc < 0)
				return rc;
		}
		gpuq_reader_leave(r, mark);
	}
	return 0;
}

/* ---- tolerations ---- */

static int toleration_op_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	const char *text = spec_scalar(r->arena, v);

	if (text && strcmp(text, "Exists") == 0)
		*(bool *)out = true;
	else if (text && strcmp(text, "Equal") == 0)
		*(bool *)out = false;
	else
		return spec_fail(r, v, GPUQ_EINVAL, "expected Exists or Equal");
	return 0;
}

static struct gpuq_val *toleration_op_write(struct gpuq_arena *a, const void *in)
{
	return *(const bool *)in ? gpuq_str(a, "Exists") : NULL;
}

static const struct gpuq_custom toleration_op = { toleration_op_read, toleration_op_write };

static void toleration_defaults(void *obj)
{
	struct gpuq_toleration *t = obj;

	t->key = t->value = t->effect = "";
	t->seconds = -1;
}

static int toleration_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	static const char *const effects[] = { "", "NoSchedule", "PreferNoSchedule", "NoExecute",
					       NULL };
	const struct gpuq_toleration *t = obj;
	int i = 0;

	while (effects[i] && strcmp(effects[i], t->effect) != 0)
		i++;
	if (!effects[i])
		return spec_fail(
			r, v, GPUQ_EINVAL,
			"expected effect NoSchedule, PreferNoSchedule or NoExecute, not '%s'",
			t->effect);
	if (!*t->key && !t->exists)
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected a key: only operator Exists tolerates every key");
	if (t->exists && *t->value)
		return spec_fail(r, v, GPUQ_EINVAL, "expected no value with operator Exists");
	return 0;
}

/* clang-format off */
static const struct gpuq_field toleration_fields[] = {
	{ .key = "key", .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_toleration, key),
	  .doc = "Key of the taint; absent with operator Exists: every taint." },
	{ .key = "operator", .kind = GPUQ_K_CUSTOM, .custom = &toleration_op,
	  .offset = offsetof(struct gpuq_toleration, exists), .doc = "Exists or Equal (default)." },
	{ .key = "value", .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_toleration, value),
	  .doc = "Value of the taint, with Equal." },
	{ .key = "effect", .kind = GPUQ_K_STR, .offset = offsetof(struct gpuq_toleration, effect),
	  .doc = "NoSchedule, PreferNoSchedule, NoExecute; absent: each of them." },
	{ .key = "tolerationSeconds", .kind = GPUQ_K_INT, .min = INT64_MIN, .max = INT64_MAX,
	  .offset = offsetof(struct gpuq_toleration, seconds),
	  .doc = "How long a NoExecute taint is tolerated; absent: for ever." },
	{ .key = NULL },
};
/* clang-format on */

const struct gpuq_schema gpuq_toleration_schema = {
	.name = "toleration",
	.size = sizeof(struct gpuq_toleration),
	.fields = toleration_fields,
	.defaults = toleration_defaults,
	.check = toleration_check,
};
