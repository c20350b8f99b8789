#include "gpuqd/core/view.h"

#include "gpuqd/core/amount.h"
#include "gpuqd/core/census.h"
#include "gpuqd/core/joblabel.h"
#include "gpuqd/core/priority.h"
#include "gpuqd/core/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"

static struct gpuq_val *instant(struct gpuq_arena *a, int64_t us)
{
	return us > 0 ? gpuq_int(a, us) : gpuq_null(a);
}

struct gpuq_val *view_word(struct gpuq_arena *a, const char *s)
{
	return s && *s ? gpuq_str(a, s) : gpuq_null(a);
}

struct gpuq_val *view_devices(struct gpuq_arena *a, int64_t milli)
{
	if (milli == GPUQ_UNLIMITED)
		return gpuq_str(a, "unlimited");
	return milli % 1000 == 0 ? gpuq_int(a, milli / 1000) : gpuq_real(a, (double)milli / 1000);
}

static struct gpuq_val *view_pod(struct gpuq_arena *a, const struct model *m, const struct pod *p)
{
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a);
	char name[64];

	pod_name(m, p, name);
	gpuq_put(a, v, "name", gpuq_str(a, name));
	gpuq_put(a, v, "index", gpuq_int(a, p->index));
	gpuq_put(a, v, "group", gpuq_str(a, p->job->request->spec.groups[p->group].name));
	gpuq_put(a, v, "node", gpuq_str(a, p->node->name));
	for (uint32_t i = 0; i < p->n_devices; i++) {
		const struct device *d = p->devices[i] < p->node->n_devices
						 ? &p->node->devices[p->devices[i]]
						 : NULL;
		struct gpuq_val *dv = gpuq_map(a);

		gpuq_put(a, dv, "index", gpuq_int(a, p->devices[i]));
		gpuq_put(a, dv, "uuid", view_word(a, d ? d->uuid : NULL));
		gpuq_put(a, dv, "milli", gpuq_int(a, p->gpus_milli / p->n_devices));
		gpuq_put(a, dv, "memory_mib",
			 d && d->memory_mib ? gpuq_int(a, d->memory_mib) : gpuq_null(a));
		gpuq_add(a, list, dv);
	}
	gpuq_put(a, v, "devices", list);
	gpuq_put(a, v, "state",
		 gpuq_str(a, p->leaving && p->state < GPUQ_POD_ENDED
				     ? gpuq_pod_state_word(GPUQ_POD_LEAVING)
				     : gpuq_pod_state_word(p->state)));
	gpuq_put(a, v, "exit_code", p->exit_code >= 0 ? gpuq_int(a, p->exit_code) : gpuq_null(a));
	gpuq_put(a, v, "start_time", instant(a, p->start_us));
	gpuq_put(a, v, "end_time", instant(a, p->end_us));
	gpuq_put(a, v, "message", view_word(a, p->message));
	return v;
}

/* As people count: devices and cores with decimals, an instant as text. */
static struct gpuq_val *view_amount_of(struct gpuq_arena *a, const struct reason *r, int64_t n)
{
	char text[32];

	if (r->have == 0 && r->need == 0)
		return gpuq_null(a);
	if (n == GPUQ_UNLIMITED)
		return gpuq_str(a, "unlimited");
	switch ((enum gpuq_unit)r->unit) {
	case GPUQ_UNIT_GPUS:
	case GPUQ_UNIT_CORES:
		return view_devices(a, n);
	case GPUQ_UNIT_TIME:
		gpuq_instant_print(n, text, sizeof(text));
		return gpuq_str(a, text);
	default:
		return gpuq_int(a, n);
	}
}

static struct gpuq_val *view_reasons(struct gpuq_arena *a, const struct job *j,
				     enum gpuq_reason *first)
{
	struct gpuq_val *list = gpuq_list(a);

	*first = GPUQ_R_NONE;
	if (j->state != GPUQ_JOB_PENDING && j->state != GPUQ_JOB_STARTING)
		return list;
	for (size_t i = 0; i < j->outlook->n_reasons || (i == 0 && !j->outlook->n_reasons); i++) {
		struct reason now = { .since_us = j->life->placed_us };
		const struct reason *r = i < j->outlook->n_reasons ? &j->outlook->reasons[i] : &now;
		struct gpuq_val *v = gpuq_map(a);

		if (r == &now) {
			now.code = j->state == GPUQ_JOB_STARTING ? GPUQ_R_STARTING
								 : GPUQ_R_NOT_EVALUATED;
			now.object = "";
			if (now.code == GPUQ_R_NOT_EVALUATED)
				now.since_us = j->eligible_us;
		}
		if (i == 0)
			*first = (enum gpuq_reason)r->code;
		gpuq_put(a, v, "code", gpuq_str(a, gpuq_reason_word((enum gpuq_reason)r->code)));
		gpuq_put(a, v, "object", view_word(a, r->object));
		gpuq_put(a, v, "unit", gpuq_str(a, gpuq_unit_word((enum gpuq_unit)r->unit)));
		gpuq_put(a, v, "have", view_amount_of(a, r, r->have));
		gpuq_put(a, v, "need", view_amount_of(a, r, r->need));
		gpuq_put(a, v, "since", instant(a, r->since_us));
		gpuq_put(a, v, "who", gpuq_str(a, gpuq_reason_who((enum gpuq_reason)r->code)));
		gpuq_add(a, list, v);
	}
	return list;
}

static struct gpuq_val *view_array(struct gpuq_arena *a, const struct model *m, const struct job *j)
{
	const struct job *master =
		j->key.index < 0 ? j : job_find(m, (struct job_key){ j->key.id, -1 });
	const struct array *ar = master ? master->array : NULL;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct gpuq_array waiting;
	struct gpuq_val *v;

	if (!ar)
		return gpuq_null(a);
	v = gpuq_map(a);
	gpuq_put(a, v, "indices", gpuq_str(a, ar->indices));
	gpuq_put(a, v, "size", gpuq_int(a, ar->size));
	gpuq_put(a, v, "throttle", ar->throttle ? gpuq_int(a, ar->throttle) : gpuq_null(a));
	if (j == master) {
		waiting =
			(struct gpuq_array){ ar->waiting, ar->n_waiting_ranges, ar->n_waiting, 0 };
		gpuq_array_print(&waiting, &text);
		gpuq_put(a, v, "waiting", gpuq_str(a, gpuq_buf_str(&text)));
		gpuq_put(a, v, "n_waiting", gpuq_int(a, ar->n_waiting));
		gpuq_buf_done(&text);
	}
	return v;
}

static int64_t used_us(const struct job *j, int64_t now_us)
{
	int64_t us = j->life->gpu_us;
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
	if (p->state == GPUQ_POD_RUNNING && p->start_us && now_us > p->start_us)
		us += (now_us - p->start_us) / 1000 * p->gpus_milli;
	return us;
}

static const char *key_text(struct gpuq_arena *a, struct job_key key)
{
	return key.index >= 0 ? gpuq_arena_printf(a, "%u_%d", key.id, key.index)
			      : gpuq_arena_printf(a, "%u", key.id);
}

/* Where it will start, and who has to leave there first. */
static struct gpuq_val *view_promise(struct gpuq_arena *a, const struct model *m,
				     const struct job *j)
{
	struct gpuq_val *v, *pods = gpuq_list(a), *victims = gpuq_list(a);

	if (!j->life->promise)
		return gpuq_null(a);
	v = gpuq_map(a);
	for (uint32_t i = 0; i < j->life->promise->n_pods; i++) {
		const struct promised_pod *pp = &j->life->promise->pods[i];
		struct gpuq_val *pv = gpuq_map(a), *devices_of = gpuq_list(a);

		gpuq_put(a, pv, "group", gpuq_str(a, j->request->spec.groups[pp->group].name));
		gpuq_put(a, pv, "node", gpuq_str(a, pp->node));
		for (uint32_t k = 0; k < pp->n_devices; k++)
			gpuq_add(a, devices_of, gpuq_int(a, pp->devices[k]));
		gpuq_put(a, pv, "devices", devices_of);
		gpuq_add(a, pods, pv);
	}
	for (uint32_t i = 0; i < j->life->promise->n_victims; i++)
		gpuq_add(a, victims, gpuq_str(a, key_text(a, j->life->promise->victims[i])));
	gpuq_put(a, v, "since", instant(a, j->life->promise->at_us));
	gpuq_put(a, v, "pods", pods);
	gpuq_put(a, v, "victims", victims);
	gpuq_put(a, v, "victims_left", gpuq_int(a, job_victims_left(m, j)));
	gpuq_put(a, v, "rule", view_word(a, j->life->promise->rule));
	gpuq_put(a, v, "why", view_word(a, j->life->promise->why));
	return v;
}

/* What a waiting job's priority is made of; null before anybody has looked. */
static struct gpuq_val *view_terms(struct gpuq_arena *a, const struct job *j)
{
	if (j->state != GPUQ_JOB_PENDING || !j->outlook->ranked)
		return gpuq_null(a);
	return priority_terms_val(a, &j->outlook->terms);
}

/* What an elastic job has now may be more than one start of it takes. */
static void view_size(struct gpuq_arena *a, struct gpuq_val *v, const struct job *j)
{
	int64_t pods = job_pods(j), milli = job_gpus_milli(j);
	const struct pod *p;

	if (job_is_live(j) && job_is_elastic(j)) {
		pods = milli = 0;
		DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && !p->dropped) {
			pods++;
			milli += p->gpus_milli;
		}
	}
	gpuq_put(a, v, "pod_count", gpuq_int(a, pods));
	gpuq_put(a, v, "gpus", view_devices(a, milli));
}

/* Why an attempt was told to end; that somebody cancelled it is its state. */
static struct gpuq_val *view_end_cause(struct gpuq_arena *a, const struct job *j)
{
	return j->life->leave_cause == GPUQ_CAUSE_NONE || j->cancel_asked
		       ? gpuq_null(a)
		       : gpuq_str(a, gpuq_cause_word(j->life->leave_cause));
}

/* What its devices did when they were last measured. */
static struct gpuq_val *view_use(struct gpuq_arena *a, const struct model *m, const struct job *j,
				 int64_t now_us)
{
	struct gpuq_val *v;
	char rule[64];
	int64_t limit_us;

	if (!j->life->load || j->ended || j->state == GPUQ_JOB_PENDING)
		return gpuq_null(a);
	limit_us = job_idle_limit_us(m, j, rule);
	v = gpuq_map(a);
	gpuq_put(a, v, "time", instant(a, j->life->load->at_us));
	gpuq_put(a, v, "percent", gpuq_real(a, (double)j->life->load->milli / 10));
	gpuq_put(a, v, "idle_s", gpuq_int(a, job_idle_for_us(m, j, now_us) / GPUQ_US_PER_S));
	gpuq_put(a, v, "idle_limit_s",
		 limit_us ? gpuq_int(a, limit_us / GPUQ_US_PER_S) : gpuq_null(a));
	gpuq_put(a, v, "idle_rule", view_word(a, rule));
	return v;
}

struct gpuq_val *view_job(struct gpuq_arena *a, const struct model *m, const struct job *j,
			  int64_t now_us)
{
	struct gpuq_val *v = gpuq_map(a), *list;
	enum gpuq_reason first;
	const struct pod *p;

	gpuq_put(a, v, "id", gpuq_int(a, j->key.id));
	gpuq_put(a, v, "array_index", j->key.index < 0 ? gpuq_null(a) : gpuq_int(a, j->key.index));
	gpuq_put(a, v, "array", view_array(a, m, j));
	gpuq_put(a, v, "name", gpuq_str(a, j->name));
	gpuq_put(a, v, "user", gpuq_str(a, j->user));
	gpuq_put(a, v, "queue", gpuq_str(a, j->queue->name));
	gpuq_put(a, v, "account", view_word(a, j->wish->account));
	gpuq_put(a, v, "qos", gpuq_str(a, j->qos));
	gpuq_put(a, v, "labels", joblabel_view(a, j->labels));
	gpuq_put(a, v, "state", gpuq_str(a, gpuq_job_state_word(j->state)));
	list = view_reasons(a, j, &first);
	gpuq_put(a, v, "reason",
		 first == GPUQ_R_NONE ? gpuq_null(a) : gpuq_str(a, gpuq_reason_word(first)));
	gpuq_put(a, v, "reasons", list);
	gpuq_put(a, v, "submit_time", instant(a, j->submit_us));
	gpuq_put(a, v, "start_time", instant(a, j->life->start_us));
	gpuq_put(a, v, "end_time", j->ended ? instant(a, j->life->end_us) : gpuq_null(a));
	gpuq_put(a, v, "eligible_time", instant(a, j->eligible_us));
	gpuq_put(a, v, "planned_time",
		 instant(a, j->state == GPUQ_JOB_PENDING ? j->outlook->planned_us : 0));
	gpuq_put(a, v, "time_limit_s",
		 j->time_limit_us == GPUQ_UNLIMITED
			 ? gpuq_null(a)
			 : gpuq_int(a, j->time_limit_us / GPUQ_US_PER_S));
	gpuq_put(a, v, "time_min_s",
		 j->wish->time_min_us ? gpuq_int(a, j->wish->time_min_us / GPUQ_US_PER_S)
				      : gpuq_null(a));
	gpuq_put(a, v, "exit_code",
		 j->ended && j->life->exit_code >= 0 ? gpuq_int(a, j->life->exit_code)
						     : gpuq_null(a));
	gpuq_put(a, v, "attempt", gpuq_int(a, j->attempt));
	gpuq_put(a, v, "priority", gpuq_int(a, j->outlook->terms.total));
	gpuq_put(a, v, "flavor", view_word(a, j->life->flavor));
	view_size(a, v, j);
	list = gpuq_list(a);
	DL_FOREACH2(j->pods, p, job_next)
	if (p->attempt == j->attempt && j->state != GPUQ_JOB_PENDING)
		gpuq_add(a, list, view_pod(a, m, p));
	gpuq_put(a, v, "pods", list);
	gpuq_put(a, v, "gpu_seconds", gpuq_real(a, (double)(used_us(j, now_us) / 1000) / 1000));
	list = gpuq_list(a);
	for (uint32_t i = 0; i < j->life->n_evictions; i++) {
		struct gpuq_val *e = gpuq_map(a);

		gpuq_put(a, e, "time", instant(a, j->life->evictions[i].at_us));
		gpuq_put(a, e, "cause", gpuq_str(a, gpuq_cause_word(j->life->evictions[i].cause)));
		gpuq_put(a, e, "rule", view_word(a, j->life->evictions[i].rule));
		gpuq_put(a, e, "by", view_word(a, j->life->evictions[i].by));
		gpuq_put(a, e, "by_queue", view_word(a, j->life->evictions[i].by_queue));
		gpuq_put(a, e, "why", view_word(a, j->life->evictions[i].why));
		gpuq_add(a, list, e);
	}
	gpuq_put(a, v, "evictions", list);
	gpuq_put(a, v, "end_cause", view_end_cause(a, j));
	gpuq_put(a, v, "use", view_use(a, m, j, now_us));
	list = gpuq_list(a);
	for (uint32_t i = 0; j->life->avoids && i < j->life->avoids->n && !j->ended; i++) {
		struct gpuq_val *e = gpuq_map(a);

		if (j->life->avoids->items[i].until_us <= now_us)
			continue;
		gpuq_put(a, e, "node", gpuq_str(a, j->life->avoids->items[i].node));
		gpuq_put(a, e, "until_time", instant(a, j->life->avoids->items[i].until_us));
		gpuq_add(a, list, e);
	}
	gpuq_put(a, v, "avoids", list);
	gpuq_put(a, v, "promise", view_promise(a, m, j));
	gpuq_put(a, v, "priority_terms", view_terms(a, j));
	gpuq_put(a, v, "message", view_word(a, j->life->message));
	return v;
}

struct gpuq_val *view_spec(struct gpuq_arena *a, const struct gpuq_spec *spec, const char *user,
			   int64_t time_limit_us)
{
	static const char *const nulls[] = { "reason",       "submit_time",   "start_time",
					     "end_time",     "eligible_time", "exit_code",
					     "flavor",       "promise",       "priority_terms",
					     "planned_time", "message",       "end_cause",
					     "use" };
	static const char *const lists[] = { "reasons", "pods", "evictions", "avoids" };
	struct gpuq_val *v = gpuq_map(a), *ar = gpuq_null(a);
	char *labels = joblabel_take(spec);

	if (spec->array.n_ranges) {
		struct gpuq_buf text = GPUQ_BUF_INIT;

		gpuq_array_print(&spec->array, &text);
		ar = gpuq_map(a);
		gpuq_put(a, ar, "indices", gpuq_str(a, gpuq_buf_str(&text)));
		gpuq_put(a, ar, "size", gpuq_int(a, spec->array.size));
		gpuq_put(a, ar, "throttle",
			 spec->array.throttle ? gpuq_int(a, spec->array.throttle) : gpuq_null(a));
		gpuq_buf_done(&text);
	}
	gpuq_put(a, v, "id", gpuq_null(a));
	gpuq_put(a, v, "array_index", gpuq_null(a));
	gpuq_put(a, v, "array", ar);
	gpuq_put(a, v, "name", gpuq_str(a, spec->name));
	gpuq_put(a, v, "user", gpuq_str(a, user));
	gpuq_put(a, v, "queue", gpuq_str(a, spec->queue));
	gpuq_put(a, v, "account", view_word(a, spec->account));
	gpuq_put(a, v, "qos", view_word(a, spec->qos));
	gpuq_put(a, v, "labels", joblabel_view(a, labels));
	free(labels);
	gpuq_put(a, v, "state", gpuq_null(a));
	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		gpuq_put(a, v, nulls[i], gpuq_null(a));
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		gpuq_put(a, v, lists[i], gpuq_list(a));
	gpuq_put(a, v, "time_limit_s",
		 time_limit_us == GPUQ_UNLIMITED ? gpuq_null(a)
						 : gpuq_int(a, time_limit_us / GPUQ_US_PER_S));
	gpuq_put(a, v, "time_min_s",
		 spec->time_min_us ? gpuq_int(a, spec->time_min_us / GPUQ_US_PER_S) : gpuq_null(a));
	gpuq_put(a, v, "attempt", gpuq_int(a, 0));
	gpuq_put(a, v, "priority", gpuq_int(a, 0));
	gpuq_put(a, v, "pod_count", gpuq_int(a, gpuq_spec_pods(spec)));
	gpuq_put(a, v, "gpus", view_devices(a, gpuq_spec_gpus_milli(spec)));
	gpuq_put(a, v, "gpu_seconds", gpuq_int(a, 0));
	return v;
}

/* Instances of MIG profiles: how many there are, and that nobody has. */
static struct gpuq_val *view_mig(struct gpuq_arena *a, const struct node *n)
{
	struct gpuq_val *list = gpuq_list(a);

	for (size_t i = 0; i < n->fact.n_mig; i++) {
		const struct mig_fact *f = &n->fact.mig[i];
		int64_t left = (int64_t)f->count - n->foreign_mig[i];
		struct gpuq_val *v = gpuq_map(a);
		const struct pod *p;

		DL_FOREACH2(n->pods, p, node_next)
		{
			const struct gpuq_group *g = &p->job->request->spec.groups[p->group];

			if (pod_takes(p) && g->mig && snap_profile_same(g->mig, f->profile))
				left -= g->gpus_milli / 1000;
		}
		gpuq_put(a, v, "profile", gpuq_str(a, f->profile));
		gpuq_put(a, v, "count", gpuq_int(a, f->count));
		gpuq_put(a, v, "free", gpuq_int(a, left > 0 && !n->gone ? left : 0));
		gpuq_add(a, list, v);
	}
	return list;
}

/* Who is on a device, and with how much of it. */
static struct gpuq_val *view_tenant(struct gpuq_arena *a, const struct pod *p,
				    const struct device *d)
{
	const int64_t milli = p->gpus_milli / p->n_devices;
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "job", gpuq_str(a, key_text(a, p->job->key)));
	gpuq_put(a, v, "pod", gpuq_int(a, p->index));
	gpuq_put(a, v, "user", gpuq_str(a, p->job->user));
	gpuq_put(a, v, "queue", gpuq_str(a, p->job->queue->name));
	gpuq_put(a, v, "milli", gpuq_int(a, milli));
	gpuq_put(a, v, "memory_mib",
		 d->memory_mib ? gpuq_int(a, d->memory_mib * milli / 1000) : gpuq_null(a));
	return v;
}

/* Why a node is not as it should be; NULL: it is. */
static const char *node_cause(const struct node *n)
{
	if (n->gone)
		return "it is gone; its pods are not known to be";
	if (n->drain && n->drain_why && *n->drain_why)
		return n->drain_why;
	if (n->fact.note && *n->fact.note)
		return n->fact.note;
	if (!n->fact.ready)
		return "it is not ready";
	if (n->drain)
		return "drained by an operator";
	if (n->fact.unschedulable)
		return "the cluster says that it is unschedulable";
	return n->suspect ? "pods failed there of late" : NULL;
}

struct gpuq_val *view_node(struct gpuq_arena *a, const struct model *m, const struct node *n)
{
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a), *labels = gpuq_map(a);
	struct census_slot *slots = gpuq_arena_calloc(a, n->n_devices + 1, sizeof(*slots));
	int64_t free_milli = 0;
	char id[32];

	(void)m;
	if (!slots || !v)
		return NULL;
	census_slots(n, slots);
	for (uint32_t i = 0; i < n->n_devices; i++) {
		const struct device *d = &n->devices[i];
		struct gpuq_val *dv = gpuq_map(a), *jobs = gpuq_list(a), *pods = gpuq_list(a);
		int64_t left = 1000 - slots[i].taken_milli;
		const int64_t taken = left < 0 ? 1000 : slots[i].taken_milli;
		const struct pod *p;

		if (left < 0 || !d->healthy || n->gone)
			left = 0;
		free_milli += left;
		gpuq_put(a, dv, "index", gpuq_int(a, i));
		gpuq_put(a, dv, "uuid", view_word(a, d->uuid));
		gpuq_put(a, dv, "product", view_word(a, d->product));
		gpuq_put(a, dv, "memory_mib",
			 d->memory_mib ? gpuq_int(a, d->memory_mib) : gpuq_null(a));
		gpuq_put(a, dv, "free_milli", gpuq_int(a, left));
		gpuq_put(a, dv, "free_memory_mib",
			 d->memory_mib ? gpuq_int(a, d->memory_mib * left / 1000) : gpuq_null(a));
		DL_FOREACH2(n->pods, p, node_next)
		for (uint32_t k = 0; pod_takes(p) && k < p->n_devices; k++)
			if (p->devices[k] == i) {
				if (p->job->key.index >= 0)
					snprintf(id, sizeof(id), "%u_%d", p->job->key.id,
						 p->job->key.index);
				else
					snprintf(id, sizeof(id), "%u", p->job->key.id);
				gpuq_add(a, jobs, gpuq_str(a, id));
				gpuq_add(a, pods, view_tenant(a, p, d));
			}
		gpuq_put(a, dv, "used_memory_mib",
			 d->memory_mib ? gpuq_int(a, d->memory_mib * taken / 1000) : gpuq_null(a));
		gpuq_put(a, dv, "jobs", jobs);
		gpuq_put(a, dv, "pods", pods);
		gpuq_put(a, dv, "state",
			 gpuq_str(a, n->gone           ? "lost"
				     : !d->healthy     ? "unhealthy"
				     : left == 1000    ? "free"
				     : left > 0        ? "shared"
				     : jobs && jobs->n ? "allocated"
						       : "foreign"));
		gpuq_add(a, list, dv);
	}
	gpuq_put(a, v, "name", gpuq_str(a, n->name));
	gpuq_put(a, v, "pool", gpuq_str(a, n->pool));
	gpuq_put(a, v, "flavor", n->n_devices ? gpuq_str(a, n->flavor) : gpuq_null(a));
	gpuq_put(a, v, "state", gpuq_str(a, gpuq_node_state_word(node_state(n))));
	gpuq_put(a, v, "gpus", gpuq_int(a, n->n_devices));
	gpuq_put(a, v, "free_gpus", view_devices(a, free_milli));
	gpuq_put(a, v, "cpu_milli", gpuq_int(a, n->fact.cpu_milli));
	gpuq_put(a, v, "memory_mib", gpuq_int(a, n->fact.memory_bytes >> 20));
	gpuq_put(a, v, "foreign_pods", gpuq_int(a, n->foreign_pods));
	gpuq_put(a, v, "foreign_gpus", view_devices(a, n->foreign_gpus_milli));
	gpuq_put(a, v, "cause", view_word(a, node_cause(n)));
	gpuq_put(a, v, "note",
		 view_word(a, n->frozen  ? n->frozen_why
			      : n->drain ? n->drain_why
					 : n->fact.note));
	gpuq_put(a, v, "last_seen", instant(a, n->seen_us));
	for (size_t i = 0; i < n->fact.labels.n; i++)
		gpuq_put(a, labels, n->fact.labels.keys[i], gpuq_str(a, n->fact.labels.vals[i]));
	gpuq_put(a, v, "labels", labels);
	gpuq_put(a, v, "devices", list);
	if (n->fact.n_mig)
		gpuq_put(a, v, "mig", view_mig(a, n));
	return v;
}

static bool queue_under(const struct queue *q, const struct queue *top)
{
	for (; q; q = q->parent)
		if (q == top)
			return true;
	return false;
}

static struct gpuq_val *view_amount(struct gpuq_arena *a, const struct site_amount *am,
				    int64_t dflt)
{
	struct gpuq_val *v;

	if (!am->given)
		return view_devices(a, dflt);
	if (!am->per_flavor)
		return view_devices(a, am->all);
	v = gpuq_map(a);
	for (size_t i = 0; i < am->n; i++)
		gpuq_put(a, v, am->flavors[i], view_devices(a, am->amounts[i]));
	return v;
}

/* What a queue is owed of a flavor: what the site says, else what those below it are. */
static int64_t quota_of(const struct model *m, const struct queue *q, const char *flavor)
{
	const int64_t own = site_amount_of(&q->site->quota, flavor, -1);
	int64_t sum = 0;

	if (own >= 0)
		return own;
	for (uint32_t i = 0; i < m->n_queues; i++)
		if (m->queues[i]->parent == q)
			sum = amount_sum(sum, quota_of(m, m->queues[i], flavor));
	return sum;
}

static struct gpuq_val *view_quota(struct gpuq_arena *a, const struct model *m,
				   const struct queue *q)
{
	struct gpuq_val *v;
	bool by_flavor = false;

	if (q->site->quota.given || q->n_children == 0)
		return view_amount(a, &q->site->quota, 0);
	for (uint32_t i = 0; i < m->n_queues; i++)
		by_flavor |= queue_under(m->queues[i], q) && m->queues[i]->site->quota.per_flavor;
	if (!by_flavor)
		return view_devices(a, quota_of(m, q, "default"));
	v = gpuq_map(a);
	site_each(site_flavor, m->site->flavors, f)
		gpuq_put(a, v, f->name, view_devices(a, quota_of(m, q, f->name)));
	if (!gpuq_get(v, "default") && quota_of(m, q, "default"))
		gpuq_put(a, v, "default", view_devices(a, quota_of(m, q, "default")));
	return v;
}

/* The walltimes of its jobs, as they follow from it and the queues above it. */
static void view_times(struct gpuq_arena *a, struct gpuq_val *v, const struct queue *q)
{
	int64_t dflt_us = 0, max_us = 0;

	for (; q; q = q->parent) {
		if (!dflt_us)
			dflt_us = q->site->default_time_us;
		if (q->site->max_time_us && (!max_us || q->site->max_time_us < max_us))
			max_us = q->site->max_time_us;
	}
	gpuq_put(a, v, "default_time_s",
		 dflt_us && dflt_us != GPUQ_UNLIMITED ? gpuq_int(a, dflt_us / GPUQ_US_PER_S)
						      : gpuq_null(a));
	gpuq_put(a, v, "max_time_s",
		 max_us && max_us != GPUQ_UNLIMITED ? gpuq_int(a, max_us / GPUQ_US_PER_S)
						    : gpuq_null(a));
}

struct gpuq_val *view_queue(struct gpuq_arena *a, const struct model *m, const struct queue *q,
			    int64_t used_ms)
{
	struct gpuq_val *v = gpuq_map(a);
	int64_t allocated = 0, held = 0, pending = 0, running = 0;

	for (uint32_t i = 0; i < m->n_queues; i++) {
		const struct queue *c = m->queues[i];

		if (!queue_under(c, q))
			continue;
		allocated += c->allocated_milli;
		held += c->held_milli;
		pending += c->n_pending;
		running += c->n_running;
	}
	gpuq_put(a, v, "name", gpuq_str(a, q->name));
	gpuq_put(a, v, "parent", q->parent ? gpuq_str(a, q->parent->name) : gpuq_null(a));
	gpuq_put(a, v, "quota", view_quota(a, m, q));
	gpuq_put(a, v, "limit", view_amount(a, &q->site->limit, GPUQ_UNLIMITED));
	gpuq_put(a, v, "weight",
		 q->site->weight % 1000 ? gpuq_real(a, (double)q->site->weight / 1000)
					: gpuq_int(a, q->site->weight / 1000));
	gpuq_put(a, v, "fair_share",
		 q->fair_milli < 0 ? gpuq_null(a) : view_devices(a, q->fair_milli));
	gpuq_put(a, v, "allocated", view_devices(a, allocated));
	gpuq_put(a, v, "held", view_devices(a, held));
	gpuq_put(a, v, "pending_jobs", gpuq_int(a, pending));
	gpuq_put(a, v, "running_jobs", gpuq_int(a, running));
	gpuq_put(a, v, "budget_gpu_minutes",
		 q->budget && q->budget->gpu_minutes != GPUQ_UNLIMITED
			 ? gpuq_int(a, q->budget->gpu_minutes)
			 : gpuq_null(a));
	gpuq_put(a, v, "used_gpu_minutes", gpuq_real(a, (double)(used_ms / 6) / 10000));
	view_times(a, v, q);
	gpuq_put(a, v, "namespace", view_word(a, q->site->namespace_));
	gpuq_put(a, v, "state",
		 gpuq_str(a, q->site->stopped && q->site->closed ? "stopped,closed"
			     : q->site->stopped                  ? "stopped"
			     : q->site->closed                   ? "closed"
								 : "open"));
	return v;
}

struct gpuq_val *view_status(struct gpuq_arena *a, const struct model *m, int64_t now_us)
{
	struct gpuq_val *v = gpuq_map(a), *d = gpuq_map(a), *jobs = gpuq_map(a),
			*frozen = gpuq_list(a);
	struct census all;

	if (!census_take(m, now_us, a, &all))
		return NULL;
	gpuq_put(a, v, "gpus", view_devices(a, all.total_milli));
	for (int i = 0; i < N_CENSUS_KINDS; i++)
		gpuq_put(a, d, census_words[i], view_devices(a, all.milli[i]));
	gpuq_put(a, v, "devices", d);
	for (int i = 0; i < N_GPUQ_JOB_STATES; i++)
		gpuq_put(a, jobs, gpuq_job_state_word((enum gpuq_job_state)i),
			 gpuq_int(a, m->n_jobs_by_state[i]));
	gpuq_put(a, v, "jobs", jobs);
	node_each(m, n) if (n->frozen) gpuq_add(a, frozen, gpuq_str(a, n->name));
	gpuq_put(a, v, "frozen_nodes", frozen);
	return v;
}
