/* target.h - where copies go: names with bytes, that are listed, put, fetched and deleted
 *
 * Owns     what an address says; nothing between calls, so that threads share one.
 * Touches  files of a directory, a command, or an object store.
 * Used by  the files of copies/.
 *
 * Every function blocks, for as long as the other side pleases: they are for threads beside the
 * loop, and for a restore before there is one.
 */
#ifndef GPUQD_FLOW_COPIES_TARGET_H
#define GPUQD_FLOW_COPIES_TARGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/flow/copies/names.h"
#include "gpuqd/flow/copies/plan.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

struct target;

struct target_item {
	char name[NAMES_BYTES];
	int64_t bytes;
};

struct target_list {
	struct target_item *items; /* by name */
	size_t n, room;
};

/* scratch: a directory for what is fetched. stop: once true, calls under way fail soon where that can
 * be; NULL is fine. Texts are not copied. GPUQ_EINVAL: an object store whose address or credentials are
 * none. */
int target_new(const struct backup_plan *p, const char *scratch, const atomic_bool *stop,
	       struct target **out, struct gpuq_err *err);
void target_free(struct target *t); /* NULL is fine */
const char *target_text(const struct target *t); /* for messages; without credentials */

/* All names that begin with prefix; leftovers of such are deleted. GPUQ_EIO, GPUQ_EUNREACH. */
int target_list(struct target *t, const char *prefix, struct target_list *out,
		struct gpuq_err *err);
void target_list_done(struct target_list *l);
const struct target_item *target_find(const struct target_list *l, const char *name);

/* True if this many bytes, and a reserve, find room; GPUQ_ESTORAGE. Where that is not known: 0. */
int target_has_room(struct target *t, int64_t bytes, struct gpuq_err *err);
/* Put all of a file there. It has its name when it is complete, not before; replace: what has the
 * name is replaced by it at once, else GPUQ_ECONFLICT where that can be known. sha256: of it, as hex. */
int target_put(struct target *t, const char *name, int fd, const char *sha256, bool replace,
	       struct gpuq_err *err);
int target_put_text(struct target *t, const char *name, const struct gpuq_buf *text,
		    struct gpuq_err *err); /* replaces */
/* A descriptor to read it from, the caller's. GPUQ_ENOENT where that is known. */
int target_open(struct target *t, const char *name, int *fd, struct gpuq_err *err);
int target_get_text(struct target *t, const char *name, size_t max, struct gpuq_buf *out,
		    struct gpuq_err *err);
int target_remove(struct target *t, const char *name, struct gpuq_err *err);

/* Append the address by which anyone may read a name for a while. GPUQ_EINVAL: t is no object store, or there are no
 * credentials. Does not block. */
int target_presign(const struct target *t, const char *name, int64_t valid_s, struct gpuq_buf *out,
		   struct gpuq_err *err);

#endif
