/* mpi_gate.h - the meeting of sruns that are in pods of their own, with addresses of their own
 *
 * Owns     nothing.
 * Touches  the network between pods.
 * Used by  mpi.c, mpi_server.c.
 *
 * The srun that joins connects by TCP, to a port that follows from the step's name. Each side draws a number and shows by
 * it that it has the key, which is not sent: lines of at most MPI_LINE_MAX bytes,
 *	joins:  gpuq-mpi2 NUMBER NAME
 *	serves: gpuq-mpi2 NUMBER PROOF
 *	joins:  PROOF
 * A proof is the HMAC of a word for the side, both numbers and the name. The strings of mpi_int.h come then, after their
 * length, 4 bytes in network order. Later traffic is neither secret nor signed. Before, the line was "gpuq-mpi KEY NAME":
 * one that sends it is hung up on, and told of.
 */
#ifndef GPUQ_SLURM_MPI_MPI_GATE_H
#define GPUQ_SLURM_MPI_MPI_GATE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpuq/slurm/mpi/mpi_int.h"

/* Listen for the sruns of other machines. Returns a socket, or -1. */
int mpi_gate_open(const struct mpi_step *s);

#define MPI_LINE_MAX 512
#define MPI_NUMBER_BYTES 33
#define MPI_PROOF_BYTES 65

/* A connection at the side that serves, until it has shown the key. */
struct mpi_caller {
	int fd; /* -1 = none */
	bool answered; /* its first line has been, by ours; want is its proof, with a line feed */
	char want[MPI_PROOF_BYTES + 1];
	size_t n;
	char in[MPI_LINE_MAX];
};

enum mpi_heard {
	MPI_HEARD_SOME, /* more is to come */
	MPI_HEARD_KEY,
	MPI_HEARD_WRONG, /* it is to be hung up on */
	MPI_HEARD_OLDER /* likewise: an srun from before this form */
};

/* Read what has come, and answer it. */
enum mpi_heard mpi_gate_hear(const struct mpi_step *s, struct mpi_caller *c);

/* Connect to the gate, show the key and take the strings. Returns a socket; -1: not yet, or not to us. */
int mpi_gate_join(const struct mpi_step *s, char packet[MPI_PACKET_MAX], size_t *n);

#endif
