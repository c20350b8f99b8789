/* shepherd_talk.h - sessions with a job while it runs
 *
 * Owns     the two sockets of a pod's directory (talk.h), what is attached to the job's own
 *          input and output, and the attendants (attendant.h) of programs beside it.
 * Touches  these sockets, processes.
 * Used by  shepherd_run.c.
 *
 * The job's output goes to its log in any case. Attached clients get it at the speed of the
 * slowest: no more is read from the job meanwhile, as with a stopped terminal. A client that
 * reads nothing for TALK_STALL_US is disconnected.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_TALK_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_TALK_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpuqd/cluster/local/shepherd/devlimit.h"
#include "gpuqd/cluster/local/shepherd/memlimit.h"
#include "gpuqd/cluster/local/shepherd/order.h"
#include "libgpuq/buf.h"

#define TALK_ATTACHED_MAX 16
#define TALK_ATTENDANTS_MAX 128
#define TALK_POLLS_MAX (3 + TALK_ATTACHED_MAX)
#define TALK_STALL_US INT64_C(30000000)
#define TALK_REPLAY_BYTES (64 << 10)

struct attached {
	int fd; /* -1 = none */
	bool begun; /* its request has come */
	bool input, output;
	struct gpuq_buf in, out;
	int64_t stalled_us; /* when `out` became too long; 0 = it is not */
};

struct shepherd_talk {
	const struct order *o;
	const char *dir;
	const struct memlimit *limit;
	const struct devlimit *devices;
	int exec_fd, attach_fd; /* listening; -1 = none */
	int input_fd; /* to the job's standard input: a terminal's other end or a pipe; -1 */
	int log_fd; /* the job's log, for reading; -1 */
	struct gpuq_buf input; /* not taken by the job yet */
	bool input_end; /* close it once that is taken */
	struct attached attached[TALK_ATTACHED_MAX];
	pid_t attendants[TALK_ATTENDANTS_MAX];
	size_t n_attendants;
};

/* Listen, before the pod counts as running. A socket that cannot be created is done without. */
void shepherd_talk_open(struct shepherd_talk *t, const struct order *o, const char *dir, int pod_fd,
			const struct memlimit *limit, const struct devlimit *devices);
/* It runs; both become the struct's. */
void shepherd_talk_started(struct shepherd_talk *t, int input_fd, int log_fd);

/* Collect the descriptors to wait for; returns how many of p were filled. */
size_t shepherd_talk_polls(const struct shepherd_talk *t, struct pollfd p[TALK_POLLS_MAX]);
/* Do what these are ready for. */
void shepherd_talk_turn(struct shepherd_talk *t, const struct pollfd *p, size_t n, int64_t now_us);

/* May more be read from the job? *until_us: when that may change by itself. */
bool shepherd_talk_room(struct shepherd_talk *t, int64_t now_us, int64_t *until_us);
void shepherd_talk_output(struct shepherd_talk *t, const char *bytes, size_t n, int64_t now_us);

/* A child has ended. True when it was an attendant. */
bool shepherd_talk_reaped(struct shepherd_talk *t, pid_t pid);
/* The job's main process has ended: programs beside it end too, and no client is admitted. */
void shepherd_talk_main_ended(struct shepherd_talk *t);

/* The job is over and its end is stored: report that to attached clients, for a bounded time. */
void shepherd_talk_close(struct shepherd_talk *t, int exit_code);

#endif
