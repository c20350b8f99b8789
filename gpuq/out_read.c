/* Which columns a list shows, and in which order: what -o and --sort say. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpuq/out_int.h"
#include "libgpuq/schema.h"

#define WIDTH_MAX 1000

static const struct column *by_name(const struct column *cols, const char *name, size_t n)
{
	for (const struct column *c = cols; c->name; c++)
		if (strncasecmp(c->name, name, n) == 0 && c->name[n] == '\0')
			return c;
	for (const struct column *c = cols; n == 1 && c->name; c++)
		if (c->letter && c->letter == *name)
			return c;
	return NULL;
}

static int no_column(const struct column *cols, const char *name, size_t n, struct gpuq_err *err)
{
	const char *names[OUT_COLS_MAX + 1], *near;
	struct gpuq_buf all = GPUQ_BUF_INIT;
	char upper[64];
	size_t k = 0;

	if (n == 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected names of columns, one comma between two of them");
	for (const struct column *c = cols; c->name && k < OUT_COLS_MAX; c++) {
		names[k++] = c->name;
		gpuq_buf_printf(&all, "%s%s", all.len ? " " : "", c->name);
	}
	names[k] = NULL;
	for (k = 0; k < n && k < sizeof(upper) - 1; k++)
		upper[k] = (char)toupper((unsigned char)name[k]);
	upper[k] = '\0';
	near = gpuq_nearest(upper, names);
	if (near)
		gpuq_fail(err, GPUQ_EINVAL, "no column %.*s; did you mean %s?", (int)n, name, near);
	else
		gpuq_fail(err, GPUQ_EINVAL, "no column %.*s; there are: %s", (int)n, name,
			  gpuq_buf_str(&all));
	gpuq_buf_done(&all);
	return GPUQ_EINVAL;
}

/* "NAME:20" is cut and filled to twenty columns, "NAME:.20" set to the right in them. */
static int read_width(struct shown *s, const char *text, size_t n, struct gpuq_err *err)
{
	size_t i = n > 0 && text[0] == '.';

	s->right = i > 0;
	for (; i < n && isdigit((unsigned char)text[i]) && s->width < WIDTH_MAX; i++)
		s->width = s->width * 10 + (text[i] - '0');
	if (i < n || s->width == 0 || s->width > WIDTH_MAX)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "-o %s:%.*s: expected a width from 1 to %d, as in %s:20 or %s:.20",
				 s->col->name, (int)n, text, WIDTH_MAX, s->col->name, s->col->name);
	return 0;
}

/* Its place in the list of names, from 1; 0 = it is not there. */
static unsigned place_in(const char *names, const char *name)
{
	const size_t len = strlen(name);
	unsigned at = 0;

	while (names && *names) {
		const size_t n = strcspn(names, ",");

		at++;
		if (n == len && memcmp(names, name, n) == 0)
			return at;
		names += n + (names[n] == ',');
	}
	return 0;
}

/* spare: of out_def; NULL for columns that the user named. */
static int read_names(struct out *o, const char *text, const char *spare, struct gpuq_err *err)
{
	while (*text) {
		const size_t n = strcspn(text, ","), name = strcspn(text, ",:");
		struct shown s = { .col = by_name(o->def->cols, text, name) };
		int rc = 0;

		if (!s.col)
			return no_column(o->def->cols, text, name, err);
		s.right = s.col->flags & COL_RIGHT;
		s.leaves = place_in(spare, s.col->name);
		if (name < n)
			rc = read_width(&s, text + name + 1, n - name - 1, err);
		if (rc < 0)
			return rc;
		if (o->n_shown == OUT_COLS_MAX)
			return gpuq_fail(err, GPUQ_EINVAL, "more than %d columns", OUT_COLS_MAX);
		o->shown[o->n_shown++] = s;
		text += n + (text[n] == ',');
	}
	return o->n_shown ? 0 : gpuq_fail(err, GPUQ_EINVAL, "-o: expected names of columns");
}

/* squeue's form: "%.18i %9P", a dot sets it to the right, the number is the width. */
static int read_format(struct out *o, const char *text, struct gpuq_err *err)
{
	const char *start = text;

	o->format = true;
	while (*text) {
		struct shown s = { .col = NULL };

		if (*text != '%') {
			text++;
			continue;
		}
		s.before = gpuq_arena_strndup(&o->names, start, (size_t)(text - start));
		if (!s.before)
			return gpuq_no_memory(err);
		text++;
		if (*text == '.') {
			s.right = true;
			text++;
		}
		while (isdigit((unsigned char)*text) && s.width < WIDTH_MAX)
			s.width = s.width * 10 + (*text++ - '0');
		for (const struct column *c = o->def->cols; c->name && !s.col; c++)
			if (c->letter && c->letter == *text)
				s.col = c;
		if (!s.col)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "-o: no column %%%c here; name columns "
					 "as in -o JOBID,NAME",
					 *text ? *text : '%');
		if (o->n_shown == OUT_COLS_MAX)
			return gpuq_fail(err, GPUQ_EINVAL, "more than %d columns", OUT_COLS_MAX);
		o->shown[o->n_shown++] = s;
		start = ++text;
	}
	o->after = gpuq_arena_strdup(&o->names, start);
	return o->after ? 0 : gpuq_no_memory(err);
}

static int read_sort(struct out *o, const char *text, struct gpuq_err *err)
{
	while (*text) {
		const bool down = *text == '-';
		size_t n;

		text += *text == '-' || *text == '+';
		n = strcspn(text, ",");
		if (o->n_sort == OUT_SORT_MAX)
			return gpuq_fail(err, GPUQ_EINVAL, "--sort: more than %d columns",
					 OUT_SORT_MAX);
		o->sort[o->n_sort] = by_name(o->def->cols, text, n);
		if (!o->sort[o->n_sort])
			return no_column(o->def->cols, text, n, err);
		o->down[o->n_sort++] = down;
		text += n + (text[n] == ',');
	}
	return 0;
}

void out_keys_add(struct out_keys *k, struct gpuq_arena *a, const char *words)
{
	k->all |= !words;
	while (words && *words && !k->all) {
		const size_t n = strcspn(words, " ");
		size_t i = 0;

		while (i < k->n && (strncmp(k->names[i], words, n) != 0 || k->names[i][n] != '\0'))
			i++;
		if (i == k->n && i < OUT_KEYS_MAX)
			k->names[k->n++] = gpuq_arena_strndup(a, words, n);
		k->all |= i == OUT_KEYS_MAX || !k->names[i];
		words += n + (words[n] == ' ');
	}
}

static void find_keys(struct out *o)
{
	struct out_keys *k = &o->keys;

	out_keys_add(k, &o->names, o->json ? NULL : o->def->keys);
	for (size_t i = 0; i < o->n_shown; i++)
		out_keys_add(k, &o->names, o->shown[i].col->key);
	for (size_t i = 0; i < o->n_sort; i++)
		out_keys_add(k, &o->names, o->sort[i]->key);
}

int out_read(struct out *o, const char *shown, const struct args *args, struct gpuq_err *err)
{
	const char *cols = args->val[OPT_FORMAT], *sort = args->val[OPT_SORT];
	const char *limit = args->val[OPT_LIMIT];
	char *end;
	int rc = 0;

	if (o->csv && (o->json || (cols && strchr(cols, '%'))))
		rc = gpuq_fail(err, GPUQ_EINVAL, "--csv cannot go together with %s",
			       o->json ? "--json" : "a format such as %i: name columns");
	if (limit) {
		o->limit = strtoul(limit, &end, 10);
		if (*end || !isdigit((unsigned char)*limit) || o->limit == 0 ||
		    o->limit > INT32_MAX)
			rc = gpuq_fail(err, GPUQ_EINVAL,
				       "--limit %s: expected a number from 1 to %d", limit,
				       INT32_MAX);
	}
	if (rc == 0 && cols && strchr(cols, '%'))
		rc = read_format(o, cols, err);
	else if (rc == 0 && cols && *cols != '+')
		rc = read_names(o, cols, NULL, err);
	else if (rc == 0)
		rc = read_names(o, shown ? shown : o->def->usual, shown ? NULL : o->def->spare,
				err);
	if (rc == 0 && cols && *cols == '+')
		rc = read_names(o, cols + 1, NULL, err);
	if (rc == 0 && sort && !*sort)
		rc = no_column(o->def->cols, sort, 0, err);
	if (rc == 0 && (sort || (o->def->sort && !o->json)))
		rc = read_sort(o, sort ? sort : o->def->sort, err);
	if (rc == 0)
		find_keys(o);
	return rc;
}
