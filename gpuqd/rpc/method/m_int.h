/* m_int.h - what the files of methods share; inside the room */
#ifndef GPUQD_RPC_METHOD_M_INT_H
#define GPUQD_RPC_METHOD_M_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/job_keys.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/admit/submit.h"
#include "gpuqd/rpc/method/methods.h"
#include "libgpuq/buf.h"
#include "libgpuq/schema.h"

#define PIECE_US 5000 /* of one turn of the loop, for one list */

struct history_live;
struct lease;
struct news;
struct recent;
struct rota;
struct refusals;
struct rpc_server;
struct worker;
struct schedule;
struct wait;
struct waited_job;
struct logs;
struct session;
struct view_row;
struct asking;
struct codes;
struct kept;
struct trying;
struct watch;
struct why_log;

struct methods {
	struct journal *j;
	struct reconcile *reconcile;
	struct cluster *cluster; /* NULL while there is none */
	struct estimator *estimator;
	struct apply *apply;
	const char *kind;
	struct lease *lease;
	struct worker *quick, *slow, *copies; /* questions, those that take long, backups */
	unsigned n_asked, n_copies; /* under way */
	atomic_bool ends; /* the daemon is shutting down; threads examine it */
	struct why_log *why; /* the numbers behind decisions */
	struct schedule *schedule;
	const struct refusals *refusals; /* NULL = the cluster never refuses */
	const struct outbox *outbox; /* NULL while there is none */
	int64_t start_us; /* of the daemon */
	int64_t token_age_us; /* maximum life of a token */
	struct auth *auth; /* NULL = web tokens are refused */
	struct rota *rota; /* NULL = gpuqd makes no copies by itself */
	struct kept *kept; /* output of pods that are gone; NULL = none is kept */
	struct codes *codes; /* NULL = none are kept */
	struct worker *codes_worker; /* makes them durable */
	const char *backup_dir; /* where operators may have copies written; NULL = nowhere */
	struct rpc_server *server; /* NULL while there is none */
	struct wait *waits;
	struct waited_job *waited; /* calls that wait for jobs, by the job's number */
	struct logs *logs;
	struct session *sessions;
	struct job_signal *signals; /* on their way */
	struct watch *watches;
	struct news *news; /* for them; NULL = there are none */
	struct recent *recent; /* NULL = nothing has happened */
	struct trying *tries; /* submissions that the cluster judges */
	struct asking *rights; /* NULL = no check of rights under way */
	bool operators_act_as_user; /* as gpuqd.yaml says */
	bool flush_asked; /* waits and logs will look again when durable */
};

/* m_status.c: utilization of devices, and its source. */
struct gpuq_val *view_measured(const struct methods *m, struct gpuq_arena *a);
/* Return what the cluster refuses for its own reasons: a list, mostly empty. */
struct gpuq_val *view_refused(const struct methods *m, struct gpuq_arena *a);
/* Put which other daemons act, or wait, under the identity of this one. */
void view_fence(const struct model *m, struct gpuq_arena *a, struct gpuq_val *cluster);
/* Put why pools that grow cannot get nodes by requests; null = they can, or there are none. */
void view_requests_fault(const struct model *m, struct gpuq_arena *a, struct gpuq_val *cluster);
/* Return what the quotas say of each other that surprises their owners; see rpc methods status.get. */
struct gpuq_val *view_quotas(struct gpuq_arena *a, const struct model *m, int64_t now_us);
/* m_backup_list.c: null, or how backups go. all: with what only operators may see. */
struct gpuq_val *view_backup(const struct methods *m, struct gpuq_arena *a, bool all);
/* m_recover.c: null, or how far the recovery after a restore has come. */
struct gpuq_val *view_recovering(const struct methods *m, struct gpuq_arena *a);

/* Filter of jobs: absent members select all. */
struct job_filter {
	struct gpuq_strlist ids, users, queues, states, names, nodes;
	struct gpuq_strlist labels; /* selectors: all of them hold */
	int64_t since_us, until_us; /* of the end, else of the beginning; 0 = whenever */
	int64_t limit;
	bool all; /* ended jobs, too */
	bool overlaps; /* any instant from submission to end counts, not that one */
};

struct job_list_params {
	struct job_filter filter;
	struct gpuq_strlist keys; /* rows of these instead of objects; none = objects */
	/* Rows after the first `first` in this order need not be sent: keys, "-" before a
	 * descending one. */
	struct gpuq_strlist order;
	int64_t first;
};

/* rows.c: jobs on their way to a list, as objects or as rows. Lives as long as its call, which
 * rows_end and rows_fail finish. */
struct rows {
	struct rpc_call *c;
	const struct view_row *row; /* NULL = objects */
	struct gpuq_buf b; /* rows that have not left */
	struct gpuq_arena mem; /* of one job */
	unsigned n;
};
int rows_init(struct rows *r, struct rpc_call *c, const struct gpuq_strlist *keys,
	      struct gpuq_err *err);
/* Take a job, or the object of one. false: not taken, as rpc_item. */
bool rows_job(struct rows *r, const struct model *m, const struct job *j, int64_t now_us);
bool rows_object(struct rows *r, const struct gpuq_val *job);
bool rows_flush(struct rows *r); /* what was taken leaves; false as above */
void rows_end(struct rows *r);
void rows_fail(struct rows *r, const struct gpuq_err *err);

/* order.c: the first this many of all jobs it is shown. NULL: all are wanted, or it knows no such
 * order, or no memory. */
struct job_order;
struct job_order *job_order_new(struct gpuq_arena *a, const struct gpuq_strlist *by, int64_t first);
void job_order_take(struct job_order *o, const struct job *j);
size_t job_order_n(const struct job_order *o);
struct job_key job_order_key(const struct job_order *o, size_t i); /* in no order */

/* The array that this is the object of has, or had, such an element. One that never left it has
 * no object but the array's. */
bool job_had_element(const struct gpuq_val *job, int64_t index, struct gpuq_arena *a);
bool filter_job(const struct job_filter *f, const struct job *j);
bool filter_val(const struct job_filter *f, const struct gpuq_val *job); /* of history */
bool filter_any(const struct job_filter *f); /* does it select at all? */

/* Jobs in memory that match, each once, in order of id (elements behind their array).
 * keep (may be NULL) says no to what the filter alone would take; order (may be NULL) may
 * take the first of them only. */
void jobs_select(const struct model *m, const struct job_filter *f,
		 bool (*keep)(const struct job_filter *f, const struct job *j),
		 struct job_order *order, struct job_keys *out);

/* "17" or "17_3". index -1 = the whole job. */
bool job_id_parse(const char *text, struct job_key *key);
/* Replace the own number of an array's element by its key; other keys stay. */
void job_id_resolve(const struct methods *m, struct job_key *key);
/* Return the key of the job that the members id and index of a call name; index -1 = none. */
struct job_key job_id_of_call(const struct methods *m, int64_t id, int64_t index);
void job_id_print(struct job_key key, char out[32]);
int no_such_job(struct job_key key, struct gpuq_err *err); /* GPUQ_ENOENT */

/* Finish a stream with the items of a list that lives in the call's arena (NULL: no
 * memory). */
int rpc_send_items(struct rpc_call *c, struct gpuq_val *list, struct gpuq_err *err);

/* Finish a stream with the ended jobs that match, newest first, at most max (0 = all of
 * them). live: such as are still in memory, sent with them, or (was_sent) sent already; it and
 * the rows live as long as the call. */
int past_send(struct methods *m, struct rows *rows, const struct job_filter *f,
	      struct history_live *live, size_t n_live, bool was_sent, size_t max,
	      struct gpuq_err *err);

bool peer_is_operator(const struct rpc_call *c);
/* Return the caller as the checks of flow/ know it; its name lives as long as the call. */
struct submit_who peer_who(const struct methods *m, const struct rpc_call *c);

void backup_dropped(void *arg); /* of its thread: the copy is no longer wanted */

/* Look at waits and logs again once everything applied so far is durable. */
void methods_look_again(struct methods *m);
void waits_flush(struct methods *m);
void waits_on_event(struct methods *m, const struct event *ev);
void logs_flush(struct methods *m);
void logs_on_event(struct methods *m, const struct event *ev);
void watches_on_event(struct methods *m, const struct event *ev);
/* Does the owner of j hold a stream of it? */
bool waits_attend(const struct methods *m, const struct job *j);
bool logs_attend(const struct methods *m, const struct job *j);
void waits_free(struct methods *m);
void logs_free(struct methods *m);
void logs_drop_cluster(struct methods *m); /* its logs are gone; they are opened again */
void sessions_drop_cluster(struct methods *m); /* they end: the server stops */
void sessions_free(struct methods *m);

/* m_signal.c: a signal to each pod of a job that runs. Returns 0, and fn is called later, once:
 * err NULL = all of them were sent it; or < 0 and err, when no pod could be sent any. */
typedef void (*job_signal_fn)(void *arg, struct job_key job, const struct gpuq_err *err);
int job_signal_send(struct methods *m, const struct job *j, int signal, bool first_only,
		    job_signal_fn fn, void *arg, struct gpuq_err *err);
void job_signals_forget(struct methods *m, const void *arg); /* fn is not called any more */
void job_signals_on_told(void *arg, struct pod_key pod, int signal, const struct gpuq_err *err);
void job_signals_drop_cluster(struct methods *m); /* no further reports */
void rights_drop_cluster(struct methods *m); /* no further reports */
/* m_try.c: have the pod templates of jobs judged before they are submitted. */
bool try_needed(const struct methods *m, struct rpc_call *c, const struct gpuq_val *specs);
/* done is called later, unless the call has failed: with notes for the submitter about each job (a
 * list of lists of strings). Returns 0, or what the jobs' own checks say. */
int try_start(struct methods *m, struct rpc_call *c, const struct gpuq_val *specs,
	      void (*done)(void *arg, struct gpuq_val *notes), void *arg, struct gpuq_err *err);
void tries_drop_cluster(struct methods *m); /* those under way fail */
void watches_free(struct methods *m);
void recent_on_event(struct methods *m, const struct event *ev);
void recent_free(struct methods *m);
/* Return which numbers the events have that are remembered now. */
void recent_span(const struct methods *m, uint64_t *first, uint64_t *end);
/* Visit those from *at to end that came after since_us, while fn says true. Returns 1 when all were
 * visited, 0 when fn said no, -1 when the next is no longer remembered. */
int recent_walk(const struct methods *m, uint64_t *at, uint64_t end, int64_t since_us,
		bool (*fn)(void *arg, struct job_key job, const struct gpuq_val *event), void *arg);

/* m_code.c: check that gpuqd has the archives that jobs carry, and put their sizes into the specs. */
int codes_check(const struct methods *m, struct rpc_call *c, const struct gpuq_val *specs,
		bool dry_run, struct gpuq_err *err);
void codes_dropped(void *arg); /* of its thread */

int m_code_put(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_event_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_history_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_submit(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_cancel(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_hold(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_release(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_requeue(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_update(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_wait(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_why(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_attach(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_exec(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_forward(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_job_logs(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_node_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_node_drain(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_node_resume(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_queue_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_queue_grant(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_recover_finish(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_recover_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_report_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_usage_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_status_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_scenario_export(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_backup_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_backup_verify(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_backup_write(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_backup_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_cluster_rights(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_diag_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_plan_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_prio_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_prio_weights(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_shares_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_event_watch(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);

int m_pool_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_reservation_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_reservation_report(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_site_apply(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_site_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_auth_begin(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_auth_finish(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_token_create(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_token_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_token_revoke(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);
int m_audit_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err);

extern const struct gpuq_schema p_audit_list;
extern const struct gpuq_schema p_backup_verify;
extern const struct gpuq_schema p_backup_write;
extern const struct gpuq_schema p_code_put;
extern const struct gpuq_schema p_diag_get;
extern const struct gpuq_schema p_event_list;
extern const struct gpuq_schema p_event_watch;
extern const struct gpuq_schema p_job_act;
extern const struct gpuq_schema p_job_attach;
extern const struct gpuq_schema p_job_exec;
extern const struct gpuq_schema p_job_forward;
extern const struct gpuq_schema p_job_get;
extern const struct gpuq_schema p_job_list;
extern const struct gpuq_schema p_job_logs;
extern const struct gpuq_schema p_job_submit;
extern const struct gpuq_schema p_job_wait;
extern const struct gpuq_schema p_job_why;
extern const struct gpuq_schema p_node_drain;
extern const struct gpuq_schema p_node_list;
extern const struct gpuq_schema p_plan_get;
extern const struct gpuq_schema p_prio_list;
extern const struct gpuq_schema p_queue_grant;
extern const struct gpuq_schema p_queue_list;
extern const struct gpuq_schema p_report_get;
/* Return how many nodes autoscalers are to make now, by pool. */
struct gpuq_val *view_unmet(const struct model *m, struct gpuq_arena *a);
/* Nodes that were requested and are not there, and their devices. */
struct gpuq_val *view_provisioning(const struct model *m, struct gpuq_arena *a);
/* Return a list of the pools that grow, as pool.list has them. */
struct gpuq_val *view_growing(const struct model *m, struct gpuq_arena *a, int64_t now_us);
extern const struct gpuq_schema p_pool_list;
extern const struct gpuq_schema p_reservation_list, p_reservation_report;
extern const struct gpuq_schema p_shares_list;
extern const struct gpuq_schema p_site_apply;
extern const struct gpuq_schema p_auth_begin;
extern const struct gpuq_schema p_auth_finish;
extern const struct gpuq_schema p_token_create;
extern const struct gpuq_schema p_token_list;
extern const struct gpuq_schema p_token_revoke;
extern const struct gpuq_schema p_usage_list;

/* m_token.c: issue the token of ev (TOKEN_ISSUED, but its id and hash), note it in the audit, and reply with it. */
int tokens_issue(struct methods *m, struct rpc_call *c, struct event *ev, struct gpuq_err *err);
/* The same: identities of connections that are not unix sockets; for struct rpc_opts. */
void tokens_authenticate(void *arg, const char *token, rpc_authed_fn fn, void *fn_arg);
int tokens_account(void *arg, const char *user, uid_t *uid, gid_t *gid, struct gpuq_err *err);
void tokens_refused(void *arg, const char *address, const char *why, unsigned more);

#define P(type_, key_, kind_, member_, ...)                                                        \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct type_, member_),         \
		__VA_ARGS__                                                                        \
	}

/* Keys that select jobs, as members of filter in type_. */
#define FILTER_FIELDS(type_)                                                                       \
	P(type_, "ids", GPUQ_K_STRLIST, filter.ids),                                               \
		P(type_, "users", GPUQ_K_STRLIST, filter.users),                                   \
		P(type_, "queues", GPUQ_K_STRLIST, filter.queues),                                 \
		P(type_, "states", GPUQ_K_STRLIST, filter.states),                                 \
		P(type_, "names", GPUQ_K_STRLIST, filter.names),                                   \
		P(type_, "nodes", GPUQ_K_STRLIST, filter.nodes),                                   \
		P(type_, "labels", GPUQ_K_STRLIST, filter.labels),                                 \
		P(type_, "since_us", GPUQ_K_INT, filter.since_us, .min = 0, .max = INT64_MAX),     \
		P(type_, "until_us", GPUQ_K_INT, filter.until_us, .min = 0, .max = INT64_MAX),     \
		P(type_, "overlaps", GPUQ_K_BOOL, filter.overlaps)

#define P_END                                                                                      \
	{                                                                                          \
		.key = NULL                                                                        \
	}
#define P_SCHEMA(type_, fields_)                                                                   \
	{                                                                                          \
		.name = "params", .size = sizeof(struct type_), .fields = (fields_)                \
	}

#endif
