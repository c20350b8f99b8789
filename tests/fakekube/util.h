/* util.h - memory, text, time and numbers for the fake apiserver
 *
 * Owns     nothing. Every function stands alone.
 * Touches  the clock and the kernel's random source.
 *
 * Memory that runs out ends the program: this is a test's tool, and a test
 * that goes on with half an answer proves nothing.
 */
#ifndef FAKEKUBE_UTIL_H
#define FAKEKUBE_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SECOND_US INT64_C(1000000)

void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);

/* Text that grows. s is always terminated once something was added. */
struct buf {
	char *s;
	size_t len, cap;
};

#define BUF_INIT                                                                                   \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}

void buf_add(struct buf *b, const void *p, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append s (n bytes, any bytes) as a JSON string with its quotes. */
void buf_add_json(struct buf *b, const char *s, size_t n);
void buf_done(struct buf *b);

/* Many small strings that die together. Zero-initialised is empty. */
struct arena {
	struct arena_block *head;
};

void *arena_alloc(struct arena *a, size_t n);
char *arena_strdup(struct arena *a, const char *s);
void arena_done(struct arena *a);

/* Microseconds: since the epoch, and of a clock that never jumps. */
int64_t now_us(void);
int64_t mono_us(void);

#define TIME_TEXT_SIZE 21
/* "2026-11-20T08:21:56Z"; the sub-second part is cut. Returns out. */
const char *time_text(char out[TIME_TEXT_SIZE], int64_t us);
/* The reverse; -1 when s is not such a time. */
int64_t time_parse(const char *s);

/* "150ms", "2s", "1m30s", "5" (seconds), "20us". Returns 0, or -1 with *us untouched. */
int duration_parse(const char *s, int64_t *us);

/* A Kubernetes quantity in thousandths ("1" is 1000, "1Ki" 1024000), rounded up.
 * Returns 0, or -1 with *milli untouched. */
int quantity_parse(const char *s, int64_t *milli);

/* An unsigned decimal that fills the whole of s. Returns 0 or -1. */
int uint_parse(const char *s, uint64_t *v);

/* Random numbers and version-4 UUIDs. rand_seed(0) takes a seed from the kernel. */
void rand_seed(uint64_t seed);
uint64_t rand_u64(void);
#define UID_SIZE 37
void uid_new(char out[UID_SIZE]);

/* URL-safe base64 without padding. base64_decode returns a terminated text the
 * caller frees and sets *len, or NULL when s is not base64. */
char *base64_encode(const void *p, size_t n);
char *base64_decode(const char *s, size_t *len);

#endif
