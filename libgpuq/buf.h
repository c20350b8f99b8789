/* buf.h - a growing run of bytes with a maximum
 *
 * Owns     one malloc'ed block.
 * Touches  memory only.
 * Used by  every encoder and every reader of a stream.
 *
 * A failed append (no memory, or past max_bytes) leaves the content as it was and
 * sets `failed`, which sticks: a writer may append many times and ask once.
 */
#ifndef LIBGPUQ_BUF_H
#define LIBGPUQ_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpuq_buf {
	char *data; /* len bytes; not NUL-terminated unless gpuq_buf_str() was called */
	size_t len, room; /* bytes used, bytes allocated */
	size_t max_bytes; /* 0 = no maximum */
	bool failed;
};

#define GPUQ_BUF_INIT                                                                              \
	{                                                                                          \
		.data = NULL                                                                       \
	}
#define GPUQ_BUF_INIT_MAX(max)                                                                     \
	{                                                                                          \
		.max_bytes = (max)                                                                 \
	}

/* Append n bytes. Returns 0, GPUQ_ENOMEM or GPUQ_ETOOBIG. */
int gpuq_buf_add(struct gpuq_buf *b, const void *bytes, size_t n);
int gpuq_buf_adds(struct gpuq_buf *b, const char *s);
int gpuq_buf_addc(struct gpuq_buf *b, char c);
int gpuq_buf_addi(struct gpuq_buf *b, int64_t i); /* its digits */
int gpuq_buf_quote(struct gpuq_buf *b, const char *s); /* in single quotes, as a word of a shell */
int gpuq_buf_printf(struct gpuq_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Make room for n more bytes; data + len may then be written to. */
int gpuq_buf_reserve(struct gpuq_buf *b, size_t n);

/* Drop the first n bytes (n <= len). */
void gpuq_buf_drop(struct gpuq_buf *b, size_t n);

/* Empty it but keep the memory; clears `failed`. */
void gpuq_buf_clear(struct gpuq_buf *b);

/* The content as a string: adds a NUL behind (not counted in len). "" when there
 * is nothing and no memory for one byte. */
const char *gpuq_buf_str(struct gpuq_buf *b);

/* Free the memory and zero the struct, except max_bytes. */
void gpuq_buf_done(struct gpuq_buf *b);

#endif
