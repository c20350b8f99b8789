#include "gpuqd/rpc/method/m_ask.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/snapshot/snapshot_pack.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/wire/wire.h"

/* Each has the state in its hands: on a large site that is memory. */
#define ASKED_MAX 16

void ask_drop(struct ask *a)
{
	if (a->drop_arg)
		a->drop_arg(a->arg);
	gpuq_buf_done(&a->packed);
	gpuq_buf_done(&a->items);
	gpuq_arena_done(&a->mem);
	free(a);
}

void ask_dropped(void *arg)
{
	ask_drop(arg);
}

struct ask *ask_bare(struct methods *m, struct rpc_call *c, struct gpuq_err *err)
{
	struct ask *a = calloc(1, sizeof(*a));

	if (!a) {
		gpuq_no_memory(err);
		return NULL;
	}
	*a = (struct ask){ .m = m,
			   .call = c,
			   .packed = GPUQ_BUF_INIT,
			   .items = GPUQ_BUF_INIT,
			   .mem = GPUQ_ARENA_INIT(0),
			   .now_us = loop_now_us(journal_loop(m->j)) };
	return a;
}

struct ask *ask_new(struct methods *m, struct rpc_call *c, const struct job_key *about,
		    struct gpuq_err *err)
{
	const struct start_question q = { .jobs = about, .n_jobs = about ? 1 : 0 };
	struct ask *a = ask_bare(m, c, err);
	int rc;

	if (!a)
		return NULL;
	rc = snapshot_take_question(journal_model(m->j), a->now_us, &q, &a->packed, NULL, err);
	if (rc == 0 && a->packed.failed)
		rc = gpuq_no_memory(err);
	if (rc == 0)
		return a;
	ask_drop(a);
	return NULL;
}

static void work(void *arg)
{
	struct ask *a = arg;

	a->rc = a->fn(a, &a->err);
	if (a->rc == 0 && (a->items.failed || (!a->then && !gpuq_val_ok(a->answer))))
		a->rc = gpuq_no_memory(&a->err);
}

/* ---- items: kept as bytes, a small part of what they take as values ---- */

void ask_item(struct ask *a, const struct gpuq_val *v)
{
	const size_t at = a->items.len;
	uint32_t n = 0;

	gpuq_buf_add(&a->items, &n, sizeof(n));
	if (gpuq_val_ok(v))
		gpuq_mp_write(&a->items, v);
	else
		a->items.failed = true;
	if (a->items.failed)
		return;
	n = (uint32_t)(a->items.len - at - sizeof(n));
	memcpy(a->items.data + at, &n, sizeof(n));
}

static void send_items(void *arg)
{
	struct ask *a = arg;
	struct rpc_call *call = a->call;
	struct gpuq_err err = GPUQ_ERR_INIT;
	uint32_t n;
	int rc = 0;

	while (rc == 0 && a->items_at < a->items.len) {
		struct gpuq_val *v;

		if (!rpc_item_ready(call))
			return;
		memcpy(&n, a->items.data + a->items_at, sizeof(n));
		gpuq_arena_reset(&a->mem);
		rc = gpuq_mp_read(&a->mem, &gpuq_wire_limits,
				  a->items.data + a->items_at + sizeof(n), n, &v, &err);
		if (rc == 0)
			rpc_item(call, v);
		a->items_at += sizeof(n) + n;
	}
	ask_drop(a);
	if (rc == 0)
		rpc_end(call, NULL);
	else
		rpc_fail(call, &err);
}

static void stream_closed(void *arg, int why)
{
	struct ask *a = arg;
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(a->call, &err);
	ask_drop(a);
}

static void stream(struct ask *a)
{
	rpc_call_watch(a->call, send_items, stream_closed, a);
	send_items(a);
}

/* ---- the thread has done its part ---- */

static void done(void *arg)
{
	struct ask *a = arg;

	a->m->n_asked--;
	if (a->call && a->rc == 0 && a->then) {
		a->then(a);
		return;
	}
	if (a->call && a->rc == 0)
		rpc_reply(a->call, a->answer);
	else if (a->call)
		rpc_fail(a->call, &a->err);
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
	if (a->stream)
		a->then = stream;
	rpc_call_watch(a->call, NULL, on_closed, a);
	rc = a->m->n_asked < ASKED_MAX
		     ? worker_run(a->slow ? a->m->slow : a->m->quick, work, done, a, err)
		     : gpuq_fail(err, GPUQ_EBUSY,
				 "%u such requests are pending already: retry later",
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
