/* rec.h - the bytes of a stored record: MessagePack, field after field
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  core/record.c, core/snapshot_pack.c, core/cycle_record.c.
 *
 * A record is one MessagePack array. Positions are fixed for ever; new fields are
 * appended and older records simply end earlier, so a reader asks for each field
 * with the value it has when it is not there. Reading 100,000 records at a start
 * must take a tenth of a second: no tree is built. Any MessagePack tool can print
 * them.
 */
#ifndef GPUQD_CORE_REC_H
#define GPUQD_CORE_REC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/buf.h"

/* Writing: the caller knows the number of fields. */
void rec_array(struct gpuq_buf *b, uint32_t n);
void rec_int(struct gpuq_buf *b, int64_t i);
void rec_str(struct gpuq_buf *b, const char *s); /* NULL = nil */
void rec_bin(struct gpuq_buf *b, const void *p, size_t n);
void rec_bool(struct gpuq_buf *b, bool v);

/* Reading. `bad` is set for good when the bytes are not what was asked for; then
 * everything reads as its default. */
struct rec {
	const unsigned char *p, *end;
	bool bad;
};

uint32_t rec_get_long_array(struct rec *r); /* one of any length */
/* Members; 0 when bad. */
static inline uint32_t rec_get_array(struct rec *r)
{
	return r->p < r->end && *r->p == 0x90 ? (r->p++, 0) : rec_get_long_array(r);
}

int64_t rec_get_long_int(struct rec *r); /* one of more than a byte */
/* nil reads as 0 */
static inline int64_t rec_get_int(struct rec *r)
{
	/* Most fields of most records are small, and this is all that a start does. */
	return r->p < r->end && *r->p < 0x80 ? *r->p++ : rec_get_long_int(r);
}
bool rec_get_bool(struct rec *r);
const char *rec_get_long_str(struct rec *r, size_t *n); /* one of any length */
/* Bytes of a string or bin, borrowed; NULL for nil. */
static inline const char *rec_get_str(struct rec *r, size_t *n)
{
	const char *s = (const char *)r->p + 1;

	if (r->p >= r->end || (*r->p & 0xe0) != 0xa0 || r->end - r->p <= (*r->p & 0x1f))
		return rec_get_long_str(r, n);
	*n = *r->p & 0x1f;
	r->p += 1 + *n;
	return s;
}
void rec_skip(struct rec *r);

#endif
