#include <stdarg.h>
#include <string.h>

#include "tests/prop/claims.h"
#include "tests/prop/prop.h"

static const char *node_names[PC_NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7" };
static const char *queue_names[PC_QUEUES] = { "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7" };
static const char *flavors[PC_FLAVORS] = { "a", "b" };

void pc_wrong(struct pc_world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->wrong[0])
		return;
	va_start(ap, fmt);
	vsnprintf(w->wrong, sizeof(w->wrong), fmt, ap);
	va_end(ap);
}

bool pc_below(const struct pc_case *pc, int queue, int top)
{
	while (queue >= 0 && queue != top)
		queue = pc->queues[queue].parent;
	return queue == top;
}

bool pc_is_leaf(const struct pc_case *pc, int queue)
{
	for (int q = 0; q < PC_QUEUES; q++)
		if (pc->queues[q].there && pc->queues[q].parent == queue)
			return false;
	return true;
}

int pc_staying(const struct pc_live *l)
{
	int n = 0;

	for (int i = 0; i < l->n_pods; i++)
		n += l->pods[i].gone == 0;
	return l->state == PC_RUNNING ? n : 0;
}

int pc_asks(const struct pc_world *w, int job)
{
	return w->live[job].state == PC_RUNNING ? 1 : w->pc->jobs[job].min;
}

int pc_flavor(const struct pc_world *w, int job)
{
	const struct pc_live *l = &w->live[job];

	if (l->n_promise)
		return w->pc->nodes[l->promise[0].node].flavor;
	return l->n_pods ? w->pc->nodes[l->pods[0].node].flavor : -1;
}

static bool counts(const struct pc_world *w, int job, int queue, bool firm)
{
	const struct pc_job *j = &w->pc->jobs[job];

	return j->there && pc_below(w->pc, j->queue, queue) && !(firm && j->preemptible);
}

int64_t pc_held(const struct pc_world *w, int queue, int flavor, bool firm)
{
	int64_t milli = 0;

	for (int j = 0; j < PC_JOBS; j++) {
		const struct pc_live *l = &w->live[j];
		int pods = pc_staying(l) + l->n_promise;

		/* Pods beyond the minimum are not its own for good. */
		if (firm && pods > w->pc->jobs[j].min)
			pods = w->pc->jobs[j].min;
		if (counts(w, j, queue, firm) && pc_flavor(w, j) == flavor)
			milli += (int64_t)pods * w->pc->jobs[j].milli;
	}
	return milli;
}

int64_t pc_used(const struct pc_world *w, int queue, int flavor)
{
	int64_t milli = 0;

	for (int j = 0; j < PC_JOBS; j++) {
		const struct pc_live *l = &w->live[j];

		if (counts(w, j, queue, false) && pc_flavor(w, j) == flavor)
			milli += (int64_t)(l->n_pods + l->n_promise) * w->pc->jobs[j].milli;
	}
	return milli;
}

/* ---- room, computed independently of the scheduler ---- */

static bool is_gone(const struct pc_world *w, int job, int pod, const struct pc_unit *gone,
		    int n_gone)
{
	for (int i = 0; i < n_gone; i++) {
		if (gone[i].job != job)
			continue;
		if (gone[i].pod == w->live[job].pods[pod].index)
			return true;
		if (gone[i].pod < 0) {
			/* The gang is the first staying pods; those beyond it are units of their
			 * own. */
			int before = 0;

			for (int k = 0; k < pod; k++)
				before += w->live[job].pods[k].gone == 0;
			if (before < w->pc->jobs[job].min)
				return true;
		}
	}
	return false;
}

static void use(const struct pc_pod *p, int node, int cpu_each, int *device, int *cpu)
{
	if (p->node != node)
		return;
	for (int d = 0; d < p->n_devices; d++)
		device[p->devices[d]] -= p->milli;
	*cpu -= cpu_each;
}

static int room(const struct pc_world *w, int job, int flavor, const struct pc_unit *gone,
		int n_gone, bool now, bool cores)
{
	const struct pc_job *j = &w->pc->jobs[job];
	const int asks = pc_asks(w, job);
	int fit = 0;

	for (int n = 0; n < PC_NODES; n++) {
		const struct pc_node *node = &w->pc->nodes[n];
		int device[PC_DEVICES], cpu = node->cpu;

		if (!node->there || node->flavor != flavor)
			continue;
		for (int d = 0; d < PC_DEVICES; d++)
			device[d] = d < node->gpus ? SNAP_MILLI : 0;
		for (int o = 0; o < PC_JOBS; o++) {
			const struct pc_live *l = &w->live[o];

			for (int p = 0; p < l->n_pods; p++)
				if (now || (l->pods[p].gone == 0 && l->state == PC_RUNNING &&
					    !is_gone(w, o, p, gone, n_gone)))
					use(&l->pods[p], n, w->pc->jobs[o].cpu, device, &cpu);
			for (int p = 0; p < l->n_promise; p++)
				use(&l->promise[p], n, w->pc->jobs[o].cpu, device, &cpu);
		}
		/* A job is to be moved to where another stays. */
		for (int d = 0; d < PC_DEVICES && !now; d++)
			if (device[d] < 0 || (node->cpu && cpu < 0))
				return 0;
		while (fit < asks && (!cores || node->cpu == 0 || cpu >= j->cpu)) {
			int want = j->milli;

			for (int d = 0; d < node->gpus && want > 0; d++) {
				const int take = want < SNAP_MILLI ? want : SNAP_MILLI;

				if (device[d] < take)
					continue;
				device[d] -= take;
				want -= take;
			}
			if (want > 0)
				break;
			cpu -= j->cpu;
			fit++;
		}
	}
	return fit;
}

int pc_room(const struct pc_world *w, int job, int flavor, const struct pc_unit *gone, int n_gone,
	    bool now)
{
	return room(w, job, flavor, gone, n_gone, now, true);
}

bool pc_lacks_cores(const struct pc_world *w, int job, int flavor)
{
	return room(w, job, flavor, NULL, 0, false, false) >= pc_asks(w, job);
}

/* ---- changes of the world itself ---- */

static int64_t amount(const struct pc_world *w, int queue, int f)
{
	const struct pc_queue *q = &w->pc->queues[queue];
	int64_t sum = 0;

	if (q->quota[f] == PC_UNLIMITED)
		return GPUQ_UNLIMITED;
	if (q->quota[f] != PC_AUTO)
		return (int64_t)q->quota[f] * SNAP_MILLI;
	for (int k = 0; k < PC_QUEUES; k++)
		if (w->pc->queues[k].there && w->pc->queues[k].parent == queue) {
			const int64_t kid = amount(w, k, f);

			if (kid == GPUQ_UNLIMITED)
				return kid;
			sum += kid;
		}
	return sum;
}

static bool place_pod(struct pc_world *w, int job, int node)
{
	const struct pc_job *j = &w->pc->jobs[job];
	struct pc_live *l = &w->live[job];
	struct pc_pod pod = { .index = l->n_pods, .node = node };
	int device[PC_DEVICES], cpu = w->pc->nodes[node].cpu, want = j->milli;

	for (int d = 0; d < PC_DEVICES; d++)
		device[d] = d < w->pc->nodes[node].gpus ? SNAP_MILLI : 0;
	for (int o = 0; o < PC_JOBS; o++)
		for (int p = 0; p < w->live[o].n_pods; p++)
			use(&w->live[o].pods[p], node, w->pc->jobs[o].cpu, device, &cpu);
	if (w->pc->nodes[node].cpu && cpu < j->cpu)
		return false;
	pod.milli = want < SNAP_MILLI ? want : SNAP_MILLI;
	for (int d = 0; d < w->pc->nodes[node].gpus && want > 0; d++)
		if (device[d] >= pod.milli) {
			pod.devices[pod.n_devices++] = d;
			want -= pod.milli;
		}
	if (want > 0)
		return false;
	l->pods[l->n_pods++] = pod;
	return true;
}

/* First fit, within limits and what may be held for good. */
static void begin_running(struct pc_world *w, int job)
{
	const struct pc_job *j = &w->pc->jobs[job];
	struct pc_live *l = &w->live[job];

	for (int f = 0; f < PC_FLAVORS && l->n_pods < j->runs; f++) {
		bool fits = j->flavor < 0 || j->flavor == f;

		for (int q = j->queue; q >= 0; q = w->pc->queues[q].parent)
			if (pc_held(w, q, f, false) + (int64_t)j->runs * j->milli >
				    w->limit[q][f] ||
			    (!j->preemptible &&
			     pc_held(w, q, f, true) + (int64_t)j->min * j->milli > w->quota[q][f]))
				fits = false;
		l->n_pods = 0;
		for (int n = 0; fits && n < PC_NODES; n++)
			while (w->pc->nodes[n].there && w->pc->nodes[n].flavor == f &&
			       l->n_pods < j->runs && place_pod(w, job, n))
				;
	}
	if (l->n_pods < j->runs) {
		l->n_pods = 0;
		return;
	}
	l->state = PC_RUNNING;
	l->start = w->now - j->ran * PC_MINUTE;
}

void pc_begin(struct pc_world *w, const struct pc_case *pc)
{
	memset(w, 0, sizeof(*w));
	w->pc = pc;
	w->now = 10000 * PC_MINUTE;
	w->random = pc->seed ^ 0x5eed;
	for (int q = 0; q < PC_QUEUES; q++)
		for (int f = 0; f < PC_FLAVORS; f++) {
			const int limit = pc->queues[q].limit[f];

			w->quota[q][f] = amount(w, q, f);
			w->limit[q][f] = limit == PC_UNLIMITED ? GPUQ_UNLIMITED
							       : (int64_t)limit * SNAP_MILLI;
		}
	for (int j = 0; j < PC_JOBS; j++)
		if (pc->jobs[j].there && pc->jobs[j].runs && pc->jobs[j].round == 0 &&
		    pc_is_leaf(pc, pc->jobs[j].queue))
			begin_running(w, j);
}

void pc_events(struct pc_world *w)
{
	if (w->round > 0)
		w->now += 7 * PC_MINUTE;
	for (int j = 0; j < PC_JOBS; j++) {
		const struct pc_job *job = &w->pc->jobs[j];
		struct pc_live *l = &w->live[j];

		memset(l->taken_by, 0, sizeof(l->taken_by));
		memset(l->taken_for, 0, sizeof(l->taken_for));
		if (job->there && job->round == w->round && l->state == PC_ABSENT &&
		    pc_is_leaf(w->pc, job->queue))
			l->state = PC_PENDING;
		if (job->end_round <= w->round && l->state != PC_ABSENT) {
			l->state = PC_ENDED;
			l->n_pods = l->n_promise = 0;
		}
	}
}

bool pc_release(struct pc_world *w)
{
	bool any = false;

	for (int j = 0; j < PC_JOBS; j++) {
		struct pc_live *l = &w->live[j];
		int kept = 0, had = l->n_pods;

		for (int p = 0; p < l->n_pods; p++) {
			any |= l->pods[p].gone != 0;
			if (l->pods[p].gone == 0 || l->pods[p].gone > w->cycle)
				l->pods[kept++] = l->pods[p];
		}
		l->n_pods = kept;
		if (had && kept == 0 && l->state == PC_LEAVING) {
			l->state = PC_PENDING;
			l->start = 0;
		}
	}
	return any;
}

/* ---- the present as a snapshot ---- */

static int64_t half_minutes(int n)
{
	return n < 0 ? -1 : n * PC_MINUTE / 2 + (n ? PC_MINUTE / 4 : 0);
}

static void add_queue(const struct pc_world *w, struct snapshot *s, int i, uint32_t *handle)
{
	const struct pc_queue *p = &w->pc->queues[i];
	struct snap_share shares[PC_FLAVORS + 2];
	struct snap_queue q;

	snapshot_queue_default(&q);
	for (int r = 0; r < PC_FLAVORS + 2; r++) {
		snapshot_share_default(&shares[r]);
		shares[r].quota = GPUQ_UNLIMITED;
	}
	for (int f = 0; f < PC_FLAVORS; f++) {
		shares[f].quota = p->quota[f] == PC_AUTO        ? SNAP_AUTO
				  : p->quota[f] == PC_UNLIMITED ? GPUQ_UNLIMITED
								: p->quota[f] * SNAP_MILLI;
		shares[f].limit = w->limit[i][f];
		if (p->lend != PC_UNLIMITED)
			shares[f].lend = p->lend * SNAP_MILLI;
	}
	q.shares = shares;
	q.name = queue_names[i];
	q.parent_name = p->parent >= 0 ? queue_names[p->parent] : NULL;
	q.weight_milli = p->weight * 1000;
	q.rank = p->rank;
	q.age = i;
	q.reclaim = p->reclaim;
	q.preempt = p->preempt_within;
	q.fence = p->fence;
	q.reclaimable = !p->not_reclaimable;
	q.own_preempt = p->own_strict;
	if (p->borrow_priority >= 0)
		q.borrow_preempt_max_priority = p->borrow_priority;
	q.preempt_min_runtime_us = half_minutes(p->preempt_min);
	q.reclaim_min_runtime_us = half_minutes(p->reclaim_min);
	handle[i] = snapshot_add_queue(s, &q);
}

static void add_node(const struct pc_world *w, struct snapshot *s, int i, uint32_t *handle)
{
	const struct pc_node *p = &w->pc->nodes[i];
	struct snap_node n;

	snapshot_node_default(&n);
	n.name = node_names[i];
	n.flavor = (uint32_t)p->flavor;
	n.n_devices = (uint32_t)p->gpus;
	if (p->cpu)
		n.cpu_milli = p->cpu * 1000;
	handle[i] = snapshot_add_node(s, &n);
}

static struct snap_alloc pod(const struct pc_pod *p, uint32_t job, const uint32_t *nodes,
			     uint32_t *devices)
{
	for (int d = 0; d < p->n_devices; d++)
		devices[d] = (uint32_t)p->devices[d];
	return (struct snap_alloc){ .job = job,
				    .node = nodes[p->node],
				    .index = (uint32_t)p->index,
				    .releasing = p->gone != 0,
				    .devices = devices,
				    .n_devices = (uint32_t)p->n_devices,
				    .milli = p->milli };
}

static void add_job(const struct pc_world *w, struct snapshot *s, int i, const uint32_t *queues,
		    const uint32_t *nodes)
{
	const struct pc_job *p = &w->pc->jobs[i];
	const struct pc_live *l = &w->live[i];
	struct snap_group g = { .name = "main",
				.pods_min = (uint32_t)p->min,
				.pods_max = (uint32_t)p->max,
				.gpus_milli = p->milli,
				.cpu_milli = p->cpu * 1000 };
	struct snap_request r = { .groups = &g, .n_groups = 1 };
	uint32_t handle, devices[PC_DEVICES];
	struct snap_job j;

	if (p->flavor >= 0) {
		r.flavors = &flavors[p->flavor];
		r.n_flavors = 1;
	}
	snapshot_job_default(&j);
	j.key.id = (uint32_t)i + 1;
	j.queue = queues[p->queue];
	j.request = snapshot_add_request(s, &r);
	j.user = snapshot_user(s, "ann");
	j.state = l->state == PC_PENDING   ? SNAP_PENDING
		  : l->state == PC_RUNNING ? SNAP_RUNNING
					   : SNAP_LEAVING;
	j.returns = l->state == PC_LEAVING;
	j.priority = p->priority;
	j.submit_us = (10000 + p->round * 7 - p->submit) * PC_MINUTE;
	j.start_us = l->start;
	j.preemptible = p->preemptible;
	j.evicted_us = l->evicted;
	if (l->evicted && w->pc->queues[l->evicted_for].there)
		j.evicted_for = queues[l->evicted_for];
	j.n_evicted_day = (uint32_t)l->n_evicted;
	j.n_moved_day = (uint32_t)l->n_moved;
	j.shrunk_us = l->shrunk;
	handle = snapshot_add_job(s, &j);
	for (int k = 0; k < l->n_pods; k++) {
		const struct snap_alloc a = pod(&l->pods[k], handle, nodes, devices);

		snapshot_add_alloc(s, &a);
	}
	for (int k = 0; k < l->n_promise; k++) {
		const struct snap_alloc a = pod(&l->promise[k], handle, nodes, devices);

		snapshot_add_promise(s, &a);
	}
}

static void add_loss(const struct pc_world *w, struct snapshot *s, const struct pc_loss *l,
		     const uint32_t *queues)
{
	const int from = w->pc->jobs[l->job].queue, by = w->pc->jobs[l->by].queue;

	if (w->now - l->at < 60 * PC_MINUTE)
		snapshot_add_loss(s, &(struct snap_loss){ .queue = queues[from],
							  .by_queue = queues[by],
							  .job = { (uint32_t)l->job + 1, -1 },
							  .by = { (uint32_t)l->by + 1, -1 },
							  .at_us = l->at });
}

struct snapshot *pc_build(struct pc_world *w, uint64_t *shuffle)
{
	uint32_t nodes[PC_NODES], queues[PC_QUEUES];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_config config;
	struct snapshot *s;
	int order[PC_JOBS];

	snapshot_config_default(&config);
	config.now_us = w->now;
	config.reclaim = w->pc->reclaim;
	config.consolidation = w->pc->consolidation;
	config.reclaim_to = w->pc->reclaim_to;
	config.min_runtime_method = w->pc->method;
	config.preempt_min_runtime_us = half_minutes(w->pc->preempt_min);
	config.reclaim_min_runtime_us = half_minutes(w->pc->reclaim_min);
	config.exempt_evictions = PC_EXEMPT;
	config.cooldown_us = PC_COOLDOWN_MINUTES * PC_MINUTE;
	if (!w->pc->belts)
		config.cooldown_us = config.claims_per_hour = config.claim_reversals = 0;
	/* A job that shrank does not take back what it released until that has been taken. */
	if (!w->pc->belts)
		config.grow_delay_us = w->pc->linger * 2;
	s = snapshot_new(&config);
	for (int f = 0; f < PC_FLAVORS; f++)
		snapshot_add_flavor(s, flavors[f], f);
	prop_shuffled(order, PC_NODES, shuffle);
	for (int i = 0; i < PC_NODES; i++)
		if (w->pc->nodes[order[i]].there)
			add_node(w, s, order[i], nodes);
	prop_shuffled(order, PC_QUEUES, shuffle);
	for (int i = 0; i < PC_QUEUES; i++)
		if (w->pc->queues[order[i]].there)
			add_queue(w, s, order[i], queues);
	prop_shuffled(order, PC_JOBS, shuffle);
	for (int i = 0; i < PC_JOBS; i++)
		if (w->live[order[i]].state != PC_ABSENT && w->live[order[i]].state != PC_ENDED)
			add_job(w, s, order[i], queues, nodes);
	for (int i = w->n_losses > PC_LOSSES ? w->n_losses - PC_LOSSES : 0; i < w->n_losses; i++)
		add_loss(w, s, &w->losses[i % PC_LOSSES], queues);
	if (snapshot_seal(s, &err) < 0)
		pc_wrong(w, "0: sealing: %s", err.text);
	return s;
}
