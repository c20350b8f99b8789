/* mp.h - MessagePack: check, read, write
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  the client, the server (rpc/), the store's records.
 *
 * gpuq_mp_scan examines foreign bytes before msgpack-c does, because msgpack-c
 * believes declared sizes: five bytes can make it request gigabytes.
 */
#ifndef LIBGPUQ_WIRE_MP_H
#define LIBGPUQ_WIRE_MP_H

#include <stddef.h>

#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct gpuq_mp_limits {
	size_t max_bytes; /* of one message */
	unsigned max_depth; /* of nested containers, at most 32 */
	unsigned max_items; /* values in one message, keys and values counted */
};

/* A scan that can be continued as bytes arrive: cheap, no allocation. */
struct gpuq_mp_scan {
	size_t at; /* bytes examined so far */
	unsigned depth;
	unsigned items;
	uint32_t left[32]; /* values still owed at each level */
};

/* Find the end of the first message in bytes[0..n).
 *
 * scan starts zeroed and is kept between calls that pass the same message with
 * more bytes. Returns 1 and the message's length in *len_bytes; 0 when it is not
 * complete (call again with more bytes); GPUQ_EPROTO for bytes that no message
 * can start with or nested deeper than allowed, GPUQ_ETOOBIG past a limit (also
 * when a declared length alone passes it, before its bytes arrived). */
int gpuq_mp_next(struct gpuq_mp_scan *scan, const struct gpuq_mp_limits *lim, const void *bytes,
		 size_t n, size_t *len_bytes, struct gpuq_err *err);

/* Read one complete message of n bytes, all of them, into a tree in a. The bytes
 * are scanned first with lim. Map keys must be strings and distinct; str must be
 * valid UTF-8; ext types, NaN and infinities are refused.
 * Returns 0, GPUQ_EPROTO, GPUQ_ETOOBIG, GPUQ_ENOMEM. */
int gpuq_mp_read(struct gpuq_arena *a, const struct gpuq_mp_limits *lim, const void *bytes,
		 size_t n, struct gpuq_val **out, struct gpuq_err *err);

/* For long lists, whose members need no tree of them all: take the next value, or the head of
 * a list of *n values, from bytes that gpuq_mp_next has passed, at *p, which moves behind it.
 * A number or a string is made in *v alone (zeroed at first, then the same again and again),
 * with its bytes in a; what holds others as by gpuq_mp_read. Returns 0 or as that does. */
int gpuq_mp_take(struct gpuq_arena *a, const struct gpuq_mp_limits *lim, const char **p,
		 const char *end, struct gpuq_val *v, struct gpuq_err *err);
int gpuq_mp_take_list(const char **p, const char *end, uint32_t *n, struct gpuq_err *err);

/* Append v; b->failed tells of no memory. */
void gpuq_mp_write(struct gpuq_buf *b, const struct gpuq_val *v);
void gpuq_mp_write_list(struct gpuq_buf *b, uint32_t n); /* the head; its members follow */

#endif
