/* Write a C struct as a map, by its schema: the inverse of schema.c. */
#include <stdio.h>
#include <string.h>

#include "libgpuq/schema.h"
#include "libgpuq/base/text.h"
#include "libgpuq/wire/schema_kind.h"
#include "libgpuq/units.h"

static struct gpuq_val *write_object(struct gpuq_arena *a, const struct gpuq_schema *s,
				     const void *obj, const void *dflt);

static bool same_texts(const char *const *x, const char *const *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!gpuq_same_text(x[i], y[i]))
			return false;
	return true;
}

/* Whether the field at x is what it would be without being given. */
static bool at_default(const struct gpuq_field *f, const void *x, const void *y)
{
	switch (f->kind) {
	case GPUQ_K_BOOL:
		return *(const bool *)x == *(const bool *)y;
	case GPUQ_K_INT:
	case GPUQ_K_LIMIT:
	case GPUQ_K_DURATION:
	case GPUQ_K_BYTES:
	case GPUQ_K_MILLI:
	case GPUQ_K_INSTANT:
		return *(const int64_t *)x == *(const int64_t *)y;
	case GPUQ_K_ENUM:
	case GPUQ_K_SIGNAL:
		return *(const int *)x == *(const int *)y;
	case GPUQ_K_STR:
	case GPUQ_K_NAME:
		return gpuq_same_text(*(const char *const *)x, *(const char *const *)y);
	case GPUQ_K_STRLIST: {
		const struct gpuq_strlist *p = x, *q = y;

		return p->n == q->n && same_texts(p->items, q->items, p->n);
	}
	case GPUQ_K_STRMAP: {
		const struct gpuq_strmap *p = x, *q = y;

		return p->n == q->n && same_texts(p->keys, q->keys, p->n) &&
		       same_texts(p->vals, q->vals, p->n);
	}
	case GPUQ_K_OBJECTS:
		return ((const struct gpuq_objects *)x)->n == 0 &&
		       ((const struct gpuq_objects *)y)->n == 0;
	case GPUQ_K_OBJECT_PTR:
	case GPUQ_K_VAL:
		return !*(void *const *)x;
	case GPUQ_K_OBJECT: /* decided by whether its map is empty */
	case GPUQ_K_CUSTOM: /* decided by its own function */
		return false;
	}
	return false;
}

static struct gpuq_val *write_strlist(struct gpuq_arena *a, const struct gpuq_strlist *l)
{
	struct gpuq_val *list = gpuq_list(a);

	for (size_t i = 0; i < l->n; i++)
		gpuq_add(a, list, gpuq_str(a, l->items[i]));
	return list;
}

static struct gpuq_val *write_strmap(struct gpuq_arena *a, const struct gpuq_strmap *m)
{
	struct gpuq_val *map = gpuq_map(a);

	for (size_t i = 0; i < m->n; i++)
		gpuq_put(a, map, m->keys[i], gpuq_str(a, m->vals[i]));
	return map;
}

static struct gpuq_val *write_objects(struct gpuq_arena *a, const struct gpuq_schema *s,
				      const struct gpuq_objects *l)
{
	struct gpuq_val *list = gpuq_list(a);
	void *dflt = gpuq_arena_alloc(a, s->size);

	if (!dflt)
		return NULL;
	gpuq_schema_init(s, dflt);
	for (size_t i = 0; i < l->n; i++)
		gpuq_add(a, list, write_object(a, s, (const char *)l->items + i * s->size, dflt));
	return list;
}

static struct gpuq_val *write_ptr(struct gpuq_arena *a, const struct gpuq_schema *s,
				  const void *obj)
{
	void *dflt = gpuq_arena_alloc(a, s->size);

	if (!dflt)
		return NULL;
	gpuq_schema_init(s, dflt);
	return write_object(a, s, obj, dflt);
}

static struct gpuq_val *write_instant(struct gpuq_arena *a, int64_t us)
{
	char text[40];

	gpuq_instant_print(us, text, sizeof(text));
	if (us % 1000) /* what gpuq_instant_print leaves out */
		snprintf(text + 23, sizeof(text) - 23, "%03dZ", (int)(us % 1000));
	return gpuq_str(a, text);
}

static struct gpuq_val *write_unit(struct gpuq_arena *a, enum gpuq_kind kind, int64_t i)
{
	char text[64];

	switch (kind) {
	case GPUQ_K_LIMIT:
		return i == GPUQ_UNLIMITED ? gpuq_str(a, "unlimited") : gpuq_int(a, i);
	case GPUQ_K_DURATION:
		gpuq_duration_print(i, text, sizeof(text));
		return gpuq_str(a, text);
	case GPUQ_K_BYTES:
		gpuq_bytes_print(i, text, sizeof(text));
		return gpuq_str(a, text);
	case GPUQ_K_MILLI:
		/* A double holds thousandths exactly enough up to here. */
		if (i % 1000 == 0)
			return gpuq_int(a, i / 1000);
		if (i < INT64_C(1000000000000))
			return gpuq_real(a, (double)i / 1000);
		gpuq_milli_print(i, text, sizeof(text));
		return gpuq_str(a, text);
	case GPUQ_K_INSTANT:
		return write_instant(a, i);
	default:
		return gpuq_int(a, i);
	}
}

static struct gpuq_val *write_signal(struct gpuq_arena *a, int number)
{
	const char *name = gpuq_signal_name(number);

	return name ? gpuq_str(a, name) : gpuq_int(a, number);
}

/* The value of a field that is not at its default. */
static struct gpuq_val *write_field(struct gpuq_arena *a, const struct gpuq_field *f,
				    const void *in, const void *dflt)
{
	switch (f->kind) {
	case GPUQ_K_BOOL:
		return gpuq_bool(a, *(const bool *)in);
	case GPUQ_K_INT:
	case GPUQ_K_LIMIT:
	case GPUQ_K_DURATION:
	case GPUQ_K_BYTES:
	case GPUQ_K_MILLI:
	case GPUQ_K_INSTANT:
		return write_unit(a, f->kind, *(const int64_t *)in);
	case GPUQ_K_STR:
	case GPUQ_K_NAME:
		return gpuq_str(a, *(const char *const *)in);
	case GPUQ_K_ENUM:
		return gpuq_str(a, f->names[*(const int *)in]);
	case GPUQ_K_SIGNAL:
		return write_signal(a, *(const int *)in);
	case GPUQ_K_STRLIST:
		return write_strlist(a, in);
	case GPUQ_K_STRMAP:
		return write_strmap(a, in);
	case GPUQ_K_OBJECT:
		return write_object(a, f->sub, in, dflt);
	case GPUQ_K_OBJECT_PTR:
		return write_ptr(a, f->sub, *(void *const *)in);
	case GPUQ_K_OBJECTS:
		return write_objects(a, f->sub, in);
	case GPUQ_K_VAL:
		return gpuq_val_copy(a, *(struct gpuq_val *const *)in);
	case GPUQ_K_CUSTOM:
		break;
	}
	return NULL;
}

static struct gpuq_val *write_object(struct gpuq_arena *a, const struct gpuq_schema *s,
				     const void *obj, const void *dflt)
{
	struct gpuq_val *map = gpuq_map(a);

	for (const struct gpuq_field *f = s->fields; f->key; f++) {
		const void *x = (const char *)obj + f->offset;
		const void *y = (const char *)dflt + f->offset;
		struct gpuq_val *v;

		if (f->kind == GPUQ_K_CUSTOM) {
			v = f->custom->write ? f->custom->write(a, x) : NULL;
			if (v)
				gpuq_put(a, map, f->key, v);
			continue;
		}
		if (at_default(f, x, y) && !(f->flags & GPUQ_F_REQUIRED))
			continue;
		v = write_field(a, f, x, y);
		if (f->kind == GPUQ_K_OBJECT && v && v->n == 0 && !(f->flags & GPUQ_F_REQUIRED))
			continue;
		gpuq_put(a, map, f->key, v);
	}
	return map;
}

struct gpuq_val *gpuq_schema_write(struct gpuq_arena *a, const struct gpuq_schema *schema,
				   const void *obj)
{
	void *dflt = gpuq_arena_alloc(a, schema->size);
	struct gpuq_val *map;

	if (!dflt)
		return NULL;
	gpuq_schema_init(schema, dflt);
	map = write_object(a, schema, obj, dflt);
	/* A member of its own kind that had no room looks like one that is not written. */
	return gpuq_val_ok(map) && !gpuq_arena_failed(a) ? map : NULL;
}
