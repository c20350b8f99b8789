/* One gang on a random tree of blocks, racks and nodes, compared with a count by hand: it is placed
 * exactly when it can be, in the tightest domain of the level it requires (or the narrowest
 * preferred one that holds it), on as few domains as possible on each level, and each slice in one
 * domain of its own.
 *
 * prop_topology [CASES [SEED]] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/sched.h"
#include "tests/prop/prop.h"

#define CASES 20000
#define SEED 20261121
#define NODES_MAX 27
#define PODS_MAX 24

enum { ALL, BLOCK, RACK, HOST, N_LEVELS };

static const char *const level_names[N_LEVELS] = { "", "block", "rack", "host" };

struct tree_case {
	int n_nodes, gpus[NODES_MAX], at[NODES_MAX][N_LEVELS]; /* its domain on each level */
	int pods, pod_gpus;
	int required, preferred; /* level; ALL = none */
	int size[N_LEVELS]; /* slices by level; 0 = none */
};

static int below(uint64_t *r, int n)
{
	return (int)(prop_random(r) % (uint64_t)n);
}

static void generate(uint64_t seed, struct tree_case *out)
{
	uint64_t r = seed;
	const int widest = below(&r, 2) ? 8 : 3;
	int rack = 0;

	memset(out, 0, sizeof(*out));
	for (int b = 0, n_blocks = 1 + below(&r, 3); b < n_blocks; b++) {
		for (int k = 0, n_racks = 1 + below(&r, 3); k < n_racks; k++, rack++) {
			for (int i = 0, n = 1 + below(&r, 3); i < n; i++) {
				const int x = out->n_nodes++;

				out->gpus[x] = below(&r, widest);
				out->at[x][BLOCK] = b;
				out->at[x][RACK] = rack;
				out->at[x][HOST] = x;
			}
		}
	}
	out->pod_gpus = 1 + (below(&r, 4) == 0);
	out->pods = 1 + below(&r, 16);
	out->required = below(&r, 2) ? below(&r, N_LEVELS) : ALL;
	out->preferred = below(&r, 2) ? below(&r, N_LEVELS) : ALL;
	if (out->preferred <= out->required)
		out->preferred = ALL;
	for (int l = HOST, size = 1 + below(&r, 3); l >= BLOCK; l--) {
		if (below(&r, 3))
			continue;
		out->size[l] = size;
		size *= 1 + below(&r, 2);
		/* The gang is made of whole slices. */
		out->pods = (out->pods + out->size[l] - 1) / out->size[l] * out->size[l];
	}
}

static void print(const struct tree_case *c)
{
	for (int i = 0; i < c->n_nodes; i++)
		printf("  n%02d block %d rack %d: %d\n", i, c->at[i][BLOCK], c->at[i][RACK],
		       c->gpus[i]);
	printf("  %d pods of %d, required '%s', preferred '%s', slices block %d rack %d host %d\n",
	       c->pods, c->pod_gpus, level_names[c->required], level_names[c->preferred],
	       c->size[BLOCK], c->size[RACK], c->size[HOST]);
}

/* ---- feasible placements, counted by hand ---- */

static int domain_at(const struct tree_case *c, int node, int level)
{
	return level == ALL ? 0 : c->at[node][level];
}

/* Return how many pods a domain holds; slices on levels wider than `from` do not matter. */
static int holds(const struct tree_case *c, int level, int domain, int from)
{
	int sum = 0;

	if (level == HOST) {
		sum = c->gpus[domain] / c->pod_gpus;
	} else {
		for (int i = 0, last = -1; i < c->n_nodes; i++) {
			const int child = c->at[i][level + 1];

			if (domain_at(c, i, level) != domain || child == last)
				continue;
			sum += holds(c, level + 1, child, from);
			last = child;
		}
	}
	return level >= from && c->size[level] ? sum - sum % c->size[level] : sum;
}

static int by_number_falling(const void *x, const void *y)
{
	return *(const int *)y - *(const int *)x;
}

/* Return the fewest of those numbers that add up to n. */
static int fewest(int *numbers, int count, int n)
{
	int k = 0;

	qsort(numbers, (size_t)count, sizeof(*numbers), by_number_falling);
	while (n > 0 && k < count)
		n -= numbers[k++];
	return k;
}

/* ---- the decision ---- */

struct outcome {
	bool placed;
	int node_of[PODS_MAX]; /* by pod */
};

static const char *fault;

static bool wrong(const char *text)
{
	if (!fault)
		fault = text;
	return false;
}

static int pods_in(const struct tree_case *c, const struct outcome *o, int level, int domain)
{
	int n = 0;

	for (int p = 0; p < c->pods; p++)
		n += domain_at(c, o->node_of[p], level) == domain;
	return n;
}

/* Check each level from this one down for as few domains as possible. Above the widest slices they
 * may be in any domain in use, from there on each keeps its pods. */
static void check_few(const struct tree_case *c, const struct outcome *o, int level, int above,
		      int parent, int from, bool apart)
{
	int numbers[NODES_MAX], n = 0, used = 0, want = 0;

	for (int i = 0, last = -1; i < c->n_nodes; i++) {
		const int d = c->at[i][level];

		if (d == last || domain_at(c, i, above) != parent)
			continue;
		last = d;
		if (level > above + 1 && pods_in(c, o, level - 1, c->at[i][level - 1]) == 0)
			continue;
		numbers[n++] = holds(c, level, d, from);
		used += pods_in(c, o, level, d) > 0;
		want += pods_in(c, o, level, d);
	}
	if (used != fewest(numbers, n, want))
		wrong("more domains than needed");
	if (level == HOST)
		return;
	apart |= level >= from && c->size[level] > 0;
	if (!apart) {
		check_few(c, o, level + 1, above, parent, from, false);
		return;
	}
	for (int i = 0, last = -1; i < c->n_nodes; i++) {
		const int d = c->at[i][level];

		if (d != last && domain_at(c, i, above) == parent && pods_in(c, o, level, d) > 0)
			check_few(c, o, level + 1, level, d, from, true);
		last = d;
	}
}

/* Return the one domain of that level that has all pods; -1 = they are in several. */
static int common(const struct tree_case *c, const struct outcome *o, int level)
{
	for (int p = 1; p < c->pods; p++)
		if (domain_at(c, o->node_of[p], level) != domain_at(c, o->node_of[0], level))
			return -1;
	return domain_at(c, o->node_of[0], level);
}

/* Return the fewest pods that a domain of the level holds that holds the whole gang; -1 = none
 * does. */
static int tightest(const struct tree_case *c, int level, int in_level, int in)
{
	int best = -1;

	for (int i = 0; i < c->n_nodes; i++) {
		const int room = holds(c, level, domain_at(c, i, level), level);

		if (domain_at(c, i, in_level) == in && room >= c->pods && (best < 0 || room < best))
			best = room;
	}
	return best;
}

/* True if it has a preference; without one only nodes are counted, wherever they are. */
static bool wishes(const struct tree_case *c)
{
	return c->required || c->preferred || c->size[BLOCK] || c->size[RACK] || c->size[HOST];
}

static void check(const struct tree_case *c, const struct outcome *o)
{
	const int can = tightest(c, c->required, ALL, 0);
	int scope = c->required;

	if (o->placed != (can >= 0)) {
		wrong(o->placed ? "placed although it cannot be" : "not placed");
		return;
	}
	if (!o->placed)
		return;
	for (int i = 0; i < c->n_nodes; i++)
		if (pods_in(c, o, HOST, i) * c->pod_gpus > c->gpus[i])
			wrong("a node has more than it holds");
	for (int l = BLOCK; l < N_LEVELS; l++)
		for (int p = 0; c->size[l] && p < c->pods; p++)
			if (c->at[o->node_of[p]][l] != c->at[o->node_of[p - p % c->size[l]]][l])
				wrong("a slice is torn");
	if (common(c, o, c->required) < 0)
		wrong("outside of what is required");
	else if (holds(c, c->required, common(c, o, c->required), c->required) != can)
		wrong("not the tightest of the required level");
	for (int l = c->preferred; !fault && l > c->required; l--) {
		const int room = tightest(c, l, c->required, common(c, o, c->required));

		if (room < 0)
			continue;
		if (common(c, o, l) < 0)
			wrong("not in one domain although it could be");
		else if (holds(c, l, common(c, o, l), l) != room)
			wrong("not the tightest of the preferred level");
		scope = l;
		break;
	}
	if (!fault && scope < HOST && wishes(c))
		check_few(c, o, scope + 1, scope, common(c, o, scope), scope + 1, false);
}

static struct snapshot *build(const struct tree_case *c)
{
	static const char *const levels[] = { "block", "rack" };
	static const char *keys[] = { "block", "rack" };
	struct snap_config config;
	struct gpuq_slice slices[N_LEVELS];
	struct snap_group g = { .name = "main",
				.pods_min = (uint32_t)c->pods,
				.pods_max = (uint32_t)c->pods,
				.gpus_milli = c->pod_gpus * SNAP_MILLI,
				.slices = slices };
	struct snap_request request = { .groups = &g, .n_groups = 1 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_share any[3];
	struct snap_queue queue;
	struct snap_job job;
	struct snapshot *s;

	snapshot_config_default(&config);
	config.levels = levels;
	config.n_levels = 2;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	snapshot_queue_default(&queue);
	queue.name = "q";
	for (int r = 0; r < 3; r++) {
		snapshot_share_default(&any[r]);
		any[r].quota = GPUQ_UNLIMITED;
	}
	queue.shares = any;
	snapshot_job_default(&job);
	job.key.id = 1;
	job.queue = snapshot_add_queue(s, &queue);
	for (int i = 0; i < c->n_nodes; i++) {
		char name[16], block[16], rack[16];
		const char *vals[] = { block, rack };
		struct snap_node n;

		snprintf(name, sizeof(name), "n%02d", i);
		snprintf(block, sizeof(block), "b%d", c->at[i][BLOCK]);
		snprintf(rack, sizeof(rack), "r%d", c->at[i][RACK]);
		snapshot_node_default(&n);
		n.name = gpuq_arena_strdup(&s->arena, name);
		n.flavor = 0;
		n.n_devices = (uint32_t)c->gpus[i];
		vals[0] = gpuq_arena_strdup(&s->arena, block);
		vals[1] = gpuq_arena_strdup(&s->arena, rack);
		n.labels.keys = keys;
		n.labels.vals = gpuq_arena_calloc(&s->arena, 2, sizeof(*vals));
		memcpy(n.labels.vals, vals, sizeof(vals));
		n.labels.n = 2;
		snapshot_add_node(s, &n);
	}
	g.topology_required = c->required ? level_names[c->required] : NULL;
	g.topology_preferred = c->preferred ? level_names[c->preferred] : NULL;
	for (int l = BLOCK; l < N_LEVELS; l++)
		if (c->size[l])
			slices[g.n_slices++] = (struct gpuq_slice){ level_names[l], c->size[l] };
	job.request = snapshot_add_request(s, &request);
	job.user = snapshot_user(s, "ann");
	snapshot_add_job(s, &job);
	if (snapshot_seal(s, &err) < 0) {
		printf("%s\n", err.text);
		exit(1);
	}
	return s;
}

static const char *run(const struct tree_case *c)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = build(c);
	struct outcome o = { false, { 0 } };
	struct plan p = { 0 };
	const struct plan_reason *why;

	fault = NULL;
	if (sched_cycle(s, &mem, &p, &err) < 0)
		wrong("the cycle failed");
	for (uint32_t i = 0; i < p.n_actions; i++) {
		o.placed = p.actions[i].kind == PLAN_PLACE;
		for (uint32_t k = 0; k < p.actions[i].n_pods; k++) {
			const struct plan_pod *pod = &p.pods[p.actions[i].pod_first + k];

			o.node_of[pod->index] = (int)pod->node;
		}
	}
	check(c, &o);
	if (!o.placed && (plan_reasons(s, &p, 0, &why) == 0 || why->have >= why->need))
		wrong("no reason, or one that is none");
	for (uint32_t i = 0; fault && o.placed && i < (uint32_t)c->pods; i++)
		printf(" %d", o.node_of[i]);
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return fault;
}

/* Make nodes as small as the failure allows. */
static const char *shrink(struct tree_case *c)
{
	for (int i = 0; i < c->n_nodes; i++)
		while (c->gpus[i] > 0) {
			c->gpus[i]--;
			if (!run(c)) {
				c->gpus[i]++;
				break;
			}
		}
	return run(c);
}

int main(int argc, char **argv)
{
	const long cases = argc > 1 ? strtol(argv[1], NULL, 10) : CASES;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : SEED;

	printf("prop_topology: %ld cases from seed %" PRIu64 "\n", cases, seed);
	for (long i = 0; i < cases; i++) {
		struct tree_case c;
		const char *what;

		generate(seed + (uint64_t)i, &c);
		what = run(&c);
		if (!what)
			continue;
		what = shrink(&c);
		printf("\nseed %" PRIu64 ": %s\n", seed + (uint64_t)i, what);
		print(&c);
		printf("again: prop_topology 1 %" PRIu64 "\n", seed + (uint64_t)i);
		return 1;
	}
	printf("all hold\n");
	return 0;
}
