/* pmi.h - the server of the PMI-1 protocol, by which MPICH and its relatives start
 *
 * Owns     the values that the ranks of one step publish: at most PMI_BYTES_MAX of them.
 * Touches  memory only.
 * Used by  mpi_server.c.
 *
 * The protocol (Flux RFC 13 describes it): lines of NAME=VALUE words, the first cmd=. A rank
 * puts values under keys, enters a barrier that all ranks must reach, and gets those of the
 * others. Starting further processes and publishing names are answered with a failure.
 */
#ifndef GPUQ_SLURM_MPI_PMI_H
#define GPUQ_SLURM_MPI_PMI_H

#include <stddef.h>

#define PMI_LINE_MAX 4096 /* a longer line is not of this protocol */
#define PMI_BYTES_MAX (64u << 20)

/* A whole line for a rank, with its line feed. */
typedef void (*pmi_send_fn)(void *arg, long rank, const char *line, size_t n);

/* A rank aborted all of them with this exit code, 1 to 255. */
typedef void (*pmi_abort_fn)(void *arg, int code);

struct pmi;

/* n_ranks of them on nodes that hold per_node each (the last one fewer); ranks of a node share
 * its memory. NULL without memory. */
struct pmi *pmi_new(long n_ranks, long per_node, pmi_send_fn send, pmi_abort_fn abort, void *arg);
void pmi_free(struct pmi *p);

/* A line of a rank, without its line feed; it is changed. Returns 0, or -1 if it is not of this
 * protocol: the connection must be closed. */
int pmi_line(struct pmi *p, long rank, char *line);

#endif
