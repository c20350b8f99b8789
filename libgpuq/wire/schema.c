#include "libgpuq/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/wire/schema_kind.h"
#include "libgpuq/units.h"

static int read_object(struct gpuq_reader *r, const struct gpuq_schema *s, const struct gpuq_val *v,
		       void *obj);

static const char *const expected[] = {
	[GPUQ_K_BOOL] = "true or false",
	[GPUQ_K_INT] = "an integer",
	[GPUQ_K_LIMIT] = "an integer or unlimited",
	[GPUQ_K_STR] = "text",
	[GPUQ_K_NAME] = "a name of at most 63 letters, digits, '.', '_' and '-'",
	[GPUQ_K_DURATION] = "a duration such as 90m, 1d12h or 2:30:00",
	[GPUQ_K_BYTES] = "a size such as 512Gi or 100M",
	[GPUQ_K_MILLI] = "a quantity such as 2, 0.5 or 500m",
	[GPUQ_K_INSTANT] = "a time such as 2026-12-01T09:00Z or now+2h",
	[GPUQ_K_ENUM] = "a word",
	[GPUQ_K_SIGNAL] = "a signal such as USR1 or 10",
	[GPUQ_K_STRLIST] = "a list of strings",
	[GPUQ_K_STRMAP] = "a map of strings",
	[GPUQ_K_OBJECT] = "a map",
	[GPUQ_K_OBJECT_PTR] = "a map",
	[GPUQ_K_OBJECTS] = "a list of maps",
	[GPUQ_K_VAL] = "any value",
	[GPUQ_K_CUSTOM] = "a value",
};

/* The text of a scalar when it has one that is worth showing. */
static const char *shown(const struct gpuq_val *v)
{
	return v->type == GPUQ_STR ? v->s : v->src;
}

static int unexpected(struct gpuq_reader *r, const struct gpuq_val *v, const char *want)
{
	const char *text = shown(v);

	if (text)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected %s, found '%.64s'", want,
					text);
	return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected %s, found %s", want,
				gpuq_type_name(v->type));
}

static int wrong_kind(struct gpuq_reader *r, const struct gpuq_val *v, enum gpuq_kind kind)
{
	return unexpected(r, v, expected[kind]);
}

/* How a number of this kind is shown in messages. */
static void print_number(enum gpuq_kind kind, int64_t i, char *out, size_t room)
{
	switch (kind) {
	case GPUQ_K_DURATION:
		gpuq_duration_print(i, out, room);
		break;
	case GPUQ_K_BYTES:
		gpuq_bytes_print(i, out, room);
		break;
	case GPUQ_K_MILLI:
		gpuq_milli_print(i, out, room);
		break;
	case GPUQ_K_INSTANT:
		gpuq_instant_print(i, out, room);
		break;
	default:
		snprintf(out, room, "%lld", (long long)i);
	}
}

static int check_range(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		       int64_t i, const char *unit)
{
	char low[32], high[32], got[32];

	if ((f->min == 0 && f->max == 0) || (i >= f->min && i <= f->max))
		return 0;
	print_number(f->kind, f->min, low, sizeof(low));
	print_number(f->kind, f->max, high, sizeof(high));
	print_number(f->kind, i, got, sizeof(got));
	if (f->min == f->max)
		return gpuq_reader_fail(r, v, GPUQ_ERANGE, "expected %s%s, found %s", low, unit,
					got);
	if (f->max == INT64_MAX)
		return gpuq_reader_fail(r, v, GPUQ_ERANGE, "expected at least %s%s, found %s", low,
					unit, got);
	return gpuq_reader_fail(r, v, GPUQ_ERANGE, "expected %s to %s%s, found %s", low, high, unit,
				got);
}

/* The text of v where a string is wanted: its own, or of a plain number as it was
 * written. Sets *rc on refusal. */
static const char *text_of(struct gpuq_reader *r, const struct gpuq_val *v, enum gpuq_kind kind,
			   int *rc)
{
	const bool number = v->type == GPUQ_INT || v->type == GPUQ_REAL;

	if (v->type == GPUQ_BOOL && v->src) {
		*rc = gpuq_reader_fail(r, v, GPUQ_EINVAL,
				       "expected %s, found '%.16s': quote it if text is meant",
				       expected[kind], v->src);
		return NULL;
	}
	if (v->type != GPUQ_STR && !(number && v->src)) {
		*rc = wrong_kind(r, v, kind);
		return NULL;
	}
	if (v->type == GPUQ_STR && memchr(v->s, '\0', v->n)) {
		*rc = gpuq_reader_fail(r, v, GPUQ_EINVAL, "text holds the character NUL");
		return NULL;
	}
	return v->type == GPUQ_STR ? v->s : v->src;
}

static int copy_text(struct gpuq_reader *r, const char *text, const char **out)
{
	*out = gpuq_arena_strdup(r->arena, text);
	return *out ? 0 : gpuq_no_memory(r->err);
}

static bool is_name(const char *s)
{
	static const char ends[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	const size_t n = strlen(s);

	return n >= 1 && n <= GPUQ_NAME_BYTES_MAX && strchr(ends, s[0]) && strchr(ends, s[n - 1]) &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

static int read_bool(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		     void *out)
{
	if (v->type != GPUQ_BOOL)
		return wrong_kind(r, v, f->kind);
	*(bool *)out = v->b;
	return 0;
}

static int read_int(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		    void *out)
{
	int rc;

	if (f->kind == GPUQ_K_LIMIT && v->type == GPUQ_STR && strcmp(v->s, "unlimited") == 0) {
		*(int64_t *)out = GPUQ_UNLIMITED;
		return 0;
	}
	if (v->type != GPUQ_INT)
		return wrong_kind(r, v, f->kind);
	rc = check_range(r, f, v, v->i, "");
	if (rc == 0)
		*(int64_t *)out = v->i;
	return rc;
}

static int read_str(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		    void *out)
{
	int rc = 0;
	const char *text = text_of(r, v, f->kind, &rc);

	if (!text)
		return rc;
	if (f->kind == GPUQ_K_NAME && !is_name(text))
		return wrong_kind(r, v, f->kind);
	rc = check_range(r, f, v, (int64_t)strlen(text), " bytes");
	return rc < 0 ? rc : copy_text(r, text, out);
}

/* A real that came over the wire, in thousandths: what is within a millionth of a
 * thousandth is that thousandth, as the peer had 0.1 in mind and not its double. */
static int milli_of_real(double d, int64_t *out)
{
	const double t = d * 1000;
	int64_t n;

	if (!(d >= 0) || t >= 9e18)
		return GPUQ_ERANGE;
	n = (int64_t)(t + 0.5);
	if ((double)n - t > 1e-6 || t - (double)n > 1e-6)
		n = (int64_t)t + ((double)(int64_t)t < t);
	*out = n;
	return 0;
}

static int parse_unit(const struct gpuq_reader *r, enum gpuq_kind kind, const char *text,
		      int64_t *out, struct gpuq_err *err)
{
	switch (kind) {
	case GPUQ_K_DURATION:
		return gpuq_duration_parse(text, out, err);
	case GPUQ_K_BYTES:
		return gpuq_bytes_parse(text, out, err);
	case GPUQ_K_MILLI:
		return gpuq_milli_parse(text, out, err);
	default:
		return gpuq_instant_parse(text, r->now_us, out, err);
	}
}

static int read_unit(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		     void *out)
{
	const char *text = shown(v);
	struct gpuq_err err = GPUQ_ERR_INIT;
	char digits[24];
	int64_t i;
	int rc = 0;

	if (v->type != GPUQ_STR && v->type != GPUQ_INT && v->type != GPUQ_REAL)
		return wrong_kind(r, v, f->kind);
	if (!text && v->type == GPUQ_REAL) {
		if (f->kind != GPUQ_K_MILLI)
			return wrong_kind(r, v, f->kind);
		rc = milli_of_real(v->d, &i);
		if (rc < 0)
			return gpuq_reader_fail(r, v, rc, "expected %s", expected[f->kind]);
	} else if (!text && f->kind == GPUQ_K_INSTANT) {
		i = v->i; /* over the wire instants are microseconds */
		if (i < 0)
			return gpuq_reader_fail(r, v, GPUQ_ERANGE, "a time before 1970");
	} else {
		if (!text) {
			snprintf(digits, sizeof(digits), "%lld", (long long)v->i);
			text = digits;
		}
		rc = v->type == GPUQ_STR && memchr(v->s, '\0', v->n)
			     ? gpuq_fail(&err, GPUQ_EINVAL, "text holds the character NUL")
			     : parse_unit(r, f->kind, text, &i, &err);
		if (rc < 0)
			return gpuq_reader_fail(r, v, rc, "%s", err.text);
	}
	rc = check_range(r, f, v, i, "");
	if (rc == 0)
		*(int64_t *)out = i;
	return rc;
}

static int read_enum(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		     void *out)
{
	const char *text = shown(v), *near;
	char known[200] = "";
	size_t n = 0;

	for (int i = 0; text && f->names[i]; i++)
		if (strcmp(text, f->names[i]) == 0) {
			*(int *)out = i;
			return 0;
		}
	near = text ? gpuq_nearest(text, f->names) : NULL;
	if (near)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"'%.64s' is not known; did you mean '%s'?", text, near);
	for (int i = 0; f->names[i] && n < sizeof(known); i++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s",
				      i == 0            ? ""
				      : f->names[i + 1] ? ", "
							: " or ",
				      f->names[i]);
	return unexpected(r, v, known);
}

static int read_signal(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		       void *out)
{
	char digits[24];
	const char *text = shown(v);
	int number;

	if (!text && v->type == GPUQ_INT) {
		snprintf(digits, sizeof(digits), "%lld", (long long)v->i);
		text = digits;
	}
	number = text ? gpuq_signal_number(text) : 0;
	if (!number)
		return wrong_kind(r, v, f->kind);
	*(int *)out = number;
	return 0;
}

static int read_strlist(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
			void *out)
{
	const size_t n = v->type == GPUQ_LIST ? v->n : 1;
	const char **items;
	int rc = 0;

	if (v->type == GPUQ_MAP)
		return wrong_kind(r, v, f->kind);
	rc = check_range(r, f, v, (int64_t)n, " of them");
	if (rc < 0)
		return rc;
	items = gpuq_arena_calloc(r->arena, n, sizeof(*items));
	if (!items)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < n; i++) {
		const size_t mark =
			v->type == GPUQ_LIST ? gpuq_reader_enter_item(r, i) : strlen(r->path);
		const char *text =
			text_of(r, v->type == GPUQ_LIST ? v->items[i] : v, GPUQ_K_STR, &rc);

		if (!text)
			return rc;
		rc = copy_text(r, text, &items[i]);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
	}
	*(struct gpuq_strlist *)out = (struct gpuq_strlist){ items, n };
	return 0;
}

/* A scalar of a string map as text: what was written, else as JSON has it. */
static int map_text(struct gpuq_reader *r, const struct gpuq_val *v, const char **out)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	int rc = 0;

	if (v->type == GPUQ_NULL)
		return copy_text(r, "", out);
	if (v->type == GPUQ_STR || v->src) {
		if (v->type == GPUQ_STR && !text_of(r, v, GPUQ_K_STR, &rc))
			return rc;
		return copy_text(r, shown(v), out);
	}
	if (v->type != GPUQ_BOOL && v->type != GPUQ_INT && v->type != GPUQ_REAL)
		return wrong_kind(r, v, GPUQ_K_STR);
	gpuq_json_write(&b, v, 0);
	rc = b.failed ? gpuq_no_memory(r->err) : copy_text(r, gpuq_buf_str(&b), out);
	gpuq_buf_done(&b);
	return rc;
}

static int read_strmap(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		       void *out)
{
	struct gpuq_strmap m = { .n = v->n };
	int rc;

	if (v->type != GPUQ_MAP)
		return wrong_kind(r, v, f->kind);
	m.keys = gpuq_arena_calloc(r->arena, v->n, sizeof(*m.keys));
	m.vals = gpuq_arena_calloc(r->arena, v->n, sizeof(*m.vals));
	if (!m.keys || !m.vals)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < v->n; i++) {
		const size_t mark = gpuq_reader_enter(r, v->pairs[i].key);

		rc = copy_text(r, v->pairs[i].key, &m.keys[i]);
		if (rc == 0)
			rc = map_text(r, v->pairs[i].val, &m.vals[i]);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
	}
	*(struct gpuq_strmap *)out = m;
	return 0;
}

static int read_sub(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		    void *out)
{
	return read_object(r, f->sub, v, out);
}

static int read_ptr(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		    void *out)
{
	void *obj = gpuq_arena_alloc(r->arena, f->sub->size);
	int rc;

	if (!obj)
		return gpuq_no_memory(r->err);
	gpuq_schema_init(f->sub, obj);
	rc = read_object(r, f->sub, v, obj);
	if (rc == 0)
		*(void **)out = obj;
	return rc;
}

/* One entry of a list of objects for the search for equal keys. */
struct keyed {
	const char *key;
	size_t ix;
};

static int by_key(const void *x, const void *y)
{
	const struct keyed *a = x, *b = y;
	const int d = strcmp(a->key, b->key);

	return d ? d : (a->ix > b->ix) - (a->ix < b->ix);
}

/* The field that names objects of this kind must differ from object to object. */
static int check_keys(struct gpuq_reader *r, const struct gpuq_schema *s, const struct gpuq_val *v,
		      const struct gpuq_objects *list)
{
	const struct gpuq_field *f = s->fields;
	struct keyed *all;

	while (f->key && !(f->flags & GPUQ_F_KEY))
		f++;
	if (!f->key || (f->kind != GPUQ_K_STR && f->kind != GPUQ_K_NAME))
		return 0;
	all = gpuq_arena_calloc(r->arena, list->n, sizeof(*all));
	if (!all)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < list->n; i++) {
		const char *key = *(const char **)((char *)list->items + i * s->size + f->offset);

		all[i] = (struct keyed){ key ? key : "", i };
	}
	qsort(all, list->n, sizeof(*all), by_key);
	for (size_t i = 1; i < list->n; i++) {
		if (strcmp(all[i - 1].key, all[i].key) != 0)
			continue;
		gpuq_reader_enter_member(r, v, all[i].ix);
		gpuq_reader_enter(r, f->key);
		return gpuq_reader_fail(r, v->items[all[i].ix], GPUQ_EINVAL,
					"'%.64s' names an earlier one of the list as well",
					all[i].key);
	}
	return 0;
}

static int read_objects(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
			void *out)
{
	struct gpuq_objects list = { .n = v->n };
	int rc;

	if (v->type != GPUQ_LIST)
		return wrong_kind(r, v, f->kind);
	rc = check_range(r, f, v, v->n, " of them");
	if (rc < 0)
		return rc;
	list.items = gpuq_arena_calloc(r->arena, v->n, f->sub->size);
	if (!list.items)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < v->n; i++) {
		const size_t mark = gpuq_reader_enter_member(r, v, i);
		void *obj = (char *)list.items + i * f->sub->size;

		gpuq_schema_init(f->sub, obj);
		rc = read_object(r, f->sub, v->items[i], obj);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
	}
	rc = check_keys(r, f->sub, v, &list);
	if (rc == 0)
		*(struct gpuq_objects *)out = list;
	return rc;
}

static int read_val(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		    void *out)
{
	(void)r, (void)f;
	*(const struct gpuq_val **)out = v;
	return 0;
}

static int read_custom(struct gpuq_reader *r, const struct gpuq_field *f, const struct gpuq_val *v,
		       void *out)
{
	return f->custom->read(r, v, out);
}

static int (*const readers[])(struct gpuq_reader *r, const struct gpuq_field *f,
			      const struct gpuq_val *v, void *out) = {
	[GPUQ_K_BOOL] = read_bool,      [GPUQ_K_INT] = read_int,
	[GPUQ_K_LIMIT] = read_int,      [GPUQ_K_STR] = read_str,
	[GPUQ_K_NAME] = read_str,       [GPUQ_K_DURATION] = read_unit,
	[GPUQ_K_BYTES] = read_unit,     [GPUQ_K_MILLI] = read_unit,
	[GPUQ_K_INSTANT] = read_unit,   [GPUQ_K_ENUM] = read_enum,
	[GPUQ_K_SIGNAL] = read_signal,  [GPUQ_K_STRLIST] = read_strlist,
	[GPUQ_K_STRMAP] = read_strmap,  [GPUQ_K_OBJECT] = read_sub,
	[GPUQ_K_OBJECT_PTR] = read_ptr, [GPUQ_K_OBJECTS] = read_objects,
	[GPUQ_K_VAL] = read_val,        [GPUQ_K_CUSTOM] = read_custom,
};

static const struct gpuq_field *find(const struct gpuq_schema *s, const char *key)
{
	for (const struct gpuq_field *f = s->fields; f->key; f++)
		if (strcmp(f->key, key) == 0)
			return f;
	return NULL;
}

static int unknown_key(struct gpuq_reader *r, const struct gpuq_schema *s,
		       const struct gpuq_pair *p)
{
	const struct gpuq_val place = { .at = p->at };
	const char *names[128];
	const char *near;
	size_t n = 0;

	for (const struct gpuq_field *f = s->fields; f->key; f++)
		if (!(f->flags & GPUQ_F_HIDDEN) && n + 1 < sizeof(names) / sizeof(names[0]))
			names[n++] = f->key;
	names[n] = NULL;
	near = gpuq_nearest(p->key, names);
	gpuq_reader_enter(r, p->key);
	if (near)
		return gpuq_reader_fail(r, &place, GPUQ_EINVAL, "unknown key; did you mean '%s'?",
					near);
	return gpuq_reader_fail(r, &place, GPUQ_EINVAL, "unknown key of a %s", s->name);
}

void gpuq_schema_init(const struct gpuq_schema *s, void *obj)
{
	memset(obj, 0, s->size);
	for (const struct gpuq_field *f = s->fields; f->key; f++)
		if (f->kind == GPUQ_K_OBJECT)
			gpuq_schema_init(f->sub, (char *)obj + f->offset);
	if (s->defaults)
		s->defaults(obj);
}

static int check_required(struct gpuq_reader *r, const struct gpuq_schema *s,
			  const struct gpuq_val *v)
{
	for (const struct gpuq_field *f = s->fields; f->key; f++) {
		const struct gpuq_val *got;

		if (!(f->flags & GPUQ_F_REQUIRED))
			continue;
		got = gpuq_get(v, f->key);
		if (got && got->type != GPUQ_NULL)
			continue;
		gpuq_reader_enter(r, f->key);
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "missing; a%s %s needs it (%s)",
					strchr("aeio", s->name[0]) ? "n" : "", s->name,
					expected[f->kind]);
	}
	return 0;
}

/* Read v over obj, which holds the defaults. The path stands at the culprit when it
 * fails; gpuq_schema_read puts it back. */
static int read_object(struct gpuq_reader *r, const struct gpuq_schema *s, const struct gpuq_val *v,
		       void *obj)
{
	int rc;

	if (v->type != GPUQ_MAP)
		return wrong_kind(r, v, GPUQ_K_OBJECT);
	for (uint32_t i = 0; i < v->n; i++) {
		const struct gpuq_pair *p = &v->pairs[i];
		const struct gpuq_field *f = find(s, p->key);
		size_t mark;

		if (!f && r->lenient)
			continue;
		if (!f)
			return unknown_key(r, s, p);
		/* Null is "not given", as in Kubernetes. */
		if (p->val->type == GPUQ_NULL && f->kind != GPUQ_K_VAL)
			continue;
		mark = gpuq_reader_enter(r, f->key);
		rc = readers[f->kind](r, f, p->val, (char *)obj + f->offset);
		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, mark);
	}
	rc = check_required(r, s, v);
	return rc < 0 || !s->check ? rc : s->check(r, v, obj);
}

int gpuq_schema_read(struct gpuq_reader *r, const struct gpuq_schema *schema,
		     const struct gpuq_val *v, void *obj)
{
	const size_t mark = strlen(r->path);
	void *fresh = gpuq_arena_alloc(r->arena, schema->size);
	int rc;

	if (!fresh || !v)
		return gpuq_no_memory(r->err);
	gpuq_schema_init(schema, fresh);
	rc = read_object(r, schema, v, fresh);
	if (rc == 0)
		memcpy(obj, fresh, schema->size);
	gpuq_reader_leave(r, mark);
	return rc;
}
