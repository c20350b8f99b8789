/* order.h - the record of one pod on disk: what its shepherd is to run
 *
 * Owns     the file `order` of a pod's directory.
 * Touches  that file, through the directory's descriptor.
 * Used by  the local cluster (writes, reads again after a restart) and the shepherd
 *          (reads). Neither libevent nor the spec is known here.
 *
 * The file is a run of NUL-terminated "key=value" strings, first gpuq-order=1, last
 * end=1, so that a cut file is distinguished from a complete one and any byte but NUL may stand
 * in an argument. Unknown keys are skipped: a newer daemon's order is understood.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_ORDER_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"

#define ORDER_BYTES_MAX (4u << 20) /* a spec has 256 KiB, an environment up to 2 MiB */

struct order {
	const char *pod, *token; /* name; identity given by the daemon's ledger */
	const char *uid; /* 32 hex: the identity of this object, drawn here */
	const char *node, *user;
	const char
		*record; /* state/record/podrecord.h; "" of an order that an older daemon wrote */
	const char *cwd; /* absolute; "" = the user's home */
	const char *output, *error, *input; /* patterns already expanded; "" = not given */
	const char *devices; /* "0,3", "" = none */
	const char *minors; /* of /dev/nvidiaN, in the same form */
	int64_t job_uid, job_gid;
	int64_t file_mask; /* umask; -1 = 022 */
	bool code; /* files of the job's own are unpacked first: unpack.h */
	bool script; /* argv[1..] are the arguments of the file `script` */
	bool batch_only; /* warn_signal goes to the first process alone */
	bool append; /* do not empty the output file first */
	bool launch; /* run by srun --mpi=launch */
	bool input_open; /* standard input stays open for whoever attaches */
	bool tty; /* standard input and output are a terminal */
	bool no_new_privs, device_cgroup; /* gpuqd.yaml(5) */
	int64_t time_limit_us, grace_us; /* INT64_MAX = no limit */
	int64_t warn_signal, warn_lead_us; /* sent so long before the limit; 0 = none */
	int64_t cpu_milli, memory_bytes, gpus_milli; /* 0 = not counted */
	struct gpuq_strlist argv; /* items[n] is NULL: ready for exec */
	struct gpuq_strlist env; /* "NAME=value", items[n] is NULL */
};

/* Append the whole record to out; out->failed tells of no memory. */
void order_write(const struct order *o, struct gpuq_buf *out);

/* Read DIRFD/order; strings live in a. Returns 0, GPUQ_ENOENT (no such file),
 * GPUQ_ECORRUPT (cut or no order), GPUQ_EIO, GPUQ_ENOMEM. */
int order_read(int dirfd, struct gpuq_arena *a, struct order *out, struct gpuq_err *err);

#endif
