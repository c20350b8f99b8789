/* mpi_int.h - what srun and its process for MPI say to each other
 *
 * Used by  mpi.c, mpi_gate.c, mpi_server.c.
 *
 * Over a socket of packets. The server first sends strings, each ended by NUL: a refusal or
 * nothing, the number that ranks add their own to for PMI_ID or nothing, and variables of rank
 * 0. srun then sends the number of a rank with the descriptor of its PMI connection. It ends the
 * server by closing, or at once by the number -1. An srun that joins is sent the same strings over
 * a connection to an abstract socket, which it closes when its tasks have ended. When a rank
 * aborts, the server sends its exit code, an int, to all of them.
 */
#ifndef GPUQ_SLURM_MPI_MPI_INT_H
#define GPUQ_SLURM_MPI_MPI_INT_H

#include <sys/socket.h>
#include <sys/un.h>

#include "gpuq/slurm/mpi/mpi.h"

#define MPI_PACKET_MAX 32768

enum mpi_serves { MPI_PMI = 1, MPI_PMIX = 2 };

/* Serve until the other end of fd is closed. serves has bits of enum mpi_serves; of those, must
 * are an error where they cannot be. Never returns. */
void mpi_serve(const struct mpi_step *s, unsigned serves, unsigned must, int fd)
	__attribute__((noreturn));

/* True if ranks connect through the network. */
static inline bool mpi_is_networked(const struct mpi_step *s)
{
	return s->sessions || s->shared || s->host;
}

/* The address of what is shared by this name; returns its length. */
socklen_t mpi_address(struct sockaddr_un *a, const char *shared);

/* True if the other end of fd is a process of our user. */
bool mpi_is_ours(int fd);

/* The module's file; NULL where it is not there. It must be freed. */
char *mpi_module(void);

#endif
