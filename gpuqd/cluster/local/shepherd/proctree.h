/* proctree.h - the processes below one, found and ended
 *
 * Owns     nothing. Touches /proc and signals.
 * Used by  the shepherd: at a job's end, and after a shepherd that was killed.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_PROCTREE_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_PROCTREE_H

#include <stdbool.h>
#include <stdint.h>

/* When process pid started, in clock ticks since boot; 0 = no such process. */
uint64_t proctree_ticks(int pid);

/* Does pid have a handler for signal? */
bool proctree_catches(int pid, int signal);

/* Send signal (0 = only count) to every process below ancestor, zombies and `except`
 * left out (0 = none). Returns how many there are that can be signalled. */
int proctree_signal(int ancestor, int except, int signal);

/* Send signal to the programs of a script, as Slurm does: to what srun started below ancestor,
 * where any srun runs there; else to every process below it. The shell and its forks, which run
 * nothing of their own, are left out, and so is srun: without a handler they would die of it and
 * take the programs along. Returns how many got it. */
int proctree_signal_programs(int ancestor, int shell, int signal);

/* Send signal to process pid if it is still the one that started at ticks: between a look at
 * /proc and a signal the number may have been given to a process of another user. False when
 * it is not, or cannot be signalled. */
bool proctree_send(int pid, uint64_t ticks, int signal);

/* Kill what a dead shepherd left behind: members of session sid if that is still the
 * session started at ticks, and processes whose environment holds mark ("NAME=value"), all of
 * them only where their real user is uid. sid 0 = only by mark. Returns how many were found. */
int proctree_kill_stray(int sid, uint64_t ticks, uint32_t uid, const char *mark);

#endif
