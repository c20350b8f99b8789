#include "gpuqd/flow/copies/ship.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/store/segment.h"
#include "gpuqd/store/store.h"
#include "libgpuq/units.h"

#define LATE_LEAST_US (5 * GPUQ_US_PER_S)
#define STOP_US (2 * GPUQ_US_PER_S)

/* The work of the thread. */
struct load {
	struct batchlog_span *spans; /* that were put */
	size_t n;
	int64_t last_us;
	int rc;
	struct gpuq_err err;
};

struct ship {
	struct journal *j;
	struct batchlog *log;
	struct worker *worker;
	struct loop_timer *timer;
	struct ship_opts o;
	struct load load; /* the thread's until it is done */
	bool busy, listed;
	int64_t since_mono_us;
	uint32_t epoch;
	uint64_t reach;
	int64_t last_us;
	unsigned n_failed;
	int64_t failed_us;
	char why[sizeof(((struct gpuq_err *)0)->text)];
};

/* ---- on the thread ---- */

static int put(struct ship *s, const struct batchlog_file *f)
{
	struct load *l = &s->load;
	struct segment_name name = { .span = f->span };
	char hex[DIGEST_HEX_BYTES], text[NAMES_BYTES];
	struct segment seg = { .fd = -1 };
	int fd = batchlog_fd(s->log, f->name, &l->err), rc = fd < 0 ? fd : 0;

	if (rc == 0)
		rc = segment_open(&seg, fd, &l->err);
	if (rc == 0)
		rc = digest_file(fd, -1, hex, NULL, &l->err);
	if (rc == 0) {
		stamp_write(seg.head.begun_us, &name.stamp);
		snprintf(name.store, sizeof(name.store), "%.8s", seg.head.id.store_id);
		names_segment(s->o.prefix, &name, text);
		rc = target_put(s->o.target, text, fd, hex, true, &l->err);
	}
	if (rc == 0)
		segment_last(&seg, NULL, &l->last_us);
	segment_close(&seg);
	if (fd >= 0)
		close(fd);
	return rc;
}

static void work(void *arg)
{
	struct ship *s = arg;
	struct load *l = &s->load;
	struct batchlog_file *all = NULL;
	size_t n = 0;

	l->rc = batchlog_cut(s->log, &l->err);
	if (l->rc == 0)
		l->rc = batchlog_list(s->log, &all, &n, &l->err);
	l->spans = calloc(n + 1, sizeof(*l->spans));
	if (l->rc == 0 && !l->spans)
		l->rc = gpuq_no_memory(&l->err);
	for (size_t i = 0; l->rc == 0 && i < n; i++) {
		l->rc = put(s, &all[i]);
		if (l->rc < 0)
			break;
		batchlog_drop(s->log, all[i].name);
		l->spans[l->n++] = all[i].span;
	}
	free(all);
}

/* ---- on the loop ---- */

static void due(void *arg);

static void take(struct ship *s, const struct batchlog_span *p, bool *gap)
{
	if (p->epoch != s->epoch || p->last <= s->reach)
		return;
	*gap |= p->first > s->reach + 1;
	if (p->first <= s->reach + 1)
		s->reach = p->last;
}

static void done(void *arg)
{
	struct ship *s = arg;
	struct load *l = &s->load;
	bool gap = false;

	s->busy = false;
	for (size_t i = 0; i < l->n; i++)
		take(s, &l->spans[i], &gap);
	if (l->n)
		s->last_us = l->last_us;
	if (l->rc < 0) {
		log_err("backup.segment", "to=%s error=%s", LOGS(target_text(s->o.target)),
			LOGS(l->err.text));
		if (s->n_failed++ == 0)
			s->failed_us = loop_wall_us(journal_loop(s->j));
		snprintf(s->why, sizeof(s->why), "%s", l->err.text);
	} else {
		s->n_failed = 0;
		*s->why = '\0';
	}
	free(l->spans);
	l->spans = NULL;
	s->timer = loop_after(journal_loop(s->j), s->o.every_us, due, s);
	if (gap)
		s->o.gap(s->o.arg);
}

static void due(void *arg)
{
	struct ship *s = arg;

	s->timer = NULL;
	s->busy = true;
	s->since_mono_us = loop_mono_us(journal_loop(s->j));
	s->load = (struct load){ .err = GPUQ_ERR_INIT };
	s->load.rc = worker_run(s->worker, work, done, s, &s->load.err);
	if (s->load.rc < 0)
		done(s);
}

/* How far it reaches with what waits here. */
static uint64_t reach_here(const struct ship *s)
{
	struct batchlog_file *all = NULL;
	struct batchlog_span open;
	uint64_t to = s->reach;
	size_t n = 0;

	if (batchlog_list(s->log, &all, &n, NULL) < 0)
		return to;
	for (size_t i = 0; i < n; i++)
		to = batchlog_reach(&all[i].span, 1, s->epoch, to);
	free(all);
	open = batchlog_pending(s->log);
	return open.first ? batchlog_reach(&open, 1, s->epoch, to) : to;
}

bool ship_listed(struct ship *s, const struct shelf *shelf)
{
	const struct store_identity is = store_identity(journal_store(s->j));
	const uint64_t reach = shelf_reach(shelf, &is);

	if (s->epoch != is.epoch || reach > s->reach) {
		s->epoch = is.epoch;
		s->reach = reach;
	}
	if (!s->listed) {
		s->listed = true;
		s->timer = loop_after(journal_loop(s->j), 0, due, s);
	}
	/* Put while the list was on its way, it is neither here nor in the list. */
	return !s->busy && reach_here(s) < is.seq;
}

struct ship_state ship_state(const struct ship *s)
{
	const int64_t may_us = s->o.every_us > LATE_LEAST_US ? s->o.every_us : LATE_LEAST_US;

	return (struct ship_state){
		.every_us = s->o.every_us,
		.epoch = s->epoch,
		.seq = s->reach,
		.last_us = s->last_us,
		.late = s->busy && loop_mono_us(journal_loop(s->j)) - s->since_mono_us > may_us,
		.n_failed = s->n_failed,
		.failed_us = s->n_failed ? s->failed_us : 0,
		.why = s->why,
	};
}

int ship_new(struct journal *j, const struct ship_opts *o, struct ship **out, struct gpuq_err *err)
{
	struct ship *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return gpuq_no_memory(err);
	s->j = j;
	s->log = store_log(journal_store(j));
	s->o = *o;
	rc = worker_new(journal_loop(j), &s->worker, err);
	if (rc < 0) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

bool ship_stop(struct ship *s)
{
	if (!s)
		return true;
	loop_cancel(s->timer);
	s->timer = NULL;
	return worker_end_within(s->worker, STOP_US);
}

static void dropped(void *arg)
{
	free(((struct ship *)arg)->load.spans);
}

void ship_free(struct ship *s)
{
	if (!s)
		return;
	worker_free(s->worker, dropped);
	free(s);
}
