/* The screen of gpuq top, through ncurses. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "gpuq/top/top.h"

/* Last: both it and libgpuq/err.h have an ERR. */
#include <curses.h>

#define HEAD_LINES 3
#define WIDTH_MOST 40 /* of a column that may be cut */

/* Draw text in this many places of the screen and fill the rest with blanks. */
static void put(int y, int x, int width, const char *text, bool right)
{
	mbstate_t state = { 0 };
	int used = 0;
	size_t bytes = 0;
	const size_t n = strlen(text);

	for (size_t k = 0; bytes < n; bytes += k) {
		wchar_t c;
		int w;

		k = mbrtowc(&c, text + bytes, n - bytes, &state);
		if (k == 0 || k > n)
			break; /* cleaned text has none such */
		w = wcwidth(c);
		if (w < 0 || used + w > width)
			break;
		used += w;
	}
	if (right) {
		mvprintw(y, x, "%*s", width - used, "");
		addnstr(text, (int)bytes);
	} else {
		mvaddnstr(y, x, text, (int)bytes);
		printw("%*s", width - used, "");
	}
}

static int width_of(const char *text)
{
	mbstate_t state = { 0 };
	const size_t n = strlen(text);
	int used = 0;

	for (size_t at = 0, k; at < n; at += k) {
		wchar_t c;
		int w;

		k = mbrtowc(&c, text + at, n - at, &state);
		if (k == 0 || k > n)
			break;
		w = wcwidth(c);
		used += w > 0 ? w : 0;
	}
	return used;
}

/* Head, names of the columns, and the line at the foot are always there. */
size_t top_page(void)
{
	return LINES > HEAD_LINES + 3 ? (size_t)(LINES - HEAD_LINES - 3) : 1;
}

static void draw_line(int y, const char *text, int attr)
{
	attrset(attr);
	put(y, 0, COLS, text, false);
	attrset(A_NORMAL);
}

static void measure(const struct top *t, size_t n, int *widths)
{
	for (size_t i = 0; i < t->list.n_cols; i++) {
		const struct column *c = t->list.cols[i];

		widths[i] = width_of(c->name) + (i == t->sort);
		for (size_t k = t->first; k < n && k < t->first + top_page(); k++) {
			const int w = width_of(t->list.rows[k].cells[i]);

			widths[i] = w > widths[i] ? w : widths[i];
		}
		if (c->flags & COL_CUT && widths[i] > WIDTH_MOST)
			widths[i] = WIDTH_MOST;
	}
	/* The last one has what is left. */
	for (size_t i = 0, x = 0; i < t->list.n_cols; i++) {
		const size_t left = (size_t)COLS > x ? (size_t)COLS - x : 0;

		if (i + 1 == t->list.n_cols || (size_t)widths[i] > left)
			widths[i] = (int)left;
		x += (size_t)widths[i] + 1;
	}
}

static void draw_row(const struct top *t, int y, const int *widths, const char *const *cells,
		     bool head)
{
	int x = 0;

	for (size_t i = 0; i < t->list.n_cols && x < COLS; i++) {
		char name[64];
		const char *text = cells[i];

		if (head && i == t->sort) {
			snprintf(name, sizeof(name), "%s%c", text, t->down ? 'v' : '^');
			text = name;
		}
		put(y, x, widths[i], text,
		    t->list.cols[i]->flags & COL_RIGHT && i + 1 < t->list.n_cols);
		x += widths[i];
		if (x < COLS)
			mvaddch(y, x++, ' ');
	}
}

static void draw_list(struct top *t, size_t n)
{
	int widths[TOP_COLS_MAX];
	const char *names[TOP_COLS_MAX];
	const size_t page = top_page();

	if (t->at >= n)
		t->at = n ? n - 1 : 0;
	if (t->at < t->first)
		t->first = t->at;
	if (t->at >= t->first + page)
		t->first = t->at - page + 1;
	measure(t, n, widths);
	for (size_t i = 0; i < t->list.n_cols; i++)
		names[i] = t->list.cols[i]->name;
	attrset(A_REVERSE);
	draw_row(t, HEAD_LINES + 1, widths, names, true);
	for (size_t k = 0; k < page && t->first + k < n; k++) {
		attrset(t->first + k == t->at ? A_BOLD | A_STANDOUT : A_NORMAL);
		draw_row(t, HEAD_LINES + 2 + (int)k, widths, t->list.rows[t->first + k].cells,
			 false);
	}
	attrset(A_NORMAL);
}

static void draw_tabs(const struct top *t, size_t n)
{
	char text[128];

	move(HEAD_LINES, 0);
	for (int i = 0; i < N_TOP_PANES; i++) {
		attrset(i == (int)t->pane ? A_BOLD | A_UNDERLINE : A_NORMAL);
		printw("%d %s", i + 1, top_kinds[i].title);
		attrset(A_NORMAL);
		printw("  ");
	}
	snprintf(text, sizeof(text), "%zu of %zu%s%s%s", n, t->list.n_rows, t->list.cut ? "+" : "",
		 t->filter[0] ? " with " : "", t->filter);
	addnstr(text, COLS > 40 ? COLS - 40 : 0);
}

/* Lines of text from text_at on; the last page stays full. */
static void draw_text(struct top *t)
{
	const char *p = t->text ? t->text : "";
	const size_t page = top_page() + 1;
	size_t n_lines = 0, at = 0;

	for (const char *q = p; *q; q++)
		n_lines += *q == '\n';
	if (t->text_at + page > n_lines)
		t->text_at = n_lines > page ? n_lines - page : 0;
	for (; *p && at < t->text_at + page; at++) {
		const size_t n = strcspn(p, "\n");
		char *line = strndup(p, n);

		if (line && at >= t->text_at)
			put(HEAD_LINES + 1 + (int)(at - t->text_at), 0, COLS, line, false);
		free(line);
		p += n + (p[n] == '\n');
	}
}

static void draw_foot(const struct top *t)
{
	char text[128];

	if (t->typing) {
		snprintf(text, sizeof(text), "show only: %s", t->filter);
		draw_line(LINES - 1, text, A_BOLD);
		move(LINES - 1, (int)strlen(text) < COLS ? (int)strlen(text) : COLS - 1);
		return;
	}
	if (t->trouble)
		draw_line(LINES - 1, t->trouble, A_REVERSE);
	else if (t->detail)
		draw_line(LINES - 1, "up/down scroll  r refresh  Esc back  q quit", A_DIM);
	else
		draw_line(LINES - 1,
			  "Tab 1 2 3 pane  s sort  S reverse  / filter  Enter show a job  q quit",
			  A_DIM);
}

void top_draw(struct top *t, size_t n)
{
	erase();
	for (int i = 0; i < HEAD_LINES; i++)
		draw_line(i, t->head[i] ? t->head[i] : "", i ? A_NORMAL : A_BOLD);
	if (t->detail) {
		draw_text(t);
	} else {
		draw_tabs(t, n);
		draw_list(t, n);
	}
	draw_foot(t);
	curs_set(t->typing);
	refresh();
}
