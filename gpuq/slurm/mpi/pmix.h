/* pmix.h - the module that serves PMIx, by which OpenMPI starts
 *
 * Used by  mpi_server.c, which loads it, exchange.c; it is built and loaded only where openpmix is.
 *
 * A module of its own since libpmix starts a thread and links much: srun itself does without.
 * Where ranks of a step are on several machines, each has a server. A server asks its host, by a pipe, for
 * values of the others: the library calls from its thread.
 */
#ifndef GPUQ_SLURM_MPI_PMIX_H
#define GPUQ_SLURM_MPI_PMIX_H

#include <stddef.h>
#include <stdint.h>

#define PMIX_MODULE_VERSION 2
#define PMIX_MODULE_SYMBOL "gpuq_pmix_module"
#define PMIX_MODULE_FILE "libgpuq-pmix.so"

struct pmix_step {
	const char *name; /* of its namespace; cannot be guessed */
	const char *folder; /* for files of the server; exists */
	long n, per_node; /* ranks, and those of each node but the last */
	long node; /* ours: its ranks alone are served */
	const char *const *nodes; /* names of all hosts */
	int asks; /* the end of a pipe that addresses of asks are written to; -1 = one node */
};

enum pmix_ask_kind {
	PMIX_ASK_FENCE, /* all servers of these ranks are to ask the same */
	PMIX_ASK_VALUES, /* those that a rank of another node has published */
	PMIX_ASK_GIVEN, /* the reply to .find: values of a rank of ours; not to be answered */
	PMIX_ASK_ABORT, /* a rank aborted all with this code; not to be answered */
};

struct pmix_ask {
	enum pmix_ask_kind kind;
	uint32_t *ranks; /* none: all of the step */
	size_t n_ranks;
	int code; /* of an abort; of a reply, 0 = found */
	uint32_t id; /* of a reply: that of .find */
	char *data; /* of a fence: what this node adds; of a reply */
	size_t n;
	void *done, *arg; /* the module's */
};

struct pmix_module {
	int version;
	/* Start the server; *env gets the variables of its first rank, "NAME=VALUE", ended by NULL
	 * and never freed. Returns 0, or -1 with a sentence in why. */
	int (*start)(const struct pmix_step *s, char ***env, char why[256]);
	/* Answer an ask, and free it: ok, and n bytes that are copied. */
	void (*answer)(struct pmix_ask *a, int ok, const char *data, size_t n);
	/* Have the values of a rank of ours written to .asks, under id. */
	void (*find)(uint32_t rank, uint32_t id);
	void (*stop)(void);
};

#endif
