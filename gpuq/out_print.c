/* Lines of a list on standard output: a table, CSV, a format string, JSON. */
#include <libsmartcols.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpuq/out_int.h"
#include "gpuq/term.h"

#define CHUNK_BYTES 65536

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
	if (s->width)
		term_fit(out, s->col->name, (size_t)s->width, s->right);
	else
		gpuq_buf_adds(out, s->col->name);
}


static const char *next_cell(const char *cell)
{
	return cell + strlen(cell) + 1;
}

/* Lines as they are written: the cells of text. widest is of tables alone. */
typedef void (*put_fn)(const struct out *o, struct gpuq_buf *out, const char *text,
		       const struct cell *cells, const uint32_t *widest);

static char *blanks(char *p, size_t n)
{
	memset(p, ' ', n);
	return p + n;
}

static void put_table(const struct out *o, struct gpuq_buf *out, const char *text,
		      const struct cell *cells, const uint32_t *widest)
{
	size_t n = 0;
	char *p;

	for (size_t i = 0; i < o->n_shown; i++)
		n += cells[i].len + widest[i] + 1;
	if (gpuq_buf_reserve(out, n) < 0)
		return;
	p = out->data + out->len;
	for (size_t i = 0; i < o->n_shown; text += cells[i++].len + 1) {
		const bool right = o->shown[i].right, last = i + 1 == o->n_shown;
		const size_t room = widest[i] - cells[i].wide;

		if (right)
			p = blanks(p, room);
		memcpy(p, text, cells[i].len);
		p += cells[i].len;
		if (!last)
			p = blanks(p, right ? 1 : room + 1);
	}
	out->len = (size_t)(p - out->data);
}

static void put_formatted(const struct out *o, struct gpuq_buf *out, const char *text,
			  const struct cell *cells, const uint32_t *widest)
{
	(void)widest;
	for (size_t i = 0; i < o->n_shown; text += cells[i++].len + 1) {
		gpuq_buf_adds(out, o->shown[i].before);
		gpuq_buf_add(out, text, cells[i].len);
	}
	gpuq_buf_adds(out, o->after);
}

/* As RFC 4180 has it, with the line's end of this system. */
static void put_csv(const struct out *o, struct gpuq_buf *out, const char *cell,
		    const struct cell *cells, const uint32_t *widest)
{
	(void)widest;
	for (size_t i = 0; i < o->n_shown; cell += cells[i++].len + 1) {
		const bool quoted = strpbrk(cell, ",\"\r\n") || *cell == ' ';

		if (i)
			gpuq_buf_addc(out, ',');
		if (quoted)
			gpuq_buf_addc(out, '"');
		for (const char *p = cell; quoted && *p; p++) {
			if (*p == '"')
				gpuq_buf_addc(out, '"');
			gpuq_buf_addc(out, *p);
		}
		gpuq_buf_adds(out, quoted ? "\"" : cell);
	}
}

static void put_json(const struct out *o, struct gpuq_buf *out, const char *text,
		     const struct cell *cells, const uint32_t *widest)
{
	(void)o, (void)cells, (void)widest;
	gpuq_buf_adds(out, text);
}

/* What is written leaves in large pieces. */
static void end_line(struct gpuq_buf *out)
{
	gpuq_buf_addc(out, '\n');
	if (out->len < CHUNK_BYTES)
		return;
	fwrite(out->data, 1, out->len, stdout);
	out->len = 0;
}

/* The names of the columns as cells. */
static void put_heads(const struct out *o, struct gpuq_buf *text, struct cell *cells)
{
	for (size_t i = 0; i < o->n_shown; i++) {
		const size_t from = text->len;

		if (o->csv)
			gpuq_buf_adds(text, o->shown[i].col->name);
		else
			heading(text, &o->shown[i]);
		cells[i].len = cells[i].wide = (uint32_t)(text->len - from);
		gpuq_buf_addc(text, '\0');
	}
}

static int print_lines(const struct out *o, size_t n, put_fn put)
{
	struct gpuq_buf out = GPUQ_BUF_INIT, heads = GPUQ_BUF_INIT;
	struct cell cells[OUT_COLS_MAX];
	uint32_t widest[OUT_COLS_MAX];
	bool failed;

	put_heads(o, &heads, cells);
	for (size_t i = 0; i < o->n_shown; i++)
		widest[i] = cells[i].wide;
	for (size_t k = 0; put == put_table && k < n; k++)
		for (size_t i = 0; i < o->n_shown; i++)
			if (o->lines[k].cells[i].wide > widest[i])
				widest[i] = o->lines[k].cells[i].wide;
	if (o->header && !heads.failed && put != put_json) {
		put(o, &out, heads.data, cells, widest);
		end_line(&out);
	}
	for (size_t k = 0; k < n; k++) {
		put(o, &out, o->lines[k].text, o->lines[k].cells, widest);
		end_line(&out);
	}
	fwrite(out.data, 1, out.len, stdout);
	failed = out.failed || heads.failed;
	gpuq_buf_done(&out);
	gpuq_buf_done(&heads);
	return failed ? GPUQ_ENOMEM : 0;
}

/* smartcols cuts what is too wide, and prints nothing at all for an empty table. */
static int print_terminal(const struct out *o, size_t n)
{
	struct gpuq_buf head = GPUQ_BUF_INIT;
	struct libscols_table *t = NULL;
	const bool colours = term_colours(stdout);
	int rc = GPUQ_ENOMEM;

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

		gpuq_buf_clear(&head);
		heading(&head, s);
		if (!scols_table_new_column(t, gpuq_buf_str(&head), 0,
					    (s->right ? SCOLS_FL_RIGHT : 0) |
						    (cut ? SCOLS_FL_TRUNC : 0)))
			goto out;
	}
	for (size_t k = 0; k < n; k++) {
		struct libscols_line *l = scols_table_new_line(t, NULL);
		const char *cell = o->lines[k].text;

		if (!l)
			goto out;
		for (size_t i = 0; i < o->n_shown; i++, cell = next_cell(cell)) {
			const char *colour;

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

int out_print(const struct out *o, size_t n)
{
	if (o->json)
		return print_lines(o, n, put_json);
	if (o->csv)
		return print_lines(o, n, put_csv);
	if (o->format)
		return print_lines(o, n, put_formatted);
	return n && isatty(STDOUT_FILENO) ? print_terminal(o, n) : print_lines(o, n, put_table);
}
