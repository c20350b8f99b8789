/* top.h - the full screen view: what it knows, and how it is drawn
 *
 * Owns     struct top: one picture of the cluster and the reader's place in it.
 * Touches  the server (top_data.c), the terminal through ncurses (top_view.c).
 * Used by  cmd_top.c and its parts.
 *
 * Whatever came from the server has passed term_clean before it is kept here: a name
 * cannot act on the terminal.
 */
#ifndef GPUQ_TOP_TOP_H
#define GPUQ_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuq/cli.h"
#include "gpuq/out.h"

enum top_pane { TOP_JOBS, TOP_NODES, TOP_QUEUES, N_TOP_PANES };

#define TOP_COLS_MAX 16

/* Content of a pane: a list like those of the commands, with some of their columns. */
struct top_kind {
	const char *title, *method;
	const struct out_def *def;
	const char *shown; /* columns, separated by commas */
	const char *sort; /* at first; -COL downwards */
};
extern const struct top_kind top_kinds[N_TOP_PANES];

struct top_row {
	const char *cells[TOP_COLS_MAX]; /* cleaned */
	double ranks[TOP_COLS_MAX]; /* of cells with a rank of their own or a number */
	bool ranked[TOP_COLS_MAX];
	const char *id; /* of a job, else NULL */
};

/* Rows that were read for one pane. */
struct top_list {
	const struct column *cols[TOP_COLS_MAX];
	size_t n_cols;
	struct top_row *rows;
	size_t n_rows, room;
	bool cut; /* there are more than are read */
};

struct top {
	struct cli *c;
	struct gpuq_arena data; /* of one picture */
	struct top_list list;
	const char *head[3]; /* cleaned lines above the list */
	const char *trouble; /* why there is no newer picture; NULL = there is */
	int64_t read_us; /* when; monotonic */
	/* the reader's place */
	enum top_pane pane;
	size_t sort; /* column of the pane */
	bool down;
	char filter[64];
	bool typing; /* the filter is being typed */
	size_t at, first; /* the chosen row of those that are shown, and the first on the screen */
	/* one job in full */
	bool detail;
	char job[32];
	char *text; /* malloc'ed lines, cleaned */
	size_t text_at;
};

/* Read all anew; what is known stays when that fails. */
void top_read(struct top *t);
/* The chosen job in full, as gpuq why prints it. */
void top_read_job(struct top *t);
void top_set_pane(struct top *t, enum top_pane pane);
/* Bring the rows into order; the filter leaves *n of them, at the front. */
void top_arrange(struct top *t, size_t *n);
void top_done(struct top *t);

/* Draw it all on the current screen. n: rows that the filter leaves. */
void top_draw(struct top *t, size_t n);
/* Lines of the list, or of the text, that fit. */
size_t top_page(void);

#endif
