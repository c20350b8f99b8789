#include "gpuqd/rpc/method/methods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/admit/apply.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/lease.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/flow/advise/why_log.h"
#include "gpuqd/rpc/method/m_ask.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/util/scope.h"
#include "libgpuq/limits.h"

/* How long a message may be, and whether the call lasts as long as the client likes. */
#define PLAIN GPUQ_MSG_BYTES_PLAIN, false
#define NAMES GPUQ_MSG_BYTES_NAMES, false
#define SPECS GPUQ_MSG_BYTES_MAX, false
#define LASTING GPUQ_MSG_BYTES_NAMES, true

/* Sorted by name. */
/* clang-format off */
static const struct rpc_method table[] = {
	{ "audit.list",   RPC_ROLE_USER, SCOPE_READ, false, true,  &p_audit_list, m_audit_list,  "changes by users", NAMES },
	{ "event.list",   RPC_ROLE_USER, SCOPE_READ, false, true,  &p_event_list, m_event_list,  "events of a job, or the latest ones", NAMES },
	{ "event.watch",  RPC_ROLE_USER, SCOPE_READ, false, true,  &p_event_watch, m_event_watch, "events as they occur", LASTING },
	{ "history.list", RPC_ROLE_USER, SCOPE_READ, false, true,  &p_job_list,  m_history_list, "jobs that have ended, filtered", NAMES },
	{ "backup.get",   RPC_ROLE_OPERATOR, SCOPE_OPERATE, false, true,  NULL,          m_backup_get,  "a copy of the database", PLAIN },
	{ "backup.list",  RPC_ROLE_OPERATOR, SCOPE_OPERATE, false, true,  NULL,          m_backup_list, "copies that gpuqd made by itself", PLAIN },
	{ "backup.verify", RPC_ROLE_OPERATOR, SCOPE_OPERATE, false, false, &p_backup_verify, m_backup_verify, "check such a copy", PLAIN },
	{ "backup.write", RPC_ROLE_OPERATOR, SCOPE_OPERATE, false, false, &p_backup_write, m_backup_write, "the same to a new file on the server", PLAIN },
	{ "cluster.rights", RPC_ROLE_OPERATOR, SCOPE_OPERATE, false, false, NULL,       m_cluster_rights, "rights of gpuqd in the cluster", PLAIN },
	{ "code.put",     RPC_ROLE_USER, SCOPE_SUBMIT, false, false, &p_code_put,   m_code_put,    "a directory that jobs will carry", SPECS },
	{ "diag.get",     RPC_ROLE_USER, SCOPE_READ, false, false, &p_diag_get,   m_diag_get,    "internal statistics", PLAIN },
	{ "job.attach",   RPC_ROLE_USER, SCOPE_SESSION, true,  true,  &p_job_attach, m_job_attach,  "input and output of a job's main process", LASTING },
	{ "job.cancel",   RPC_ROLE_USER, SCOPE_CONTROL, true,  false, &p_job_act,    m_job_cancel,  "end jobs", NAMES },
	{ "job.exec",     RPC_ROLE_USER, SCOPE_SESSION, true,  true,  &p_job_exec,   m_job_exec,    "run a program beside a job", LASTING },
	{ "job.forward",  RPC_ROLE_USER, SCOPE_SESSION, true,  true,  &p_job_forward, m_job_forward, "a connection to a port of a job", LASTING },
	{ "job.get",      RPC_ROLE_USER, SCOPE_READ, false, false, &p_job_get,    m_job_get,     "one job and its elements", NAMES },
	{ "job.hold",     RPC_ROLE_USER, SCOPE_CONTROL, true,  false, &p_job_act,    m_job_hold,    "hold jobs", NAMES },
	{ "job.list",     RPC_ROLE_USER, SCOPE_READ, false, true,  &p_job_list,   m_job_list,    "jobs, filtered", NAMES },
	{ "job.logs",     RPC_ROLE_USER, SCOPE_READ, false, true,  &p_job_logs,   m_job_logs,    "output of a job's pods", LASTING },
	{ "job.release",  RPC_ROLE_USER, SCOPE_CONTROL, true,  false, &p_job_act,    m_job_release, "release held jobs", NAMES },
	{ "job.requeue",  RPC_ROLE_USER, SCOPE_CONTROL, true,  false, &p_job_act,    m_job_requeue, "requeue jobs", NAMES },
	{ "job.submit",   RPC_ROLE_USER, SCOPE_SUBMIT, true,  false, &p_job_submit, m_job_submit,  "put jobs in their queues", SPECS },
	{ "job.update",   RPC_ROLE_USER, SCOPE_CONTROL, true,  false, &p_job_act,    m_job_update,  "change jobs", SPECS },
	{ "job.wait",     RPC_ROLE_USER, SCOPE_READ, false, true,  &p_job_wait,   m_job_wait,    "changes of jobs until they end", LASTING },
	{ "job.why",      RPC_ROLE_USER, SCOPE_READ, false, false, &p_job_why,    m_job_why,     "why a job is pending, started or was preempted", NAMES },
	{ "node.drain",   RPC_ROLE_OPERATOR, SCOPE_OPERATE, true,  false, &p_node_drain, m_node_drain,  "drain nodes", NAMES },
	{ "node.list",    RPC_ROLE_USER, SCOPE_READ, false, true,  &p_node_list,  m_node_list,   "nodes and their devices", NAMES },
	{ "node.resume",  RPC_ROLE_OPERATOR, SCOPE_OPERATE, true,  false, &p_node_drain, m_node_resume, "return drained nodes to service", NAMES },
	{ "queue.grant",  RPC_ROLE_MANAGER, SCOPE_MANAGE, true,  false, &p_queue_grant, m_queue_grant, "grant GPU-minutes to a queue", NAMES },
	{ "plan.get",     RPC_ROLE_USER, SCOPE_READ, false, false, &p_plan_get,   m_plan_get,    "when and where jobs would start, and what they would preempt", SPECS },
	{ "prio.list",    RPC_ROLE_USER, SCOPE_READ, false, true,  &p_prio_list,  m_prio_list,   "priority terms of pending jobs", NAMES },
	{ "prio.weights", RPC_ROLE_USER, SCOPE_READ, false, false, NULL,          m_prio_weights, "weights of the priority terms", PLAIN },
	{ "queue.list",   RPC_ROLE_USER, SCOPE_READ, false, true,  &p_queue_list, m_queue_list,  "queues: quota, use, jobs", NAMES },
	{ "recover.finish", RPC_ROLE_OPERATOR, SCOPE_OPERATE, true, false, NULL,         m_recover_finish, "end the recovery after a restore", PLAIN },
	{ "recover.get",  RPC_ROLE_OPERATOR, SCOPE_OPERATE, false, false, NULL,          m_recover_get, "what is left to recover after a restore", PLAIN },
	{ "report.get",   RPC_ROLE_USER, SCOPE_READ, false, true,  &p_report_get, m_report_get,  "use between two instants", NAMES },
	{ "reservation.list", RPC_ROLE_USER, SCOPE_READ, false, true,  &p_reservation_list, m_reservation_list, "the calendar", NAMES },
	{ "reservation.report", RPC_ROLE_USER, SCOPE_READ, false, true, &p_reservation_report, m_reservation_report, "use of reservations between two instants", NAMES },
	{ "scenario.export", RPC_ROLE_USER, SCOPE_READ, false, true,  NULL,          m_scenario_export, "the live state as a scenario for gpuq-sim", PLAIN },
	{ "site.apply",   RPC_ROLE_USER, SCOPE_MANAGE, true,  false, &p_site_apply, m_site_apply,  "change the objects of the site", SPECS },
	{ "site.get",     RPC_ROLE_USER, SCOPE_READ, false, false, NULL,          m_site_get,    "the objects of the site", PLAIN },
	{ "shares.list",  RPC_ROLE_USER, SCOPE_READ, false, true,  &p_shares_list, m_shares_list, "fair shares and use of queues and users", NAMES },
	{ "status.get",   RPC_ROLE_USER, SCOPE_READ, false, false, NULL,          m_status_get,  "the cluster at a glance", PLAIN },
	{ "token.create", RPC_ROLE_USER, SCOPE_CONTROL, true, false, &p_token_create, m_token_create, "issue a token", NAMES },
	{ "token.list",   RPC_ROLE_USER, SCOPE_READ, false, true, &p_token_list, m_token_list, "tokens that were issued", NAMES },
	{ "token.revoke", RPC_ROLE_USER, SCOPE_CONTROL, true, false, &p_token_revoke, m_token_revoke, "revoke tokens", NAMES },
	{ "usage.list",   RPC_ROLE_USER, SCOPE_READ, false, true,  &p_usage_list, m_usage_list,  "budgets and use of queues and users", NAMES },
	{ .name = NULL },
};
/* clang-format on */

bool peer_is_operator(const struct rpc_call *c)
{
	return rpc_call_peer(c)->role >= RPC_ROLE_OPERATOR;
}

struct submit_who peer_who(const struct methods *m, const struct rpc_call *c)
{
	const struct rpc_peer *peer = rpc_call_peer(c);
	const bool operator_ = peer_is_operator(c);

	/* gpuqd's own user has these rights without gpuqd. Another operator must not become root
	 * through a job of root's. */
	return (struct submit_who){ .user = peer->user,
				    .uid = peer->uid,
				    .gid = peer->gid,
				    .operator_ = operator_,
				    .queues = peer->auth == RPC_AUTH_UNIX ? NULL : peer->queues,
				    .groups = peer->auth == RPC_AUTH_UNIX ? NULL : peer->groups,
				    .as_owner = operator_ && ((peer->auth == RPC_AUTH_UNIX &&
							       peer->uid == geteuid()) ||
							      m->operators_act_as_user) };
}

bool job_id_parse(const char *text, struct job_key *key)
{
	unsigned long id, index;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	id = strtoul(text, &end, 10);
	if (id == 0 || id > UINT32_MAX)
		return false;
	key->id = (uint32_t)id;
	key->index = -1;
	if (*end == '\0')
		return true;
	if (*end != '_' || end[1] < '0' || end[1] > '9')
		return false;
	index = strtoul(end + 1, &end, 10);
	if (*end != '\0' || index > INT32_MAX)
		return false;
	key->index = (int32_t)index;
	return true;
}

void job_id_resolve(const struct methods *m, struct job_key *key)
{
	const struct model *model = journal_model(m->j);
	const struct job *j;

	if (key->index >= 0 || model_find_job(model, *key))
		return;
	j = model_find_element(model, key->id);
	if (j)
		*key = j->key;
	else
		history_element(journal_store(m->j), key->id, key);
}

struct job_key job_id_of_call(const struct methods *m, int64_t id, int64_t index)
{
	struct job_key key = { (uint32_t)id, (int32_t)index };

	if (key.id)
		job_id_resolve(m, &key);
	return key;
}

void job_id_print(struct job_key key, char out[32])
{
	if (key.index >= 0)
		snprintf(out, 32, "%u_%d", key.id, key.index);
	else
		snprintf(out, 32, "%u", key.id);
}

int no_such_job(struct job_key key, struct gpuq_err *err)
{
	char id[32];

	job_id_print(key, id);
	return gpuq_fail(err, GPUQ_ENOENT, "no such job: %s", id);
}

static void on_event(void *arg, const struct event *ev)
{
	struct methods *m = arg;

	waits_on_event(m, ev);
	logs_on_event(m, ev);
	watches_on_event(m, ev);
	recent_on_event(m, ev);
}

static void on_durable(void *arg, int rc, const struct gpuq_err *err)
{
	struct methods *m = arg;
	struct loop *l = journal_loop(m->j);
	const char *before = loop_enter(l, "job.wait");

	(void)rc, (void)err;
	m->flush_asked = false;
	waits_flush(m);
	loop_enter(l, "job.logs");
	logs_flush(m);
	loop_leave(l, before);
}

void methods_look_again(struct methods *m)
{
	if (m->flush_asked)
		return;
	m->flush_asked = true;
	journal_after(m->j, on_durable, m);
}

/* rpc and flow each have a type for it; they are the same thing. */
struct release {
	rpc_release_fn fn;
	void *arg;
};

static void on_released(void *arg, int rc, const struct gpuq_err *err)
{
	struct release *r = arg;

	r->fn(r->arg, rc, err);
	free(r);
}

static void before_send(void *arg, struct rpc_call *call, rpc_release_fn release, void *release_arg)
{
	struct methods *m = arg;
	struct release *r = malloc(sizeof(*r));

	(void)call;
	if (!r)
		abort();
	*r = (struct release){ release, release_arg };
	journal_after(m->j, on_released, r);
}

static void describe(void *arg, struct gpuq_arena *a, struct gpuq_val *info)
{
	struct methods *m = arg;
	struct gpuq_val *cluster = gpuq_map(a);

	gpuq_put(a, cluster, "kind", gpuq_str(a, m->kind));
	gpuq_put(a, cluster, "id", gpuq_str(a, journal_model(m->j)->cluster_id));
	gpuq_put(a, info, "cluster", cluster);
}

static bool is_manager(void *arg, const char *user)
{
	struct methods *m = arg;
	const struct model *model = journal_model(m->j);

	for (uint32_t i = 0; i < model->n_queues; i++)
		if (access_manage(model, model->queues[i], user, false))
			return true;
	return false;
}

void methods_opts(struct methods *m, struct rpc_opts *out)
{
	out->methods = table;
	out->arg = m;
	out->before_send = before_send;
	out->describe = describe;
	out->is_manager = is_manager;
	out->authenticate = tokens_authenticate;
	out->refused = tokens_refused;
	if (strcmp(m->kind, "local") == 0)
		out->account = tokens_account;
}

static bool attended(void *arg, const struct job *j)
{
	const struct methods *m = arg;

	return waits_attend(m, j) || logs_attend(m, j);
}

int methods_new(struct journal *j, struct reconcile *r, const char *cluster_kind,
		struct methods **out, struct gpuq_err *err)
{
	struct methods *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return gpuq_no_memory(err);
	rc = apply_new(j, &m->apply, err);
	m->j = j;
	m->why = why_log_new();
	if (rc == 0 && !m->why)
		rc = gpuq_no_memory(err);
	if (rc == 0)
		rc = worker_new(journal_loop(j), &m->quick, err);
	if (rc == 0)
		rc = worker_new(journal_loop(j), &m->slow, err);
	if (rc == 0)
		rc = worker_new(journal_loop(j), &m->copies, err);
	if (rc == 0)
		rc = worker_new(journal_loop(j), &m->codes_worker, err);
	if (rc == 0)
		rc = lease_new(j, &m->lease, err);
	if (rc < 0) {
		methods_free(m);
		return rc;
	}
	worker_give_back(m->quick);
	worker_give_back(m->slow);
	worker_give_back(m->copies);
	m->start_us = loop_now_us(journal_loop(j));
	m->reconcile = r;
	m->kind = cluster_kind;
	lease_on_ask(m->lease, attended, m);
	journal_subscribe(j, on_event, m);
	reconcile_on_signalled(r, job_signals_on_told, m);
	*out = m;
	return 0;
}

static void on_plan(void *arg, const struct snapshot *s, const struct plan *p)
{
	struct methods *m = arg;

	why_log_note(m->why, s, p);
}

void methods_set_refusals(struct methods *m, const struct refusals *r)
{
	m->refusals = r;
}

void methods_set_schedule(struct methods *m, struct schedule *s)
{
	m->schedule = s;
	schedule_on_plan(s, on_plan, m);
}

void methods_set_backup_dir(struct methods *m, const char *dir)
{
	m->backup_dir = dir;
}

void methods_set_codes(struct methods *m, struct codes *c)
{
	m->codes = c;
}

void methods_set_kept(struct methods *m, struct kept *k)
{
	m->kept = k;
}

void methods_set_rota(struct methods *m, struct rota *k)
{
	m->rota = k;
}

void methods_set_operators_act(struct methods *m, bool act)
{
	m->operators_act_as_user = act;
}

void methods_set_token_age(struct methods *m, int64_t max_us)
{
	m->token_age_us = max_us;
}

void methods_set_auth(struct methods *m, struct auth *a)
{
	m->auth = a;
}

void methods_set_outbox(struct methods *m, const struct outbox *o)
{
	m->outbox = o;
}

void methods_set_server(struct methods *m, struct rpc_server *s)
{
	m->server = s;
}

void methods_set_estimator(struct methods *m, struct estimator *e)
{
	m->estimator = e;
}

void methods_set_cluster(struct methods *m, struct cluster *c)
{
	if (!c) {
		rights_drop_cluster(m);
		tries_drop_cluster(m);
		logs_drop_cluster(m);
		sessions_drop_cluster(m);
		job_signals_drop_cluster(m);
	}
	m->cluster = c;
	if (c)
		methods_look_again(m);
}

void methods_free(struct methods *m)
{
	if (!m)
		return;
	apply_free(m->apply);
	atomic_store(&m->ends, true);
	worker_free(m->quick, ask_dropped);
	worker_free(m->slow, ask_dropped);
	worker_free(m->copies, backup_dropped);
	worker_free(m->codes_worker, codes_dropped);
	why_log_free(m->why);
	waits_free(m);
	logs_free(m);
	sessions_free(m);
	watches_free(m);
	lease_free(m->lease);
	recent_free(m);
	free(m);
}
