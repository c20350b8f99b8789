/* slurm_tasks.h - several programs in parallel, as srun starts them
 *
 * Owns     these processes and their pipes while tasks_run runs.
 * Touches  processes, files, standard output and error.
 * Used by  slurm_step.c.
 *
 * A single task inherits the descriptors. Output of several comes by lines, never mixed; when one
 * fails the others get SIGTERM, and SIGKILL a little later.
 */
#ifndef GPUQ_SLURM_SLURM_TASKS_H
#define GPUQ_SLURM_SLURM_TASKS_H

#include <stdbool.h>

#define TASKS_MAX 1024

/* Become a task; never returns. Runs in the new process. */
typedef void (*task_fn)(void *arg, long i) __attribute__((noreturn));

struct tasks {
	long n, first; /* how many, and the number of the first in the whole job */
	bool label; /* lines begin with the number of their task */
	bool go_on; /* when one fails */
	bool quiet;
	/* Names of files with marks, or NULL: our own. path makes the name of task i's. */
	const char *input, *output, *error;
	bool truncate; /* such files, rather than leaving that to the first pod */
	const char *(*path)(void *arg, const char *pattern, long i);
	void (*prepare)(void *arg, long i); /* in srun, before task i's process is made; or NULL */
	/* The exit code with which a program ended them all, or -1; or NULL. */
	int (*aborted)(void *arg);
	task_fn become;
	void *arg;
};

/* Start them, wait for them, and return the exit code: the highest, of those that failed
 * the first's. */
int tasks_run(const struct tasks *t);

#endif
