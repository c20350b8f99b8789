/* Taking the model's jobs into a snapshot. */
#include "gpuqd/snapshot/snapshot_taking.h"

#include <inttypes.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/snapshot/choices/snapshot_choices.h"
#include "gpuqd/snapshot/snapshot_take_caps.h"
#include "gpuqd/snapshot/snapshot_take_pools.h"
#include "gpuqd/snapshot/snapshot_take_objects.h"
#include "gpuqd/snapshot/snapshot_take_past.h"
#include "gpuqd/state/asks/ask_end.h"
#include "gpuqd/state/cuts/shared_claim.h"

/* True if the job is spread: every pool that it may run in is. */
static bool spreads(const struct taking *t, const struct request_spec *spec)
{
	bool any = false;

	for (uint32_t f = 0; t->packs && f < t->n_flavors; f++) {
		const bool wanted = snapshot_take_by_kind(t, &spec->flavors) ||
				    gpuq_strlist_passes(&spec->flavors, t->flavors[f]);

		if (wanted && t->packs[f])
			return false;
		any |= wanted;
	}
	return any;
}

/* Return the first deciding dependency: "afterok:17". */
static const char *dependency(struct taking *t, const struct job *j, bool never)
{
	const struct dep *d = j->deps->items, *end = d + j->deps->n;
	const char *word, *text;

	while (d < end &&
	       (never ? d->state != DEP_NEVER : d->state == DEP_DONE && d->at_us <= t->now_us))
		d++;
	if (d == end)
		return "";
	word = gpuq_depend_word((enum gpuq_depend_type)d->type);
	if (d->type == GPUQ_DEP_SINGLETON)
		return word;
	text = d->on.index < 0 ? gpuq_arena_printf(&t->mem, "%s:%" PRIu32, word, d->on.id)
			       : gpuq_arena_printf(&t->mem, "%s:%" PRIu32 "_%" PRId32, word,
						   d->on.id, d->on.index);
	return text ? text : "";
}

/* Note what keeps the job from starting whatever is free. The widest cause is reported: one of the
 * whole site before one of the job. */
static void gate(struct taking *t, const struct job *j, struct snap_job *sj)
{
	bool never;

	if (model_is_fenced(t->m)) {
		sj->gate = GPUQ_R_FENCED;
		sj->gate_object = t->m->fenced_by;
	} else if (recovery_waits(t->m)) {
		sj->gate = GPUQ_R_RECOVERING;
		sj->gate_object = "";
	} else if (deps_are_awaited(j, t->now_us, &never) || never) {
		sj->gate = never ? GPUQ_R_DEPENDENCY_NEVER : GPUQ_R_DEPENDENCY;
		sj->gate_object = dependency(t, j, never);
	} else if (j->life->blocked && j->life->blocked->until_us > t->now_us) {
		sj->gate = (uint8_t)j->life->blocked->code;
		sj->gate_object = j->life->blocked->object;
	} else if (j->queue->refused) {
		sj->gate = GPUQ_R_CLUSTER_REFUSED;
		sj->gate_object = j->queue->refused->object;
	}
}

bool snapshot_take_pod(struct taking *t, const struct pod *p, struct snap_alloc *out)
{
	const struct life *life = p->job->life;
	const bool shares = shared_claim_group(&p->job->request->spec, p->group);
	uint32_t *devices = gpuq_arena_calloc(&t->mem, p->n_devices + 1, sizeof(*devices));

	if (!devices)
		return false;
	for (uint32_t i = 0; i < p->n_devices; i++)
		devices[i] = p->devices[i];
	*out = (struct snap_alloc){
		.node = p->node->snap_ix,
		.group = p->group,
		.index = p->index,
		.releasing = life->leave_us != 0 || p->leaving || p->dropped ||
			     life->outcome != GPUQ_JOB_PENDING,
		.devices = devices,
		.n_devices = p->n_devices,
		.milli = p->n_devices ? (int32_t)(p->gpus_milli / p->n_devices) : 0,
		.shares = shares,
		.stays = shares && shared_claim_carries(p),
		.charge_milli = shares ? p->gpus_milli : 0,
	};
	return true;
}

/* Return the word of the kubelets that refused a held job: "NodeAffinity"; "" = it is held for
 * another reason. */
static const char *kubelet_word(struct taking *t, const struct job *j)
{
	const char *text = j->life->message ? j->life->message : "";
	size_t n = 0;

	while (text[n] == '-' || text[n] == '.' || text[n] == '/' ||
	       (text[n] >= '0' && text[n] <= '9') || (text[n] >= 'a' && text[n] <= 'z') ||
	       (text[n] >= 'A' && text[n] <= 'Z'))
		n++;
	if (n == 0 || text[n] != ':')
		return "";
	text = gpuq_arena_printf(&t->mem, "%.*s", (int)n, text);
	return text ? text : "";
}

/* Add the pods that hold resources. */
static void take_allocs(struct taking *t, const struct job *j, uint32_t job)
{
	const struct pod *p;
	struct snap_alloc a;

	DL_FOREACH2(j->pods, p, job_next) {
		if (!model_pod_takes(p))
			continue;
		if (!snapshot_take_pod(t, p, &a))
			return;
		a.job = job;
		snapshot_add_alloc(t->s, &a);
	}
}

/* All of its nodes are there: carry_out_renounce_lost(). */
bool snapshot_take_promised(struct taking *t, const struct job *j, uint32_t index,
			    struct snap_alloc *out)
{
	const struct promised_pod *pp = &j->life->promise->pods[index];
	const struct node *n = model_find_node(t->m, pp->node);
	const bool shares = shared_claim_group(&j->request->spec, pp->group);
	uint32_t *devices = gpuq_arena_calloc(&t->mem, pp->n_devices + 1, sizeof(*devices));

	if (!devices || !n)
		return false;
	for (uint32_t k = 0; k < pp->n_devices; k++)
		devices[k] = pp->devices[k];
	*out = (struct snap_alloc){ .node = n->snap_ix,
				    .group = pp->group,
				    .index = index,
				    .devices = devices,
				    .n_devices = pp->n_devices,
				    .milli = pp->n_devices
						     ? (int32_t)(pp->gpus_milli / pp->n_devices)
						     : 0,
				    .shares = shares,
				    .charge_milli = shares ? pp->gpus_milli : 0 };
	return true;
}

/* Add the nominated placement. */
static void take_promise(struct taking *t, const struct job *j, uint32_t job)
{
	struct snap_alloc a;

	for (uint32_t i = 0; i < j->life->promise->n_pods; i++) {
		if (!snapshot_take_promised(t, j, i, &a))
			return;
		a.job = job;
		snapshot_add_promise(t->s, &a);
	}
}

/* Pending time counts from when only other jobs were in its way. */
static int64_t eligible_since(const struct job *j)
{
	int64_t since = j->eligible_us, first = INT64_MAX, last = 0;

	for (uint32_t i = 0; i < deps_count(j); i++) {
		const struct dep *d = &j->deps->items[i];

		if (d->state != DEP_DONE)
			continue;
		first = d->at_us < first ? d->at_us : first;
		last = d->at_us > last ? d->at_us : last;
	}
	/* One dependency suffices: the first that was met counts. */
	if (j->wish->depends_any && last > 0)
		last = first;
	return last > since ? last : since;
}

/* Return the handle of a request. Where jobs are added in steps it may be newer than they are. */
static uint32_t request_handle(struct taking *t, struct request *r)
{
	if (!t->early)
		return r->snap_ix;
	if (r->early_turn != t->early) {
		r->early_ix = snapshot_take_base(t, r);
		r->early_turn = t->early;
	}
	return r->early_ix;
}

/* Return whether it uses spot nodes other than its request has it by itself; AUTO = as that has it. */
static enum gpuq_spot spot_of_its_own(const struct taking *t, const struct job *j, bool preemptible)
{
	const struct request_spec *spec = &j->request->spec;
	const enum gpuq_spot spot =
		t->has_spot ? snapshot_pools_spot(spec, preemptible, snapshot_pools_lost(j),
						  j->queue->site->max_spot_preemptions)
			    : GPUQ_SPOT_AUTO;

	return spot == GPUQ_SPOT_AUTO || spot == snapshot_pools_spot(spec, true, 0, 1)
		       ? GPUQ_SPOT_AUTO
		       : spot;
}

/* True if pods of one of its groups share a claim. */
static bool shares_claims(const struct request_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_groups; i++)
		if (shared_claim_group(spec, i))
			return true;
	return false;
}

/* Set the job's request, as its queue's namespace makes it. A live job's pods may take other
 * amounts than its next ones will. */
static void set_request(struct taking *t, const struct job *j, bool holds, struct snap_job *sj)
{
	const struct request_spec *spec = &j->request->spec;
	const struct snap_amounts *taken = holds ? snapshot_objects_taken(t->objects, j) : NULL;
	struct snap_variant *v = snapshot_objects_of(t->objects, j->queue, spec, j->request);
	const enum gpuq_spot spot = spot_of_its_own(t, j, sj->preemptible);
	const struct request_spec *has = snapshot_choices_taken(t, j, spec);
	struct request_spec own = *has;

	own.spot = spot != GPUQ_SPOT_AUTO ? (uint8_t)spot : has->spot;
	/* Pods that have places are no longer one, though they share a claim. */
	t->placed = v && (holds || j->life->promise) && shares_claims(spec);
	if (v && v->request == SNAP_NONE && spot == GPUQ_SPOT_AUTO && !t->placed)
		v->request = snapshot_take_request(t, spec, j->request, j->queue, NULL);
	sj->request = spot != GPUQ_SPOT_AUTO || has != spec
			      ? snapshot_take_request(t, &own, j->request,
						      taken || v ? j->queue : NULL, taken)
		      : taken || t->placed
			      ? snapshot_take_request(t, spec, j->request, j->queue, taken)
		      : v ? v->request
			  : request_handle(t, j->request);
	t->placed = false;
	if (v && !holds && sj->gate == GPUQ_R_NONE && v->gate != GPUQ_R_NONE) {
		sj->gate = v->gate;
		sj->gate_object = v->gate_object;
	}
}

/* The present is that of the beginning: what happened since is no later. */
static void set_present(const struct taking *t, struct snap_job *sj)
{
	int64_t *const times[] = { &sj->start_us,  &sj->placed_us,   &sj->short_us,
				   &sj->shrunk_us, &sj->eligible_us, &sj->submit_us };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (*times[i] > t->now_us)
			*times[i] = t->now_us;
}

bool snapshot_take_entry(struct taking *t, const struct job *j, struct snap_job *out, bool *holding)
{
	const struct site_qos *qos = site_qos_find(t->m->site, j->qos);
	struct snap_range *ranges = NULL;
	struct snap_job sj;
	const struct pod *p;
	bool holds = false;

	DL_FOREACH2(j->pods, p, job_next)
		holds |= model_pod_takes(p);
	/* Its elements have entries of their own. */
	if (j->array && j->array->n_waiting == 0)
		return false;
	if (j->ended && !holds)
		return false;
	snapshot_job_default(&sj);
	sj.key = (struct snap_key){ j->key.id, j->key.index };
	sj.queue = t->queue_of[j->queue->ix];
	sj.user = snapshot_user(t->s, j->user);
	sj.state =
		!model_job_is_live(j) && !holds ? SNAP_PENDING
		: j->life->leave_us || j->life->outcome != GPUQ_JOB_PENDING || !model_job_is_live(j)
			? SNAP_LEAVING
			: SNAP_RUNNING;
	sj.attempt = j->attempt;
	sj.priority = qos ? qos->priority : 0;
	sj.nice = j->wish->nice;
	sj.fixed_priority = j->wish->fixed_priority;
	sj.eligible_us = eligible_since(j);
	sj.submit_us = j->submit_us;
	sj.begin_us = clock_job_begin_us(t->m, j);
	if (sj.begin_us < j->life->not_before_us)
		sj.begin_us = j->life->not_before_us;
	sj.deadline_us = clock_job_deadline_us(t->m, j);
	sj.walltime_us = j->time_limit_us;
	sj.walltime_min_us = j->wish->time_min_us;
	if (j->wish->time_asked_us != j->time_limit_us)
		sj.walltime_asked_us = j->wish->time_asked_us;
	sj.start_us = j->life->start_us ? j->life->start_us : j->life->placed_us;
	sj.placed_us = j->life->placed_us;
	sj.starting = j->life->start_us == 0;
	if (sj.state == SNAP_PENDING)
		sj.start_us = sj.placed_us = 0;
	sj.spread = t->spread && spreads(t, &j->request->spec);
	sj.preemptible = !qos || qos->preemptible;
	sj.min_runtime_us = qos ? qos->min_runtime_us : 0;
	sj.spared = ask_job_is_spared(t->m, j);
	sj.held = (uint8_t)((j->held_user ? SNAP_HELD_USER : 0) |
			    (j->held_admin ? SNAP_HELD_ADMIN : 0) |
			    (j->held_retries ? SNAP_HELD_RETRIES : 0) |
			    (j->held_restore ? SNAP_HELD_RESTORE : 0));
	gate(t, j, &sj);
	set_request(t, j, holds, &sj);
	snapshot_pools_job(t, j, &sj);
	if (j->held_retries && sj.gate == GPUQ_R_NONE)
		sj.gate_object = kubelet_word(t, j);
	if (j->array) {
		ranges = gpuq_arena_calloc(&t->mem, j->array->n_waiting_ranges, sizeof(*ranges));
		if (!ranges)
			return false;
		for (size_t i = 0; i < j->array->n_waiting_ranges; i++)
			ranges[i] = (struct snap_range){ (int32_t)j->array->waiting[i].first,
							 (int32_t)j->array->waiting[i].last,
							 (int32_t)j->array->waiting[i].step };
		sj.ranges = ranges;
		sj.n_ranges = (uint32_t)j->array->n_waiting_ranges;
		sj.throttle = (uint32_t)j->array->throttle;
	} else if (j->key.index >= 0) {
		const struct job *master = model_find_job(t->m, (struct job_key){ j->key.id, -1 });

		if (master && master->array)
			sj.throttle = (uint32_t)master->array->throttle;
	}
	snapshot_past_fill(&(struct snap_past){ .m = t->m,
						.now_us = t->now_us,
						.queue_of = t->queue_of,
						.mem = &t->mem,
						.doubtful = t->doubtful,
						.n_doubtful = t->n_doubtful },
			   j, &sj);
	if (t->caps)
		snapshot_caps_fill(t->caps, j->queue, j->user, j->qos, &sj);
	if (t->early)
		set_present(t, &sj);
	MORE(t, job, j, &sj);
	*out = sj;
	*holding = holds;
	return true;
}

/* Add a job and return its handle. first: it stands for equivalent jobs behind it. */
static uint32_t take_job(struct taking *t, const struct job *j, bool first)
{
	static const struct snap_range only = { 0, 0, 1 };
	struct snap_job sj;
	bool holds;
	uint32_t job;

	if (!snapshot_take_entry(t, j, &sj, &holds))
		return SNAP_NONE;
	if (first) {
		sj.alike = true;
		sj.ranges = &only;
		sj.n_ranges = 1;
	}
	job = snapshot_add_job(t->s, &sj);
	if (holds && job != SNAP_NONE)
		take_allocs(t, j, job);
	if (j->life->promise && job != SNAP_NONE)
		take_promise(t, j, job);
	return job;
}

/* True if the job goes into the shared entry, since enough equivalent jobs have entries of their
 * own. Every job in it is younger than all before it; one that is not has an entry of its own. */
static bool stands_behind(struct taking *t, const struct job *j)
{
	struct alike *like = j->state == GPUQ_JOB_PENDING ? equivalent_of(t->m, j) : NULL;
	const uint64_t turn = t->m->readers->alike_turn[t->reader];
	struct alike_shown *a;

	if (!like)
		return false;
	a = &like->shown[t->reader];
	if (a->turn != turn)
		*a = (struct alike_shown){ .turn = turn,
					   .rest = SNAP_NONE,
					   .eligible_us = INT64_MIN,
					   .submit_us = INT64_MIN };
	if (j->eligible_us < a->eligible_us || j->submit_us < a->submit_us || j->key.id < a->id) {
		a->odd = true;
		return false;
	}
	a->eligible_us = j->eligible_us;
	a->submit_us = j->submit_us;
	a->id = j->key.id;
	if (a->n_shown < t->most) {
		a->n_shown++;
		return false;
	}
	/* Jobs behind it get an entry of their own. */
	if (j->alone) {
		a->n_rest = 0;
		return false;
	}
	if (a->n_rest++ > 0) {
		snapshot_add_alike(t->s, a->rest);
	} else {
		a->rest = take_job(t, j, true);
		a->rest_id = j->key.id;
	}
	return true;
}

/* Add a job, in an entry of its own unless it goes into a shared one; of a settled one the user
 * alone, since the shares of users depend on one another. */
static void take_one(struct taking *t, const struct job *j)
{
	if (t->part && j->settled && j->state == GPUQ_JOB_PENDING)
		snapshot_usage(t->s, t->queue_of[j->queue->ix], snapshot_user(t->s, j->user));
	else if (!t->few || !stands_behind(t, j))
		take_job(t, j, false);
}

void snapshot_take_jobs_begin(struct taking *t)
{
	struct readers *r = t->m->readers;

	if (t->few)
		r->alike_turn[t->reader]++;
	r->take_next = t->m->jobs;
	r->take_last = t->m->jobs ? t->m->jobs->prev : NULL;
}

/* Jobs that arrive between two steps are not part of this snapshot: the last one is fixed at the
 * beginning. */
bool snapshot_take_jobs_go_on(struct taking *t, uint32_t most)
{
	struct readers *r = t->m->readers;

	for (; most > 0 && r->take_next; most--) {
		const struct job *j = r->take_next;

		r->take_next = j == r->take_last ? NULL : j->next;
		take_one(t, j);
	}
	return !r->take_next;
}

void snapshot_take_jobs(struct taking *t)
{
	if (t->few)
		t->m->readers->alike_turn[t->reader]++;
	job_each(t->m, j)
		take_one(t, j);
}
