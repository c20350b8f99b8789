/* Queue order and budgets in random queues over time, without preemption and start reservations: in
 * a leaf no job starts before one that is alike, has more points and could have started (property
 * 28); use and nominations under a hard budget never exceed it, and a queue without soft budget
 * left starts nothing beyond its guarantee that a job in budget could have used (21); the order of
 * storage does not matter (2). Points and spending are computed by hand here.
 *
 * prop_turns [CASES [SEED]] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/sched.h"
#include "tests/prop/prop.h"

#define CASES 3000
#define SEED 20261121
#define JOBS 24
#define QUEUES 4
#define USERS 3
#define ROUNDS 8
#define ROUND_US (INT64_C(600) * GPUQ_US_PER_S)
#define T0 (INT64_C(100000) * ROUND_US)

struct a_job {
	bool there;
	int queue, user, class, nice, gpus, walltime, submit, eligible; /* times in rounds */
	int ends; /* rounds after its start, at most the walltime */
	/* present state */
	bool runs, ended;
	int64_t start_us;
	uint32_t node, devices[8];
};

struct a_queue {
	int quota, budget; /* devices; GPU-rounds, -1 = none */
	bool hard;
	int64_t spent; /* GPU-us */
};

struct a_case {
	int nodes, weights[4];
	bool flat; /* else the last two queues are below the first two */
	struct a_queue queues[QUEUES];
	int used[QUEUES][USERS];
	struct a_job jobs[JOBS];
};

static char wrong[256];

static int below(uint64_t *r, int n)
{
	return (int)(prop_random(r) % (uint64_t)n);
}

static void generate(uint64_t seed, struct a_case *c)
{
	static const int weights[] = { 0, 10, 1000, 1000000 };
	uint64_t r = seed;

	memset(c, 0, sizeof(*c));
	c->nodes = 1 + below(&r, 3);
	c->flat = below(&r, 2);
	for (int i = 0; i < 4; i++)
		c->weights[i] = weights[below(&r, 4)];
	for (int q = 0; q < QUEUES; q++) {
		c->queues[q].quota = below(&r, 5);
		c->queues[q].budget = below(&r, 3) ? below(&r, 40) : -1;
		c->queues[q].hard = below(&r, 2);
		for (int u = 0; u < USERS; u++)
			c->used[q][u] = below(&r, 3) ? below(&r, 50) : 0;
	}
	for (int i = 0; i < JOBS; i++) {
		struct a_job *j = &c->jobs[i];

		j->there = true;
		j->queue = below(&r, QUEUES);
		j->user = below(&r, USERS);
		j->class = below(&r, 3);
		j->nice = below(&r, 3) ? 0 : below(&r, 100);
		j->gpus = 1 + below(&r, 3) % 2;
		j->walltime = 1 + below(&r, 6);
		j->ends = 1 + below(&r, j->walltime);
		j->submit = below(&r, ROUNDS - 2);
		j->eligible = j->submit + below(&r, 2);
	}
}

static int parent_of(const struct a_case *c, int q)
{
	return c->flat || q < QUEUES / 2 ? -1 : q - QUEUES / 2;
}

static bool is_leaf(const struct a_case *c, int q)
{
	return c->flat || q >= QUEUES / 2;
}

static int leaf_of(const struct a_case *c, const struct a_job *j)
{
	return is_leaf(c, j->queue) ? j->queue : j->queue + QUEUES / 2;
}

/* ---- the snapshot of a moment; `turn` is another order of storage ---- */

static void add_queues(const struct a_case *c, struct snapshot *s, uint32_t *handles)
{
	for (int q = 0; q < QUEUES; q++) {
		char name[8], parent[8];
		struct snap_share shares[3];
		struct snap_queue sq;

		snapshot_queue_default(&sq);
		for (int i = 0; i < 3; i++)
			snapshot_share_default(&shares[i]);
		shares[0].quota = c->queues[q].quota * INT64_C(1000);
		snprintf(name, sizeof(name), "q%d", q);
		snprintf(parent, sizeof(parent), "q%d", parent_of(c, q));
		sq.name = name;
		sq.parent_name = parent_of(c, q) < 0 ? NULL : parent;
		sq.age = q;
		sq.shares = shares;
		sq.preempt = SNAP_PREEMPT_NEVER;
		if (c->queues[q].budget >= 0) {
			sq.budget_gpu_ms = c->queues[q].budget * ROUND_US / 1000;
			sq.budget_used_gpu_ms = c->queues[q].spent / 1000;
			sq.budget_hard = c->queues[q].hard;
		}
		handles[q] = snapshot_add_queue(s, &sq);
	}
}

static struct snapshot *freeze(const struct a_case *c, int64_t now_us, bool turn)
{
	static const char *const users[USERS] = { "ann", "bob", "eve" };
	uint32_t queues[QUEUES], requests[3], nodes[4], name_of[USERS];
	struct snap_config config;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s;

	snapshot_config_default(&config);
	config.weights.stretch = 0; /* no job overtakes by waiting */
	config.now_us = now_us;
	config.reclaim = config.consolidation = false;
	config.backfill_depth = 0;
	config.starve_us = GPUQ_UNLIMITED;
	config.weights.age = c->weights[0];
	config.weights.fair_share = c->weights[1];
	config.weights.size = c->weights[2];
	config.weights.qos = c->weights[3];
	config.weights.qos_full = 2;
	config.weights.max_age_us = 4 * ROUND_US;
	s = snapshot_new(&config);
	if (!s)
		abort();
	snapshot_add_flavor(s, "gpu", 0);
	for (int u = 0; u < USERS; u++) {
		const int at = turn ? USERS - 1 - u : u;

		name_of[at] = snapshot_user(s, users[at]);
	}
	add_queues(c, s, queues);
	for (int q = 0; q < QUEUES; q++)
		for (int u = 0; u < USERS && is_leaf(c, q); u++)
			snapshot_add_usage(s, queues[q], name_of[turn ? USERS - 1 - u : u],
					   (uint64_t)c->used[q][turn ? USERS - 1 - u : u]);
	for (int g = 1; g < 3; g++) {
		const struct snap_group group = {
			.name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = g * SNAP_MILLI
		};
		const struct snap_request request = { .groups = &group, .n_groups = 1 };

		requests[g] = snapshot_add_request(s, &request);
	}
	for (int n = 0; n < c->nodes; n++) {
		char name[8];
		struct snap_node node;

		snapshot_node_default(&node);
		snprintf(name, sizeof(name), "n%d", n);
		node.name = name;
		node.flavor = 0;
		node.n_devices = 4;
		nodes[n] = snapshot_add_node(s, &node);
	}
	for (int k = 0; k < JOBS; k++) {
		const int i = turn ? JOBS - 1 - k : k;
		const struct a_job *j = &c->jobs[i];
		struct snap_alloc a = { .devices = j->devices,
					.n_devices = (uint32_t)j->gpus,
					.milli = SNAP_MILLI };
		struct snap_job sj;

		if (!j->there || j->ended || T0 + j->submit * ROUND_US > now_us)
			continue;
		snapshot_job_default(&sj);
		sj.key.id = (uint32_t)i + 1;
		sj.queue = queues[leaf_of(c, j)];
		sj.user = name_of[j->user];
		sj.request = requests[j->gpus];
		sj.priority = j->class;
		sj.nice = j->nice;
		sj.submit_us = T0 + j->submit * ROUND_US;
		sj.eligible_us = T0 + j->eligible * ROUND_US;
		sj.walltime_us = j->walltime * ROUND_US;
		sj.state = j->runs ? SNAP_RUNNING : SNAP_PENDING;
		sj.start_us = j->start_us;
		a.job = snapshot_add_job(s, &sj);
		a.node = nodes[j->runs ? j->node : 0];
		if (j->runs)
			snapshot_add_alloc(s, &a);
	}
	if (snapshot_seal(s, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return s;
}

/* ---- computed by hand ---- */

/* Return the points as gpuqd-scheduling(7), QUEUE ORDER, defines them, each term rounded down by
 * itself. */
static int64_t points(const struct a_case *c, const struct snapshot *s, uint32_t ix,
		      const uint32_t *ranks)
{
	const struct snap_job *sj = &s->jobs[ix];
	const struct a_job *j = &c->jobs[sj->key.id - 1];
	int64_t waited = s->config.now_us - (T0 + j->eligible * ROUND_US);
	int64_t sum;

	waited = waited < 0 ? 0 : waited > 4 * ROUND_US ? 4 * ROUND_US : waited;
	sum = c->weights[0] * waited / (4 * ROUND_US);
	sum += (int64_t)c->weights[1] * ranks[sj->usage] / s->n_usages;
	sum += (int64_t)c->weights[2] * j->gpus / (c->nodes * 4);
	sum += (int64_t)c->weights[3] * j->class / 2;
	return sum - j->nice;
}

static const struct plan_reason *reason_of(const struct snapshot *s, const struct plan *p,
					   uint32_t job)
{
	const struct plan_reason *why;

	return plan_reasons(s, p, job, &why) ? why : NULL;
}

static bool is_started(const struct plan *p, uint32_t job)
{
	for (uint32_t i = 0; i < p->n_actions; i++)
		if (p->actions[i].kind == PLAN_PLACE && p->actions[i].job == job)
			return true;
	return false;
}

static bool waits_for_room(const struct snapshot *s, const struct plan *p, uint32_t job)
{
	const struct plan_reason *why = reason_of(s, p, job);

	return why && (why->code == GPUQ_R_RESOURCES || why->code == GPUQ_R_FRAGMENTED ||
		       why->code == GPUQ_R_FAIR_SHARE || why->code == GPUQ_R_PRIORITY);
}

static bool check_inversion(const struct a_case *c, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t x = 0; x < s->n_jobs; x++) {
		for (uint32_t y = 0; is_started(p, x) && y < s->n_jobs; y++) {
			const int64_t a = points(c, s, x, p->priority->ranks);
			const int64_t b = points(c, s, y, p->priority->ranks);

			if (s->jobs[y].state != SNAP_PENDING || is_started(p, y) ||
			    s->jobs[x].queue != s->jobs[y].queue ||
			    s->jobs[x].request != s->jobs[y].request || !waits_for_room(s, p, y))
				continue;
			if (b > a || (b == a && s->jobs[y].submit_us < s->jobs[x].submit_us)) {
				snprintf(wrong, sizeof(wrong),
					 "28: job %u (%" PRId64
					 " points) started before %u (%" PRId64 ")",
					 s->jobs[x].key.id, a, s->jobs[y].key.id, b);
				return false;
			}
		}
	}
	return true;
}

static bool under(const struct snapshot *s, uint32_t q, uint32_t top)
{
	while (q != SNAP_NONE && q != top)
		q = s->queues[q].parent;
	return q == top;
}

/* True if y, in budget, could have used what x of a queue out of budget got instead. */
static bool comes_before(const struct snapshot *s, const struct plan *p, uint32_t y, uint32_t x)
{
	const uint32_t q = s->jobs[x].queue, sibling = s->jobs[y].queue;

	return s->jobs[y].state == SNAP_PENDING && !is_started(p, y) && sibling != q &&
	       s->queues[sibling].parent == s->queues[q].parent &&
	       !s->queues[sibling].over_budget && waits_for_room(s, p, y) &&
	       s->requests[s->jobs[y].request].gpus_milli <=
		       s->requests[s->jobs[x].request].gpus_milli;
}

/* Check that the last start of a queue out of budget, if beyond its guarantee, came after all
 * starts of jobs in budget beside it. */
static bool check_soft(const struct snapshot *s, const struct plan *p)
{
	for (uint32_t i = p->n_actions; i-- > 0;) {
		const uint32_t x = p->actions[i].job, q = s->jobs[x].queue;
		bool last = p->actions[i].kind == PLAN_PLACE;

		for (uint32_t k = i + 1; k < p->n_actions; k++)
			last = last && s->jobs[p->actions[k].job].queue != q;
		if (!last || !s->queues[q].over_budget ||
		    p->allocated[(size_t)q * s->n_res] <= s->shares[(size_t)q * s->n_res].quota)
			continue;
		for (uint32_t y = 0; y < s->n_jobs; y++) {
			if (!comes_before(s, p, y, x))
				continue;
			snprintf(wrong, sizeof(wrong),
				 "21: job %u of a queue out of budget started, %u in budget waits",
				 s->jobs[x].key.id, s->jobs[y].key.id);
			return false;
		}
	}
	return true;
}

/* Check use and nominations under every hard budget. */
static bool check_hard(const struct a_case *c, const struct snapshot *s, int64_t now_us)
{
	for (int q = 0; q < QUEUES; q++) {
		int64_t promised = c->queues[q].spent;
		char name[8];
		uint32_t top;

		snprintf(name, sizeof(name), "q%d", q);
		top = snapshot_find_queue(s, name);
		if (c->queues[q].budget < 0 || !c->queues[q].hard)
			continue;
		for (int i = 0; i < JOBS; i++) {
			const struct a_job *j = &c->jobs[i];
			char leaf[8];

			snprintf(leaf, sizeof(leaf), "q%d", leaf_of(c, j));
			if (j->runs && under(s, snapshot_find_queue(s, leaf), top))
				promised +=
					j->gpus * (j->start_us + j->walltime * ROUND_US - now_us);
		}
		if (promised > c->queues[q].budget * ROUND_US) {
			snprintf(wrong, sizeof(wrong),
				 "21: %s has spent and promised %" PRId64 " of %" PRId64, name,
				 promised / ROUND_US, (int64_t)c->queues[q].budget);
			return false;
		}
	}
	return true;
}

/* ---- a case ---- */

static void apply(struct a_case *c, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];
		const struct plan_pod *pod = &p->pods[a->pod_first];
		struct a_job *j = &c->jobs[a->key.id - 1];

		if (a->kind != PLAN_PLACE)
			continue;
		j->runs = true;
		j->start_us = s->config.now_us;
		j->node = pod->node;
		for (uint32_t d = 0; d < pod->n_devices; d++)
			j->devices[d] = p->devices[pod->device_first + d];
	}
}

/* Advance one round: charge what runs, and end some of it. */
static void pass(struct a_case *c, int64_t now_us)
{
	for (int i = 0; i < JOBS; i++) {
		struct a_job *j = &c->jobs[i];

		if (!j->runs)
			continue;
		for (int q = leaf_of(c, j); q >= 0; q = parent_of(c, q))
			c->queues[q].spent += j->gpus * ROUND_US;
		c->used[leaf_of(c, j)][j->user] += j->gpus;
		if (now_us >= j->start_us + j->ends * ROUND_US) {
			j->runs = false;
			j->ended = true;
		}
	}
}

static bool decide(struct a_case *c, int64_t now_us)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text[2] = { GPUQ_BUF_INIT, GPUQ_BUF_INIT };
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool ok = true;

	for (int turn = 0; turn < 2; turn++) {
		struct snapshot *s = freeze(c, now_us, turn);
		struct plan p;

		if (sched_cycle(s, &mem, &p, &err) < 0)
			abort();
		plan_print(s, &p, &text[turn]);
		ok = ok && check_inversion(c, s, &p) && check_soft(s, &p);
		if (turn == 1) {
			apply(c, s, &p);
			ok = ok && check_hard(c, s, now_us);
		}
		snapshot_free(s);
	}
	if (ok && strcmp(gpuq_buf_str(&text[0]), gpuq_buf_str(&text[1])) != 0) {
		snprintf(wrong, sizeof(wrong), "2: another order of storage, another plan");
		ok = false;
	}
	gpuq_buf_done(&text[0]);
	gpuq_buf_done(&text[1]);
	gpuq_arena_done(&mem);
	return ok;
}

static bool holds(const struct a_case *from)
{
	struct a_case c = *from;

	for (int round = 0; round < ROUNDS; round++) {
		const int64_t now_us = T0 + round * ROUND_US;

		if (round > 0)
			pass(&c, now_us);
		if (!decide(&c, now_us))
			return false;
	}
	return true;
}

/* Remove jobs that the failure does not need, and print the rest. */
static void report(struct a_case *c, uint64_t seed)
{
	for (int i = 0; i < JOBS; i++) {
		c->jobs[i].there = false;
		if (holds(c))
			c->jobs[i].there = true;
	}
	holds(c);
	printf("seed %" PRIu64 ": %s\nnodes=%d flat=%d weights=%d,%d,%d,%d\n", seed, wrong,
	       c->nodes, c->flat, c->weights[0], c->weights[1], c->weights[2], c->weights[3]);
	for (int q = 0; q < QUEUES; q++)
		printf("  queue %d quota=%d budget=%d hard=%d used=%d,%d,%d\n", q,
		       c->queues[q].quota, c->queues[q].budget, c->queues[q].hard, c->used[q][0],
		       c->used[q][1], c->used[q][2]);
	for (int i = 0; i < JOBS; i++)
		if (c->jobs[i].there)
			printf("  job %d queue=%d user=%d class=%d nice=%d gpus=%d walltime=%d "
			       "ends=%d submit=%d eligible=%d\n",
			       i + 1, leaf_of(c, &c->jobs[i]), c->jobs[i].user, c->jobs[i].class,
			       c->jobs[i].nice, c->jobs[i].gpus, c->jobs[i].walltime,
			       c->jobs[i].ends, c->jobs[i].submit, c->jobs[i].eligible);
}

int main(int argc, char **argv)
{
	const uint64_t cases = argc > 1 ? strtoull(argv[1], NULL, 10) : CASES;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : SEED;

	for (uint64_t i = 0; i < cases; i++) {
		struct a_case c;

		generate(seed + i, &c);
		if (holds(&c))
			continue;
		report(&c, seed + i);
		return 1;
	}
	printf("%" PRIu64 " cases hold\n", cases);
	return 0;
}
