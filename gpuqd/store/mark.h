/* mark.h - identity and last position of a database, in a file beside it
 *
 * Owns     the descriptor of DIR/mark.
 * Used by  store/.
 *
 * It is written after each commit, without an fsync of its own: a power cut may leave it older
 * than the database, never newer. So a database that is older than its mark lost batches, or
 * is a copy of an earlier time. Its size is fixed and it is overwritten in place.
 */
#ifndef GPUQD_STORE_MARK_H
#define GPUQD_STORE_MARK_H

#include "gpuqd/store/store.h"

#define MARK_FILE "mark"

/* Returns 0, GPUQ_ENOENT, GPUQ_ECORRUPT. */
int mark_read(const char *dir, struct store_identity *out);
/* Replace the file, on disk before it returns. Returns a descriptor for mark_write, or GPUQ_EIO,
 * GPUQ_ESTORAGE. */
int mark_make(const char *dir, const struct store_identity *id, struct gpuq_err *err);
/* Open the one that is there; a descriptor, or GPUQ_EIO. */
int mark_open(const char *dir, struct gpuq_err *err);
/* False when it could not be written: it is older than it might be then. */
bool mark_write(int fd, const struct store_identity *id);

#endif
