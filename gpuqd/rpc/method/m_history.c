/* The method history.list, and the ended jobs of job.list: jobs are read from disk in steps, and those that
 * ended just now from memory. Called by the table of methods.c and by m_list.c. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/report/history_scan.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"

#define CHECK_US 20000 /* between two looks whether the history was checked */
#define MISSING_US 20000 /* between two looks for a job that is on its way to the disk */
#define MISSING_MAX 100 /* such looks: then it was forgotten meanwhile */

struct past {
	struct methods *m;
	struct rows *rows;
	const struct job_filter *f;
	struct history_scan *scan;
	struct loop_timer *timer;
	size_t sent, max; /* 0 = all */
	unsigned n_missing;
	bool was_sent;
	bool blocked; /* set by the reader, which then requests it */
	bool missing; /* the next job is neither in memory nor on disk yet */
	bool over; /* nothing more is to be scanned */
};

static int answer(struct past *x, bool sent)
{
	if (!sent) {
		x->blocked = true;
		return HISTORY_LATER;
	}
	x->sent++;
	return x->max && x->sent >= x->max ? HISTORY_ENOUGH : HISTORY_NEXT;
}

static int send(struct past *x, const struct gpuq_val *job)
{
	return answer(x, rows_object(x->rows, job));
}

static int send_live(struct past *x, struct job_key key)
{
	const struct model *model = journal_model(x->m->j);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct job *j = model_find_job(model, key);
	const struct gpuq_val *v;
	int said = HISTORY_NEXT;

	if (j)
		return answer(x, rows_job(x->rows, model, j, loop_now_us(journal_loop(x->m->j))));
	v = history_job(journal_store(x->m->j), key, &mem);
	if (v) {
		said = send(x, v);
	} else if (x->n_missing++ < MISSING_MAX) {
		x->missing = true;
		said = HISTORY_LATER;
	}
	gpuq_arena_done(&mem);
	return said;
}

static int on_job(void *arg, struct job_key key, const struct gpuq_val *job)
{
	struct past *x = arg;

	if (!job)
		return x->was_sent ? HISTORY_NEXT : send_live(x, key);
	return filter_val(x->f, job) ? send(x, job) : HISTORY_NEXT;
}

static void go_on(void *arg);

static void on_timer(void *arg)
{
	struct past *x = arg;

	x->timer = NULL;
	go_on(x);
}

static void go_on(void *arg)
{
	struct past *x = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = 0;

	if (x->timer)
		return; /* it has its turn */
	/* Other calls do not wait for the check of a long history at the start. */
	if (!x->over && !history_scan_may_read(journal_store(x->m->j))) {
		x->timer = loop_after(journal_loop(x->m->j), CHECK_US, on_timer, x);
		return;
	}
	x->blocked = x->missing = false;
	if (!x->over)
		rc = history_scan_run(journal_store(x->m->j), x->scan, PIECE_US, on_job, x, &err);
	x->over |= rc == 0;
	if (rc < 0)
		rows_fail(x->rows, &err);
	else if (x->over && rows_flush(x->rows))
		rows_end(x->rows);
	else if (!x->over && !x->blocked)
		x->timer =
			loop_after(journal_loop(x->m->j), x->missing ? MISSING_US : 0, on_timer, x);
}

static void closed(void *arg, int why)
{
	struct past *x = arg;
	struct gpuq_err err;

	loop_cancel(x->timer);
	x->timer = NULL;
	gpuq_fail(&err, why, "cancelled");
	rows_fail(x->rows, &err);
}

int past_send(struct methods *m, struct rows *rows, const struct job_filter *f,
	      struct history_live *live, size_t n_live, bool was_sent, size_t max,
	      struct gpuq_err *err)
{
	struct gpuq_arena *a = rpc_call_arena(rows->c);
	struct past *x = gpuq_arena_calloc(a, 1, sizeof(*x));
	struct job_key *ids = gpuq_arena_calloc(a, f->ids.n + 1, sizeof(*ids));
	const char **states = gpuq_arena_calloc(a, f->states.n + 1, sizeof(*states));
	struct gpuq_strlist words = { states, 0 };
	struct history_query q = { .names = &f->names,
				   .users = &f->users,
				   .queues = &f->queues,
				   .states = &words,
				   .ids = ids,
				   .since_us = f->since_us,
				   .until_us = f->overlaps ? 0 : f->until_us };

	if (!x || !ids || !states)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < f->ids.n; i++)
		if (job_id_parse(f->ids.items[i], &ids[q.n_ids]))
			job_id_resolve(m, &ids[q.n_ids++]);
	for (size_t i = 0; i < f->states.n; i++) {
		const int s = gpuq_job_state_parse(f->states.items[i]);

		if (s >= 0)
			states[words.n++] = gpuq_job_state_word((enum gpuq_job_state)s);
	}
	*x = (struct past){ .m = m, .rows = rows, .f = f, .max = max, .was_sent = was_sent };
	x->scan = history_scan_new(a, &q, live, n_live);
	if (!x->scan)
		return gpuq_no_memory(err);
	rpc_call_watch(rows->c, go_on, closed, x);
	x->over = (f->ids.n && !q.n_ids) || (f->states.n && !words.n); /* nothing is called so */
	go_on(x);
	return 0;
}

/* ---- history.list ---- */

struct start {
	struct methods *m;
	struct rows rows;
	const struct job_list_params *p;
};

/* Jobs that left memory in this turn are visible only once they are durable. */
static void start(void *arg, int rc, const struct gpuq_err *failed)
{
	struct start *x = arg;
	const struct model *model = journal_model(x->m->j);
	const struct job_filter *f = &x->p->filter;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct history_live *live;
	size_t n = 0;

	if (rc < 0) {
		rows_fail(&x->rows, failed);
		return;
	}
	for (int i = 0; i < N_GPUQ_JOB_STATES; i++)
		if (gpuq_job_state_ended((enum gpuq_job_state)i))
			n += model->n_jobs_by_state[i];
	live = gpuq_arena_calloc(rpc_call_arena(x->rows.c), n + 1, sizeof(*live));
	n = 0;
	for (int i = 0; live && i < N_GPUQ_JOB_STATES; i++) {
		const struct job *j;

		if (gpuq_job_state_ended((enum gpuq_job_state)i))
			DL_FOREACH2(model->jobs_by_state[i], j, state_next)
				if (filter_job(f, j))
					live[n++] =
						(struct history_live){ j->life->end_us, j->key };
	}
	if (!live)
		gpuq_no_memory(&err);
	else if (past_send(x->m, &x->rows, f, live, n, false, (size_t)f->limit, &err) == 0)
		return;
	rows_fail(&x->rows, &err);
}

int m_history_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	struct start *x = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*x));
	int rc;

	if (!x)
		return gpuq_no_memory(err);
	*x = (struct start){ .m = m, .p = params };
	rc = rows_init(&x->rows, c, &x->p->keys, err);
	if (rc == 0)
		journal_after(m->j, start, x);
	return rc;
}
