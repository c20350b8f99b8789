/* trace.h - gpuq-sim trace
 *
 * Owns     the options, and the figures as text.
 * Touches  standard input and output, the files that are named.
 * Used by  gpuq-sim.
 */
#ifndef GPUQD_SIM_TRACE_TRACE_H
#define GPUQD_SIM_TRACE_TRACE_H

/* Run gpuq-sim trace: argv[0] is "trace". Returns the exit status. */
int trace_main(int argc, char **argv);

#endif
