#include "gpuqd/state/view/joblog.h"
#include "gpuqd/state/view/view.h"
#include "gpuqd/state/view/view_reason.h"

#include <string.h>

#include "gpuqd/state/cuts/cut.h"
#include "gpuqd/state/model.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

#define NODES_MAX 16 /* that an entry names */

/* ---- the form ---- */

/* Add a text, unless it is empty: entries are kept short, since there are many. */
static void text(struct gpuq_arena *a, struct gpuq_val *v, const char *key, const char *s)
{
	if (s && *s)
		gpuq_put(a, v, key, gpuq_str(a, s));
}

static void number(struct gpuq_arena *a, struct gpuq_val *v, const char *key, int64_t i)
{
	gpuq_put(a, v, key, gpuq_int(a, i));
}

/* Devices as whole numbers or decimals. */
static void devices(struct gpuq_arena *a, struct gpuq_val *v, const char *key, int64_t milli)
{
	gpuq_put(a, v, key,
		 milli % 1000 == 0 ? gpuq_int(a, milli / 1000)
				   : gpuq_real(a, (double)milli / 1000));
}

static const char *key_text(struct gpuq_arena *a, struct job_key key)
{
	return key.index >= 0 ? gpuq_arena_printf(a, "%u_%d", key.id, key.index)
			      : gpuq_arena_printf(a, "%u", key.id);
}

/* Add the number of pods, their devices and the nodes they are on, each once; a large gang names
 * only the first nodes. */
static void places(struct gpuq_arena *a, struct gpuq_val *v, const struct placed_pod *pods,
		   uint32_t n)
{
	struct gpuq_val *nodes = gpuq_list(a);
	int64_t milli = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool known = false;

		milli += pods[i].gpus_milli;
		for (size_t k = 0; nodes && k < nodes->n; k++)
			known |= strcmp(nodes->items[k]->s, pods[i].node) == 0;
		if (!known && nodes && nodes->n < NODES_MAX)
			gpuq_add(a, nodes, gpuq_str(a, pods[i].node));
	}
	number(a, v, "pods", n);
	devices(a, v, "gpus", milli);
	gpuq_put(a, v, "nodes", nodes);
}

/* Put why the job was preempted or shrunk; a grace period below 0 is that of the job. */
static void view_evict(struct gpuq_arena *a, struct gpuq_val *v, const struct event *ev)
{
	text(a, v, "cause", gpuq_cause_word(ev->evict.cause));
	text(a, v, "rule", ev->evict.rule);
	text(a, v, "why", ev->evict.why);
	text(a, v, "by", ev->evict.by);
	text(a, v, "by_queue", ev->evict.by_queue);
	if (ev->type == EV_JOB_SHRINK_ASKED)
		number(a, v, "pods", ev->evict.n_pods);
	else if (ev->evict.grace_us >= 0)
		number(a, v, "grace_s", ev->evict.grace_us / GPUQ_US_PER_S);
}

/* Put how the pod ended; a fault of the pod itself has no word. */
static void view_pod_ended(struct gpuq_arena *a, struct gpuq_val *v, const struct event *ev)
{
	static const char *const faults[] = {
		[POD_FAULT_OOM] = "out_of_memory", [POD_FAULT_REJECTED] = "rejected",
		[POD_FAULT_INFRA] = "infra",       [POD_FAULT_IMAGE] = "image",
		[POD_FAULT_DEADLINE] = "deadline",
	};
	const unsigned fault = ev->pod_ended.fault;

	if (ev->pod_ended.exit_code >= 0)
		number(a, v, "exit_code", ev->pod_ended.exit_code);
	if (fault < sizeof(faults) / sizeof(faults[0]))
		text(a, v, "fault", faults[fault]);
	text(a, v, "message", ev->pod_ended.message);
}

/* Put the nominated placement and its victims, of which an entry names the first ones and counts
 * all. */
static void view_nominated(struct gpuq_arena *a, struct gpuq_val *v, const struct event *ev)
{
	struct gpuq_val *victims = gpuq_list(a);

	text(a, v, "flavor", ev->nominated.flavor);
	text(a, v, "rule", ev->nominated.rule);
	text(a, v, "why", ev->nominated.why);
	places(a, v, ev->nominated.pods, ev->nominated.n_pods);
	for (uint32_t i = 0; i < ev->nominated.n_victims && i < NODES_MAX; i++)
		gpuq_add(a, victims, gpuq_str(a, key_text(a, ev->nominated.victims[i])));
	number(a, v, "n_victims", ev->nominated.n_victims);
	gpuq_put(a, v, "victims", victims);
}

/* Return the indexes on the node of the devices that a pod has. */
static struct gpuq_val *view_indexes(struct gpuq_arena *a, const struct event *ev)
{
	struct gpuq_val *list = gpuq_list(a);

	for (size_t i = 0; list && i < ev->devices.n; i++)
		gpuq_add(a, list, gpuq_int(a, ev->devices.items[i]));
	return list;
}

/* True for events that name a pod in place of a job. */
static bool is_pod_event(enum event_type t)
{
	return t == EV_POD_CREATED || t == EV_POD_STARTED || t == EV_POD_SIGNALLED ||
	       t == EV_POD_ENDED || t == EV_POD_GONE || t == EV_POD_DEVICES;
}

struct job_key joblog_event_job(const struct event *ev)
{
	return is_pod_event(ev->type) ? ev->pod.job : ev->job;
}

struct gpuq_val *joblog_event_view(struct gpuq_arena *a, const struct event *ev)
{
	struct gpuq_val *v = gpuq_map(a);
	const bool pod = is_pod_event(ev->type);
	const struct job_key key = joblog_event_job(ev);

	number(a, v, "time", ev->at_us);
	text(a, v, "event", event_words[ev->type]);
	if (key.id)
		text(a, v, "job", key_text(a, key));
	if (pod) {
		number(a, v, "attempt", ev->pod.attempt);
		number(a, v, "pod", ev->pod.index);
	}
	switch (ev->type) {
	case EV_JOB_SUBMITTED:
		text(a, v, "who", ev->submitted.user);
		text(a, v, "queue", ev->submitted.queue);
		break;
	case EV_JOB_UPDATED:
		text(a, v, "who", ev->updated.who);
		text(a, v, "changes", ev->updated.changes);
		break;
	case EV_JOB_NICED:
		number(a, v, "nice", ev->nice);
		break;
	case EV_JOB_TIME_PASSED:
		number(a, v, "percent", ev->percent);
		break;
	case EV_JOB_HELD:
	case EV_JOB_RELEASED:
		text(a, v, "who", ev->held.who);
		break;
	case EV_JOB_CANCEL_ASKED:
		text(a, v, "who", ev->cancel.who);
		text(a, v, "message", ev->cancel.why);
		break;
	case EV_JOB_NOMINATED:
		view_nominated(a, v, ev);
		break;
	case EV_JOB_PLACED:
		text(a, v, "flavor", ev->placed.flavor);
		if (ev->placed.time_limit_us)
			number(a, v, "time_limit_s", ev->placed.time_limit_us / GPUQ_US_PER_S);
		places(a, v, ev->placed.pods, ev->placed.n_pods);
		break;
	case EV_JOB_EVICT_ASKED:
	case EV_JOB_SHRINK_ASKED:
		view_evict(a, v, ev);
		break;
	case EV_JOB_GROWN:
		places(a, v, ev->grown.pods, ev->grown.n_pods);
		break;
	case EV_JOB_RECOVERED:
		if (ev->recovered.as) {
			text(a, v, "who", ev->recovered.as->submitted.user);
			text(a, v, "queue", ev->recovered.as->submitted.queue);
		}
		number(a, v, "pods", ev->recovered.n_pods);
		break;
	case EV_RECOVERY_ENDED:
		text(a, v, "who", ev->by);
		break;
	case EV_JOB_REQUEUED:
		text(a, v, "cause", gpuq_cause_word(ev->requeued.cause));
		gpuq_put(a, v, "counts", gpuq_bool(a, ev->requeued.counts));
		text(a, v, "message", ev->requeued.message);
		break;
	case EV_JOB_ENDED:
		text(a, v, "state", gpuq_job_state_word(ev->ended.state));
		if (ev->ended.exit_code >= 0)
			number(a, v, "exit_code", ev->ended.exit_code);
		text(a, v, "message", ev->ended.message);
		break;
	case EV_POD_SIGNALLED:
		text(a, v, "signal", gpuq_signal_name(ev->signalled.signal));
		gpuq_put(a, v, "sent", gpuq_bool(a, ev->signalled.sent));
		text(a, v, "message", ev->signalled.message);
		break;
	case EV_POD_ENDED:
		view_pod_ended(a, v, ev);
		break;
	case EV_POD_DEVICES:
		gpuq_put(a, v, "devices", view_indexes(a, ev));
		break;
	case EV_JOB_TROUBLE:
		text(a, v, "object", ev->trouble.object);
		text(a, v, "message", ev->trouble.words);
		text(a, v, "role", view_reason_trouble_who(ev->trouble.whose));
		break;
	case EV_ASK_MADE:
		number(a, v, "nodes", ev->ask.n_nodes);
		/* fall through */
	case EV_ASK_OWNED:
	case EV_ASK_HEARD:
	case EV_ASK_FAILED:
	case EV_ASK_TRIED:
	case EV_ASK_ENDED:
	case EV_ASK_CLEARED:
	case EV_ASK_CLOSED:
		if (ev->ask.number)
			number(a, v, "request", ev->ask.number);
		text(a, v, "pool", ev->ask.pool);
		text(a, v, "condition", ev->ask.condition);
		text(a, v, "reason", ev->ask.reason);
		text(a, v, "message", ev->ask.message);
		break;
	case EV_NODE_SEEN:
		text(a, v, "node", ev->node->name);
		break;
	case EV_NODE_GONE:
		text(a, v, "node", ev->name);
		break;
	case EV_NODE_DRAIN:
		text(a, v, "who", ev->drain.who);
		text(a, v, "node", ev->drain.name);
		gpuq_put(a, v, "drain", gpuq_bool(a, ev->drain.on));
		text(a, v, "message", ev->drain.why);
		break;
	case EV_NODE_CUT:
		text(a, v, "node", ev->cut.name);
		text(a, v, "layout", ev->cut.layout);
		text(a, v, "state", cut_state_words[ev->cut.state]);
		text(a, v, "message", ev->cut.message);
		break;
	case EV_SITE_APPLIED:
		text(a, v, "who", ev->site.who);
		break;
	default:
		break;
	}
	return v;
}

struct gpuq_val *joblog_submitted(struct gpuq_arena *a, const struct gpuq_val *job)
{
	static const char *const kept[] = { "queue", "qos", "pod_count", "gpus", "time_limit_s" };
	const struct job_key key = { (uint32_t)gpuq_get_int(job, "id", 0),
				     (int32_t)gpuq_get_int(job, "array_index", -1) };
	struct gpuq_val *v = gpuq_map(a);

	number(a, v, "time", gpuq_get_int(job, "submit_time", 0));
	text(a, v, "event", event_words[EV_JOB_SUBMITTED]);
	text(a, v, "job", key_text(a, key));
	text(a, v, "who", gpuq_get_str(job, "user", ""));
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		struct gpuq_val *one = gpuq_get(job, kept[i]);

		if (one && one->type != GPUQ_NULL)
			gpuq_put(a, v, kept[i], one);
	}
	return v;
}

/* ---- the records ---- */

size_t joblog_key(unsigned char *out, struct job_key job, uint32_t n)
{
	const size_t len = change_key_job(out, job.id, job.index);

	return len + change_key_u32(out + len, n);
}

/* Store entry n of the log of a job, and drop the one that it pushes out. */
static void write_entry(struct model *m, struct job_key job, uint32_t n, const struct gpuq_val *v)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct gpuq_buf b = GPUQ_BUF_INIT;

	if (v)
		gpuq_mp_write(&b, v);
	if (!v || b.failed)
		m->direct.failed = true;
	else
		change_batch_put(&m->direct, TABLE_LOG, key, joblog_key(key, job, n), b.data,
				 b.len);
	gpuq_buf_done(&b);
	/* A full log loses its oldest entry behind the first ones, which tell how the job came
	 * about. */
	if (n >= JOBLOG_MAX)
		change_batch_put(&m->direct, TABLE_LOG, key,
				 joblog_key(key, job, n - (JOBLOG_MAX - JOBLOG_FIRST)), NULL, 0);
}

void joblog_forget(struct batch *out, struct job_key job, uint32_t n)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];

	/* Numbers of entries that were lost before are skipped. */
	for (uint32_t i = 0; i < n; i++) {
		if (i == JOBLOG_FIRST && n > JOBLOG_MAX)
			i = n - (JOBLOG_MAX - JOBLOG_FIRST);
		change_batch_put(out, TABLE_LOG, key, joblog_key(key, job, i), NULL, 0);
	}
}

/* ---- writing entries ---- */

/* True if the event gets an entry in a job's log: only what the job's owner can make use of, and of
 * a large gang only the first pods. */
static bool is_logged(const struct model *m, const struct event *ev)
{
	const struct pod *p;

	switch (ev->type) {
	case EV_JOB_SUBMITTED: /* in its record */
	case EV_JOB_ENDED: /* joblog_ended, however it came about */
		return false;
	case EV_POD_CREATED:
	case EV_POD_STARTED:
	case EV_POD_SIGNALLED:
		return ev->pod.index < JOBLOG_PODS;
	case EV_POD_ENDED:
		return ev->pod.index < JOBLOG_PODS || ev->pod_ended.exit_code != 0 ||
		       ev->pod_ended.fault != POD_FAULT_NONE;
	case EV_POD_GONE: /* only where its end was not observed */
		p = model_find_pod(m, ev->pod);
		return p && model_pod_takes(p);
	default:
		return ev->job.id && model_event_is_stored(ev->type) && ev->type != EV_DEP_ENDED &&
		       ev->type != EV_BESIDE_GONE && ev->type != EV_JOB_FRAGMENTED;
	}
}

/* True for what becomes of the nodes that were requested for a job, or cut for it. */
static bool tells_of_nodes(enum event_type t)
{
	return t == EV_ASK_MADE || t == EV_ASK_OWNED || t == EV_ASK_HEARD || t == EV_ASK_FAILED ||
	       t == EV_ASK_TRIED || t == EV_ASK_ENDED || t == EV_NODE_CUT;
}

/* Add what an eviction costs: how long it ran, on which devices. */
static void add_costs(struct gpuq_arena *a, struct gpuq_val *v, const struct job *j, int64_t at_us)
{
	const struct pod *p;
	int64_t milli = 0;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && model_pod_takes(p))
			milli += p->gpus_milli;
	devices(a, v, "gpus", milli);
	number(a, v, "ran_s",
	       j->life->start_us && at_us > j->life->start_us
		       ? (at_us - j->life->start_us) / GPUQ_US_PER_S
		       : 0);
}

/* Add where it is, and the outcome for a job that could not be signalled to save itself. */
static void add_place(struct gpuq_arena *a, struct gpuq_val *v, const struct event *ev,
		      const struct pod *p)
{
	text(a, v, "node", p->node->name);
	if (ev->type == EV_POD_SIGNALLED && !ev->signalled.sent && p->leaving)
		text(a, v, "instead", "TERM");
}

void joblog_begin(struct model *m, const struct event *ev, struct joblog_entry *e)
{
	const struct pod *p;

	e->val = NULL;
	if ((ev->type >= EV_JOB_REASONS && !tells_of_nodes(ev->type)) || !is_logged(m, ev))
		return;
	e->mem = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
	e->val = joblog_event_view(&e->mem, ev);
	e->key = joblog_event_job(ev);
	e->job = model_find_job(m, e->key);
	/* An element may leave its array with this event, and perhaps memory: its entry goes to the
	 * array's log. */
	if (!e->job && e->key.index >= 0 && ev->type != EV_JOB_PLACED &&
	    ev->type != EV_JOB_NOMINATED && ev->type != EV_JOB_RECOVERED) {
		e->key.index = -1;
		e->job = model_find_job(m, e->key);
	}
	if (!e->val || !e->job)
		return;
	if (ev->type == EV_JOB_EVICT_ASKED)
		add_costs(&e->mem, e->val, e->job, ev->at_us);
	if (is_pod_event(ev->type) && (p = model_find_pod(m, ev->pod)) != NULL)
		add_place(&e->mem, e->val, ev, p);
	/* Numbered now, since the job may leave memory as a consequence. */
	e->n = e->job->n_log++;
}

void joblog_end(struct model *m, struct joblog_entry *e, bool applied)
{
	if (!e->val)
		return;
	/* A refused event leaves no trace. */
	if (!applied && e->job)
		e->job->n_log--;
	if (applied && !e->job) {
		e->job = model_find_job(m, e->key); /* an element that was placed just now */
		if (e->job)
			e->n = e->job->n_log++;
	}
	if (applied && e->job) {
		const struct job *j = model_find_job(m, e->key); /* it may have left memory */

		if (j && j->started_once && !gpuq_get(e->val, "attempt"))
			number(&e->mem, e->val, "attempt", j->attempt);
		write_entry(m, e->key, e->n, e->val);
	}
	gpuq_arena_done(&e->mem);
}

void joblog_started(struct model *m, const struct job *j, uint32_t n, int64_t at_us)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&a);

	number(&a, v, "time", at_us);
	text(&a, v, "event", "job.started");
	text(&a, v, "job", key_text(&a, j->key));
	number(&a, v, "attempt", j->attempt);
	number(&a, v, "waited_s",
	       at_us > j->eligible_us ? (at_us - j->eligible_us) / GPUQ_US_PER_S : 0);
	write_entry(m, j->key, n, v);
	gpuq_arena_done(&a);
}

void joblog_ended(struct model *m, const struct job *j, uint32_t n)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct event ev = { .type = EV_JOB_ENDED, .at_us = j->life->end_us, .job = j->key };
	struct gpuq_val *v;

	ev.ended.state = j->state;
	ev.ended.exit_code = j->life->exit_code;
	ev.ended.message = j->life->message;
	v = joblog_event_view(&a, &ev);
	if (j->started_once)
		number(&a, v, "attempt", j->attempt);
	gpuq_put(&a, v, "gpu_seconds",
		 gpuq_real(&a, (double)ledger_gpu_ms(j->life->gpu_us) / 1000));
	write_entry(m, j->key, n, v);
	gpuq_arena_done(&a);
}
