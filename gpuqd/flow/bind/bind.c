#include "gpuqd/flow/bind/bind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/bind/claims.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

#define SOON_US (20 * INT64_C(1000)) /* several claims are bound in one moment */
#define TICK_US (5 * GPUQ_US_PER_S) /* what was requested longer ago is requested again */

struct waiting {
	UT_hash_handle hh;
	struct pod_key key;
	int64_t asked_us; /* monotonic: when anything was last asked for it */
	bool binding; /* that was to bind it */
	size_t n_claims;
	char *claims[];
};

struct bind {
	struct journal *j;
	struct loop *l;
	struct cluster *cluster;
	struct waiting *all;
	struct loop_timer *timer;
	bool soon; /* the timer is a short one */
	struct claims *devices;
};

static void drop(struct bind *b, struct waiting *w)
{
	HASH_DEL(b->all, w);
	for (size_t i = 0; i < w->n_claims; i++)
		free(w->claims[i]);
	free(w);
}

/* The volume is not where the job was placed: its next placement knows where it is. */
static void send_back(struct bind *b, const struct job *j, const char *claim)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = j->key };

	log_notice("bind.elsewhere",
		   "job=%" PRIu32 " claim=%s: its volume is on other nodes than the job", j->key.id,
		   LOGS(claim));
	ev.evict.cause = GPUQ_CAUSE_REQUEUE;
	ev.evict.rule = gpuq_reason_word(GPUQ_R_VOLUME_PENDING);
	ev.evict.by = "";
	ev.evict.grace_us = 0;
	journal_apply(b->j, &ev, NULL);
}

/* Look at one claim, and have the node written to it where that is still to be done. */
static enum progress settle(struct bind *b, struct waiting *w, const struct pod *p,
			    const struct pod_ref *ref, const char *claim, bool again)
{
	const struct model *m = journal_model(b->j);
	const struct object_fact *volume, *c;

	switch (objects_claim(m->objects, ref->namespace_, claim, &volume)) {
	case OBJECTS_CLAIM_FREE:
		return SETTLED;
	case OBJECTS_CLAIM_TIED:
		return objects_fits(volume, p->node->name, &p->node->fact.labels) ? SETTLED
										  : ELSEWHERE;
	case OBJECTS_CLAIM_WAITS:
		c = objects_find(m->objects, OBJECT_CLAIM, ref->namespace_, claim);
		if (c && strcmp(c->selected, p->node->name) != 0 && again) {
			w->asked_us = loop_mono_us(b->l);
			b->cluster->ops->claim_select(b->cluster, ref, claim);
		}
		return WAITS;
	default: /* it is being bound, or has not been created yet; or the start times out */
		return WAITS;
	}
}

/* False: there is nothing to be done for it any more. */
static bool look(struct bind *b, struct waiting *w)
{
	const struct model *m = journal_model(b->j);
	const struct pod *p = model_find_pod(m, w->key);
	const bool again = !w->asked_us || loop_mono_us(b->l) - w->asked_us >= TICK_US;
	struct pod_ref ref;
	char name[64];
	bool settled = true;

	if (!p || p->state != GPUQ_POD_CREATED || p->leaving || p->dropped ||
	    p->attempt != p->job->attempt || !model_job_is_live(p->job) ||
	    model_job_is_over(p->job))
		return false;
	order_ref(m, p->job, p, name, &ref);
	for (size_t i = 0; i < w->n_claims; i++) {
		const enum progress at = settle(b, w, p, &ref, w->claims[i], again);

		if (at == ELSEWHERE) {
			send_back(b, p->job, w->claims[i]);
			return false;
		}
		settled &= at == SETTLED;
	}
	if (settled) {
		bool asked = false;
		const char *which = "";
		const enum progress at = claims_settle(b->devices, p, &ref, again, &asked, &which);

		if (asked)
			w->asked_us = loop_mono_us(b->l);
		if (at == ELSEWHERE) {
			send_back(b, p->job, which);
			return false;
		}
		settled = at == SETTLED;
	}
	if (!settled || (w->binding && !again))
		return true;
	w->asked_us = loop_mono_us(b->l);
	w->binding = true;
	b->cluster->ops->pod_bind(b->cluster, &ref);
	return true;
}

static bool may_act(const struct bind *b)
{
	return b->cluster && b->cluster->ops->pod_bind && b->cluster->ops->claim_select &&
	       !recovery_waits(journal_model(b->j)) && !model_is_fenced(journal_model(b->j));
}

static void arm(struct bind *b, bool soon);

static void on_timer(void *arg)
{
	struct bind *b = arg;
	struct waiting *w, *next;

	b->timer = NULL;
	b->soon = false;
	HASH_ITER(hh, b->all, w, next)
		if (may_act(b) && !look(b, w))
			drop(b, w);
	arm(b, false);
}

static void arm(struct bind *b, bool soon)
{
	if (!b->all || (b->timer && (b->soon || !soon)))
		return;
	loop_cancel(b->timer);
	b->soon = soon;
	b->timer = loop_after(b->l, soon ? SOON_US : TICK_US, on_timer, b);
}

static void on_event(void *arg, const struct event *ev)
{
	struct bind *b = arg;

	if (ev->type == EV_OBJECT_SEEN || ev->type == EV_OBJECT_GONE ||
	    ev->type == EV_OBJECTS_KNOWN || ev->type == EV_POD_CREATED)
		arm(b, true);
}

void bind_seen(void *bind, struct pod_key key, const struct gpuq_strlist *claims)
{
	struct bind *b = bind;
	struct waiting *w = NULL;

	HASH_FIND(hh, b->all, &key, sizeof(key), w);
	if (w && !claims)
		drop(b, w);
	if (w || !claims)
		return;
	w = calloc(1, sizeof(*w) + claims->n * sizeof(*w->claims));
	if (!w)
		abort();
	w->key = key;
	for (; w->n_claims < claims->n; w->n_claims++) {
		w->claims[w->n_claims] = strdup(claims->items[w->n_claims]);
		if (!w->claims[w->n_claims])
			abort();
	}
	HASH_ADD(hh, b->all, key, sizeof(w->key), w);
	arm(b, true);
}

void bind_set_cluster(struct bind *b, struct cluster *c)
{
	b->cluster = c;
	claims_set_cluster(b->devices, c);
}

int bind_new(struct journal *j, struct bind **out, struct gpuq_err *err)
{
	struct bind *b = calloc(1, sizeof(*b));

	if (!b)
		return gpuq_no_memory(err);
	b->devices = claims_new(j);
	if (!b->devices) {
		free(b);
		return gpuq_no_memory(err);
	}
	b->j = j;
	b->l = journal_loop(j);
	journal_subscribe(j, on_event, b);
	*out = b;
	return 0;
}

void bind_free(struct bind *b)
{
	struct waiting *w, *next;

	if (!b)
		return;
	HASH_ITER(hh, b->all, w, next)
		drop(b, w);
	loop_cancel(b->timer);
	claims_free(b->devices);
	free(b);
}
