/* err.h - error codes and the sentence that goes with one
 *
 * Owns     the list of errors (err.def): C code, wire number, wire name, text.
 * Touches  memory only.
 * Used by  all rooms; part of the installed API.
 *
 * A function that can fail returns 0 or one of the negative codes below and, when
 * the caller passed an err, fills it: one sentence with the user's nouns in it, the
 * place in the input (field path, file:line:col) where there is one. Outputs other
 * than err are untouched on failure.
 */
#ifndef LIBGPUQ_ERR_H
#define LIBGPUQ_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum gpuq_code {
	GPUQ_OK = 0,
#define ERR(name, number, retry, wire, text) GPUQ_##name = -(number),
#include "libgpuq/err.def"
#undef ERR
};

struct gpuq_err {
	int code; /* 0 or one of gpuq_code */
	int retry_ms; /* when to try again, 0 = the caller's choice */
	char field[96]; /* path of the offending field, "groups[1].gpus", or "" */
	char text[448]; /* one sentence, UTF-8, no newline */
};

#define GPUQ_ERR_INIT                                                                              \
	{                                                                                          \
		.code = 0                                                                          \
	}

/* Fill err (NULL allowed) and return code, so that a caller can write
 * `return gpuq_fail(err, GPUQ_EINVAL, "...")`. Text is cut at the buffer's end. */
int gpuq_fail(struct gpuq_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int gpuq_failv(struct gpuq_err *err, int code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* Fill err (NULL allowed) for what there is no memory for, and return GPUQ_ENOMEM. */
int gpuq_no_memory(struct gpuq_err *err);

/* As gpuq_fail, with the path of the field the text is about. */
int gpuq_fail_field(struct gpuq_err *err, int code, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Put "prefix: " in front of what is there; never replaces it. Returns err->code. */
int gpuq_err_prefix(struct gpuq_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

const char *gpuq_err_name(int code); /* "not_found"; "unknown" for a code that is none */
const char *gpuq_err_text(int code); /* "no such object" */
bool gpuq_err_retryable(int code);
int gpuq_err_number(int code); /* wire number, 0 for GPUQ_OK */
int gpuq_err_from_number(int number); /* code, GPUQ_EINTERNAL when unknown */

#endif
