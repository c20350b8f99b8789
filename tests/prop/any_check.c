#include "tests/prop/any.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"

/* Every rule here is computed from the snapshot and the plan alone. */

/* Allocation of nodes and devices at one moment. */
struct load {
	int64_t *cpu, *memory, *pods; /* by node */
	int32_t *milli; /* by device */
};

struct check {
	const struct snapshot *s;
	const struct plan *p;
	struct gpuq_arena mem;
	struct load now; /* with pods that are still leaving, and those that start */
	struct load then; /* once all evicted pods have left, with nominated placements */
	uint32_t *starts; /* by job: elements placed or nominated */
	bool *planned; /* by job: has a start reservation */
	uint32_t *placed; /* of them, placed */
	bool *gone; /* by job: all its pods leave */
	bool *released; /* by job: it releases its nominated placement */
	bool *leaves; /* by alloc */
	uint32_t *grown; /* by job * GPUQ_GROUPS_MAX + group */
	uint32_t *owner; /* by node: the job there in `then`; SNAP_NONE = none */
	int64_t *held, *firm; /* by queue * n_flavors + flavor: change through the plan */
	const char *fault;
};

static char text[200];

#define WRONG(k, ...)                                                                              \
	do {                                                                                       \
		if (!(k)->fault) {                                                                 \
			snprintf(text, sizeof(text), __VA_ARGS__);                                 \
			(k)->fault = text;                                                         \
		}                                                                                  \
	} while (0)

static void *get(struct check *k, size_t n, size_t size)
{
	void *p = gpuq_arena_calloc(&k->mem, n + 1, size);

	if (!p)
		abort();
	return p;
}

static struct load new_load(struct check *k)
{
	return (struct load){ get(k, k->s->n_nodes, sizeof(int64_t)),
			      get(k, k->s->n_nodes, sizeof(int64_t)),
			      get(k, k->s->n_nodes, sizeof(int64_t)),
			      get(k, k->s->n_devices, sizeof(int32_t)) };
}

static const struct snap_request *request_of(const struct check *k, uint32_t job)
{
	return &k->s->requests[k->s->jobs[job].request];
}

static void put(const struct check *k, struct load *l, uint32_t job, uint32_t group, uint32_t node,
		const uint32_t *devices, uint32_t n, int32_t milli)
{
	const struct snap_group *g = &request_of(k, job)->groups[group];

	l->cpu[node] += g->cpu_milli;
	l->memory[node] += g->memory_bytes;
	l->pods[node]++;
	for (uint32_t d = 0; d < n; d++)
		l->milli[k->s->nodes[node].device_first + devices[d]] += milli;
}

/* Count devices without known foreign use, and those of them that gpuq does not use either. */
static void count_devices(const struct check *k, const struct load *l, uint32_t node, int64_t *ours,
			  int64_t *untouched)
{
	const struct snap_node *n = &k->s->nodes[node];

	*ours = *untouched = 0;
	for (uint32_t d = n->device_first; d < n->device_first + n->n_devices; d++) {
		const struct snap_device *dev = &k->s->devices[d];

		if (!dev->healthy || dev->foreign_milli > 0)
			continue;
		(*ours)++;
		*untouched += l->milli[d] == 0;
	}
}

static void check_load(struct check *k, const struct load *l, const char *when)
{
	for (uint32_t i = 0; i < k->s->n_nodes; i++) {
		const struct snap_node *n = &k->s->nodes[i];
		int64_t ours, untouched;

		if ((n->cpu_milli != GPUQ_UNLIMITED && l->cpu[i] > n->cpu_milli) ||
		    (n->memory_bytes != GPUQ_UNLIMITED && l->memory[i] > n->memory_bytes) ||
		    (n->pods != GPUQ_UNLIMITED && l->pods[i] > n->pods))
			WRONG(k, "%s has more than it holds, %s", n->name, when);
		for (uint32_t d = 0; d < n->n_devices; d++) {
			const struct snap_device *dev = &k->s->devices[n->device_first + d];
			const int32_t free_milli =
				dev->healthy ? SNAP_MILLI - dev->foreign_milli : 0;

			if (l->milli[n->device_first + d] > free_milli)
				WRONG(k, "device %u of %s has %d of %d, %s", d, n->name,
				      l->milli[n->device_first + d], free_milli, when);
		}
		count_devices(k, l, i, &ours, &untouched);
		if (untouched < n->foreign_gpus && untouched < ours)
			WRONG(k, "%s leaves foreign pods no devices, %s", n->name, when);
	}
}

/* ---- queues ---- */

/* True for a pod after the first pods_min of its group. */
static bool is_surplus(const struct snapshot *s, const struct snap_alloc *a)
{
	const struct snap_job *j = &s->jobs[a->job];
	uint32_t before = 0;

	for (uint32_t i = j->alloc_first; &s->allocs[i] != a; i++)
		before += s->allocs[i].group == a->group;
	return before >= s->requests[j->request].groups[a->group].pods_min;
}

/* surplus: pods of an elastic job beyond its minimum may be evicted, whatever the job. */
static void charge(struct check *k, uint32_t job, uint32_t group, uint32_t node, bool surplus,
		   int sign)
{
	const struct snap_job *j = &k->s->jobs[job];
	const struct snap_group *g = &request_of(k, job)->groups[group];
	const int64_t milli = (int64_t)any_devices(g) * any_milli(g) * sign;
	const uint32_t flavor = k->s->nodes[node].flavor;

	for (uint32_t q = j->queue; flavor != SNAP_NONE && q != SNAP_NONE;
	     q = k->s->queues[q].parent) {
		k->held[q * k->s->n_flavors + flavor] += milli;
		if (!j->preemptible && !surplus)
			k->firm[q * k->s->n_flavors + flavor] += milli;
	}
}

/* Sevenths are rounded up: all instances of a device may be held where a device may be. */
static int64_t allowed(const struct check *k, int64_t limit)
{
	for (uint32_t i = 0; i < k->s->n_nodes; i++)
		if (k->s->nodes[i].n_mig)
			return limit + (limit / 1000 < 142 ? limit / 1000 : 142);
	return limit;
}

static void check_queues(struct check *k, const int64_t *held, const int64_t *firm)
{
	const uint32_t n = k->s->n_flavors;

	for (uint32_t q = 0; q < k->s->n_queues; q++) {
		for (uint32_t f = 0; f < n; f++) {
			const struct snap_share *share = &k->s->shares[q * k->s->n_res + f];

			if (k->held[q * n + f] > held[q * n + f] &&
			    k->held[q * n + f] > allowed(k, share->limit))
				WRONG(k, "%s is brought from %lld to %lld of flavor %u, limit %lld",
				      k->s->queues[q].name, (long long)held[q * n + f],
				      (long long)k->held[q * n + f], f, (long long)share->limit);
			if (k->firm[q * n + f] > firm[q * n + f] &&
			    k->firm[q * n + f] > allowed(k, share->quota))
				WRONG(k, "%s gets more for good than its quota",
				      k->s->queues[q].name);
		}
	}
}

/* ---- places ---- */

/* Return the domain of a node on a level, as text; NULL = the node is in none. */
static const char *domain(const struct check *k, uint32_t node, const char *level, char *out,
			  size_t room)
{
	const struct snap_class *c = &k->s->classes[k->s->nodes[node].cls];
	const char *block = "", *own = NULL;

	if (strcmp(level, "host") == 0)
		return k->s->nodes[node].name;
	for (uint32_t i = 0; i < k->s->n_label_keys; i++) {
		if (!c->values[i])
			continue;
		if (strcmp(k->s->label_keys[i], "block") == 0)
			block = c->values[i];
		if (strcmp(k->s->label_keys[i], level) == 0)
			own = c->values[i];
	}
	if (!own)
		return NULL;
	snprintf(out, room, "%s/%s", block, own);
	return out;
}

static bool together(const struct check *k, const char *level, uint32_t a, uint32_t b)
{
	char x[64], y[64];
	const char *at = domain(k, a, level, x, sizeof(x)), *bt = domain(k, b, level, y, sizeof(y));

	return at && bt && strcmp(at, bt) == 0;
}

static void check_topology(struct check *k, const struct plan_action *a)
{
	const struct snap_request *r = request_of(k, a->job);
	const struct plan_pod *pods = &k->p->pods[a->pod_first];
	uint32_t first = 0;

	for (uint32_t g = 0; g < r->n_groups; g++) {
		const struct snap_group *in = &r->groups[g];

		for (uint32_t i = first; i < first + in->pods_min; i++) {
			if (in->topology_required &&
			    !together(k, in->topology_required, pods[first].node, pods[i].node))
				WRONG(k, "job %u is outside of one %s", a->key.id,
				      in->topology_required);
			for (uint32_t l = 0; l < in->n_slices; l++) {
				const uint32_t begin = first + (i - first) / in->slices[l].size *
								       in->slices[l].size;

				if (!together(k, in->slices[l].level, pods[begin].node,
					      pods[i].node))
					WRONG(k, "job %u: a slice of %d is outside of one %s",
					      a->key.id, (int)in->slices[l].size,
					      in->slices[l].level);
			}
		}
		first += in->pods_min;
	}
}

static void check_pod(struct check *k, const struct plan_action *a, const struct plan_pod *pod)
{
	const struct snap_request *r = request_of(k, a->job);
	const struct snap_node *n = &k->s->nodes[pod->node];
	const uint32_t *devices = &k->p->devices[pod->device_first];

	if (pod->group >= r->n_groups || pod->node >= k->s->n_nodes) {
		WRONG(k, "job %u has a pod of no group or on no node", a->key.id);
		return;
	}
	if (n->state != SNAP_READY)
		WRONG(k, "job %u is sent to %s, which is out of service", a->key.id, n->name);
	if (n->n_taints && r->groups[pod->group].n_tolerations == 0)
		WRONG(k, "job %u does not tolerate %s", a->key.id, n->name);
	if (r->groups[pod->group].gpus_milli > 0 && n->flavor != a->flavor)
		WRONG(k, "job %u is charged another flavor than that of %s", a->key.id, n->name);
	if ((int)pod->n_devices != any_devices(&r->groups[pod->group]) ||
	    (pod->n_devices && pod->milli != any_milli(&r->groups[pod->group])))
		WRONG(k, "job %u gets %u devices of %d", a->key.id, pod->n_devices, pod->milli);
	for (uint32_t d = 0; d < pod->n_devices; d++)
		if (devices[d] >= n->n_devices || (d && devices[d] <= devices[d - 1]))
			WRONG(k, "job %u: devices of %s out of order", a->key.id, n->name);
	for (uint32_t i = 0; i < k->s->jobs[a->job].n_exclude; i++)
		if (k->s->jobs[a->job].exclude[i] == pod->node)
			WRONG(k, "job %u is sent to %s, where it failed", a->key.id, n->name);
}

static void own_node(struct check *k, uint32_t job, uint32_t node)
{
	const uint32_t before = k->owner[node];

	if (before != SNAP_NONE && before != job &&
	    (request_of(k, before)->exclusive || request_of(k, job)->exclusive))
		WRONG(k, "jobs %u and %u share %s, which one of them has alone",
		      k->s->jobs[before].key.id, k->s->jobs[job].key.id, k->s->nodes[node].name);
	k->owner[node] = job;
}

/* Take the places that a job gets now (at once) or when others have left. */
static void take_places(struct check *k, const struct plan_action *a, bool at_once)
{
	for (uint32_t i = 0; i < a->n_pods && !k->fault; i++) {
		const struct plan_pod *pod = &k->p->pods[a->pod_first + i];
		const uint32_t *devices = &k->p->devices[pod->device_first];

		check_pod(k, a, pod);
		if (k->fault)
			return;
		put(k, &k->then, a->job, pod->group, pod->node, devices, pod->n_devices,
		    pod->milli);
		if (at_once)
			put(k, &k->now, a->job, pod->group, pod->node, devices, pod->n_devices,
			    pod->milli);
		/* Nominated placements have been charged. */
		if (a->kind != PLAN_PLACE || k->s->jobs[a->job].n_promises == 0 ||
		    k->released[a->job])
			charge(k, a->job, pod->group, pod->node, a->kind == PLAN_GROW, 1);
		own_node(k, a->job, pod->node);
	}
}

static bool has_children(const struct check *k, uint32_t queue)
{
	for (uint32_t q = 0; q < k->s->n_queues; q++)
		if (k->s->queues[q].parent == queue)
			return true;
	return false;
}

static void check_start(struct check *k, const struct plan_action *a)
{
	const struct snap_job *j = &k->s->jobs[a->job];
	const struct snap_request *r = request_of(k, a->job);
	uint32_t count[GPUQ_GROUPS_MAX] = { 0 };

	if (j->state != SNAP_PENDING)
		WRONG(k, "job %u starts, but is not pending", a->key.id);
	/* A job with nominated placements has been checked before. */
	if (j->n_promises == 0 &&
	    (j->held || j->gate || j->begin_us > k->s->config.now_us || has_children(k, j->queue)))
		WRONG(k, "job %u starts although it must not", a->key.id);
	for (uint32_t q = j->queue; q != SNAP_NONE && j->n_promises == 0;
	     q = k->s->queues[q].parent)
		if (k->s->queues[q].stopped)
			WRONG(k, "job %u starts in a stopped queue", a->key.id);
	k->starts[a->job]++;
	k->placed[a->job] += a->kind == PLAN_PLACE;
	if (k->starts[a->job] > j->n_waiting)
		WRONG(k, "job %u starts more often than it waits", a->key.id);
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *pod = &k->p->pods[a->pod_first + i];

		count[pod->group < GPUQ_GROUPS_MAX ? pod->group : 0]++;
		if (pod->index != i)
			WRONG(k, "job %u: pods are not by index", a->key.id);
	}
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (count[g] != r->groups[g].pods_min)
			WRONG(k, "job %u starts with %u pods of %u", a->key.id, count[g],
			      r->groups[g].pods_min);
	if (!k->fault)
		check_topology(k, a);
}

/* ---- victims ---- */

static void give_back(struct check *k, uint32_t alloc)
{
	const struct snap_alloc *a = &k->s->allocs[alloc];

	if (k->leaves[alloc]) {
		WRONG(k, "pod %u of job %u leaves twice", a->index, k->s->jobs[a->job].key.id);
		return;
	}
	k->leaves[alloc] = true;
	charge(k, a->job, a->group, a->node, is_surplus(k->s, a), -1);
}

/* True if it runs where maintenance has begun: it is evicted in any case. */
static bool in_maintenance(const struct check *k, uint32_t job)
{
	const struct snap_job *j = &k->s->jobs[job];

	for (uint32_t i = 0; i < k->s->n_reservations; i++) {
		const struct snap_reservation *r = &k->s->reservations[i];

		if (!r->maintenance || r->start_us > k->s->config.now_us ||
		    r->end_us <= k->s->config.now_us)
			continue;
		for (uint32_t n = 0; n < r->n_nodes; n++)
			for (uint32_t p = 0; p < j->n_allocs; p++)
				if (k->s->allocs[j->alloc_first + p].node == r->nodes[n])
					return true;
	}
	return false;
}

/* True if the job started in a reservation, of its queue or its user, that is about to end, and
 * would run longer. */
static bool in_ending(const struct check *k, uint32_t job)
{
	const struct snap_job *j = &k->s->jobs[job];

	for (uint32_t i = 0; i < k->s->n_reservations; i++) {
		const struct snap_reservation *r = &k->s->reservations[i];
		const int64_t end =
			j->walltime_us == GPUQ_UNLIMITED ? INT64_MAX : j->start_us + j->walltime_us;
		int64_t grace = j->grace_us > 30000000 ? j->grace_us : 30000000;

		if (grace > (r->end_us - r->start_us) / 2)
			grace = (r->end_us - r->start_us) / 2;
		if (r->ends_jobs && !r->maintenance && (r->queue != SNAP_NONE || r->n_users > 0) &&
		    j->start_us >= r->start_us && j->start_us < r->end_us && end > r->end_us &&
		    k->s->config.now_us >= r->end_us - grace)
			return true;
	}
	return false;
}

static void check_leave(struct check *k, const struct plan_action *a)
{
	const struct snap_job *j = &k->s->jobs[a->job];

	if (j->state != SNAP_RUNNING || k->gone[a->job])
		WRONG(k, "job %u is told to leave, but does not run", a->key.id);
	if (!j->preemptible && a->kind != PLAN_SHRINK && !in_maintenance(k, a->job) &&
	    !in_ending(k, a->job))
		WRONG(k, "job %u is told to leave, but may not be", a->key.id);
	if (a->rule && strcmp(a->rule, gpuq_rule_word(GPUQ_RULE_RESERVATION_ENDS)) == 0 &&
	    !in_ending(k, a->job))
		WRONG(k, "job %u is told to leave, but no reservation of it ends", a->key.id);
	if (a->kind != PLAN_SHRINK) {
		/* All its pods that were not taken before. */
		for (uint32_t i = 0; i < j->n_allocs; i++)
			if (!k->leaves[j->alloc_first + i])
				give_back(k, j->alloc_first + i);
		k->gone[a->job] = true;
		return;
	}
	for (uint32_t i = 0; i < a->n_pods; i++) {
		uint32_t at = 0;

		while (at < j->n_allocs && k->s->allocs[j->alloc_first + at].index !=
						   k->p->pods[a->pod_first + i].index)
			at++;
		if (at == j->n_allocs)
			WRONG(k, "job %u loses a pod that it has not", a->key.id);
		else
			give_back(k, j->alloc_first + at);
	}
}

/* The remaining part of a gang must be a gang. */
static void check_gangs(struct check *k)
{
	for (uint32_t i = 0; i < k->s->n_jobs; i++) {
		const struct snap_job *j = &k->s->jobs[i];
		const struct snap_request *r = request_of(k, i);

		for (uint32_t g = 0; j->state == SNAP_RUNNING && !k->gone[i] && g < r->n_groups;
		     g++) {
			uint32_t had = 0, stay = k->grown[i * GPUQ_GROUPS_MAX + g];
			uint32_t lost = 0;
			const uint32_t unit = r->groups[g].unit_pods;

			for (uint32_t n = j->alloc_first; n < j->alloc_first + j->n_allocs; n++) {
				had += k->s->allocs[n].group == g && !k->s->allocs[n].releasing;
				lost += k->s->allocs[n].group == g && k->leaves[n];
			}
			stay += had - lost;
			if (lost && stay < r->groups[g].pods_min)
				WRONG(k, "job %u keeps %u pods of %u", j->key.id, stay,
				      r->groups[g].pods_min);
			if (stay > had && stay > r->groups[g].pods_max)
				WRONG(k, "job %u grows to %u pods, beyond %u", j->key.id, stay,
				      r->groups[g].pods_max);
			/* A gang that lacked part of a unit may end with part of one. */
			if (lost && unit && had % unit == 0 && lost % unit)
				WRONG(k, "job %u loses a part of a sub-group", j->key.id);
		}
	}
}

static void check_claimants(struct check *k)
{
	for (uint32_t i = 0; i < k->p->n_actions; i++) {
		const struct plan_action *a = &k->p->actions[i];

		if ((a->kind == PLAN_EVICT || a->kind == PLAN_SHRINK || a->kind == PLAN_MOVE) &&
		    a->claimant != SNAP_NONE && k->starts[a->claimant] == 0 &&
		    /* An elastic job that runs grows in the next cycle. */
		    !(a->kind == PLAN_SHRINK && k->s->jobs[a->claimant].state == SNAP_RUNNING) &&
		    /* A backfilled job is evicted in time for the start reservation. */
		    !(k->planned[a->claimant] && k->s->jobs[a->job].yield_us) &&
		    k->s->jobs[a->claimant].n_promises == 0)
			WRONG(k, "job %u leaves for job %u, which gets nothing", a->key.id,
			      k->s->jobs[a->claimant].key.id);
	}
}

static void check_reasons(struct check *k)
{
	for (uint32_t i = 0; i < k->s->n_jobs; i++) {
		const struct snap_job *j = &k->s->jobs[i];
		const bool waits = j->state == SNAP_PENDING && k->placed[i] < j->n_waiting;
		const struct plan_reason *why;
		const uint32_t told = plan_reasons(k->s, k->p, i, &why);

		for (uint32_t r = 0; r < told; r++)
			if (!why[r].object)
				WRONG(k, "a reason without an object");
		if (waits != (told > 0))
			WRONG(k, "job %u %s, and has %u reasons", j->key.id,
			      waits ? "waits" : "does not wait", told);
	}
}

/* No pod is on a node that is taken away before its job could end; nominated placements of before were made without
 * regard to that. */
static void check_end(struct check *k, const struct plan_action *a)
{
	const struct snap_job *j = &k->s->jobs[a->job];
	const int64_t grace_us = j->grace_us < SNAP_BOOT_US ? j->grace_us : SNAP_BOOT_US;
	const int64_t told_us = j->grace_us > SNAP_END_US ? j->grace_us : SNAP_END_US;
	const int64_t least_us =
		j->walltime_us < 2 * SNAP_END_US ? j->walltime_us : 2 * SNAP_END_US;

	for (uint32_t i = 0; j->n_promises == 0 && i < a->n_pods; i++) {
		const struct snap_node *n = &k->s->nodes[k->p->pods[a->pod_first + i].node];

		if (n->left_us && n->left_us - told_us < least_us)
			WRONG(k, "job %u is on %s, which is taken away at once", a->key.id,
			      n->name);
		if (n->run_us == 0 || (j->preemptible && n->cuts))
			continue;
		if (j->walltime_us == GPUQ_UNLIMITED ? !n->lasts
						     : j->walltime_us > n->run_us - grace_us)
			WRONG(k, "job %u is on %s, which is taken away before", a->key.id, n->name);
	}
}

static void apply(struct check *k, const struct plan_action *a)
{
	if (a->kind == PLAN_PLACE || a->kind == PLAN_NOMINATE || a->kind == PLAN_GROW ||
	    a->kind == PLAN_MOVE)
		check_end(k, a);
	switch (a->kind) {
	case PLAN_PLACE:
	case PLAN_NOMINATE:
		check_start(k, a);
		take_places(k, a, a->kind == PLAN_PLACE);
		if (a->walltime_us && (k->s->jobs[a->job].walltime_min_us == 0 ||
				       a->walltime_us < k->s->jobs[a->job].walltime_min_us ||
				       a->walltime_us >= k->s->jobs[a->job].walltime_us))
			WRONG(k, "job %u is given a walltime that it cannot do with", a->key.id);
		break;
	case PLAN_GROW:
		take_places(k, a, true);
		for (uint32_t i = 0; i < a->n_pods; i++)
			k->grown[a->job * GPUQ_GROUPS_MAX + k->p->pods[a->pod_first + i].group]++;
		break;
	case PLAN_MOVE:
		check_leave(k, a);
		take_places(k, a, false);
		break;
	case PLAN_EVICT:
	case PLAN_SHRINK:
		check_leave(k, a);
		break;
	case PLAN_RESERVE:
		k->planned[a->job] = true;
		break;
	case PLAN_RELEASE:
		k->released[a->job] = true;
		for (uint32_t i = 0; i < k->s->jobs[a->job].n_promises; i++) {
			const struct snap_alloc *p =
				&k->s->promises[k->s->jobs[a->job].promise_first + i];

			charge(k, a->job, p->group, p->node, false, -1);
		}
		break;
	default:
		break;
	}
}

/* Add the pods that stay; k->leaves is complete by then. */
static void keep_rest(struct check *k)
{
	for (uint32_t i = 0; i < k->s->n_allocs; i++) {
		const struct snap_alloc *a = &k->s->allocs[i];

		if (k->leaves[i] || a->releasing || k->s->jobs[a->job].state == SNAP_LEAVING)
			continue;
		put(k, &k->then, a->job, a->group, a->node, a->devices, a->n_devices, a->milli);
		own_node(k, a->job, a->node);
	}
	/* Placements nominated before that are neither taken nor released. */
	for (uint32_t i = 0; i < k->s->n_promises; i++) {
		const struct snap_alloc *a = &k->s->promises[i];

		if (k->placed[a->job] || k->released[a->job])
			continue;
		put(k, &k->then, a->job, a->group, a->node, a->devices, a->n_devices, a->milli);
		own_node(k, a->job, a->node);
	}
}

/* Count the nodes of a pool in that state; ask 0 = of any request. */
static uint32_t made_up(const struct check *k, const struct plan_ask *a, int state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->s->n_nodes; i++) {
		const struct snap_node *node = &k->s->nodes[i];

		n += node->state == state && node->flavor == a->flavor &&
		     strcmp(node->pool, a->pool) == 0 && (!a->ask || node->ask == a->ask);
	}
	return n;
}

static bool wants_flavor(const struct check *k, uint32_t job, uint32_t flavor)
{
	const struct snap_request *r = request_of(k, job);

	for (uint32_t i = 0; i < r->n_flavor_ix; i++)
		if (r->flavor_ix[i] == flavor)
			return true;
	return false;
}

/* Return how many of its pods a job has pending. */
static uint64_t pods_pending(const struct check *k, uint32_t job)
{
	const struct snap_job *j = &k->s->jobs[job];

	return j->state == SNAP_PENDING
		       ? (uint64_t)(j->n_waiting - k->starts[job]) * request_of(k, job)->n_pods
		       : 0;
}

/* Requests: for nodes that their pools have left, and for jobs that are pending after the plan. */
static void check_asks(struct check *k)
{
	uint64_t wanted = 0, asked = 0;

	for (uint32_t i = 0; i < k->s->n_jobs; i++)
		wanted += pods_pending(k, i);
	for (uint32_t i = 0; i < k->p->n_asks; i++) {
		const struct plan_ask *a = &k->p->asks[i];
		uint32_t in_pool = 0;

		for (uint32_t x = 0; x < k->p->n_asks; x++)
			if (!k->p->asks[x].ask && k->p->asks[x].flavor == a->flavor &&
			    strcmp(k->p->asks[x].pool, a->pool) == 0)
				in_pool += k->p->asks[x].n_nodes;
		asked += a->ask ? 0 : a->n_nodes;
		if (a->ask && made_up(k, a, SNAP_ASKED) != a->n_nodes)
			WRONG(k, "request %u has %u nodes, not %u", a->ask,
			      made_up(k, a, SNAP_ASKED), a->n_nodes);
		if (!a->ask && in_pool > made_up(k, a, SNAP_PLANNED))
			WRONG(k, "%u nodes are requested of %s, which has %u left", in_pool,
			      a->pool, made_up(k, a, SNAP_PLANNED));
		if (a->job == SNAP_NONE ? a->n_jobs > 0 || !a->ask : a->n_jobs == 0)
			WRONG(k, "a request of %s has an owner and no jobs, or no owner", a->pool);
		if (a->job == SNAP_NONE)
			continue;
		if (pods_pending(k, a->job) == 0 || k->s->jobs[a->job].held ||
		    k->s->jobs[a->job].gate)
			WRONG(k, "job %u requests nodes, but is not eligible", a->key.id);
		if (!wants_flavor(k, a->job, a->flavor))
			WRONG(k, "job %u requests a flavor that is not its own", a->key.id);
	}
	for (uint32_t i = 0; i < k->s->n_jobs; i++) {
		const struct plan_reason *why;
		bool any =
			plan_reasons(k->s, k->p, i, &why) == 0 || why->code != GPUQ_R_PROVISIONING;

		for (uint32_t x = 0; !any && x < k->p->n_asks; x++)
			any = k->p->asks[x].n_jobs && strcmp(k->p->asks[x].pool, why->object) == 0;
		if (!any)
			WRONG(k, "job %u waits for nodes that are not requested",
			      k->s->jobs[i].key.id);
	}
	if (asked > wanted)
		WRONG(k, "%d nodes are requested for %d pods", (int)asked, (int)wanted);
}

const char *any_check(const struct snapshot *s, const struct plan *p)
{
	struct check k = { .s = s, .p = p };
	const size_t n = (size_t)s->n_queues * s->n_flavors;
	int64_t *held, *firm;

	k.now = new_load(&k);
	k.then = new_load(&k);
	k.starts = get(&k, s->n_jobs, sizeof(*k.starts));
	k.placed = get(&k, s->n_jobs, sizeof(*k.placed));
	k.planned = get(&k, s->n_jobs, sizeof(*k.planned));
	k.released = get(&k, s->n_jobs, sizeof(*k.released));
	k.gone = get(&k, s->n_jobs, sizeof(*k.gone));
	k.leaves = get(&k, s->n_allocs, sizeof(*k.leaves));
	k.grown = get(&k, (size_t)s->n_jobs * GPUQ_GROUPS_MAX, sizeof(*k.grown));
	k.owner = get(&k, s->n_nodes, sizeof(*k.owner));
	memset(k.owner, 0xff, s->n_nodes * sizeof(*k.owner));
	k.held = get(&k, n, sizeof(*k.held));
	k.firm = get(&k, n, sizeof(*k.firm));
	held = get(&k, n, sizeof(*held));
	firm = get(&k, n, sizeof(*firm));
	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_alloc *a = &s->allocs[i];

		put(&k, &k.now, a->job, a->group, a->node, a->devices, a->n_devices, a->milli);
		/* Pods that leave anyway are not charged: their places may be nominated to the same
		 * queue. */
		if (!a->releasing && s->jobs[a->job].state != SNAP_LEAVING)
			charge(&k, a->job, a->group, a->node, is_surplus(s, a), 1);
	}
	for (uint32_t i = 0; i < s->n_promises; i++) {
		const struct snap_alloc *a = &s->promises[i];

		charge(&k, a->job, a->group, a->node, false, 1);
	}
	memcpy(held, k.held, n * sizeof(*held));
	memcpy(firm, k.firm, n * sizeof(*firm));
	for (uint32_t i = 0; i < p->n_actions && !k.fault; i++)
		apply(&k, &p->actions[i]);
	keep_rest(&k);
	check_load(&k, &k.now, "now");
	check_load(&k, &k.then, "when others have left");
	check_queues(&k, held, firm);
	check_gangs(&k);
	check_claimants(&k);
	check_reasons(&k);
	check_asks(&k);
	gpuq_arena_done(&k.mem);
	return k.fault;
}
