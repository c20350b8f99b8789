#include "tests/prop/prop.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/sched.h"

/* The world a case lives in, kept apart from the scheduler's own idea of it. */

#define ELEMENTS 8
#define PODS 12
#define INSTANCES (PROP_JOBS * ELEMENTS)
#define GIB (INT64_C(1) << 30)

struct pod {
	int node, group, n_devices, devices[10], milli;
};

struct instance {
	int job, element, n_pods;
	struct pod pods[PODS];
};

struct world {
	const struct prop_case *pc;
	int round;
	bool waiting[PROP_JOBS][ELEMENTS];
	struct instance running[INSTANCES];
	int n_running;
	char wrong[400];
};

static const char *node_names[PROP_NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7" };
static const char *queue_names[PROP_QUEUES] = { "q0", "q1", "q2", "q3", "q4", "q5" };
static const char *users[] = { "ann", "bob", "eve" };
static const char *flavors[] = { "a", "b" };

static bool wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->wrong[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(w->wrong, sizeof(w->wrong), fmt, ap);
	va_end(ap);
	return false;
}

/* ---- the snapshot, its objects added in some order ---- */

static void shuffled(int *order, int n, uint64_t *r)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; r && i > 0; i--) {
		int k = (int)(prop_random(r) % (uint64_t)(i + 1)), t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
}

static void add_node(const struct world *w, struct snapshot *s, int i, uint32_t *handle)
{
	static const char *zone_key[] = { "zone" };
	static const char *zones[][1] = { { "z0" }, { "z1" } };
	static const struct snap_taint taint = { "special", "yes", "NoSchedule" };
	const struct prop_node *p = &w->pc->nodes[i];
	struct snap_node n;

	snap_node_default(&n);
	n.name = node_names[i];
	n.flavor = p->gpus ? (uint32_t)p->flavor : SNAP_NONE;
	n.state = p->state;
	n.n_devices = (uint32_t)p->gpus;
	if (p->cpu)
		n.cpu_milli = p->cpu * 1000;
	if (p->mem)
		n.memory_bytes = p->mem * GIB;
	if (p->pods)
		n.pods = p->pods;
	n.foreign_gpus = p->foreign;
	n.labels = (struct gpuq_strmap){ zone_key, zones[p->zone], 1 };
	n.taints = &taint;
	n.n_taints = p->tainted;
	handle[i] = snapshot_add_node(s, &n);
}

static void add_queue(const struct world *w, struct snapshot *s, int i, uint32_t *handle)
{
	const struct prop_queue *p = &w->pc->queues[i];
	struct snap_share shares[4];
	struct snap_queue q;

	snap_queue_default(&q);
	for (int r = 0; r < 4; r++)
		snap_share_default(&shares[r]);
	for (int f = 0; f < 2; f++) {
		shares[f].quota = p->quota[f] < 0     ? SNAP_AUTO
				  : p->quota[f] == 99 ? GPUQ_UNLIMITED
						      : p->quota[f] * SNAP_MILLI;
		shares[f].limit = p->limit[f] == 99 ? GPUQ_UNLIMITED : p->limit[f] * SNAP_MILLI;
		if (p->lend >= 0)
			shares[f].lend = p->lend * SNAP_MILLI;
	}
	q.shares = shares;
	q.name = queue_names[i];
	q.parent_name = p->parent >= 0 ? queue_names[p->parent] : NULL;
	q.weight_milli = p->weight * 1000;
	q.rank = p->rank;
	q.age = i;
	q.stopped = p->stopped;
	if (p->user_jobs)
		q.user_max_running = p->user_jobs;
	handle[i] = snapshot_add_queue(s, &q);
}

static uint32_t add_request(const struct world *w, struct snapshot *s, int job)
{
	static const char *prefer[][2] = { { "a" }, { "b" }, { "b", "a" } };
	static const char *zones[] = { "z0", "z1" };
	const struct prop_job *p = &w->pc->jobs[job];
	struct snap_group groups[PROP_GROUPS];
	struct gpuq_require require[PROP_GROUPS];
	struct gpuq_term term[PROP_GROUPS];
	struct gpuq_toleration tolerate = { .key = "special", .exists = true, .effect = "" };
	struct snap_request r = { .groups = groups, .n_groups = (uint32_t)p->n_groups };

	memset(groups, 0, sizeof(groups));
	for (int g = 0; g < p->n_groups; g++) {
		const struct prop_group *in = &p->groups[g];

		groups[g].name = g ? "second" : "main";
		groups[g].pods_min = groups[g].pods_max = (uint32_t)in->pods;
		groups[g].gpus_milli = in->milli;
		groups[g].cpu_milli = in->cpu * 1000;
		groups[g].memory_bytes = in->mem * GIB;
		if (in->zone >= 0) {
			require[g] = (struct gpuq_require){ "zone",
							    GPUQ_OP_IN,
							    { &zones[in->zone], 1 } };
			term[g] = (struct gpuq_term){ &require[g], 1, 0 };
			groups[g].required = &term[g];
			groups[g].n_required = 1;
		}
		groups[g].topology_required = p->together == 1 ? "zone" : NULL;
		groups[g].topology_preferred = p->together == 2 ? "zone" : NULL;
		groups[g].tolerations = &tolerate;
		groups[g].n_tolerations = in->tolerates;
	}
	if (p->flavor >= 0) {
		r.flavors = prefer[p->flavor];
		r.n_flavors = p->flavor == 2 ? 2 : 1;
	}
	r.exclusive = p->exclusive;
	return snapshot_add_request(s, &r);
}

static void fill_job(const struct world *w, struct snapshot *s, int job, const uint32_t *queues,
		     struct snap_job *j)
{
	const struct prop_job *p = &w->pc->jobs[job];

	snap_job_default(j);
	j->key.id = (uint32_t)job + 1;
	j->queue = queues[p->queue];
	j->request = add_request(w, s, job);
	j->user = snapshot_user(s, users[p->user]);
	j->priority = p->priority;
	j->submit_us = p->submit + p->round * 10;
	j->preemptible = p->preemptible;
	j->throttle = (uint32_t)p->throttle;
	j->held = p->held ? SNAP_HELD_USER : 0;
}

/* What waits of a job, as one entry. False: nothing does. */
static bool add_waiting(const struct world *w, struct snapshot *s, int job, const uint32_t *queues)
{
	const struct prop_job *p = &w->pc->jobs[job];
	struct snap_range ranges[ELEMENTS];
	struct snap_job j;
	uint32_t n = 0;

	fill_job(w, s, job, queues, &j);
	for (int e = 0; e < (p->size ? p->size : 1); e++) {
		if (!w->waiting[job][e])
			continue;
		if (n && ranges[n - 1].last == e - 1)
			ranges[n - 1].last = e;
		else
			ranges[n++] = (struct snap_range){ e, e, 1 };
	}
	if (n == 0)
		return false;
	if (p->size) {
		j.ranges = ranges;
		j.n_ranges = n;
	}
	snapshot_add_job(s, &j);
	return true;
}

static void add_running(const struct world *w, struct snapshot *s, const struct instance *in,
			const uint32_t *queues, const uint32_t *nodes)
{
	struct snap_job j;
	uint32_t handle;

	fill_job(w, s, in->job, queues, &j);
	j.key.index = w->pc->jobs[in->job].size ? in->element : -1;
	j.state = SNAP_RUNNING;
	handle = snapshot_add_job(s, &j);
	for (int i = 0; i < in->n_pods; i++) {
		const struct pod *p = &in->pods[i];
		uint32_t devices[10];
		struct snap_alloc a = { .job = handle,
					.node = nodes[p->node],
					.group = (uint32_t)p->group,
					.index = (uint32_t)i,
					.devices = devices,
					.n_devices = (uint32_t)p->n_devices,
					.milli = p->milli };

		for (int d = 0; d < p->n_devices; d++)
			devices[d] = (uint32_t)p->devices[d];
		snapshot_add_alloc(s, &a);
	}
}

static struct snapshot *build(struct world *w, uint64_t *shuffle)
{
	struct snap_config config;
	struct snapshot *s;
	struct gpuq_err err = GPUQ_ERR_INIT;
	uint32_t nodes[PROP_NODES], queues[PROP_QUEUES];
	int order[INSTANCES];

	snap_config_default(&config);
	config.now_us = 1000;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, flavors[0], 0);
	snapshot_add_flavor(s, flavors[1], 1);
	shuffled(order, PROP_NODES, shuffle);
	for (int i = 0; i < PROP_NODES; i++)
		if (w->pc->nodes[order[i]].there)
			add_node(w, s, order[i], nodes);
	shuffled(order, PROP_QUEUES, shuffle);
	for (int i = 0; i < PROP_QUEUES; i++)
		if (w->pc->queues[order[i]].there)
			add_queue(w, s, order[i], queues);
	shuffled(order, PROP_JOBS, shuffle);
	for (int i = 0; i < PROP_JOBS; i++)
		if (w->pc->jobs[order[i]].there && w->pc->jobs[order[i]].round <= w->round)
			add_waiting(w, s, order[i], queues);
	shuffled(order, w->n_running, shuffle);
	for (int i = 0; i < w->n_running; i++)
		add_running(w, s, &w->running[order[i]], queues, nodes);
	if (snapshot_seal(s, &err) < 0)
		wrong(w, "sealing: %s", err.text);
	return s;
}

/* ---- what must hold of the world ---- */

static void check_nodes(struct world *w)
{
	for (int n = 0; n < PROP_NODES; n++) {
		const struct prop_node *node = &w->pc->nodes[n];
		int cpu = 0, mem = 0, pods = 0, devices[10] = { 0 }, used = 0, alone = 0;
		int first = -1;
		bool mixed = false;

		for (int i = 0; i < w->n_running; i++) {
			const struct instance *in = &w->running[i];

			for (int k = 0; k < in->n_pods; k++) {
				const struct prop_group *g =
					&w->pc->jobs[in->job].groups[in->pods[k].group];

				if (in->pods[k].node != n)
					continue;
				cpu += g->cpu;
				mem += g->mem;
				pods++;
				alone += w->pc->jobs[in->job].exclusive;
				mixed |= first >= 0 && first != i;
				first = i;
				for (int d = 0; d < in->pods[k].n_devices; d++)
					devices[in->pods[k].devices[d]] += in->pods[k].milli;
			}
		}
		for (int d = 0; d < node->gpus; d++) {
			if (devices[d] > SNAP_MILLI)
				wrong(w, "device %d of n%d is held %d times 1/1000", d, n,
				      devices[d]);
			used += devices[d] > 0;
		}
		if (used > node->gpus - node->foreign)
			wrong(w, "n%d: %d devices held, %d are foreign", n, used, node->foreign);
		if ((node->cpu && cpu > node->cpu) || (node->mem && mem > node->mem) ||
		    (node->pods && pods > node->pods))
			wrong(w, "n%d is overcommitted: cpu %d mem %d pods %d", n, cpu, mem, pods);
		if (alone && mixed)
			wrong(w, "n%d is shared though one job has it alone", n);
	}
}

static int held(const struct world *w, int queue, int flavor, bool firm)
{
	int milli = 0;

	for (int i = 0; i < w->n_running; i++) {
		const struct prop_job *j = &w->pc->jobs[w->running[i].job];
		int q = j->queue;

		while (q >= 0 && q != queue)
			q = w->pc->queues[q].parent;
		if (q < 0 || (firm && j->preemptible))
			continue;
		for (int k = 0; k < w->running[i].n_pods; k++)
			if (w->pc->nodes[w->running[i].pods[k].node].flavor == flavor)
				milli += j->groups[w->running[i].pods[k].group].milli;
	}
	return milli;
}

/* Quota with `auto` resolved, in thousandths; -1 = unlimited. */
static int quota(const struct world *w, int queue, int flavor)
{
	int sum = 0;

	if (w->pc->queues[queue].quota[flavor] == 99)
		return -1;
	if (w->pc->queues[queue].quota[flavor] >= 0)
		return w->pc->queues[queue].quota[flavor] * SNAP_MILLI;
	for (int q = 0; q < PROP_QUEUES; q++) {
		int kid;

		if (!w->pc->queues[q].there || w->pc->queues[q].parent != queue)
			continue;
		kid = quota(w, q, flavor);
		if (kid < 0)
			return -1;
		sum += kid;
	}
	return sum;
}

static void check_limits(struct world *w)
{
	for (int q = 0; q < PROP_QUEUES; q++) {
		const struct prop_queue *queue = &w->pc->queues[q];

		for (int f = 0; queue->there && f < 2; f++) {
			if (queue->limit[f] != 99 &&
			    held(w, q, f, false) > queue->limit[f] * SNAP_MILLI)
				wrong(w, "q%d is over its limit of %s", q, flavors[f]);
			if (quota(w, q, f) >= 0 && held(w, q, f, true) > quota(w, q, f))
				wrong(w, "q%d holds more than its quota of %s for good", q,
				      flavors[f]);
		}
	}
}

static int running_elements(const struct world *w, int job)
{
	int n = 0;

	for (int i = 0; i < w->n_running; i++)
		n += w->running[i].job == job;
	return n;
}

static int running_of_user(const struct world *w, int queue, int user)
{
	int n = 0;

	for (int i = 0; i < w->n_running; i++) {
		const struct prop_job *j = &w->pc->jobs[w->running[i].job];
		int q = j->queue;

		while (q >= 0 && q != queue)
			q = w->pc->queues[q].parent;
		n += q >= 0 && j->user == user;
	}
	return n;
}

/* ---- could this waiting job start? An answer found in another way ---- */

static bool allowed_on(const struct world *w, const struct prop_group *g, int node, int flavor)
{
	const struct prop_node *n = &w->pc->nodes[node];

	return n->there && n->state == 0 && (g->zone < 0 || g->zone == n->zone) &&
	       (!n->tainted || g->tolerates) && (g->milli == 0 || (n->gpus && n->flavor == flavor));
}

/* Pods of the group that fit on the node, by trying. */
static int room_on(const struct world *w, const struct prop_job *j, int node)
{
	const struct prop_group *g = &j->groups[0];
	const struct prop_node *n = &w->pc->nodes[node];
	int cpu = n->cpu, mem = n->mem, pods = n->pods, device[10], fit = 0, foreign = n->foreign;
	bool busy = false, closed = false;

	for (int d = 0; d < 10; d++)
		device[d] = d < n->gpus ? SNAP_MILLI : 0;
	for (int i = 0; i < w->n_running; i++) {
		for (int k = 0; k < w->running[i].n_pods; k++) {
			const struct pod *p = &w->running[i].pods[k];
			const struct prop_group *o =
				&w->pc->jobs[w->running[i].job].groups[p->group];

			if (p->node != node)
				continue;
			busy = true;
			closed |= w->pc->jobs[w->running[i].job].exclusive;
			cpu -= o->cpu;
			mem -= o->mem;
			pods--;
			for (int d = 0; d < p->n_devices; d++)
				device[p->devices[d]] -= p->milli;
		}
	}
	for (int d = n->gpus - 1; d >= 0 && foreign > 0; d--)
		if (device[d] == SNAP_MILLI) {
			device[d] = 0;
			foreign--;
		}
	if (closed || (busy && j->exclusive))
		return 0;
	while (fit < g->pods) {
		int want = g->milli;

		if ((n->cpu && cpu < g->cpu) || (n->mem && mem < g->mem) || (n->pods && pods < 1))
			break;
		for (int d = 0; d < n->gpus && want > 0; d++) {
			int take = want < SNAP_MILLI ? want : SNAP_MILLI;

			if (device[d] < take)
				continue;
			device[d] -= take;
			want -= take;
		}
		if (want > 0)
			break;
		cpu -= g->cpu;
		mem -= g->mem;
		pods--;
		fit++;
	}
	return fit;
}

static bool limits_let(const struct world *w, const struct prop_job *j, int flavor)
{
	const int milli = j->groups[0].milli * j->groups[0].pods;

	for (int q = j->queue; q >= 0; q = w->pc->queues[q].parent) {
		const struct prop_queue *queue = &w->pc->queues[q];

		if (queue->stopped)
			return false;
		if (queue->user_jobs && running_of_user(w, q, j->user) >= queue->user_jobs)
			return false;
		if (milli == 0)
			continue;
		if (queue->limit[flavor] != 99 &&
		    held(w, q, flavor, false) + milli > queue->limit[flavor] * SNAP_MILLI)
			return false;
		if (!j->preemptible && quota(w, q, flavor) >= 0 &&
		    held(w, q, flavor, true) + milli > quota(w, q, flavor))
			return false;
	}
	return true;
}

static bool could_start(const struct world *w, int job)
{
	static const int choices[4][2] = { { 0, 1 }, { 0, 0 }, { 1, 1 }, { 1, 0 } };
	const struct prop_job *j = &w->pc->jobs[job];

	if (j->held || (j->throttle && running_elements(w, job) >= j->throttle))
		return false;
	for (int i = 0; i < 2; i++) {
		const int flavor = choices[j->flavor + 1][i];
		int fit[2] = { 0, 0 }, most;

		for (int n = 0; n < PROP_NODES; n++)
			if (allowed_on(w, &j->groups[0], n, flavor))
				fit[w->pc->nodes[n].zone] += room_on(w, j, n);
		most = fit[0] > fit[1] ? fit[0] : fit[1];
		if ((j->together == 1 ? most : fit[0] + fit[1]) >= j->groups[0].pods &&
		    limits_let(w, j, flavor))
			return true;
	}
	return false;
}

/* ---- applying and checking a plan ---- */

static void apply(struct world *w, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];
		const int job = (int)a->key.id - 1;
		const struct prop_job *j = &w->pc->jobs[job];
		const int element = a->key.index < 0 ? 0 : a->key.index;
		struct instance *in = &w->running[w->n_running];
		int want = 0, per_group[PROP_GROUPS] = { 0 };

		if (a->kind != PLAN_PLACE || (a->key.index >= 0) != (j->size > 0) ||
		    !w->waiting[job][element]) {
			wrong(w, "action %u starts job %d element %d, which does not wait", i,
			      job + 1, element);
			return;
		}
		w->waiting[job][element] = false;
		w->n_running++;
		*in = (struct instance){ .job = job, .element = element, .n_pods = (int)a->n_pods };
		for (int g = 0; g < j->n_groups; g++)
			want += j->groups[g].pods;
		if (want != in->n_pods) {
			wrong(w, "job %d starts %d of %d pods", job + 1, in->n_pods, want);
			return;
		}
		for (int k = 0; k < in->n_pods; k++) {
			const struct plan_pod *pod = &p->pods[a->pod_first + (uint32_t)k];
			const struct prop_group *g = &j->groups[pod->group];
			struct pod *to = &in->pods[k];

			*to = (struct pod){ .node = s->nodes[pod->node].name[1] - '0',
					    .group = (int)pod->group,
					    .n_devices = (int)pod->n_devices,
					    .milli = pod->milli };
			per_group[pod->group]++;
			for (uint32_t d = 0; d < pod->n_devices; d++) {
				to->devices[d] = (int)p->devices[pod->device_first + d];
				if (d && to->devices[d] <= to->devices[d - 1])
					wrong(w, "job %d: devices out of order", job + 1);
			}
			if (to->n_devices * to->milli != g->milli)
				wrong(w, "job %d gets %d x %d for %d", job + 1, to->n_devices,
				      to->milli, g->milli);
			if (j->together == 1 &&
			    w->pc->nodes[to->node].zone != w->pc->nodes[in->pods[0].node].zone)
				wrong(w, "job %d stands in two zones", job + 1);
			if (!allowed_on(w, g, to->node, (int)a->flavor))
				wrong(w, "job %d may not stand on n%d", job + 1, to->node);
		}
		for (int g = 0; g < j->n_groups; g++)
			if (per_group[g] != j->groups[g].pods)
				wrong(w, "job %d: %d pods of group %d", job + 1, per_group[g], g);
		if (j->throttle && running_elements(w, job) > j->throttle)
			wrong(w, "array %d runs more than %d", job + 1, j->throttle);
	}
}

static void check_reasons(struct world *w, const struct snapshot *s, const struct plan *p)
{
	int told[PROP_JOBS] = { 0 };
	uint32_t last = 0;

	for (uint32_t i = 0; i < p->n_reasons; i++) {
		const struct plan_reason *r = &p->reasons[i];

		if (r->job < last || r->code == GPUQ_R_NONE || !r->object)
			wrong(w, "reason %u is out of order or empty", i);
		if (r->have >= r->need && r->need != 0)
			wrong(w, "job %u: has %lld of %lld and yet %s", s->jobs[r->job].key.id,
			      (long long)r->have, (long long)r->need, gpuq_reason_word(r->code));
		last = r->job;
		told[s->jobs[r->job].key.id - 1]++;
	}
	for (int j = 0; j < PROP_JOBS; j++) {
		bool waits = false;

		for (int e = 0; e < ELEMENTS; e++)
			waits |= w->pc->jobs[j].round <= w->round && w->waiting[j][e];
		if (waits != (told[j] > 0))
			wrong(w, "job %d: waits %d, reasons %d", j + 1, waits, told[j]);
	}
}

static void check_idle(struct world *w)
{
	for (int q = 0; q < PROP_QUEUES; q++)
		if (w->pc->queues[q].there && w->pc->queues[q].lend >= 0)
			return;
	for (int j = 0; j < PROP_JOBS; j++) {
		const struct prop_job *job = &w->pc->jobs[j];
		bool waits = false;

		for (int e = 0; e < ELEMENTS; e++)
			waits |= job->there && job->round <= w->round && w->waiting[j][e];
		if (waits && job->n_groups == 1 && could_start(w, j))
			wrong(w, "job %d could start and does not", j + 1);
	}
}

static void check_shares(struct world *w, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t q = 0; q < s->n_queues; q++) {
		for (uint32_t r = 0; r < s->n_res; r++) {
			const size_t at = (size_t)q * s->n_res + r;
			int64_t owed = s->shares[at].quota;

			owed = owed < p->demand[at] ? owed : p->demand[at];
			if (p->fair_share[at] < owed || p->fair_share[at] > p->demand[at] ||
			    p->demand[at] > s->shares[at].limit)
				wrong(w, "%s: share %lld of demand %lld", s->queues[q].name,
				      (long long)p->fair_share[at], (long long)p->demand[at]);
		}
	}
}

/* Starts of one group. Several groups are packed greedily, and what was in their way may
 * have gone elsewhere since. */
static uint32_t plain_starts(const struct world *w, const struct plan *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_actions; i++)
		n += w->pc->jobs[p->actions[i].key.id - 1].n_groups == 1;
	return n;
}

/* One cycle, checked and applied; how many plain starts there were. */
static uint32_t cycle(struct world *w, uint64_t *shuffle)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text = GPUQ_BUF_INIT, again = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = build(w, NULL), *t = build(w, shuffle);
	struct plan p = { 0 }, p2 = { 0 };
	uint32_t n = 0;

	if (w->wrong[0] == '\0' &&
	    (sched_cycle(s, &mem, &p, &err) < 0 || sched_cycle(t, &mem, &p2, &err) < 0))
		wrong(w, "cycle: %s", err.text);
	if (w->wrong[0] == '\0') {
		plan_print(s, &p, &text);
		plan_print(t, &p2, &again);
		if (strcmp(gpuq_buf_str(&text), gpuq_buf_str(&again)) != 0)
			wrong(w, "round %d: another order of storage, another plan:\n%s---\n%s",
			      w->round, gpuq_buf_str(&text), gpuq_buf_str(&again));
		n = plain_starts(w, &p);
		apply(w, s, &p);
		check_nodes(w);
		check_limits(w);
		check_reasons(w, s, &p);
		check_shares(w, s, &p);
		check_idle(w);
	}
	snapshot_free(s);
	snapshot_free(t);
	gpuq_arena_done(&mem);
	gpuq_buf_done(&text);
	gpuq_buf_done(&again);
	return n;
}

const char *prop_run(const struct prop_case *pc)
{
	static struct world w;
	uint64_t shuffle = pc->seed ^ 0x5eed;

	memset(&w, 0, sizeof(w));
	w.pc = pc;
	/* Jobs only in leaves: a queue with children gets none. */
	for (int j = 0; j < PROP_JOBS; j++) {
		bool leaf = pc->jobs[j].there && pc->queues[pc->jobs[j].queue].there;

		for (int q = 0; q < PROP_QUEUES; q++)
			if (pc->queues[q].there && pc->queues[q].parent == pc->jobs[j].queue)
				leaf = false;
		for (int e = 0; leaf && e < (pc->jobs[j].size ? pc->jobs[j].size : 1); e++)
			w.waiting[j][e] = true;
	}
	for (w.round = 0; w.round < PROP_ROUNDS && !w.wrong[0]; w.round++) {
		for (int i = w.n_running; i-- > 0;)
			if (pc->jobs[w.running[i].job].end_round <= w.round)
				w.running[i] = w.running[--w.n_running];
		cycle(&w, &shuffle);
		if (!w.wrong[0] && cycle(&w, &shuffle) > 0)
			wrong(&w, "round %d: a second cycle starts more", w.round);
	}
	return w.wrong[0] ? w.wrong : NULL;
}
