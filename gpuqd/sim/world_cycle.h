/* world_cycle.h - the cycles of a scenario
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  gpuq-sim, world_events.c.
 */
#ifndef GPUQD_SIM_WORLD_CYCLE_H
#define GPUQD_SIM_WORLD_CYCLE_H

#include "gpuqd/sim/world.h"

/* Run cycles until nothing changes: at most max_cycles, 0 = 10. */
int world_rest(struct world *w, uint32_t max_cycles, struct gpuq_err *err);

/* Find out if two more cycles would change nothing. The world itself stays as it is. */
int world_stable(struct world *w, bool *stable, struct gpuq_err *err);

/* Return the scheduler's view; NULL with err on failure. Free it with snapshot_free(). Nodes have
 * the same indexes there. */
struct snapshot *world_snapshot(struct world *w, struct gpuq_err *err);

/* Carry out a plan made from s. Evicted pods are `releasing` until world_release(). Returns 0, or
 * the error of the model. */
int world_carry(struct world *w, const struct snapshot *s, const struct plan *p,
		struct gpuq_err *err);

/* True if the plan would change anything. Start reservations do not, nor does waiting for leaving
 * pods. */
bool world_changes(const struct plan *p);

#endif
