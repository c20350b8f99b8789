#include "gpuqd/flow/refusal/refusals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/flow/reconcile.h"
#include "gpuqd/flow/refusal/rejections.h"
#include "gpuqd/state/model.h"
#include "gpuqd/util/keyset.h"
#include "libgpuq/units.h"

/* A probe costs the apiserver one request; a try that a kubelet ends costs devices. */
#define PROBE_FIRST_US (2 * GPUQ_US_PER_S)
#define PROBE_MAX_US (30 * GPUQ_US_PER_S)
#define KUBELET_FIRST_US (60 * GPUQ_US_PER_S)
#define KUBELET_MAX_US (960 * GPUQ_US_PER_S)
/* A gate that is shut again within this time is not told anew, and goes on with its back-off unless it
 * was open for longer than its last pause and took pods: then it is another slip. */
#define SAME_US (600 * GPUQ_US_PER_S)
/* A job's own gate: after this many refused probes another of its jobs is tried. */
#define PROBES_ALONE 3

struct gate {
	UT_hash_handle hh;
	struct refusals *r;
	bool shut, asked, kubelet, passed;
	bool queues; /* it shut whole queues; since it opened */
	bool took; /* a pod of what it had shut, since it opened */
	int64_t since_us, next_us, opened_us;
	unsigned tries;
	struct loop_timer *timer;
	struct job_key tried; /* the last one that was released to be tried; id 0 none */
	struct keyset released; /* ids of the jobs that it let go on when it opened */
	char *namespace_, *object, *words;
	char key[];
};

struct refusals {
	struct journal *j;
	struct loop *l;
	struct cluster *cluster;
	struct gate *gates; /* in order of their first refusal */
	struct rejections *rejections;
};

static char *copy(const char *s)
{
	char *out = strdup(s);

	if (!out)
		abort(); /* as loop_after() */
	return out;
}

static const char *namespace_of(const struct refusals *r, const struct queue *q)
{
	const char *ns = order_namespace(q);

	return *ns || !r->cluster || !r->cluster->namespace_ ? ns : r->cluster->namespace_;
}

static bool concerns_queue(const struct gate *g, const struct queue *q)
{
	return q->refused && strcmp(q->refused->object, g->object) == 0 &&
	       strcmp(namespace_of(g->r, q), g->namespace_) == 0;
}

static bool concerns_job(const struct gate *g, const struct job *j)
{
	const struct blocked *b = j->life->blocked;

	return b && b->code == GPUQ_R_CLUSTER_REFUSED && strcmp(b->object, g->object) == 0 &&
	       strcmp(namespace_of(g->r, j->queue), g->namespace_) == 0;
}

static void apply(struct gate *g, struct event *ev)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (journal_apply(g->r->j, ev, &err) < 0)
		log_debug("refusal.skip", "error=%s", LOGS(err.text));
}

static void block_queue(struct gate *g, const struct queue *q, bool on)
{
	struct event ev = { .type = EV_QUEUE_REFUSED };

	ev.queue_refused.name = q->name;
	ev.queue_refused.object = on ? g->object : NULL;
	ev.queue_refused.words = g->words;
	apply(g, &ev);
}

static void block_job(struct gate *g, struct job_key key, bool on)
{
	struct event ev = { .type = EV_JOB_BLOCKED, .job = key };

	if (on) {
		ev.blocked.reason.code = GPUQ_R_CLUSTER_REFUSED;
		ev.blocked.reason.object = g->object;
		ev.blocked.words = g->words;
		ev.blocked.until_us = GPUQ_UNLIMITED; /* until the gate is opened */
	}
	apply(g, &ev);
}

static uint32_t n_waiting(const struct gate *g)
{
	const struct model *m = journal_model(g->r->j);
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_queues; i++)
		if (concerns_queue(g, m->queues[i]))
			n += m->queues[i]->n_pending;
	job_each(m, j) {
		if (j->state == GPUQ_JOB_PENDING && !j->ended && !j->queue->refused &&
		    concerns_job(g, j))
			n += j->array ? (uint32_t)j->array->n_waiting : 1;
	}
	return n;
}

static void fire(void *arg);

static void set_timer(struct gate *g, int64_t wait_us)
{
	loop_cancel(g->timer);
	g->next_us = loop_now_us(g->r->l) + wait_us;
	g->timer = loop_after(g->r->l, wait_us, fire, g);
}

static int64_t pause_us(const struct gate *g)
{
	int64_t wait = g->kubelet ? KUBELET_FIRST_US : PROBE_FIRST_US;
	const int64_t most = g->kubelet ? KUBELET_MAX_US : PROBE_MAX_US;

	for (unsigned i = 0; i < g->tries && wait < most; i++)
		wait *= 2;
	return wait < most ? wait : most;
}

static void later(struct gate *g)
{
	set_timer(g, pause_us(g));
}

/* Let the jobs go on. They are tried; a refusal shuts the gate again. */
static void open_gate(struct gate *g, const char *why)
{
	const struct model *m = journal_model(g->r->j);

	if (!g->shut)
		return;
	loop_cancel(g->timer);
	g->timer = NULL;
	g->shut = g->asked = g->passed = g->queues = g->took = false;
	g->opened_us = loop_now_us(g->r->l);
	log_notice("cluster.accepts", "object=%s namespace=%s refused_s=%" PRId64 ": %s",
		   LOGS(g->object), LOGS(g->namespace_),
		   (g->opened_us - g->since_us) / GPUQ_US_PER_S, why);
	for (uint32_t i = 0; i < m->n_queues; i++)
		if (concerns_queue(g, m->queues[i])) {
			block_queue(g, m->queues[i], false);
			g->queues = true;
		}
	job_each(m, j)
		if (concerns_job(g, j)) {
			block_job(g, j->key, false);
			keyset_add(&g->released, &j->key.id);
		}
	if (g->r->cluster && g->r->cluster->ops->refusal_forget)
		g->r->cluster->ops->refusal_forget(g->r->cluster, g->key);
}

/* Release one of the jobs, another one each time: what refuses one need not refuse the next. */
static void try_one(struct gate *g)
{
	const struct model *m = journal_model(g->r->j);
	const struct job *first = NULL, *next = NULL;

	job_each(m, j) {
		if (j->state != GPUQ_JOB_PENDING || j->array || !concerns_job(g, j))
			continue;
		if (!first)
			first = j;
		if (!next && (j->key.id > g->tried.id ||
			      (j->key.id == g->tried.id && j->key.index > g->tried.index)))
			next = j;
	}
	next = next ? next : first;
	if (!next)
		return;
	g->tried = next->key;
	block_job(g, next->key, false);
}

static void fire(void *arg)
{
	struct gate *g = arg;
	struct cluster *c = g->r->cluster;

	g->timer = NULL;
	g->next_us = 0;
	if (g->passed) {
		open_gate(g, "a pod of a refused job was accepted");
	} else if (n_waiting(g) == 0) {
		open_gate(g, "no job needs it");
	} else if (!g->kubelet && c && c->ops->refusal_probe && c->ops->refusal_probe(c, g->key)) {
		set_timer(g, PROBE_MAX_US); /* the reply comes first */
		g->asked = true;
	} else {
		g->tries++;
		try_one(g);
		later(g);
	}
}

static void on_probed(void *arg, const char *key, bool taken)
{
	struct refusals *r = arg;
	struct gate *g;

	HASH_FIND_STR(r->gates, key, g);
	if (!g || !g->shut)
		return;
	g->asked = false;
	if (taken) {
		open_gate(g, "a pod would be accepted again");
		return;
	}
	if (++g->tries >= PROBES_ALONE)
		try_one(g);
	later(g);
}

static void drop(struct gate *g)
{
	HASH_DEL(g->r->gates, g);
	loop_cancel(g->timer);
	keyset_clear(&g->released);
	free(g->namespace_);
	free(g->object);
	free(g->words);
	free(g);
}

/* Forget gates that have been open for so long that a new refusal would be reported again: users may name
 * ever new objects. */
static void drop_old(struct refusals *r)
{
	const int64_t now = loop_now_us(r->l);
	struct gate *g, *next;

	HASH_ITER(hh, r->gates, g, next)
		if (!g->shut && now - g->opened_us > SAME_US)
			drop(g);
}

static struct gate *gate_get(struct refusals *r, const struct refusal *why)
{
	struct gate *g;

	HASH_FIND_STR(r->gates, why->key, g);
	if (!g) {
		drop_old(r);
		g = calloc(1, sizeof(*g) + strlen(why->key) + 1);
		if (!g)
			abort();
		g->r = r;
		g->released.bytes = sizeof(uint32_t);
		memcpy(g->key, why->key, strlen(why->key) + 1);
		g->namespace_ = copy(why->namespace_);
		g->object = copy(why->object);
		HASH_ADD_STR(r->gates, key, g);
	}
	free(g->words);
	g->words = copy(why->words);
	return g;
}

/* Shut the gate. Returns true if operators do not know of it yet. */
static bool shut(struct gate *g, const struct refusal *why)
{
	const int64_t now = loop_now_us(g->r->l);
	const bool anew = !g->opened_us || now - g->opened_us > SAME_US;

	if (g->shut) {
		if (g->asked) /* the request that was asked about is replaced by this one */
			later(g);
		g->asked = false;
		return false;
	}
	g->shut = true;
	g->since_us = anew ? now : g->since_us;
	if (anew || (g->took && now - g->opened_us > pause_us(g)))
		g->tries = 0;
	else
		g->tries++;
	keyset_clear(&g->released);
	if (anew)
		log_warn("cluster.refused",
			 "object=%s namespace=%s message=%s: jobs that need it stay pending until "
			 "it is "
			 "repaired",
			 LOGS(g->object), LOGS(g->namespace_), LOGS(why->words));
	later(g);
	return anew;
}

/* An array's elements that were not tried yet need not be, either. */
static void block_array(struct gate *g, struct job_key key)
{
	const struct job_key master = { key.id, -1 };

	block_job(g, key, true);
	if (key.index >= 0 && model_find_job(journal_model(g->r->j), master))
		block_job(g, master, true);
}

static void note(struct refusals *r, struct job_key key, const struct refusal *why, bool kubelet)
{
	const struct model *m = journal_model(r->j);
	const struct job *j = model_find_job(m, key);
	struct event ev = { .type = EV_JOB_TROUBLE, .job = key };
	struct gate *g;

	if (!j)
		return;
	g = gate_get(r, why);
	g->kubelet = kubelet;
	ev.trouble.object = g->object;
	ev.trouble.words = g->words;
	ev.trouble.whose = TROUBLE_OPERATORS;
	ev.trouble.tell_site = shut(g, why);
	apply(g, &ev);
	if (why->scope == REFUSED_JOB) {
		block_array(g, key);
		return;
	}
	for (uint32_t i = 0; i < m->n_queues; i++) {
		const struct queue *q = m->queues[i];

		if (q == j->queue || (why->scope == REFUSED_NAMESPACE &&
				      strcmp(namespace_of(r, q), g->namespace_) == 0))
			block_queue(g, q, true);
	}
}

static void on_refused(void *arg, struct pod_key pod, const struct refusal *why)
{
	note(arg, pod.job, why, false);
}

static void on_rejected(void *arg, const struct pod_rejection *is)
{
	struct refusals *r = arg;

	rejections_note(r->rejections, is);
}

void refusals_missed(struct refusals *r, struct job_key job, const char *object, const char *words)
{
	const struct job *j = model_find_job(journal_model(r->j), job);
	struct gpuq_buf key = GPUQ_BUF_INIT;
	struct refusal why = { .scope = REFUSED_JOB, .object = object, .words = words };

	if (!j)
		return;
	why.namespace_ = namespace_of(r, j->queue);
	gpuq_buf_printf(&key, "kubelet %s %s", why.namespace_, object);
	why.key = gpuq_buf_str(&key);
	note(r, job, &why, true);
	gpuq_buf_done(&key);
}

/* True if the pod is one of those that an open gate had shut out. */
static bool had_shut(const struct gate *g, struct job_key key)
{
	const struct job *j;

	if (keyset_has(&g->released, &key.id))
		return true;
	j = g->queues ? model_find_job(journal_model(g->r->j), key) : NULL;
	return j && strcmp(namespace_of(g->r, j->queue), g->namespace_) == 0;
}

/* A pod that is created for a job that was let through proves the gate wrong, or one that runs
 * where kubelets refused. A site may name other objects. The gate is opened later: other
 * subscribers have not heard of the event yet. */
static void on_event(void *arg, const struct event *ev)
{
	struct refusals *r = arg;
	const bool created = ev->type == EV_POD_CREATED, started = ev->type == EV_POD_STARTED;

	if (!r->gates || (!created && !started && ev->type != EV_SITE_APPLIED))
		return;
	for (struct gate *g = r->gates; g; g = g->hh.next) {
		const bool pod = g->kubelet ? started : created;

		if (!g->shut) {
			g->took = g->took || (pod && had_shut(g, ev->pod.job));
			continue;
		}
		if (ev->type == EV_SITE_APPLIED || (g->tried.id && ev->pod.job.id == g->tried.id &&
						    ev->pod.job.index == g->tried.index && pod)) {
			g->passed = true;
			set_timer(g, 0);
		}
	}
}

void refusals_set_cluster(struct refusals *r, struct cluster *c)
{
	struct gate *g, *next;

	HASH_ITER(hh, r->gates, g, next)
		drop(g);
	r->cluster = c;
}

void refusals_each(const struct refusals *r, void (*fn)(void *arg, const struct refusal_view *v),
		   void *arg)
{
	for (const struct gate *g = r->gates; g; g = g->hh.next) {
		const struct refusal_view v = { g->object,   g->namespace_, g->words,
						g->since_us, g->next_us,    n_waiting(g) };

		if (g->shut)
			fn(arg, &v);
	}
}

int refusals_new(struct journal *j, struct reconcile *reconcile, struct refusals **out,
		 struct gpuq_err *err)
{
	struct refusals *r = calloc(1, sizeof(*r));

	if (!r)
		return gpuq_no_memory(err);
	r->j = j;
	r->l = journal_loop(j);
	r->rejections = rejections_new(j);
	if (!r->rejections) {
		free(r);
		return gpuq_no_memory(err);
	}
	journal_subscribe(j, on_event, r);
	reconcile_on_refused(reconcile,
			     &(struct reconcile_refusals){ r, on_refused, on_probed, on_rejected });
	*out = r;
	return 0;
}

void refusals_free(struct refusals *r)
{
	if (!r)
		return;
	refusals_set_cluster(r, NULL);
	rejections_free(r->rejections);
	free(r);
}
