/* shelf.h - the copies that a target holds, with their manifests
 *
 * Owns     a list in memory.
 * Touches  a target; it blocks.
 * Used by  rota.c, audit_copy.c, restore.c, rpc/method/m_backup.c (reads).
 */
#ifndef GPUQD_FLOW_COPIES_SHELF_H
#define GPUQD_FLOW_COPIES_SHELF_H

#include "gpuqd/flow/copies/manifest.h"
#include "gpuqd/flow/copies/target.h"

struct shelf_copy {
	char name[NAMES_BYTES];
	struct stamp stamp;
	int64_t bytes; /* as the target says; -1 = it does not */
	bool sealed; /* manifest is filled: without one its position is not known */
	struct manifest manifest;
};

struct shelf {
	struct shelf_copy *items; /* the newest first, by name */
	size_t n, room;
	struct segment_name *segments; /* by time of their names */
	size_t n_segments, segments_room;
};

/* List the copies of one cluster. Manifests are fetched but for those that known has. */
int shelf_read(struct target *t, const char *prefix, const struct shelf *known, struct shelf *out,
	       struct gpuq_err *err);
void shelf_done(struct shelf *s);
struct shelf_copy *shelf_find(const struct shelf *s, const char *name); /* NULL = none */

/* Delete the copies that need not stay (names_keep), of the target and of s. ours: name of a copy that
 * was made just now. Returns how many, or the error of the first that stays against its turn. */
int shelf_trim(struct target *t, struct shelf *s, const char *ours, int64_t now_us,
	       const struct backup_keeps *keep, struct gpuq_err *err);

/* Delete the segments that are older than keep->log_us, or that no copy of s comes before. Returns how many. */
int shelf_trim_segments(struct target *t, const char *prefix, struct shelf *s, int64_t now_us,
			const struct backup_keeps *keep, struct gpuq_err *err);
/* The last batch of a database, of its present epoch, that its newest copy and segments behind that
 * reach without a gap; 0 = there is no copy. */
uint64_t shelf_reach(const struct shelf *s, const struct store_identity *is);
/* The segments of a database and an epoch, in order of their batches; free(*out). GPUQ_ENOMEM. */
int shelf_segments(const struct shelf *s, const struct store_identity *is,
		   struct segment_name **out, size_t *n, struct gpuq_err *err);

int shelf_put_manifest(struct target *t, const struct manifest *m, struct gpuq_err *err);

#endif
