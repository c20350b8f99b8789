/* world_events.h - the steps of a scenario: events from outside, and time that passes
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  gpuq-sim.
 */
#ifndef GPUQD_SIM_WORLD_EVENTS_H
#define GPUQD_SIM_WORLD_EVENTS_H

#include "gpuqd/sim/world.h"

/* Apply an event, and everything between now and its time; then run cycles until rest. */
int world_step(struct world *w, const struct sc_step *step, struct gpuq_err *err);

#endif
