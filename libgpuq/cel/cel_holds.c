#include "libgpuq/cel/cel_int.h"

#include <string.h>

/* A value, or that there is none: CEL's error. Strings may be seen through lowerAscii() and the like,
 * which change each byte when it is read. */
struct seen {
	bool failed;
	struct gpuq_cel_value v;
	int fold; /* 0, CEL_LOWER or CEL_UPPER */
};

static const struct seen failed = { .failed = true };

static struct seen look_at(const struct gpuq_cel *e, const struct gpuq_cel_device *d);

static struct seen truth(bool is)
{
	return (struct seen){ .v = { .type = GPUQ_CEL_BOOL, .i = is } };
}

static unsigned char byte_of(const struct seen *s, size_t i)
{
	const unsigned char c = (unsigned char)s->v.s[i];

	if (s->fold == CEL_LOWER && c >= 'A' && c <= 'Z')
		return (unsigned char)(c - 'A' + 'a');
	if (s->fold == CEL_UPPER && c >= 'a' && c <= 'z')
		return (unsigned char)(c - 'a' + 'A');
	return c;
}

/* True if b is in a, from its byte at on. */
static bool at_is(const struct seen *a, size_t at, const struct seen *b)
{
	if (at > a->v.n || a->v.n - at < b->v.n)
		return false;
	for (size_t i = 0; i < b->v.n; i++)
		if (byte_of(a, at + i) != byte_of(b, i))
			return false;
	return true;
}

static bool is_in(const struct seen *a, const struct seen *b)
{
	for (size_t i = 0; i + b->v.n <= a->v.n; i++)
		if (at_is(a, i, b))
			return true;
	return false;
}

/* False: they cannot be compared. */
static bool order(const struct seen *a, const struct seen *b, int *out)
{
	if (a->v.type != b->v.type)
		return false;
	switch (a->v.type) {
	case GPUQ_CEL_BOOL:
	case GPUQ_CEL_INT:
	case GPUQ_CEL_QUANTITY:
		*out = (a->v.i > b->v.i) - (a->v.i < b->v.i);
		return true;
	case GPUQ_CEL_VERSION:
		return gpuq_cel_versions(a->v.s, a->v.n, b->v.s, b->v.n, out);
	case GPUQ_CEL_STRING:
		for (size_t i = 0; i < a->v.n && i < b->v.n; i++)
			if (byte_of(a, i) != byte_of(b, i)) {
				*out = byte_of(a, i) < byte_of(b, i) ? -1 : 1;
				return true;
			}
		*out = (a->v.n > b->v.n) - (a->v.n < b->v.n);
		return true;
	default:
		return false;
	}
}

static struct seen compare(const struct gpuq_cel *e, const struct seen *a, const struct seen *b)
{
	int c;

	if (!order(a, b, &c))
		return failed;
	switch (e->op) {
	case CEL_EQ:
		return truth(c == 0);
	case CEL_NE:
		return truth(c != 0);
	case CEL_LT:
	case CEL_LESS:
		return truth(c < 0);
	case CEL_LE:
		return truth(c <= 0);
	case CEL_GT:
	case CEL_GREATER:
		return truth(c > 0);
	case CEL_GE:
		return truth(c >= 0);
	default:
		return (struct seen){ .v = { .type = GPUQ_CEL_INT, .i = c } };
	}
}

static bool look_up(const struct gpuq_cel *e, const char *name, size_t n,
		    const struct gpuq_cel_device *d, struct gpuq_cel_value *v)
{
	return d->look(d->arg, e->capacity, e->value.s, e->value.n, name, n, v);
}

static struct seen in(const struct gpuq_cel *e, const struct gpuq_cel_device *d)
{
	const struct seen a = look_at(e->left, d);
	struct gpuq_cel_value v;
	int c;

	if (a.failed)
		return failed;
	if (e->right->op == CEL_NAMES) {
		char name[256];
		size_t n = 0;

		if (a.v.type != GPUQ_CEL_STRING)
			return failed;
		for (; n < a.v.n && n < sizeof(name); n++)
			name[n] = (char)byte_of(&a, n);
		return truth(n == a.v.n && look_up(e->right, name, n, d, &v));
	}
	for (const struct gpuq_cel *i = e->right->left; i; i = i->next) {
		const struct seen b = look_at(i, d);

		if (order(&a, &b, &c) && c == 0)
			return truth(true);
	}
	return truth(false);
}

/* Either side decides, whatever the other is. */
static struct seen logic(const struct gpuq_cel *e, const struct gpuq_cel_device *d)
{
	const bool decides = e->op == CEL_OR;
	const struct seen a = look_at(e->left, d);
	const bool a_fits = !a.failed && a.v.type == GPUQ_CEL_BOOL;
	struct seen b;

	if (a_fits && a.v.i == decides)
		return a;
	b = look_at(e->right, d);
	if (b.failed || b.v.type != GPUQ_CEL_BOOL)
		return failed;
	return b.v.i == decides || a_fits ? b : failed;
}

static struct seen text(const struct gpuq_cel *e, const struct seen *a, const struct seen *b)
{
	if (a->v.type != GPUQ_CEL_STRING || b->v.type != GPUQ_CEL_STRING)
		return failed;
	if (e->op == CEL_STARTS)
		return truth(at_is(a, 0, b));
	if (e->op == CEL_ENDS)
		return truth(a->v.n >= b->v.n && at_is(a, a->v.n - b->v.n, b));
	return truth(is_in(a, b));
}

static struct seen one_sided(const struct gpuq_cel *e, const struct gpuq_cel_device *d)
{
	struct seen a = look_at(e->left, d);

	if (a.failed)
		return failed;
	if (e->op == CEL_NOT)
		return a.v.type == GPUQ_CEL_BOOL ? truth(!a.v.i) : failed;
	if (e->op == CEL_NEGATE) {
		if (a.v.type != GPUQ_CEL_INT || a.v.i == INT64_MIN)
			return failed;
		a.v.i = -a.v.i;
		return a;
	}
	if (a.v.type != GPUQ_CEL_STRING)
		return failed;
	/* The outer of two is the one that shows. */
	a.fold = e->op;
	return a;
}

static struct seen look_at(const struct gpuq_cel *e, const struct gpuq_cel_device *d)
{
	struct seen a = { .failed = false }, b;

	switch (e->op) {
	case CEL_LITERAL:
		a.v = e->value;
		return a;
	case CEL_DRIVER:
		a.v = (struct gpuq_cel_value){ GPUQ_CEL_STRING, 0, d->driver, strlen(d->driver) };
		return a;
	case CEL_LOOK:
		a.failed = !look_up(e, e->name, e->n_name, d, &a.v);
		return a;
	case CEL_HAS:
		return truth(look_up(e->left, e->left->name, e->left->n_name, d, &a.v));
	case CEL_AND:
	case CEL_OR:
		return logic(e, d);
	case CEL_IN:
		return in(e, d);
	case CEL_NOT:
	case CEL_NEGATE:
	case CEL_LOWER:
	case CEL_UPPER:
		return one_sided(e, d);
	case CEL_LIST:
	case CEL_NAMES:
		return failed;
	default:
		break;
	}
	a = look_at(e->left, d);
	b = look_at(e->right, d);
	if (a.failed || b.failed)
		return failed;
	if (e->op == CEL_STARTS || e->op == CEL_ENDS || e->op == CEL_CONTAINS)
		return text(e, &a, &b);
	return compare(e, &a, &b);
}

bool gpuq_cel_holds(const struct gpuq_cel *e, const struct gpuq_cel_device *device)
{
	const struct seen s = look_at(e, device);

	return !s.failed && s.v.type == GPUQ_CEL_BOOL && s.v.i;
}
