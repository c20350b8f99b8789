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
#define LOCAL_NODE_CHECK_US INT64_C(60000000) /* devices and memory are looked at again */
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
	struct gpuq_buf record, script; /* until it is on disk; then empty */
	bool has_script;
	uint32_t job_uid, job_gid;
	bool on_disk;
	bool owes_created; /* the answer to pod_create is outstanding */
	bool told_retry; /* the asker heard that it is being tried again */
	bool leaving, leave_unwritten, forget;
	int64_t leave_grace_us;
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
	char links[65]; /* DEVICES_LINKED_MAX digits; "" not told */
	int minor; /* of /dev/nvidiaN; -1 not told */
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

/* local_pod.c */
struct local_pod *local_pod_find(struct local *l, const char *name);
/* Is it the pod that ref means: by its uid where that is known, else by its token? */
bool local_pod_meant(const struct local_pod *p, const struct pod_ref *ref);
int local_pods_load(struct local *l, struct gpuq_err *err);
void local_pod_advance(struct local *l, struct local_pod *p);
void local_pod_trouble(struct local *l, struct local_pod *p, const char *why);
void local_pod_fact(const struct local *l, const struct local_pod *p, struct pod_fact *out);
void local_pod_free(struct local *l, struct local_pod *p);
void local_pod_create(struct cluster *c, const struct pod_order *order);
int local_spec_check(struct cluster *c, const struct gpuq_spec *spec, const char *queue_image,
		     const char *pod_policy, struct gpuq_buf *warnings, struct gpuq_err *err);
void local_pod_delete(struct cluster *c, const struct pod_ref *ref, int64_t grace_us);
int local_pod_signal(struct cluster *c, const struct pod_ref *ref, int signal,
		     struct gpuq_err *err);
void local_pod_forget(struct cluster *c, const struct pod_ref *ref);
int local_pod_running(struct local *l, const struct pod_ref *ref); /* its folder, or -1 */

/* local_order.c: from what flow asks to what a shepherd reads. Strings live in a.
 * GPUQ_EINVAL, GPUQ_EPERM: it can never run here. */
int local_order_build(const struct local *l, const struct pod_order *in, const char *uid,
		      struct gpuq_arena *a, struct order *out, struct gpuq_err *err);

/* local_files.c: a pod's directory. */
bool local_name_ok(const char *name);
int local_files_create(int local_fd, const struct local_pod *p, struct gpuq_err *err);
int local_files_leave(int pod_fd, int64_t grace_us, struct gpuq_err *err);
bool local_files_tell(int pod_fd, const char *line); /* false = no receiver */
/* Remove the directory. GPUQ_EBUSY while a shepherd has it. */
int local_files_remove(int local_fd, const char *name, struct gpuq_err *err);
void local_files_sweep(int local_fd); /* what a crash left half made or half removed */

/* local_launch.c */
void local_launch(struct local *l, struct local_pod *p);
void local_launch_forget(struct local *l, struct local_pod *p); /* p goes away */
void local_launch_free_all(struct local *l);
/* A line that a new process of ours prints; argv[0] is the program. -1 and errno. */
pid_t local_spawn(const struct local *l, const char *const *argv, int *out_fd);
/* The same with a connection on its standard input, for both ways. */
pid_t local_spawn_pair(const struct local *l, const char *const *argv, int *fd);

/* local_own.c: reads the output file of a job through a process of the owner's. The process
 * is ended and reaped by local_own_free; NULL = it cannot be started. */
struct local_own;
struct local_own *local_own_open(struct local *l, const struct log_request *r, bool follow,
				 void (*ready)(void *arg), void *arg);
/* Some bytes; 0 the end; -1 nothing yet: ready() is called once there is more. */
ssize_t local_own_read(struct local_own *o, char *out, size_t room);
void local_own_last(struct local_own *o); /* do not follow any more: read to the end */
void local_own_free(struct local_own *o);
/* Take the ended processes away; forget = also those that have not ended yet. */
void local_own_reap(struct local *l, bool forget);

/* local_node.c */
int local_node_init(struct local *l, struct gpuq_err *err);
void local_node_check(struct local *l); /* begins a look; reports what changed */
void local_node_report(struct local *l);
void local_node_free(struct local *l);

/* local_use.c: what devices do */
void local_use_begin(struct local *l);
void local_use_free(struct local *l);

/* local_session.c */
struct cluster_session *local_session_open(struct cluster *c, const struct pod_ref *ref,
					   const struct session_opts *opts,
					   const struct session_sink *sink, struct gpuq_err *err);
bool local_session_write(struct cluster_session *s, const char *bytes, size_t n);
void local_session_eof(struct cluster_session *s);
void local_session_resize(struct cluster_session *s, int cols, int rows);
void local_session_resume(struct cluster_session *s);
void local_session_close(struct cluster_session *s);

/* local_kept.c: the output that is kept of the very pod that ref means, as the beginning of
 * the names of its files. owner: of its job, by the ledger; UINT32_MAX = not known.
 * GPUQ_ENOENT: none is, or it is another's. */
#define LOG_STEM_BYTES 256
int local_kept_stem(struct local *l, const struct pod_ref *ref, uint32_t owner,
		    char out[LOG_STEM_BYTES], struct gpuq_err *err);
bool local_kept_in_use(struct local *l, const char *stem); /* its pod is here */
uint32_t local_kept_highest_job(struct cluster *c);

/* local_log.c */
struct cluster_log *local_log_open(struct cluster *c, const struct pod_ref *ref,
				   const struct log_opts *opts, log_fn fn, void *arg,
				   struct gpuq_err *err);
void local_log_resume(struct cluster_log *log);
void local_log_close(struct cluster_log *log);
void local_log_poke(struct local *l, const char *pod); /* look again; NULL = all */
void local_log_event(struct local *l, int wd);
void local_log_trim(struct local *l);

#endif
