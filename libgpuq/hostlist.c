#include "libgpuq/hostlist.h"

#include <string.h>

#define NODE_BYTES_MAX 253u /* of a DNS name */
#define DIGITS_MAX 9u

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

struct word {
	struct gpuq_arena *a;
	const char *text; /* the whole word, for what is said about it */
	const char *allowed;
	struct gpuq_val *list;
	struct gpuq_err *err;
};

static int malformed(struct word *w)
{
	return gpuq_fail(w->err, GPUQ_EINVAL,
			 "expected node names such as n1,n2 or n[01-04,7], not '%.80s'", w->text);
}

static int too_many(struct word *w)
{
	return gpuq_fail(w->err, GPUQ_ERANGE, "expected at most %u node names", HOSTLIST_NAMES_MAX);
}

static int add(struct word *w, const char *name)
{
	if (!name)
		return gpuq_no_memory(w->err);
	if (strlen(name) > NODE_BYTES_MAX || strspn(name, w->allowed) != strlen(name))
		return gpuq_fail(w->err, GPUQ_EINVAL, "'%.80s' is not a node name", name);
	if (w->list && w->list->n >= HOSTLIST_NAMES_MAX)
		return too_many(w);
	return gpuq_add(w->a, w->list, gpuq_str(w->a, name)) ? 0 : gpuq_no_memory(w->err);
}

/* Read a decimal number at *at, which moves behind it. Returns its digits, 0 = none or too many. */
static size_t number(const char **at, unsigned *out)
{
	const size_t n = strspn(*at, "0123456789");

	if (n > DIGITS_MAX)
		return 0;
	*out = 0;
	for (size_t i = 0; i < n; i++)
		*out = *out * 10 + (unsigned)((*at)[i] - '0');
	*at += n;
	return n;
}

/* Append the names of prefix and rest: the numbers of the first bracket in rest, and for each
 * what follows it by recursion. */
static int expand(struct word *w, const char *prefix, const char *rest, unsigned brackets)
{
	const char *const open = strchr(rest, '['), *p = open ? open + 1 : NULL;
	const char *const close = open ? strchr(open, ']') : NULL;

	if (!open)
		return add(w, gpuq_arena_printf(w->a, "%s%s", prefix, rest));
	if (brackets == HOSTLIST_BRACKETS_MAX)
		return gpuq_fail(w->err, GPUQ_ERANGE,
				 "expected at most %u brackets in a node name, not '%.80s'",
				 HOSTLIST_BRACKETS_MAX, w->text);
	while (close && p <= close) {
		unsigned first, last;
		const size_t width = number(&p, &first);

		last = first;
		if (width == 0 || (*p == '-' && (p++, number(&p, &last) == 0)) || last < first ||
		    (*p != ',' && p != close))
			break;
		if (last - first >= HOSTLIST_NAMES_MAX)
			return too_many(w);
		for (unsigned i = first; i <= last; i++) {
			const char *head =
				gpuq_arena_printf(w->a, "%s%.*s%0*u", prefix, (int)(open - rest),
						  rest, (int)width, i);
			const int rc = head ? expand(w, head, close + 1, brackets + 1)
					    : gpuq_no_memory(w->err);

			if (rc < 0)
				return rc;
		}
		if (p++ == close)
			return 0;
	}
	return malformed(w);
}

int hostlist_expand(struct gpuq_arena *a, const char *text, enum hostlist_kind kind,
		    struct gpuq_val *list, struct gpuq_err *err)
{
	struct word w = { a, NULL, kind == HOSTLIST_GLOBS ? NAME_BYTES "*?" : NAME_BYTES, list,
			  err };
	bool any = false;
	int rc = 0;

	while (rc == 0 && *text) {
		size_t n = 0;

		for (bool inside = false; text[n] && (inside || text[n] != ','); n++)
			inside = text[n] == '[' || (inside && text[n] != ']');
		if (n) {
			any = true;
			w.text = gpuq_arena_strndup(a, text, n);
			rc = w.text ? expand(&w, "", w.text, 0) : gpuq_no_memory(err);
		}
		text += n + (text[n] == ',');
	}
	if (rc == 0 && !any)
		return gpuq_fail(err, GPUQ_EINVAL, "expected at least one node name");
	return rc;
}
