/* mpi_gate.h - the meeting of sruns that are in pods of their own, with addresses of their own
 *
 * Owns     nothing.
 * Touches  the network between pods.
 * Used by  mpi.c, mpi_server.c.
 *
 * The srun that joins connects by TCP, to a port that follows from the step's name, and sends a line with key and name;
 * the strings of mpi_int.h come after their length, 4 bytes in network order.
 */
#ifndef GPUQ_SLURM_MPI_MPI_GATE_H
#define GPUQ_SLURM_MPI_MPI_GATE_H

#include <stddef.h>

#include "gpuq/slurm/mpi/mpi_int.h"

/* Listen for the sruns of other machines. Returns a socket, or -1. */
int mpi_gate_open(const struct mpi_step *s);

/* The line by which one joins, of MPI_LINE_MAX bytes at most, with its line feed. */
#define MPI_LINE_MAX 512
void mpi_gate_line(const struct mpi_step *s, char out[MPI_LINE_MAX]);

/* Connect to the gate, say the line and take the strings. Returns a socket; -1: not yet, or not to us. */
int mpi_gate_join(const struct mpi_step *s, char packet[MPI_PACKET_MAX], size_t *n);

#endif
