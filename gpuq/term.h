/* term.h - what may go to a terminal, and in which colours
 *
 * Owns     the sanitiser through which every string that came from a user, a node or
 *          a server passes on its way to a screen.
 * Touches  memory; term_colours and term_width ask the terminal.
 * Used by  out.c, follow.c, logs.c, cli_say.
 *
 * Escaped are C0, DEL, C1, marks that turn or hide text (bidi, zero width, tags),
 * line separators and what is no UTF-8: bytes as \xNN, characters as \u{N}. So are
 * combining marks that stand on nothing, or are more than writing needs. In a locale
 * that is not UTF-8 every character beyond ASCII is escaped.
 */
#ifndef GPUQ_TERM_H
#define GPUQ_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "libgpuq/buf.h"

/* Append text[0..n) to out, escaped. utf8: the terminal shows UTF-8. */
void term_clean(struct gpuq_buf *out, const char *text, size_t n, bool utf8);

/* As above with the locale's answer, for a string. */
void term_clean_str(struct gpuq_buf *out, const char *text);

/* Printable ASCII and nothing else: clean as it is. */
bool term_is_plain(const char *text, size_t n);

/* Whether the locale writes UTF-8; it is read when first requested. */
bool term_utf8(void);

/* Columns of the terminal that text, which is clean, takes. */
size_t term_columns(const char *text);

/* Append text, which is clean, as exactly width columns of the terminal: cut, or filled
 * with spaces (before it when right). A wide character that would not fit is left out. */
void term_fit(struct gpuq_buf *out, const char *text, size_t width, bool right);

/* Clean the output of jobs for a terminal, in pieces as they come: as term_clean, but newline,
 * tab and carriage return pass, and so do colours and erase-line (ESC [ digits ; ... m or K),
 * which progress bars need. A possible beginning of a longer sequence is kept for the next
 * piece. Zeroed = empty. */
struct term_log {
	char kept[32];
	size_t n_kept;
};

void term_log_add(struct term_log *l, struct gpuq_buf *out, const char *bytes, size_t n);
void term_log_end(struct term_log *l, struct gpuq_buf *out); /* what is kept, escaped */

/* Colours on this stream: it is a terminal that has them, and NO_COLOR is not set. */
bool term_colours(FILE *f);

/* Columns of the terminal behind f, 0 when it is none. */
int term_width(FILE *f);

#endif
