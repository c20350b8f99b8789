#include "tests/prop/prop_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *node_names[PROP_NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7" };
static const char *queue_names[PROP_QUEUES] = { "q0", "q1", "q2", "q3", "q4", "q5" };
static const char *users[] = { "ann", "bob", "eve" };
const char *const prop_flavors[2] = { "a", "b" };

bool wrong(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->wrong[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(w->wrong, sizeof(w->wrong), fmt, ap);
	va_end(ap);
	return false;
}

static void add_node(const struct world *w, struct snapshot *s, int i, uint32_t *handle)
{
	static const char *zone_key[] = { "zone" };
	static const char *zones[][1] = { { "z0" }, { "z1" } };
	static const struct snap_taint taint = { "special", "yes", "NoSchedule" };
	const struct prop_node *p = &w->pc->nodes[i];
	struct snap_node n;

	snapshot_node_default(&n);
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

	snapshot_queue_default(&q);
	for (int r = 0; r < 4; r++)
		snapshot_share_default(&shares[r]);
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

	snapshot_job_default(j);
	j->key.id = (uint32_t)job + 1;
	j->queue = queues[p->queue];
	j->request = add_request(w, s, job);
	j->user = snapshot_user(s, users[p->user]);
	j->priority = p->priority;
	j->submit_us = p->submit + p->round * 10;
	j->preemptible = p->preemptible;
	j->throttle = (uint32_t)p->throttle;
	j->held = p->held ? SNAP_HELD_USER : 0;
	if (p->walltime)
		j->walltime_us = p->walltime;
}

/* Add the pending part of a job, as one entry. False: there is none. */
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
	j.start_us = in->start;
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

struct snapshot *world_build(struct world *w, uint64_t *shuffle)
{
	struct snap_config config;
	struct snapshot *s;
	struct gpuq_err err = GPUQ_ERR_INIT;
	uint32_t nodes[PROP_NODES], queues[PROP_QUEUES];
	int order[INSTANCES];

	snapshot_config_default(&config);
	config.reclaim = config.consolidation = false; /* preemption: see prop_claims */
	config.now_us = now(w);
	s = snapshot_new(&config);
	snapshot_add_flavor(s, prop_flavors[0], 0);
	snapshot_add_flavor(s, prop_flavors[1], 1);
	prop_shuffled(order, PROP_NODES, shuffle);
	for (int i = 0; i < PROP_NODES; i++)
		if (w->pc->nodes[order[i]].there)
			add_node(w, s, order[i], nodes);
	prop_shuffled(order, PROP_QUEUES, shuffle);
	for (int i = 0; i < PROP_QUEUES; i++)
		if (w->pc->queues[order[i]].there)
			add_queue(w, s, order[i], queues);
	prop_shuffled(order, PROP_JOBS, shuffle);
	for (int i = 0; i < PROP_JOBS; i++)
		if (w->pc->jobs[order[i]].there && w->pc->jobs[order[i]].round <= w->round)
			add_waiting(w, s, order[i], queues);
	prop_shuffled(order, w->n_running, shuffle);
	for (int i = 0; i < w->n_running; i++)
		add_running(w, s, &w->running[order[i]], queues, nodes);
	if (snapshot_seal(s, &err) < 0)
		wrong(w, "sealing: %s", err.text);
	return s;
}
