/* print.h - results of a scenario, as text
 *
 * Owns     the text that gpuq-sim run and shares print.
 * Touches  standard output.
 * Used by  main.c. It prints the tree that --json prints (outcome.h).
 */
#ifndef GPUQD_SIM_PRINT_H
#define GPUQD_SIM_PRINT_H

#include "gpuqd/sim/world.h"
#include "libgpuq/val.h"

/* Print a case from beginning to end: the first rest, then each step. */
void print_case(const struct sc_case *c, const struct gpuq_val *outcome);

void print_shares(const struct world *w);

#endif
