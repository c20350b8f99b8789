#include "libgpuq/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_LEAST 1024
#define BLOCK_MOST (1 << 20)
#define ALIGN 16

struct gpuq_arena_block {
	struct gpuq_arena_block *next;
	size_t used, size;
	bool failed; /* of the newest block: something had no room */
	_Alignas(ALIGN) unsigned char data[];
};

/* The block after those that are full is as large as they are together: what holds little takes
 * little, and what holds much has few blocks, which go back to the system when they are freed
 * because each is a mapping of its own. */
static size_t block_bytes(const struct gpuq_arena *a)
{
	if (a->used_bytes < BLOCK_LEAST)
		return BLOCK_LEAST;
	return a->used_bytes < BLOCK_MOST ? a->used_bytes : BLOCK_MOST;
}

/* An arena without a block has nothing yet that could lack parts. */
static void *no_room(struct gpuq_arena *a)
{
	if (a->head)
		a->head->failed = true;
	return NULL;
}

bool gpuq_arena_failed(const struct gpuq_arena *a)
{
	return a->head && a->head->failed;
}

void *gpuq_arena_alloc(struct gpuq_arena *a, size_t n)
{
	struct gpuq_arena_block *b = a->head;
	void *p;

	if (n > SIZE_MAX / 2)
		return no_room(a);
	n = (n + (ALIGN - 1)) & ~(size_t)(ALIGN - 1);
	if (n == 0)
		n = ALIGN;
	if (a->max_bytes && (n > a->max_bytes || a->used_bytes > a->max_bytes - n))
		return no_room(a);
	if (!b || b->size - b->used < n) {
		const size_t block = block_bytes(a);
		const bool own = n > block / 4;
		const size_t size = own ? n : block - sizeof(*b);

		b = malloc(sizeof(*b) + size);
		if (!b)
			return no_room(a);
		b->used = 0;
		b->size = size;
		b->failed = !own && gpuq_arena_failed(a);
		if (a->head && own) {
			/* A large one gets a block of its own behind the head, which
			 * still has room for small ones. */
			b->next = a->head->next;
			a->head->next = b;
		} else {
			b->next = a->head;
			a->head = b;
		}
	}
	p = b->data + b->used;
	b->used += n;
	a->used_bytes += n;
	return memset(p, 0, n);
}

void *gpuq_arena_calloc(struct gpuq_arena *a, size_t count, size_t size)
{
	size_t n;

	if (__builtin_mul_overflow(count, size, &n))
		return no_room(a);
	return gpuq_arena_alloc(a, n);
}

char *gpuq_arena_strndup(struct gpuq_arena *a, const char *s, size_t n)
{
	char *p = n == SIZE_MAX ? NULL : gpuq_arena_alloc(a, n + 1);

	if (p && n)
		memcpy(p, s, n);
	return p;
}

char *gpuq_arena_strdup(struct gpuq_arena *a, const char *s)
{
	return gpuq_arena_strndup(a, s, strlen(s));
}

char *gpuq_arena_printf(struct gpuq_arena *a, const char *fmt, ...)
{
	va_list ap;
	int n;
	char *p;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	p = gpuq_arena_alloc(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

void gpuq_arena_done(struct gpuq_arena *a)
{
	struct gpuq_arena_block *next;

	for (struct gpuq_arena_block *b = a->head; b; b = next) {
		next = b->next;
		free(b);
	}
	a->head = NULL;
	a->used_bytes = 0;
}

void gpuq_arena_reset(struct gpuq_arena *a)
{
	struct gpuq_arena_block *keep = a->head;

	if (!keep)
		return;
	a->head = keep->next;
	gpuq_arena_done(a);
	keep->next = NULL;
	keep->used = 0;
	keep->failed = false;
	a->head = keep;
}
