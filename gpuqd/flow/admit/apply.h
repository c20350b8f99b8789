/* apply.h - the site is changed while the daemon runs
 *
 * Owns     what is asked and not answered yet; who may change which key of a queue.
 * Touches  the journal (the change and its audit, one transaction), a worker thread on which
 *          the change is tried first (flow/advise/whatif).
 * Used by  rpc methods (site.apply, site.get).
 *
 * A change is a site file on top of what there is (site/site_merge.h). It is read, merged and
 * checked; what it would evict is found on a copy; then it is applied, all of it or nothing.
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
struct site;

/* What is asked for. Everything lives until it is answered. */
struct apply_ask {
	/* One of: a text as in a file, its name for messages; a tree; neither (only removals). */
	const char *text, *file;
	const struct gpuq_val *tree;
	struct gpuq_strlist remove; /* "queue/research" */
	bool prune, dry_run;
	bool existing; /* refuse to add objects: they are to be there */
	bool fresh; /* refuse to change objects: they are to be new */
	int64_t generation; /* that it was made for; -1 = any */
	int64_t yes_evict; /* so many jobs may be evicted */
	const char *who;
	bool operator_;
	struct gpuq_arena *arena; /* for the answer */
};

/* result: {applied, generation, changes (site/site_merge.h), warnings, evicts, evictions
 * [{id, array_index, name, user, queue, flavor, cause, rule, by, by_queue, gpus, ran_s,
 * lost_gpu_seconds, shrinks, restarts}], lost_gpu_seconds, cut_short}. rc < 0: nothing was changed;
 * GPUQ_ECONFLICT: jobs depend on what would go, more than yes_evict would be evicted, or it
 * is not the generation it was made for. */
typedef void (*apply_fn)(void *arg, int rc, const struct gpuq_err *err,
			 const struct gpuq_val *result);

int apply_new(struct journal *j, struct apply **out, struct gpuq_err *err);
/* Nobody is answered any more. NULL is allowed. */
void apply_free(struct apply *ap);

/* Answers now or later, through fn, exactly once, unless it returns an error itself. */
int apply_start(struct apply *ap, const struct apply_ask *ask, apply_fn fn, void *arg,
		struct gpuq_err *err);

/* May that user make these changes (of site_diff(), from old to new)? Operators may all.
 * A manager may add, change and remove queues below a queue that he manages, as far as that
 * takes nothing from others, and of that queue itself who may use it and how. 0, GPUQ_EPERM. */
int apply_allowed(const struct site *old, const struct site *new_, const struct gpuq_val *changes,
		  const char *who, bool operator_, struct gpuq_err *err);

/* Could these changes make the scheduler evict anybody? */
bool apply_may_evict(const struct gpuq_val *changes);

#endif
