#include "gpuqd/flow/dispatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/asks/ask_end.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/notify.h"
#include "gpuqd/util/keyset.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/flow/told/pod_told.h"
#include "gpuqd/state/record/record.h"
#include "gpuqd/store/store.h"
#include "gpuqd/store/read.h"
#include "libgpuq/units.h"

#define TICK_US (500 * INT64_C(1000))
/* A pod that exists this long after its grace period will not end by itself soon. */
#define OVERDUE_US (30 * GPUQ_US_PER_S)
#define REMOVED_US (10 * GPUQ_US_PER_S) /* a node removes its ended pods in less */
#define STUCK_NODE_US (600 * GPUQ_US_PER_S)
#define KEPT_PODS_MAX 2000 /* finished pods that are kept for their logs, at most */

struct touched {
	UT_hash_handle hh;
	struct job_key key;
	uint64_t seq; /* of the batch that must be durable first */
};

/* Jobs with pods: few compared to the pending ones, which the timer need not visit. */
struct live {
	UT_hash_handle hh;
	struct job_key key;
	int64_t due_us; /* by then evicted pods must be gone; 0 = none */
	int64_t again_us; /* by then all pods that were signalled to end must be gone; 0 = none */
	int64_t removed_us; /* by then nodes should have removed ended pods; 0 = none */
	uint32_t warned; /* attempt signalled before its time limit, + 1; 0 = none */
	uint32_t left; /* attempt whose pods were told to leave, + 1; 0 = none */
};

/* Nodes with evicted pods that stayed long after their grace period. */
struct stuck {
	struct stuck *next;
	char node[];
};

struct dispatch {
	struct journal *j;
	struct loop *l;
	struct cluster *cluster;
	struct dispatch_opts opts;
	struct touched *todo;
	struct live *live;
	struct stuck *stuck;
	/* Pods that this process requested and that are not confirmed yet, and those that it told
	 * the cluster to forget. */
	struct keyset asked, forgotten;
	struct loop_timer *tick;
};

void dispatch_touch(struct dispatch *d, struct job_key key)
{
	struct touched *t = NULL;

	HASH_FIND(hh, d->todo, &key, sizeof(key), t);
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			abort();
		t->key = key;
		HASH_ADD(hh, d->todo, key, sizeof(t->key), t);
	}
	t->seq = journal_seq(d->j);
}

static struct live *live_add(struct dispatch *d, struct job_key key)
{
	struct live *l = NULL;

	HASH_FIND(hh, d->live, &key, sizeof(key), l);
	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		abort();
	l->key = key;
	HASH_ADD(hh, d->live, key, sizeof(l->key), l);
	return l;
}

static struct live *live_find(struct dispatch *d, struct job_key key)
{
	struct live *l = NULL;

	HASH_FIND(hh, d->live, &key, sizeof(key), l);
	return l;
}

static void live_drop(struct dispatch *d, struct live *l)
{
	HASH_DEL(d->live, l);
	free(l);
}

void dispatch_touch_all(struct dispatch *d)
{
	const struct model *m = journal_model(d->j);

	node_each(m, n) {
		const struct pod *p;

		DL_FOREACH2(n->pods, p, node_next) {
			live_add(d, p->job->key);
			dispatch_touch(d, p->job->key);
		}
	}
	loop_kick(d->l);
}

/* The spec is read at most once for all pods of a job. */
struct look {
	struct dispatch *d;
	const struct model *m;
	const struct job *j;
	struct gpuq_arena a;
	struct gpuq_spec spec;
	bool have_spec, no_spec;
};

static bool need_spec(struct look *k)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (k->have_spec || k->no_spec)
		return k->have_spec;
	if (order_spec(journal_store(k->d->j), k->j->key.id, &k->a, &k->spec, &err) == 0) {
		k->have_spec = true;
	} else {
		k->no_spec = true;
		log_err("dispatch.spec", "job=%" PRIu32 " error=%s", k->j->key.id, LOGS(err.text));
	}
	return k->have_spec;
}

static void create(struct look *k, const struct pod *p)
{
	struct event ev = { .type = EV_JOB_NOTHING_BESIDE, .job = k->j->key };
	const struct pod_key key = model_pod_key(p);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_order o;

	if (keyset_has(&k->d->asked, &key) || !need_spec(k))
		return;
	if (ask_keeps_back(k->m, p->node)) {
		dispatch_touch(k->d, k->j->key);
		return;
	}
	if (order_fill(k->m, k->j, p, &k->spec, k->d->opts.local, &k->a, &o, &err) < 0) {
		log_err("dispatch.order", "job=%" PRIu32 " error=%s", k->j->key.id, LOGS(err.text));
		return;
	}
	if (k->spec.code.digest && k->d->opts.code &&
	    k->d->opts.code(k->d->opts.code_arg, k->j->user, &k->spec.code, &k->a, &o) < 0) {
		dispatch_touch(k->d, k->j->key); /* at the next tick */
		return;
	}
	keyset_add(&k->d->asked, &key);
	/* The script of an array element is stored with the array. */
	ev.nothing_beside = o.n_pods == 1 && !job_is_elastic(k->j) &&
			    ((!k->spec.script && !k->spec.code.digest) || k->j->key.index >= 0);
	if (ev.nothing_beside != k->j->nothing_beside)
		journal_apply(k->d->j, &ev, NULL);
	(void)FAILPOINT("dispatch.create");
	k->d->cluster->ops->pod_create(k->d->cluster, &o);
}

static void fill_owner(const struct origin *o, struct owner_ref *out)
{
	*out = (struct owner_ref){
		.kind = o->kind, .name = o->name, .namespace_ = o->namespace_, .uid = o->uid
	};
}

/* The suspended owner is to make its first pod. */
static void start_owner(struct look *k, const struct pod *p, const struct origin *o)
{
	const struct pod_key key = model_pod_key(p);
	struct owner_ref owner;
	char name[64];

	if (keyset_has(&k->d->asked, &key) || !k->d->cluster->ops->owner_start)
		return;
	keyset_add(&k->d->asked, &key);
	fill_owner(o, &owner);
	model_pod_name(k->m, p, name);
	k->d->cluster->ops->owner_start(k->d->cluster, &owner, name);
}

/* A pod that was not submitted exists already: all it needs is its node, which flow/bind gives it. */
static void take(struct look *k, const struct pod *p, const struct origin_pod *o)
{
	struct event ev = { .type = EV_POD_CREATED, .pod = model_pod_key(p) };

	(void)FAILPOINT("dispatch.adopt");
	if (origin_is_suspended(o->of)) {
		start_owner(k, p, o->of);
		return;
	}
	ev.created.uid = o->uid;
	journal_apply(k->d->j, &ev, NULL);
}

/* Return the signal that lets an evicted job save its state; 0 = TERM alone. */
static int first_signal(const struct look *k, bool evicted)
{
	return k->have_spec && evicted ? k->spec.checkpoint.signal : 0;
}

/* Send a signal. The outcome is reported later; a signal that cannot be sent is reported at
 * once. With B: the signal of --signal is for the script's shell, before an eviction as before
 * the time limit. */
static void send_signal(struct look *k, const struct pod *p, struct pod_ref *ref, int signal)
{
	struct event ev = { .type = EV_POD_SIGNALLED, .pod = model_pod_key(p) };
	struct gpuq_err err = GPUQ_ERR_INIT;

	ref->first_only = k->have_spec && k->spec.signal_batch_only && signal == k->spec.signal;
	if (k->d->cluster->ops->pod_signal(k->d->cluster, ref, signal, &err) == 0)
		return;
	log_notice("job.not_signalled", "job=%" PRIu32 " pod=%s signal=%d why=%s", k->j->key.id,
		   ref->name, signal, LOGS(err.text));
	ev.signalled.signal = signal;
	ev.signalled.message = err.text;
	journal_apply(k->d->j, &ev, NULL);
}

/* Send the signal that the owner requested before the time limit. After a restart it may be sent
 * twice, rather than never. */
static void warn(struct look *k, const struct pod *p)
{
	struct pod_ref ref;
	char name[64];

	if (p->state != GPUQ_POD_RUNNING || p->leaving || !need_spec(k) || !k->spec.signal)
		return;
	order_ref(k->m, k->j, p, name, &ref);
	ref.warning = true;
	send_signal(k, p, &ref, k->spec.signal);
}

/* True if its owner would only start it again, to the same end. */
static bool ends_for_good(const struct job *j)
{
	return j->cancel_asked || j->life->leave_cause == GPUQ_CAUSE_LIMIT ||
	       j->life->leave_cause == GPUQ_CAUSE_IDLE;
}

void dispatch_leave(const struct model *m, struct cluster *c, const struct job *j,
		    const struct pod_ref *ref, int64_t grace_us)
{
	const struct origin *o = ref->gated ? origin_of(m->origins, j->key.id) : NULL;
	struct owner_ref owner;

	if (!o || !c->ops->owner_stop || model_owner_runs(m, j)) {
		c->ops->pod_delete(c, ref, grace_us);
		return;
	}
	fill_owner(o, &owner);
	owner.cancelled = ends_for_good(j) ? j->key.id : 0;
	c->ops->owner_stop(c, &owner, ref, grace_us);
}

static void tell_to_leave(struct look *k, const struct pod *p)
{
	struct event ev = { .type = EV_POD_LEAVING, .pod = model_pod_key(p), .told = true };
	struct live *l = live_find(k->d, k->j->key);
	struct pod_ref ref;
	char name[64];
	bool evicted = order_is_evicted(k->j) || p->dropped;
	int64_t grace_us;
	int signal;

	if (p->leaving && !(l && order_is_evicted(k->j) && l->left != k->j->attempt + 1))
		return;
	need_spec(k);
	order_ref(k->m, k->j, p, name, &ref);
	grace_us = order_grace_us(k->j, evicted, k->have_spec ? &k->spec : NULL);
	signal = first_signal(k, evicted);
	/* Others have told it, for the same reason that the job leaves for. After a restart it may have
	 * been gpuqd: the signal is sent twice, rather than never. */
	if (p->leaving) {
		if (signal && p->state == GPUQ_POD_RUNNING && p->attempt == k->j->attempt)
			send_signal(k, p, &ref, signal);
		return;
	}
	journal_apply(k->d->j, &ev, NULL);
	if (l)
		l->again_us = loop_now_us(k->d->l) + grace_us + OVERDUE_US;
	if (l && evicted)
		l->due_us = l->again_us;
	(void)FAILPOINT("dispatch.delete");
	if (signal)
		send_signal(k, p, &ref, signal);
	(void)FAILPOINT("dispatch.signalled");
	ref.reason = pod_told_reason(k->j);
	dispatch_leave(k->m, k->d->cluster, k->j, &ref, grace_us);
}

/* True if the list of pods may have changed. */
static bool forget(struct look *k, const struct pod *p)
{
	const struct pod_key key = model_pod_key(p);
	struct event gone = { .type = EV_POD_GONE, .pod = key };
	struct pod_ref ref;
	char name[64];

	if (keyset_has(&k->d->forgotten, &key) ||
	    (k->d->opts.holds && k->d->opts.holds(k->d->opts.holds_arg, &key)))
		return false;
	if (model_pod_origin(k->m, p)) { /* its owner counts those that have ended */
		journal_apply(k->d->j, &gone, NULL);
		return true;
	}
	order_ref(k->m, k->j, p, name, &ref);
	keyset_add(&k->d->forgotten, &key);
	(void)FAILPOINT("dispatch.forget");
	k->d->cluster->ops->pod_forget(k->d->cluster, &ref);
	return false;
}

/* True if the node will remove a signalled pod when it has ended. A removal by gpuqd would cost the
 * server one more request per pod, just when it has the most to do. */
static bool goes_by_itself(struct look *k, const struct pod *p, int64_t now)
{
	struct live *l = live_find(k->d, k->j->key);

	if (!l || !p->leaving || !k->d->cluster->ops->nodes_remove ||
	    order_has_finalizer(k->j->queue))
		return false;
	if (!l->removed_us)
		l->removed_us = now + REMOVED_US;
	return now < l->removed_us;
}

static bool keep_finished(const struct dispatch *d, const struct job *j, int64_t now)
{
	return j->ended && now < j->life->end_us + d->opts.finished_pod_keep_us &&
	       journal_model(d->j)->n_jobs_by_state[GPUQ_JOB_COMPLETED] < KEPT_PODS_MAX;
}

static void look(struct dispatch *d, const struct job *j)
{
	struct look k = { .d = d, .m = journal_model(d->j), .j = j };
	int64_t now = loop_now_us(d->l);
	bool leaving = model_job_is_over(j);
	bool keep = keep_finished(d, j, now);
	const struct job_key key = j->key;
	const struct origin_pod *origin;
	const struct pod *p, *next;
	struct live *l = j->warned ? live_add(d, j->key) : live_find(d, j->key);

	/* A cluster never calls back from within a request, so the list does not change. */
	DL_FOREACH_SAFE2(j->pods, p, next, job_next) {
		bool current = p->attempt == j->attempt && model_job_is_live(j);

		if (p->state == GPUQ_POD_GONE)
			continue;
		if (!model_pod_takes(p)) {
			/* An attempt that will be tried again need not be kept; one without a
			 * verdict must be. */
			if (((!current && (!keep || p->leaving)) || p->dropped) &&
			    !goes_by_itself(&k, p, now) && forget(&k, p)) {
				dispatch_touch(d, key); /* the others are next */
				gpuq_arena_done(&k.a);
				return;
			}
		} else if (leaving || !current || p->dropped) {
			tell_to_leave(&k, p);
		} else if (p->state == GPUQ_POD_PLANNED) {
			origin = model_pod_origin(k.m, p);
			/* An earlier version let the number of pods of others be changed: gpuqd
			 * makes none beside them. */
			if (origin)
				take(&k, p, origin);
			else if (!model_is_adopted(k.m, j))
				create(&k, p);
		} else if (j->warned && l->warned != j->attempt + 1) {
			warn(&k, p);
		}
	}
	if (j->warned)
		l->warned = j->attempt + 1;
	if (l && leaving)
		l->left = j->attempt + 1;
	if (l && now >= l->removed_us)
		l->removed_us = 0;
	gpuq_arena_done(&k.a);
}

/* ---- what jobs that have left memory left beside their pods ---- */

static int forget_one(void *arg, const unsigned char *key, size_t key_len, const unsigned char *val,
		      size_t val_len)
{
	struct dispatch *d = arg;
	char namespace_[64];
	uint32_t id;
	int64_t index;

	if (change_key_job_read(key, key_len, &id, &index) &&
	    record_beside_read(val, val_len, namespace_))
		d->cluster->ops->job_forget(d->cluster, id, index, namespace_);
	return 0;
}

static void forget_job(struct dispatch *d, struct job_key job)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	size_t n = change_key_cluster(key, change_key_job(key, job.id, job.index), CLUSTER_DEFAULT);
	struct gpuq_buf val = GPUQ_BUF_INIT;

	if (!d->cluster->ops->job_forget)
		return;
	if (store_get(journal_store(d->j), TABLE_BESIDE, key, n, &val, NULL) == 0)
		forget_one(d, key, n, (const unsigned char *)val.data, val.len);
	gpuq_buf_done(&val);
}

/* Forget pods that were not forgotten when the last cluster, or daemon, ended. */
static void forget_all(struct dispatch *d)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (d->cluster->ops->job_forget && store_each(journal_store(d->j), TABLE_BESIDE, NULL, 0,
						      NULL, 0, false, 0, forget_one, d, &err) < 0)
		log_err("dispatch.forget", "error=%s", LOGS(err.text));
}

/* True if nothing may be requested: the running pods are not known, or another daemon acts. */
static bool must_wait(const struct dispatch *d)
{
	const struct model *m = journal_model(d->j);

	return recovery_waits(m) || model_is_fenced(m);
}

static void on_durable(void *arg)
{
	struct dispatch *d = arg;
	const struct cluster_ops *ops;
	struct touched *t, *next;

	if (!d->cluster || must_wait(d))
		return;
	ops = d->cluster->ops;
	HASH_ITER(hh, d->todo, t, next) {
		const struct job_key key = t->key;
		const struct job *j;

		if (t->seq > journal_durable(d->j))
			continue;
		/* Continue when some requests are answered, which is an event, or at the next
		 * tick. */
		if (ops->busy && ops->busy(d->cluster))
			break;
		j = model_find_job(journal_model(d->j), key);
		HASH_DEL(d->todo, t);
		free(t);
		if (j)
			look(d, j);
		else
			forget_job(d, key);
	}
}

static void on_event(void *arg, const struct event *ev)
{
	struct dispatch *d = arg;

	if (ev->type == EV_POD_CREATED || ev->type == EV_POD_ENDED || ev->type == EV_POD_GONE)
		keyset_remove(&d->asked, &ev->pod);
	if (ev->type == EV_POD_GONE)
		keyset_remove(&d->forgotten, &ev->pod);
	switch (ev->type) {
	case EV_JOB_PLACED:
		live_add(d, ev->job);
		dispatch_touch(d, ev->job);
		break;
	case EV_JOB_CANCEL_ASKED:
	case EV_JOB_EVICT_ASKED:
	case EV_JOB_SHRINK_ASKED:
	case EV_JOB_GROWN:
	case EV_JOB_REQUEUED:
	case EV_JOB_WARNED:
	case EV_JOB_FILLED:
		dispatch_touch(d, ev->job);
		break;
	case EV_JOB_ENDED:
		dispatch_touch(d, ev->job);
		dispatch_touch(d, (struct job_key){ ev->job.id, -1 });
		break;
	case EV_POD_CREATED:
	case EV_POD_ENDED:
		dispatch_touch(d, ev->pod.job);
		break;
	case EV_JOB_RECOVERED:
		live_add(d, ev->job);
		dispatch_touch(d, ev->job);
		break;
	case EV_JOB_UNKNOWN:
		dispatch_touch(d, ev->job);
		break;
	case EV_RECOVERY_LISTED:
		forget_all(d);
		break;
	case EV_FENCED:
		if (d->cluster && !must_wait(d))
			forget_all(d);
		break;
	case EV_POD_GONE: /* with its last element an array leaves memory */
		dispatch_touch(d, ev->pod.job);
		dispatch_touch(d, (struct job_key){ ev->pod.job.id, -1 });
		break;
	default:
		break;
	}
}

int64_t dispatch_plugin_timeout(const struct dispatch *d)
{
	return d->opts.plugin_timeout_us;
}

int64_t dispatch_start_timeout(const struct dispatch *d, const struct job *j)
{
	for (const struct queue *q = j->queue; q; q = q->parent)
		if (q->site->start_timeout_us)
			return q->site->start_timeout_us;
	return d->opts.start_timeout_us;
}

/* Stop an idle job. A job is never stopped for what was not measured: see state/idle.h. */
static bool stop_idle(struct dispatch *d, const struct job *j, int64_t now)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = j->key };
	char rule[64], idle[32], limit[32], why[192];
	int64_t idle_us, limit_us;

	if (j->state != GPUQ_JOB_RUNNING || !j->life->load)
		return false;
	if (ask_job_is_spared(journal_model(d->j), j))
		return false;
	limit_us = load_idle_limit_us(journal_model(d->j), j, rule);
	idle_us = load_idle_for_us(journal_model(d->j), j, now);
	if (!limit_us || idle_us < limit_us)
		return false;
	gpuq_duration_print(idle_us, idle, sizeof(idle));
	gpuq_duration_print(limit_us, limit, sizeof(limit));
	snprintf(why, sizeof(why), "all its devices were idle for %s; %s allows %s", idle, rule,
		 limit);
	ev.evict.cause = GPUQ_CAUSE_IDLE;
	ev.evict.rule = rule;
	ev.evict.by = "";
	ev.evict.why = why;
	ev.evict.grace_us = -1;
	log_info("job.idle", "job=%" PRIu32 " idle=%s rule=%s", j->key.id, idle, LOGS(rule));
	journal_apply(d->j, &ev, NULL);
	return true;
}

/* Write "not running 10m after it was placed: pod 0 on n1 (created), and 2 more". */
static void say_late(const struct job *j, int64_t timeout_us, char *out, size_t room)
{
	const struct pod *p, *first = NULL;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	char timeout[32];
	unsigned n = 0;

	DL_FOREACH2(j->pods, p, job_next) {
		if (p->attempt != j->attempt || p->state >= GPUQ_POD_RUNNING)
			continue;
		first = first ? first : p;
		n++;
	}
	gpuq_duration_print(timeout_us, timeout, sizeof(timeout));
	gpuq_buf_printf(&text, "not running %s after it was placed", timeout);
	if (first)
		gpuq_buf_printf(&text, ": pod %" PRIu32 " on %s (%s)", first->index,
				first->node->name, gpuq_pod_state_word(first->state));
	if (n > 1)
		gpuq_buf_printf(&text, ", and %u more", n - 1);
	snprintf(out, room, "%s", gpuq_buf_str(&text));
	gpuq_buf_done(&text);
}

/* Nothing more is to start on nodes that are about to go, its own next attempt least of all. */
static void close_asks(struct dispatch *d, const struct job *j)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next) {
		struct event ev = { .type = EV_ASK_LOST, .job = j->key };
		bool stale = true;
		const struct ask *a = ask_of_node(journal_model(d->j), p->node->name, &stale);

		if (!a || stale)
			continue;
		ev.ask.number = a->number;
		ev.ask.attempt = a->attempt;
		journal_apply(d->j, &ev, NULL);
	}
}

/* Check the limits of one job that depend on time alone. */
static void check_limits(struct dispatch *d, const struct job *j, int64_t now)
{
	int64_t timeout;
	int percent;
	char why[200];
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = j->key };

	if (j->ended && j->pods && !keep_finished(d, j, now)) {
		dispatch_touch(d, j->key);
		return;
	}
	if (!model_job_is_live(j) || model_job_is_over(j))
		return;
	ev.evict.by = ev.evict.rule = "";
	ev.evict.grace_us = -1;
	if (j->life->start_us && j->time_limit_us != GPUQ_UNLIMITED &&
	    now - j->life->start_us >= j->time_limit_us) {
		ev.evict.cause = GPUQ_CAUSE_LIMIT;
		log_info("job.time_limit", "job=%" PRIu32, j->key.id);
		journal_apply(d->j, &ev, NULL);
		return;
	}
	if (j->wish->deadline_us && now >= clock_job_deadline_us(journal_model(d->j), j)) {
		ev.evict.cause = GPUQ_CAUSE_LIMIT;
		ev.evict.rule = RULE_DEADLINE;
		log_info("job.deadline", "job=%" PRIu32, j->key.id);
		journal_apply(d->j, &ev, NULL);
		return;
	}
	if (j->life->start_us && j->wish->warn_lead_us && !j->warned &&
	    j->time_limit_us != GPUQ_UNLIMITED &&
	    now - j->life->start_us >= j->time_limit_us - j->wish->warn_lead_us) {
		ev.type = EV_JOB_WARNED;
		log_info("job.warn", "job=%" PRIu32, j->key.id);
		journal_apply(d->j, &ev, NULL);
		return;
	}
	if (ask_end_due(journal_model(d->j), j, now, &ev, why, sizeof(why))) {
		log_notice("job.node_ends", "job=%" PRIu32 " why=%s", j->key.id, LOGS(why));
		close_asks(d, j);
		journal_apply(d->j, &ev, NULL);
		return;
	}
	if (ask_node_taken(journal_model(d->j), j, &ev, why, sizeof(why))) {
		log_notice("job.node_taken", "job=%" PRIu32 " rule=%s why=%s", j->key.id,
			   ev.evict.rule, LOGS(why));
		journal_apply(d->j, &ev, NULL);
		return;
	}
	if (stop_idle(d, j, now))
		return;
	percent = notify_time_due(journal_model(d->j), j, now);
	if (percent) {
		ev = (struct event){ .type = EV_JOB_TIME_PASSED, .job = j->key };
		ev.percent = percent;
		journal_apply(d->j, &ev, NULL);
		return;
	}
	timeout = dispatch_start_timeout(d, j);
	/* An object that operators have to supply: flow/refusal/troubles.c. */
	if (j->life->trouble && j->life->trouble->whose != TROUBLE_USERS &&
	    j->life->trouble->whose != TROUBLE_TURN && j->life->trouble->whose != TROUBLE_ROOM)
		return;
	if (j->state == GPUQ_JOB_STARTING && timeout && now - j->life->placed_us >= timeout) {
		ev.evict.cause = GPUQ_CAUSE_INFRA;
		ev.evict.rule = RULE_START_TIMEOUT;
		say_late(j, timeout, why, sizeof(why));
		ev.evict.why = why;
		log_warn("job.start_timeout", "job=%" PRIu32 " why=%s", j->key.id, LOGS(why));
		journal_apply(d->j, &ev, NULL);
	}
}

/* Drop nominated placements on this node, so that their jobs look for others. */
static void renounce_on(struct dispatch *d, const char *node)
{
	job_each(journal_model(d->j), j) {
		struct event ev = { .type = EV_JOB_RENOUNCED, .job = j->key };
		bool waits = false;

		for (uint32_t i = 0; j->life->promise && i < j->life->promise->n_pods; i++)
			waits |= strcmp(j->life->promise->pods[i].node, node) == 0;
		if (waits)
			journal_apply(d->j, &ev, NULL);
	}
}

static void leave_alone(struct dispatch *d, const char *node, bool on)
{
	struct event ev = { .type = EV_NODE_BACKOFF };

	ev.backoff.name = node;
	ev.backoff.until_us = on ? loop_now_us(d->l) + STUCK_NODE_US : 0;
	ev.backoff.suspect = on;
	journal_apply(d->j, &ev, NULL);
}

static void note_stuck(struct dispatch *d, const char *node)
{
	const size_t n = strlen(node) + 1;
	struct stuck *s = d->stuck;

	while (s && strcmp(s->node, node) != 0)
		s = s->next;
	if (s)
		return;
	s = calloc(1, sizeof(*s) + n);
	if (!s)
		abort();
	memcpy(s->node, node, n);
	s->next = d->stuck;
	d->stuck = s;
}

static bool is_stuck(const struct node *n)
{
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && p->leaving && (order_is_evicted(p->job) || p->dropped))
			return true;
	return false;
}

/* Use nodes again once their overdue pods have gone after all. */
static void check_stuck(struct dispatch *d)
{
	struct stuck *s, **at = &d->stuck;

	while ((s = *at) != NULL) {
		const struct node *n = model_find_node(journal_model(d->j), s->node);

		if (n && is_stuck(n)) {
			at = &s->next;
			continue;
		}
		if (n) {
			log_notice("node.unstuck", "node=%s", LOGS(s->node));
			leave_alone(d, s->node, false);
		}
		*at = s->next;
		free(s);
	}
}

/* An evicted pod that exists long after its grace period is the node's fault: the node is avoided,
 * and the preemption that it delays is planned again. */
static void check_overdue(struct dispatch *d, struct live *l, const struct job *j, int64_t now)
{
	const struct pod *p;

	if (!l->due_us || now < l->due_us)
		return;
	l->due_us = 0;
	DL_FOREACH2(j->pods, p, job_next) {
		if (!p->leaving || !model_pod_takes(p))
			continue;
		l->due_us = now + STUCK_NODE_US;
		log_warn("pod.overdue",
			 "job=%" PRIu32 " index=%" PRIu32 " node=%s: evicted, but still there",
			 j->key.id, p->index, LOGS(p->node->name));
		note_stuck(d, p->node->name);
		leave_alone(d, p->node->name, true);
		renounce_on(d, p->node->name);
	}
}

/* A deletion can be lost with the cluster's own state, when that was restored from a backup: the
 * pods are told again. A repetition changes nothing where it was not lost. */
static void check_lost(struct dispatch *d, struct live *l, const struct job *j, int64_t now)
{
	struct look k = { .d = d, .m = journal_model(d->j), .j = j };
	const struct pod *p;

	if (!l->again_us || now < l->again_us)
		return;
	l->again_us = 0;
	DL_FOREACH2(j->pods, p, job_next) {
		struct pod_ref ref;
		char name[64];

		if (!p->leaving || !model_pod_takes(p))
			continue;
		l->again_us = now + OVERDUE_US;
		need_spec(&k);
		order_ref(k.m, j, p, name, &ref);
		log_notice("pod.told_again", "pod=%s: signalled, but still there", name);
		dispatch_leave(k.m, d->cluster, j, &ref,
			       order_grace_us(j, order_is_evicted(j) || p->dropped,
					      k.have_spec ? &k.spec : NULL));
	}
	gpuq_arena_done(&k.a);
}

static void on_tick(void *arg)
{
	struct dispatch *d = arg;
	const struct model *m = journal_model(d->j);
	int64_t now = loop_now_us(d->l);
	struct live *l, *next;

	d->tick = loop_after(d->l, TICK_US, on_tick, d);
	if (must_wait(d))
		return;
	on_durable(d); /* requests that the cluster was too busy for */
	check_stuck(d);
	HASH_ITER(hh, d->live, l, next) {
		const struct job *j = model_find_job(m, l->key);

		if (!j || !j->pods) {
			live_drop(d, l);
		} else {
			if (l->removed_us && now >= l->removed_us)
				dispatch_touch(d, l->key);
			check_overdue(d, l, j, now);
			check_lost(d, l, j, now);
			check_limits(d, j, now);
		}
	}
}

int dispatch_new(struct journal *j, const struct dispatch_opts *o, struct dispatch **out,
		 struct gpuq_err *err)
{
	struct dispatch *d = calloc(1, sizeof(*d));

	if (!d)
		return gpuq_no_memory(err);
	d->j = j;
	d->l = journal_loop(j);
	d->opts = *o;
	d->asked.bytes = d->forgotten.bytes = sizeof(struct pod_key);
	journal_subscribe(j, on_event, d);
	journal_on_durable(j, on_durable, d);
	d->tick = loop_after(d->l, TICK_US, on_tick, d);
	*out = d;
	return 0;
}

void dispatch_set_opts(struct dispatch *d, const struct dispatch_opts *o)
{
	d->opts = *o;
}

void dispatch_set_cluster(struct dispatch *d, struct cluster *c)
{
	struct live *l, *next;

	d->cluster = c;
	/* The new cluster has no requests yet, whatever the last one had. */
	keyset_clear(&d->asked);
	keyset_clear(&d->forgotten);
	HASH_ITER(hh, d->live, l, next)
		l->warned = 0;
	if (!c)
		return;
	dispatch_touch_all(d);
	if (!must_wait(d))
		forget_all(d);
}

void dispatch_free(struct dispatch *d)
{
	struct touched *t, *next;
	struct live *l, *lnext;
	struct stuck *s;

	if (!d)
		return;
	while ((s = d->stuck) != NULL) {
		d->stuck = s->next;
		free(s);
	}
	HASH_ITER(hh, d->todo, t, next) {
		HASH_DEL(d->todo, t);
		free(t);
	}
	HASH_ITER(hh, d->live, l, lnext)
		live_drop(d, l);
	keyset_clear(&d->asked);
	keyset_clear(&d->forgotten);
	loop_cancel(d->tick);
	free(d);
}
