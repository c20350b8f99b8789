/* replay.h - recorded cycles, decided again
 *
 * Owns     nothing.
 * Touches  memory; prints on stdout.
 * Used by  gpuq-sim replay.
 */
#ifndef GPUQD_SIM_REPLAY_H
#define GPUQD_SIM_REPLAY_H

#include <stddef.h>

#include "libgpuq/err.h"

struct replay {
	unsigned long n_same, n_different;
};

/* Replay all records of a file (sched/cycle_record.h): each cycle runs again on its recorded
 * snapshot; a different plan is compared line by line on stdout: "-" was decided then, "+" is
 * decided now. Returns 0 also then; GPUQ_ECORRUPT, GPUQ_EVERSION, GPUQ_ENOMEM with "NAME: ..." for
 * the rest of a file that cannot be read. */
int replay_bytes(struct replay *r, const char *name, const void *bytes, size_t n,
		 struct gpuq_err *err);

#endif
