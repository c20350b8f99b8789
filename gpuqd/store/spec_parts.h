/* spec_parts.h - specs in parts, of which equal ones are stored once
 *
 * Owns     the form of the values of TABLE_SPEC and TABLE_TEXT, and the counts of references.
 * Touches  memory, and records through functions of the caller.
 * Used by  store.c, inside a transaction.
 *
 * Callers of the store put and get a spec as they wrote it, a MessagePack map. In the
 * database each of its members that is large (a script, an environment: also one within a
 * map) is a record of TABLE_TEXT by the SHA-256 of its bytes, deflated, with a count of the
 * specs that name it; what is left stays in the record of TABLE_SPEC. A part goes with the
 * last spec that names it. All of it happens in the transaction that writes or removes the
 * spec, so that no crash leaves a part without a spec or a spec without a part.
 */
#ifndef GPUQD_STORE_SPEC_PARTS_H
#define GPUQD_STORE_SPEC_PARTS_H

#include <stddef.h>

#include "gpuqd/state/record/change.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

/* Records of the transaction that is under way. */
struct spec_parts_io {
	/* Returns 0, GPUQ_ENOENT, or another error; the value holds until the next put. */
	int (*get)(void *arg, enum table t, const void *key, size_t key_len,
		   const unsigned char **val, size_t *val_len, struct gpuq_err *err);
	/* val NULL removes the record. */
	int (*put)(void *arg, enum table t, const void *key, size_t key_len, const void *val,
		   size_t val_len, struct gpuq_err *err);
	void *arg;
};

struct spec_parts; /* what a writer needs again and again; one thread at a time */

struct spec_parts *spec_parts_new(void); /* NULL: out of memory */
void spec_parts_free(struct spec_parts *p);

/* Write, replace or (val NULL) remove a spec. Returns 0, GPUQ_ECORRUPT (what is stored is
 * damaged; two different parts have one hash), GPUQ_ENOMEM, or what io returned. */
int spec_parts_put(struct spec_parts *p, const struct spec_parts_io *io, const void *key,
		   size_t key_len, const void *val, size_t val_len, struct gpuq_err *err);

/* Append the spec of a record of TABLE_SPEC to out. Any thread. */
int spec_parts_get(const struct spec_parts_io *io, const unsigned char *val, size_t val_len,
		   struct gpuq_buf *out, struct gpuq_err *err);

/* Parts that a record of TABLE_SPEC names, 0 when it cannot be read; fn is called for each. */
#define PARTS_HASH_BYTES 32
typedef void (*spec_parts_ref_fn)(void *arg, const unsigned char *hash);
int spec_parts_refs(const unsigned char *val, size_t val_len, spec_parts_ref_fn fn, void *arg);

#endif
