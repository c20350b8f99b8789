#include <inttypes.h>
#include <string.h>

#include "tests/prop/claims.h"
#include "tests/prop/prop.h"

static struct pc_world before; /* the last cycle */

static void tell(const struct pc_world *w, const struct snapshot *s, const struct plan *p,
		 const char *text)
{
	printf("round %d cycle %d:\n%s", w->round, w->cycle, text);
	for (uint32_t i = 0; i < p->n_actions; i++)
		if (p->actions[i].rule)
			printf("(%u for %u by %s)\n", p->actions[i].key.id,
			       s->jobs[p->actions[i].claimant].key.id, p->actions[i].rule);
}

/* Make one decision: twice, from storage in another order, and carry it out. Returns the number of
 * changes. */
static int cycle(struct pc_world *w)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text = GPUQ_BUF_INIT, again = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = pc_build(w, NULL), *t = pc_build(w, &w->random);
	struct plan p = { 0 }, p2 = { 0 };
	int changes = 0;

	before = *w;
	if (!w->wrong[0] &&
	    (sched_cycle(s, &mem, &p, &err) < 0 || sched_cycle(t, &mem, &p2, &err) < 0))
		pc_wrong(w, "0: cycle: %s", err.text);
	if (!w->wrong[0]) {
		plan_print(s, &p, &text);
		plan_print(t, &p2, &again);
		if (w->loud)
			tell(w, s, &p, gpuq_buf_str(&text));
		if (strcmp(gpuq_buf_str(&text), gpuq_buf_str(&again)) != 0)
			pc_wrong(w, "2: another order of storage, another plan:\n%s---\n%s",
				 gpuq_buf_str(&text), gpuq_buf_str(&again));
		pc_check_shares(w, s, &p);
		pc_check_order(w, &p);
		changes = pc_apply(w, s, &p);
		pc_check_places(w);
		if (!w->pc->torn)
			pc_check_reasons(w, s, &p);
	}
	snapshot_free(s);
	snapshot_free(t);
	gpuq_arena_done(&mem);
	gpuq_buf_done(&text);
	gpuq_buf_done(&again);
	return changes;
}

/* A nominated placement whose places are free must have been used. */
static void check_kept(struct pc_world *w)
{
	for (int j = 0; j < PC_JOBS; j++)
		if (w->live[j].owns && w->live[j].state == PC_PENDING)
			pc_wrong(w, "11: job %d was promised places that nobody holds, and waits",
				 j + 1);
}

static void live(struct pc_world *w)
{
	int most = PC_CYCLES * (w->pc->linger + 1) + (w->pc->torn ? PC_CYCLES : 0);

	/* Growth by preemption goes pod by pod. */
	for (int j = 0; j < PC_JOBS; j++)
		if (w->pc->jobs[j].there)
			most += 2 * (w->pc->jobs[j].max - w->pc->jobs[j].min);

	for (w->round = 0; w->round < PC_ROUNDS && !w->wrong[0]; w->round++) {
		bool rests = false;

		pc_events(w);
		for (int i = 0; i < most && !rests && !w->wrong[0]; i++) {
			bool leaving;
			int changes;

			w->cycle++;
			w->now++;
			changes = cycle(w);
			leaving = pc_release(w);
			/* Nominations of places that are leaving anyway are forgotten. */
			for (int j = 0; j < PC_JOBS; j++)
				if (!w->live[j].owns)
					w->live[j].n_promise = 0;
			rests = changes == 0 && !leaving;
		}
		if (!rests)
			pc_wrong(w, "12: no rest after %d cycles", most);
		if (rests && !w->wrong[0]) {
			check_kept(w);
			pc_check_rest(w);
		}
	}
}

const char *pc_run(const struct pc_case *pc)
{
	static struct pc_world w;

	pc_begin(&w, pc);
	live(&w);
	return w.wrong[0] ? w.wrong : NULL;
}

void pc_show(const struct pc_case *pc)
{
	static struct pc_world w;

	pc_begin(&w, pc);
	w.loud = true;
	live(&w);
	printf("seed %" PRIu64 ": %s\n", pc->seed, w.wrong[0] ? w.wrong : "all holds");
	printf("before the last cycle:\n");
	memcpy(before.fair, w.fair, sizeof(w.fair));
	pc_scenario(&before, stdout);
}

/* ---- a moment as a scenario ---- */

static const char *amount(int devices, char *out, size_t room)
{
	if (devices == PC_UNLIMITED)
		return "-1";
	if (devices == PC_AUTO)
		return "auto";
	snprintf(out, room, "%d", devices);
	return out;
}

static void print_queue(const struct pc_world *w, int i, FILE *out)
{
	static const char *const reclaim[] = { "any", "lower_or_equal", "lower", "never" };
	static const char *const within[] = { "lower", "lower_or_newer", "never" };
	const struct pc_queue *q = &w->pc->queues[i];
	char text[16];

	fprintf(out, "  - {name: q%d", i);
	if (q->parent >= 0)
		fprintf(out, ", parent: q%d", q->parent);
	fprintf(out, ", quota: %s", amount(q->quota[0], text, sizeof(text)));
	if (q->limit[0] != PC_UNLIMITED)
		fprintf(out, ", limit: %d", q->limit[0]);
	if (q->lend != PC_UNLIMITED)
		fprintf(out, ", lend_limit: %d", q->lend);
	if (q->weight != 1)
		fprintf(out, ", weight: %d", q->weight);
	if (q->rank)
		fprintf(out, ", priority: %d", 100 + q->rank);
	if (q->reclaim)
		fprintf(out, ", reclaim: %s", reclaim[q->reclaim]);
	if (q->preempt_within)
		fprintf(out, ", preempt_within: %s", within[q->preempt_within]);
	if (q->fence)
		fprintf(out, ", fence: true");
	if (q->not_reclaimable)
		fprintf(out, ", reclaimable: false");
	if (q->own_strict)
		fprintf(out, ", own_preempt: strict");
	if (q->borrow_priority >= 0)
		fprintf(out, ", borrow_preempt_max_priority: %d", q->borrow_priority);
	if (q->preempt_min >= 0)
		fprintf(out, ", preempt_min_runtime: %d", q->preempt_min / 2);
	if (q->reclaim_min >= 0)
		fprintf(out, ", reclaim_min_runtime: %d", q->reclaim_min / 2);
	fprintf(out, "}\n");
}

static void print_pods(const struct pc_world *w, int job, FILE *out)
{
	const struct pc_live *l = &w->live[job];

	fprintf(out, "[");
	for (int p = 0; p < l->n_pods; p++) {
		fprintf(out, "%s{gpus: %g, node: n%d, gpu_index: [", p ? ", " : "",
			w->pc->jobs[job].milli / 1000.0, l->pods[p].node);
		for (int d = 0; d < l->pods[p].n_devices; d++)
			fprintf(out, "%s%d", d ? ", " : "", l->pods[p].devices[d]);
		fprintf(out, l->pods[p].gone ? "], releasing: true}" : "]}");
	}
	fprintf(out, "]");
}

static void print_jobs(const struct pc_world *w, bool running, FILE *out)
{
	for (int i = 0; i < PC_JOBS; i++) {
		const struct pc_job *j = &w->pc->jobs[i];
		const struct pc_live *l = &w->live[i];

		if (running != (l->state == PC_RUNNING || l->state == PC_LEAVING) ||
		    (!running && l->state != PC_PENDING))
			continue;
		fprintf(out, "  - {job: j%d, queue: q%d, submit: %d", i + 1, j->queue,
			500 + j->round * 7 - j->submit);
		if (running)
			fprintf(out, ", start: %" PRId64,
				(l->start - 10000 * PC_MINUTE) / PC_MINUTE + 500);
		if (j->priority)
			fprintf(out, ", priority: %d", j->priority);
		if (!j->preemptible)
			fprintf(out, ", preemptible: false");
		if (j->max > j->min)
			fprintf(out, ", min_tasks: %d", j->min);
		fprintf(out, ", tasks: ");
		if (running)
			print_pods(w, i, out);
		else
			fprintf(out, "[{count: %d, gpus: %g}]", j->max, j->milli / 1000.0);
		fprintf(out, "}\n");
	}
}

void pc_scenario(const struct pc_world *w, FILE *out)
{
	const struct pc_case *pc = w->pc;

	fprintf(out, "- id: found-%" PRIu64 "\n  title: \n  nodes:\n", pc->seed);
	for (int n = 0; n < PC_NODES; n++)
		if (pc->nodes[n].there) {
			fprintf(out, "  - {name: n%d, gpus: %d", n, pc->nodes[n].gpus);
			if (pc->nodes[n].cpu)
				fprintf(out, ", cpu: %d", pc->nodes[n].cpu * 1000);
			fprintf(out, "}%s\n", pc->nodes[n].flavor ? " # of flavor b" : "");
		}
	fprintf(out, "  queues:\n");
	for (int q = 0; q < PC_QUEUES; q++)
		if (pc->queues[q].there)
			print_queue(w, q, out);
	fprintf(out, "  running:\n");
	print_jobs(w, true, out);
	fprintf(out, "  pending:\n");
	print_jobs(w, false, out);
	fprintf(out, "  config: {now: %d", 500 + w->round * 7);
	if (pc->reclaim_to)
		fprintf(out, ", reclaim_to: guarantee");
	if (!pc->consolidation)
		fprintf(out, ", consolidation: false");
	fprintf(out, "}\n  # belts %d linger %d torn %d min runtimes %d %d halves method %d\n",
		pc->belts, pc->linger, pc->torn, pc->preempt_min, pc->reclaim_min, pc->method);
	for (int j = 0; j < PC_JOBS; j++)
		if (w->live[j].n_promise ||
		    (pc->jobs[j].there && (pc->jobs[j].cpu || pc->jobs[j].flavor >= 0)))
			fprintf(out, "  # job %d: cpu %d flavor %d promised %d pods\n", j + 1,
				pc->jobs[j].cpu, pc->jobs[j].flavor, w->live[j].n_promise);
	for (int q = 0; q < PC_QUEUES; q++)
		if (pc->queues[q].there)
			fprintf(out,
				"  # q%d: fair share %" PRId64 " %" PRId64 ", quota of b %d, "
				"limit of b %d\n",
				q, w->fair[q][0], w->fair[q][1], pc->queues[q].quota[1],
				pc->queues[q].limit[1]);
}
