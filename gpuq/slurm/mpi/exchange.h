/* exchange.h - servers of a step on several machines, which need something of one another
 *
 * Owns     the connections between them, and the asks of the PMIx module until they are answered.
 * Touches  the network between pods.
 * Used by  mpi_server.c.
 *
 * A star: the server of the first part has a connection to each of the others, over which both send frames: four
 * numbers of 4 bytes in network order (bytes that follow, kind, id, value), and these bytes; the first names the part
 * and its host. A fence is complete when
 * all parts with a rank in it have asked the same; its values are joined. Values that a part which has gone was to give fail.
 * A part that fails says so, and all are told.
 */
#ifndef GPUQ_SLURM_MPI_EXCHANGE_H
#define GPUQ_SLURM_MPI_EXCHANGE_H

#include <poll.h>
#include <stdbool.h>

#include "gpuq/slurm/mpi/mpi.h"
#include "gpuq/slurm/mpi/pmix.h"

#define EXCHANGE_FDS(parts) (2 * (parts) + 1) /* that exchange_fill fills */

struct exchange;

/* Requests of other parts to this one. */
struct exchange_host {
	void *arg;
	/* Another part ended all with this exit code, 1 to 255. */
	void (*abort)(void *arg, int code);
	/* The first part asks that we run a command, or end it; it is told when that has ended. */
	void (*run)(void *arg, uint32_t id, const char *command, size_t n);
	void (*halt)(void *arg, uint32_t id);
	/* To the first part: a command ended; the connection to a part did. */
	void (*ran)(void *arg, uint32_t id, int code);
	void (*gone)(void *arg, long part);
};

/* NULL without memory, or descriptors. */
struct exchange *exchange_new(const struct mpi_step *s, const struct exchange_host *host);

/* The end of a pipe that the module writes its asks to. */
int exchange_asks(const struct exchange *x);

/* The module, once it has started. */
void exchange_serve(struct exchange *x, const struct pmix_module *m);

/* Take a connection, which is closed in the end: of another part to the first, or of us to that. */
void exchange_add(struct exchange *x, int fd);

/* True while a connection is open. */
bool exchange_is_open(const struct exchange *x);

/* Return how many parts the step has, ours among them. */
long exchange_n_parts(const struct exchange *x);

/* True when all parts are connected, which then have hosts. */
bool exchange_is_whole(const struct exchange *x);
const char *exchange_host_of(const struct exchange *x, long part);

/* Have another part run a command, under an id of ours; end it; say that one we were asked to run ended. */
void exchange_run(struct exchange *x, long part, uint32_t id, const char *command, size_t n);
void exchange_halt(struct exchange *x, long part, uint32_t id);
void exchange_ran(struct exchange *x, uint32_t id, int code);

/* End the tasks of all other parts. */
void exchange_abort(struct exchange *x, int code);

long exchange_fill(const struct exchange *x, struct pollfd *fds);
void exchange_attend(struct exchange *x, const struct pollfd *fds);

/* Send what has not been sent, for a second at most. */
void exchange_flush(struct exchange *x);

#endif
