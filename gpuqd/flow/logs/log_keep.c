#include "gpuqd/flow/logs/log_keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/dispatch.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/logs/kept.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/flow/told/pod_told.h"
#include "gpuqd/state/model.h"
#include "gpuqd/util/walltime.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

#define READERS_MAX 32u /* at a time: each is a connection to the apiserver */
#define WAITING_MAX 20000u /* pods that hold no device any more */
#define LONGEST_US (300 * GPUQ_US_PER_S) /* what has been read by then is kept */
#define SWEEP_US (60 * GPUQ_US_PER_S)

/* One pod: it waits, or is being read. */
struct reading {
	struct reading *prev, *next;
	struct log_keep *k;
	struct pod_key pod;
	char name[64];
	struct cluster_log *log; /* NULL = it waits */
	struct kept_write *file;
	struct loop_timer *over; /* the reading has ended, or took too long */
	int64_t time_us;
	char last[400]; /* the line that ends it; "" = none */
	bool cut; /* its last line has no end */
	bool follow; /* it still runs, and goes by itself once it has ended */
};

struct log_keep {
	struct journal *j;
	struct kept *kept;
	struct dispatch *dispatch;
	struct cluster *cluster;
	struct reading *all;
	unsigned n, n_open;
	struct loop_timer *sweep;
};

/* Return the rule of the nearest queue, from the job's own upwards, else the site's; NULL = nothing is kept. */
static const struct site_logs_keep *rule_of(const struct model *m, const struct job *j)
{
	for (const struct queue *q = j->queue; q; q = q->parent)
		if (q->site->logs_keep)
			return q->site->logs_keep;
	return m->site->logs_keep;
}

static struct reading *find(const struct log_keep *k, const struct pod_key *pod)
{
	struct reading *r;

	DL_FOREACH(k->all, r)
		if (memcmp(&r->pod, pod, sizeof(*pod)) == 0)
			return r;
	return NULL;
}

bool log_keep_holds(void *keep, const struct pod_key *pod)
{
	return find(keep, pod) != NULL;
}

static void start_more(struct log_keep *k);

static void stop(struct reading *r)
{
	if (r->log) {
		r->k->cluster->ops->log_close(r->log);
		r->k->n_open--;
	}
	r->log = NULL;
	loop_cancel(r->over);
	r->over = NULL;
}

/* Drop it from the list; its pod may go. */
static void finish(struct reading *r)
{
	struct log_keep *k = r->k;
	const struct job_key job = r->pod.job;

	stop(r);
	if (r->file && r->cut && r->last[0])
		kept_write_add(r->file, "\n", 1);
	if (r->file && r->last[0])
		kept_write_add(r->file, r->last, strlen(r->last));
	if (r->file)
		kept_write_end(r->file,
			       (loop_wall_us(journal_loop(k->j)) + r->time_us) / GPUQ_US_PER_S);
	DL_DELETE(k->all, r);
	k->n--;
	free(r);
	if (k->dispatch)
		dispatch_touch(k->dispatch, job);
}

static void on_over(void *arg)
{
	struct reading *r = arg;
	struct log_keep *k = r->k;

	r->over = NULL;
	finish(r);
	start_more(k);
	loop_kick(journal_loop(k->j));
}

static bool on_bytes(void *arg, const char *bytes, size_t n, const struct gpuq_err *err)
{
	struct reading *r = arg;
	const bool ended = n == 0;

	if (!ended)
		r->cut = bytes[n - 1] != '\n';

	if (err)
		log_info("logs.keep", "pod=%s error=%s", r->name, LOGS(err->text));
	if (!ended && kept_write_add(r->file, bytes, n))
		return true;
	/* Not from inside its callback. */
	loop_cancel(r->over);
	r->over = loop_after(journal_loop(r->k->j), 0, on_over, r);
	return false;
}

static void start(struct reading *r)
{
	struct log_keep *k = r->k;
	const struct model *m = journal_model(k->j);
	const struct pod *p = model_find_pod(m, r->pod);
	const struct site_logs_keep *rule = p ? rule_of(m, p->job) : NULL;
	const struct log_opts o = { .follow = r->follow,
				    .tail_lines = -1,
				    .timestamps = true,
				    .uid = UINT32_MAX,
				    .gid = UINT32_MAX };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_ref ref;

	if (rule) {
		r->time_us = rule->time_us;
		r->file = kept_write_new(k->kept, r->name, rule->bytes);
	}
	if (r->file) {
		order_ref(m, p->job, p, r->name, &ref);
		r->log = k->cluster->ops->log_open(k->cluster, &ref, &o, on_bytes, r, &err);
	}
	if (!r->log) {
		if (rule)
			log_warn("logs.keep", "pod=%s error=%s", r->name, LOGS(err.text));
		finish(r);
		return;
	}
	k->n_open++;
	/* One that is followed ends when its pod does, until which its job has all its grace period. */
	if (!r->follow)
		r->over = loop_after(journal_loop(k->j), LONGEST_US, on_over, r);
}

static void start_more(struct log_keep *k)
{
	struct reading *r, *next;

	DL_FOREACH_SAFE(k->all, r, next)
		if (k->cluster && k->n_open < READERS_MAX && !r->log)
			start(r);
}

/* Print by which line users of Slurm see that a script was ended, and why. The pod cannot write it itself. */
static void last_words(const struct log_keep *k, const struct pod *p, char out[400])
{
	const struct model *m = journal_model(k->j);
	const struct job *j = p->job;
	const char *why = p->index == 0 && p->attempt == j->attempt ? pod_told_reason(j) : NULL;
	const int64_t at_us = walltime_of(j->life->leave_us, m->ahead_us);
	const time_t t = (time_t)(at_us / GPUQ_US_PER_S);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_spec spec;
	char utc[32] = "", local[32] = "";
	struct tm tm;

	if (why && order_spec(journal_store(k->j), j->key.id, &mem, &spec, NULL) == 0 &&
	    spec.script && spec.slurm_env) {
		if (gmtime_r(&t, &tm))
			strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%S", &tm);
		if (localtime_r(&t, &tm))
			strftime(local, sizeof(local), "%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(out, 400,
			 "%s.%09" PRId64 "Z slurmstepd: error: *** JOB %" PRIu32
			 " ON %.200s CANCELLED AT %s%s%s ***\n",
			 utc, at_us % GPUQ_US_PER_S * 1000,
			 j->life->element_id ? j->life->element_id : j->key.id, p->node->name,
			 local, *why ? " DUE TO " : "", why);
	}
	gpuq_arena_done(&mem);
}

static void add(struct log_keep *k, const struct pod *p, bool follow)
{
	const struct model *m = journal_model(k->j);
	const struct pod_key key = model_pod_key(p);
	struct reading *r;

	if (!k->cluster || !rule_of(m, p->job) || k->n >= WAITING_MAX || find(k, &key))
		return;
	r = calloc(1, sizeof(*r));
	if (!r)
		abort();
	r->k = k;
	r->pod = key;
	r->follow = follow;
	model_pod_name(m, p, r->name);
	last_words(k, p, r->last);
	if (kept_has(k->kept, r->name)) {
		free(r);
		return;
	}
	DL_APPEND(k->all, r);
	k->n++;
}

static void on_event(void *arg, const struct event *ev)
{
	struct log_keep *k = arg;
	const struct pod *p;
	struct reading *r;

	if (ev->type != EV_POD_ENDED && ev->type != EV_POD_LEAVING)
		return;
	p = model_find_pod(journal_model(k->j), ev->pod);
	/* One that never ran has written nothing. */
	if (!p || !p->start_us)
		return;
	r = find(k, &ev->pod);
	if (r && ev->type == EV_POD_ENDED && r->log && r->follow) {
		loop_cancel(r->over);
		r->over = loop_after(journal_loop(k->j), LONGEST_US, on_over, r);
	}
	add(k, p, ev->type == EV_POD_LEAVING);
	start_more(k);
}

/* Pods that ended before this daemon began, or while there was no cluster. */
static void add_ended(struct log_keep *k)
{
	node_each(journal_model(k->j), n) {
		const struct pod *p;

		DL_FOREACH2(n->pods, p, node_next)
			if (p->start_us && !model_pod_takes(p) && p->state != GPUQ_POD_GONE)
				add(k, p, false);
	}
	start_more(k);
}

static bool is_known(void *arg, const char *pod)
{
	struct log_keep *k = arg;
	const struct model *m = journal_model(k->j);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct pod_key key;
	bool known;

	if (!model_pod_name_parse(m, pod, &key))
		return false;
	known = model_find_job(m, key.job) || history_job(journal_store(k->j), key.job, &mem);
	gpuq_arena_done(&mem);
	return known;
}

static void on_sweep(void *arg)
{
	struct log_keep *k = arg;
	struct loop *l = journal_loop(k->j);

	kept_sweep(k->kept, loop_wall_us(l) / GPUQ_US_PER_S, GPUQ_LOGS_KEPT_BYTES_MAX, is_known, k);
	k->sweep = loop_after(l, SWEEP_US, on_sweep, k);
}

int log_keep_new(struct journal *j, struct kept *kept, struct log_keep **out, struct gpuq_err *err)
{
	struct log_keep *k = calloc(1, sizeof(*k));

	if (!k)
		return gpuq_no_memory(err);
	*k = (struct log_keep){ .j = j, .kept = kept };
	journal_subscribe(j, on_event, k);
	k->sweep = loop_after(journal_loop(j), GPUQ_US_PER_S, on_sweep, k);
	*out = k;
	return 0;
}

void log_keep_set_dispatch(struct log_keep *k, struct dispatch *d)
{
	k->dispatch = d;
}

void log_keep_set_cluster(struct log_keep *k, struct cluster *c)
{
	struct reading *r, *next;

	DL_FOREACH_SAFE(k->all, r, next) {
		stop(r);
		if (r->file)
			kept_write_drop(r->file);
		DL_DELETE(k->all, r);
		free(r);
	}
	k->n = 0;
	k->cluster = c;
	if (c)
		add_ended(k);
}

void log_keep_free(struct log_keep *k)
{
	if (!k)
		return;
	log_keep_set_cluster(k, NULL);
	loop_cancel(k->sweep);
	free(k);
}
