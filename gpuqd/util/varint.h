/* varint.h - the bytes of a stored record: MessagePack, field after field
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  state/record/record.c, snapshot/snapshot_pack.c, sched/cycle_record.c.
 *
 * A record is one MessagePack array. Positions are fixed for ever; new fields are
 * appended and older records simply end earlier, so a reader requests each field
 * with the value it has when it is not there. A list in a record has a row for each
 * item, and each row is an array of its own: fields can be appended to it as well.
 * A reader skips the fields that it does not know, at the end of the record and of
 * each row, so that a newer gpuqd of the same schema can be followed by an older
 * one. Reading 100,000 records at a start must take a tenth of a second: no tree is
 * built. Any MessagePack tool can print them.
 */
#ifndef GPUQD_UTIL_VARINT_H
#define GPUQD_UTIL_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/buf.h"

/* Writing: the caller knows the number of fields. */
void varint_array(struct gpuq_buf *b, uint32_t n);
void varint_int(struct gpuq_buf *b, int64_t i);
void varint_str(struct gpuq_buf *b, const char *s); /* NULL = nil */
void varint_bin(struct gpuq_buf *b, const void *p, size_t n);
void varint_bool(struct gpuq_buf *b, bool v);

/* Reading. `bad` is set for good when the bytes are not what was requested; then
 * everything reads as its default. */
struct rec {
	const unsigned char *p, *end; /* the bytes that are left */
	bool bad; /* set by the first read that fails; later ones give 0 */
};

uint32_t varint_get_long_array(struct rec *r); /* one of any length */
/* Members; 0 when bad. */
static inline uint32_t rec_get_array(struct rec *r)
{
	return r->p < r->end && *r->p == 0x90 ? (r->p++, 0) : varint_get_long_array(r);
}

int64_t varint_get_long_int(struct rec *r); /* one of more than a byte */
/* nil reads as 0 */
static inline int64_t rec_get_int(struct rec *r)
{
	/* Most fields of most records are small, and this is all that a start does. */
	return r->p < r->end && *r->p < 0x80 ? *r->p++ : varint_get_long_int(r);
}
bool varint_get_bool(struct rec *r);
const char *varint_get_long_str(struct rec *r, size_t *n); /* one of any length */
/* Bytes of a string or bin, borrowed; NULL for nil. */
static inline const char *rec_get_str(struct rec *r, size_t *n)
{
	const char *s = (const char *)r->p + 1;

	if (r->p >= r->end || (*r->p & 0xe0) != 0xa0 || r->end - r->p <= (*r->p & 0x1f))
		return varint_get_long_str(r, n);
	*n = *r->p & 0x1f;
	r->p += 1 + *n;
	return s;
}
void varint_skip(struct rec *r); /* one value of any kind */
void varint_skip_more(struct rec *r, uint32_t n); /* n of them */
/* Enter a row, or another array in a record, of which `known` members are going to be read:
 * return how many more it has, for varint_skip_more() behind them. One that has fewer is bad. */
static inline uint32_t rec_get_row(struct rec *r, uint32_t known)
{
	const uint32_t n = rec_get_array(r);

	if (n >= known)
		return n - known;
	r->bad = true;
	r->p = r->end;
	return 0;
}

#endif
