/* out_int.h - what the parts of out.h share; private to them */
#ifndef GPUQ_OUT_INT_H
#define GPUQ_OUT_INT_H

#include "gpuq/out.h"
#include "libgpuq/arena.h"

#define OUT_COLS_MAX 64
#define OUT_SORT_MAX 8

struct shown {
	const struct column *col;
	const char *before; /* text before it, in squeue's format strings */
	int width; /* columns of the terminal; 0 = as wide as it needs */
	bool right;
	unsigned leaves; /* among those left out of a narrow terminal, from 1; 0 = it stays */
};

struct key {
	const char *text; /* NULL: a number */
	double number;
};

struct cell {
	uint32_t len, wide; /* bytes, without its NUL, and columns of the terminal */
};

struct line {
	const char *text; /* its cells, each ended by NUL; of JSON the whole line */
	const struct key *keys; /* n_sort */
	const struct cell *cells; /* n_shown; none of JSON */
	const struct out *out;
	size_t at; /* keeps equal lines in the order they came */
};

struct out {
	const struct out_def *def;
	struct gpuq_arena arena; /* lines */
	struct gpuq_arena names; /* what -o and --sort said */
	struct shown shown[OUT_COLS_MAX];
	size_t n_shown;
	const char *after; /* text behind the last column of a format string */
	bool format; /* squeue's format string */
	const struct column *sort[OUT_SORT_MAX];
	bool down[OUT_SORT_MAX];
	size_t n_sort;
	struct out_keys keys; /* of the objects, that the columns are made of */
	struct line *lines;
	size_t n_lines, room, limit;
	size_t n_printed; /* JSON that went out at once */
	bool json, csv, header;
	bool mixed; /* the lines did not come in their order */
	int64_t now_us;
	struct gpuq_buf text, cell, clean; /* of the line that is being made */
};

/* out_read.c: what -o and --sort say. 0, GPUQ_EINVAL, GPUQ_ENOMEM. */
int out_read(struct out *o, const char *shown, const struct args *args, struct gpuq_err *err);

/* out_print.c: the first n lines. 0 or GPUQ_ENOMEM. */
int out_print(const struct out *o, size_t n);

#endif
