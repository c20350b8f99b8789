#include "gpuqd/flow/journal.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/store/store.h"
#include "gpuqd/state/record/model_apply.h"
#include "gpuqd/store/write.h"

#define SUBSCRIBERS_MAX 16

struct waiter {
	struct waiter *next;
	uint64_t seq;
	durable_fn fn;
	void *arg;
};

struct journal {
	struct loop *loop;
	struct store *store;
	struct model *model;
	struct journal_opts opts;
	struct {
		journal_event_fn fn;
		void *arg;
	} subs[SUBSCRIBERS_MAX];
	int n_subs;
	struct {
		void (*fn)(void *arg);
		void *arg;
	} durable_subs[SUBSCRIBERS_MAX];
	int n_durable_subs;
	uint64_t seq; /* of the batch being filled */
	uint64_t writing; /* 0 = none */
	uint64_t durable;
	bool read_only, failed;
	struct waiter *waiters, **waiters_end;
	struct journal_stats stats;
	uint64_t n_writing; /* records of the batch that is being written */
	int64_t since_us; /* when the writer got it; monotonic */
};

static void run_waiters(struct journal *j, uint64_t upto, int rc, const struct gpuq_err *err)
{
	struct waiter *w;

	while ((w = j->waiters) != NULL && w->seq <= upto) {
		j->waiters = w->next;
		if (!j->waiters)
			j->waiters_end = &j->waiters;
		w->fn(w->arg, rc, err);
		free(w);
	}
}

static void advance(struct journal *j, uint64_t seq)
{
	j->durable = seq;
	(void)FAILPOINT("journal.durable");
	run_waiters(j, seq, 0, NULL);
	(void)FAILPOINT("journal.answered");
	for (int i = 0; i < j->n_durable_subs; i++)
		j->durable_subs[i].fn(j->durable_subs[i].arg);
}

/* End of a turn: pass the changes to the writer, unless it is busy; then those of the next turns
 * join them, so that batches grow with the load. */
static void on_turn(void *arg)
{
	struct journal *j = arg;
	struct gpuq_err err;
	struct batch b;

	if (j->writing || j->failed)
		return;
	if (!model_is_dirty(j->model)) {
		/* A repeated call is answered from memory: the data must still be on disk. */
		if (j->waiters && store_is_there(j->store, &err) < 0) {
			j->failed = true;
			j->opts.broken(j->opts.arg, &err);
			return;
		}
		/* Nothing to write: what waits needs only what is durable already. A callback may
		 * wait or change something in turn: then the next turn comes at once. */
		advance(j, j->seq++);
		if (j->waiters || model_is_dirty(j->model))
			loop_kick(j->loop);
		return;
	}
	change_batch_init(&b);
	model_collect(j->model, &b);
	j->writing = j->seq++;
	j->n_writing = b.n;
	j->since_us = loop_clock_us();
	store_write(j->store, &b, j->writing);
}

static void count_batch(struct journal *j)
{
	struct journal_stats *s = &j->stats;

	s->n_batches++;
	s->n_records += j->n_writing;
	s->last_records = j->n_writing;
	s->last_us = loop_clock_us() - j->since_us;
	s->sum_us += s->last_us;
	if (s->last_records > s->most_records)
		s->most_records = s->last_records;
	if (s->last_us > s->most_us)
		s->most_us = s->last_us;
}

static void written(struct journal *j, uint64_t seq, int rc, const struct gpuq_err *err)
{
	j->writing = 0;
	if (rc == 0) {
		count_batch(j);
		advance(j, seq);
		return;
	}
	j->failed = true;
	if (rc != GPUQ_ESTORAGE) {
		j->opts.broken(j->opts.arg, err);
		return;
	}
	log_err("journal.no_space", "error=%s", LOGS(err->text));
	j->read_only = true;
	run_waiters(j, UINT64_MAX, rc, err);
	j->opts.no_space(j->opts.arg);
}

static void on_written(void *arg, uint64_t seq, int rc, const struct gpuq_err *err)
{
	struct journal *j = arg;
	const char *before = loop_enter(j->loop, LOOP_HERE);

	written(j, seq, rc, err);
	loop_leave(j->loop, before);
}

int journal_new(struct loop *l, struct store *st, struct model *m, const struct journal_opts *o,
		struct journal **out, struct gpuq_err *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	int rc;

	if (!j)
		return gpuq_no_memory(err);
	j->loop = l;
	j->store = st;
	j->model = m;
	j->opts = *o;
	j->seq = 1;
	j->waiters_end = &j->waiters;
	rc = store_attach(st, l, on_written, j, err);
	if (rc < 0) {
		free(j);
		return rc;
	}
	loop_add_hook(l, on_turn, j);
	*out = j;
	return 0;
}

void journal_free(struct journal *j)
{
	struct gpuq_err err;

	if (!j)
		return;
	gpuq_fail(&err, GPUQ_EGONE, "the daemon is shutting down");
	run_waiters(j, UINT64_MAX, GPUQ_EGONE, &err);
	free(j);
}

const struct model *journal_model(const struct journal *j)
{
	return j->model;
}

struct loop *journal_loop(const struct journal *j)
{
	return j->loop;
}

struct store *journal_store(const struct journal *j)
{
	return j->store;
}

void journal_set_model(struct journal *j, struct model *m)
{
	j->model = m;
	j->failed = false;
}

void journal_set_policy(struct journal *j, const struct policy *p)
{
	model_set_policy(j->model, p);
}

static int fenced(const struct journal *j, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_EBUSY,
			 "another gpuqd acts under this identity (%s): send changes there",
			 j->model->fenced_by);
}

int journal_apply(struct journal *j, struct event *ev, struct gpuq_err *err)
{
	int rc;

	if ((j->read_only || j->failed) && model_event_is_stored(ev->type))
		return gpuq_fail(err, GPUQ_ESTORAGE,
				 "no space left for the state directory: nothing can be changed "
				 "until space is free");
	if (model_is_fenced(j->model) && model_event_is_stored(ev->type))
		return fenced(j, err);
	if (ev->at_us == 0)
		ev->at_us = loop_now_us(j->loop);
	rc = model_apply(j->model, ev, err);
	if (rc < 0)
		return rc;
	for (int i = 0; i < j->n_subs; i++)
		j->subs[i].fn(j->subs[i].arg, ev);
	return 0;
}

void journal_subscribe(struct journal *j, journal_event_fn fn, void *arg)
{
	if (j->n_subs == SUBSCRIBERS_MAX)
		abort(); /* our own bug: daemon.c wires them at start */
	j->subs[j->n_subs].fn = fn;
	j->subs[j->n_subs++].arg = arg;
}

void journal_on_durable(struct journal *j, void (*fn)(void *arg), void *arg)
{
	if (j->n_durable_subs == SUBSCRIBERS_MAX)
		abort();
	j->durable_subs[j->n_durable_subs].fn = fn;
	j->durable_subs[j->n_durable_subs++].arg = arg;
}

void journal_after(struct journal *j, durable_fn fn, void *arg)
{
	struct waiter *w = calloc(1, sizeof(*w)), **at = &j->waiters;

	if (!w)
		abort();
	if (j->waiters && !j->writing)
		at = j->waiters_end; /* all wait for the same batch */
	/* The batch being written is enough when nothing came after it; the list stays in order of
	 * seq. */
	w->seq = j->writing && !model_is_dirty(j->model) ? j->writing : j->seq;
	w->fn = fn;
	w->arg = arg;
	while (*at && (*at)->seq <= w->seq)
		at = &(*at)->next;
	w->next = *at;
	*at = w;
	if (!w->next)
		j->waiters_end = &w->next;
}

uint64_t journal_seq(const struct journal *j)
{
	return j->seq;
}

uint64_t journal_durable(const struct journal *j)
{
	return j->durable;
}

void journal_stats(const struct journal *j, struct journal_stats *out)
{
	*out = j->stats;
	for (const struct waiter *w = j->waiters; w; w = w->next)
		out->n_waiting++;
}

bool journal_read_only(const struct journal *j)
{
	return j->read_only;
}

int journal_has_space(const struct journal *j, struct gpuq_err *err)
{
	if (j->read_only)
		return gpuq_fail(err, GPUQ_ESTORAGE,
				 "no space left for the state directory: nothing can be changed "
				 "until space is free");
	if (model_is_fenced(j->model))
		return fenced(j, err);
	return store_has_space(j->store, err);
}

void journal_writable(struct journal *j)
{
	j->read_only = false;
}

int journal_flush(struct journal *j, struct gpuq_err *err)
{
	struct batch b;
	int rc = 0;

	if (j->failed || j->read_only)
		return 0;
	change_batch_init(&b);
	model_collect(j->model, &b);
	if (b.n)
		rc = store_write_now(j->store, &b, err);
	change_batch_done(&b);
	j->writing = 0;
	run_waiters(j, UINT64_MAX, rc, err);
	return rc;
}
