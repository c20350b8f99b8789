#include "libgpuq/cel/cel_int.h"

#include <string.h>

/* Precedence climbs from || to the members of a value; each rule is a function. A rule that fails has
 * told why, and returns NULL. */

struct reading {
	struct gpuq_arena *a;
	const char *text;
	size_t n, at; /* at: the next byte */
	unsigned depth, nodes;
	uint32_t *column;
	struct gpuq_err *err;
	int rc;
};

typedef struct gpuq_cel node;

static node *wrong(struct reading *r, size_t at, const char *expected)
{
	if (r->rc == 0) {
		*r->column = (uint32_t)at + 1;
		r->rc = gpuq_fail(r->err, GPUQ_EINVAL, "column %u: %s (see gpuq-cel(7))",
				  *r->column, expected);
	}
	return NULL;
}

static node *make(struct reading *r, enum cel_op op, enum gpuq_cel_type type, size_t at)
{
	node *e;

	if (++r->nodes > GPUQ_CEL_NODES_MAX)
		return wrong(r, at, "the expression has more than 1000 parts");
	e = gpuq_arena_calloc(r->a, 1, sizeof(*e));
	if (!e) {
		r->rc = gpuq_no_memory(r->err);
		return NULL;
	}
	e->op = op;
	e->type = type;
	e->column = (uint32_t)at + 1;
	return e;
}

/* ---- words ---- */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

/* Skip what is between words, comments too. */
static void skip(struct reading *r)
{
	while (r->at < r->n) {
		if (is_space(r->text[r->at])) {
			r->at++;
		} else if (r->at + 1 < r->n && memcmp(r->text + r->at, "//", 2) == 0) {
			while (r->at < r->n && r->text[r->at] != '\n')
				r->at++;
		} else {
			return;
		}
	}
}

static bool sees(struct reading *r, const char *sign)
{
	const size_t n = strlen(sign);

	skip(r);
	return r->n - r->at >= n && memcmp(r->text + r->at, sign, n) == 0;
}

static bool takes(struct reading *r, const char *sign)
{
	if (!sees(r, sign))
		return false;
	r->at += strlen(sign);
	return true;
}

static bool sees_name(struct reading *r, size_t *n)
{
	size_t k = 0;

	skip(r);
	while (r->at + k < r->n && is_word(r->text[r->at + k]))
		k++;
	*n = k;
	return k > 0 && !is_digit(r->text[r->at]);
}

static bool takes_name(struct reading *r, const char *name)
{
	size_t n;

	if (!sees_name(r, &n) || n != strlen(name) || memcmp(r->text + r->at, name, n) != 0)
		return false;
	r->at += n;
	return true;
}

/* A string in quotes of either kind. */
static bool takes_string(struct reading *r, struct gpuq_cel_value *out)
{
	const size_t begin = r->at;
	const char quote = r->at < r->n ? r->text[r->at] : '\0';
	size_t n = 0;
	char *s;

	if (quote != '"' && quote != '\'')
		return false;
	if (r->n - r->at >= 3 && r->text[r->at + 1] == quote && r->text[r->at + 2] == quote) {
		wrong(r, begin, "expected a string in one pair of quotes");
		return false;
	}
	s = gpuq_arena_alloc(r->a, r->n - r->at + 1);
	if (!s) {
		r->rc = gpuq_no_memory(r->err);
		return false;
	}
	for (r->at++; r->at < r->n && r->text[r->at] != quote && r->text[r->at] != '\n'; r->at++) {
		char c = r->text[r->at];

		if (c == '\\') {
			c = r->at + 1 < r->n ? r->text[r->at + 1] : '\0';
			if (c != '\\' && c != '"' && c != '\'') {
				wrong(r, r->at, "expected \\\\, \\\" or \\' behind a backslash");
				return false;
			}
			r->at++;
		}
		s[n++] = c;
	}
	if (r->at == r->n || r->text[r->at] != quote) {
		wrong(r, begin, "the string has no end");
		return false;
	}
	r->at++;
	*out = (struct gpuq_cel_value){ .type = GPUQ_CEL_STRING, .s = s, .n = n };
	return true;
}

static node *number(struct reading *r)
{
	const size_t begin = r->at;
	int64_t v = 0;
	node *e;

	for (; r->at < r->n && is_digit(r->text[r->at]); r->at++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, r->text[r->at] - '0', &v))
			return wrong(r, begin, "the number is too large");
	if (r->at < r->n && (is_word(r->text[r->at]) || r->text[r->at] == '.'))
		return wrong(r, r->at, "expected an integer, in decimal digits");
	e = make(r, CEL_LITERAL, GPUQ_CEL_INT, begin);
	if (e)
		e->value = (struct gpuq_cel_value){ .type = GPUQ_CEL_INT, .i = v };
	return e;
}

static node *literal(struct reading *r, const struct gpuq_cel_value *v, size_t at)
{
	node *e = make(r, CEL_LITERAL, v->type, at);

	if (e)
		e->value = *v;
	return e;
}

/* ---- types ---- */

static const char *const type_words[] = {
	[GPUQ_CEL_ANY] = "an attribute",  [GPUQ_CEL_BOOL] = "a truth value",
	[GPUQ_CEL_INT] = "an integer",    [GPUQ_CEL_STRING] = "a string",
	[GPUQ_CEL_VERSION] = "a version", [GPUQ_CEL_QUANTITY] = "a quantity",
	[GPUQ_CEL_LIST] = "a list",       [GPUQ_CEL_NAMES] = "attributes of a domain",
};

static bool is_a(const node *e, enum gpuq_cel_type type)
{
	return e->type == type || e->type == GPUQ_CEL_ANY;
}

static node *mistyped(struct reading *r, const node *e, const char *expected)
{
	const char *text =
		gpuq_arena_printf(r->a, "expected %s, not %s", expected, type_words[e->type]);

	if (!text) {
		r->rc = gpuq_no_memory(r->err);
		return NULL;
	}
	return wrong(r, e->column - 1, text);
}

static node *join(struct reading *r, enum cel_op op, size_t at, node *left, node *right)
{
	node *e = make(r, op, GPUQ_CEL_BOOL, at);

	if (e) {
		e->left = left;
		e->right = right;
	}
	return e;
}

/* ---- rules ---- */

static node *either(struct reading *r);

/* device.driver, device.attributes["d"].name, device.capacity["d"].name */
static node *device(struct reading *r, size_t begin)
{
	struct gpuq_cel_value domain;
	bool capacity;
	size_t n;
	node *e;

	if (!takes(r, "."))
		return wrong(r, r->at, "expected .driver, .attributes or .capacity");
	if (takes_name(r, "driver"))
		return make(r, CEL_DRIVER, GPUQ_CEL_STRING, begin);
	capacity = takes_name(r, "capacity");
	if (!capacity && !takes_name(r, "attributes"))
		return wrong(r, r->at, "expected driver, attributes or capacity");
	if (!takes(r, "[")) {
		/* The domains of a device are no thing of their own. */
		return wrong(r, r->at, "expected [\"DOMAIN\"]");
	}
	skip(r);
	if (!takes_string(r, &domain))
		return wrong(r, r->at, "expected the domain, a string");
	if (!takes(r, "]"))
		return wrong(r, r->at, "expected ]");
	e = make(r, CEL_NAMES, GPUQ_CEL_NAMES, begin);
	if (!e)
		return NULL;
	e->value = domain;
	e->capacity = capacity;
	if (takes(r, "[")) {
		skip(r);
		if (!takes_string(r, &domain))
			return wrong(r, r->at, "expected the name, a string");
		if (!takes(r, "]"))
			return wrong(r, r->at, "expected ]");
		e->name = domain.s;
		e->n_name = domain.n;
	} else if (takes(r, ".")) {
		if (!sees_name(r, &n))
			return wrong(r, r->at, "expected the name of an attribute");
		e->name = r->text + r->at;
		e->n_name = n;
		r->at += n;
	} else {
		return e;
	}
	e->op = CEL_LOOK;
	e->type = capacity ? GPUQ_CEL_QUANTITY : GPUQ_CEL_ANY;
	return e;
}

/* quantity("10Gi"), semver("1.2.3"): of a literal, which is read here. */
static node *converted(struct reading *r, size_t begin, bool quantity)
{
	const size_t at = r->at;
	struct gpuq_cel_value v;
	int same;

	skip(r);
	if (!takes_string(r, &v))
		return wrong(r, r->at, "expected a string");
	if (!takes(r, ")"))
		return wrong(r, r->at, "expected )");
	if (quantity) {
		v.type = GPUQ_CEL_QUANTITY;
		if (!gpuq_cel_quantity(v.s, v.n, &v.i))
			return wrong(r, at, "expected a quantity such as \"10Gi\"");
	} else {
		v.type = GPUQ_CEL_VERSION;
		if (!gpuq_cel_versions(v.s, v.n, v.s, v.n, &same))
			return wrong(r, at, "expected a version such as \"12.4.0\"");
	}
	return literal(r, &v, begin);
}

static node *has(struct reading *r, size_t begin)
{
	node *e, *look = either(r);

	if (!look)
		return NULL;
	if (look->op != CEL_LOOK)
		return wrong(r, look->column - 1,
			     "has() takes an attribute: device.attributes[\"DOMAIN\"].name");
	if (!takes(r, ")"))
		return wrong(r, r->at, "expected )");
	e = make(r, CEL_HAS, GPUQ_CEL_BOOL, begin);
	if (e)
		e->left = look;
	return e;
}

static node *list(struct reading *r, size_t begin)
{
	node *e = make(r, CEL_LIST, GPUQ_CEL_LIST, begin), **last = e ? &e->left : NULL;

	while (e && !takes(r, "]")) {
		node *item = either(r);

		if (!item)
			return NULL;
		if (item->op != CEL_LITERAL)
			return wrong(r, item->column - 1, "expected a literal in a list");
		*last = item;
		last = &item->next;
		if (!takes(r, ",") && !sees(r, "]"))
			return wrong(r, r->at, "expected , or ]");
	}
	return e;
}

static node *primary(struct reading *r)
{
	struct gpuq_cel_value v = { .type = GPUQ_CEL_BOOL };
	node *e;
	size_t begin;

	skip(r);
	begin = r->at;
	if (takes(r, "(")) {
		e = either(r);
		return !e || takes(r, ")") ? e : wrong(r, r->at, "expected )");
	}
	if (takes(r, "["))
		return list(r, begin);
	if (takes_string(r, &v))
		return literal(r, &v, begin);
	if (r->rc != 0)
		return NULL;
	if (r->at < r->n && is_digit(r->text[r->at]))
		return number(r);
	v.i = takes_name(r, "true");
	if (v.i || takes_name(r, "false"))
		return literal(r, &v, begin);
	if (takes_name(r, "device"))
		return device(r, begin);
	if (takes_name(r, "has") && takes(r, "("))
		return has(r, begin);
	r->at = begin;
	if (takes_name(r, "quantity") && takes(r, "("))
		return converted(r, begin, true);
	r->at = begin;
	if (takes_name(r, "semver") && takes(r, "("))
		return converted(r, begin, false);
	return wrong(r, begin, "expected a literal, device, has(), quantity() or semver()");
}

static const struct {
	const char *name;
	enum cel_op op;
	bool has_arg, strings; /* of a string; else of versions and quantities */
	enum gpuq_cel_type type;
} methods[] = {
	{ "startsWith", CEL_STARTS, true, true, GPUQ_CEL_BOOL },
	{ "endsWith", CEL_ENDS, true, true, GPUQ_CEL_BOOL },
	{ "contains", CEL_CONTAINS, true, true, GPUQ_CEL_BOOL },
	{ "lowerAscii", CEL_LOWER, false, true, GPUQ_CEL_STRING },
	{ "upperAscii", CEL_UPPER, false, true, GPUQ_CEL_STRING },
	{ "compareTo", CEL_COMPARE, true, false, GPUQ_CEL_INT },
	{ "isGreaterThan", CEL_GREATER, true, false, GPUQ_CEL_BOOL },
	{ "isLessThan", CEL_LESS, true, false, GPUQ_CEL_BOOL },
};

/* True if a method of that row may be called on e, or have it as its argument. */
static bool suits(size_t row, const node *e)
{
	if (methods[row].strings)
		return is_a(e, GPUQ_CEL_STRING);
	return is_a(e, GPUQ_CEL_VERSION) || e->type == GPUQ_CEL_QUANTITY;
}

static node *method(struct reading *r, node *of)
{
	const size_t begin = r->at;
	size_t row = 0;
	node *e, *arg = NULL;

	while (row < sizeof(methods) / sizeof(methods[0]) && !takes_name(r, methods[row].name))
		row++;
	if (row == sizeof(methods) / sizeof(methods[0]))
		return wrong(r, begin,
			     "expected startsWith, endsWith, contains, lowerAscii, upperAscii, "
			     "compareTo, isGreaterThan or isLessThan");
	if (!suits(row, of))
		return mistyped(r, of,
				methods[row].strings ? "a string" : "a version or a quantity");
	if (!takes(r, "("))
		return wrong(r, r->at, "expected (");
	if (methods[row].has_arg) {
		arg = either(r);
		if (!arg)
			return NULL;
		if (!suits(row, arg))
			return mistyped(r, arg,
					methods[row].strings ? "a string"
							     : "a version or a quantity");
	}
	if (!takes(r, ")"))
		return wrong(r, r->at, "expected )");
	e = join(r, methods[row].op, begin, of, arg);
	if (e)
		e->type = methods[row].type;
	return e;
}

static node *member(struct reading *r)
{
	node *e = primary(r);

	while (e && sees(r, ".")) {
		r->at++;
		e = method(r, e);
	}
	if (e && sees(r, "["))
		return wrong(r, r->at, "only device.attributes and device.capacity have members");
	return e;
}

static node *unary(struct reading *r)
{
	size_t begin;
	node *e, *of;
	bool not_;

	skip(r);
	begin = r->at;
	not_ = !sees(r, "!=") && takes(r, "!");
	if (!not_ && !takes(r, "-"))
		return member(r);
	if (++r->depth > GPUQ_CEL_DEPTH_MAX)
		return wrong(r, begin, "the expression is nested more than 64 deep");
	of = unary(r);
	r->depth--;
	if (!of)
		return NULL;
	if (!is_a(of, not_ ? GPUQ_CEL_BOOL : GPUQ_CEL_INT))
		return mistyped(r, of, not_ ? "a truth value" : "an integer");
	if (!not_ && of->op == CEL_LITERAL) {
		of->value.i = -of->value.i;
		return of;
	}
	e = make(r, not_ ? CEL_NOT : CEL_NEGATE, not_ ? GPUQ_CEL_BOOL : GPUQ_CEL_INT, begin);
	if (e)
		e->left = of;
	return e;
}

static const struct {
	const char *sign;
	enum cel_op op;
} relations[] = {
	{ "==", CEL_EQ }, { "!=", CEL_NE }, { "<=", CEL_LE },
	{ ">=", CEL_GE }, { "<", CEL_LT },  { ">", CEL_GT },
};

static bool orders(const node *e)
{
	return is_a(e, GPUQ_CEL_INT) || e->type == GPUQ_CEL_STRING;
}

static node *relation(struct reading *r)
{
	node *left = unary(r), *right;
	size_t at, row = 0;

	if (!left)
		return NULL;
	skip(r);
	at = r->at;
	if (takes_name(r, "in")) {
		right = unary(r);
		if (!right)
			return NULL;
		if (right->type == GPUQ_CEL_NAMES && !is_a(left, GPUQ_CEL_STRING))
			return mistyped(r, left, "a string");
		return right->type == GPUQ_CEL_LIST || right->type == GPUQ_CEL_NAMES
			       ? join(r, CEL_IN, at, left, right)
			       : mistyped(r, right, "a list");
	}
	while (row < sizeof(relations) / sizeof(relations[0]) && !takes(r, relations[row].sign))
		row++;
	if (row == sizeof(relations) / sizeof(relations[0]))
		return left;
	right = unary(r);
	if (!right)
		return NULL;
	if (left->type == GPUQ_CEL_LIST || left->type == GPUQ_CEL_NAMES)
		return mistyped(r, left, "one value");
	if (!is_a(right, left->type) && left->type != GPUQ_CEL_ANY)
		return mistyped(r, right, type_words[left->type]);
	if (right->type == GPUQ_CEL_LIST || right->type == GPUQ_CEL_NAMES)
		return mistyped(r, right, "one value");
	if (relations[row].op != CEL_EQ && relations[row].op != CEL_NE &&
	    (!orders(left) || !orders(right)))
		return mistyped(r, orders(left) ? right : left,
				"an integer or a string (versions and quantities have compareTo)");
	return join(r, relations[row].op, at, left, right);
}

/* A chain of && or of ||, which groups to the left. */
static node *chain(struct reading *r, const char *sign, enum cel_op op,
		   node *(*rule)(struct reading *))
{
	node *left = rule(r), *right;
	unsigned links = 0;

	while (left && sees(r, sign)) {
		const size_t at = r->at;

		r->at += strlen(sign);
		if (++links + r->depth > GPUQ_CEL_DEPTH_MAX)
			return wrong(r, at, "the expression is nested more than 64 deep");
		right = rule(r);
		if (!right)
			return NULL;
		if (!is_a(left, GPUQ_CEL_BOOL) || !is_a(right, GPUQ_CEL_BOOL))
			return mistyped(r, is_a(left, GPUQ_CEL_BOOL) ? right : left,
					"a truth value");
		left = join(r, op, at, left, right);
	}
	return left;
}

static node *both(struct reading *r)
{
	return chain(r, "&&", CEL_AND, relation);
}

static node *either(struct reading *r)
{
	node *e;

	if (++r->depth > GPUQ_CEL_DEPTH_MAX)
		return wrong(r, r->at, "the expression is nested more than 64 deep");
	e = chain(r, "||", CEL_OR, both);
	r->depth--;
	return e;
}

int gpuq_cel_read(struct gpuq_arena *a, const char *text, size_t n, const struct gpuq_cel **out,
		  uint32_t *column, struct gpuq_err *err)
{
	struct reading r = { .a = a, .text = text, .n = n, .column = column, .err = err };
	node *e;

	if (n > GPUQ_CEL_BYTES_MAX)
		wrong(&r, GPUQ_CEL_BYTES_MAX, "the expression is longer than 10240 bytes");
	e = r.rc == 0 ? either(&r) : NULL;
	skip(&r);
	if (e && r.at < n) {
		if (sees(&r, "?"))
			wrong(&r, r.at, "there is no ?: here");
		else
			wrong(&r, r.at, "expected an operator, or the end");
	}
	if (r.rc == 0 && e && !is_a(e, GPUQ_CEL_BOOL))
		mistyped(&r, e, "a truth value");
	if (r.rc != 0)
		return r.rc;
	*out = e;
	return 0;
}
