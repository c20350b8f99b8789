#include "libgpuq/val.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static struct gpuq_val *make(struct gpuq_arena *a, enum gpuq_type type)
{
	struct gpuq_val *v = gpuq_arena_alloc(a, sizeof(*v));

	if (v)
		v->type = type;
	return v;
}

struct gpuq_val *gpuq_null(struct gpuq_arena *a)
{
	return make(a, GPUQ_NULL);
}

struct gpuq_val *gpuq_bool(struct gpuq_arena *a, bool b)
{
	struct gpuq_val *v = make(a, GPUQ_BOOL);

	if (v)
		v->b = b;
	return v;
}

struct gpuq_val *gpuq_int(struct gpuq_arena *a, int64_t i)
{
	struct gpuq_val *v = make(a, GPUQ_INT);

	if (v)
		v->i = i;
	return v;
}

struct gpuq_val *gpuq_real(struct gpuq_arena *a, double d)
{
	struct gpuq_val *v = make(a, GPUQ_REAL);

	if (v)
		v->d = d;
	return v;
}

static struct gpuq_val *bytes(struct gpuq_arena *a, enum gpuq_type type, const void *p, size_t n)
{
	struct gpuq_val *v;
	char *copy;

	if (n > UINT32_MAX)
		return NULL;
	v = make(a, type);
	copy = v ? gpuq_arena_strndup(a, p, n) : NULL;
	if (!copy)
		return NULL;
	v->s = copy;
	v->n = (uint32_t)n;
	return v;
}

struct gpuq_val *gpuq_str(struct gpuq_arena *a, const char *s)
{
	return s ? bytes(a, GPUQ_STR, s, strlen(s)) : gpuq_null(a);
}

struct gpuq_val *gpuq_strn(struct gpuq_arena *a, const char *s, size_t n)
{
	return bytes(a, GPUQ_STR, s, n);
}

struct gpuq_val *gpuq_bin(struct gpuq_arena *a, const void *p, size_t n)
{
	return bytes(a, GPUQ_BIN, p, n);
}

struct gpuq_val *gpuq_list(struct gpuq_arena *a)
{
	return make(a, GPUQ_LIST);
}

struct gpuq_val *gpuq_map(struct gpuq_arena *a)
{
	return make(a, GPUQ_MAP);
}

/* Room for one more member of `size` bytes in v's array; false marks v as broken. */
static bool grow(struct gpuq_arena *a, struct gpuq_val *v, size_t size)
{
	uint32_t room = v->room ? v->room * 2 : 4;
	void *more;

	if (v->n < v->room)
		return true;
	more = room > v->room ? gpuq_arena_calloc(a, room, size) : NULL;
	if (!more) {
		v->broken = true;
		return false;
	}
	if (v->type == GPUQ_LIST) {
		if (v->n)
			memcpy(more, v->items, v->n * size);
		v->items = more;
	} else {
		if (v->n)
			memcpy(more, v->pairs, v->n * size);
		v->pairs = more;
	}
	v->room = room;
	return true;
}

struct gpuq_val *gpuq_add(struct gpuq_arena *a, struct gpuq_val *list, struct gpuq_val *item)
{
	if (!list || list->type != GPUQ_LIST)
		return NULL;
	if (!item) {
		list->broken = true;
		return NULL;
	}
	if (!grow(a, list, sizeof(list->items[0])))
		return NULL;
	list->items[list->n++] = item;
	return item;
}

struct gpuq_val *gpuq_put(struct gpuq_arena *a, struct gpuq_val *map, const char *key,
			  struct gpuq_val *val)
{
	char *copy;

	if (!map || map->type != GPUQ_MAP)
		return NULL;
	copy = val ? gpuq_arena_strdup(a, key) : NULL;
	if (!copy) {
		map->broken = true;
		return NULL;
	}
	if (!grow(a, map, sizeof(map->pairs[0])))
		return NULL;
	map->pairs[map->n++] = (struct gpuq_pair){ .key = copy, .val = val };
	return val;
}

/* Keys are short and mostly differ at once: less than a call of strcmp. */
static bool same(const char *a, const char *b)
{
	for (; *a == *b; a++, b++)
		if (!*a)
			return true;
	return false;
}

static struct gpuq_pair *find(const struct gpuq_val *map, const char *key)
{
	struct gpuq_pair *p, *end;

	if (!map || map->type != GPUQ_MAP || map->n == 0)
		return NULL; /* an empty map has no pairs to point to */
	p = map->pairs;
	end = p + map->n;
	for (; p < end; p++)
		if (same(p->key, key))
			return p;
	return NULL;
}

struct gpuq_val *gpuq_set(struct gpuq_arena *a, struct gpuq_val *map, const char *key,
			  struct gpuq_val *val)
{
	struct gpuq_pair *p = find(map, key);

	if (!p)
		return gpuq_put(a, map, key, val);
	if (val)
		p->val = val;
	else
		map->broken = true;
	return val;
}

void gpuq_unset(struct gpuq_val *map, const char *key)
{
	struct gpuq_pair *p = find(map, key);

	if (!p)
		return;
	map->n--;
	memmove(p, p + 1, (size_t)(map->pairs + map->n - p) * sizeof(*p));
}

struct gpuq_val *gpuq_get(const struct gpuq_val *map, const char *key)
{
	struct gpuq_pair *p = find(map, key);

	return p ? p->val : NULL;
}

struct gpuq_val *gpuq_path(const struct gpuq_val *map, ...)
{
	struct gpuq_val *v = (struct gpuq_val *)map;
	const char *key;
	va_list ap;

	va_start(ap, map);
	while (v && (key = va_arg(ap, const char *)) != NULL)
		v = gpuq_get(v, key);
	va_end(ap);
	return v;
}

const char *gpuq_get_str(const struct gpuq_val *map, const char *key, const char *dflt)
{
	const struct gpuq_val *v = gpuq_get(map, key);

	return v && v->type == GPUQ_STR ? v->s : dflt;
}

int64_t gpuq_get_int(const struct gpuq_val *map, const char *key, int64_t dflt)
{
	const struct gpuq_val *v = gpuq_get(map, key);

	return v && v->type == GPUQ_INT ? v->i : dflt;
}

bool gpuq_get_bool(const struct gpuq_val *map, const char *key, bool dflt)
{
	const struct gpuq_val *v = gpuq_get(map, key);

	return v && v->type == GPUQ_BOOL ? v->b : dflt;
}

bool gpuq_val_ok(const struct gpuq_val *v)
{
	if (!v || v->broken)
		return false;
	for (uint32_t i = 0; v->type == GPUQ_LIST && i < v->n; i++)
		if (!gpuq_val_ok(v->items[i]))
			return false;
	for (uint32_t i = 0; v->type == GPUQ_MAP && i < v->n; i++)
		if (!gpuq_val_ok(v->pairs[i].val))
			return false;
	return true;
}

/* By key, then by place, so that the later of two equal keys stands second. */
static int by_key(const void *x, const void *y)
{
	const struct gpuq_pair *a = *(const struct gpuq_pair *const *)x;
	const struct gpuq_pair *b = *(const struct gpuq_pair *const *)y;
	int d = strcmp(a->key, b->key);

	return d ? d : (a > b) - (a < b);
}

const struct gpuq_pair *gpuq_map_repeat(struct gpuq_arena *a, const struct gpuq_val *map,
					bool *exhausted)
{
	const struct gpuq_pair *first = NULL, **sorted;

	if (map->n <= 16) {
		for (uint32_t i = 1; i < map->n; i++)
			for (uint32_t k = 0; k < i; k++)
				if (strcmp(map->pairs[i].key, map->pairs[k].key) == 0)
					return &map->pairs[i];
		return NULL;
	}
	sorted = gpuq_arena_calloc(a, map->n, sizeof(*sorted));
	if (!sorted) {
		*exhausted = true;
		return NULL;
	}
	for (uint32_t i = 0; i < map->n; i++)
		sorted[i] = &map->pairs[i];
	qsort(sorted, map->n, sizeof(*sorted), by_key);
	for (uint32_t i = 1; i < map->n; i++)
		if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0 &&
		    (!first || sorted[i] < first))
			first = sorted[i];
	return first;
}

struct gpuq_val *gpuq_val_copy(struct gpuq_arena *a, const struct gpuq_val *v)
{
	struct gpuq_val *c;

	if (!v)
		return NULL;
	c = v->type == GPUQ_STR || v->type == GPUQ_BIN ? bytes(a, v->type, v->s, v->n)
						       : make(a, v->type);
	if (!c)
		return NULL;
	switch (v->type) {
	case GPUQ_NULL:
	case GPUQ_STR:
	case GPUQ_BIN:
		break;
	case GPUQ_BOOL:
		c->b = v->b;
		break;
	case GPUQ_INT:
		c->i = v->i;
		break;
	case GPUQ_REAL:
		c->d = v->d;
		break;
	case GPUQ_LIST:
		for (uint32_t i = 0; i < v->n; i++)
			if (!gpuq_add(a, c, gpuq_val_copy(a, v->items[i])))
				return NULL;
		break;
	case GPUQ_MAP:
		for (uint32_t i = 0; i < v->n; i++) {
			if (!gpuq_put(a, c, v->pairs[i].key, gpuq_val_copy(a, v->pairs[i].val)))
				return NULL;
			c->pairs[i].at = v->pairs[i].at;
		}
		break;
	}
	c->plain = v->plain;
	c->at = v->at;
	if (v->src) {
		c->src =
			v->src == v->s && v->type == GPUQ_STR ? c->s : gpuq_arena_strdup(a, v->src);
		if (!c->src)
			return NULL;
	}
	return c;
}

static bool maps_equal(const struct gpuq_val *x, const struct gpuq_val *y)
{
	for (uint32_t i = 0; i < x->n; i++) {
		const struct gpuq_pair *p = &x->pairs[i], *q = &y->pairs[i];

		/* Mostly both have one order; else look for the key. */
		if (strcmp(p->key, q->key) != 0)
			q = find(y, p->key);
		if (!q || !gpuq_val_equal(p->val, q->val))
			return false;
	}
	return true;
}

bool gpuq_val_equal(const struct gpuq_val *x, const struct gpuq_val *y)
{
	if (!x || !y || x->type != y->type)
		return x == y;
	switch (x->type) {
	case GPUQ_NULL:
		return true;
	case GPUQ_BOOL:
		return x->b == y->b;
	case GPUQ_INT:
		return x->i == y->i;
	case GPUQ_REAL:
		return x->d == y->d;
	case GPUQ_STR:
	case GPUQ_BIN:
		return x->n == y->n && memcmp(x->s, y->s, x->n) == 0;
	case GPUQ_LIST:
		if (x->n != y->n)
			return false;
		for (uint32_t i = 0; i < x->n; i++)
			if (!gpuq_val_equal(x->items[i], y->items[i]))
				return false;
		return true;
	case GPUQ_MAP:
		return x->n == y->n && maps_equal(x, y);
	}
	return false;
}

const char *gpuq_type_name(enum gpuq_type t)
{
	static const char *const names[] = {
		[GPUQ_NULL] = "nothing (null)", [GPUQ_BOOL] = "true or false",
		[GPUQ_INT] = "an integer",      [GPUQ_REAL] = "a number",
		[GPUQ_STR] = "a string",        [GPUQ_BIN] = "bytes",
		[GPUQ_LIST] = "a list",         [GPUQ_MAP] = "a map",
	};

	return (size_t)t < sizeof(names) / sizeof(names[0]) ? names[t] : "?";
}
