#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/state/view/joblog.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/wire/mp.h"

/* job.wait: the state of each job now, each change, and at the end all of them. A job that just
 * ended may have left memory: it is read from history, which holds it once the turn's batch is
 * durable. Waiting calls are found by the job's number, and changes are sent step by step:
 * thousands of jobs may be waited for. */

struct wait_params {
	struct gpuq_strlist ids;
	int until;
};

static const char *const untils[] = { "end", "start", NULL };

static const struct gpuq_field wait_fields[] = {
	P(wait_params, "ids", GPUQ_K_STRLIST, ids, .flags = GPUQ_F_REQUIRED),
	P(wait_params, "until", GPUQ_K_ENUM, until, .names = untils),
	P_END,
};
const struct gpuq_schema p_job_wait = P_SCHEMA(wait_params, wait_fields);

/* The last reply lists these, all in one message. */
#define LISTED_MAX 500

struct waited {
	struct job_key key;
	struct wait *of;
	struct waited *prev, *next; /* all calls that wait for that job */
	struct waited *next_changed;
	uint64_t seq; /* what changed is on disk with this batch */
	bool changed; /* in the list of its wait */
	bool done;
	char last[96]; /* what was sent last, to send only changes */
};

struct waited_job {
	UT_hash_handle hh;
	uint32_t id;
	struct waited *list;
};

struct wait {
	struct wait *prev, *next;
	struct methods *m;
	struct rpc_call *c;
	struct loop_work *work;
	bool until_start;
	struct waited *jobs;
	size_t n, n_done;
	struct waited *changed, **changed_end; /* in the order of seq */
};

static struct waited *waited_by(const struct methods *m, uint32_t id)
{
	struct waited_job *x = NULL;

	HASH_FIND(hh, m->waited, &id, sizeof(id), x);
	return x ? x->list : NULL;
}

static void link_waited(struct methods *m, struct waited *x)
{
	struct waited_job *job = NULL;

	HASH_FIND(hh, m->waited, &x->key.id, sizeof(x->key.id), job);
	if (!job) {
		job = calloc(1, sizeof(*job));
		if (!job)
			abort(); /* as with loop_after(): no callback would come */
		job->id = x->key.id;
		HASH_ADD(hh, m->waited, id, sizeof(job->id), job);
	}
	DL_APPEND(job->list, x);
}

static void unlink_waited(struct methods *m, struct waited *x)
{
	struct waited_job *job = NULL;

	HASH_FIND(hh, m->waited, &x->key.id, sizeof(x->key.id), job);
	DL_DELETE(job->list, x);
	if (job->list)
		return;
	HASH_DEL(m->waited, job);
	free(job);
}

static void unlink_wait(struct wait *w)
{
	loop_work_cancel(w->work);
	for (size_t i = 0; i < w->n; i++)
		unlink_waited(w->m, &w->jobs[i]);
	DL_DELETE(w->m->waits, w);
	free(w->jobs);
	free(w);
}

static void note_changed(struct waited *x)
{
	struct wait *w = x->of;

	x->seq = journal_seq(w->m->j);
	if (x->changed || x->done)
		return;
	x->changed = true;
	x->next_changed = NULL;
	*w->changed_end = x;
	w->changed_end = &x->next_changed;
}

bool waits_attend(const struct methods *m, const struct job *j)
{
	const struct waited *x;

	DL_FOREACH(waited_by(m, j->key.id), x)
		if (strcmp(rpc_call_peer(x->of->c)->user, j->user) == 0)
			return true;
	return false;
}

/* Did anything happen that a watcher of key wants to know? */
void waits_on_event(struct methods *m, const struct event *ev)
{
	bool pod = ev->type == EV_POD_STARTED || ev->type == EV_POD_ENDED ||
		   ev->type == EV_POD_GONE || ev->type == EV_POD_CREATED;
	const struct job_key *key = pod ? &ev->pod.job : &ev->job;
	struct waited *x;

	if (!m->waited || (!pod && key->id == 0))
		return;
	DL_FOREACH(waited_by(m, key->id), x) {
		note_changed(x);
		methods_look_again(m);
	}
}

/* The job's object now, from memory or history; NULL when there is no such job. */
static struct gpuq_val *current(struct methods *m, struct job_key key, struct gpuq_arena *a,
				bool *ended)
{
	const struct model *model = journal_model(m->j);
	const struct job *j = model_find_job(model, key);
	struct gpuq_val *v;

	/* An element that left memory is found by its own number once that is durable. */
	if (!j)
		job_id_resolve(m, &key);
	if (!j && key.index >= 0) {
		j = model_find_job(model, (struct job_key){ key.id, -1 });
		if (j && !(j->array && model_element_waits(j->array, key.index)))
			j = NULL;
	}
	if (j) {
		*ended = j->ended;
		return view_job(a, model, j, loop_now_us(journal_loop(m->j)));
	}
	v = history_job(journal_store(m->j), key, a);
	*ended = v != NULL;
	return v;
}

static void digest(const struct gpuq_val *v, char out[96])
{
	const struct gpuq_val *ar = gpuq_get(v, "array");

	snprintf(out, 96, "%s %s %lld %lld", gpuq_get_str(v, "state", ""),
		 gpuq_get_str(v, "reason", ""), (long long)gpuq_get_int(v, "attempt", 0),
		 (long long)gpuq_get_int(ar, "n_waiting", 0));
}

static bool has_started(const struct gpuq_val *v)
{
	return gpuq_get_int(v, "start_time", 0) > 0;
}

/* Tell what changed. */
static void push(struct wait *w, struct waited *x)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	bool ended = false;
	struct gpuq_val *v = current(w->m, x->key, &mem, &ended);
	char now[96];

	if (v) {
		digest(v, now);
		if (strcmp(now, x->last) != 0) {
			memcpy(x->last, now, sizeof(now));
			rpc_item(w->c, v);
		}
		x->done = ended || (w->until_start && has_started(v));
	} else {
		x->done = true; /* pruned from history while we waited */
	}
	w->n_done += x->done;
	gpuq_arena_done(&mem);
}

static void finish(struct wait *w)
{
	struct gpuq_arena *a = rpc_call_arena(w->c);
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a);
	bool ended;

	for (size_t i = 0; i < w->n && w->n <= LISTED_MAX; i++)
		gpuq_add(a, list, current(w->m, w->jobs[i].key, a, &ended));
	gpuq_put(a, v, "jobs", list);
	rpc_end(w->c, v);
	w->work = NULL;
	unlink_wait(w);
}

/* The next one that changed. */
static bool step(void *arg)
{
	struct wait *w = arg;
	struct waited *x = w->changed;

	if (w->n_done == w->n) {
		finish(w);
		return false;
	}
	if (x && x->seq > journal_durable(w->m->j)) {
		methods_look_again(w->m);
		x = NULL;
	}
	if (!x || !rpc_item_ready(w->c)) {
		w->work = NULL;
		return false;
	}
	w->changed = x->next_changed;
	if (!w->changed)
		w->changed_end = &w->changed;
	x->changed = false;
	push(w, x);
	return true;
}

static void go_on(void *arg)
{
	struct wait *w = arg;

	if (!w->work && w->changed)
		w->work = loop_work_as(journal_loop(w->m->j), "job.wait", step, w);
}

static void on_closed(void *arg, int why)
{
	struct wait *w = arg;
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(w->c, &err);
	unlink_wait(w);
}

void waits_flush(struct methods *m)
{
	struct wait *w;

	DL_FOREACH(m->waits, w)
		go_on(w);
}

void waits_free(struct methods *m)
{
	struct wait *w, *next;

	DL_FOREACH_SAFE(m->waits, w, next)
		unlink_wait(w);
}

static int read_ids(struct wait *w, const struct gpuq_strlist *ids, struct gpuq_err *err)
{
	const struct model *m = journal_model(w->m->j);

	if (ids->n == 0)
		return gpuq_fail(err, GPUQ_EINVAL, "expected job ids");
	for (size_t i = 0; i < ids->n; i++) {
		struct job_key *key = &w->jobs[i].key;

		if (!job_id_parse(ids->items[i], key))
			return gpuq_fail(err, GPUQ_EINVAL,
					 "%s is not a job id: expected 17 or 17_3", ids->items[i]);
		job_id_resolve(w->m, key);
		if (key->id >= m->next_job_id)
			return gpuq_fail(err, GPUQ_ENOENT, "no such job: %s", ids->items[i]);
	}
	return 0;
}

int m_job_wait(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct wait_params *p = params;
	struct wait *w = calloc(1, sizeof(*w));
	int rc;

	if (w)
		w->jobs = calloc(p->ids.n ? p->ids.n : 1, sizeof(*w->jobs));
	if (!w || !w->jobs) {
		free(w);
		return gpuq_no_memory(err);
	}
	w->m = m;
	w->c = c;
	w->until_start = p->until == 1;
	w->changed_end = &w->changed;
	rc = read_ids(w, &p->ids, err);
	if (rc < 0) {
		free(w->jobs);
		free(w);
		return rc;
	}
	for (; w->n < p->ids.n; w->n++) {
		w->jobs[w->n].of = w;
		link_waited(m, &w->jobs[w->n]);
		note_changed(&w->jobs[w->n]);
	}
	DL_APPEND(m->waits, w);
	rpc_call_watch(c, go_on, on_closed, w);
	methods_look_again(m);
	return 0;
}

/* ---- event.watch: the same events for clients that want all of them ---- */

/* Kept for the slowest reader; a client that is farther behind has to list anew. */
#define NEWS_MAX 16384

/* Events since the first of the calls began, kept once for all of them: a call has a place in it,
 * so that one that reads nothing costs no more than one that does. */
struct news {
	struct news_item {
		unsigned char *bytes; /* its view as MessagePack */
		uint32_t len;
		struct job_key job;
	} items[NEWS_MAX];
	uint64_t n; /* that there ever were: the newest is items[(n - 1) % NEWS_MAX] */
};

struct watch {
	struct watch *prev, *next;
	struct methods *m;
	struct rpc_call *c;
	struct job_key job; /* id 0 = everything; index -1 = all of the job */
	uint64_t old_at, old_end; /* of what is remembered from before it began */
	uint64_t at; /* of the news */
	int64_t since_us;
	bool blocked; /* until there is credit */
};

struct watch_params {
	int64_t id, index, since_us;
};

static void watch_defaults(void *obj)
{
	((struct watch_params *)obj)->index = -1;
}

/* since_us: what happened after it comes first, as far as this process remembers. */
static const struct gpuq_field watch_fields[] = {
	P(watch_params, "id", GPUQ_K_INT, id, .min = 1, .max = UINT32_MAX),
	P(watch_params, "index", GPUQ_K_INT, index, .min = -1, .max = INT32_MAX),
	P(watch_params, "since_us", GPUQ_K_INT, since_us, .min = 0, .max = INT64_MAX),
	P_END,
};
const struct gpuq_schema p_event_watch = { .name = "params",
					   .size = sizeof(struct watch_params),
					   .fields = watch_fields,
					   .defaults = watch_defaults };

static void news_free(struct methods *m)
{
	for (size_t i = 0; m->news && i < NEWS_MAX; i++)
		free(m->news->items[i].bytes);
	free(m->news);
	m->news = NULL;
}

static void news_add(struct news *r, const struct event *ev)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct news_item *x = &r->items[r->n++ % NEWS_MAX];
	struct gpuq_val *v = joblog_event_view(&a, ev);

	if (v)
		gpuq_mp_write(&b, v);
	gpuq_arena_done(&a);
	free(x->bytes);
	x->bytes = b.failed || !b.len ? NULL : malloc(b.len);
	x->len = x->bytes ? (uint32_t)b.len : 0;
	x->job = joblog_event_job(ev);
	if (x->bytes)
		memcpy(x->bytes, b.data, b.len);
	gpuq_buf_done(&b);
}

static void watch_unlink(struct watch *w)
{
	struct methods *m = w->m;

	DL_DELETE(m->watches, w);
	free(w);
	if (!m->watches)
		news_free(m);
}

static void watch_drop(struct watch *w, int code, const char *text)
{
	struct gpuq_err err;

	gpuq_fail(&err, code, "%s", text);
	rpc_fail(w->c, &err);
	watch_unlink(w);
}

static bool is_watched(const struct watch *w, struct job_key key)
{
	return w->job.id == 0 ||
	       (key.id == w->job.id && (w->job.index < 0 || key.index == w->job.index));
}

static bool tell_news(void *arg, struct job_key key, const struct gpuq_val *v)
{
	const struct watch *w = arg;

	return !is_watched(w, key) || rpc_item(w->c, v);
}

/* As recent_walk. */
static int news_walk(struct watch *w)
{
	const struct news *r = w->m->news;

	if (r->n - w->at > NEWS_MAX)
		return -1;
	for (; w->at < r->n; w->at++) {
		const struct news_item *x = &r->items[w->at % NEWS_MAX];
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_val *v = x->bytes && is_watched(w, x->job)
					     ? history_read(&a, x->bytes, x->len)
					     : NULL;
		const bool told = !v || rpc_item(w->c, v);

		gpuq_arena_done(&a);
		if (!told)
			return 0;
	}
	return 1;
}

static void watch_resume(void *arg)
{
	struct watch *w = arg;
	int rc = recent_walk(w->m, &w->old_at, w->old_end, w->since_us, tell_news, w);

	if (rc > 0)
		rc = news_walk(w);
	w->blocked = rc == 0;
	if (rc < 0)
		watch_drop(w, GPUQ_ELAGGED, "events were lost: list and watch again");
}

void watches_on_event(struct methods *m, const struct event *ev)
{
	struct watch *w, *next;

	if (!m->watches || !model_event_is_stored(ev->type) || ev->type == EV_AUDITED ||
	    ev->type == EV_AUDIT_DROPPED || ev->type == EV_JOB_FRAGMENTED ||
	    ev->type == EV_NOTICES_DONE || ev->type == EV_CHARGES_EXPIRED ||
	    ev->type == EV_CLOCK_SET || ev->type == EV_TOKEN_ISSUED ||
	    ev->type == EV_TOKEN_REVOKED || ev->type == EV_TOKEN_USED ||
	    ev->type == EV_DEFAULT_RULED)
		return; /* estimates are no events; the audit is not for all users */
	news_add(m->news, ev);
	DL_FOREACH_SAFE(m->watches, w, next) {
		if (!w->blocked || m->news->n - w->at > NEWS_MAX)
			watch_resume(w);
	}
}

static void watch_closed(void *arg, int why)
{
	watch_drop(arg, why, "cancelled");
}

void watches_free(struct methods *m)
{
	struct watch *w, *next;

	DL_FOREACH_SAFE(m->watches, w, next)
		watch_unlink(w);
}

int m_event_watch(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct watch_params *p = params;
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return gpuq_no_memory(err);
	w->m = m;
	w->job = job_id_of_call(m, p->id, p->index);
	w->c = c;
	if (!m->news)
		m->news = calloc(1, sizeof(*m->news));
	if (!m->news) {
		free(w);
		return gpuq_no_memory(err);
	}
	w->at = m->news->n;
	if (p->since_us)
		recent_span(m, &w->old_at, &w->old_end);
	w->since_us = p->since_us;
	DL_APPEND(m->watches, w);
	rpc_call_watch(c, watch_resume, watch_closed, w);
	watch_resume(w);
	return 0;
}
