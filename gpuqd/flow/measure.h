/* measure.h - from what devices did to what jobs did
 *
 * Owns     when and by whom devices were last measured.
 * Touches  the model through the journal.
 * Used by  reconcile (gives it rounds), rpc (shows what is known).
 *
 * A measurement is of a pod where the cluster tells its name, else of the pods on that
 * device. A job did nothing when all devices of all its pods were measured to have done
 * nothing in one round; on a device that several share, what one does counts for all.
 */
#ifndef GPUQD_FLOW_MEASURE_H
#define GPUQD_FLOW_MEASURE_H

#include <stdint.h>

#include "gpuqd/state/fact.h"
#include "libgpuq/err.h"

struct journal;
struct measure;

struct measure_state {
	const char *source; /* "nvml", "metrics"; "" = nobody measures */
	const char *why; /* why nothing, or not everything, was measured; "" = all was */
	int64_t at_us; /* when something last was; 0 = never */
	uint32_t n_devices, n_jobs; /* in that round */
};

int measure_new(struct journal *j, struct measure **out, struct gpuq_err *err);
void measure_free(struct measure *m);

void measure_round(struct measure *m, const struct use_round *r);

/* Holds until the next round. */
struct measure_state measure_state(const struct measure *m);

#endif
