/* prop.h - random clusters for the scheduler, and the properties of every decision
 *
 * A case is data: it can be run again, and made smaller by removing parts. Used by prop_sched
 * only.
 */
#ifndef TESTS_PROP_PROP_H
#define TESTS_PROP_PROP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROP_NODES 8
#define PROP_QUEUES 6
#define PROP_JOBS 24
#define PROP_GROUPS 2
#define PROP_ROUNDS 4

struct prop_node {
	bool there;
	int gpus, cpu, mem, pods; /* 0 cpu, mem or pods = not counted */
	int flavor, zone, state;
	bool tainted;
	int foreign;
};

struct prop_queue {
	bool there;
	int parent; /* -1 = root; always a lower one */
	int quota[2], limit[2]; /* devices by flavor; -1 = auto, 99 = unlimited */
	int lend; /* -1 = all */
	int weight, rank, user_jobs; /* user_jobs 0 = no limit */
	bool stopped;
};

struct prop_group {
	int pods, milli, cpu, mem;
	int zone; /* -1 = anywhere */
	bool tolerates;
};

struct prop_job {
	bool there;
	int queue, user, priority, submit, round, end_round;
	bool preemptible, held, exclusive;
	int together; /* 0 no, 1 one zone required, 2 preferred */
	int size, throttle; /* size 0 = no array */
	int walltime; /* in tenths of a round; 0 = unlimited */
	int flavor; /* -1 = any, 0, 1, 2 = first 1 then 0 */
	int n_groups;
	struct prop_group groups[PROP_GROUPS];
};

struct prop_case {
	uint64_t seed;
	bool timed; /* jobs have walltimes */
	struct prop_node nodes[PROP_NODES];
	struct prop_queue queues[PROP_QUEUES];
	struct prop_job jobs[PROP_JOBS];
};

/* A generator of its own, so that a seed has the same sequence everywhere. */
static inline uint64_t prop_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Shuffle 0..n-1; r NULL = ascending. */
static inline void prop_shuffled(int *order, int n, uint64_t *r)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; r && i > 0; i--) {
		int k = (int)(prop_random(r) % (uint64_t)(i + 1)), t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
}

void prop_generate(uint64_t seed, struct prop_case *out);
void prop_print(const struct prop_case *pc);

/* Run the case's rounds and check each plan. NULL = all properties hold; else the violation, in a
 * static buffer. */
const char *prop_run(const struct prop_case *pc);

/* Remove what the failure does not need. */
void prop_shrink(struct prop_case *pc);

#endif
