/* local_int.h - inside of the local cluster: jobs as processes of this machine
 *
 * Owns     DIR/local (a directory per pod, see shepherd.h) and DIR/logs (see
 *          shepherd_log.h); no process: shepherds own those.
 * Touches  these files, inotify, posix_spawn.
 * Used by  only the files of this directory; others use cluster.h.
 *
 * The daemon's side keeps no state of its own. A pod exists from the moment
 * its directory is renamed into place, and its state is read from there.
 * One rule drives every pod, at its creation, after a restart and after an accident:
 * if its end is not written and its lock is free, a shepherd is started. The shepherd
 * decides the rest (shepherd.h).
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_INT_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uthash.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/local/shepherd/order.h"
#include "gpuqd/cluster/local/shepherd/state.h"
#include "libgpuq/buf.h"

#define LOCAL_TICK_US INT64_C(1000000) /* the belt to inotify's braces */
#define LOCAL_NODE_CHECK_US INT64_C(60000000) /* devices and memory are examined again */
#define LOCAL_PROBE_US INT64_C(20000000) /* a driver that takes longer hangs */
#define LOCAL_LAUNCHES_MAX 32 /* shepherds being started at once */
#define LOCAL_BACKOFF_MIN_US INT64_C(250000)
#define LOCAL_BACKOFF_MAX_US INT64_C(30000000)
#define LOCAL_MAX_PODS 1000 /* reported by the node; processes are cheap, memory is not */

/* Output of ended jobs that is kept: the oldest goes when one of these is passed. */
#define LOCAL_LOGS_BYTES_MAX (INT64_C(4) << 30)
#define LOCAL_LOGS_FILES_MAX 20000
#define LOCAL_LOGS_TRIM_US INT64_C(60000000) /* at most once in this time */

struct local_launch;
struct local_answer;
struct log_request;

struct local_pod {
	char *name, *token, *uid;
	char *note; /* order->record */
	int *devices;
	size_t n_devices;
	int64_t gpus_milli, cpu_milli, memory_bytes;
	struct used used; /* where state.has_used */
	struct gpuq_buf record, script; /* until it is on disk; then empty */
	char *code; /* the archive that it carries, likewise; NULL = none */
	bool has_script;
	bool has_steps; /* its sruns are counted */
	uint32_t job_uid, job_gid;
	bool on_disk;
	bool owes_created; /* the reply to pod_create is outstanding */
	bool told_retry; /* the asker heard that it is being tried again */
	bool leaving, leave_unwritten, forget;
	bool leave_failed; /* to be written, which was told */
	int64_t leave_grace_us;
	const char *leave_reason; /* struct pod_ref; NULL = none */
	struct pod_state state;
	char message[256]; /* why it is not started yet; "" */
	struct local_launch *launch;
	int64_t retry_at_us, backoff_us; /* monotonic */
	int wd; /* inotify; -1 = none, look each tick */
	bool dirty, gone;
	struct local_pod *next_dirty;
	UT_hash_handle hh; /* by name */
	UT_hash_handle hw; /* by wd */
};

struct local_device {
	char uuid[96], product[96];
	int64_t memory_mib;
	bool healthy;
	char links[65]; /* DEVICES_LINKED_MAX digits; "" not reported */
	int minor; /* of /dev/nvidiaN; -1 not reported */
};

struct local_probe;
struct local_use;

struct local_node {
	char name[256];
	int64_t cpu_milli, memory_bytes;
	struct local_device *devices;
	size_t n_devices;
	char note[160];
	struct local_probe *probe; /* a look at the driver is under way */
	int64_t check_at_us; /* monotonic */
};

struct local {
	struct cluster base; /* first: cluster.h */
	struct loop *loop;
	char *dir, *shepherd; /* dir is absolute */
	char cluster_id[9]; /* 8 hex */
	int64_t gpus; /* declared; -1 = ask the driver */
	int64_t measure_every_us; /* what devices do; 0 = never */
	bool no_new_privs, device_cgroup;
	struct local_use *use; /* NULL = not measured */
	int local_fd, logs_fd;
	struct cluster_sink sink;
	bool started, listed;
	struct local_node node;
	struct local_pod *pods, *by_wd;
	struct local_pod *dirty, **dirty_tail;
	struct local_answer *answers, **answers_tail;
	struct loop_timer *flush, *tick;
	int inotify_fd;
	struct event *inotify_ev;
	struct local_launch *launches;
	int n_launches;
	struct cluster_log *logs;
	struct local_own *ended; /* readers whose process was killed and is not reaped yet */
	unsigned ticks;
	bool trim_due;
	int64_t trim_at_us;
};

/* local.c: what is heard goes out later, never from inside an ask. */
void local_flush_soon(struct local *l);
void local_pod_report(struct local *l, struct local_pod *p);
void local_answer_created(struct local *l, const struct local_pod *p, enum ask_outcome o,
			  const char *message);
void local_answer(struct local *l, bool created, const char *pod, enum ask_outcome o,
		  const char *uid, const char *message);
void local_answer_signal(struct local *l, const char *pod, int signal); /* it was sent */
void local_list(struct local *l); /* the first list, once the node is known */

#endif
