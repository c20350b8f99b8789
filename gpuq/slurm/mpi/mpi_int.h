/* mpi_int.h - what srun and its process for MPI say to each other
 *
 * Used by  mpi.c, mpi_gate.c, mpi_server.c.
 *
 * Over a socket of packets. The server first sends strings, each ended by NUL: a refusal or
 * nothing, the number that ranks add their own to for PMI_ID or nothing, and variables of its first
 * rank. srun then sends the number of a rank with the descriptor of its PMI connection. It ends the
 * server by closing, or at once by a negative number: that of the exit code of its tasks. An srun that
 * joins is sent the same strings over a connection to an abstract socket, which it closes when its
 * tasks have ended, after their exit code (an int) if they failed. When a rank aborts, or the tasks of
 * another srun failed, the server sends the exit code, an int, to all of them.
 * Where the sruns are of several machines each has a server, and those exchange (exchange.h); the
 * strings that one which joins gets at the gate are for its server. One that serves a launcher sends
 * the strings when all have joined; those that joined have no tasks, and wait for a code or the end.
 */
#ifndef GPUQ_SLURM_MPI_MPI_INT_H
#define GPUQ_SLURM_MPI_MPI_INT_H

#include <sys/socket.h>
#include <sys/un.h>

#include "gpuq/slurm/mpi/mpi.h"

#define MPI_PACKET_MAX 32768

enum mpi_serves { MPI_PMI = 1, MPI_PMIX = 2, MPI_LAUNCH = 4 };

/* A connection to the server of another machine, and the strings that came by it. */
struct mpi_joined {
	int gate;
	const char *strings;
	size_t n;
};

/* Serve until the other end of fd is closed. serves has bits of enum mpi_serves; of those, must
 * are an error where they cannot be. joined is NULL at the first part. Never returns. */
void mpi_serve(const struct mpi_step *s, unsigned serves, unsigned must,
	       const struct mpi_joined *joined, int fd) __attribute__((noreturn));

/* True if ranks connect through the network. */
static inline bool mpi_is_networked(const struct mpi_step *s)
{
	return s->sessions || s->shared || s->host;
}

/* The address of what is shared by this name; returns its length. */
socklen_t mpi_address(struct sockaddr_un *a, const char *shared);

/* True if the other end of fd is a process of our user. */
bool mpi_is_ours(int fd);

#endif
