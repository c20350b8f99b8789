#include "tests/prop/prop.h"

#include <stdio.h>
#include <string.h>

static int below(uint64_t *r, int n)
{
	return (int)(prop_random(r) % (uint64_t)n);
}

static bool chance(uint64_t *r, int percent)
{
	return below(r, 100) < percent;
}

static void make_node(uint64_t *r, struct prop_node *n)
{
	static const int gpus[] = { 8, 8, 4, 4, 10, 2, 0, 3 };

	n->there = true;
	n->gpus = gpus[below(r, 8)];
	n->cpu = chance(r, 50) ? 4 + below(r, 28) : 0;
	n->mem = chance(r, 30) ? 4 + below(r, 28) : 0;
	n->pods = chance(r, 15) ? 1 + below(r, 6) : 0;
	n->flavor = chance(r, 25);
	n->zone = below(r, 2);
	n->state = chance(r, 10) ? 1 + below(r, 3) : 0;
	n->tainted = chance(r, 10);
	n->foreign = n->gpus && chance(r, 10) ? 1 + below(r, n->gpus) : 0;
}

static void make_queue(uint64_t *r, int ix, struct prop_queue *q)
{
	q->there = true;
	q->parent = ix > 1 && chance(r, 40) ? below(r, ix) : -1;
	for (int f = 0; f < 2; f++) {
		q->quota[f] = chance(r, 60) ? below(r, 14) : chance(r, 20) ? 99 : -1;
		q->limit[f] = chance(r, 30) ? below(r, 20) : 99;
	}
	q->lend = chance(r, 15) ? below(r, 4) : -1;
	q->weight = chance(r, 10) ? 0 : 1 + below(r, 4);
	q->rank = below(r, 2);
	q->user_jobs = chance(r, 15) ? 1 + below(r, 3) : 0;
	q->stopped = chance(r, 5);
}

static void make_group(uint64_t *r, struct prop_group *g)
{
	static const int milli[] = { 1000, 1000, 1000, 2000, 4000, 8000, 3000, 0, 500, 300, 700 };

	g->pods = chance(r, 60) ? 1 : 1 + below(r, 6);
	g->milli = milli[below(r, 11)];
	g->cpu = chance(r, 50) ? 1 + below(r, 8) : 0;
	g->mem = chance(r, 25) ? 1 + below(r, 8) : 0;
	g->zone = chance(r, 15) ? below(r, 2) : -1;
	g->tolerates = chance(r, 30);
}

static void make_job(uint64_t *r, struct prop_job *j)
{
	j->there = true;
	j->queue = below(r, PROP_QUEUES);
	j->user = below(r, 3);
	j->priority = below(r, 3);
	j->submit = below(r, 5);
	j->round = below(r, PROP_ROUNDS);
	j->end_round = j->round + 1 + below(r, PROP_ROUNDS);
	j->preemptible = chance(r, 75);
	j->held = chance(r, 5);
	j->exclusive = chance(r, 4);
	j->together = chance(r, 20) ? 1 + below(r, 2) : 0;
	j->size = chance(r, 15) ? 2 + below(r, 6) : 0;
	j->throttle = j->size && chance(r, 50) ? 1 + below(r, 3) : 0;
	j->walltime = chance(r, 80) ? 1 + below(r, 40) : 0;
	j->flavor = below(r, 4) - 1;
	j->n_groups = chance(r, 15) ? 2 : 1;
	for (int g = 0; g < j->n_groups; g++)
		make_group(r, &j->groups[g]);
}

void prop_generate(uint64_t seed, struct prop_case *out)
{
	uint64_t r = seed;
	int n_nodes, n_queues, n_jobs;

	memset(out, 0, sizeof(*out));
	out->seed = seed;
	out->timed = chance(&r, 40);
	n_nodes = 1 + below(&r, PROP_NODES);
	n_queues = 1 + below(&r, PROP_QUEUES);
	n_jobs = 1 + below(&r, PROP_JOBS);
	for (int i = 0; i < n_nodes; i++)
		make_node(&r, &out->nodes[i]);
	for (int i = 0; i < n_queues; i++)
		make_queue(&r, i, &out->queues[i]);
	for (int i = 0; i < n_jobs; i++) {
		make_job(&r, &out->jobs[i]);
		if (!out->timed)
			out->jobs[i].walltime = 0;
		out->jobs[i].queue %= n_queues;
	}
}

void prop_print(const struct prop_case *pc)
{
	for (int i = 0; i < PROP_NODES; i++) {
		const struct prop_node *n = &pc->nodes[i];

		if (n->there)
			printf("  node n%d gpus=%d cpu=%d mem=%d pods=%d flavor=%d zone=%d "
			       "state=%d "
			       "tainted=%d foreign=%d\n",
			       i, n->gpus, n->cpu, n->mem, n->pods, n->flavor, n->zone, n->state,
			       n->tainted, n->foreign);
	}
	for (int i = 0; i < PROP_QUEUES; i++) {
		const struct prop_queue *q = &pc->queues[i];

		if (q->there)
			printf("  queue q%d parent=%d quota=%d,%d limit=%d,%d lend=%d weight=%d "
			       "rank=%d user_jobs=%d stopped=%d\n",
			       i, q->parent, q->quota[0], q->quota[1], q->limit[0], q->limit[1],
			       q->lend, q->weight, q->rank, q->user_jobs, q->stopped);
	}
	for (int i = 0; i < PROP_JOBS; i++) {
		const struct prop_job *j = &pc->jobs[i];

		if (!j->there)
			continue;
		printf("  job %d queue=q%d user=%d priority=%d submit=%d rounds=%d..%d "
		       "preemptible=%d "
		       "held=%d exclusive=%d together=%d size=%d%%%d walltime=%d flavor=%d",
		       i + 1, j->queue, j->user, j->priority, j->submit, j->round, j->end_round,
		       j->preemptible, j->held, j->exclusive, j->together, j->size, j->throttle,
		       j->walltime, j->flavor);
		for (int g = 0; g < j->n_groups; g++)
			printf(" [pods=%d milli=%d cpu=%d mem=%d zone=%d tolerates=%d]",
			       j->groups[g].pods, j->groups[g].milli, j->groups[g].cpu,
			       j->groups[g].mem, j->groups[g].zone, j->groups[g].tolerates);
		printf("\n");
	}
}

/* Remove one thing: jobs, then nodes, then queues without jobs and children. */
static bool drop(struct prop_case *pc, int what)
{
	bool *there;

	if (what < PROP_JOBS) {
		there = &pc->jobs[what].there;
	} else if (what < PROP_JOBS + PROP_NODES) {
		there = &pc->nodes[what - PROP_JOBS].there;
	} else {
		int q = what - PROP_JOBS - PROP_NODES;

		for (int i = 0; i < PROP_JOBS; i++)
			if (pc->jobs[i].there && pc->jobs[i].queue == q)
				return false;
		for (int i = 0; i < PROP_QUEUES; i++)
			if (pc->queues[i].there && pc->queues[i].parent == q)
				return false;
		there = &pc->queues[q].there;
	}
	if (!*there)
		return false;
	*there = false;
	return true;
}

void prop_shrink(struct prop_case *pc)
{
	bool again = true;

	while (again) {
		again = false;
		for (int what = 0; what < PROP_JOBS + PROP_NODES + PROP_QUEUES; what++) {
			struct prop_case smaller = *pc;

			if (drop(&smaller, what) && prop_run(&smaller)) {
				*pc = smaller;
				again = true;
			}
		}
	}
}
