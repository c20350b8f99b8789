/* state.h - how far a pod has come, as its shepherd wrote it down
 *
 * Owns     the files `state` and `lock` of a pod's directory.
 * Touches  them, through the directory's descriptor.
 * Used by  the shepherd (the only writer, while it holds the lock) and the local
 *          cluster (reads).
 *
 * `state` only grows, a line at a time, each with one write:
 *   starting boot=BOOTID at=US          durable before the process is made: whoever
 *                                       finds it never starts the pod (again)
 *   started pid=N ticks=N at=US up=US   ticks: the process's start, as in /proc
 *   used user=US system=US memory=BYTES read=BYTES written=BYTES   before the end; -1: not known
 *   ended how=WORD code=N at=US up=US text=...   nothing runs any more
 * at is the wall clock; up, that of the boot, is what counts (older shepherds wrote none).
 * A line without its newline was cut by a crash and does not count.
 *
 * `lock` is held (an open file description lock) from before the first line until
 * nothing runs. Asking does not take it, and a process id that was used again cannot
 * fool whoever asks.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_STATE_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/err.h"

/* X(symbol, word): how a pod ended. */
#define POD_HOWS(X)                                                                                \
	X(NOT, "not")                                                                              \
	X(EXIT, "exit") /* code = exit code */                                                     \
	X(SIGNAL, "signal") /* code = signal number */                                             \
	X(OOM, "oom") /* it or a process of it was killed at its memory limit; code = exit code */ \
	X(DEADLINE, "deadline") /* the shepherd's own safety net */                                \
	X(DELETED, "deleted") /* signalled to end before it was started */                         \
	X(INFRA, "infra") /* the shepherd or the machine failed it */

enum pod_how {
#define X(sym, word) HOW_##sym,
	POD_HOWS(X)
#undef X
};

/* Use of all processes of the pod; -1 = not known. */
struct pod_used {
	int64_t user_us, system_us;
	int64_t memory_bytes; /* high-water: of the control group, else of the largest process */
	int64_t read_bytes, written_bytes; /* of disks */
};

struct pod_state {
	bool starting; /* its start was tried: never again */
	char boot[40];
	int pid; /* 0 = not known */
	uint64_t ticks;
	int64_t started_us, ended_us; /* wall clock; 0 = not yet */
	int64_t started_up_us, ended_up_us; /* the boot's clock; 0 = not known */
	enum pod_how how;
	int code;
	char text[256]; /* why, in words; "" */
	bool has_used;
	struct pod_used used;
};

/* Read DIRFD/state. A missing file is a pod that has not begun. Returns 0, GPUQ_EIO. */
int state_read(int dirfd, struct pod_state *out, struct gpuq_err *err);

/* The exit code that people see: 128 + n for a signal. */
int state_exit_code(const struct pod_state *s);

/* Open DIRFD/state for the appenders below; -1 and errno. */
int state_open(int dirfd);

/* Append one line; sync = it is on the disk when this returns. 0 or -1 and errno. */
int state_put_starting(int fd);
int state_put_started(int fd, int pid, uint64_t ticks, int64_t at_us);
int state_put_used(int fd, const struct pod_used *u); /* not synced: the end follows */
int state_put_ended(int fd, enum pod_how how, int code, const char *text);

/* Take the lock; the descriptor holds it. -1: errno EAGAIN when another has it,
 * ENOENT when the directory was removed. */
int state_lock(int dirfd);

/* True if it is held. An unreadable lock counts as free. */
bool state_locked(int dirfd);

int64_t state_now_us(void); /* wall clock */

#endif
