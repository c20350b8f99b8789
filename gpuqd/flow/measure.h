/* measure.h - use of jobs, from measurements of devices
 *
 * Owns     when and by which source devices were last measured.
 * Touches  the model through the journal.
 * Used by  reconcile (gives it rounds), rpc (shows the state).
 *
 * A measurement belongs to a pod if the cluster reports its name, else to the pods on that device.
 * A job was idle when all devices of all its pods were measured to be idle in one round; on a
 * shared device the use by one pod counts for all.
 */
#ifndef GPUQD_FLOW_MEASURE_H
#define GPUQD_FLOW_MEASURE_H

#include <stdint.h>

#include "gpuqd/state/fact.h"
#include "libgpuq/err.h"

struct journal;
struct measure;

struct measure_state {
	const char *source; /* "nvml", "metrics"; "" = no measurements */
	const char *why; /* why measurements failed or are incomplete; "" = complete */
	int64_t at_us; /* of the last measurement; 0 = never */
	uint32_t n_devices, n_jobs; /* in that round */
};

int measure_new(struct journal *j, struct measure **out, struct gpuq_err *err);
void measure_free(struct measure *m);

void measure_round(struct measure *m, const struct use_round *r);

/* Valid until the next round. */
struct measure_state measure_state(const struct measure *m);

#endif
