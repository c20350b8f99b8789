/* apply.h - changes of the site while the daemon runs
 *
 * Owns     requests that are not answered yet.
 * Touches  the journal (the change and its audit, one transaction), a worker thread on which
 *          the change is tried first (flow/advise/whatif).
 * Used by  rpc methods (site.apply, site.get).
 *
 * A change is a site file that is merged into the current site (site/site_merge.h). It is read,
 * merged and checked; the evictions it would cause are found on a copy; then it is applied, all
 * of it or nothing.
 */
#ifndef GPUQD_FLOW_ADMIT_APPLY_H
#define GPUQD_FLOW_ADMIT_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"
#include "libgpuq/val.h"

struct apply;
struct journal;
struct model;
struct site;

/* A request. Everything it points to must live until the reply. */
struct apply_ask {
	/* One of: the text of a file and its name for messages; a tree; neither (only removals). */
	const char *text, *file;
	const struct gpuq_val *tree;
	struct gpuq_strlist remove; /* "queue/research" */
	bool prune, dry_run;
	bool existing; /* refuse to add objects: each must exist */
	bool fresh; /* refuse to change objects: each must be new */
	int64_t generation; /* of the site it was made for; -1 = any */
	int64_t yes_evict; /* evictions that are accepted, at most */
	const char *who;
	bool operator_;
	struct gpuq_arena *arena; /* for the reply */
};

/* result: {applied, generation, changes (site/site_merge.h), warnings, evicts, evictions [{id,
 * array_index, name, user, queue, flavor, cause, rule, by, by_queue, gpus, ran_s, lost_gpu_seconds,
 * shrinks, restarts}], evictable [{id, array_index, name, user, queue}] (jobs of `default` that lose
 * its unlimited quota), lost_gpu_seconds, cut_short}. rc < 0: nothing was changed; GPUQ_ECONFLICT:
 * jobs depend on an object that would be removed, more than yes_evict jobs would be evicted, or the
 * site is no longer of the requested generation. */
typedef void (*apply_fn)(void *arg, int rc, const struct gpuq_err *err,
			 const struct gpuq_val *result);

int apply_new(struct journal *j, struct apply **out, struct gpuq_err *err);
/* Free it; requests in progress get no reply. NULL is allowed. */
void apply_free(struct apply *ap);

/* Start a change. Call fn exactly once, now or later, unless an error is returned. */
int apply_start(struct apply *ap, const struct apply_ask *ask, apply_fn fn, void *arg,
		struct gpuq_err *err);

#endif
