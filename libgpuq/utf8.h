/* utf8.h - the one judge of what is UTF-8
 *
 * Owns     nothing. Touches memory only.
 * Used by  mp.c (refuses what is not), json.c (replaces what is not), yaml_write.c.
 */
#ifndef LIBGPUQ_UTF8_H
#define LIBGPUQ_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length (1..4) of the character that starts at s, and the character in *code
 * (may be NULL); 0 when the bytes at s are none: truncated, overlong, a surrogate
 * or beyond U+10FFFF. n > 0. */
size_t gpuq_utf8_next(const char *s, size_t n, uint32_t *code);

/* The offset of the first byte that is not valid, or n when all of it is. */
size_t gpuq_utf8_check(const char *s, size_t n);

#endif
