#include "libgpuq/cel/cel_values.h"

#include <string.h>

#include "libgpuq/units.h"

/* ---- versions: semver.org 2.0 ---- */

struct version {
	uint64_t number[3];
	const char *pre; /* what is behind the hyphen; NULL = a release */
	size_t n_pre;
};

static bool digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return n > 0;
}

static bool read_version(const char *s, size_t n, struct version *v)
{
	size_t at = 0;

	*v = (struct version){ .pre = NULL };
	for (int i = 0; i < 3; i++) {
		const size_t begin = at;

		for (; at < n && s[at] >= '0' && s[at] <= '9'; at++)
			if (__builtin_mul_overflow(v->number[i], 10u, &v->number[i]) ||
			    __builtin_add_overflow(v->number[i], (uint64_t)(s[at] - '0'),
						   &v->number[i]))
				return false;
		if (at == begin || (s[begin] == '0' && at > begin + 1))
			return false;
		if (i < 2 && (at == n || s[at++] != '.'))
			return false;
	}
	if (at < n && s[at] == '-') {
		v->pre = s + ++at;
		while (at < n && s[at] != '+')
			at++;
		v->n_pre = (size_t)(s + at - v->pre);
		if (v->n_pre == 0)
			return false;
	}
	return at == n || s[at] == '+';
}

static int order(const char *a, size_t n_a, const char *b, size_t n_b)
{
	const int c = memcmp(a, b, n_a < n_b ? n_a : n_b);

	return c ? (c > 0) - (c < 0) : (n_a > n_b) - (n_a < n_b);
}

/* Compare one part between dots: numbers by their value, and before words. */
static int order_part(const char *a, size_t n_a, const char *b, size_t n_b)
{
	const bool x = digits(a, n_a), y = digits(b, n_b);

	if (x != y)
		return x ? -1 : 1;
	if (x && n_a != n_b)
		return n_a < n_b ? -1 : 1;
	return order(a, n_a, b, n_b);
}

static size_t part_of(const char *s, size_t n)
{
	const char *dot = memchr(s, '.', n);

	return dot ? (size_t)(dot - s) : n;
}

static int order_pre(const struct version *a, const struct version *b)
{
	size_t i = 0, k = 0;

	if (!a->pre || !b->pre)
		return !a->pre - !b->pre;
	while (i < a->n_pre && k < b->n_pre) {
		const size_t n = part_of(a->pre + i, a->n_pre - i);
		const size_t m = part_of(b->pre + k, b->n_pre - k);
		const int c = order_part(a->pre + i, n, b->pre + k, m);

		if (c)
			return c;
		i += n + 1;
		k += m + 1;
	}
	return (i < a->n_pre) - (k < b->n_pre);
}

bool gpuq_cel_versions(const char *a, size_t n_a, const char *b, size_t n_b, int *out)
{
	struct version x, y;

	if (!read_version(a, n_a, &x) || !read_version(b, n_b, &y))
		return false;
	for (int i = 0; i < 3; i++)
		if (x.number[i] != y.number[i]) {
			*out = x.number[i] < y.number[i] ? -1 : 1;
			return true;
		}
	*out = order_pre(&x, &y);
	return true;
}

/* ---- quantities ---- */

bool gpuq_cel_quantity(const char *text, size_t n, int64_t *milli)
{
	char word[64];
	int64_t whole;

	if (n == 0 || n >= sizeof(word) || memchr(text, '\0', n))
		return false;
	memcpy(word, text, n);
	word[n] = '\0';
	if (gpuq_milli_parse(word, milli, NULL) == 0)
		return true;
	/* In whole units it may fit: then it is more than any device has. */
	if (gpuq_bytes_parse(word, &whole, NULL) != 0)
		return false;
	*milli = INT64_MAX;
	return true;
}
