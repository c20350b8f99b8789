/* backup.get: all that is stored, as one file in pieces; backup.write: as a file of the daemon's own machine.
 * backup.list: the copies that gpuqd made by itself; backup.verify: whether one is intact. view_backup() is
 * shared with the status. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/flow/copies/backup.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/flow/copies/rota.h"
#include "gpuqd/util/walltime.h"

/* ---- a copy now ---- */

#define PIECE_BYTES (128u << 10)
#define COPIES_MAX 2u /* at a time: each takes as much disk as the database */

struct sending {
	struct methods *m;
	struct rpc_call *call; /* NULL = the client is gone */
	struct loop_work *work; /* NULL = nothing is being sent now */
	struct backup *backup;
	char *path; /* of backup.write; NULL: it is sent */
	int64_t at;
	unsigned char *piece;
	int rc;
	bool made;
	struct gpuq_err err;
};

static void sending_free(struct sending *x)
{
	loop_work_cancel(x->work);
	x->m->n_copies--;
	backup_free(x->backup);
	free(x->piece);
	free(x->path);
	free(x);
}

void backup_dropped(void *arg)
{
	sending_free(arg);
}

static void make(void *arg)
{
	struct sending *x = arg;

	x->rc = backup_make(x->backup, &x->err);
	if (x->rc == 0 && x->path)
		x->rc = backup_keep(x->backup, &x->err);
}

static void fail(struct sending *x, const struct gpuq_err *err)
{
	rpc_fail(x->call, err);
	sending_free(x);
}

static void finish(struct sending *x)
{
	struct gpuq_arena *a = rpc_call_arena(x->call);
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "bytes", gpuq_int(a, x->at));
	log_notice("backup.sent", "bytes=%lld user=%s", (long long)x->at,
		   LOGS(rpc_call_peer(x->call)->user));
	rpc_end(x->call, v);
	sending_free(x);
}

/* The next piece. */
static bool step(void *arg)
{
	struct sending *x = arg;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v;
	int64_t n;

	if (!rpc_item_ready(x->call)) {
		x->work = NULL;
		return false;
	}
	n = backup_read(x->backup, x->at, x->piece, PIECE_BYTES, &x->err);
	if (n <= 0) {
		x->work = NULL;
		if (n < 0)
			fail(x, &x->err);
		else
			finish(x);
		return false;
	}
	v = gpuq_map(&mem);
	gpuq_put(&mem, v, "data", gpuq_bin(&mem, x->piece, (size_t)n));
	rpc_item(x->call, v);
	x->at += n;
	gpuq_arena_done(&mem);
	return true;
}

static void go_on(void *arg)
{
	struct sending *x = arg;

	/* Before it is made, credit is asked for nothing. */
	if (x->made && !x->work)
		x->work = loop_work_as(journal_loop(x->m->j), "backup.get", step, x);
}

static void written(struct sending *x)
{
	struct gpuq_arena *a = rpc_call_arena(x->call);
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "file", gpuq_str(a, x->path));
	gpuq_put(a, v, "bytes", gpuq_int(a, backup_bytes(x->backup)));
	log_notice("backup.written", "file=%s bytes=%lld user=%s", LOGS(x->path),
		   (long long)backup_bytes(x->backup), LOGS(rpc_call_peer(x->call)->user));
	rpc_reply(x->call, v);
	sending_free(x);
}

static void made(void *arg)
{
	struct sending *x = arg;

	if (!x->call) {
		sending_free(x);
		return;
	}
	x->made = true;
	if (x->rc < 0)
		fail(x, &x->err);
	else if (x->path)
		written(x);
	else
		go_on(x);
}

static void on_closed(void *arg, int why)
{
	struct sending *x = arg;
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(x->call, &err);
	x->call = NULL;
	if (x->made) /* else the thread has it still */
		sending_free(x);
}

/* path NULL: it is sent. */
static int begin(struct methods *m, struct rpc_call *c, const char *path, struct gpuq_err *err)
{
	struct sending *x;
	int rc;

	if (m->n_copies >= COPIES_MAX)
		return gpuq_fail(err, GPUQ_EBUSY, "%u copies are in progress already", m->n_copies);
	x = calloc(1, sizeof(*x));
	if (x && !path)
		x->piece = malloc(PIECE_BYTES);
	if (x && path)
		x->path = strdup(path);
	if (!x || (!x->piece && !x->path)) {
		free(x);
		return gpuq_no_memory(err);
	}
	x->m = m;
	x->call = c;
	m->n_copies++;
	rc = path ? backup_new_at(m->j, path, &x->backup, err) : backup_new(m->j, &x->backup, err);
	if (rc == 0)
		rc = worker_run(m->copies, make, made, x, err);
	if (rc < 0) {
		sending_free(x);
		return rc;
	}
	rpc_call_watch(c, path ? NULL : go_on, on_closed, x);
	return 0;
}

int m_backup_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	(void)params;
	return begin(arg, c, NULL, err);
}

struct write_params {
	const char *path;
};

static const struct gpuq_field write_fields[] = {
	P(write_params, "path", GPUQ_K_STR, path, .flags = GPUQ_F_REQUIRED, .min = 2, .max = 4000),
	P_END,
};
const struct gpuq_schema p_backup_write = P_SCHEMA(write_params, write_fields);

/* gpuqd may run as root: an operator other than root must not create files wherever root can. */
static bool is_allowed(const struct methods *m, const struct rpc_call *c, const char *path)
{
	const size_t n = m->backup_dir ? strlen(m->backup_dir) : 0;

	if (rpc_call_peer(c)->auth == RPC_AUTH_UNIX && rpc_call_peer(c)->uid == geteuid())
		return true;
	return n && strncmp(path, m->backup_dir, n) == 0 && path[n] == '/' && path[n + 1] &&
	       !strchr(path + n + 1, '/');
}

int m_backup_write(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct write_params *p = params;
	const struct methods *m = arg;

	if (is_allowed(m, c, p->path))
		return begin(arg, c, p->path, err);
	return gpuq_fail(
		err, GPUQ_EPERM,
		"%s: backups of this operator must be directly in backup_dir of gpuqd.yaml%s%s",
		p->path, m->backup_dir ? ", which is " : ", which is not set",
		m->backup_dir ? m->backup_dir : "");
}

/* ---- copies that were made ---- */

/* Instants of copies are wall time; on the wire all are ledger time. */
static struct gpuq_val *instant(const struct methods *m, struct gpuq_arena *a, int64_t wall_us)
{
	return wall_us ? gpuq_int(a, walltime_to_ledger(wall_us, loop_ahead_us(journal_loop(m->j))))
		       : gpuq_null(a);
}

static struct gpuq_val *word(struct gpuq_arena *a, const char *s)
{
	return s && *s ? gpuq_str(a, s) : gpuq_null(a);
}

static void put_log(const struct methods *m, struct gpuq_arena *a, struct gpuq_val *v,
		    const struct ship_state *s, bool all)
{
	char position[48];

	snprintf(position, sizeof(position), "%" PRIu32 "/%" PRIu64, s->epoch, s->seq);
	gpuq_put(a, v, "log_every_s", gpuq_int(a, s->every_us / 1000000));
	gpuq_put(a, v, "position", s->seq ? gpuq_str(a, position) : gpuq_null(a));
	gpuq_put(a, v, "log_time", instant(m, a, s->last_us));
	gpuq_put(a, v, "log_late", gpuq_bool(a, s->late));
	gpuq_put(a, v, "log_failed", gpuq_int(a, s->n_failed));
	gpuq_put(a, v, "log_failed_time", instant(m, a, s->failed_us));
	gpuq_put(a, v, "log_error", all ? word(a, s->why) : gpuq_null(a));
}

struct gpuq_val *view_backup(const struct methods *m, struct gpuq_arena *a, bool all)
{
	struct gpuq_val *v;
	struct rota_state s;

	if (!m->rota)
		return gpuq_null(a);
	s = rota_state(m->rota);
	v = gpuq_map(a);
	gpuq_put(a, v, "target", all ? gpuq_str(a, s.target) : gpuq_null(a));
	gpuq_put(a, v, "every_s", gpuq_int(a, s.every_us / 1000000));
	gpuq_put(a, v, "listed", gpuq_bool(a, s.listed));
	gpuq_put(a, v, "copies", gpuq_int(a, s.n_copies));
	gpuq_put(a, v, "last_time", instant(m, a, s.last_us));
	gpuq_put(a, v, "last_bytes", gpuq_int(a, s.last_bytes));
	gpuq_put(a, v, "overdue", gpuq_bool(a, s.overdue));
	gpuq_put(a, v, "failed", gpuq_int(a, s.n_failed));
	gpuq_put(a, v, "failed_time", instant(m, a, s.failed_us));
	gpuq_put(a, v, "last_error", all ? word(a, s.why) : gpuq_null(a));
	gpuq_put(a, v, "doing", word(a, s.doing));
	gpuq_put(a, v, "since", instant(m, a, s.since_us));
	gpuq_put(a, v, "late", gpuq_bool(a, s.late));
	put_log(m, a, v, s.has_log ? &s.log : &(struct ship_state){ .why = "" }, all);
	gpuq_put(a, v, "audited", word(a, s.audited));
	gpuq_put(a, v, "audit_time", instant(m, a, s.audited_us));
	gpuq_put(a, v, "audit", word(a, s.audit));
	gpuq_put(a, v, "damaged", gpuq_bool(a, s.damaged));
	gpuq_put(a, v, "audit_error", all ? word(a, s.audit_why) : gpuq_null(a));
	return v;
}

static struct gpuq_val *view_copy(const struct methods *m, struct gpuq_arena *a,
				  const struct shelf_copy *c)
{
	const struct manifest *is = &c->manifest;
	struct gpuq_val *v = gpuq_map(a);
	char position[48];

	snprintf(position, sizeof(position), "%" PRIu32 "/%" PRIu64, is->id.epoch, is->id.seq);
	gpuq_put(a, v, "name", gpuq_str(a, c->name));
	gpuq_put(a, v, "time", instant(m, a, c->sealed ? is->time_us : stamp_us(&c->stamp)));
	gpuq_put(a, v, "bytes", c->bytes < 0 ? gpuq_null(a) : gpuq_int(a, c->bytes));
	gpuq_put(a, v, "position", c->sealed ? gpuq_str(a, position) : gpuq_null(a));
	gpuq_put(a, v, "store", c->sealed ? gpuq_str(a, is->id.store_id) : gpuq_null(a));
	gpuq_put(a, v, "sha256", c->sealed ? gpuq_str(a, is->sha256) : gpuq_null(a));
	gpuq_put(a, v, "audit_time", instant(m, a, is->audited_us));
	gpuq_put(a, v, "audit", word(a, is->audit));
	return v;
}

static int no_rota(struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ENOENT,
			 "automatic backups are not configured: see backup in gpuqd.yaml(5)");
}

int m_backup_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *list = gpuq_list(a);
	const struct shelf *s;

	(void)params;
	if (!m->rota)
		return no_rota(err);
	if (!rota_state(m->rota).listed)
		return gpuq_fail(err, GPUQ_EBUSY, "%s has not been listed yet%s%s",
				 rota_state(m->rota).target, *rota_state(m->rota).why ? ": " : "",
				 rota_state(m->rota).why);
	s = rota_shelf(m->rota);
	for (size_t i = 0; i < s->n; i++)
		gpuq_add(a, list, view_copy(m, a, &s->items[i]));
	return rpc_send_items(c, list, err);
}

struct verify_params {
	const char *name;
};

static const struct gpuq_field verify_fields[] = {
	P(verify_params, "name", GPUQ_K_STR, name, .min = 1, .max = NAMES_BYTES - 1),
	P_END,
};
const struct gpuq_schema p_backup_verify = P_SCHEMA(verify_params, verify_fields);

struct verifying {
	struct methods *m;
	struct rpc_call *call;
};

static void verified(void *arg, int rc, const struct shelf_copy *c, const struct gpuq_err *err)
{
	struct verifying *x = arg;

	if (rc < 0)
		rpc_fail(x->call, err);
	else
		rpc_reply(x->call, view_copy(x->m, rpc_call_arena(x->call), c));
	free(x);
}

static void on_verify_closed(void *arg, int why)
{
	struct verifying *x = arg;
	struct gpuq_err err;

	rota_verify_drop(x->m->rota, x);
	gpuq_fail(&err, why, "cancelled");
	rpc_fail(x->call, &err);
	free(x);
}

int m_backup_verify(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct verify_params *p = params;
	struct methods *m = arg;
	struct verifying *x;
	int rc;

	if (!m->rota)
		return no_rota(err);
	x = calloc(1, sizeof(*x));
	if (!x)
		return gpuq_no_memory(err);
	x->m = m;
	x->call = c;
	rc = rota_verify(m->rota, p->name, verified, x, err);
	if (rc < 0) {
		free(x);
		return rc;
	}
	rpc_call_watch(c, NULL, on_verify_closed, x);
	return 0;
}
