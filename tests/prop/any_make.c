#include "tests/prop/any.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"
#include "tests/prop/prop.h"

#define NOW (INT64_C(1000000) * GPUQ_US_PER_S)
#define GIB (INT64_C(1) << 30)
#define MINUTE (60 * GPUQ_US_PER_S)

static const char *const node_names[ANY_NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6" };
static const char *const queue_names[ANY_QUEUES] = { "q0", "q1", "q2", "q3", "q4", "q5" };
static const char *const flavor_names[ANY_FLAVORS] = { "a", "b" };
static const char *const users[3] = { "ann", "bob", "eve" };
static const char *const levels[2] = { "block", "rack" };
static const char *const level_names[4] = { "block", "rack", "host", "row" };
static const struct snap_taint taint = { "special", "yes", "NoSchedule" };

/* Return one of 0 .. n - 1. */
static int pick(struct any_source *from, int n)
{
	int byte = 0;

	if (!from->bytes) {
		byte = (int)(prop_random(&from->state) >> 56);
	} else if (from->n > 0) {
		byte = *from->bytes++;
		from->n--;
	}
	return byte % n;
}

/* True one time in n; never once the bytes are used up. */
static bool rarely(struct any_source *from, int n)
{
	return pick(from, n) == n - 1;
}

static void make_node(struct any_source *from, const struct any *a, int ix, struct any_node *out)
{
	static const char *const blocks[] = { "b0", "b1" }, *const racks[] = { "r0", "r1" };
	static const int sizes[] = { 4, 8, 2, 1, 0, 9, 8, 3 };
	struct snap_node *n = &out->node;

	snapshot_node_default(n);
	n->name = node_names[ix];
	n->n_devices = (uint32_t)sizes[pick(from, 8)];
	n->flavor = n->n_devices ? (uint32_t)pick(from, a->n_flavors) : SNAP_NONE;
	n->state = rarely(from, 12) ? 1 + pick(from, 3) : SNAP_READY;
	if (rarely(from, 2))
		n->cpu_milli = pick(from, 40) * 1000;
	if (rarely(from, 3))
		n->memory_bytes = pick(from, 40) * GIB;
	if (rarely(from, 6))
		n->pods = pick(from, 8);
	for (uint32_t d = 0; d < n->n_devices; d++) {
		out->devices[d] = (struct snap_device){ .healthy = !rarely(from, 20),
							.memory_bytes = ANY_DEVICE_MEMORY };
		if (rarely(from, 20))
			out->devices[d].foreign_milli = (int16_t)(250 * (1 + pick(from, 4)));
		out->numa[d] = (uint8_t)(d / 4);
	}
	n->devices_in = out->devices;
	if (n->n_devices && rarely(from, 8))
		n->foreign_gpus = 1;
	if (rarely(from, 4)) {
		for (uint32_t i = 0; i < n->n_devices * n->n_devices; i++)
			out->links[i] = (uint8_t)pick(from, 3);
		n->links = out->links;
		n->numa = out->numa;
	}
	n->labels = (struct gpuq_strmap){ out->keys, out->values, 2 };
	out->keys[0] = "block";
	out->values[0] = blocks[pick(from, 2)];
	out->keys[1] = "rack";
	out->values[1] = racks[pick(from, 2)];
	if (rarely(from, 8))
		n->labels.n = 1;
	if (rarely(from, 10)) {
		n->taints = &taint;
		n->n_taints = 1;
	}
}

static int64_t amount(struct any_source *from, int max)
{
	return (int64_t)pick(from, max) * SNAP_MILLI;
}

static void make_queue(struct any_source *from, int n_flavors, int ix, struct any_queue *out)
{
	struct snap_queue *q = &out->queue;
	const int parent = ix ? pick(from, ix + 1) - 1 : -1;

	snapshot_queue_default(q);
	q->name = queue_names[ix];
	q->parent_name = parent >= 0 ? queue_names[parent] : NULL;
	for (int r = 0; r < n_flavors + 2; r++) {
		struct snap_share *s = &out->shares[r];

		snapshot_share_default(s);
		if (r >= n_flavors)
			continue;
		if (!rarely(from, 4))
			s->quota = amount(from, 9);
		if (rarely(from, 3))
			s->limit = amount(from, 16);
		if (rarely(from, 5))
			s->lend = amount(from, 5);
	}
	q->shares = out->shares;
	q->weight_milli = pick(from, 4) * 1000;
	q->rank = pick(from, 2);
	q->age = pick(from, 3);
	q->stopped = rarely(from, 16);
	q->reclaim = pick(from, 4);
	q->preempt = pick(from, 3);
	q->fence = rarely(from, 8);
	q->reclaimable = !rarely(from, 8);
	q->own_preempt = rarely(from, 4);
	if (rarely(from, 4))
		q->preempt_min_runtime_us = pick(from, 20) * MINUTE;
	if (rarely(from, 4))
		q->reclaim_min_runtime_us = pick(from, 20) * MINUTE;
	if (rarely(from, 6))
		q->borrow_preempt_max_priority = pick(from, 3);
	q->usage_micro = pick(from, 5) * 100000;
	if (rarely(from, 8))
		q->user_max_running = pick(from, 4);
	if (rarely(from, 8))
		q->user_max_gpus_milli = amount(from, 8);
	if (rarely(from, 8))
		q->max_running = pick(from, 5);
	if (rarely(from, 8))
		q->job_max_gpus_milli = amount(from, 8);
}

static void make_group(struct any_source *from, struct any_request *r, int ix)
{
	static const char *const names[ANY_GROUPS] = { "main", "second", "third" };
	static const int milli[] = { 1000, 1000, 2000, 500, 4000, 0, 250, 8000, 3000, 100 };
	struct snap_group *g = &r->groups[ix];

	*g = (struct snap_group){ .name = names[ix],
				  .pods_min = 1 + (uint32_t)pick(from, 4),
				  .gpus_milli = milli[pick(from, 10)],
				  .cpu_milli = pick(from, 3) * 2000,
				  .memory_bytes = pick(from, 3) * 2 * GIB };
	if (rarely(from, 4))
		g->unit_pods = 2;
	if (g->unit_pods)
		g->pods_min = 2 * (1 + g->pods_min / 2);
	g->pods_max = g->pods_min + (rarely(from, 3) ? 2u * (uint32_t)pick(from, 3) : 0);
	if (g->gpus_milli && rarely(from, 12))
		g->gpu_memory_bytes = 8 * GIB;
	if (rarely(from, 6)) {
		r->term = (struct gpuq_term){ .all = &r->require, .n = 1, .weight = 1 };
		if (rarely(from, 2)) {
			g->required = &r->term;
			g->n_required = 1;
		} else {
			g->preferred = &r->term;
			g->n_preferred = 1;
		}
	}
	if (rarely(from, 4)) {
		g->tolerations = &r->tolerate;
		g->n_tolerations = 1;
	}
	if (rarely(from, 4))
		g->topology_required = level_names[pick(from, 4)];
	if (rarely(from, 4))
		g->topology_preferred = level_names[pick(from, 4)];
	if (rarely(from, 6)) {
		const uint32_t size = 1 + (uint32_t)pick(from, 2);

		r->slices[ix][0] = (struct gpuq_slice){ level_names[pick(from, 3)], size * 2 };
		r->slices[ix][1] = (struct gpuq_slice){ level_names[pick(from, 3)], size };
		g->slices = r->slices[ix];
		g->n_slices = 1 + (uint32_t)pick(from, 2);
		g->pods_min = size * 2 * (1 + g->pods_min / (size * 2));
		g->pods_max = g->pods_max < g->pods_min ? g->pods_min : g->pods_max;
	}
}

static void make_request(struct any_source *from, int n_flavors, struct any_request *out)
{
	static const char *const zone_values[] = { "b0" };

	out->require =
		(struct gpuq_require){ "block", GPUQ_OP_IN, { (const char **)zone_values, 1 } };
	out->tolerate = (struct gpuq_toleration){ .key = "special", .exists = true, .effect = "" };
	out->request.groups = out->groups;
	out->request.n_groups = rarely(from, 3) ? 1 + (uint32_t)pick(from, ANY_GROUPS) : 1;
	for (uint32_t g = 0; g < out->request.n_groups; g++)
		make_group(from, out, (int)g);
	out->request.flavors = out->flavors;
	out->request.n_flavors = rarely(from, 3) ? 1 + (uint32_t)pick(from, n_flavors) : 0;
	out->flavors[0] = flavor_names[n_flavors - 1];
	out->flavors[1] = flavor_names[0];
	if (rarely(from, 8)) {
		out->need = (struct snap_license_need){ 0, 1 };
		out->request.licenses = &out->need;
		out->request.n_licenses = 1;
	}
	out->request.exclusive = rarely(from, 16);
}

static void make_job(struct any_source *from, const struct any *a, int ix, struct any_job *out)
{
	struct snap_job *j = &out->job;

	snapshot_job_default(j);
	j->key.id = (uint32_t)ix + 1;
	out->queue = pick(from, a->n_queues);
	out->request = pick(from, a->n_requests);
	out->user = pick(from, 3);
	j->state = pick(from, 2) ? SNAP_RUNNING : SNAP_PENDING;
	j->preemptible = !rarely(from, 3);
	j->priority = pick(from, 3);
	j->submit_us = NOW - pick(from, 60) * MINUTE;
	if (rarely(from, 2))
		j->walltime_us = (1 + pick(from, 60)) * MINUTE;
	if (rarely(from, 4) && j->state == SNAP_PENDING)
		j->walltime_min_us = (1 + pick(from, 40)) * MINUTE;
	if (rarely(from, 16))
		j->fixed_priority = 1 + pick(from, 3);
	if (rarely(from, 12))
		j->begin_us = NOW + (pick(from, 3) - 1) * MINUTE;
	if (rarely(from, 12))
		j->deadline_us = NOW + pick(from, 3) * 30 * MINUTE;
	if (rarely(from, 16))
		j->held = SNAP_HELD_USER;
	if (rarely(from, 16))
		j->gate = GPUQ_R_DEPENDENCY;
	if (rarely(from, 12)) {
		j->exclude = &out->exclude;
		j->n_exclude = 1;
		out->exclude = (uint32_t)pick(from, a->n_nodes);
	}
	j->evict_last = rarely(from, 6);
	if (rarely(from, 4))
		j->checkpoint_us = NOW - pick(from, 20) * MINUTE;
	if (rarely(from, 6))
		j->restart_cost_us = pick(from, 10) * MINUTE;
	if (rarely(from, 8)) {
		j->evicted_us = NOW - pick(from, 20) * MINUTE;
		j->evicted_for = (uint32_t)pick(from, a->n_queues);
		j->n_evicted_day = 1 + (uint32_t)pick(from, 4);
	}
	if (rarely(from, 8))
		j->n_moved_day = (uint32_t)pick(from, 3);
	if (rarely(from, 8))
		j->shrunk_us = NOW - pick(from, 3) * MINUTE / 2;
	if (rarely(from, 6) && j->state == SNAP_PENDING) {
		out->range = (struct snap_range){ 0, pick(from, 5), 1 };
		j->ranges = &out->range;
		j->n_ranges = 1;
		j->throttle = (uint32_t)pick(from, 4);
	}
}

/* ---- running jobs: placed one pod after the other, wherever there is room ---- */

int any_milli(const struct snap_group *g)
{
	const int part = (int)(g->gpus_milli % SNAP_MILLI);
	const int memory = (int)(g->gpu_memory_bytes * SNAP_MILLI / ANY_DEVICE_MEMORY);

	if (g->gpu_memory_bytes)
		return part ? part : memory;
	return g->gpus_milli < SNAP_MILLI ? part : SNAP_MILLI;
}

int any_devices(const struct snap_group *g)
{
	if (g->gpu_memory_bytes)
		return g->gpus_milli <= SNAP_MILLI ? 1 : (int)(g->gpus_milli / SNAP_MILLI);
	return g->gpus_milli && g->gpus_milli < SNAP_MILLI ? 1 : (int)(g->gpus_milli / SNAP_MILLI);
}

struct left {
	int64_t cpu, memory, pods;
	int milli[ANY_DEVICES];
	int whole; /* devices that can still be touched, because of foreign use */
};

static void measure(const struct any_node *in, struct left *out)
{
	const struct snap_node *n = &in->node;

	*out = (struct left){ .cpu = n->cpu_milli, .memory = n->memory_bytes, .pods = n->pods };
	out->whole = -(int)n->foreign_gpus;
	for (uint32_t d = 0; d < n->n_devices; d++) {
		if (in->devices[d].healthy)
			out->milli[d] = SNAP_MILLI - in->devices[d].foreign_milli;
		out->whole += out->milli[d] == SNAP_MILLI;
	}
}

static bool seat(const struct any_node *on, struct left *l, const struct snap_group *g,
		 struct any_pod *out)
{
	const int milli = any_milli(g), want = any_devices(g);
	int n = 0, opened = 0;

	if (l->cpu < g->cpu_milli || l->memory < g->memory_bytes || l->pods < 1 ||
	    on->node.state == SNAP_DOWN)
		return false;
	for (uint32_t d = 0; d < on->node.n_devices && n < want; d++) {
		if (l->milli[d] < milli)
			continue;
		opened += l->milli[d] == SNAP_MILLI;
		out->devices[n++] = d;
	}
	if (n < want || opened > l->whole)
		return false;
	for (int i = 0; i < n; i++)
		l->milli[out->devices[i]] -= milli;
	l->whole -= opened;
	if (l->cpu != GPUQ_UNLIMITED)
		l->cpu -= g->cpu_milli;
	if (l->memory != GPUQ_UNLIMITED)
		l->memory -= g->memory_bytes;
	if (l->pods != GPUQ_UNLIMITED)
		l->pods--;
	out->alloc = (struct snap_alloc){ .n_devices = (uint32_t)n,
					  .milli = n ? milli : 0,
					  .device_memory_bytes = g->gpu_memory_bytes };
	return true;
}

/* A gang that finds no room stays pending; pods beyond the minimum are left out. */
static void seat_job(struct any_source *from, struct any *a, int ix, struct left *left)
{
	struct any_job *j = &a->jobs[ix];
	const struct snap_request *r = &a->requests[j->request].request;
	const int first = a->n_pods;
	const bool leaves = rarely(from, 8), returns = leaves && rarely(from, 2);
	uint32_t flavor = SNAP_NONE, index = 0;
	struct left before[ANY_NODES];

	memcpy(before, left, sizeof(before));
	for (uint32_t g = 0; g < r->n_groups; g++) {
		uint32_t pods = 0;

		for (; pods < r->groups[g].pods_max && a->n_pods < ANY_PODS; pods++) {
			struct any_pod *p = &a->pods[a->n_pods];
			int at = pick(from, a->n_nodes), tries = 0;

			for (; tries < a->n_nodes; tries++, at = (at + 1) % a->n_nodes) {
				const struct any_node *on = &a->nodes[at];

				if (r->groups[g].gpus_milli && flavor != SNAP_NONE &&
				    on->node.flavor != flavor)
					continue;
				if (seat(on, &left[at], &r->groups[g], p))
					break;
			}
			if (tries == a->n_nodes)
				break;
			if (r->groups[g].gpus_milli)
				flavor = a->nodes[at].node.flavor;
			p->job = ix;
			p->node = at;
			p->alloc.group = g;
			p->alloc.index = index++;
			a->n_pods++;
		}
		if (pods < r->groups[g].pods_min) {
			memcpy(left, before, sizeof(before));
			a->n_pods = first;
			j->job.state = SNAP_PENDING;
			return;
		}
	}
	j->job.start_us = NOW - (1 + pick(from, 40)) * MINUTE;
	j->job.gate = GPUQ_R_NONE;
	j->job.held = 0;
	if (leaves) {
		j->job.state = SNAP_LEAVING;
		j->job.returns = returns;
	}
	for (int i = first; leaves && i < a->n_pods; i++)
		a->pods[i].alloc.releasing = true;
}

static void make_reservation(struct any_source *from, const struct any *a, int ix,
			     struct any_reservation *out)
{
	static const char *const names[] = { "first", "second" };
	struct snap_reservation *r = &out->reservation;

	*r = (struct snap_reservation){ .name = names[ix],
					.flavor = SNAP_NONE,
					.queue = SNAP_NONE,
					.maintenance = rarely(from, 3) };
	r->start_us = NOW + (pick(from, 40) - 10) * MINUTE;
	r->end_us = r->start_us + (1 + pick(from, 60)) * MINUTE;
	r->ends_jobs = !r->maintenance && rarely(from, 2);
	r->release_us = rarely(from, 3) ? (1 + pick(from, 10)) * MINUTE : 0;
	out->queue = rarely(from, 2) ? pick(from, a->n_queues) : -1;
	if (rarely(from, 3)) {
		r->gpus_milli = (1 + pick(from, 6)) * SNAP_MILLI;
		return;
	}
	r->nodes = out->nodes;
	r->n_nodes = 1;
	out->nodes[0] = (uint32_t)pick(from, a->n_nodes);
	out->nodes[1] = (uint32_t)pick(from, a->n_nodes);
	if (out->nodes[1] != out->nodes[0])
		r->n_nodes = 2;
}

static bool is_empty(const struct any *a, int node)
{
	for (int i = 0; i < a->n_pods; i++)
		if (a->pods[i].node == node)
			return false;
	return true;
}

/* Take some nodes away after a time, and make some that nothing runs on into such as do not exist, in a pool for each flavor. */
static void make_up(struct any_source *from, struct any *out)
{
	static const char *const pools[ANY_FLAVORS] = { "pa", "pb" };

	for (int i = 0; i < out->n_nodes; i++) {
		struct any_node *on = &out->nodes[i];
		struct snap_node *n = &on->node;

		if (rarely(from, 3)) {
			n->run_us = (1 + pick(from, 10)) * INT64_C(600000000);
			n->lasts = pick(from, 2);
			n->cuts = pick(from, 2);
			/* No random number: the cases of before stay as they are. */
			n->left_us = i % 3 == 0 ? n->run_us : i % 3 == 1 ? n->run_us / 16 : 0;
		}
		if (n->n_devices == 0 || !is_empty(out, i) || pick(from, 2))
			continue;
		n->pool = pools[n->flavor];
		n->state = pick(from, 2) ? SNAP_ASKED : SNAP_PLANNED;
		n->ask = n->state == SNAP_ASKED ? 2 * n->flavor + 1 + (uint32_t)pick(from, 2) : 0;
		n->price = pick(from, 2);
		n->foreign_gpus = 0;
		for (uint32_t d = 0; d < n->n_devices; d++)
			on->devices[d] = (struct snap_device){ .healthy = true,
							       .memory_bytes = ANY_DEVICE_MEMORY };
	}
}

void any_make(struct any_source *from, struct any *out)
{
	struct left left[ANY_NODES];

	memset(out, 0, sizeof(*out));
	snapshot_config_default(&out->config);
	out->config.now_us = NOW;
	out->config.levels = levels;
	out->config.n_levels = 2;
	out->config.backfill_depth = (uint32_t)pick(from, 4);
	out->config.reclaim_to = pick(from, 2);
	out->config.consolidation = !rarely(from, 4);
	out->config.min_runtime_method = pick(from, 2);
	out->config.usage_k_milli = pick(from, 3) * 500;
	out->config.max_steps = rarely(from, 10) ? 50 : 0;
	out->n_flavors = 1 + pick(from, ANY_FLAVORS);
	out->n_nodes = 1 + pick(from, ANY_NODES);
	for (int i = 0; i < out->n_nodes; i++) {
		make_node(from, out, i, &out->nodes[i]);
		measure(&out->nodes[i], &left[i]);
	}
	out->n_queues = 1 + pick(from, ANY_QUEUES);
	for (int i = 0; i < out->n_queues; i++)
		make_queue(from, out->n_flavors, i, &out->queues[i]);
	out->n_requests = 1 + pick(from, ANY_REQUESTS);
	for (int i = 0; i < out->n_requests; i++)
		make_request(from, out->n_flavors, &out->requests[i]);
	out->n_jobs = pick(from, ANY_JOBS + 1);
	for (int i = 0; i < out->n_jobs; i++) {
		make_job(from, out, i, &out->jobs[i]);
		if (out->requests[out->jobs[i].request].request.exclusive)
			out->jobs[i].job.state = SNAP_PENDING;
		if (out->jobs[i].job.state == SNAP_RUNNING)
			seat_job(from, out, i, left);
	}
	if (rarely(from, 4))
		out->n_reservations = 1 + pick(from, 2);
	for (int i = 0; i < out->n_reservations; i++)
		make_reservation(from, out, i, &out->reservations[i]);
	out->config.cross_queue_priority = rarely(from, 4);
	if (rarely(from, 4))
		out->config.claim_spare_milli = pick(from, 4) * (int64_t)SNAP_MILLI;
	if (rarely(from, 3))
		make_up(from, out);
}

/* ---- the next cycle ---- */

static bool copy_pods(const struct plan *p, const struct plan_action *a, struct any_pod *list,
		      int *n)
{
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *from = &p->pods[a->pod_first + i];
		struct any_pod *to = &list[*n];

		if (*n == ANY_PODS)
			return false;
		*to = (struct any_pod){ .job = (int)a->key.id - 1, .node = (int)from->node };
		to->alloc = (struct snap_alloc){ .group = from->group,
						 .index = from->index,
						 .n_devices = from->n_devices,
						 .milli = from->milli };
		memcpy(to->devices, &p->devices[from->device_first],
		       from->n_devices * sizeof(*to->devices));
		(*n)++;
	}
	return true;
}

static void drop_promises(struct any *a, int job)
{
	int kept = 0;

	for (int i = 0; i < a->n_promises; i++)
		if (a->promises[i].job != job)
			a->promises[kept++] = a->promises[i];
	a->n_promises = kept;
}

/* Remove leaving pods; jobs without any left are pending again. */
static void clear_leavers(struct any *a)
{
	int kept = 0;

	for (int i = 0; i < a->n_pods; i++)
		if (!a->pods[i].alloc.releasing)
			a->pods[kept++] = a->pods[i];
	a->n_pods = kept;
	for (int i = 0; i < a->n_jobs; i++) {
		if (a->jobs[i].job.state != SNAP_LEAVING)
			continue;
		a->jobs[i].job.state = SNAP_PENDING;
		a->jobs[i].job.start_us = 0;
		a->jobs[i].job.returns = false;
	}
}

static void tell_pods(struct any *a, int job, const struct plan *p, const struct plan_action *act)
{
	for (int i = 0; i < a->n_pods; i++) {
		bool told = act->kind != PLAN_SHRINK;

		if (a->pods[i].job != job)
			continue;
		for (uint32_t k = 0; k < act->n_pods && !told; k++)
			told = p->pods[act->pod_first + k].index == a->pods[i].alloc.index;
		a->pods[i].alloc.releasing |= told;
	}
}

bool any_next(struct any *a, const struct plan *p, bool gone)
{
	if (gone)
		clear_leavers(a);
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *act = &p->actions[i];
		const int job = (int)act->key.id - 1;
		struct snap_job *j = &a->jobs[job].job;

		if (j->n_ranges)
			continue;
		switch (act->kind) {
		case PLAN_PLACE:
			drop_promises(a, job);
			j->state = SNAP_RUNNING;
			j->start_us = a->config.now_us;
			j->yield_us = act->yield_us;
			j->walltime_us = act->walltime_us ? act->walltime_us : j->walltime_us;
			j->walltime_min_us = 0;
			if (!copy_pods(p, act, a->pods, &a->n_pods))
				return false;
			break;
		case PLAN_GROW:
			if (!copy_pods(p, act, a->pods, &a->n_pods))
				return false;
			break;
		case PLAN_RELEASE:
			drop_promises(a, job);
			break;
		case PLAN_MOVE:
		case PLAN_EVICT:
		case PLAN_SHRINK:
			tell_pods(a, job, p, act);
			if (act->kind == PLAN_SHRINK)
				break;
			j->state = SNAP_LEAVING;
			j->returns = true;
			if (act->kind == PLAN_MOVE &&
			    !copy_pods(p, act, a->promises, &a->n_promises))
				return false;
			break;
		case PLAN_NOMINATE:
			/* Without victims there is nothing to remember. */
			for (uint32_t k = i + 1; k < p->n_actions; k++)
				if (p->actions[k].claimant == act->job &&
				    p->actions[k].kind != PLAN_NOMINATE) {
					if (!copy_pods(p, act, a->promises, &a->n_promises))
						return false;
					break;
				}
			break;
		default:
			break;
		}
	}
	a->config.now_us += MINUTE;
	return true;
}

/* ---- as a snapshot ---- */

static void add_jobs(const struct any *a, struct snapshot *s, uint64_t *dice, const uint32_t *nodes,
		     const uint32_t *queues, const uint32_t *requests)
{
	uint32_t jobs[ANY_JOBS];
	int order[ANY_PODS];

	prop_shuffled(order, a->n_jobs, *dice ? dice : NULL);
	for (int i = 0; i < a->n_jobs; i++) {
		const struct any_job *in = &a->jobs[order[i]];
		struct snap_job job = in->job;
		const uint32_t exclude = nodes[in->exclude];

		job.queue = queues[in->queue];
		job.request = requests[in->request];
		if (in->omit == ANY_ABSENT)
			continue;
		job.user = snapshot_user(s, users[in->user]);
		if (in->omit == ANY_LEFT_OUT) {
			snapshot_add_usage(s, job.queue, job.user, 0);
			continue;
		}
		job.exclude = &exclude;
		job.ranges = &in->range;
		if (job.evicted_for != SNAP_NONE)
			job.evicted_for = queues[job.evicted_for];
		jobs[order[i]] = snapshot_add_job(s, &job);
	}
	prop_shuffled(order, a->n_pods, *dice ? dice : NULL);
	for (int i = 0; i < a->n_pods; i++) {
		const struct any_pod *in = &a->pods[order[i]];
		struct snap_alloc alloc = in->alloc;

		alloc.job = jobs[in->job];
		alloc.node = nodes[in->node];
		alloc.devices = in->devices;
		snapshot_add_alloc(s, &alloc);
	}
	prop_shuffled(order, a->n_promises, *dice ? dice : NULL);
	for (int i = 0; i < a->n_promises; i++) {
		const struct any_pod *in = &a->promises[order[i]];
		struct snap_alloc promise = in->alloc;

		promise.job = jobs[in->job];
		promise.node = nodes[in->node];
		promise.devices = in->devices;
		snapshot_add_promise(s, &promise);
	}
}

struct snapshot *any_build(const struct any *a, uint64_t order_seed, const char **fault)
{
	uint32_t flavors[ANY_FLAVORS], nodes[ANY_NODES] = { 0 }, queues[ANY_QUEUES],
				       requests[ANY_REQUESTS];
	static struct gpuq_err err;
	struct snapshot *s = snapshot_new(&a->config);
	uint64_t dice = order_seed;
	int order[ANY_QUEUES + ANY_NODES + ANY_REQUESTS];

	if (!s)
		abort();
	/* Shares are given by handle, so flavors keep their places. */
	for (int i = 0; i < a->n_flavors; i++)
		flavors[i] = snapshot_add_flavor(s, flavor_names[i], i);
	snapshot_add_license(s, "tool", 2);
	prop_shuffled(order, a->n_nodes, dice ? &dice : NULL);
	for (int i = 0; i < a->n_nodes; i++) {
		struct snap_node n = a->nodes[order[i]].node;

		if (n.flavor != SNAP_NONE)
			n.flavor = flavors[n.flavor];
		nodes[order[i]] = snapshot_add_node(s, &n);
	}
	prop_shuffled(order, a->n_queues, dice ? &dice : NULL);
	for (int i = 0; i < a->n_queues; i++)
		queues[order[i]] = snapshot_add_queue(s, &a->queues[order[i]].queue);
	prop_shuffled(order, a->n_requests, dice ? &dice : NULL);
	for (int i = 0; i < a->n_requests; i++)
		requests[order[i]] = snapshot_add_request(s, &a->requests[order[i]].request);
	add_jobs(a, s, &dice, nodes, queues, requests);
	prop_shuffled(order, a->n_reservations, dice ? &dice : NULL);
	for (int i = 0; i < a->n_reservations; i++) {
		const struct any_reservation *in = &a->reservations[order[i]];
		struct snap_reservation r = in->reservation;
		const uint32_t on[2] = { nodes[in->nodes[0]], nodes[in->nodes[1]] };

		r.nodes = r.n_nodes ? on : NULL;
		if (in->queue >= 0)
			r.queue = queues[in->queue];
		snapshot_add_reservation(s, &r);
	}
	if (snapshot_seal(s, &err) < 0) {
		*fault = err.text;
		snapshot_free(s);
		return NULL;
	}
	return s;
}
