/* spread.h - srun in a script that the first pod alone runs: its part in the other pods
 *
 * Owns     a process for each of them, which waits until the srun there ends.
 * Touches  processes; the socket of launch.h.
 * Used by  slurm_step.c.
 *
 * Elsewhere a script runs in every pod, and each starts the tasks of its own. Here the launcher that serves the script
 * starts the same srun in the others, with the variables of this one except those that belong to a pod.
 */
#ifndef GPUQ_SLURM_MPI_SPREAD_H
#define GPUQ_SLURM_MPI_SPREAD_H

#include <stdbool.h>
#include <sys/types.h>

#define SPREAD_NAME                                                                                \
	"GPUQ_STEP_NAME" /* in place of the command line, by which sruns know their step */

/* Start the srun of a step with these words (its own name first) in some parts of the launching step, by number. Returns as many
 * processes, which must be freed, or NULL. */
pid_t *spread_start(const char *step, char *const *words, const long *parts, long n);

/* Wait for them; hasten ends them first. Returns the highest exit code. */
int spread_end(pid_t *pids, long n, bool hasten);

#endif
