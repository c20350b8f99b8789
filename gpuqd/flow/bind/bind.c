#include "gpuqd/flow/bind/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/bind/claims.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

#define SOON_US (20 * INT64_C(1000)) /* several claims are bound in one moment */
#define TELL_US (5 * GPUQ_US_PER_S) /* a claim that is not bound by then is named to people */
#define TICK_US (5 * GPUQ_US_PER_S) /* what was requested longer ago is requested again */

struct waiting {
	UT_hash_handle hh;
	struct pod_key key;
	int64_t since_us; /* monotonic */
	int64_t asked_us; /* monotonic: when anything was last asked for it */
	bool binding; /* that was to bind it */
	size_t n_claims;
	struct {
		char *name;
		char *volume; /* that was chosen for it; NULL = none */
	} claims[];
};

struct bind {
	struct journal *j;
	struct loop *l;
	struct reconcile *reconcile;
	struct cluster *cluster;
	struct waiting *all;
	struct loop_timer *timer;
	bool soon; /* the timer is a short one */
	struct claims *devices;
};

static void drop(struct bind *b, struct waiting *w)
{
	HASH_DEL(b->all, w);
	for (size_t i = 0; i < w->n_claims; i++) {
		free(w->claims[i].name);
		free(w->claims[i].volume);
	}
	free(w);
}

static struct waiting *find(const struct bind *b, struct pod_key key)
{
	struct waiting *w = NULL;

	HASH_FIND(hh, b->all, &key, sizeof(key), w);
	return w;
}

static void let_go(struct bind *b, struct pod_key key)
{
	struct event ev = { .type = EV_POD_ENDED, .pod = key };

	ev.pod_ended.exit_code = -1;
	ev.pod_ended.message = "";
	journal_apply(b->j, &ev, NULL);
	ev = (struct event){ .type = EV_POD_GONE, .pod = key };
	journal_apply(b->j, &ev, NULL);
}

void bind_release(void *bind, struct job_key key)
{
	struct bind *b = bind;
	const struct model *m = journal_model(b->j);
	const struct job *j = model_find_job(m, key);
	struct pod_key *keys;
	const struct pod *p;
	size_t n = 0, all = 0;

	if (!j || !model_is_adopted(m, j))
		return;
	DL_FOREACH2(j->pods, p, job_next)
		all++;
	keys = calloc(all + 1, sizeof(*keys));
	if (!keys)
		abort();
	DL_FOREACH2(j->pods, p, job_next) {
		if (p->attempt != j->attempt || !model_pod_takes(p))
			continue;
		keys[n] = model_pod_key(p);
		if (!find(b, keys[n++]) && !model_pod_is_unmade(m, p))
			n = all + 1; /* it has its node: all of them leave */
		if (n > all)
			break;
	}
	for (size_t i = 0; n <= all && i < n; i++)
		let_go(b, keys[i]);
	free(keys);
	if (n <= all)
		reconcile_verdict(b->reconcile, key);
}

/* The volume, or the devices, of a claim are not where the job was placed: its next placement knows where they are.
 * why: the reason by which people know the kind. */
static void send_back(struct bind *b, const struct job *j, const char *claim, enum gpuq_reason why)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = j->key };

	log_notice("bind.elsewhere", "job=%" PRIu32 " claim=%s: %s", j->key.id, LOGS(claim),
		   why == GPUQ_R_DEVICE_CLAIM
			   ? "its devices are others, or on other nodes, than the job"
		   : why == GPUQ_R_VOLUME_NOT_FOUND ? "it is not there any more"
						    : "its volume is on other nodes than the job");
	ev.evict.cause = GPUQ_CAUSE_REQUEUE;
	ev.evict.rule = gpuq_reason_word(why);
	ev.evict.by = "";
	ev.evict.grace_us = 0;
	journal_apply(b->j, &ev, NULL);
	bind_release(b, j->key);
}

/* True if the volume was chosen for another claim, which is not yet seen to have it. */
static bool is_promised(const struct bind *b, const struct pod *to, const char *claim,
			const char *volume)
{
	const struct model *m = journal_model(b->j);

	for (const struct waiting *w = b->all; w; w = w->hh.next) {
		const struct pod *p = model_find_pod(m, w->key);

		for (size_t i = 0; p && i < w->n_claims; i++)
			if (w->claims[i].volume && strcmp(w->claims[i].volume, volume) == 0 &&
			    (strcmp(w->claims[i].name, claim) != 0 ||
			     strcmp(order_namespace(p->job->queue),
				    order_namespace(to->job->queue)) != 0))
				return true;
	}
	return false;
}

/* Return the smallest volume on the pod's node that the claim may have; NULL = there is none. */
static const struct object_fact *best_volume(const struct bind *b, const struct pod *p,
					     const struct pod_ref *ref, const char *claim)
{
	const struct objects *o = journal_model(b->j)->objects;
	const struct object_fact *best = NULL;

	for (const struct object_fact *v = NULL;
	     (v = objects_volume(o, ref->namespace_, claim, v)) != NULL;)
		if (objects_fits(v, p->node->name, &p->node->fact.labels) &&
		    (!best || v->size_bytes < best->size_bytes) &&
		    !is_promised(b, p, claim, v->name))
			best = v;
	return best;
}

/* True for a claim that the job names: its placement knew the volumes. One that is made for the pod
 * is waited for, as another node may have no volume either. */
static bool has_to_be_there(const struct pod *p, const char *claim)
{
	const struct gpuq_group *where = p->job->request->spec.groups[p->group].where;

	for (size_t i = 0; where && i < where->n_volumes; i++)
		if (strcmp(where->volumes[i].claim, claim) == 0)
			return true;
	return false;
}

/* Name the claim that a pod has been waiting for: its job starts, and nothing else tells why that takes long. */
static void tell(struct bind *b, const struct waiting *w, const struct pod *p, const char *claim)
{
	char words[320];

	if (loop_mono_us(b->l) - w->since_us < TELL_US)
		return;
	snprintf(words, sizeof(words), "volume claim %.253s is not bound yet", claim);
	reconcile_waits(b->reconcile, p, claim, words);
}

/* Look at one claim, and have the node written to it where that is still to be done. */
static enum progress settle(struct bind *b, struct waiting *w, size_t i, const struct pod *p,
			    const struct pod_ref *ref, bool again)
{
	const struct model *m = journal_model(b->j);
	const char *claim = w->claims[i].name;
	const struct object_fact *volume, *c;

	switch (objects_claim(m->objects, ref->namespace_, claim, &volume)) {
	case OBJECTS_CLAIM_FREE:
		return SETTLED;
	case OBJECTS_CLAIM_TIED:
		return objects_fits(volume, p->node->name, &p->node->fact.labels) ? SETTLED
										  : ELSEWHERE;
	case OBJECTS_CLAIM_CHOOSES:
		volume = best_volume(b, p, ref, claim);
		if (!volume)
			return has_to_be_there(p, claim) ? ELSEWHERE : WAITS;
		if (again) {
			w->asked_us = loop_mono_us(b->l);
			free(w->claims[i].volume);
			w->claims[i].volume = strdup(volume->name);
			b->cluster->ops->claim_volume(b->cluster, ref, claim, volume->name);
		}
		return WAITS;
	case OBJECTS_CLAIM_WAITS:
		c = objects_find(m->objects, OBJECT_CLAIM, ref->namespace_, claim);
		if (c && *c->volume)
			return objects_fits(volume, p->node->name, &p->node->fact.labels)
				       ? WAITS
				       : ELSEWHERE;
		if (c && strcmp(c->selected, p->node->name) != 0 && again) {
			w->asked_us = loop_mono_us(b->l);
			b->cluster->ops->claim_select(b->cluster, ref, claim);
		}
		return WAITS;
	case OBJECTS_CLAIM_MISSING: /* it was there when the job was placed, unless it is made for the pod */
		return has_to_be_there(p, claim) ? GONE : WAITS;
	default: /* it is being bound; or the start times out */
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
		const enum progress at = settle(b, w, i, p, &ref, again);

		if (at == ELSEWHERE || at == GONE) {
			send_back(b, p->job, w->claims[i].name,
				  at == GONE ? GPUQ_R_VOLUME_NOT_FOUND : GPUQ_R_VOLUME_PENDING);
			return false;
		}
		if (at == WAITS)
			tell(b, w, p, w->claims[i].name);
		settled &= at == SETTLED;
	}
	if (settled) {
		bool asked = false;
		const char *which = "";
		const enum progress at = claims_settle(b->devices, p, &ref, again, &asked, &which);

		if (asked)
			w->asked_us = loop_mono_us(b->l);
		if (at == ELSEWHERE) {
			send_back(b, p->job, which, GPUQ_R_DEVICE_CLAIM);
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
	       b->cluster->ops->claim_volume && !recovery_waits(journal_model(b->j)) &&
	       !model_is_fenced(journal_model(b->j));
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
	static const struct gpuq_strlist none;
	struct bind *b = arg;
	const struct pod *p;

	/* One that exists already: no report of it need follow. */
	if (ev->type == EV_POD_CREATED && journal_model(b->j)->origins) {
		p = model_find_pod(journal_model(b->j), ev->pod);
		if (p && model_pod_origin(journal_model(b->j), p))
			bind_seen(b, ev->pod, &none);
	}

	if (ev->type == EV_OBJECT_SEEN || ev->type == EV_OBJECT_GONE ||
	    ev->type == EV_OBJECTS_KNOWN || ev->type == EV_POD_CREATED)
		arm(b, true);
}

/* Pods that gpuqd did not make do not carry the names of their claims: those are in the ledger. */
static void own_claims(struct bind *b, struct pod_key key, struct gpuq_arena *mem,
		       const struct gpuq_strlist **claims)
{
	const struct model *m = journal_model(b->j);
	const struct pod *p = m->origins ? model_find_pod(m, key) : NULL;
	const struct origin_pod *o = p ? model_pod_origin(m, p) : NULL;
	struct gpuq_strlist *own = gpuq_arena_calloc(mem, 1, sizeof(*own));
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec spec;

	if (!o || !own)
		return;
	if (order_spec(journal_store(b->j), key.job.id, mem, &spec, &err) < 0 ||
	    order_claims(p->job, p, &spec, o->name, mem, own, &err) < 0)
		log_err("bind.spec", "job=%" PRIu32 " error=%s", key.job.id, LOGS(err.text));
	else
		*claims = own;
}

void bind_seen(void *bind, struct pod_key key, const struct gpuq_strlist *claims)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct bind *b = bind;
	struct waiting *w = NULL;

	HASH_FIND(hh, b->all, &key, sizeof(key), w);
	if (w && !claims)
		drop(b, w);
	if (w || !claims)
		return;
	own_claims(b, key, &mem, &claims);
	w = calloc(1, sizeof(*w) + claims->n * sizeof(*w->claims));
	if (!w)
		abort();
	w->key = key;
	w->since_us = loop_mono_us(b->l);
	for (; w->n_claims < claims->n; w->n_claims++) {
		w->claims[w->n_claims].name = strdup(claims->items[w->n_claims]);
		if (!w->claims[w->n_claims].name)
			abort();
	}
	gpuq_arena_done(&mem);
	HASH_ADD(hh, b->all, key, sizeof(w->key), w);
	arm(b, true);
}

void bind_set_cluster(struct bind *b, struct cluster *c)
{
	b->cluster = c;
	claims_set_cluster(b->devices, c);
}

int bind_new(struct journal *j, struct reconcile *r, struct bind **out, struct gpuq_err *err)
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
	b->reconcile = r;
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
