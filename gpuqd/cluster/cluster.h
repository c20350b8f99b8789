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
#include "gpuqd/cluster/capacity.h"
#include "gpuqd/site/walls.h"
#include "gpuqd/state/fact.h"
#include "gpuqd/state/objects/object.h"

struct loop;

/* ---- what is heard: struct node_fact and struct pod_fact of state/fact.h ---- */

enum ask_outcome {
	ASK_OK,
	ASK_RETRY, /* not now (down, throttled): the cluster goes on trying by itself */
	ASK_QUOTA, /* refused by the namespace's quota: wait */
	ASK_REFUSED, /* will never be taken as it is (message says why) */
	ASK_CONFLICT, /* the name is taken by a foreign object */
	ASK_UNKNOWN, /* no reply: it may have happened; the watch or a look will tell */
};

/* The jobs that a refusal concerns. */
enum refusal_scope {
	REFUSED_JOB, /* the job alone: its neighbours may be taken */
	REFUSED_QUEUE, /* all jobs of its queue */
	REFUSED_NAMESPACE, /* all jobs whose pods go to that namespace */
};

/* The cluster took no pod, for reasons that are the queue's or the cluster's, not the job's. */
struct refusal {
	const char *key; /* identifies the refusal; opaque */
	enum refusal_scope scope;
	const char *namespace_;
	const char *object; /* kind/name of what is missing or refuses */
	const char *words; /* the cluster's, one line */
};

/* A pod that was not submitted. Strings live until the callback returns. */
struct adopt_fact {
	const char *namespace_, *name, *uid;
	const char *owner_kind, *owner_name,
		*owner_uid; /* its controller; the pod itself without one */
	const char *manifest; /* JSON: what of it matters to its placement, as a v1 Pod */
	size_t n_manifest;
	const char *gang; /* what the pods of its gang have in common; "" = it is in none */
	uint32_t n_gang; /* pods of its gang that start together */
	bool sees_devices; /* it asks its container runtime for devices beside those that it requests */
	bool gated; /* it waits behind gpuqd's gate, or is an owner that waits suspended */
};

/* State of an owner that makes no pods while it is suspended. */
enum owner_state {
	OWNER_THERE, /* more will be told */
	OWNER_WAITS, /* it is suspended, and gpuqd may start it */
	OWNER_STARTED, /* its pods wait behind gpuqd's gate */
	OWNER_LEFT, /* neither, or it has gone */
};

struct owner_fact {
	const char *namespace_, *uid;
	enum owner_state state;
	const char *why; /* of OWNER_LEFT, for people */
};

/* Reports of owners; adoptable() of the sink follows OWNER_WAITS. */
struct owner_sink {
	void *arg;
	void (*seen)(void *arg, const struct owner_fact *f);
	/* A complete list of a namespace has come: owners that it did not name are gone. */
	void (*listed)(void *arg, const char *namespace_);
};

/* Whether this daemon may act in the cluster. Words are for people; they live until the callback
 * returns. */
struct cluster_fence {
	const char *by; /* the other daemon that acts under this identity; "" = this one may */
	const char *waits; /* a daemon that this one keeps out; "" none */
	bool lived; /* the other was seen at work meanwhile: what it did is not in our ledger */
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
	/* Which cluster this is ("" not known), before anything else is reported. false: it is
	 * not the one that is meant; nothing more is reported or done. NULL = any will do. */
	bool (*identity)(void *arg, const char *uid);
	/* Report utilization of devices, once in a while; NULL = not wanted. */
	void (*measured)(void *arg, const struct use_round *r);
	/* Nothing is left of what was made beside the pods of a job. */
	void (*job_forgotten)(void *arg, uint32_t job, int64_t array_index);
	/* Report the end of a pod_signal(): err NULL = it was sent. The callback may be NULL. */
	void (*signalled)(void *arg, const char *pod, int signal, const struct gpuq_err *err);
	/* Another daemon has the same identity, or no longer. While f->by is not "", nothing is read
	 * or changed in the cluster. One that could act before must be freed and made again, since
	 * what it requested may still be under way. NULL = there is no fence. */
	void (*fenced)(void *arg, const struct cluster_fence *f);
	/* A create ended, instead of created(): nothing was made, and nothing is tried again. NULL =
	 * created() with ASK_REFUSED. */
	void (*refused)(void *arg, const char *pod, const struct refusal *r);
	/* The answer to refusal_probe(). taken: a pod would be created now, or be refused for
	 * another reason. */
	void (*probed)(void *arg, const char *key, bool taken);
	/* A pod is not created yet: others of its node are served first. Reported again while
	 * that lasts. NULL = not wanted. */
	void (*waits)(void *arg, const char *pod, const struct turn_wait *w);
	/* A node cannot set up what a pod needs; its state does not tell. NULL = not wanted. */
	void (*troubled)(void *arg, const char *pod, const char *object, const char *words,
			 enum trouble_whose whose);
	/* Objects that pods depend on; of one that is gone, its kind, namespace and name. NULL =
	 * not wanted. */
	void (*object_seen)(void *arg, const struct object_fact *f);
	void (*object_gone)(void *arg, const struct object_fact *f);
	/* A complete list of that kind has come, before the first list_done(); or it cannot be
	 * read. why: the words of the cluster for that; NULL = known, or there are none. */
	void (*objects_known)(void *arg, enum object_kind kind, bool known, const char *why);
	/* A pod created unbound stays so: what it was bound by was refused. */
	void (*not_bound)(void *arg, const char *pod, const char *message);
	/* A pod of a namespace of adopt() that leaves its node to gpuqd, and has none yet; after pod_seen().
	 * NULL = not wanted. */
	void (*adoptable)(void *arg, const struct adopt_fact *f);
	const struct owner_sink *owners; /* NULL = not wanted */
	/* The same of a claim of devices: the resource that may not be written, or what is wrong. pod
	 * "" = it was to be given back. */
	void (*claim_refused)(void *arg, const char *pod, const char *resource,
			      const char *message);
	/* True while a tenth of a second makes no difference to what is heard of pods: no job waits,
	 * starts or is signalled to end. NULL = never. */
	bool (*calm)(void *arg);
};

/* How the cluster judges a pod that it is not asked to make. */
enum trial_outcome {
	TRIAL_TAKEN,
	TRIAL_REFUSED, /* what the pod itself says is wrong */
	TRIAL_UNKNOWN, /* no judgement of the pod: the cluster does not answer, or has its own trouble */
};

/* Called once, unless it was cancelled; warnings are the cluster's, a line each. */
typedef void (*cluster_trial_fn)(void *arg, enum trial_outcome o, const char *message,
				 const char *warnings);

/* The answer of the cluster about one of its tokens. */
enum review_outcome {
	REVIEW_IS, /* it is user's, for the audience that was asked for */
	REVIEW_IS_NOT, /* it is not, or no longer */
	REVIEW_UNKNOWN, /* no answer, or gpuqd may not ask: message says which */
};

/* Called once, unless it was cancelled. */
typedef void (*cluster_review_fn)(void *arg, enum review_outcome o, const char *user,
				  const char *message);

/* ---- what is asked ---- */

/* How the other pods of a gang find one. */
struct pod_host {
	const char *name; /* host name */
	const char *domain; /* a Service of the owner's; NULL = the one that the cluster makes */
};

struct pod_order {
	const char *name, *token; /* token: 32 hex, drawn when the attempt was decided */
	const char *cluster_id; /* 8 hex; label gpuq.io/cluster */
	const char *namespace_; /* from the queue; "" = the cluster's default */
	const char *service_account, *priority_class; /* from the queue, or "" */
	struct gpuq_strlist image_pull_secrets;
	const char *image; /* the group's, else the queue's; "" none */
	struct gpuq_strlist
		none; /* resources of which each container has what it names itself, else 0 */
	const char *node;
	/* The pod is created without its node, and pod_bind() follows: its claims are bound once a
	 * node is selected. */
	bool unbound;
	struct gpuq_strlist claims; /* those it has to wait for then; reported with it */
	const int *devices; /* indexes on the node, ascending */
	const char *const *uuids; /* of them, "" not known; NULL = of none */
	size_t n_devices;
	const char *sharing; /* how the node allocates devices: its label gpuq.io/sharing, or "" */
	const char
		*device; /* the resource that the node offers its devices as; "" = not reported */
	int64_t device_mib; /* memory of the first of the devices; 0 not known */
	uint32_t n_node_devices; /* how many the node has */
	int64_t milli; /* of each device */
	int64_t now_us;
	uint32_t job, attempt, index; /* index counts over all groups */
	uint32_t number; /* own number of an array element; 0 = it is none */
	int64_t array_index; /* -1 none */
	uint32_t group, group_index; /* which group, which pod of it */
	uint32_t n_pods; /* of the whole gang: > 1 gets a headless Service */
	const char *const *pod_names; /* all names of the gang, by index: rendezvous */
	const struct pod_host *hosts; /* of all of them, by index; NULL = their names */
	int64_t completion_index; /* of a pod whose template has GPUQ_COMPLETION_INDEX */
	const char *queue, *user, *account; /* account "" none */
	uint32_t uid, gid; /* of the submitter: local runs as them under root */
	const char *record; /* state/record/podrecord.h: kept and reported with it; "" none */
	const struct gpuq_spec *spec;
	const char *code; /* the file with the archive that the spec names; NULL = none */
	const char *code_url; /* where a pod fetches it; NULL = it is given the file */
	const char *code_ca; /* certificates that it needs to do so, PEM; NULL = none */
	const struct gpuq_volume *code_volume; /* that it is on, by its sub_path; NULL = on none */
	const char *code_image; /* of the container that unpacks it; NULL = the pod's own */
	const char *steps_image; /* gpuq is copied into the pod from it; NULL = from none */
	struct gpuq_strmap env; /* GPUQ_* and rendezvous variables, made by dispatch */
	int64_t time_limit_us; /* GPUQ_UNLIMITED: none; a safety net above our own kill */
	int64_t grace_us;
	const char *cluster_uid; /* the cluster's own identity; "" not known */
	bool preemptible; /* drains and autoscalers may move it */
	bool keeps_node; /* its node is of a pool that grows: no autoscaler may take it away while it runs */
	bool accounting_finalizer;
	const struct gpuq_objects *tolerations; /* of its node's pool; NULL = none */
	struct site_walls walls; /* of the queue */
	/* The request by which its node came, and its class; "" = by none. */
	const char *capacity, *capacity_class;
};

struct pod_ref {
	/* uid "" = by name and token; in log_open both "": a pod that is gone, of the job's owner */
	const char *name, *namespace_, *uid, *node;
	const char *token;
	const char *as; /* how the sink is told of it; NULL = by its name */
	const char *
		reason; /* of its end, a literal: "TIME LIMIT" ..., "" = cancelled; NULL = not told */
	bool first_only; /* of a signal: to its first process, where there is a choice */
	bool warning; /* of a signal: it is the one before the time limit, which the cluster may have sent as well */
	bool gated; /* it waits behind gpuqd's gate */
};

/* A suspended owner of pods, by its uid. */
struct owner_ref {
	const char *kind, *name, *namespace_, *uid;
	uint32_t
		cancelled; /* number of the job that was cancelled: it stays suspended; 0 = none was */
};

static inline const char *pod_ref_as(const struct pod_ref *ref)
{
	return ref->as ? ref->as : ref->name;
}

/* A write to a claim of devices; all but MAKE hold for the claim as it was seen. */
enum claim_step {
	CLAIM_MAKE, /* create it, for the pod alone */
	CLAIM_MARK, /* protect it from deletion, and note who allocates it */
	CLAIM_ALLOCATE, /* with the pod as its consumer */
	CLAIM_RESERVE, /* the pod is a consumer as well */
	CLAIM_RELEASE, /* those that are gone are consumers no more */
	CLAIM_DROP, /* delete it; one that is being deleted: no longer protect it */
};

struct claim_ask {
	enum claim_step step;
	const char *namespace_, *name; /* "" is the cluster's default */
	const struct dra_claim *claim; /* as it was seen; NULL = it is to be made */
	const struct pod_ref *pod; /* of MAKE, MARK, ALLOCATE, RESERVE; else NULL */
	const struct dra *dra;
	const struct gpuq_claim *made_of; /* of MAKE */
	const struct dra_pick *picks; /* of ALLOCATE */
	size_t n_picks;
	const char *const *gone; /* of RELEASE: uids */
	size_t n_gone;
	bool clear; /* of RELEASE: the allocation goes with them */
};

struct log_opts {
	bool follow;
	int64_t tail_lines; /* -1 = all */
	const char *container; /* NULL = the only one */
	int64_t since_us; /* wall clock: older lines are left out, to the second; 0 = none is */
	bool timestamps; /* each line behind its time and a space */
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

/* A right that a feature needs, or, without a verb, a thing of the cluster: `resource` is its name,
 * `allowed` that it is there. Its strings live as long as the call that passes it. */
struct cluster_right {
	const char *feature; /* "gpuq logs" */
	const char *verb, *resource,
		*namespace_; /* "get", "pods/log", ""  = in the whole cluster */
	const char *group; /* API group of the resource; "" = core */
	const char *file; /* of etc/kubernetes that grants it, "optional/hami.yaml" */
	const char *why; /* what the cluster says to it, or why it could not be asked; "" nothing */
	bool needed; /* without it gpuqd is of no use; else only the feature is missing */
	bool asked, allowed;
};
/* The jobs that rights are for. */
struct cluster_rights_of {
	const char *const *namespaces; /* n of them */
	size_t n;
	const char *const *adopts; /* namespaces of adopt(), n_adopts of them */
	size_t n_adopts;
	bool grows, stands; /* a pool grows by requests; by an autoscaler that sees pods */
	bool claims; /* nodes, a pool or a flavor have devices of claims */
	bool cuts; /* a pool has its nodes cut by NVIDIA's MIG manager */
	bool gpushare; /* a node has Aliyun's gpushare */
	bool hami; /* a node has HAMi's register, or a pool has sharing: hami */
	bool kubelets; /* set by the cluster: it asks kubelets */
};
typedef void (*cluster_rights_fn)(void *arg, const struct cluster_right *list, size_t n);
/* A suspended owner that gpuqd leaves alone, and what of another system holds it. */
typedef void (*cluster_held_fn)(void *arg, const char *namespace_, const char *owner,
				const char *by);

/* Labels of a node that are to be set; a value NULL = to be removed. */
struct node_labels {
	const char *node;
	const char *const *keys, *const *values;
	size_t n;
};
/* Called once: why NULL = the node has them, else why it never will as it is. */
typedef void (*cluster_labels_fn)(void *arg, const char *node, const char *why);

#define RELEASE_MAX_US INT64_C(1000000)

struct cluster;
struct cluster_log; /* one log being read */
struct cluster_session;
struct cluster_trial; /* one pod being judged */
struct cluster_review; /* one token being judged */

struct cluster_ops {
	const char *kind; /* "kube", "local" */
	bool nodes_remove; /* a pod that was signalled to end goes for good by itself, once it ended */
	/* Begin: list, then report changes. The sink is kept. */
	int (*start)(struct cluster *c, const struct cluster_sink *sink, struct gpuq_err *err);
	/* Check whether this cluster can run the job. NULL = it accepts anything. whole is the spec
	 * with what the site adds to it, queue_image is
	 * the queue's ("" none), walls are what its pods may mount. Keys without effect here are reported in
	 * warnings, a line each. Returns 0 or GPUQ_EINVAL with the field's path. */
	int (*spec_check)(struct cluster *c, const struct gpuq_spec *spec,
			  const struct gpuq_spec *whole, const char *queue_image,
			  const struct site_walls *walls, struct gpuq_buf *warnings,
			  struct gpuq_err *err);
	/* Have a pod judged as if it were made (name and node do not matter). Returns the trial, or
	 * NULL with err when the order makes no pod. NULL as a function = any pod will do. */
	struct cluster_trial *(*pod_try)(struct cluster *c, const struct pod_order *order,
					 cluster_trial_fn fn, void *arg, struct gpuq_err *err);
	void (*trial_cancel)(struct cluster_trial *t); /* no callback after this */
	/* Ask whose a token of the cluster is, and whether it is for this audience. Returns the review, or
	 * NULL without memory. NULL as a function = the cluster has no tokens. */
	struct cluster_review *(*token_review)(struct cluster *c, const char *token,
					       const char *audience, cluster_review_fn fn,
					       void *arg);
	void (*review_cancel)(struct cluster_review *r); /* no callback after this */
	/* More waits to be sent than can be under way at once: what is asked now would only be
	 * kept in memory. Ends by itself; NULL = never. */
	bool (*busy)(struct cluster *c);
	/* Ask for a pod; sink->created follows. order lives until this call returns. */
	void (*pod_create)(struct cluster *c, const struct pod_order *order);
	/* Ask whether what was refused would be taken by now, without creating it; sink->probed
	 * follows. Returns false where nothing is known of that refusal. NULL = never refuses. */
	bool (*refusal_probe)(struct cluster *c, const char *key);
	void (*refusal_forget)(struct cluster *c, const char *key);
	/* Have an unbound claim of the pod provisioned for ref->node; object_seen() tells when it
	 * is bound. sink->not_bound follows where it is refused. May be asked again. NULL = pods
	 * are never created unbound. */
	void (*claim_select)(struct cluster *c, const struct pod_ref *ref, const char *claim);
	/* The same, of a claim that is to have a volume which is there. */
	void (*claim_volume)(struct cluster *c, const struct pod_ref *ref, const char *claim,
			     const char *volume);
	/* Write to a claim of devices. object_seen() tells when that is done; sink->claim_refused follows
	 * where it is refused. ask lives until this call returns. NULL = there are no such claims. */
	void (*claim_ask)(struct cluster *c, const struct claim_ask *ask);
	/* Put a pod that was created unbound on ref->node. As claim_select(). One that is gated may run on no other
	 * node before its gate is opened. */
	void (*pod_bind)(struct cluster *c, const struct pod_ref *ref);
	/* Tell of pods of these namespaces that were not submitted (sink->adoptable), from now on, and again
	 * of those that there are; n 0 = of none. Copied. NULL = the cluster has none. */
	void (*adopt)(struct cluster *c, const char *const *namespaces, size_t n);
	/* Say something about such a pod, or a suspended owner of that kind, where its owner looks: reason is one
	 * word. */
	void (*adopt_say)(struct cluster *c, const char *kind, const struct pod_ref *ref,
			  bool warning, const char *reason, const char *text);
	/* Have a suspended owner make its pods, behind gpuqd's gate; sink->adoptable tells of each. Where that is
	 * refused, sink->not_bound follows with the name `as`. May be said again. */
	void (*owner_start)(struct cluster *c, const struct owner_ref *owner, const char *as);
	/* Suspend it again, and then have the pod leave as by pod_delete(): sink->deleted follows. */
	void (*owner_stop)(struct cluster *c, const struct owner_ref *owner,
			   const struct pod_ref *pod, int64_t grace_us);
	/* Call fn for each that is left alone, since another system holds it. NULL = none is. */
	void (*owners_held)(struct cluster *c, cluster_held_fn fn, void *arg);
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
	/* Tell what placeholders there are, and requests for nodes where those are wanted, from now on; NULL as
	 * the sink = no longer. May be said again. NULL as a function = the cluster makes no nodes. */
	void (*capacity_watch)(struct cluster *c, const struct capacity_sink *sink, bool requests);
	/* Make a request; sink->asked follows. order lives until this call returns. */
	void (*capacity_ask)(struct cluster *c, const struct capacity_order *order);
	/* Take it back, with all that was made for it, also while it is being made; sink->dropped
	 * follows. An object with another token stays. May be said again. */
	void (*capacity_drop)(struct cluster *c, const char *namespace_, const char *name,
			      const char *token);
	/* The same for a placeholder: of the order, class_, parameters, run_s and n_nodes do not matter. */
	void (*placeholder_make)(struct cluster *c, const struct capacity_order *order);
	void (*placeholder_drop)(struct cluster *c, const char *namespace_, const char *name,
				 const char *token);
	/* Tell autoscalers whether the node is to stay. NULL = none could take it away. */
	void (*node_keep)(struct cluster *c, const char *node, bool on);
	/* Set labels of a node; fn is called later, not when the cluster is freed first. labels lives
	 * until this call returns. NULL = its nodes have none. */
	void (*node_label)(struct cluster *c, const struct node_labels *labels,
			   cluster_labels_fn fn, void *arg);
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
	/* Which rights it gives us. fn is called later, once; not when the
	 * cluster is freed first. One review at a time. NULL = none are needed here. */
	int (*rights)(struct cluster *c, const struct cluster_rights_of *of, cluster_rights_fn fn,
		      void *arg, struct gpuq_err *err);
	/* Let another daemon act at once; done is called once, at once or later. Nothing
	 * is changed in the cluster after this. NULL = there is no fence. */
	void (*release)(struct cluster *c, void (*done)(void *arg), void *arg);
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
	/* For a plugin that serves the pod which holds the lock of its node; the age at which a
	 * lock of others is stale; and how long a pod keeps others of its node waiting that the plugin could
	 * confuse with it. */
	int64_t plugin_timeout_us, node_lock_timeout_us, turn_timeout_us;
	struct gpuq_strlist metrics; /* URLs of what devices do, see kube/metrics.h; may be none */
	bool kubelet_metrics; /* the kubelets of nodes are asked for what pods use */
	int64_t measure_every_us; /* 0 = never */
	bool code_store; /* pods may get code that no ConfigMap takes */
	/* For the fence, see kube/lease.h; store_id NULL = no fence. */
	const char *store_id, *place, *words;
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
