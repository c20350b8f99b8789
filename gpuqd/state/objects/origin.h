/* origin.h - pods of the cluster that were not submitted, and the jobs that consist of them
 *
 * Owns     an entry for each such job and for each of its pods.
 * Touches  memory only.
 * Used by  state (as jobs come and go), flow (whose a pod of the cluster is, and what it is called there).
 *
 * A pod is known by its uid. Its place counts over the groups of its job, as pods of a job do.
 */
#ifndef GPUQD_STATE_OBJECTS_ORIGIN_H
#define GPUQD_STATE_OBJECTS_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <uthash.h>

struct origin;

struct origin_pod {
	UT_hash_handle hh; /* by uid */
	const struct origin *of;
	uint32_t place;
	const char *name, *uid;
};

struct origin {
	UT_hash_handle hh; /* by job */
	uint32_t job;
	const char *kind, *name, *namespace_, *uid; /* of what owns its pods, or of its only pod */
	bool gated; /* it was suspended, and its pods wait behind gpuqd's gate */
	uint32_t n_pods;
	struct origin_pod *pods; /* by place */
};

#define ORIGIN_GATED "gated"

struct origins; /* NULL = there are none */

/* Note those of a job: "KIND NAME NAMESPACE UID" and, of a gated one, " gated"; "NAME UID" of each pod, joined by
 * commas. A uid that is known already stays with the job that has it. */
void origin_add(struct origins **all, uint32_t job, const char *owner, size_t n_owner,
		const char *pods, size_t n_pods);
void origin_drop(struct origins **all, uint32_t job); /* of a job without any: nothing */
void origin_free(struct origins *all);

/* NULL = it has none, or is not known. */
const struct origin *origin_of(const struct origins *all, uint32_t job);
const struct origin_pod *origin_find(const struct origins *all, const char *uid);
/* True if none of its pods is there yet: the suspended owner stands for the first. */
static inline bool origin_is_suspended(const struct origin *o)
{
	return o->gated && o->n_pods == 1 && strcmp(o->pods[0].uid, o->uid) == 0;
}
/* Return the first; the others follow by hh.next. */
const struct origin *origin_first(const struct origins *all);

#endif
