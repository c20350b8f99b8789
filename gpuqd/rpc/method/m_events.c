/* event.list: what happened to a job, as written down with it; without a job, what
 * happened of late to everything, as far as this process remembers. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/state/view/joblog.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/report/joblog_read.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/wire/mp.h"

#define PIECE_US 5000 /* of one turn of the loop, for one list */

struct events_params {
	int64_t id, index, since_us, until_us;
};

static void defaults(void *obj)
{
	((struct events_params *)obj)->index = -1;
}

static const struct gpuq_field fields[] = {
	P(events_params, "id", GPUQ_K_INT, id, .min = 1, .max = UINT32_MAX),
	P(events_params, "index", GPUQ_K_INT, index, .min = -1, .max = INT32_MAX),
	P(events_params, "since_us", GPUQ_K_INT, since_us, .min = 0, .max = INT64_MAX),
	P(events_params, "until_us", GPUQ_K_INT, until_us, .min = 0, .max = INT64_MAX),
	P_END,
};
const struct gpuq_schema p_event_list = { .name = "params",
					  .size = sizeof(struct events_params),
					  .fields = fields,
					  .defaults = defaults };

/* ---- what happened of late ---- */

struct past_event {
	unsigned char *bytes; /* its view as MessagePack: a fifth of a tree's memory */
	uint32_t len;
	struct job_key job;
	int64_t at_us;
};

#define RECENT_MAX 4096

struct recent {
	struct past_event items[RECENT_MAX];
	uint64_t n; /* that there ever were: the newest is items[(n - 1) % RECENT_MAX] */
};

void recent_on_event(struct methods *m, const struct event *ev)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct past_event *slot;
	struct gpuq_val *v;

	/* Constant reports of cluster and clock are no news to a person. */
	if (!model_event_is_stored(ev->type) || ev->type == EV_NODE_SEEN ||
	    ev->type == EV_KEYS_EXPIRED || ev->type == EV_BESIDE_GONE || ev->type == EV_DEP_ENDED ||
	    ev->type == EV_HISTORY_EXPIRED || ev->type == EV_JOB_FRAGMENTED ||
	    ev->type == EV_NOTICES_DONE || ev->type == EV_CHARGES_EXPIRED ||
	    ev->type == EV_CLOCK_SET || ev->type == EV_TOKEN_ISSUED ||
	    ev->type == EV_TOKEN_REVOKED || ev->type == EV_TOKEN_USED ||
	    ev->type == EV_DEFAULT_RULED)
		return;
	if (!m->recent)
		m->recent = calloc(1, sizeof(*m->recent));
	v = joblog_event_view(&a, ev);
	if (m->recent && v)
		gpuq_mp_write(&b, v);
	gpuq_arena_done(&a);
	if (!m->recent || b.failed || !b.data) {
		gpuq_buf_done(&b);
		return; /* a convenience: no job depends on it */
	}
	slot = &m->recent->items[m->recent->n++ % RECENT_MAX];
	free(slot->bytes);
	slot->bytes = malloc(b.len);
	slot->len = slot->bytes ? (uint32_t)b.len : 0;
	slot->job = joblog_event_job(ev);
	slot->at_us = ev->at_us;
	if (slot->bytes)
		memcpy(slot->bytes, b.data, b.len);
	gpuq_buf_done(&b);
}

void recent_free(struct methods *m)
{
	for (size_t i = 0; m->recent && i < RECENT_MAX; i++)
		free(m->recent->items[i].bytes);
	free(m->recent);
	m->recent = NULL;
}

void recent_span(const struct methods *m, uint64_t *first, uint64_t *end)
{
	const struct recent *r = m->recent;

	*end = r ? r->n : 0;
	*first = *end > RECENT_MAX ? *end - RECENT_MAX : 0;
}

int recent_walk(const struct methods *m, uint64_t *at, uint64_t end, int64_t since_us,
		bool (*fn)(void *arg, struct job_key job, const struct gpuq_val *event), void *arg)
{
	const struct recent *r = m->recent;

	if (*at < end && r->n - *at > RECENT_MAX)
		return -1;
	for (; *at < end; ++*at) {
		const struct past_event *e = &r->items[*at % RECENT_MAX];
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_val *v =
			e->at_us > since_us && e->bytes ? history_read(&a, e->bytes, e->len) : NULL;
		const bool told = !v || fn(arg, e->job, v);

		gpuq_arena_done(&a);
		if (!told)
			return 0;
	}
	return 1;
}

/* ---- the list ---- */

struct listing {
	struct methods *m;
	struct rpc_call *c;
	const struct events_params *p;
	struct loop_timer *timer;
	uint64_t at; /* of recent */
	struct joblog_read log;
	struct gpuq_val *submitted; /* to be reported first; NULL = already reported */
	bool blocked;
};

static bool in_time(const struct listing *l, const struct gpuq_val *v)
{
	const int64_t at_us = gpuq_get_int(v, "time", 0);

	return at_us >= l->p->since_us && (!l->p->until_us || at_us <= l->p->until_us);
}

static bool tell(struct listing *l, const struct gpuq_val *v)
{
	if (!in_time(l, v))
		return true;
	l->blocked = !rpc_item(l->c, v);
	return !l->blocked;
}

static int on_entry(void *arg, const struct gpuq_val *v)
{
	return tell(arg, v) ? 0 : JOBLOG_LATER;
}

/* 1 = there is more, 0 = the end. */
static int tell_recent(struct listing *l)
{
	const struct recent *r = l->m->recent;
	const int64_t begun_us = loop_clock_us();

	if (r && r->n > RECENT_MAX && l->at < r->n - RECENT_MAX)
		l->at = r->n - RECENT_MAX;
	for (; r && l->at < r->n; l->at++) {
		const struct past_event *e = &r->items[l->at % RECENT_MAX];
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_val *v = e->bytes ? history_read(&a, e->bytes, e->len) : NULL;
		const bool told = !v || tell(l, v);

		gpuq_arena_done(&a);
		if (!told || loop_clock_us() - begun_us > PIECE_US)
			return 1;
	}
	return 0;
}

static void go_on(void *arg);

static void on_timer(void *arg)
{
	struct listing *l = arg;

	l->timer = NULL;
	go_on(l);
}

static void go_on(void *arg)
{
	struct listing *l = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = 1;

	if (l->timer)
		return; /* it has its turn */
	l->blocked = false;
	if (l->submitted && tell(l, l->submitted))
		l->submitted = NULL;
	if (!l->blocked)
		rc = l->p->id ? joblog_read_run(journal_store(l->m->j), &l->log, PIECE_US, on_entry,
						l, &err)
			      : tell_recent(l);
	if (rc < 0)
		rpc_fail(l->c, &err);
	else if (rc == 0)
		rpc_end(l->c, NULL);
	else if (!l->blocked)
		l->timer = loop_after(journal_loop(l->m->j), 0, on_timer, l);
}

static void closed(void *arg, int why)
{
	struct listing *l = arg;
	struct gpuq_err err;

	loop_cancel(l->timer);
	l->timer = NULL;
	gpuq_fail(&err, why, "cancelled");
	rpc_fail(l->c, &err);
}

/* The object of the job or, for an element, of the array that it is still part of. */
static struct gpuq_val *find_job(struct listing *l, struct job_key key)
{
	const struct model *model = journal_model(l->m->j);
	struct gpuq_arena *a = rpc_call_arena(l->c);
	const struct job *j = model_find_job(model, key);

	if (j)
		return view_job(a, model, j, loop_now_us(journal_loop(l->m->j)));
	return history_job(journal_store(l->m->j), key, a);
}

/* Entries of this turn are on disk only when it is durable. */
static void start(void *arg, int rc, const struct gpuq_err *failed)
{
	struct listing *l = arg;
	struct job_key key = job_id_of_call(l->m, l->p->id, l->p->index);
	struct gpuq_val *job = NULL;
	struct gpuq_err err;

	if (rc < 0) {
		rpc_fail(l->c, failed);
		return;
	}
	if (key.id) {
		job = find_job(l, key);
		if (!job && key.index >= 0)
			job = find_job(l, (struct job_key){ key.id, -1 });
		if (job && gpuq_get_int(job, "array_index", -1) != key.index &&
		    !job_had_element(job, key.index, rpc_call_arena(l->c)))
			job = NULL;
		if (!job) {
			no_such_job(key, &err);
			rpc_fail(l->c, &err);
			return;
		}
		l->submitted = joblog_submitted(rpc_call_arena(l->c), job);
		joblog_read_init(&l->log, key);
	}
	rpc_call_watch(l->c, go_on, closed, l);
	go_on(l);
}

int m_event_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	struct listing *l = gpuq_arena_calloc(rpc_call_arena(c), 1, sizeof(*l));

	if (!l)
		return gpuq_no_memory(err);
	l->m = m;
	l->c = c;
	l->p = params;
	journal_after(m->j, start, l);
	return 0;
}
