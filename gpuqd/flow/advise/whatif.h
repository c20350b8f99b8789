/* whatif.h - effects of a changed site on running jobs
 *
 * Owns     a model of its own, loaded from the store as at a restart, on which cycles are
 *          carried out as if the cluster obeyed at once.
 * Touches  the store (reads). whatif_run() may be called on any thread.
 * Used by  flow/admit/apply.
 *
 * Cycles run with the old site until they decide nothing more, then with the new one. Jobs that
 * run now and are evicted in the second part are evicted because of the change. All happens at
 * one instant: a protection that is limited in time (min-runtime, say) still holds, and an
 * eviction that only becomes legal later is not foreseen. The number of cycles is bounded.
 */
#ifndef GPUQD_FLOW_ADVISE_WHATIF_H
#define GPUQD_FLOW_ADVISE_WHATIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"

struct journal;
struct whatif;

struct whatif_victim {
	struct job_key key;
	const char *name, *user, *queue, *flavor;
	enum gpuq_cause cause;
	const char *rule, *by, *by_queue; /* preempting job and its queue; "" = no job */
	int64_t gpus_milli; /* that it loses */
	int64_t ran_us;
	int64_t lost_us; /* devices x time since its last checkpoint, in device-us */
	bool shrinks; /* it only loses pods */
	bool again; /* it restarts at once, elsewhere */
};

struct whatif_result {
	const struct whatif_victim *victims; /* in the order in which they were signalled */
	size_t n_victims;
	int64_t lost_us; /* of all of them */
	const char *const *warnings; /* quotas that exceed what exists */
	size_t n_warnings;
	bool cut_short; /* the bound on cycles was reached: there may be more */
};

/* Copy what the store does not hold; on the loop, when everything applied is durable. site:
 * MessagePack of the new site's tree; copied. */
int whatif_new(const struct journal *j, int64_t now_us, const void *site, size_t len,
	       struct whatif **out, struct gpuq_err *err);
void whatif_free(struct whatif *w); /* NULL is allowed */

void whatif_run(struct whatif *w);

/* Get the result of whatif_run(). Returns 0 and *out, which lives as long as w; or the reason why
 * the new site is impossible (GPUQ_ECONFLICT: jobs depend on an object that it lacks),
 * GPUQ_ECORRUPT, ... */
int whatif_result(const struct whatif *w, struct whatif_result *out, struct gpuq_err *err);

#endif
