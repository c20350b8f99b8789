#include "tests/prop/prop_why.h"
#include "tests/prop/prop_world.h"

#include <stdio.h>
#include <string.h>

static void apply(struct world *w, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];
		const int job = (int)a->key.id - 1;
		const struct prop_job *j = &w->pc->jobs[job];
		const int element = a->key.index < 0 ? 0 : a->key.index;
		struct instance *in = &w->running[w->n_running];
		int want = 0, per_group[PROP_GROUPS] = { 0 };

		if (a->kind == PLAN_RESERVE)
			continue;
		if (a->kind != PLAN_PLACE || (a->key.index >= 0) != (j->size > 0) ||
		    !w->waiting[job][element]) {
			wrong(w, "action %u starts job %d element %d, which is not pending", i,
			      job + 1, element);
			return;
		}
		w->waiting[job][element] = false;
		w->n_running++;
		*in = (struct instance){ .job = job,
					 .element = element,
					 .n_pods = (int)a->n_pods,
					 .start = now(w),
					 .end = j->walltime ? now(w) + j->walltime : INT64_MAX };
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
	char text[120];

	if (!prop_why(s, p, told, text, sizeof(text)))
		wrong(w, "%s", text);
	for (int j = 0; j < PROP_JOBS; j++) {
		bool waits = false;

		for (int e = 0; e < ELEMENTS; e++)
			waits |= w->pc->jobs[j].round <= w->round && w->waiting[j][e];
		if (waits != (told[j] > 0))
			wrong(w, "job %d: waits %d, reasons %d", j + 1, waits, told[j]);
	}
}

/* AC-VDK-7: no device is idle that a pending job could and may use. */
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
			wrong(w, "AC-VDK-7: job %d could start and does not", j + 1);
	}
}

static void check_shares(struct world *w, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t q = 0; q < s->n_queues; q++) {
		for (uint32_t r = 0; r < s->n_res; r++) {
			const size_t at = (size_t)q * s->n_res + r;
			int64_t owed = s->shares[at].quota;

			/* Without a quota of cpu and memory nothing is guaranteed. */
			if (r >= s->n_flavors && owed == GPUQ_UNLIMITED)
				owed = 0;
			owed = owed < p->demand[at] ? owed : p->demand[at];
			if (p->fair_share[at] < owed || p->fair_share[at] > p->demand[at] ||
			    p->demand[at] > s->shares[at].limit)
				wrong(w, "%s: share %lld of demand %lld", s->queues[q].name,
				      (long long)p->fair_share[at], (long long)p->demand[at]);
		}
	}
}

/* ---- start reservations ---- */

static uint32_t n_reserved(const struct plan *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_actions; i++)
		n += p->actions[i].kind == PLAN_RESERVE;
	return n;
}

/* Check a node at a moment when all jobs end in time and all start reservations are kept. */
static void check_moment(struct world *w, const struct snapshot *s, const struct plan *p, int node,
			 int64_t t)
{
	const struct prop_node *n = &w->pc->nodes[node];
	int cpu = 0, mem = 0, pods = 0, devices = n->foreign, parts = 0;
	int used[10] = { 0 };

	for (int i = 0; i < w->n_running; i++) {
		const struct instance *in = &w->running[i];

		for (int k = 0; in->end > t && k < in->n_pods; k++) {
			const struct prop_group *g =
				&w->pc->jobs[in->job].groups[in->pods[k].group];

			if (in->pods[k].node != node)
				continue;
			cpu += g->cpu;
			mem += g->mem;
			pods++;
			for (int d = 0; d < in->pods[k].n_devices; d++)
				used[in->pods[k].devices[d]] += in->pods[k].milli;
		}
	}
	for (int d = 0; d < 10; d++) {
		devices += used[d] > 0;
		parts -= used[d] > 0 ? SNAP_MILLI - used[d] : 0;
	}
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];
		const struct prop_job *j = &w->pc->jobs[a->key.id - 1];

		if (a->kind != PLAN_RESERVE || a->start_us > t ||
		    (j->walltime && a->start_us + j->walltime <= t))
			continue;
		for (uint32_t k = 0; k < a->n_pods; k++) {
			const struct plan_pod *pod = &p->pods[a->pod_first + k];
			const struct prop_group *g = &j->groups[pod->group];

			if (s->nodes[pod->node].name[1] - '0' != node)
				continue;
			cpu += g->cpu;
			mem += g->mem;
			pods++;
			devices += g->milli / SNAP_MILLI;
			parts += g->milli % SNAP_MILLI;
		}
	}
	/* Parts that exceed what devices in use have left need further devices. */
	devices += parts > 0 ? (parts + SNAP_MILLI - 1) / SNAP_MILLI : 0;
	if ((n->cpu && cpu > n->cpu) || (n->mem && mem > n->mem) || (n->pods && pods > n->pods) ||
	    devices > n->gpus)
		wrong(w,
		      "round %d: n%d is overcommitted at %lld by what is planned: cpu %d mem %d "
		      "pods %d devices %d",
		      w->round, node, (long long)t, cpu, mem, pods, devices);
}

/* Check that started jobs leave room for start reservations, and these for each other, wherever one
 * begins. */
static void check_planned(struct world *w, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];

		if (a->kind != PLAN_RESERVE)
			continue;
		if (a->start_us <= now(w))
			wrong(w, "job %u is planned for now", a->key.id);
		for (uint32_t k = 0; k < a->n_pods; k++) {
			const int node = s->nodes[p->pods[a->pod_first + k].node].name[1] - '0';

			/* A job that ran past its time may still be there a little later. */
			check_moment(w, s, p, node, a->start_us);
		}
	}
}

/* Count starts of jobs with one group. Several groups are packed greedily, and what was in their
 * way may be elsewhere since. */
static uint32_t plain_starts(const struct world *w, const struct plan *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_actions; i++)
		n += p->actions[i].kind == PLAN_PLACE &&
		     w->pc->jobs[p->actions[i].key.id - 1].n_groups == 1;
	return n;
}

/* Check and apply one cycle. Returns the number of plain starts. */
static uint32_t cycle(struct world *w, uint64_t *shuffle)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text = GPUQ_BUF_INIT, again = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = world_build(w, NULL), *t = world_build(w, shuffle);
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
		if (w->round == 0 && w->n_running == 0)
			check_lifted(w, s, &p, (int)(w->pc->seed % PROP_JOBS));
		apply(w, s, &p);
		check_nodes(w);
		check_limits(w);
		check_reasons(w, s, &p);
		check_shares(w, s, &p);
		check_planned(w, s, &p);
		/* With start reservations a job may have to stay back. */
		w->planned = n_reserved(&p) > 0;
		if (!w->planned)
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
	bool planned;

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
			if (pc->jobs[w.running[i].job].end_round <= w.round ||
			    w.running[i].end <= now(&w))
				w.running[i] = w.running[--w.n_running];
		cycle(&w, &shuffle);
		planned = w.planned;
		if (!w.wrong[0] && cycle(&w, &shuffle) > 0 && !planned)
			wrong(&w, "round %d: a second cycle starts more", w.round);
	}
	return w.wrong[0] ? w.wrong : NULL;
}
