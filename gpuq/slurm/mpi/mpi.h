/* mpi.h - MPI programs that srun starts find one another
 *
 * Owns     a process beside the tasks, which serves PMI-1 (MPICH) and PMIx (OpenMPI) to the ranks
 *          of one step, until mpi_stop or the end of srun.
 * Touches  sockets, the network between pods, a folder in $TMPDIR or /tmp while it runs.
 * Used by  slurm_step.c; carry.c (mpi_module).
 *
 * A task is offered both; a program that speaks neither does not notice. PMIx needs openpmix on
 * this machine (module libgpuq-pmix.so); without it only PMI-1 is served.
 */
#ifndef GPUQ_SLURM_MPI_MPI_H
#define GPUQ_SLURM_MPI_MPI_H

#include <stdbool.h>

#include "libgpuq/err.h"

#define MPI_RANKS_MAX 4096

struct mpi;

struct mpi_step {
	const char *type; /* of --mpi: none, pmi1, pmi2, pmix; NULL = what there is */
	long n, per_node; /* ranks, and those of each node but the last */
	const char *const *nodes; /* names of the hosts, one for each node */
	bool sessions; /* tasks inherit nothing from srun and connect through the network */
	/* Several sruns of this machine start parts of the step: a name that they share, or NULL.
	 * The one that serves waits in mpi_stop for the others. */
	const char *shared;
	long n_joining; /* other sruns, each of which joins once */
	long part; /* ours, of the step; the first serves, others wait for it in mpi_start */
	/* Where they are of several machines, one of each node, the host of the one that serves, and a key that they
	 * share. NULL = of one machine */
	const char *host, *key;
};

/* Start to serve. *out is NULL if nothing is to be served. Returns 0 or an error code. */
int mpi_start(const struct mpi_step *s, struct mpi **out, struct gpuq_err *err);

/* True for a type that mpi_step knows. */
bool mpi_is_type(const char *type);

/* End it; at once, if tasks of ours failed with this exit code: then those of other sruns end as well. */
void mpi_stop(struct mpi *m, int code);

/* True for a type of a command that runs in the first part alone, and finds hosts there (launch.h). */
bool mpi_is_launch(const char *type);

/* In the srun of another part: wait for the end of that command. Returns its exit code. */
int mpi_wait(struct mpi *m);

/* In srun, before the process of a rank is made. */
void mpi_prepare(struct mpi *m, long rank);

/* In that process, before it becomes the program: its environment. */
void mpi_become(const struct mpi *m, long rank);

/* The exit code with which a rank or another srun ended all, once; otherwise -1. */
int mpi_aborted(struct mpi *m);

/* True for a variable ("NAME=VALUE") that mpi_become sets. */
bool mpi_is_variable(const char *entry);

/* The module's file; NULL where it is not there. It must be freed. */
char *mpi_module(void);

/* Print the types, as --mpi=list asks. */
void mpi_print_types(void);

#endif
