/* loop_parts.h - which part of the daemon had how much of the turns
 *
 * Owns     the time of each part, by its name.
 * Touches  the clocks.
 * Used by  loop.c.
 */
#ifndef GPUQD_BASE_LOOP_PARTS_H
#define GPUQD_BASE_LOOP_PARTS_H

#include "gpuqd/base/loop.h"

struct parts;

struct parts *parts_new(void); /* NULL: no memory */
void parts_free(struct parts *p);
const char *parts_enter(struct parts *p, const char *name);
void parts_begin(struct parts *p); /* time before this is not counted */
/* Record a turn that took so long; return the part that took most of it (never NULL), and how
 * much. */
const char *parts_turn(struct parts *p, int64_t took_us, int64_t *most_us);
size_t parts_list(const struct parts *p, struct loop_part *out, size_t room);
void parts_reset(struct parts *p);

#endif
