/* Shares, usage and parts of devices, with random numbers:
 *
 * 18  in a random tree of queues a share lies between guarantee and demand, siblings divide
 *     all that there is while one of them demands more, and present allocations do not
 *     matter
 * 19  more weight, quota, rank or demand costs a queue nothing, more devices cost none
 * 20  usage is the same over any subdivision of the time
 * 25  parts that add up to a device fit on it, in whatever order they come
 *
 * prop_amounts [CASES [SEED]]; a failing case is made smaller and printed with its seed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/sched.h"
#include "gpuqd/state/usage.h"
#include "tests/prop/prop.h"

#define CASES 3000
#define SEED 20261122
#define QUEUES 6
#define NO_LIMIT 99
#define AUTO -1
#define DAY (INT64_C(86400) * GPUQ_US_PER_S)

static char wrong[600];

#define WRONG(...) (snprintf(wrong, sizeof(wrong), __VA_ARGS__), false)

static int below(uint64_t *r, int n)
{
	return (int)(prop_random(r) % (uint64_t)n);
}

/* ---- shares in a tree of queues ---- */

struct a_queue {
	int parent; /* -1 = root; always a lower one */
	int quota, limit; /* devices; AUTO, NO_LIMIT */
	int weight, rank; /* weight in quarters */
	int ones; /* jobs of one device, of leaves only */
	bool half; /* and one of half a device */
};

struct a_tree {
	int devices;
	struct a_queue queues[QUEUES];
};

struct division {
	int64_t fair[QUEUES], demand[QUEUES], quota[QUEUES], limit[QUEUES];
};

static bool is_leaf(const struct a_tree *t, int q)
{
	for (int k = q + 1; k < QUEUES; k++)
		if (t->queues[k].parent == q)
			return false;
	return true;
}

static void generate(uint64_t seed, struct a_tree *t)
{
	uint64_t r = seed;

	t->devices = 1 + below(&r, 24);
	for (int q = 0; q < QUEUES; q++)
		t->queues[q] = (struct a_queue){
			.parent = below(&r, q + 1) - 1,
			.quota = below(&r, 3) ? below(&r, 8) : AUTO,
			.limit = below(&r, 3) ? NO_LIMIT : below(&r, 10),
			.weight = below(&r, 17),
			.rank = below(&r, 2),
			.ones = below(&r, 3) ? below(&r, 12) : 0,
			.half = below(&r, 3) == 0,
		};
}

static void add_queue(struct snapshot *s, const struct a_queue *in, int q, uint32_t *handle)
{
	char name[8], parent[8];
	struct snap_share shares[3];
	struct snap_queue out;

	snapshot_queue_default(&out);
	for (int i = 0; i < 3; i++)
		snapshot_share_default(&shares[i]);
	if (in->quota != AUTO)
		shares[0].quota = in->quota * INT64_C(1000);
	if (in->limit != NO_LIMIT)
		shares[0].limit = in->limit * INT64_C(1000);
	snprintf(name, sizeof(name), "q%d", q);
	snprintf(parent, sizeof(parent), "q%d", in->parent);
	out.name = name;
	out.parent_name = in->parent < 0 ? NULL : parent;
	out.age = q;
	out.shares = shares;
	out.weight_milli = in->weight * 250;
	out.rank = in->rank;
	*handle = snapshot_add_queue(s, &out);
}

/* hold: about every second job runs, as far as there are devices. */
static void add_jobs(struct snapshot *s, const struct a_tree *t, const uint32_t *queues,
		     uint32_t node, uint64_t *hold)
{
	uint32_t requests[2], id = 0, device = 0;

	for (int half = 0; half < 2; half++) {
		const struct snap_group g = { .name = "main",
					      .pods_min = 1,
					      .pods_max = 1,
					      .gpus_milli = half ? SNAP_MILLI / 2 : SNAP_MILLI };
		const struct snap_request request = { .groups = &g, .n_groups = 1 };

		requests[half] = snapshot_add_request(s, &request);
	}
	for (int q = 0; q < QUEUES; q++)
		for (int k = 0; is_leaf(t, q) && k < t->queues[q].ones + t->queues[q].half; k++) {
			const bool half = k == t->queues[q].ones;
			struct snap_alloc a = { .node = node,
						.devices = &device,
						.n_devices = 1,
						.milli = half ? SNAP_MILLI / 2 : SNAP_MILLI };
			struct snap_job j;

			snapshot_job_default(&j);
			j.key.id = ++id;
			j.queue = queues[q];
			j.user = snapshot_user(s, "ann");
			j.request = requests[half];
			if (hold && device < (uint32_t)t->devices && below(hold, 2))
				j.state = SNAP_RUNNING;
			a.job = snapshot_add_job(s, &j);
			if (j.state == SNAP_RUNNING) {
				snapshot_add_alloc(s, &a);
				device++;
			}
		}
}

static bool divide(const struct a_tree *t, uint64_t *hold, struct division *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_config config;
	struct snap_node node;
	struct snapshot *s;
	struct plan p;
	uint32_t queues[QUEUES];
	bool ok;

	snapshot_config_default(&config);
	config.reclaim = config.consolidation = false;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	for (int q = 0; q < QUEUES; q++)
		add_queue(s, &t->queues[q], q, &queues[q]);
	snapshot_node_default(&node);
	node.name = "n";
	node.n_devices = (uint32_t)t->devices;
	node.flavor = 0;
	add_jobs(s, t, queues, snapshot_add_node(s, &node), hold);
	ok = snapshot_seal(s, &err) == 0 && sched_cycle(s, &mem, &p, &err) == 0;
	for (uint32_t i = 0; ok && i < s->n_queues; i++) {
		const int q = s->queues[i].name[1] - '0';
		const size_t at = (size_t)i * s->n_res;

		out->fair[q] = p.fair_share[at];
		out->demand[q] = p.demand[at];
		out->quota[q] = s->shares[at].quota;
		out->limit[q] = s->shares[at].limit;
	}
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return ok ? true : WRONG("no plan: %s", err.text);
}

static int64_t smaller(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

/* Check the children of a queue, -1 = the root, which has `total`. */
static bool siblings_hold(const struct a_tree *t, const struct division *d, int parent,
			  int64_t total)
{
	int64_t sum = 0, owed = 0;
	bool wants = false, any = false;

	for (int q = 0; q < QUEUES; q++) {
		const int64_t least = smaller(d->quota[q], d->demand[q]);

		if (t->queues[q].parent != parent)
			continue;
		if (d->fair[q] < least || d->fair[q] > d->demand[q] || d->demand[q] > d->limit[q])
			return WRONG("18: q%d is owed %" PRId64 " and gets %" PRId64
				     " of a demand of %" PRId64,
				     q, least, d->fair[q], d->demand[q]);
		sum += d->fair[q];
		owed += least;
		wants |= d->fair[q] < d->demand[q] && t->queues[q].weight > 0;
		any = true;
	}
	total = total > owed ? total : owed;
	if (any && (sum > total || (wants && sum != total)))
		return WRONG("18: below %d %" PRId64 " are divided, and there are %" PRId64, parent,
			     sum, total);
	return true;
}

static bool shares_hold(const struct a_tree *t, uint64_t seed)
{
	struct division d, other;
	struct a_tree more = *t;
	uint64_t r = seed;
	int q, what;

	if (!divide(t, NULL, &d) || !divide(t, &r, &other))
		return false;
	if (memcmp(&d, &other, sizeof(d)) != 0)
		return WRONG("18: who holds what changes the shares");
	if (!siblings_hold(t, &d, -1, t->devices * INT64_C(1000)))
		return false;
	for (q = 0; q < QUEUES; q++)
		if (!siblings_hold(t, &d, q, d.fair[q]))
			return false;
	q = below(&r, QUEUES);
	what = below(&r, 5);
	more.queues[q].weight += what == 0;
	more.queues[q].quota += what == 1 && t->queues[q].quota != AUTO;
	more.queues[q].rank += what == 2;
	more.queues[q].ones += what == 3;
	more.devices += what == 4;
	if (!divide(&more, NULL, &other))
		return false;
	for (int i = 0; i < QUEUES; i++)
		if ((i == q || what == 4) && other.fair[i] < d.fair[i])
			return WRONG("19: one more %s (of q%d) costs q%d something: %" PRId64
				     " -> %" PRId64,
				     (const char *const[]){ "weight", "quota", "rank", "job",
							    "device" }[what],
				     q, i, d.fair[i], other.fair[i]);
	return true;
}

/* Make each number as small as the failure allows. */
static void shrink_one(struct a_tree *t, int *number, int least, uint64_t seed)
{
	while (*number > least) {
		--*number;
		if (shares_hold(t, seed)) {
			++*number;
			return;
		}
	}
}

static void report(struct a_tree *t, uint64_t seed)
{
	for (int q = 0; q < QUEUES; q++) {
		shrink_one(t, &t->queues[q].ones, 0, seed);
		shrink_one(t, &t->queues[q].quota, AUTO, seed);
		shrink_one(t, &t->queues[q].weight, 0, seed);
		shrink_one(t, &t->queues[q].rank, 0, seed);
	}
	shrink_one(t, &t->devices, 1, seed);
	shares_hold(t, seed);
	printf("seed %" PRIu64 ": %s\ndevices=%d\n", seed, wrong, t->devices);
	for (int q = 0; q < QUEUES; q++)
		printf("  q%d parent=%d quota=%d limit=%d weight=%d/4 rank=%d jobs=%d%s\n", q,
		       t->queues[q].parent, t->queues[q].quota, t->queues[q].limit,
		       t->queues[q].weight, t->queues[q].rank, t->queues[q].ones,
		       t->queues[q].half ? " and a half" : "");
}

/* ---- usage ---- */

/* Up to rounding: a few units per step, 2^-57 of the limit of the rate, 2^-55 of the amount. */
static bool usage_holds(uint64_t seed)
{
	uint64_t r = seed;
	const int64_t h = below(&r, 7) ? 1 + (int64_t)(prop_random(&r) % (uint64_t)(60 * DAY)) : 0;
	const int64_t dt =
		(int64_t)(prop_random(&r) % (uint64_t)(below(&r, 2) ? DAY / 24 : 30 * DAY));
	const int64_t milli = below(&r, 10000001);
	const struct usage_account at_once = { prop_random(&r) >> below(&r, 40), 1000, milli };
	const unsigned n = 1 + (unsigned)below(&r, 5);
	const uint64_t units =
		2 * n + (h ? (uint64_t)(usage_of(milli, 400 * DAY * 64, h) >> 57) : 0);
	struct usage_account steps = at_once;
	usage_q32 x, y;

	for (unsigned k = 1; k <= n; k++) {
		const int64_t left = at_once.at_us + dt - steps.at_us;
		const int64_t at =
			k == n ? steps.at_us + left
			       : steps.at_us + (int64_t)(prop_random(&r) % (uint64_t)(left + 1));

		steps.sum = usage_at(&steps, at, h);
		steps.at_us = at;
	}
	x = usage_at(&at_once, at_once.at_us + dt, h);
	y = steps.sum;
	if ((x > y ? x - y : y - x) > (x >> 55) + units)
		return WRONG("20: %u steps come to %" PRIu64 ", one to %" PRIu64 " units", n,
			     (uint64_t)y, (uint64_t)x);
	return true;
}

/* ---- parts of a device ---- */

static bool parts_hold(uint64_t seed)
{
	static const int tenths[] = { 1, 2, 3, 5, 7 };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_config config;
	struct snap_share all[3];
	struct snap_queue queue;
	struct snap_node node;
	struct snapshot *s;
	struct plan p;
	uint64_t r = seed;
	uint32_t leaf;
	int rest = 10;
	bool ok;

	snapshot_config_default(&config);
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	snapshot_queue_default(&queue);
	for (int i = 0; i < 3; i++)
		snapshot_share_default(&all[i]);
	all[0].quota = GPUQ_UNLIMITED;
	queue.name = "q";
	queue.shares = all;
	leaf = snapshot_add_queue(s, &queue);
	snapshot_node_default(&node);
	node.name = "n";
	node.n_devices = 1;
	node.flavor = 0;
	snapshot_add_node(s, &node);
	for (uint32_t id = 1; rest > 0;) {
		const int tenth = tenths[below(&r, 5)];
		const struct snap_group g = { .name = "main",
					      .pods_min = 1,
					      .pods_max = 1,
					      .gpus_milli = tenth * SNAP_MILLI / 10 };
		const struct snap_request request = { .groups = &g, .n_groups = 1 };
		struct snap_job j;

		if (tenth > rest)
			continue;
		rest -= tenth;
		snapshot_job_default(&j);
		j.key.id = id++;
		j.queue = leaf;
		j.user = snapshot_user(s, "ann");
		j.request = snapshot_add_request(s, &request);
		snapshot_add_job(s, &j);
	}
	ok = snapshot_seal(s, &err) == 0 && sched_cycle(s, &mem, &p, &err) == 0 &&
	     p.n_actions == s->n_jobs;
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return ok ? true : WRONG("25: parts that add up to a device have no room on it");
}

int main(int argc, char **argv)
{
	const uint64_t cases = argc > 1 ? strtoull(argv[1], NULL, 10) : CASES;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : SEED;

	for (uint64_t i = 0; i < cases; i++) {
		struct a_tree t;

		generate(seed + i, &t);
		if (!shares_hold(&t, seed + i)) {
			report(&t, seed + i);
			return 1;
		}
		if (!usage_holds(seed + i) || !parts_hold(seed + i)) {
			printf("seed %" PRIu64 ": %s\n", seed + i, wrong);
			return 1;
		}
	}
	printf("%" PRIu64 " cases hold\n", cases);
	return 0;
}
