#include "gpuqd/flow/advise/whatif.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/quota/overcommit.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/carry/carry.h"
#include "gpuqd/carry/obey.h"
#include "gpuqd/flow/carry_out.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/flow/advise/twin.h"
#include "libgpuq/grow.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"
#include "gpuqd/state/record/model_apply.h"

/* A cycle that evicts is followed by one that places; a longer chain of evictions is no useful
 * preview any more. */
#define CYCLES_MAX 64
#define WARNINGS_MAX 64
#define EXIT_TERMINATED 143

struct whatif {
	struct gpuq_arena mem;
	struct twin *twin;
	int64_t now_us;
	char *site;
	size_t site_len;
	/* while it runs */
	struct model *m;
	bool new_site; /* the second part */
	bool decided; /* this cycle decided something */
	struct whatif_victim *victims;
	size_t n_victims, room_victims;
	const char **warnings;
	size_t n_warnings;
	int64_t lost_us;
	bool cut_short;
	int rc;
	struct gpuq_err err;
};

int whatif_new(const struct journal *j, int64_t now_us, const void *site, size_t len,
	       struct whatif **out, struct gpuq_err *err)
{
	struct whatif *w = calloc(1, sizeof(*w));

	if (!w)
		return gpuq_no_memory(err);
	w->now_us = now_us;
	w->site = gpuq_arena_strndup(&w->mem, site, len);
	w->site_len = len;
	if (!w->site || twin_new(j, &w->twin, err) < 0) {
		whatif_free(w);
		return gpuq_no_memory(err);
	}
	*out = w;
	return 0;
}

void whatif_free(struct whatif *w)
{
	if (!w)
		return;
	twin_free(w->twin);
	gpuq_arena_done(&w->mem);
	free(w->victims);
	free(w);
}

/* ---- victims ---- */

static const char *copy(struct whatif *w, const char *s)
{
	const char *text = gpuq_arena_strdup(&w->mem, s ? s : "");

	return text ? text : "";
}

static int64_t devices_told(const struct job *j, const struct event *ev)
{
	const struct pod *p;
	int64_t milli = 0;

	DL_FOREACH2(j->pods, p, job_next) {
		bool is = ev->type == EV_JOB_EVICT_ASKED;

		for (uint32_t i = 0; !is && i < ev->evict.n_pods; i++)
			is = ev->evict.pods[i] == p->index;
		if (is && p->attempt == j->attempt && model_pod_takes(p))
			milli += p->gpus_milli;
	}
	return milli;
}

static int64_t lost_since(const struct whatif *w, const struct job *j, int64_t gpus_milli)
{
	int64_t us = j->life->start_us ? w->now_us - j->life->start_us : 0;

	if (us > 0 && j->wish->checkpoint_every_us > 0)
		us %= j->wish->checkpoint_every_us;
	return us > 0 ? us / 1000 * gpus_milli : 0; /* thousandths of devices x ms = device-us */
}

static void note_victim(struct whatif *w, const struct event *ev)
{
	const struct job *j = model_find_job(w->m, ev->job);
	struct whatif_victim *v;

	/* A job that was only started in the preview does not run. */
	if (!j || !w->new_site || j->life->placed_us >= w->now_us)
		return;
	if (!grow_to(&w->victims, &w->room_victims, w->n_victims + 1)) {
		w->rc = gpuq_no_memory(&w->err);
		return;
	}
	v = &w->victims[w->n_victims++];
	*v = (struct whatif_victim){ .key = ev->job,
				     .name = copy(w, j->name),
				     .user = copy(w, j->user),
				     .queue = copy(w, j->queue->name),
				     .flavor = copy(w, j->life->flavor),
				     .cause = ev->evict.cause,
				     .rule = copy(w, ev->evict.rule),
				     .by = copy(w, ev->evict.by),
				     .by_queue = copy(w, ev->evict.by_queue),
				     .gpus_milli = devices_told(j, ev),
				     .ran_us =
					     j->life->start_us ? w->now_us - j->life->start_us : 0,
				     .shrinks = ev->type == EV_JOB_SHRINK_ASKED };
	v->lost_us = v->shrinks ? 0 : lost_since(w, j, v->gpus_milli);
	w->lost_us += v->lost_us;
}

static void note_start(struct whatif *w, struct job_key key)
{
	for (size_t i = 0; i < w->n_victims; i++)
		if (w->victims[i].key.id == key.id && w->victims[i].key.index == key.index)
			w->victims[i].again = true;
}

static int decide(void *arg, struct event *ev, struct gpuq_err *err)
{
	struct whatif *w = arg;
	int rc;

	ev->at_us = w->now_us;
	if (ev->type == EV_JOB_EVICT_ASKED || ev->type == EV_JOB_SHRINK_ASKED)
		note_victim(w, ev);
	if (ev->type == EV_JOB_PLACED)
		note_start(w, ev->job);
	rc = model_apply(w->m, ev, err);
	w->decided |= rc == 0;
	return rc;
}

/* ---- effects on the cluster ---- */

static int happen(void *arg, struct event *ev, struct gpuq_err *err)
{
	struct whatif *w = arg;

	ev->at_us = w->now_us;
	return model_apply(w->m, ev, err);
}

static void obey(struct whatif *w)
{
	const struct obey_to to = { happen, w };
	bool all;

	job_each(w->m, j) {
		if (obey_leaves(j, &all))
			obey_end(&to, j, all, EXIT_TERMINATED, NULL);
		else if (model_job_is_live(j) && j->life->placed_us == w->now_us)
			obey_start(&to, j, NULL);
	}
}

/* ---- cycles ---- */

static void warn(struct whatif *w, const struct snapshot *s)
{
	struct overcommit at = { .queue = SNAP_NONE, .flavor = SNAP_NONE };
	char sum[32], has[32];

	while (w->n_warnings < WARNINGS_MAX && overcommit_next(s, &at)) {
		gpuq_milli_print(at.sum_milli, sum, sizeof(sum));
		gpuq_milli_print(at.has_milli, has, sizeof(has));
		w->warnings[w->n_warnings] =
			at.queue == SNAP_NONE
				? gpuq_arena_printf(&w->mem,
						    "the quotas at the top add up to %s %s: the "
						    "cluster has %s",
						    sum, s->flavors[at.flavor].name, has)
				: gpuq_arena_printf(&w->mem,
						    "the quotas below %s add up to %s %s: it has "
						    "%s",
						    s->queues[at.queue].name, sum,
						    s->flavors[at.flavor].name, has);
		if (w->warnings[w->n_warnings])
			w->n_warnings++;
	}
}

/* Warn of quotas that a queue can never use in full or lend as configured. */
static void warn_queues(struct whatif *w, const struct snapshot *s)
{
	char quota[32], other[32];

	for (uint32_t q = 0; q < s->n_queues; q++)
		for (uint32_t f = 0; f < s->n_flavors && w->n_warnings < WARNINGS_MAX; f++) {
			const struct snap_share *x = &s->shares[(size_t)q * s->n_res + f];
			const bool lends = x->lend != GPUQ_UNLIMITED && x->lend > x->quota;

			if (s->capacity[f] == 0 || x->quota == GPUQ_UNLIMITED ||
			    (!lends && x->quota <= x->limit))
				continue;
			gpuq_milli_print(x->quota, quota, sizeof(quota));
			gpuq_milli_print(lends ? x->lend : x->limit, other, sizeof(other));
			w->warnings[w->n_warnings] = gpuq_arena_printf(
				&w->mem,
				lends ? "queue %s has a quota of %s %s and lends %s"
				      : "queue %s has a quota of %s %s, beyond its limit of %s",
				s->queues[q].name, quota, s->flavors[f].name, other);
			if (w->warnings[w->n_warnings])
				w->n_warnings++;
		}
}

static int cycle(struct whatif *w, bool tell)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct snapshot *s = NULL;
	struct plan plan;
	int rc = snapshot_take(w->m, w->now_us, &s, &w->err);

	if (rc == 0 && tell) {
		warn(w, s);
		warn_queues(w, s);
	}
	if (rc == 0)
		rc = sched_cycle(s, &mem, &plan, &w->err);
	w->decided = false;
	if (rc == 0) {
		const struct carry_to to = { .apply = decide, .token = carry_out_token, .arg = w };

		carry_plan(&to, w->m, s, &plan, &mem);
		rc = w->rc;
	}
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return rc;
}

static int cycles(struct whatif *w)
{
	int rc = 0;

	for (int i = 0; rc == 0; i++) {
		if (i == CYCLES_MAX) {
			w->cut_short |= w->new_site;
			break;
		}
		obey(w);
		rc = cycle(w, w->new_site && i == 0);
		if (!w->decided)
			break;
	}
	return rc;
}

void whatif_run(struct whatif *w)
{
	struct event ev = { .type = EV_SITE_APPLIED, .at_us = w->now_us };

	ev.site.bytes = w->site;
	ev.site.len = w->site_len;
	ev.site.who = "";
	w->warnings = gpuq_arena_calloc(&w->mem, WARNINGS_MAX, sizeof(*w->warnings));
	w->rc = w->warnings ? twin_load(w->twin, &w->m, &w->err) : gpuq_no_memory(&w->err);
	if (w->rc == 0)
		w->rc = cycles(w);
	w->new_site = true;
	if (w->rc == 0)
		w->rc = model_apply(w->m, &ev, &w->err);
	if (w->rc == 0)
		w->rc = cycles(w);
	model_free(w->m);
	w->m = NULL;
}

int whatif_result(const struct whatif *w, struct whatif_result *out, struct gpuq_err *err)
{
	if (w->rc < 0) {
		if (err)
			*err = w->err;
		return w->rc;
	}
	*out = (struct whatif_result){ w->victims,  w->n_victims,  w->lost_us,
				       w->warnings, w->n_warnings, w->cut_short };
	return 0;
}
