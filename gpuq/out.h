/* out.h - a list of objects as a table or as JSON, one line each
 *
 * Owns     the rows of one list until they are printed: their cells and sort keys
 *          only, never the objects, so that a long list stays cheap.
 * Touches  standard output.
 * Used by  list.c. Its parts: out_read.c (-o, --sort), out_print.c.
 *
 * Columns are rows of a table; their names are part of the interface that scripts
 * rely on. Cells pass the sanitiser; JSON is printed as an object comes unless the
 * list has to be sorted first.
 */
#ifndef GPUQ_OUT_H
#define GPUQ_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuq/opt.h"
#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

/* The objects of a line: the object, and a part of it where a part has a line of its own (a
 * device of a node); sub may be NULL. */
struct row {
	const struct gpuq_val *obj, *sub;
	int64_t now_us;
};

enum {
	COL_RIGHT = 1,
	COL_CUT = 2 /* may be cut where the terminal is narrow */,
	COL_STATE = 4 /* coloured by the word in it */,
	COL_ORDER = 8 /* the server knows this order by the first of its keys */
};

struct column {
	const char *name; /* "JOBID"; NULL ends the table */
	char letter; /* of squeue's format strings ("%i"), or 0 */
	unsigned flags;
	/* Key in the object: its value is the text and the order. With functions for these, all
	 * keys that they read, separated by blanks; NULL: any. */
	const char *key;
	void (*text)(struct gpuq_buf *out, const struct row *r); /* instead of key's */
	double (*rank)(const struct row *r); /* instead of key's */
	const char *doc;
};

struct out;

struct out_def {
	const struct column *cols;
	const char *usual; /* names of the columns that are shown, by commas */
	/* Those of them that are left out of a terminal on which not all have room, the first
	 * first; NULL: none. */
	const char *spare;
	const char *sort; /* usual order, or NULL: as the server sends */
	/* Keys that are needed beside those of the columns. NULL: the columns do not tell
	 * theirs, or the server has no rows of such objects. */
	const char *keys;
	/* The lines of one object; NULL: one line. Calls out_row. */
	int (*rows)(struct out *o, const struct gpuq_val *obj);
};

/* Prepare for printing as args say (-o, -h, --sort, --limit, --json). shown (may be
 * NULL) takes the place of def->usual. Returns 0, GPUQ_EINVAL (no such column, with
 * the nearest or all names), GPUQ_ENOMEM. */
int out_new(const struct out_def *def, const char *shown, const struct args *args, struct out **out,
	    struct gpuq_err *err);
void out_free(struct out *o);

/* The keys of the objects that are examined. */
#define OUT_KEYS_MAX 64
struct out_keys {
	const char *names[OUT_KEYS_MAX + 1]; /* ends with NULL */
	size_t n;
	bool all; /* whole objects are needed */
};
/* Add those of a column's key, in a; NULL: all. */
void out_keys_add(struct out_keys *k, struct gpuq_arena *a, const char *words);

/* As out_keys.names; NULL: all. */
const char *const *out_keys(const struct out *o);

/* Say in params which order and how many are wanted, so that the rest need not come. */
void out_ask(const struct out *o, struct gpuq_arena *a, struct gpuq_val *params);

/* Take one object. Returns 1 when --limit is reached and no more is wanted, 0, or
 * GPUQ_ENOMEM. */
int out_add(struct out *o, const struct gpuq_val *obj, int64_t now_us);

/* Add one line of a table; for def->rows. */
int out_row(struct out *o, const struct gpuq_val *obj, const struct gpuq_val *sub);

/* Print what is kept, in order, and forget it. */
int out_flush(struct out *o);

/* Forget what is kept. */
void out_forget(struct out *o);

/* The text of one cell, as it came. */
void out_cell(const struct column *c, const struct row *r, struct gpuq_buf *out);

/* Print one JSON object in a line. 0 or GPUQ_ENOMEM. */
int out_json(const struct gpuq_val *obj);

#endif
