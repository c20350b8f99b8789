/* restore.h - a backup, and what was done after it, becomes the database of an empty state directory
 *
 * Owns     nothing after it returns.
 * Touches  the state directory; a target, which it does not change.
 * Used by  daemon.c, before there is a loop.
 */
#ifndef GPUQD_FLOW_COPIES_RESTORE_H
#define GPUQD_FLOW_COPIES_RESTORE_H

#include "gpuqd/flow/copies/plan.h"
#include "gpuqd/store/store.h"

#define RESTORE_FROM_TARGET "target"

struct restore_opts {
	const char *state;
	/* a file, a directory, https://HOST/BUCKET/PREFIX (or an object there), or RESTORE_FROM_TARGET: that of plan */
	const char *source;
	const char
		*at; /* an instant, or EPOCH/BATCH; NULL = of a file itself, of others the newest */
	const struct backup_plan *plan; /* its s3 is how a URL is used */
	const struct store_opts *store;
};

/* Where it came from, for the log. */
struct restored {
	char file[512];
	struct store_identity position;
	int64_t time_us; /* of the last batch behind the copy; 0 = there is none */
	size_t n_segments;
};

/* The copy is compared with its manifest and checked like any database; nothing is changed where
 * something is wrong, and the error says what to do. Returns 0; GPUQ_ECONFLICT (the state directory has a
 * database; jobs of another cluster run there; copies of several clusters), GPUQ_ECORRUPT (damaged, cut
 * short, batches missing), GPUQ_EVERSION, GPUQ_ENOENT, GPUQ_EINVAL, GPUQ_EIO, GPUQ_ESTORAGE. */
int copies_restore(const struct restore_opts *o, struct restored *out, struct gpuq_err *err);

#endif
