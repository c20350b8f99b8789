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


static void pad(struct gpuq_buf *out, size_t n)
{
	static const char blanks[] = "                                ";

	for (size_t k; n > 0; n -= k) {
		k = n < sizeof(blanks) - 1 ? n : sizeof(blanks) - 1;
		gpuq_buf_add(out, blanks, k);
	}
}

static const char *next_cell(const char *cell)
{
	return cell + strlen(cell) + 1;
}

/* Lines as they are written: cells follow each other. widest is of tables alone. */
typedef void (*put_fn)(const struct out *o, struct gpuq_buf *out, const char *cell,
		       const uint32_t *wide, const uint32_t *widest);

static void put_table(const struct out *o, struct gpuq_buf *out, const char *cell,
		      const uint32_t *wide, const uint32_t *widest)
{
	for (size_t i = 0; i < o->n_shown; i++, cell = next_cell(cell)) {
		const bool right = o->shown[i].right, last = i + 1 == o->n_shown;

		if (right)
			pad(out, widest[i] - wide[i]);
		gpuq_buf_adds(out, cell);
		if (!right && !last)
			pad(out, widest[i] - wide[i]);
		if (!last)
			gpuq_buf_addc(out, ' ');
	}
}

static void put_formatted(const struct out *o, struct gpuq_buf *out, const char *cell,
			  const uint32_t *wide, const uint32_t *widest)
{
	(void)wide, (void)widest;
	for (size_t i = 0; i < o->n_shown; i++, cell = next_cell(cell)) {
		gpuq_buf_adds(out, o->shown[i].before);
		gpuq_buf_adds(out, cell);
	}
	gpuq_buf_adds(out, o->after);
}

/* As RFC 4180 has it, with the line's end of this system. */
static void put_csv(const struct out *o, struct gpuq_buf *out, const char *cell,
		    const uint32_t *wide, const uint32_t *widest)
{
	(void)wide, (void)widest;
	for (size_t i = 0; i < o->n_shown; i++, cell = next_cell(cell)) {
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

static void put_json(const struct out *o, struct gpuq_buf *out, const char *cell,
		     const uint32_t *wide, const uint32_t *widest)
{
	(void)o, (void)wide, (void)widest;
	gpuq_buf_adds(out, cell);
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
static void put_heads(const struct out *o, struct gpuq_buf *cells, uint32_t *wide)
{
	for (size_t i = 0; i < o->n_shown; i++) {
		const size_t from = cells->len;

		if (o->csv)
			gpuq_buf_adds(cells, o->shown[i].col->name);
		else
			heading(cells, &o->shown[i]);
		wide[i] = (uint32_t)(cells->len - from);
		gpuq_buf_addc(cells, '\0');
	}
}

static int print_lines(const struct out *o, size_t n, put_fn put)
{
	struct gpuq_buf out = GPUQ_BUF_INIT, heads = GPUQ_BUF_INIT;
	uint32_t wide[OUT_COLS_MAX], widest[OUT_COLS_MAX];
	bool failed;

	put_heads(o, &heads, wide);
	memcpy(widest, wide, sizeof(widest));
	for (size_t k = 0; put == put_table && k < n; k++)
		for (size_t i = 0; i < o->n_shown; i++)
			if (o->lines[k].wide[i] > widest[i])
				widest[i] = o->lines[k].wide[i];
	if (o->header && !heads.failed && put != put_json) {
		put(o, &out, heads.data, wide, widest);
		end_line(&out);
	}
	for (size_t k = 0; k < n; k++) {
		put(o, &out, o->lines[k].text, o->lines[k].wide, widest);
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
