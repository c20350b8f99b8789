/* backup.get: everything that is stored, as one file in pieces. */
#include <stdlib.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/flow/backup.h"
#include "gpuqd/rpc/m_int.h"

#define PIECE_BYTES (128u << 10)
#define COPIES_MAX 2u /* at a time: each takes as much disk as the database */

struct sending {
	struct methods *m;
	struct rpc_call *call; /* NULL = nobody listens any more */
	struct backup *backup;
	int64_t at;
	unsigned char *piece;
	int rc;
	bool made;
	struct gpuq_err err;
};

static void sending_free(struct sending *x)
{
	x->m->n_copies--;
	backup_free(x->backup);
	free(x->piece);
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

static void go_on(void *arg)
{
	struct sending *x = arg;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	int64_t n = 1;

	/* Before it is made, credit is asked for nothing. */
	while (x->made && rpc_item_ready(x->call)) {
		struct gpuq_val *v;

		n = backup_read(x->backup, x->at, x->piece, PIECE_BYTES, &x->err);
		if (n <= 0)
			break;
		v = gpuq_map(&mem);
		gpuq_put(&mem, v, "data", gpuq_bin(&mem, x->piece, (size_t)n));
		rpc_item(x->call, v);
		x->at += n;
		gpuq_arena_reset(&mem);
	}
	gpuq_arena_done(&mem);
	if (n < 0)
		fail(x, &x->err);
	else if (n == 0)
		finish(x);
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

int m_backup_get(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	struct sending *x = calloc(1, sizeof(*x));
	int rc;

	(void)params;
	if (m->n_copies >= COPIES_MAX) {
		free(x);
		return gpuq_fail(err, GPUQ_EBUSY, "%u copies are under way already", m->n_copies);
	}
	if (x)
		x->piece = malloc(PIECE_BYTES);
	if (!x || !x->piece) {
		free(x);
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	}
	x->m = m;
	x->call = c;
	m->n_copies++;
	rc = backup_new(m->j, &x->backup, err);
	if (rc == 0)
		rc = worker_run(m->copies, make, made, x, err);
	if (rc < 0) {
		sending_free(x);
		return rc;
	}
	rpc_call_watch(c, go_on, on_closed, x);
	return 0;
}
