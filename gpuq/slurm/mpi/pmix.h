/* pmix.h - the module that serves PMIx, by which OpenMPI starts
 *
 * Used by  mpi_server.c, which loads it; it is built and loaded only where openpmix is.
 *
 * A module of its own since libpmix starts a thread and links much: srun itself does without.
 */
#ifndef GPUQ_SLURM_MPI_PMIX_H
#define GPUQ_SLURM_MPI_PMIX_H

#define PMIX_MODULE_VERSION 1
#define PMIX_MODULE_SYMBOL "gpuq_pmix_module"
#define PMIX_MODULE_FILE "libgpuq-pmix.so"

struct pmix_step {
	const char *name; /* of its namespace; cannot be guessed */
	const char *folder; /* for files of the server; exists */
	long n, per_node; /* ranks, and those of each node but the last */
	const char *const *nodes; /* names of their hosts */
};

struct pmix_module {
	int version;
	/* Start the server; *env gets the variables of rank 0, "NAME=VALUE", ended by NULL and
	 * never freed. Returns 0, or -1 with a sentence in why. */
	int (*start)(const struct pmix_step *s, char ***env, char why[256]);
	void (*stop)(void);
};

#endif
