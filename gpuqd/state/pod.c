#include "gpuqd/state/model_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/state/cuts/shared_claim.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* A pod from its placement until the cluster no longer has it. News may come late, twice or in the
 * wrong order; times are therefore kept within what the ledger knows, and what a pod held is
 * released once. */

size_t pod_key(const struct pod *p, unsigned char *out)
{
	const struct job_key job = p->job->key;

	return change_key_cluster(out, change_key_pod(out, job.id, job.index, p->attempt, p->index),
				  p->node->cluster);
}

struct pod *pod_add(struct model *m, struct job *j, struct node *n, uint32_t n_devices)
{
	struct pod *p =
		calloc(1, sizeof(*p) + shared_claim_room(j, n_devices) * sizeof(*p->devices));

	if (!p)
		abort();
	(void)m;
	p->job = j;
	p->node = n;
	p->exit_code = -1;
	p->n_devices = n_devices;
	p->dirty = true;
	DL_APPEND2(j->pods, p, job_prev, job_next);
	DL_APPEND2(n->pods, p, node_prev, node_next);
	return p;
}

void pod_free(struct model *m, struct pod *p)
{
	struct node *n = p->node;

	if (model_pod_takes(p))
		p->job->queue->allocated_milli -= p->gpus_milli;
	DL_DELETE2(p->job->pods, p, job_prev, job_next);
	DL_DELETE2(n->pods, p, node_prev, node_next);
	free(p->message);
	free(p->used);
	free(p);
	(void)m;
}

/* Remove the pod from memory and from the table of pods. Its node, if that is gone, may go with the
 * last of them. */
void pod_remove(struct model *m, struct pod *p)
{
	unsigned char key[CHANGE_KEY_BYTES_MAX];
	struct node *n = p->node;

	change_batch_put(&m->direct, TABLE_POD, key, pod_key(p, key), NULL, 0);
	pod_free(m, p);
	node_drop_if_empty(m, n);
}

/* Note that the pod is to be stored, with its job. */
static void touch(struct model *m, struct pod *p)
{
	p->dirty = true;
	model_job_dirty(m, p->job);
}

static const enum gpuq_job_state fault_state[] = {
	[POD_FAULT_NONE] = GPUQ_JOB_FAILED,        [POD_FAULT_OOM] = GPUQ_JOB_OUT_OF_MEMORY,
	[POD_FAULT_REJECTED] = GPUQ_JOB_NODE_FAIL, [POD_FAULT_INFRA] = GPUQ_JOB_NODE_FAIL,
	[POD_FAULT_IMAGE] = GPUQ_JOB_FAILED,       [POD_FAULT_DEADLINE] = GPUQ_JOB_TIMEOUT,
};

/* Note the outcome: the first pod that does not succeed decides how the attempt ends; the others
 * are signalled (flow/dispatch sees the outcome). */
static void note_outcome(struct model *m, struct job *j, const struct pod *p)
{
	if (j->life->outcome != GPUQ_JOB_PENDING) {
		/* Already ending: the state is known, the exit code is that of the first pod to
		 * leave. */
		if (j->life->outcome_exit < 0 && p->exit_code >= 0 &&
		    j->life->outcome != GPUQ_JOB_NODE_FAIL)
			job_life(j)->outcome_exit = p->exit_code;
		return;
	}
	if (p->exit_code == 0 && p->fault == POD_FAULT_NONE)
		return;
	job_life(j)->outcome = fault_state[p->fault];
	job_life(j)->outcome_exit = p->exit_code;
	model_job_dirty(m, j);
}

void pod_avoid(struct model *m, struct job *j, const char *node, int64_t until_us)
{
	struct avoids *a = j->life->avoids;
	uint32_t at = 0;

	if (!a) { /* few jobs ever lose a pod like this */
		a = job_life(j)->avoids = must(calloc(1, sizeof(*a)));
		m->n_avoiding++;
	}
	while (at < a->n && a->items[at].node != node)
		at++;
	if (at == a->n && a->n == JOB_AVOIDS_MAX)
		at = 0; /* the oldest */
	if (at < a->n)
		memmove(&a->items[at], &a->items[at + 1], (--a->n - at) * sizeof(a->items[0]));
	a->items[a->n++] = (struct avoided){ node, until_us };
}

/* A job that lost a pod to a node, or whose pod was refused there, avoids the node while there are
 * others. A node that refuses the pods of different jobs is suspended for all (EV_NODE_BACKOFF). One
 * that lacks a resource is avoided for that (EV_NODE_SHORT), and one from which gpuqd has called the
 * job away has not failed it. */
static void avoid_node(struct model *m, struct job *j, const struct pod *p, int64_t at_us)
{
	const bool refused = p->fault == POD_FAULT_REJECTED;

	if ((refused && !p->named) || (p->fault == POD_FAULT_INFRA && !j->life->leave_us))
		pod_avoid(m, j, p->node->name, at_us + JOB_AVOID_US);
	if (refused)
		job_note_rejected(j, p->node->name, p->named);
}

/* Release the devices of a pod that has ended, and let the job react: it goes on without the pod,
 * or its attempt ends. */
static void end_pod(struct model *m, struct pod *p, int64_t at_us)
{
	struct job *j = p->job;

	j->queue->allocated_milli -= p->gpus_milli;
	p->end_us = at_us;
	job_life(j)->gpu_us += accounting_pod_us(p, p->start_us ? p->start_us : at_us, at_us);
	if (p->attempt == j->attempt)
		avoid_node(m, j, p, at_us);
	if (p->attempt != j->attempt || p->dropped || job_goes_on_without(m, j, p, at_us))
		return;
	/* A pod that ended after the signal ended because of it, not by itself. */
	note_outcome(m, j, p);
	if (model_job_is_live(j))
		job_set_state(m, j, GPUQ_JOB_COMPLETING);
}

/* Clusters report whole seconds, so that an instant may seem to precede one in the same second. */
#define TOLD_STEP_US GPUQ_US_PER_S

/* Clamp the reported time of a pod's start or end, which is by another machine's clock, between
 * times of our own: not before the pod was placed, not after its start or its end was seen. */
static int64_t between(int64_t least_us, int64_t us, int64_t most_us)
{
	return us > most_us ? most_us : us > least_us - TOLD_STEP_US ? us : least_us;
}

/* Return the earliest possible start: a recovered pod had been placed before. */
static int64_t earliest(const struct pod *p)
{
	return p->recovered && p->job->submit_us < p->placed_us ? p->job->submit_us : p->placed_us;
}

/* Return the other pod with whole devices that has that one; NULL = none. */
static struct pod *holder_of(const struct pod *p, uint32_t device)
{
	struct pod *o;

	DL_FOREACH2(p->node->pods, o, node_next)
		if (o != p && model_pod_takes(o) && model_pod_has_device(o, device))
			return o;
	return NULL;
}

/* ---- claims that pods share ---- */

/* Note at the pods with a claim whether there are others beside them. */
static void note_beside(struct model *m, const char *namespace_, const char *claim)
{
	const char *home = objects_namespace(m->objects, namespace_);
	const bool shared = shared_claim_users(m, namespace_, claim).n > 1 ||
			    shared_claim_has_others(m, home, claim);
	struct pod *p;

	node_each(m, n)
		DL_FOREACH2(n->pods, p, node_next) {
			const struct gpuq_group *g =
				p->job->request
					? shared_claim_group(&p->job->request->spec, p->group)
					: NULL;
			const size_t at = shared_claim_at(g, claim);
			const uint16_t bit = at < GPUQ_CLAIMS_MAX ? (uint16_t)(1u << at) : 0;

			if (!bit || !model_pod_takes(p) || !!(p->beside & bit) == shared ||
			    strcmp(objects_namespace(m->objects,
						     model_queue_namespace(p->job->queue)),
				   home) != 0)
				continue;
			p->beside ^= bit;
			touch(m, p);
		}
}

void pod_claims_placed(struct model *m, const struct pod *p)
{
	const struct gpuq_group *g = shared_claim_group(&p->job->request->spec, p->group);

	for (size_t i = 0; g && i < g->n_claims; i++)
		if (g->claims[i].shares)
			note_beside(m, model_queue_namespace(p->job->queue), g->claims[i].claim);
}

/* Add a device to those of a pod; ascending. */
static void add_device(struct pod *p, uint16_t device)
{
	uint32_t i = p->n_devices++;

	for (; i > 0 && p->devices[i - 1] > device; i--)
		p->devices[i] = p->devices[i - 1];
	p->devices[i] = device;
}

/* Charge a pod for a claim from now on; it has room for the devices. */
static void take_over(struct model *m, struct pod *p, const char *claim, const uint16_t *devices,
		      uint32_t n, enum devices_from from, int64_t at_us)
{
	const struct gpuq_group *g = shared_claim_group(&p->job->request->spec, p->group);
	const int64_t more = (int64_t)n * 1000;
	struct life *l;

	if (p->n_devices + n > shared_claim_room(p->job, 0))
		return;
	l = job_life(p->job);
	/* A job without any device was charged to no flavor. */
	if (!*l->flavor)
		l->flavor = model_intern(m, p->node->flavor);
	if (p->start_us)
		account_pod_more(m, p, more, at_us);
	/* The book has two parts of its time: with what it had before, and with all. */
	accounting_charge_more(p, at_us);
	/* All of its devices are as well known as the least known. */
	if (p->n_devices == 0 || from != DEVICES_TOLD)
		p->devices_from = from;
	for (uint32_t i = 0; i < n; i++)
		add_device(p, devices[i]);
	p->rides &= (uint16_t) ~(1u << shared_claim_at(g, claim));
	p->gpus_milli += more;
	p->job->queue->allocated_milli += more;
	touch(m, p);
}

/* Pass on what a pod was charged for that has ended. */
static void claims_released(struct model *m, const struct pod *p, int64_t at_us)
{
	const struct gpuq_group *g =
		p->job->request ? shared_claim_group(&p->job->request->spec, p->group) : NULL;
	const char *namespace_ = model_queue_namespace(p->job->queue);

	for (size_t i = 0; g && i < g->n_claims; i++) {
		const char *claim = g->claims[i].claim;
		const uint32_t n = (uint32_t)g->claims[i].shares;
		uint16_t devices[DRA_RESULTS_MAX];
		struct shared_claim_users users;

		if (n == 0)
			continue;
		users = shared_claim_users(m, namespace_, claim);
		if (!(p->rides >> i & 1) && !users.charged && users.oldest &&
		    users.oldest->node == p->node &&
		    shared_claim_left_by(m, p, claim, n, devices) == n)
			take_over(m, users.oldest, claim, devices, n, p->devices_from, at_us);
		note_beside(m, namespace_, claim);
	}
	/* Where pods of others stay, they have the devices now. */
	if (g)
		m->n_node_changes += node_count_claims(m, p->node);
}

/* The claim has changed: where it is no longer that of others, its oldest pod is charged. */
void pod_claim_seen(struct model *m, const char *namespace_, const char *name, int64_t at_us)
{
	const struct dra_claim *c = dra_claim(objects_dra(m->objects), namespace_, name);
	const struct shared_claim_users users = shared_claim_users(m, namespace_, name);
	uint16_t devices[DRA_RESULTS_MAX];
	const struct gpuq_group *g;
	size_t at;
	uint32_t n;

	if (users.n > 0)
		note_beside(m, namespace_, name);
	if (!c || !c->allocated || !users.oldest || users.charged || shared_claim_is_foreign(m, c))
		return;
	g = shared_claim_group(&users.oldest->job->request->spec, users.oldest->group);
	at = shared_claim_at(g, name);
	n = shared_claim_cards(m, users.oldest->node, namespace_, name, devices);
	/* Those that the ledger has for other pods are told anew when these have theirs. */
	for (uint32_t i = 0; i < n; i++)
		if (holder_of(users.oldest, devices[i]))
			return;
	if (at < GPUQ_CLAIMS_MAX && n == (uint32_t)g->claims[at].shares)
		take_over(m, users.oldest, name, devices, n, DEVICES_TOLD, at_us);
}

/* Note the start of a pod: its node works, and earlier refusals of the job's pods no longer count. */
static void started(struct model *m, struct pod *p, const struct event *ev)
{
	struct job *j = p->job;

	p->start_us = ev->started.start_us ? between(earliest(p), ev->started.start_us, ev->at_us)
					   : ev->at_us;
	if (p->recovered && p->start_us < p->placed_us)
		p->placed_us = p->start_us;
	p->state = GPUQ_POD_RUNNING;
	/* One that was ended before it ran may show a start as well. */
	if (p->job->life->leave_us == 0)
		p->node->suspect = false;
	job_clear_rejected(j);
	if (j->life->trouble && j->life->trouble->pod == p->index)
		job_clear_trouble(j);
	node_shorts_started(m, p);
	account_pod_started(m, p, ev->at_us);
	touch(m, p);
	/* It started long before it was reported, and so did its time limit. */
	if (p->attempt == j->attempt)
		job_start_if_all_run(m, j, p->recovered ? p->start_us : ev->at_us);
}

/* Note the end of a pod. Times are put in order, then use is charged, then the devices are
 * released. */
static void ended(struct model *m, struct pod *p, const struct event *ev)
{
	int64_t end = ev->pod_ended.end_us ? ev->pod_ended.end_us : ev->at_us;
	const int64_t counted = p->start_us, told = ev->pod_ended.start_us;

	if (told) {
		p->start_us = between(earliest(p), told,
				      counted && end > ev->at_us ? counted : ev->at_us);
		/* An impossible start shows how far off that clock is: the duration of the run is
		 * still right. */
		if (ev->pod_ended.end_us >= told)
			end += p->start_us - told;
	}
	end = between(earliest(p), end, ev->at_us);
	if (p->start_us && !p->job->life->start_us && p->attempt == p->job->attempt)
		job_life(p->job)->start_us = p->start_us;
	if (end < p->start_us)
		end = p->start_us;
	p->exit_code = ev->pod_ended.exit_code;
	p->fault = ev->pod_ended.fault;
	p->untold = ev->pod_ended.untold;
	p->named = ev->pod_ended.named;
	free(p->message);
	p->message = ev->pod_ended.message && *ev->pod_ended.message ? strdup(ev->pod_ended.message)
								     : NULL;
	if (p->attempt == p->job->attempt)
		load_pod_ended(p, ev->pod_ended.used);
	account_pod_ended(m, p, counted, end, ev->at_us);
	accounting_charge_pod_ended(m, p, end);
	end_pod(m, p, end);
	p->state = GPUQ_POD_ENDED;
	claims_released(m, p, ev->at_us);
	accounting_charge_strand(m, p->node);
	touch(m, p);
}

/* True if it was never made, since its job gave the place up: that is no fault of the node. */
static bool is_withdrawn(const struct pod *p)
{
	const struct life *l = p->job->life;

	return p->state == GPUQ_POD_PLANNED && l->leave_us && l->leave_cause == GPUQ_CAUSE_REQUEUE;
}

/* Note that the cluster no longer has the pod. */
static void gone(struct model *m, struct pod *p, const struct event *ev)
{
	struct job *j = p->job;
	const bool took = model_pod_takes(p);

	if (took) {
		/* Gone, but its end was not observed: no exit code is known. */
		p->exit_code = -1;
		p->fault = is_withdrawn(p) ? POD_FAULT_NONE : POD_FAULT_INFRA;
		account_pod_ended(m, p, p->start_us, ev->at_us, ev->at_us);
		accounting_charge_pod_ended(m, p, ev->at_us);
		end_pod(m, p, ev->at_us);
	}
	p->state = GPUQ_POD_GONE;
	if (took)
		claims_released(m, p, ev->at_us);
	accounting_charge_strand(m, p->node);
	/* The last attempt's pods stay readable until the job leaves memory. */
	if (p->attempt != j->attempt || j->state == GPUQ_JOB_PENDING || p->dropped) {
		pod_remove(m, p);
		model_job_dirty(m, j);
	} else {
		touch(m, p);
	}
	marks_done(m, j);
}

/* ---- events ---- */

/* Return the pod of the event; NULL after an error. */
static struct pod *find(const struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct pod *p = model_find_pod(m, ev->pod);

	if (!p)
		gpuq_fail(err, GPUQ_ENOENT, "no such pod of job %u", ev->pod.job.id);
	return p;
}

int pod_apply_created(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct pod *p = find(m, ev, err);

	if (!p)
		return GPUQ_ENOENT;
	if (p->state != GPUQ_POD_PLANNED)
		return gpuq_fail(err, GPUQ_EINVAL, "the pod exists already");
	p->state = GPUQ_POD_CREATED;
	snprintf(p->uid, sizeof(p->uid), "%s", ev->created.uid);
	touch(m, p);
	return 0;
}

int pod_apply_started(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct pod *p = find(m, ev, err);

	if (!p)
		return GPUQ_ENOENT;
	if (p->state >= GPUQ_POD_RUNNING)
		return gpuq_fail(err, GPUQ_EINVAL, "the pod runs already");
	started(m, p, ev);
	return 0;
}

int pod_apply_ended(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct pod *p = find(m, ev, err);

	if (!p)
		return GPUQ_ENOENT;
	if (!model_pod_takes(p)) /* the first reported end wins */
		return gpuq_fail(err, GPUQ_EINVAL, "the pod has ended already");
	ended(m, p, ev);
	return 0;
}

int pod_apply_gone(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct pod *p = find(m, ev, err);

	if (!p)
		return GPUQ_ENOENT;
	if (p->state == GPUQ_POD_GONE)
		return gpuq_fail(err, GPUQ_EINVAL, "the pod is gone already");
	gone(m, p, ev);
	return 0;
}

int pod_apply_leaving(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct pod *p = find(m, ev, err);

	if (!p)
		return GPUQ_ENOENT;
	p->leaving = true;
	return 0;
}

int pod_apply_signalled(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	return find(m, ev, err) ? 0 : GPUQ_ENOENT; /* in its log only */
}

/* True if one of the devices of the event. */
static bool is_reported(const struct event *ev, int device)
{
	for (size_t i = 0; i < ev->devices.n; i++)
		if (ev->devices.items[i] == device)
			return true;
	return false;
}

/* Put a device of a pod in place of another; ascending. */
static void exchange(struct pod *p, int from, int to)
{
	uint32_t i = 0;

	while (p->devices[i] != from)
		i++;
	for (; i > 0 && p->devices[i - 1] > to; i--)
		p->devices[i] = p->devices[i - 1];
	for (; i + 1 < p->n_devices && p->devices[i + 1] < to; i++)
		p->devices[i] = p->devices[i + 1];
	p->devices[i] = (uint16_t)to;
}

/* ---- nodes whose plugin chooses by what is free ---- */

static bool chooses(const struct node *n)
{
	return n->backend && n->backend->choose;
}

/* Return what a pod holds of each of its devices, in units of the backend. */
static struct backend_room held_of(const struct pod *p)
{
	const int64_t device = p->n_devices ? p->node->devices[0].memory_mib : 0;
	const int64_t milli = model_pod_cores(p);
	const struct request *r = p->job->request;
	const int64_t bytes = r ? r->spec.groups[p->group].gpu_memory_bytes : 0;

	if (milli >= 1000)
		return (struct backend_room){ milli, device };
	return (struct backend_room){ milli,
				      backend_gives_mib(p->node->backend, bytes, milli, device) };
}

static void take(struct backend_room *rooms, const struct pod *p)
{
	const struct backend_room held = held_of(p);

	for (uint32_t i = 0; i < p->n_devices; i++)
		if (p->devices[i] < p->node->n_devices) {
			rooms[p->devices[i]].milli -= held.milli;
			rooms[p->devices[i]].mib -= held.mib;
		}
}

/* Choose as the plugin will; a pod for which there is no room keeps its plan. */
static void choose_for(struct model *m, struct pod *p, struct backend_room *rooms)
{
	const struct node *n = p->node;
	const struct backend_room held = held_of(p);
	uint16_t *out = must(calloc(p->n_devices + 1, sizeof(*out)));
	uint32_t done = 0;

	for (; done < p->n_devices; done++) {
		const int d = n->backend->choose(held, rooms, n->n_devices);
		uint32_t i = done;

		if (d < 0)
			break;
		rooms[d].milli -= held.milli;
		rooms[d].mib -= held.mib;
		for (; i > 0 && out[i - 1] > d; i--)
			out[i] = out[i - 1];
		out[i] = (uint16_t)d;
	}
	if (done < p->n_devices) {
		for (uint32_t i = 0; i < done; i++) {
			rooms[out[i]].milli += held.milli;
			rooms[out[i]].mib += held.mib;
		}
		take(rooms, p);
	} else if (memcmp(out, p->devices, p->n_devices * sizeof(*out)) != 0) {
		memcpy(p->devices, out, p->n_devices * sizeof(*out));
		p->devices_from = DEVICES_EXCHANGED;
		touch(m, p);
	}
	free(out);
}

/* Plan anew which devices those pods get for which the plugin has not chosen yet, by what it will find free. */
static void plan_anew(struct model *m, struct node *n)
{
	struct backend_room *rooms = must(calloc(n->n_devices + 1, sizeof(*rooms)));
	struct pod *p;

	for (uint32_t d = 0; d < n->n_devices; d++)
		rooms[d] = (struct backend_room){ 1000, n->devices[d].memory_mib };
	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && model_pod_devices_known(p))
			take(rooms, p);
	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_takes(p) && !model_pod_devices_known(p) && p->n_devices &&
		    !model_pod_mig(p))
			choose_for(m, p, rooms);
	free(rooms);
}

/* Take the devices that a device plugin chose instead of the planned ones. Two pods cannot have the
 * same device: one that was only planned for another pod is exchanged for one that this pod does not
 * have after all; a report that contradicts another one is refused. */
int pod_apply_devices(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct pod *p = find(m, ev, err);
	struct pod *o;

	if (!p)
		return GPUQ_ENOENT;
	if (ev->devices.n != p->n_devices || !model_pod_takes(p))
		return gpuq_fail(err, GPUQ_EINVAL, "%u devices are its own, not %zu", p->n_devices,
				 ev->devices.n);
	for (size_t i = 0; i < ev->devices.n; i++) {
		const int d = ev->devices.items[i];

		if (d < 0 || (uint32_t)d >= p->node->n_devices ||
		    (i > 0 && d <= ev->devices.items[i - 1]))
			return gpuq_fail(err, GPUQ_EINVAL, "device %d is not there", d);
		o = p->gpus_milli < 1000 ? NULL /* a share: other pods may be on the same device */
					 : holder_of(p, d);
		if (o && (model_pod_devices_known(o) ||
			  (!chooses(p->node) && o->gpus_milli / o->n_devices < 1000)))
			return gpuq_fail(err, GPUQ_EINVAL, "device %d is job %u's", d,
					 o->job->key.id);
	}
	for (size_t i = 0; i < ev->devices.n; i++) {
		const int d = ev->devices.items[i];
		uint32_t k = 0;

		o = p->gpus_milli < 1000 || chooses(p->node) ? NULL : holder_of(p, d);
		if (!o)
			continue;
		/* As many of its devices are not reported as reported ones are not its own. */
		while (is_reported(ev, p->devices[k]))
			k++;
		exchange(o, d, p->devices[k]);
		exchange(p, p->devices[k], d);
		o->devices_from = DEVICES_EXCHANGED;
		touch(m, o);
	}
	for (size_t i = 0; i < ev->devices.n; i++)
		p->devices[i] = (uint16_t)ev->devices.items[i];
	p->devices_from = DEVICES_TOLD;
	touch(m, p);
	if (chooses(p->node))
		plan_anew(m, p->node);
	return 0;
}

/* ---- requests as the cluster has them ---- */

/* Compute the part that could not be predicted from what the cluster reports of the namespace and
 * the runtime: sidecars, and other changes by policies. */
static void beyond(const struct model *m, const struct pod *p, int64_t *cpu_milli,
		   int64_t *memory_bytes)
{
	const struct request_group *g = &p->job->request->spec.groups[p->group];
	struct objects_pod known = { .queue = p->job->queue->name,
				     .namespace_ = model_queue_namespace(p->job->queue),
				     .runtime_class = g->where ? g->where->runtime_class : NULL,
				     .cpu_milli = g->cpu_milli,
				     .memory_bytes = g->memory_bytes };

	objects_add_known(m->objects, &known);
	*cpu_milli = *cpu_milli > known.cpu_milli ? *cpu_milli - known.cpu_milli : 0;
	*memory_bytes = *memory_bytes > known.memory_bytes ? *memory_bytes - known.memory_bytes : 0;
}

/* A pod that runs may have been resized since, so it teaches only while nothing is known. */
static bool teaches(const struct model *m, const struct pod *p)
{
	return p->group < p->job->request->spec.n_groups &&
	       (p->state < GPUQ_POD_RUNNING ||
		!objects_has_learnt(m->objects, p->job->queue->name));
}

bool pod_amounts_differ(const struct model *m, const struct pod *p, int64_t cpu_milli,
			int64_t memory_bytes)
{
	if (cpu_milli > p->cpu_milli || memory_bytes > p->memory_bytes)
		return true;
	if (!teaches(m, p))
		return false;
	beyond(m, p, &cpu_milli, &memory_bytes);
	return objects_would_learn(m->objects, p->job->queue->name, cpu_milli, memory_bytes);
}

int pod_apply_amounts(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	int64_t cpu_milli = ev->amounts.cpu_milli, memory_bytes = ev->amounts.memory_bytes;
	struct pod *p = find(m, ev, err);

	if (!p)
		return GPUQ_ENOENT;
	if (!model_pod_takes(p))
		return gpuq_fail(err, GPUQ_EINVAL, "the pod has ended already");
	if (cpu_milli > p->cpu_milli || memory_bytes > p->memory_bytes) {
		p->cpu_milli = cpu_milli > p->cpu_milli ? cpu_milli : p->cpu_milli;
		p->memory_bytes = memory_bytes > p->memory_bytes ? memory_bytes : p->memory_bytes;
		accounting_charge_strand(m, p->node);
		touch(m, p);
	}
	if (teaches(m, p)) {
		beyond(m, p, &cpu_milli, &memory_bytes);
		objects_learn(m->objects, p->job->queue->name, cpu_milli, memory_bytes);
	}
	return 0;
}
