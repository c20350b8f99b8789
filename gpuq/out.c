#include "gpuq/out.h"

#include <ctype.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/schema.h"

#define COLS_MAX 48
#define SORT_MAX 8
#define WIDTH_MAX 1000

struct shown {
	const struct column *col;
	const char *before; /* text before it, in squeue's format strings */
	int width; /* columns of the terminal; 0 = as wide as it needs */
	bool right;
};

struct key {
	const char *text; /* NULL: a number */
	double number;
};

struct line {
	const char **cells; /* n_shown; for JSON one, the whole line */
	struct key *keys; /* n_sort */
	const struct out *out;
	size_t at; /* keeps equal lines in the order they came */
};

struct out {
	const struct out_def *def;
	struct gpuq_arena arena; /* lines */
	struct gpuq_arena names; /* what -o and --sort said */
	struct shown shown[COLS_MAX];
	size_t n_shown;
	const char *after; /* text behind the last column of a format string */
	bool format; /* squeue's format string */
	const struct column *sort[SORT_MAX];
	bool down[SORT_MAX];
	size_t n_sort;
	struct line *lines;
	size_t n_lines, room, limit;
	size_t n_printed; /* JSON that went out at once */
	bool json, csv, header;
	int64_t now_us;
};

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
	const char *names[COLS_MAX + 1], *near;
	struct gpuq_buf all = GPUQ_BUF_INIT;
	char upper[64];
	size_t k = 0;

	for (const struct column *c = cols; c->name && k < COLS_MAX; c++) {
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

static int read_names(struct out *o, const char *text, struct gpuq_err *err)
{
	while (*text) {
		const size_t n = strcspn(text, ","), name = strcspn(text, ",:");
		struct shown s = { .col = by_name(o->def->cols, text, name) };
		int rc = 0;

		if (!s.col)
			return no_column(o->def->cols, text, name, err);
		s.right = s.col->flags & COL_RIGHT;
		if (name < n)
			rc = read_width(&s, text + name + 1, n - name - 1, err);
		if (rc < 0)
			return rc;
		if (o->n_shown == COLS_MAX)
			return gpuq_fail(err, GPUQ_EINVAL, "more than %d columns", COLS_MAX);
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
			return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
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
		if (o->n_shown == COLS_MAX)
			return gpuq_fail(err, GPUQ_EINVAL, "more than %d columns", COLS_MAX);
		o->shown[o->n_shown++] = s;
		start = ++text;
	}
	o->after = gpuq_arena_strdup(&o->names, start);
	return o->after ? 0 : gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
}

static int read_sort(struct out *o, const char *text, struct gpuq_err *err)
{
	while (*text) {
		const bool down = *text == '-';
		size_t n;

		text += *text == '-' || *text == '+';
		n = strcspn(text, ",");
		if (o->n_sort == SORT_MAX)
			return gpuq_fail(err, GPUQ_EINVAL, "--sort: more than %d columns",
					 SORT_MAX);
		o->sort[o->n_sort] = by_name(o->def->cols, text, n);
		if (!o->sort[o->n_sort])
			return no_column(o->def->cols, text, n, err);
		o->down[o->n_sort++] = down;
		text += n + (text[n] == ',');
	}
	return 0;
}

int out_new(const struct out_def *def, const char *shown, const struct args *args, struct out **out,
	    struct gpuq_err *err)
{
	const char *cols = args->val[OPT_FORMAT], *sort = args->val[OPT_SORT];
	const char *limit = args->val[OPT_LIMIT];
	struct out *o = calloc(1, sizeof(*o));
	char *end;
	int rc = 0;

	if (!o)
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	o->def = def;
	o->json = opt_given(args, OPT_JSON);
	o->csv = opt_given(args, OPT_CSV);
	o->header = !opt_given(args, OPT_NO_HEADER);
	if (o->csv && (o->json || (cols && strchr(cols, '%'))))
		rc = gpuq_fail(err, GPUQ_EINVAL, "--csv cannot go together with %s",
			       o->json ? "--json" : "a format such as %i: name columns");
	if (limit) {
		o->limit = strtoul(limit, &end, 10);
		if (*end || !isdigit((unsigned char)*limit) || o->limit == 0)
			rc = gpuq_fail(err, GPUQ_EINVAL, "--limit %s: expected a number from 1",
				       limit);
	}
	if (rc == 0 && cols && strchr(cols, '%'))
		rc = read_format(o, cols, err);
	else if (rc == 0 && cols && *cols != '+')
		rc = read_names(o, cols, err);
	else if (rc == 0)
		rc = read_names(o, shown ? shown : def->usual, err);
	if (rc == 0 && cols && *cols == '+')
		rc = read_names(o, cols + 1, err);
	if (rc == 0 && (sort || (def->sort && !o->json)))
		rc = read_sort(o, sort ? sort : def->sort, err);
	if (rc < 0)
		out_free(o);
	else
		*out = o;
	return rc;
}

void out_free(struct out *o)
{
	if (!o)
		return;
	gpuq_arena_done(&o->arena);
	gpuq_arena_done(&o->names);
	free(o->lines);
	free(o);
}

int out_json(const struct gpuq_val *obj)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = view_json(&a, obj);
	struct gpuq_buf text = GPUQ_BUF_INIT;
	int rc = v ? 0 : GPUQ_ENOMEM;

	if (v) {
		gpuq_json_write(&text, v, 0);
		puts(gpuq_buf_str(&text));
		rc = text.failed ? GPUQ_ENOMEM : 0;
	}
	gpuq_buf_done(&text);
	gpuq_arena_done(&a);
	return rc;
}

static struct line *new_line(struct out *o, size_t n_cells)
{
	struct line *l;

	if (o->n_lines == o->room) {
		const size_t room = o->room ? o->room * 2 : 64;
		struct line *more = realloc(o->lines, room * sizeof(*more));

		if (!more)
			return NULL;
		o->lines = more;
		o->room = room;
	}
	l = &o->lines[o->n_lines];
	l->out = o;
	l->at = o->n_lines;
	l->cells = gpuq_arena_calloc(&o->arena, n_cells, sizeof(*l->cells));
	l->keys = gpuq_arena_calloc(&o->arena, o->n_sort ? o->n_sort : 1, sizeof(*l->keys));
	if (!l->cells || !l->keys)
		return NULL;
	o->n_lines++;
	return l;
}

void out_cell(const struct column *c, const struct row *r, struct gpuq_buf *out)
{
	const struct gpuq_val *v;

	if (c->text) {
		c->text(out, r);
		return;
	}
	v = r->sub ? gpuq_get(r->sub, c->key) : NULL;
	view_cell(out, v ? v : gpuq_get(r->obj, c->key));
}

static int fill_keys(struct out *o, struct line *l, const struct row *r)
{
	for (size_t i = 0; i < o->n_sort; i++) {
		const struct column *c = o->sort[i];
		const struct gpuq_val *v = NULL;
		struct gpuq_buf text = GPUQ_BUF_INIT;

		if (c->rank) {
			l->keys[i].number = c->rank(r);
			continue;
		}
		if (c->key && r->sub)
			v = gpuq_get(r->sub, c->key);
		if (c->key && !v)
			v = gpuq_get(r->obj, c->key);
		if (v && (v->type == GPUQ_INT || v->type == GPUQ_REAL)) {
			l->keys[i].number = view_number(v, 0);
			continue;
		}
		out_cell(c, r, &text);
		l->keys[i].text = gpuq_arena_strdup(&o->arena, gpuq_buf_str(&text));
		gpuq_buf_done(&text);
		if (!l->keys[i].text)
			return GPUQ_ENOMEM;
	}
	return 0;
}

int out_row(struct out *o, const struct gpuq_val *obj, const struct gpuq_val *sub)
{
	const struct row r = { obj, sub, o->now_us };
	struct gpuq_buf text = GPUQ_BUF_INIT, clean = GPUQ_BUF_INIT;
	struct line *l = new_line(o, o->n_shown);
	int rc = l ? fill_keys(o, l, &r) : GPUQ_ENOMEM;

	for (size_t i = 0; rc == 0 && i < o->n_shown; i++) {
		gpuq_buf_clear(&text);
		gpuq_buf_clear(&clean);
		out_cell(o->shown[i].col, &r, &text);
		term_clean_str(&clean, gpuq_buf_str(&text));
		if (o->shown[i].width) {
			gpuq_buf_clear(&text);
			term_fit(&text, gpuq_buf_str(&clean), (size_t)o->shown[i].width,
				 o->shown[i].right);
		}
		l->cells[i] = gpuq_arena_strdup(&o->arena,
						gpuq_buf_str(o->shown[i].width ? &text : &clean));
		if (!l->cells[i] || text.failed || clean.failed)
			rc = GPUQ_ENOMEM;
	}
	gpuq_buf_done(&text);
	gpuq_buf_done(&clean);
	return rc;
}

static int keep_json(struct out *o, const struct gpuq_val *obj)
{
	const struct row r = { obj, NULL, o->now_us };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = view_json(&a, obj);
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct line *l = new_line(o, 1);
	int rc = v && l ? fill_keys(o, l, &r) : GPUQ_ENOMEM;

	if (rc == 0) {
		gpuq_json_write(&text, v, 0);
		l->cells[0] = gpuq_arena_strdup(&o->arena, gpuq_buf_str(&text));
		if (!l->cells[0] || text.failed)
			rc = GPUQ_ENOMEM;
	}
	gpuq_buf_done(&text);
	gpuq_arena_done(&a);
	return rc;
}

int out_add(struct out *o, const struct gpuq_val *obj, int64_t now_us)
{
	int rc;

	o->now_us = now_us;
	if (o->json && o->n_sort == 0) {
		rc = out_json(obj);
		o->n_printed++;
		return rc < 0 ? rc : o->limit && o->n_printed >= o->limit;
	}
	if (o->json)
		rc = keep_json(o, obj);
	else
		rc = o->def->rows ? o->def->rows(o, obj) : out_row(o, obj, NULL);
	if (rc < 0)
		return rc;
	/* With an order every line is needed, since the last may be the first. */
	return o->n_sort == 0 && o->limit && o->n_lines >= o->limit;
}

static int compare(const void *x, const void *y)
{
	const struct line *a = x, *b = y;
	const struct out *o = a->out;

	for (size_t i = 0; i < o->n_sort; i++) {
		const struct key *p = &a->keys[i], *q = &b->keys[i];
		int d;

		if (p->text && q->text)
			d = view_natural(p->text, q->text);
		else if (p->text || q->text)
			d = p->text ? 1 : -1; /* absent ("-") behind numbers */
		else
			d = p->number < q->number ? -1 : p->number > q->number;
		if (d)
			return o->down[i] ? -d : d;
	}
	return a->at < b->at ? -1 : 1;
}

static const char *colour_of(const char *state)
{
	static const struct {
		const char *word, *colour;
	} colours[] = {
		{ "R", "green" },       { "RUNNING", "green" }, { "PD", "brown" },
		{ "PENDING", "brown" }, { "F", "red" },         { "FAILED", "red" },
		{ "TO", "red" },        { "TIMEOUT", "red" },   { "NF", "red" },
		{ "NODE_FAIL", "red" }, { "OOM", "red" },       { "OUT_OF_MEMORY", "red" },
		{ "DL", "red" },        { "DEADLINE", "red" },  { "down", "red" },
		{ "drain", "brown" },   { "drained", "brown" }, { "suspect", "brown" },
	};

	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
		if (strcmp(colours[i].word, state) == 0)
			return colours[i].colour;
	return NULL;
}

/* The name of a column as wide as its cells. */
static void heading(struct gpuq_buf *out, const struct shown *s)
{
	gpuq_buf_clear(out);
	if (s->width)
		term_fit(out, s->col->name, (size_t)s->width, s->right);
	else
		gpuq_buf_adds(out, s->col->name);
}

static int print_table(struct out *o, size_t n)
{
	struct gpuq_buf head = GPUQ_BUF_INIT;
	struct libscols_table *t = NULL;
	const bool colours = term_colours(stdout);
	int rc = GPUQ_ENOMEM;

	/* smartcols prints nothing at all for an empty table, but a script that cuts
	 * the first line off expects one. */
	if (n == 0) {
		for (size_t i = 0; o->header && i < o->n_shown; i++) {
			heading(&head, &o->shown[i]);
			printf("%s%s", i ? " " : "", gpuq_buf_str(&head));
		}
		if (o->header)
			putchar('\n');
		gpuq_buf_done(&head);
		return 0;
	}
	scols_init_debug(0);
	t = scols_new_table();
	if (!t)
		return rc;
	scols_table_enable_noencoding(t, 1); /* term_clean did it, and better */
	scols_table_enable_noheadings(t, !o->header);
	scols_table_enable_colors(t, colours);
	for (size_t i = 0; i < o->n_shown; i++) {
		const struct shown *s = &o->shown[i];
		const bool cut = s->col->flags & COL_CUT && s->width == 0;

		heading(&head, s);
		if (!scols_table_new_column(t, gpuq_buf_str(&head), 0,
					    (s->right ? SCOLS_FL_RIGHT : 0) |
						    (cut ? SCOLS_FL_TRUNC : 0)))
			goto out;
	}
	for (size_t k = 0; k < n; k++) {
		struct libscols_line *l = scols_table_new_line(t, NULL);

		if (!l)
			goto out;
		for (size_t i = 0; i < o->n_shown; i++) {
			const char *cell = o->lines[k].cells[i], *colour;

			if (scols_line_set_data(l, i, cell) != 0)
				goto out;
			colour = colours && o->shown[i].col->flags & COL_STATE ? colour_of(cell)
									       : NULL;
			if (colour)
				scols_cell_set_color(scols_line_get_cell(l, i), colour);
		}
	}
	if (scols_print_table(t) == 0)
		rc = 0;
out:
	scols_unref_table(t);
	gpuq_buf_done(&head);
	return rc;
}

static void print_formatted(const struct out *o, const char *const *cells)
{
	struct gpuq_buf head = GPUQ_BUF_INIT;

	for (size_t i = 0; i < o->n_shown; i++) {
		if (!cells)
			heading(&head, &o->shown[i]);
		fputs(o->shown[i].before, stdout);
		fputs(cells ? cells[i] : gpuq_buf_str(&head), stdout);
	}
	puts(o->after);
	gpuq_buf_done(&head);
}

/* As RFC 4180 has it, with the line's end of this system. */
static void csv_field(const char *text)
{
	if (!strpbrk(text, ",\"\r\n") && *text != ' ') {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

static void print_csv(const struct out *o, const char *const *cells)
{
	for (size_t i = 0; i < o->n_shown; i++) {
		if (i)
			putchar(',');
		csv_field(cells ? cells[i] : o->shown[i].col->name);
	}
	putchar('\n');
}

void out_forget(struct out *o)
{
	o->n_lines = 0;
	o->n_printed = 0;
	gpuq_arena_reset(&o->arena);
}

int out_flush(struct out *o)
{
	size_t n;
	int rc = 0;

	if (o->n_sort && o->n_lines > 1)
		qsort(o->lines, o->n_lines, sizeof(*o->lines), compare);
	n = o->limit && o->limit < o->n_lines ? o->limit : o->n_lines;
	if (o->json) {
		for (size_t i = 0; i < n; i++)
			puts(o->lines[i].cells[0]);
	} else if (o->csv) {
		if (o->header)
			print_csv(o, NULL);
		for (size_t i = 0; i < n; i++)
			print_csv(o, o->lines[i].cells);
	} else if (o->format) {
		if (o->header)
			print_formatted(o, NULL);
		for (size_t i = 0; i < n; i++)
			print_formatted(o, o->lines[i].cells);
	} else {
		rc = print_table(o, n);
	}
	fflush(stdout);
	out_forget(o);
	return rc;
}
