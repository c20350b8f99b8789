#include "gpuq/nodeset.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 4096

struct set {
	struct gpuq_arena *a;
	struct gpuq_val *list;
	struct gpuq_err *err;
};

static int add(struct set *s, const char *name)
{
	if (s->list && s->list->n >= NAMES_MAX)
		return gpuq_fail(s->err, GPUQ_EINVAL, "more than %d nodes", NAMES_MAX);
	if (!name || !gpuq_add(s->a, s->list, gpuq_str(s->a, name)))
		return gpuq_fail(s->err, GPUQ_ENOMEM, "out of memory");
	return 0;
}

/* One "01-04" or "7" of a bracket. */
static int add_range(struct set *s, const char *head, const char *range, size_t n, const char *tail)
{
	char *text = gpuq_arena_strndup(s->a, range, n), *end;
	const int width = text ? (int)strcspn(text, "-") : 0;
	unsigned long first, last;
	int rc = 0;

	if (!text)
		return gpuq_fail(s->err, GPUQ_ENOMEM, "out of memory");
	first = last = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || width > 9)
		return gpuq_fail(s->err, GPUQ_EINVAL, "%s: expected a number or a range", text);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		last = strtoul(end + 1, &end, 10);
	if (*end || last < first)
		return gpuq_fail(s->err, GPUQ_EINVAL, "%s: expected a number or a range", text);
	for (unsigned long i = first; rc == 0 && i <= last; i++)
		rc = add(s, gpuq_arena_printf(s->a, "%s%0*lu%s", head, width, i, tail));
	return rc;
}

static int add_word(struct set *s, const char *word)
{
	const char *open = strchr(word, '['), *close = open ? strchr(open, ']') : NULL;
	const char *head;
	int rc = 0;

	if (!open)
		return add(s, word);
	if (!close || strchr(close, '['))
		return gpuq_fail(s->err, GPUQ_EINVAL, "%s: expected a name such as n[01-04]", word);
	head = gpuq_arena_strndup(s->a, word, (size_t)(open - word));
	if (!head)
		return gpuq_fail(s->err, GPUQ_ENOMEM, "out of memory");
	for (const char *p = open + 1; rc == 0 && p <= close;) {
		const size_t n = strcspn(p, ",]");

		rc = add_range(s, head, p, n, close + 1);
		p += n + 1;
	}
	return rc;
}

int nodeset_expand(struct gpuq_arena *a, const char *text, struct gpuq_val *list,
		   struct gpuq_err *err)
{
	struct set s = { a, list, err };
	int rc = 0;

	while (rc == 0 && *text) {
		size_t n = 0;
		bool inside = false;

		while (text[n] && (text[n] != ',' || inside)) {
			inside = text[n] == '[' || (inside && text[n] != ']');
			n++;
		}
		if (n) {
			const char *word = gpuq_arena_strndup(a, text, n);

			rc = word ? add_word(&s, word)
				  : gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
		}
		text += n + (text[n] == ',');
	}
	return rc;
}
