#include <string.h>

#include "tests/prop/claims.h"
#include "tests/prop/prop.h"

static int below(uint64_t *r, int n)
{
	return (int)(prop_random(r) % (uint64_t)n);
}

static bool chance(uint64_t *r, int percent)
{
	return below(r, 100) < percent;
}

#define PICK(r, list) ((list)[below((r), (int)(sizeof(list) / sizeof(*(list))))])

static void make_nodes(uint64_t *r, struct pc_case *pc)
{
	static const int sizes[] = { 8, 8, 8, 4, 4, 2, 10, 1 };
	const bool alike = chance(r, 60), two_flavors = chance(r, 15), counted = chance(r, 15);
	const int n = 1 + below(r, chance(r, 60) ? 4 : PC_NODES), size = PICK(r, sizes);

	for (int i = 0; i < n; i++) {
		struct pc_node *node = &pc->nodes[i];

		node->there = true;
		node->gpus = alike ? size : PICK(r, sizes);
		node->flavor = two_flavors && chance(r, 40);
		node->cpu = counted ? node->gpus * 2 + below(r, 8) : 0;
	}
}

static void make_tree(uint64_t *r, struct pc_case *pc)
{
	const int n = 1 + below(r, PC_QUEUES), levels = 1 + below(r, 3);
	int depth[PC_QUEUES];

	for (int i = 0; i < n; i++) {
		struct pc_queue *q = &pc->queues[i];
		int up = i ? below(r, i + 1) - 1 : -1;

		q->there = true;
		q->parent = up >= 0 && depth[up] + 1 < levels ? up : -1;
		depth[i] = q->parent >= 0 ? depth[q->parent] + 1 : 0;
	}
}

/* Quotas of the leaves sum to less than, about, or more than the devices that exist. */
static void make_quotas(uint64_t *r, struct pc_case *pc)
{
	const int percent = (int[]){ 50, 80, 100, 100, 130, 200 }[below(r, 6)];
	const bool own = chance(r, 30);

	for (int f = 0; f < PC_FLAVORS; f++) {
		int total = 0, leaves = 0;

		for (int i = 0; i < PC_NODES; i++)
			if (pc->nodes[i].there && pc->nodes[i].flavor == f)
				total += pc->nodes[i].gpus;
		for (int q = 0; q < PC_QUEUES; q++)
			leaves += pc->queues[q].there && pc_is_leaf(pc, q);
		total = total * percent / 100;
		for (int q = 0; q < PC_QUEUES; q++) {
			struct pc_queue *queue = &pc->queues[q];
			const int part = leaves ? total * 2 / leaves + 1 : 0;

			queue->limit[f] = PC_UNLIMITED;
			if (!queue->there)
				continue;
			if (pc_is_leaf(pc, q))
				queue->quota[f] = chance(r, 10) ? 0 : below(r, part + 1);
			else
				queue->quota[f] = own ? below(r, total + 1) : PC_AUTO;
			if (chance(r, 12))
				queue->limit[f] = below(r, total + 4);
			if (queue->quota[f] > queue->limit[f])
				queue->quota[f] = queue->limit[f];
		}
	}
}

static void make_policies(uint64_t *r, struct pc_case *pc)
{
	const bool plain = chance(r, 50), ranks = chance(r, 30);

	for (int i = 0; i < PC_QUEUES; i++) {
		struct pc_queue *q = &pc->queues[i];

		q->weight = chance(r, 8) ? 0 : 1 + below(r, 3);
		q->rank = ranks ? below(r, 3) : 0;
		q->lend = PC_UNLIMITED;
		q->borrow_priority = q->preempt_min = q->reclaim_min = -1;
		if (plain)
			continue;
		q->lend = chance(r, 12) ? below(r, 5) : PC_UNLIMITED;
		q->reclaim = chance(r, 30) ? below(r, 4) : 0;
		q->preempt_within = chance(r, 30) ? below(r, 3) : 0;
		q->fence = chance(r, 10);
		q->not_reclaimable = chance(r, 6);
		q->own_strict = chance(r, 15);
		q->borrow_priority = chance(r, 12) ? below(r, 4) : -1;
		q->preempt_min = chance(r, 12) ? below(r, 200) : -1;
		q->reclaim_min = chance(r, 12) ? below(r, 200) : -1;
	}
	pc->reclaim = chance(r, 97);
	pc->consolidation = chance(r, 80);
	pc->belts = chance(r, 50);
	pc->reclaim_to = chance(r, 20);
	pc->method = chance(r, 30);
	pc->preempt_min = !plain && chance(r, 20) ? below(r, 100) : 0;
	pc->reclaim_min = !plain && chance(r, 20) ? below(r, 100) : 0;
	pc->linger = chance(r, 40) ? below(r, 3) : 0;
	pc->torn = chance(r, 10);
}

static void make_job(uint64_t *r, const struct pc_case *pc, int full, int priorities,
		     struct pc_job *j)
{
	static const int whole[] = { 1, 1, 1, 1, 2, 2, 4 }, parts[] = { 100, 200, 300, 500, 700 };

	do
		j->queue = below(r, PC_QUEUES);
	while (!pc->queues[j->queue].there || !pc_is_leaf(pc, j->queue));
	j->there = true;
	j->priority = below(r, priorities);
	j->preemptible = chance(r, 88);
	j->min = chance(r, 70) ? 1 : 1 + below(r, PC_PODS);
	j->milli = chance(r, 12) ? PICK(r, parts) : PICK(r, whole) * SNAP_MILLI;
	if (chance(r, 25)) {
		const struct pc_node *n = &pc->nodes[below(r, PC_NODES)];

		if (n->there)
			j->milli = n->gpus * SNAP_MILLI;
	}
	j->max = chance(r, 15) ? j->min + below(r, PC_PODS + 1 - j->min) : j->min;
	j->cpu = chance(r, 20) ? 1 + below(r, 6) : 0;
	j->flavor = chance(r, 20) ? below(r, PC_FLAVORS) : -1;
	j->submit = below(r, 300);
	j->round = chance(r, 60) ? 0 : below(r, PC_ROUNDS);
	j->end_round = chance(r, 60) ? PC_ROUNDS : j->round + 1 + below(r, PC_ROUNDS);
	if (j->round == 0 && chance(r, full)) {
		j->runs = j->min + below(r, j->max - j->min + 1);
		j->ran = 1 + below(r, 240);
		if (j->submit < j->ran)
			j->submit = j->ran;
	}
}

void pc_generate(uint64_t seed, struct pc_case *out)
{
	uint64_t r = seed * 2 + 1;
	const int full = (int[]){ 0, 40, 70, 80 }[below(&r, 4)], n = 2 + below(&r, PC_JOBS - 1);
	const int priorities = 1 + below(&r, 4);

	memset(out, 0, sizeof(*out));
	out->seed = seed;
	make_nodes(&r, out);
	make_tree(&r, out);
	make_quotas(&r, out);
	make_policies(&r, out);
	for (int i = 0; i < n; i++)
		make_job(&r, out, full, priorities, &out->jobs[i]);
}

/* ---- making a failing case smaller ---- */

static bool drop(struct pc_case *pc, int what)
{
	bool *there;

	if (what < PC_JOBS) {
		there = &pc->jobs[what].there;
	} else if (what < PC_JOBS + PC_NODES) {
		there = &pc->nodes[what - PC_JOBS].there;
	} else {
		const int q = what - PC_JOBS - PC_NODES;

		for (int i = 0; i < PC_JOBS; i++)
			if (pc->jobs[i].there && pc->jobs[i].queue == q)
				return false;
		if (!pc_is_leaf(pc, q))
			return false;
		there = &pc->queues[q].there;
	}
	if (!*there)
		return false;
	*there = false;
	return true;
}

static bool set(int *field, int value)
{
	if (*field == value)
		return false;
	*field = value;
	return true;
}

static bool set_bool(bool *field, bool value)
{
	if (*field == value)
		return false;
	*field = value;
	return true;
}

static bool simpler_case(struct pc_case *pc, int how)
{
	switch (how) {
	case 0:
		return set(&pc->linger, 0);
	case 1:
		return set_bool(&pc->torn, false);
	case 2:
		return set_bool(&pc->consolidation, false);
	case 3:
		return set(&pc->preempt_min, 0);
	case 4:
		return set(&pc->reclaim_min, 0);
	case 5:
		return set(&pc->reclaim_to, 0);
	default: /* belts stay: without them a tolerated failure could take the place of this one */
		return set(&pc->method, 0);
	}
}

static bool simpler_queue(struct pc_queue *q, int how)
{
	switch (how) {
	case 0:
		return set(&q->lend, PC_UNLIMITED);
	case 1:
		return set(&q->reclaim, 0);
	case 2:
		return set(&q->preempt_within, 0);
	case 3:
		return set(&q->rank, 0);
	case 4:
		return set(&q->weight, 1);
	case 5:
		return set_bool(&q->fence, false);
	case 6:
		return set_bool(&q->not_reclaimable, false);
	case 7:
		return set_bool(&q->own_strict, false);
	case 8:
		return set(&q->borrow_priority, -1);
	case 9:
		return set(&q->preempt_min, -1);
	case 10:
		return set(&q->reclaim_min, -1);
	case 11:
		return set(&q->limit[0], PC_UNLIMITED);
	case 12:
		return set(&q->limit[1], PC_UNLIMITED);
	case 13:
		return set(&q->quota[1], 0);
	case 14:
		return set(&q->quota[0], q->parent >= 0 ? q->quota[0] : 0);
	default:
		return set(&q->parent, -1);
	}
}

static bool simpler_job(struct pc_job *j, int how)
{
	switch (how) {
	case 0:
		return set(&j->cpu, 0);
	case 1:
		return j->runs > 1 ? false : set(&j->max, j->min);
	case 2:
		return set(&j->priority, 0);
	case 3:
		return set_bool(&j->preemptible, true);
	case 4:
		return set(&j->end_round, PC_ROUNDS);
	case 5:
		return set(&j->round, 0);
	case 6:
		return set(&j->flavor, -1);
	case 7:
		return j->runs > j->min && set(&j->runs, j->min);
	case 8:
		return j->runs == 0 && j->min > 1 && set(&j->min, j->min - 1);
	default:
		return j->runs == 0 && j->milli > 1000 && set(&j->milli, j->milli - 1000);
	}
}

#define CASE_WAYS 7
#define QUEUE_WAYS 16
#define JOB_WAYS 10

static bool change(struct pc_case *pc, int what)
{
	const int dropped = PC_JOBS + PC_NODES + PC_QUEUES;

	if (what < dropped)
		return drop(pc, what);
	what -= dropped;
	if (what < CASE_WAYS)
		return simpler_case(pc, what);
	what -= CASE_WAYS;
	if (what < PC_QUEUES * QUEUE_WAYS)
		return pc->queues[what / QUEUE_WAYS].there &&
		       simpler_queue(&pc->queues[what / QUEUE_WAYS], what % QUEUE_WAYS);
	what -= PC_QUEUES * QUEUE_WAYS;
	return pc->jobs[what / JOB_WAYS].there &&
	       simpler_job(&pc->jobs[what / JOB_WAYS], what % JOB_WAYS);
}

void pc_shrink(struct pc_case *pc)
{
	const int ways = PC_JOBS + PC_NODES + PC_QUEUES + CASE_WAYS + PC_QUEUES * QUEUE_WAYS +
			 PC_JOBS * JOB_WAYS;
	const char *why = pc_run(pc);
	char property[16] = "";
	bool again = why != NULL;

	if (why)
		snprintf(property, sizeof(property), "%.*s", (int)strcspn(why, ":"), why);
	while (again) {
		again = false;
		for (int what = 0; what < ways; what++) {
			struct pc_case smaller = *pc;

			if (!change(&smaller, what))
				continue;
			why = pc_run(&smaller);
			if (!why || strncmp(why, property, strlen(property)) != 0)
				continue;
			*pc = smaller;
			again = true;
		}
	}
}
