/* podrecord.h - a pod's record of its job, for a ledger that does not know the job
 *
 * Owns     struct podrecord and its text: one line of JSON, at most PODRECORD_BYTES_MAX.
 * Touches  memory only.
 * Used by  flow/order (writes it for each new pod), flow/recover (reads it after a
 *          restore), gpuqd(8) (documents it).
 *
 * The text is the annotation gpuq.io/record of a pod, and the key `record` of a local
 * shepherd's order. A ledger that was restored from an older copy makes a job of it
 * again: the owner of the pod's charges and its limits, but not what it runs.
 *
 * Version 1 is {"v":1,"user":...}; unknown members are skipped, an unknown version is
 * refused. Members at their defaults are left out.
 */
#ifndef GPUQD_STATE_RECORD_PODRECORD_H
#define GPUQD_STATE_RECORD_PODRECORD_H

#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

#define PODRECORD_BYTES_MAX 1024u
#define PODRECORD_VERSION 1

struct podrecord {
	const char *user, *queue, *qos; /* never "" */
	const char *name, *account, *flavor; /* "" = none; name and account may be cut */
	int64_t uid, gid; /* of the user on the host where gpuqd runs */
	int64_t submit_us; /* when the job was submitted */
	int64_t limit_us; /* of the attempt; GPUQ_UNLIMITED */
	int64_t gpus_milli; /* devices that the pod is charged for, in total */
	int64_t cpu_milli, memory_bytes; /* of the pod; 0 = not counted */
	int64_t pods; /* of the attempt, at least 1 */
	int64_t group, group_index; /* which pod of which group */
	int64_t element_id; /* the own number of an array's element; 0 = none */
};

/* Append the text of r to out. Control characters become '?'; an account and a name that do not fit
 * are cut. Return 0, or GPUQ_ETOOBIG with out unchanged. */
int podrecord_write(const struct podrecord *r, struct gpuq_buf *out, struct gpuq_err *err);

/* Read text[0..n); strings live in a and hold no control characters. Return 0, GPUQ_EINVAL (not a
 * record), GPUQ_ETOOBIG, GPUQ_EVERSION, GPUQ_ENOMEM; *out is untouched on failure. */
int podrecord_read(struct gpuq_arena *a, const char *text, size_t n, struct podrecord *out,
		   struct gpuq_err *err);

#endif
