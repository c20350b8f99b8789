#include "tests/prop/prop_world.h"

void check_nodes(struct world *w)
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

/* Return the quota with `auto` resolved, in thousandths; -1 = unlimited. */
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

void check_limits(struct world *w)
{
	for (int q = 0; q < PROP_QUEUES; q++) {
		const struct prop_queue *queue = &w->pc->queues[q];

		for (int f = 0; queue->there && f < 2; f++) {
			if (queue->limit[f] != 99 &&
			    held(w, q, f, false) > queue->limit[f] * SNAP_MILLI)
				wrong(w, "q%d is over its limit of %s", q, prop_flavors[f]);
			if (quota(w, q, f) >= 0 && held(w, q, f, true) > quota(w, q, f))
				wrong(w, "q%d holds more than its quota of %s for good", q,
				      prop_flavors[f]);
		}
	}
}

int running_elements(const struct world *w, int job)
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

/* ---- could this pending job start? Computed independently of the scheduler ---- */

bool allowed_on(const struct world *w, const struct prop_group *g, int node, int flavor)
{
	const struct prop_node *n = &w->pc->nodes[node];

	return n->there && n->state == 0 && (g->zone < 0 || g->zone == n->zone) &&
	       (!n->tainted || g->tolerates) && (g->milli == 0 || (n->gpus && n->flavor == flavor));
}

/* Return how many pods of the group fit on the node, by trying. */
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

bool could_start(const struct world *w, int job)
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
