/* cluster.h - what gpuq asks of a cluster, and what it hears of it
 *
 * Owns     the interface only. Implementations: kube/ (a Kubernetes apiserver),
 *          local/ (processes of this machine), and the tests' own.
 * Touches  nothing.
 * Used by  flow/dispatch (asks), flow/reconcile (listens), daemon.c (makes one).
 *
 * The two sides are decoupled: asking never tells the outcome, listening does. A
 * cluster reports what IS (facts), again and again if it likes; reconcile compares.
 * Asks are idempotent by pod name and token: repeating one after a crash is safe.
 * All calls and callbacks are on the loop's thread; facts live until the callback
 * returns. No callback is made from inside an ask.
 */
#ifndef GPUQD_CLUSTER_CLUSTER_H
#define GPUQD_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/buf.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"
#include "libgpuq/spec.h"
#include "gpuqd/state/fact.h"

struct loop;

/* ---- what is heard: struct node_fact and struct pod_fact of state/fact.h ---- */

enum ask_outcome {
	ASK_OK,
	ASK_RETRY, /* not now (down, throttled): the cluster goes on trying by itself */
	ASK_QUOTA, /* refused by the namespace's quota: wait */
	ASK_REFUSED, /* will never be taken as it is (message says why) */
	ASK_CONFLICT, /* the name is taken by a foreign object */
	ASK_UNKNOWN, /* no answer: it may have happened; the watch or a look will tell */
};

struct cluster_sink {
	void *arg;
	void (*node_seen)(void *arg, const struct node_fact *n);
	void (*node_gone)(void *arg, const char *name);
	void (*pod_seen)(void *arg, const struct pod_fact *p);
	/* The object is gone for good. last = what was last known, token "" when foreign. */
	void (*pod_gone)(void *arg, const struct pod_fact *last);
	/* A complete list has come: every pod there is has been named since the
	 * last one; what was not is gone (the cluster reports those as gone itself,
	 * before list_done). */
	void (*list_done)(void *arg);
	/* 0 = up to date; else since when what we know may be old. */
	void (*stale)(void *arg, int64_t since_us, const char *why);
	/* How an ask ended. pod names it; uid after a create ("" if not known). */
	void (*created)(void *arg, const char *pod, enum ask_outcome o, const char *uid,
			const char *message);
	void (*deleted)(void *arg, const char *pod, enum ask_outcome o, const char *message);
	/* Which cluster this is ("" not known), before anything else is told. false: it is
	 * not the one that is meant; nothing more is told or done. NULL = any will do. */
	bool (*identity)(void *arg, const char *uid);
	/* Report utilization of devices, once in a while; NULL = not wanted. */
	void (*measured)(void *arg, const struct use_round *r);
	/* Nothing is left of what was made beside the pods of a job. */
	void (*job_forgotten)(void *arg, uint32_t job, int64_t array_index);
	/* Report the end of a pod_signal(): err NULL = it was sent. The callback may be NULL. */
	void (*signalled)(void *arg, const char *pod, int signal, const struct gpuq_err *err);
};

/* ---- what is asked ---- */

struct pod_order {
	const char *name, *token; /* token: 32 hex, drawn when the attempt was decided */
	const char *cluster_id; /* 8 hex; label gpuq.io/cluster */
	const char *namespace_; /* from the queue; "" = the cluster's default */
	const char *service_account, *priority_class; /* from the queue, or "" */
	struct gpuq_strlist image_pull_secrets;
	const char *image; /* the group's, else the queue's; "" none */
	const char *node;
	const int *devices; /* indexes on the node, ascending */
	size_t n_devices;
	const char *sharing; /* how the node hands out devices: its label gpuq.io/sharing, or "" */
	int64_t device_mib; /* memory of the first of the devices; 0 not known */
	int64_t milli; /* of each device */
	int64_t now_us;
	uint32_t job, attempt, index; /* index counts over all groups */
	int64_t array_index; /* -1 none */
	uint32_t group, group_index; /* which group, which pod of it */
	uint32_t n_pods; /* of the whole gang: > 1 gets a headless Service */
	const char *const *pod_names; /* all names of the gang, by index: rendezvous */
	const char *queue, *user;
	uint32_t uid, gid; /* of the submitter: local runs as them under root */
	const char *record; /* state/record/podrecord.h: kept with the pod, told with it; "" none */
	const struct gpuq_spec *spec;
	struct gpuq_strmap env; /* GPUQ_* and rendezvous variables, made by dispatch */
	int64_t time_limit_us; /* GPUQ_UNLIMITED: none; a safety net above our own kill */
	int64_t grace_us;
	bool accounting_finalizer;
	bool restricted; /* the queue's pods keep to the Pod Security Standard of that name */
};

struct pod_ref {
	const char *name, *namespace_, *uid, *node; /* uid "" = by name and token */
	const char *token;
};

struct log_opts {
	bool follow;
	int64_t tail_lines; /* -1 = all */
	const char *container; /* NULL = the only one */
	bool timestamps;
	/* The job's owner on this machine, by the ledger: the identity with which a file of the
	 * job's own is read. UINT32_MAX = not known. */
	uint32_t uid, gid;
};

/* Bytes of a log as they come; n == 0 and err == NULL: the end; err: it broke. A
 * callback that answers false wants no more until log_resume(). */
typedef bool (*log_fn)(void *arg, const char *bytes, size_t n, const struct gpuq_err *err);

/* ---- a session: bytes to and from something in a running pod ---- */

enum session_kind {
	SESSION_EXEC, /* a program of the caller's beside the pod's own */
	SESSION_ATTACH, /* the input and output of the pod's main process */
	SESSION_PORT, /* a connection to one of its ports, on its own loopback */
};

struct session_opts {
	enum session_kind kind;
	struct gpuq_strlist command; /* of an exec */
	const char *container; /* NULL = the pod's first */
	bool input; /* there will be input; without, the other side finds none */
	bool output; /* of an attach: what it writes is wanted */
	bool replay; /* of an attach: what it has written lately comes first */
	bool tty;
	int cols, rows; /* of the terminal; 0 = not known */
	int port;
};

enum session_stream { SESSION_OUT, SESSION_ERR };

/* Callbacks of a session. None is called from inside session_open(); ended() is the last one,
 * after which the session must be closed, from there if convenient. */
struct session_sink {
	void *arg;
	/* The other side is there; more input is welcome from now on. */
	void (*opened)(void *arg);
	/* Bytes of it, all of them taken. false = no more until session_resume(). */
	bool (*data)(void *arg, enum session_stream s, const char *bytes, size_t n);
	/* For a port: the other side has closed its half. */
	void (*eof)(void *arg);
	/* Data that session_write() had to queue has been sent. */
	void (*drained)(void *arg);
	/* err NULL: it ended well; exit_code is an exec's (128 + n for a signal), else 0. */
	void (*ended)(void *arg, int exit_code, const struct gpuq_err *err);
};

/* A right that a feature needs. Its strings live as long as the call that passes it. */
struct cluster_right {
	const char *feature; /* "gpuq logs" */
	const char *verb, *resource,
		*namespace_; /* "get", "pods/log", ""  = in the whole cluster */
	const char *why; /* what the cluster says to it, or why it could not be asked; "" nothing */
	bool needed; /* without it gpuqd is of no use; else only the feature is missing */
	bool asked, allowed;
};
typedef void (*cluster_rights_fn)(void *arg, const struct cluster_right *list, size_t n);

struct cluster;
struct cluster_log; /* one log being read */
struct cluster_session;

struct cluster_ops {
	const char *kind; /* "kube", "local" */
	bool nodes_remove; /* a pod that was told to leave goes for good by itself, once it ended */
	/* Begin: list, then report changes. The sink is kept. */
	int (*start)(struct cluster *c, const struct cluster_sink *sink, struct gpuq_err *err);
	/* Check whether this cluster can run the job. NULL = it accepts anything. queue_image
	 * and pod_policy are the queue's ("" none). Keys without effect here are reported in
	 * warnings, a line each. Returns 0 or GPUQ_EINVAL with the field's path. */
	int (*spec_check)(struct cluster *c, const struct gpuq_spec *spec, const char *queue_image,
			  const char *pod_policy, struct gpuq_buf *warnings, struct gpuq_err *err);
	/* More waits to be sent than can be under way at once: what is asked now would only be
	 * kept in memory. Ends by itself; NULL = never. */
	bool (*busy)(struct cluster *c);
	/* Ask for a pod; sink->created follows. order lives until this call returns. */
	void (*pod_create)(struct cluster *c, const struct pod_order *order);
	/* Ask it to leave within grace_us (signal first), with a uid precondition. */
	void (*pod_delete)(struct cluster *c, const struct pod_ref *ref, int64_t grace_us);
	/* Send a signal to it; sink->signalled follows. < 0: it cannot even be tried, and err
	 * says why. */
	int (*pod_signal)(struct cluster *c, const struct pod_ref *ref, int signal,
			  struct gpuq_err *err);
	/* The ledger is done with it: finalizer, object, files may go (output is kept). */
	void (*pod_forget)(struct cluster *c, const struct pod_ref *ref);
	/* All pods of a job, or of one element of an array, are gone: what was made beside
	 * them may go. With array_index -1 for an array: what its elements had in common.
	 * May be said again. sink->job_forgotten follows; if it does not, ask again after a
	 * restart. NULL = nothing is made beside pods. */
	void (*job_forget)(struct cluster *c, uint32_t job, int64_t array_index,
			   const char *namespace_);
	/* The highest number of a job of which anything but pods is kept, such as output; 0 none.
	 * Takes long: for the first list after a restore. NULL = nothing is. */
	uint32_t (*highest_job)(struct cluster *c);
	struct cluster_log *(*log_open)(struct cluster *c, const struct pod_ref *ref,
					const struct log_opts *opts, log_fn fn, void *arg,
					struct gpuq_err *err);
	void (*log_resume)(struct cluster_log *log);
	void (*log_close)(struct cluster_log *log); /* no callback after this */
	/* Begin a session with a pod that runs; opts and sink are copied. NULL and err when it
	 * cannot even be tried; all else is told by sink->ended. */
	struct cluster_session *(*session_open)(struct cluster *c, const struct pod_ref *ref,
						const struct session_opts *opts,
						const struct session_sink *sink,
						struct gpuq_err *err);
	/* Input, all of it taken. false = wait for drained() before more. */
	bool (*session_write)(struct cluster_session *s, const char *bytes, size_t n);
	void (*session_eof)(struct cluster_session *s); /* no more input */
	void (*session_resize)(struct cluster_session *s, int cols, int rows);
	void (*session_resume)(struct cluster_session *s);
	/* No callback follows. A session that has not ended is treated as hung up. */
	void (*session_close)(struct cluster_session *s);
	/* Which rights it gives us, in namespaces of jobs. fn is called later, once; not when the
	 * cluster is freed first. One review at a time. NULL = none are needed here. */
	int (*rights)(struct cluster *c, const char *const *namespaces, size_t n,
		      cluster_rights_fn fn, void *arg, struct gpuq_err *err);
	void (*free)(struct cluster *c); /* jobs go on */
};

/* Every implementation's struct begins with this. */
struct cluster {
	const struct cluster_ops *ops;
	const char *namespace_; /* of pods whose queue names none; NULL = there are none here */
};

/* Makers; each in its own room. */
struct cluster_kube_opts {
	const char *kubeconfig; /* NULL: $KUBECONFIG, then in-cluster, then ~/.kube/config */
	const char *context; /* NULL = current-context */
	const char *namespace_; /* default of queues that name none; NULL = the context's */
	const char *cluster_id; /* label selector of what is ours */
	int64_t creates_per_s; /* client-side rate, 0 = no limit of our own */
	struct gpuq_strlist metrics; /* URLs of what devices do, see kube/metrics.h; may be none */
	int64_t measure_every_us; /* 0 = never */
};
int cluster_kube_new(struct loop *l, const struct cluster_kube_opts *o, struct cluster **out,
		     struct gpuq_err *err);

struct cluster_local_opts {
	const char *dir; /* exists; the shepherds' state goes to DIR/local, output to DIR/logs */
	const char *shepherd; /* path of the program that runs one pod (gpuqd --shepherd) */
	int64_t gpus; /* declared devices; -1 = ask the driver */
	const char *cluster_id;
	int64_t measure_every_us; /* what devices do; 0 = never */
	bool no_new_privs; /* programs of a job gain no rights by exec */
	bool device_cgroup; /* a job opens no NVIDIA device but its own; refused where it cannot be */
};
int cluster_local_new(struct loop *l, const struct cluster_local_opts *o, struct cluster **out,
		      struct gpuq_err *err);

#endif
