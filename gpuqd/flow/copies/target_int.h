/* target_int.h - what the kinds of targets share
 *
 * Owns     nothing.
 * Used by  the files of target alone.
 */
#ifndef GPUQD_FLOW_COPIES_TARGET_INT_H
#define GPUQD_FLOW_COPIES_TARGET_INT_H

#include "gpuqd/flow/copies/target.h"

struct s3;

struct target_ops {
	int (*list)(struct target *t, const char *prefix, struct target_list *out,
		    struct gpuq_err *err);
	int (*has_room)(struct target *t, int64_t bytes,
			struct gpuq_err *err); /* NULL: not known */
	int (*put)(struct target *t, const char *name, int fd, const char *sha256, bool replace,
		   struct gpuq_err *err);
	int (*open)(struct target *t, const char *name, int *fd, struct gpuq_err *err);
	int (*remove)(struct target *t, const char *name, struct gpuq_err *err);
};

struct target {
	const struct target_ops *ops;
	struct backup_plan plan;
	const char *scratch;
	const atomic_bool *stop;
	struct s3 *s3; /* of target_s3.c; NULL in others */
	uint32_t
		mark; /* in the names of its unfinished files: two threads put through one target */
};

extern const struct target_ops target_dir_ops, target_command_ops, target_s3_ops;

int target_list_add(struct target_list *l, const char *name, int64_t bytes, struct gpuq_err *err);
/* A file without a name in the scratch directory; its descriptor, or GPUQ_EIO. */
int target_scratch(const struct target *t, struct gpuq_err *err);
bool target_ends(const struct target *t);

#endif
