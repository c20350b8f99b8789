/* codes.h - archives that jobs carry (--code), as files of the state directory
 *
 * Owns     STATE/code: a file for each archive of a user, and those that are arriving.
 * Touches  these files; libcrypto.
 * Used by  rpc/method/m_code.c, code_keep.c (which ones stay), files.c (their paths, for dispatch).
 *
 * An archive is known by its user and the SHA-256 of its bytes; users never see each other's. It comes in pieces,
 * in order. Once the digest is right it is made durable and gets its name: what is found after a crash is whole,
 * and pieces that were left over are removed at the start. Larger ones may have to be at another place as well before
 * they get it. Not for several threads, but for codes_settle().
 */
#ifndef GPUQD_FLOW_CODE_CODES_H
#define GPUQD_FLOW_CODE_CODES_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"

struct codes;

int codes_open(const char *state, int64_t now_us, struct codes **out, struct gpuq_err *err);
void codes_close(struct codes *c); /* NULL is allowed */

/* Another place, where pods find archives that no ConfigMap takes. */
struct codes_outside {
	void *arg;
	int64_t above_bytes; /* only larger ones go there */
	/* Put it there, in the thread of codes_settle(). name: CODES_NAME_BYTES at most, without slashes. */
	int (*put)(void *arg, const char *name, const char *sha256, int fd, struct gpuq_err *err);
	bool (*has)(void *arg, const char *name);
};
#define CODES_NAME_BYTES 96
void codes_set_outside(struct codes *c, const struct codes_outside *o); /* copied */
bool codes_goes_outside(const struct codes *c, int64_t bytes);
void codes_name(const char *user, const char *digest, char out[CODES_NAME_BYTES]);

/* Return the size of an archive that is there; -1 = it is not, or not where it has to be. Counts as a use. */
int64_t codes_find(struct codes *c, const char *user, const char *digest, int64_t now_us);

/* Return the file of it, whether it is there or not; NULL: no memory. */
const char *codes_path(const struct codes *c, const char *user, const char *digest,
		       struct gpuq_arena *a);

struct codes_piece {
	const char *user, *digest;
	int64_t total, offset; /* bytes of the archive; where this piece begins */
	const void *bytes;
	size_t n;
};

/* Take a piece. *have: how many bytes there are by now; a piece that begins elsewhere is not taken. When the last
 * one is, *settle is what codes_settle() has to finish. Returns 0; GPUQ_ELIMIT, GPUQ_EBUSY: bounds of limits.h;
 * GPUQ_EINVAL: the bytes have another digest; GPUQ_ESTORAGE, GPUQ_EIO, GPUQ_ENOMEM: nothing is left of it. */
struct codes_settle;
int codes_put(struct codes *c, const struct codes_piece *p, int64_t now_us, int64_t *have,
	      struct codes_settle **settle, struct gpuq_err *err);

/* Make it durable, in any thread; then, in that of the others, note that it is there. */
void codes_settle(struct codes_settle *s);
int codes_settled(struct codes *c, struct codes_settle *s, int64_t now_us, struct gpuq_err *err);
void codes_settle_drop(struct codes_settle *s); /* in place of codes_settled(): c is gone */

/* Mark one that a job names; then remove all that are not marked and were not used for keep_us, and those of
 * which nothing has arrived for long. Marks are taken off. */
void codes_mark(struct codes *c, const char *user, const char *digest);
void codes_sweep(struct codes *c, int64_t now_us, int64_t keep_us);

struct codes_sums {
	uint64_t files, arriving;
	int64_t bytes; /* of all, those that arrive with what they will be */
};
void codes_sums(const struct codes *c, struct codes_sums *out);

#endif
