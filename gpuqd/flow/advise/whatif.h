/* whatif.h - what would happen to running jobs if the site were another one
 *
 * Owns     a model of its own, loaded from the store as at a restart, on which cycles are
 *          carried out as if the cluster obeyed at once.
 * Touches  the store (reads). whatif_run() may be called on any thread.
 * Used by  flow/admit/apply.
 *
 * First the old site's cycles run until they decide nothing more, then those of the new one.
 * Jobs that run now and leave in the second part leave because of the change. All happens at
 * one instant: what protects a job for a time (its min-runtime, say) still protects it, and
 * an eviction that only becomes legal later is not foreseen. The number of cycles is bounded.
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
	const char *rule, *by, *by_queue; /* for which job, of which queue; "" = for nobody */
	int64_t gpus_milli; /* that it loses */
	int64_t ran_us;
	int64_t lost_us; /* devices x time since its last checkpoint, in device-us */
	bool shrinks; /* it only loses pods */
	bool again; /* it starts again at once, elsewhere */
};

struct whatif_result {
	const struct whatif_victim *victims; /* in the order of being told */
	size_t n_victims;
	int64_t lost_us; /* of all of them */
	const char *const *warnings; /* quotas that promise more than there is */
	size_t n_warnings;
	bool cut_short; /* cycles went on deciding: there may be more */
};

/* On the loop, when everything applied is durable: takes down what the store does not hold.
 * site: MessagePack of the new site's tree; copied. */
int whatif_new(const struct journal *j, int64_t now_us, const void *site, size_t len,
	       struct whatif **out, struct gpuq_err *err);
void whatif_free(struct whatif *w); /* NULL is allowed */

void whatif_run(struct whatif *w);

/* After whatif_run(). Returns 0 and *out, which lives as long as w; or why the new site
 * cannot be (GPUQ_ECONFLICT: jobs depend on what it does not have), GPUQ_ECORRUPT, ... */
int whatif_result(const struct whatif *w, struct whatif_result *out, struct gpuq_err *err);

#endif
