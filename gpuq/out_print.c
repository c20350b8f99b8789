/* Lines of a list on standard output: a table, CSV, a format string, JSON. */
#include <stdio.h>
#include <string.h>

#include "gpuq/out_int.h"
#include "gpuq/term.h"

#define CHUNK_BYTES 65536
#define LEFT_OUT UINT32_MAX /* as the width of a column */
#define SHORT 16 /* columns that cutting leaves where lines are too wide in any case */
#define LEGIBLE 8 /* columns of the terminal that names should have at least */

#define RED "\033[31m"
#define GREEN "\033[32m"
#define BROWN "\033[33m"
#define PLAIN "\033[0m"

/* As a terminal takes it; NULL: none. */
static const char *colour_of(const char *state)
{
	static const struct {
		const char *word, *colour;
	} colours[] = {
		{ "R", GREEN },       { "RUNNING", GREEN }, { "PD", BROWN },
		{ "PENDING", BROWN }, { "F", RED },         { "FAILED", RED },
		{ "TO", RED },        { "TIMEOUT", RED },   { "NF", RED },
		{ "NODE_FAIL", RED }, { "OOM", RED },       { "OUT_OF_MEMORY", RED },
		{ "DL", RED },        { "DEADLINE", RED },  { "down", RED },
		{ "drain", BROWN },   { "drained", BROWN }, { "suspect", BROWN },
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

/* On a terminal cells may be too wide, and states have colours. */
static void put_terminal(const struct out *o, struct gpuq_buf *out, const char *text,
			 const struct cell *cells, const uint32_t *widest)
{
	const bool colours = term_colours(stdout);

	size_t n_shown = o->n_shown;

	while (n_shown > 0 && widest[n_shown - 1] == LEFT_OUT)
		n_shown--;
	for (size_t i = 0; i < n_shown; text += cells[i++].len + 1) {
		const bool last = i + 1 == n_shown;
		const char *colour =
			colours && o->shown[i].col->flags & COL_STATE ? colour_of(text) : NULL;

		if (widest[i] == LEFT_OUT)
			continue;
		if (colour)
			gpuq_buf_adds(out, colour);
		if (last && !o->shown[i].right && cells[i].wide <= widest[i])
			gpuq_buf_add(out, text, cells[i].len);
		else
			term_fit(out, text, widest[i], o->shown[i].right);
		if (colour)
			gpuq_buf_adds(out, PLAIN);
		if (!last)
			gpuq_buf_addc(out, ' ');
	}
}

static bool may_be_cut(const struct shown *s)
{
	return s->col->flags & COL_CUT && !s->width;
}

static size_t width_of(const struct out *o, const uint32_t *widest)
{
	size_t total = 0;

	for (size_t i = 0; i < o->n_shown; i++)
		if (widest[i] != LEFT_OUT)
			total += 1 + widest[i];
	return total ? total - 1 : 0; /* a blank between two */
}

/* Where cutting leaves too little of names, columns that are needed less are left out. */
static void leave_out(const struct out *o, const struct cell *heads, uint32_t *widest, size_t room)
{
	uint32_t least[OUT_COLS_MAX];

	for (size_t i = 0; i < o->n_shown; i++) {
		const uint32_t n = heads[i].wide > LEGIBLE ? heads[i].wide : LEGIBLE;

		least[i] = may_be_cut(&o->shown[i]) && widest[i] > n ? n : widest[i];
	}
	for (unsigned turn = 1; turn <= o->n_shown && width_of(o, least) > room; turn++)
		for (size_t i = 0; i < o->n_shown; i++)
			if (o->shown[i].leaves == turn)
				least[i] = widest[i] = LEFT_OUT;
}

/* Could they be as narrow as their names, would lines fit? */
static bool can_fit(const struct out *o, const struct cell *heads, const uint32_t *widest,
		    size_t room)
{
	uint32_t least[OUT_COLS_MAX];

	for (size_t i = 0; i < o->n_shown; i++) {
		least[i] = widest[i];
		if (may_be_cut(&o->shown[i]) && widest[i] != LEFT_OUT)
			least[i] = heads[i].wide;
	}
	return width_of(o, least) <= room;
}

/* Where lines are wider than the terminal, the widest of those columns that may be cut get
 * narrower, but not than their names; where that does not help, than names are short. */
static void narrow(const struct out *o, const struct cell *heads, uint32_t *widest, size_t room)
{
	uint32_t least = 0;
	size_t total;

	if (room)
		leave_out(o, heads, widest, room);
	if (!can_fit(o, heads, widest, room))
		least = SHORT;
	total = width_of(o, widest);
	for (; room && total > room; total--) {
		size_t most = o->n_shown;

		for (size_t i = 0; i < o->n_shown; i++)
			if (may_be_cut(&o->shown[i]) && widest[i] != LEFT_OUT &&
			    widest[i] > heads[i].wide && widest[i] > least &&
			    (most == o->n_shown || widest[i] >= widest[most]))
				most = i;
		if (most == o->n_shown)
			return;
		widest[most]--;
	}
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

/* Write the output in large pieces. */
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

static int print_lines(const struct out *o, size_t n, put_fn put_line)
{
	struct gpuq_buf out = GPUQ_BUF_INIT, heads = GPUQ_BUF_INIT;
	struct cell cells[OUT_COLS_MAX];
	uint32_t widest[OUT_COLS_MAX];
	bool failed;

	put_heads(o, &heads, cells);
	for (size_t i = 0; i < o->n_shown; i++)
		widest[i] = cells[i].wide;
	for (size_t k = 0; (put_line == put_table || put_line == put_terminal) && k < n; k++)
		for (size_t i = 0; i < o->n_shown; i++)
			if (o->lines[k].cells[i].wide > widest[i])
				widest[i] = o->lines[k].cells[i].wide;
	if (put_line == put_terminal)
		narrow(o, cells, widest, (size_t)term_width(stdout));
	if (o->header && !heads.failed && put_line != put_json) {
		put_line(o, &out, heads.data, cells, widest);
		end_line(&out);
	}
	for (size_t k = 0; k < n; k++) {
		put_line(o, &out, o->lines[k].text, o->lines[k].cells, widest);
		end_line(&out);
	}
	if (out.len)
		fwrite(out.data, 1, out.len, stdout);
	failed = out.failed || heads.failed;
	gpuq_buf_done(&out);
	gpuq_buf_done(&heads);
	return failed ? GPUQ_ENOMEM : 0;
}

int out_print(const struct out *o, size_t n)
{
	return print_lines(o, n,
			   o->json              ? put_json
			   : o->csv             ? put_csv
			   : o->format          ? put_formatted
			   : term_width(stdout) ? put_terminal
						: put_table);
}
