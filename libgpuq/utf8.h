/* utf8.h - the one judge of what is UTF-8
 *
 * Owns     nothing. Touches memory only.
 * Used by  mp.c (refuses what is not), json.c (replaces what is not), yaml_write.c; all that shows text
 *          of others to people: the CLI, mails.
 */
#ifndef LIBGPUQ_UTF8_H
#define LIBGPUQ_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length (1..4) of the character that starts at s, and the character in *code
 * (may be NULL); 0 when the bytes at s are none: truncated, overlong, a surrogate
 * or beyond U+10FFFF. n > 0. */
size_t gpuq_utf8_next(const char *s, size_t n, uint32_t *code);

/* The offset of the first byte that is not valid, or n when all of it is. */
size_t gpuq_utf8_check(const char *s, size_t n);

/* Characters that act on a terminal, or that make text look like another text: controls, bidi marks,
 * zero width, tags. Output escapes or replaces them. */
bool gpuq_utf8_acts(uint32_t code);

#endif
