/* backup.h - a copy of everything that is stored
 *
 * Owns     the copy, a file without a name, until it has been read.
 * Touches  the store, the state directory; the requested file.
 * Used by  rpc/method/m_backup.c, rota.c.
 *
 * The copy is made in a thread while the daemon runs, and has the state of one moment: all that
 * was durable then. It is a whole database: as data.mdb of an otherwise empty state directory
 * gpuqd starts from it.
 */
#ifndef GPUQD_FLOW_COPIES_BACKUP_H
#define GPUQD_FLOW_COPIES_BACKUP_H

#include <stddef.h>
#include <stdint.h>

#include "gpuqd/store/store.h"
#include "libgpuq/err.h"

struct backup;
struct journal;

/* Begin a copy; from any thread. Returns 0; GPUQ_ESTORAGE (no room for a copy), GPUQ_EIO,
 * GPUQ_ENOMEM. */
int backup_new(struct journal *j, struct backup **out, struct gpuq_err *err);
/* Begin a copy that becomes a file of this machine, readable by gpuqd alone: it appears once it is
 * complete, and never replaces another; from any thread. path is absolute. Returns also GPUQ_EINVAL (no such
 * directory), GPUQ_ECONFLICT (the name exists). */
int backup_new_at(struct journal *j, const char *path, struct backup **out, struct gpuq_err *err);
/* Give the complete copy its name; from any thread. GPUQ_ECONFLICT, GPUQ_EIO. */
int backup_keep(struct backup *b, struct gpuq_err *err);
void backup_free(struct backup *b); /* NULL is fine */

/* Make the copy; from any thread. */
int backup_make(struct backup *b, struct gpuq_err *err);

/* Once it is made: its size, the database and the position that it is a copy of, and a descriptor to
 * read it from, which stays b's. */
int64_t backup_bytes(const struct backup *b);
struct store_identity backup_identity(const struct backup *b);
int backup_fd(const struct backup *b);

/* Read up to room bytes of it from `at` on. Returns how many, 0 at its end, GPUQ_EIO. */
int64_t backup_read(struct backup *b, int64_t at, void *out, size_t room, struct gpuq_err *err);

#endif
