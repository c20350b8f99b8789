/* launch.h - commands that a launcher such as mpirun starts in the pods of a step, without ssh
 *
 * Owns     what asks for them, and processes of those that run here.
 * Touches  a socket and files in a folder, processes.
 * Used by  mpi_server.c; launch_ask: slurm_step.c.
 *
 * --mpi=launch: a command runs in the first pod alone. It has lists of hosts in the forms of OpenMPI and of MPICH's
 * Hydra, and in place of ssh srun --nodelist HOST, or a script that runs it: that asks the server of the first pod,
 * which asks that of HOST. Such a command reads nothing, and writes as the srun of its pod does.
 */
#ifndef GPUQ_SLURM_MPI_LAUNCH_H
#define GPUQ_SLURM_MPI_LAUNCH_H

#include <poll.h>
#include <stdint.h>

#include "gpuq/slurm/mpi/exchange.h"
#include "libgpuq/buf.h"

#define LAUNCH_FDS 1025 /* that launch_fill fills at most */
#define LAUNCH_VARIABLE "GPUQ_LAUNCH" /* the socket */

struct launch;

/* Output of the commands goes to out. NULL without memory. */
struct launch *launch_new(const struct mpi_step *s, struct exchange *x, int out);

/* At the first part, when all are there: write the files, listen, and add the variables of the command to env, each
 * ended by NUL. Returns 0 or -1. */
int launch_open(struct launch *l, const char *folder, struct gpuq_buf *env);

/* As struct exchange_host has them. */
void launch_run(struct launch *l, uint32_t id, const char *command, size_t n);
void launch_halt(struct launch *l, uint32_t id);
void launch_ran(struct launch *l, uint32_t id, int code);
void launch_gone(struct launch *l, long part);

long launch_fill(const struct launch *l, struct pollfd *fds);
void launch_attend(struct launch *l, const struct pollfd *fds);

/* True while a process of ours runs, whose end is seen by launch_attend alone. */
bool launch_is_busy(const struct launch *l);

/* Append the command that is srun, for a shell. Returns 0, or -1: it is not known where we lie. */
int launch_self(struct gpuq_buf *out);

/* End what runs here. */
void launch_end(struct launch *l);

#define LAUNCH_PART "#" /* before a number, in place of the host of that part */

/* In srun --nodelist=HOST of that script: run the words, joined as ssh does, and return their exit code. */
int launch_ask(const char *socket, const char *host, char **words);

#endif
