#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/limits.h"

/* job.exec, job.attach, job.forward: bytes between a client and a pod of a running job.
 *
 * From us:   {open: true, input, tty} once the other side is there (input: it reads what
 *            is sent to it; tty: it has a terminal), then {out: bytes}, {err: bytes},
 *            {eof: true} (of a port: nothing more comes). The reply is {exit_code}.
 * From it:   {in: bytes}, {eof: true}, {size: [columns, rows]}.
 *
 * Nothing piles up here: a piece of output that the client has no credit for makes the
 * cluster wait, and the client gets credit back only for input that has left. Whoever goes
 * away, the other side is told at once; nothing of this is stored but the audit's record. */

struct session_params {
	int64_t id, index, pod, port, cols, rows;
	const char *container;
	struct gpuq_strlist command;
	bool input, output, tty, replay, probe;
};

static void session_defaults(void *obj)
{
	struct session_params *p = obj;

	p->index = -1;
	p->output = true;
}

#define ID                                                                                         \
	P(session_params, "id", GPUQ_K_INT, id, .flags = GPUQ_F_REQUIRED, .min = 1,                \
	  .max = UINT32_MAX)
#define INDEX P(session_params, "index", GPUQ_K_INT, index, .min = -1, .max = INT32_MAX)
#define POD P(session_params, "pod", GPUQ_K_INT, pod, .min = 0, .max = INT32_MAX)
#define CONTAINER P(session_params, "container", GPUQ_K_STR, container)
#define INPUT P(session_params, "input", GPUQ_K_BOOL, input)
#define TTY P(session_params, "tty", GPUQ_K_BOOL, tty)
#define COLS P(session_params, "cols", GPUQ_K_INT, cols, .min = 0, .max = UINT16_MAX)
#define ROWS P(session_params, "rows", GPUQ_K_INT, rows, .min = 0, .max = UINT16_MAX)

static const struct gpuq_field exec_fields[] = {
	ID,
	INDEX,
	POD,
	CONTAINER,
	P(session_params, "command", GPUQ_K_STRLIST, command, .flags = GPUQ_F_REQUIRED),
	INPUT,
	TTY,
	COLS,
	ROWS,
	P_END,
};

static const struct gpuq_field attach_fields[] = {
	ID,
	INDEX,
	POD,
	CONTAINER,
	P(session_params, "output", GPUQ_K_BOOL, output),
	P(session_params, "replay", GPUQ_K_BOOL, replay),
	INPUT,
	COLS,
	ROWS,
	P_END,
};

/* With probe it is only looked whether it could be. */
static const struct gpuq_field forward_fields[] = {
	ID,
	INDEX,
	POD,
	P(session_params, "port", GPUQ_K_INT, port, .flags = GPUQ_F_REQUIRED, .min = 1,
	  .max = UINT16_MAX),
	P(session_params, "probe", GPUQ_K_BOOL, probe),
	P_END,
};

#define SCHEMA(fields_)                                                                            \
	{                                                                                          \
		.name = "params", .size = sizeof(struct session_params), .fields = (fields_),      \
		.defaults = session_defaults                                                       \
	}
const struct gpuq_schema p_job_exec = SCHEMA(exec_fields);
const struct gpuq_schema p_job_attach = SCHEMA(attach_fields);
const struct gpuq_schema p_job_forward = SCHEMA(forward_fields);

struct piece {
	struct piece *next;
	enum session_stream stream;
	size_t n, sent;
	char bytes[];
};

struct session {
	struct session *prev, *next;
	struct methods *m;
	struct rpc_call *c;
	enum session_kind kind;
	uint32_t job;
	int64_t port;
	struct cluster_session *s; /* NULL = not open any more */
	struct piece *held, **last; /* not sent for want of credit */
	uint32_t owed; /* credit to release when the input has left */
	bool input, tty;
	bool open, tell_open, tell_eof, full, over;
	int exit_code;
	struct gpuq_err err; /* why it ended; code 0 = well */
};

static const struct {
	const char *word, *deed;
} kinds[] = {
	[SESSION_EXEC] = { "exec", "run programs in it" },
	[SESSION_ATTACH] = { "attach", "attach to it" },
	[SESSION_PORT] = { "port-forward", "forward its ports" },
};

static void drop_cluster(struct session *x)
{
	if (x->s && x->m->cluster)
		x->m->cluster->ops->session_close(x->s);
	x->s = NULL;
}

static void session_unlink(struct session *x)
{
	struct piece *p;

	drop_cluster(x);
	while ((p = x->held) != NULL) {
		x->held = p->next;
		free(p);
	}
	DL_DELETE(x->m->sessions, x);
	free(x);
}

/* ---- to the client ---- */

static bool send_flag(struct session *x, const char *key)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&mem);
	bool ok;

	gpuq_put(&mem, v, key, gpuq_bool(&mem, true));
	if (x->tell_open) {
		gpuq_put(&mem, v, "input", gpuq_bool(&mem, x->input));
		gpuq_put(&mem, v, "tty", gpuq_bool(&mem, x->tty));
	}
	ok = rpc_item(x->c, v);
	gpuq_arena_done(&mem);
	return ok;
}

static bool send_bytes(struct session *x, enum session_stream s, const char *bytes, size_t n)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&mem);
	bool ok;

	gpuq_put(&mem, v, s == SESSION_OUT ? "out" : "err", gpuq_bin(&mem, bytes, n));
	ok = rpc_item(x->c, v);
	gpuq_arena_done(&mem);
	return ok;
}

/* Send pieces of at most GPUQ_SESSION_PIECE_BYTES; returns how many bytes went. */
static size_t send_pieces(struct session *x, enum session_stream s, const char *bytes, size_t n)
{
	size_t at = 0;

	while (at < n) {
		size_t k = n - at < GPUQ_SESSION_PIECE_BYTES ? n - at : GPUQ_SESSION_PIECE_BYTES;

		if (!send_bytes(x, s, bytes + at, k))
			break;
		at += k;
	}
	return at;
}

static void hold(struct session *x, enum session_stream s, const char *bytes, size_t n)
{
	struct piece *p = malloc(sizeof(*p) + n);

	if (!p)
		abort(); /* as loop_after(): a gap in a stream cannot be mended */
	*p = (struct piece){ .stream = s, .n = n };
	memcpy(p->bytes, bytes, n);
	*x->last = p;
	x->last = &p->next;
}

/* Send queued data in order. false: the client still cannot take more. */
static bool flush(struct session *x)
{
	struct piece *p;

	if (x->tell_open && !send_flag(x, "open"))
		return false;
	x->tell_open = false;
	while ((p = x->held) != NULL) {
		p->sent += send_pieces(x, p->stream, p->bytes + p->sent, p->n - p->sent);
		if (p->sent < p->n)
			return false;
		x->held = p->next;
		if (!x->held)
			x->last = &x->held;
		free(p);
	}
	if (x->tell_eof && !send_flag(x, "eof"))
		return false;
	x->tell_eof = false;
	return true;
}

static void finish(struct session *x)
{
	struct gpuq_arena *a = rpc_call_arena(x->c);
	struct gpuq_val *v;

	if (x->err.code) {
		rpc_fail(x->c, &x->err);
	} else {
		v = gpuq_map(a);
		gpuq_put(a, v, "exit_code", gpuq_int(a, x->exit_code));
		rpc_end(x->c, v);
	}
	session_unlink(x);
}

static void on_resume(void *arg)
{
	struct session *x = arg;

	if (!flush(x))
		return;
	if (x->over) {
		finish(x);
	} else if (x->full) {
		x->full = false;
		if (x->s && x->m->cluster)
			x->m->cluster->ops->session_resume(x->s);
	}
}

static void on_closed(void *arg, int why)
{
	struct session *x = arg;
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(x->c, &err);
	session_unlink(x);
}

/* ---- from the client ---- */

static bool size_of(const struct gpuq_val *v, int *cols, int *rows)
{
	for (uint32_t i = 0; i < 2; i++)
		if (v->type != GPUQ_LIST || v->n != 2 || v->items[i]->type != GPUQ_INT ||
		    v->items[i]->i < 1 || v->items[i]->i > UINT16_MAX)
			return false;
	*cols = (int)v->items[0]->i;
	*rows = (int)v->items[1]->i;
	return true;
}

static void on_item(void *arg, const struct gpuq_val *item)
{
	struct session *x = arg;
	const struct cluster_ops *ops = x->m->cluster ? x->m->cluster->ops : NULL;
	const struct gpuq_val *in = gpuq_get(item, "in"), *size = gpuq_get(item, "size");
	bool more = true;
	int cols, rows;

	if (x->s && ops && in && (in->type == GPUQ_BIN || in->type == GPUQ_STR) &&
	    in->n <= GPUQ_SESSION_PIECE_BYTES)
		more = ops->session_write(x->s, in->s, in->n);
	if (x->s && ops && size && size_of(size, &cols, &rows))
		ops->session_resize(x->s, cols, rows);
	if (x->s && ops && gpuq_get_bool(item, "eof", false))
		ops->session_eof(x->s);
	if (more && x->owed == 0)
		rpc_call_grant(x->c, 1);
	else
		x->owed++;
}

/* ---- from the cluster ---- */

static void on_opened(void *arg)
{
	struct session *x = arg;

	x->open = x->tell_open = true;
	flush(x);
	rpc_call_grant(x->c, GPUQ_SESSION_CREDIT);
}

static bool on_data(void *arg, enum session_stream s, const char *bytes, size_t n)
{
	struct session *x = arg;
	size_t sent = flush(x) ? send_pieces(x, s, bytes, n) : 0;

	if (sent == n)
		return true;
	hold(x, s, bytes + sent, n - sent);
	x->full = true;
	return false;
}

static void on_eof(void *arg)
{
	struct session *x = arg;

	x->tell_eof = true;
	flush(x);
}

static void on_drained(void *arg)
{
	struct session *x = arg;
	const uint32_t n = x->owed;

	x->owed = 0;
	rpc_call_grant(x->c, n);
}

static void on_ended(void *arg, int exit_code, const struct gpuq_err *err)
{
	struct session *x = arg;

	x->over = true;
	x->exit_code = exit_code;
	if (err)
		x->err = *err;
	drop_cluster(x);
	if (flush(x))
		finish(x);
}

/* ---- the beginning ---- */

struct opening {
	struct methods *m;
	struct rpc_call *c;
	const struct session_params *p;
	enum session_kind kind;
};

/* A session runs what its caller likes as the job's owner: a manager's right is not enough. */
static int check_access(const struct opening *o, const struct queue *q, const char *owner,
			const char *id, struct gpuq_err *err)
{
	const struct submit_who who = peer_who(o->m, o->c);
	const unsigned rights = access_job(journal_model(o->m->j), q, owner, &who);

	if (rights & ACCESS_OWN)
		return 0;
	if (!rights)
		return gpuq_fail(err, GPUQ_EPERM, "job %s belongs to another user", id);
	return gpuq_fail(err, GPUQ_EPERM, "job %s belongs to %s: only its owner may %s%s", id,
			 owner, kinds[o->kind].deed,
			 who.operator_
				 ? " (operators, where operators_act_as_user of gpuqd.yaml is true)"
				 : "");
}

/* Find the job that is named, if the caller may enter it and it runs. */
static int find_job(const struct opening *o, const struct job **out, struct gpuq_err *err)
{
	const struct model *m = journal_model(o->m->j);
	const struct job_key key = job_id_of_call(o->m, o->p->id, o->p->index);
	const struct job *j = model_find_job(m, key);
	const struct gpuq_val *old;
	char id[32];
	int rc;

	job_id_print(key, id);
	if (!j && key.index >= 0)
		j = model_find_job(m, (struct job_key){ key.id, -1 });
	old = j ? NULL : history_job(journal_store(o->m->j), key, rpc_call_arena(o->c));
	if (!j && !old)
		return gpuq_fail(err, GPUQ_ENOENT, "no such job: %s", id);
	rc = check_access(o, j ? j->queue : model_find_queue(m, gpuq_get_str(old, "queue", "")),
			  j ? j->user : gpuq_get_str(old, "user", ""), id, err);
	if (rc < 0)
		return rc;
	if (!j || j->ended)
		return gpuq_fail(err, GPUQ_EGONE, "job %s has ended", id);
	if (j->array && key.index < 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "job %s is an array: name an element, such as %s_0", id, id);
	if (!model_job_is_live(j) || (int32_t)j->key.index != key.index)
		return gpuq_fail(err, GPUQ_ECONFLICT, "job %s is not running yet", id);
	*out = j;
	return 0;
}

static int find_pod(const struct opening *o, const struct job *j, const struct pod **out,
		    struct gpuq_err *err)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next) {
		if (p->attempt != j->attempt || p->index != o->p->pod)
			continue;
		if (p->state != GPUQ_POD_RUNNING)
			return gpuq_fail(err, GPUQ_ECONFLICT,
					 "pod %" PRId64 " of job %" PRId64 " does not run",
					 o->p->pod, o->p->id);
		*out = p;
		return 0;
	}
	return gpuq_fail(err, GPUQ_ECONFLICT, "job %" PRId64 " has no pod %" PRId64 " now",
			 o->p->id, o->p->pod);
}

static int within_limits(const struct opening *o, struct gpuq_err *err)
{
	const struct session *x;
	unsigned all = 0, own = 0;

	DL_FOREACH(o->m->sessions, x) {
		all++;
		own += strcmp(rpc_call_peer(x->c)->user, rpc_call_peer(o->c)->user) == 0;
	}
	if (all >= GPUQ_SESSIONS_MAX)
		return gpuq_fail(err, GPUQ_EBUSY, "%u sessions are open already", all);
	if (own >= GPUQ_SESSIONS_PER_USER)
		return gpuq_fail(err, GPUQ_ELIMIT, "%u sessions of this user are open already",
				 own);
	return 0;
}

/* Audit sessions in jobs: user, job and kind; of a program only its name, as its arguments may
 * be private. A forwarded port is opened repeatedly: only the first of simultaneous connections
 * is noted. */
static int note(const struct opening *o, const struct job *j, struct gpuq_err *err)
{
	static const char *const actions[] = { "job.exec", "job.attach", "job.forward" };
	struct gpuq_arena *a = rpc_call_arena(o->c);
	const char *user = rpc_call_peer(o->c)->user;
	const struct session *x;
	char id[32];

	job_id_print(j->key, id);
	if (o->kind == SESSION_PORT)
		DL_FOREACH(o->m->sessions, x)
			if (x->kind == SESSION_PORT && x->job == j->key.id &&
			    x->port == o->p->port && strcmp(rpc_call_peer(x->c)->user, user) == 0)
				return 0;
	log_info("job.session", "job=%s kind=%s by=%s", id, kinds[o->kind].word, LOGS(user));
	return audit_add(o->m->j,
			 &(struct audit_note){
				 .who = user,
				 .action = actions[o->kind],
				 .kind = "job",
				 .name = id,
				 .owner = j->user,
				 .queue = j->queue->name,
				 .note = o->kind == SESSION_EXEC ? o->p->command.items[0]
					 : o->kind == SESSION_PORT
						 ? gpuq_arena_printf(a, "port %" PRId64, o->p->port)
						 : NULL },
			 err);
}

/* Whether there is input to attach to, and a terminal, was said when the job was made. */
static int terminal(const struct opening *o, const struct job *j, const struct pod *p, bool *input,
		    bool *tty, struct gpuq_err *err)
{
	struct gpuq_spec spec;
	bool open;
	int rc;

	if (o->kind != SESSION_ATTACH)
		return 0;
	rc = order_spec(journal_store(o->m->j), j->key.id, rpc_call_arena(o->c), &spec, err);
	if (rc < 0)
		return rc;
	order_terminal(&spec, p->group, o->p->container, &open, tty);
	*input = *input && open;
	if (!*input && !o->p->output)
		return gpuq_fail(err, GPUQ_ECONFLICT,
				 "job %" PRId64 " has no open standard input: submit it with "
				 "gpuq run -it, or with `stdin: true`",
				 o->p->id);
	return 0;
}

static int begin_session(const struct opening *o, const struct job *j, const struct pod *p,
			 struct gpuq_err *err)
{
	const struct session_params *q = o->p;
	bool input = q->input || o->kind == SESSION_PORT, tty = q->tty;
	int rc = terminal(o, j, p, &input, &tty, err);
	const struct session_opts opts = { .kind = o->kind,
					   .command = q->command,
					   .container = q->container,
					   .input = input,
					   .output = q->output,
					   .replay = q->replay,
					   .tty = tty,
					   .cols = (int)q->cols,
					   .rows = (int)q->rows,
					   .port = (int)q->port };
	struct session *x = calloc(1, sizeof(*x));
	const struct session_sink sink = { .arg = x,
					   .opened = on_opened,
					   .data = on_data,
					   .eof = on_eof,
					   .drained = on_drained,
					   .ended = on_ended };
	struct pod_ref ref;
	char name[64];

	if (!x || rc < 0) {
		free(x);
		return rc < 0 ? rc : gpuq_no_memory(err);
	}
	x->m = o->m;
	x->input = input;
	x->tty = tty;
	x->c = o->c;
	x->kind = o->kind;
	x->job = j->key.id;
	x->port = q->port;
	x->last = &x->held;
	order_ref(journal_model(o->m->j), j, p, name, &ref);
	x->s = o->m->cluster->ops->session_open(o->m->cluster, &ref, &opts, &sink, err);
	if (!x->s) {
		free(x);
		return err->code;
	}
	DL_APPEND(o->m->sessions, x);
	rpc_call_watch(o->c, on_resume, on_closed, x);
	rpc_call_take(o->c, on_item);
	return 0;
}

/* Its record is on disk by now. */
static void begin(void *arg, int rc, const struct gpuq_err *failed)
{
	struct opening *o = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct job *j = NULL;
	const struct pod *p = NULL;

	if (rc < 0)
		err = *failed;
	if (rc == 0 && !o->m->cluster)
		rc = gpuq_fail(&err, GPUQ_EGONE, "the server is stopping");
	if (rc == 0)
		rc = find_job(o, &j, &err);
	if (rc == 0)
		rc = find_pod(o, j, &p, &err);
	if (rc == 0)
		rc = begin_session(o, j, p, &err);
	if (rc < 0)
		rpc_fail(o->c, &err);
}

static int open_now(struct opening *o, struct gpuq_err *err)
{
	const struct job *j = NULL;
	const struct pod *p = NULL;
	int rc = find_job(o, &j, err);

	if (rc == 0)
		rc = find_pod(o, j, &p, err);
	if (rc == 0)
		rc = within_limits(o, err);
	if (rc == 0 && o->p->probe) {
		rpc_reply(o->c, NULL);
		return 0;
	}
	if (rc == 0)
		rc = note(o, j, err);
	if (rc == 0)
		journal_after(o->m->j, begin, o);
	return rc;
}

static void open_again(void *arg, int rc, const struct gpuq_err *failed)
{
	struct opening *o = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (rc < 0) {
		rpc_fail(o->c, failed);
		return;
	}
	if (open_now(o, &err) < 0)
		rpc_fail(o->c, &err);
}

static int open_session(struct methods *m, struct rpc_call *c, enum session_kind kind,
			const void *params, struct gpuq_err *err)
{
	struct opening *o = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*o));
	int rc;

	if (!o)
		return gpuq_no_memory(err);
	*o = (struct opening){ m, c, params, kind };
	if (kind == SESSION_EXEC && o->p->command.n == 0)
		return gpuq_fail_field(err, GPUQ_EINVAL, "command", "expected a program to run");
	if (!m->cluster || !m->cluster->ops->session_open)
		return gpuq_fail(err, GPUQ_EINVAL, "this cluster has no sessions");
	rc = open_now(o, err);
	if (rc != GPUQ_ENOENT)
		return rc;
	/* It may have left memory for the history in this very turn. */
	journal_after(m->j, open_again, o);
	return 0;
}

int m_job_exec(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return open_session(arg, c, SESSION_EXEC, params, err);
}

int m_job_attach(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return open_session(arg, c, SESSION_ATTACH, params, err);
}

int m_job_forward(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	return open_session(arg, c, SESSION_PORT, params, err);
}

void sessions_drop_cluster(struct methods *m)
{
	struct session *x, *next;
	struct gpuq_err err;

	gpuq_fail(&err, GPUQ_EGONE, "the server is stopping");
	DL_FOREACH_SAFE(m->sessions, x, next) {
		drop_cluster(x);
		rpc_fail(x->c, &err);
		session_unlink(x);
	}
}

void sessions_free(struct methods *m)
{
	struct session *x, *next;

	DL_FOREACH_SAFE(m->sessions, x, next)
		session_unlink(x);
}
