#include "gpuqd/rpc/m_ask.h"

#include <stdlib.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/core/snapshot_pack.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/flow/snap_guest.h"

/* Each has the state in its hands: on a large site that is memory. */
#define ASKED_MAX 16

void ask_drop(struct ask *a)
{
	gpuq_buf_done(&a->packed);
	gpuq_arena_done(&a->mem);
	free(a);
}

void ask_dropped(void *arg)
{
	ask_drop(arg);
}

struct ask *ask_new(struct methods *m, struct rpc_call *c, bool every_job, struct gpuq_err *err)
{
	const struct start_question about = { .n_jobs = 0 };
	struct ask *a = calloc(1, sizeof(*a));
	int rc;

	if (!a) {
		gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
		return NULL;
	}
	*a = (struct ask){ .m = m,
			   .call = c,
			   .packed = GPUQ_BUF_INIT,
			   .mem = GPUQ_ARENA_INIT(0),
			   .now_us = loop_now_us(journal_loop(m->j)) };
	if (every_job)
		rc = snapshot_take_packed(journal_model(m->j), a->now_us, &a->packed, NULL, err);
	else
		rc = snapshot_take_question(journal_model(m->j), a->now_us, &about, &a->packed,
					    NULL, err);
	if (rc == 0 && a->packed.failed)
		rc = gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	if (rc == 0)
		return a;
	ask_drop(a);
	return NULL;
}

static void work(void *arg)
{
	struct ask *a = arg;

	a->rc = a->fn(a, &a->err);
	if (a->rc == 0 && !gpuq_val_ok(a->answer))
		a->rc = gpuq_fail(&a->err, GPUQ_ENOMEM, "out of memory");
}

static void send(struct ask *a)
{
	struct gpuq_arena *mem = rpc_call_arena(a->call);
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (a->rc < 0)
		rpc_fail(a->call, &a->err);
	else if (!a->stream)
		rpc_reply(a->call, a->answer);
	/* Items leave as the client takes them, long after the question is gone. */
	else if (rpc_send_items(a->call, gpuq_val_copy(mem, a->answer), &err) < 0)
		rpc_fail(a->call, &err);
}

static void done(void *arg)
{
	struct ask *a = arg;

	a->m->n_asked--;
	if (a->call)
		send(a);
	ask_drop(a);
}

static void on_closed(void *arg, int why)
{
	struct ask *a = arg;
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(a->call, &err);
	a->call = NULL;
}

int ask_run(struct ask *a, ask_fn fn, struct gpuq_err *err)
{
	int rc;

	a->fn = fn;
	rpc_call_watch(a->call, NULL, on_closed, a);
	rc = a->m->n_asked < ASKED_MAX
		     ? worker_run(a->slow ? a->m->slow : a->m->quick, work, done, a, err)
		     : gpuq_fail(err, GPUQ_EBUSY, "%u such questions wait already: ask again",
				 a->m->n_asked);
	if (rc == 0) {
		a->m->n_asked++;
	} else {
		rpc_call_watch(a->call, NULL, NULL, NULL);
		ask_drop(a);
	}
	return rc;
}

int ask_open(const struct ask *a, struct snapshot **out, struct gpuq_err *err)
{
	struct rec r = { (const unsigned char *)a->packed.data,
			 (const unsigned char *)a->packed.data + a->packed.len, false };

	return snapshot_unpack(&r, out, err);
}

int ask_snapshot(const struct ask *a, struct snapshot **out, struct gpuq_err *err)
{
	struct snapshot *s = NULL;
	int rc = ask_open(a, &s, err);

	if (rc == 0)
		rc = snapshot_seal(s, err);
	if (rc == 0)
		*out = s;
	else
		snapshot_free(s);
	return rc;
}
