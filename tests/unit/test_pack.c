#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/place/fgd.h"
#include "gpuqd/sched/place/packer.h"
#include "gpuqd/sched/sched.h"

/* ---- what is wasted ---- */

static struct fgd_left left_of(int64_t cpu, const int16_t *milli, uint32_t n)
{
	struct fgd_left l = { .cpu = cpu, .memory = GPUQ_UNLIMITED };

	for (uint32_t d = 0; d < n; d++) {
		if (milli[d] == SNAP_MILLI)
			l.whole++;
		else
			l.parts[l.n_parts++] = milli[d];
	}
	return l;
}

/* In thousandths of a device, as the paper gives it. */
static double fragments(const struct fgd_kind *kinds, uint32_t n, const struct fgd_left *l)
{
	return (double)fgd_fragments(kinds, n, l, 0) / FGD_WHOLE_MIX;
}

static const int16_t four[] = { 200, 1000, 1000, 500 };

Test(fgd, cpu_too_short_wastes_all)
{
	const struct fgd_kind kind = { .parts = 1, .part = 465, .cpu = 6000, .weight = 933 };
	const struct fgd_left l = left_of(1000, four, 4);

	cr_assert_eq(fgd_free(&l), 2700);
	cr_expect_float_eq(fragments(&kind, 1, &l), 251.91, 0.001);
}

Test(fgd, whole_jobs_cannot_use_parts)
{
	const struct fgd_kind kind = { .whole = 2, .cpu = 1000, .weight = FGD_WHOLE_MIX };
	const struct fgd_left l = left_of(1000, four, 4);

	cr_expect_float_eq(fragments(&kind, 1, &l), 700, 0.001);
}

Test(fgd, mixed_list_on_an_empty_node)
{
	/* 9.54 % need no device, 1.07 and 0.48 % more cpu than the node has. */
	const struct fgd_kind kinds[] = {
		{ .cpu = 1000, .weight = 954 },
		{ .whole = 8, .cpu = 64200, .weight = 107 },
		{ .whole = 8, .cpu = 120200, .weight = 48 },
		{ .whole = 1, .cpu = 15700, .weight = 2869 },
		{ .whole = 4, .cpu = 60200, .weight = 123 },
		{ .parts = 1, .part = 80, .cpu = 2000, .weight = 27 },
	};
	const int16_t eight[] = { 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000 };
	const struct fgd_left l = left_of(64000, eight, 8);

	cr_expect_float_eq(fragments(kinds, 6, &l), 887.20, 0.001);
}

Test(fgd, full_nodes_waste_nothing)
{
	const struct fgd_kind kind = { .whole = 1, .weight = FGD_WHOLE_MIX };
	const struct fgd_left l = { .cpu = 0 };

	cr_expect_eq(fgd_fragments(&kind, 1, &l, 0), 0);
	cr_expect_eq(fgd_stranded(&kind, 1, &l, 0, 1000), 0);
}

Test(fgd, score_is_the_integer_part)
{
	for (int64_t milli = -9000; milli <= 9000; milli += 7) {
		const double x = 100 / (1 + exp(-(double)milli / 1000));

		cr_expect_eq(fgd_score(milli * FGD_WHOLE_MIX), (uint32_t)x, "%lld: %u, not %f",
			     (long long)milli, fgd_score(milli * FGD_WHOLE_MIX), x);
	}
	cr_expect_eq(fgd_score(0), 50);
	cr_expect_eq(fgd_score(INT64_MAX / 2), 99);
	cr_expect_eq(fgd_score(INT64_MIN / 2), 0);
}

Test(fgd, stranded_is_what_a_kind_would_leave)
{
	const struct fgd_kind two = { .whole = 2, .cpu = 8000, .weight = 1 };
	const int16_t five[] = { 1000, 1000, 1000, 1000, 1000 };
	struct fgd_left l = left_of(8000, five, 5);

	/* cpu for one pod of two that devices would hold, and one device left over. */
	cr_expect_eq(fgd_stranded(&two, 1, &l, 0, 0), 10 * 2000 + 1000);
	l.cpu = 7999;
	cr_expect_eq(fgd_stranded(&two, 1, &l, 0, 0), 10 * 5000);
	l.cpu = GPUQ_UNLIMITED;
	cr_expect_eq(fgd_stranded(&two, 1, &l, 0, 0), 1000);
	cr_expect_eq(fgd_stranded(&two, 1, &l, 0, 3), 1000 + 3 * 5000);
}

Test(fgd, others_keep_off_what_is_scarce)
{
	const uint64_t first = 1;
	const struct fgd_kind kinds[] = {
		{ .whole = 1, .weight = 100, .scarcity = 4000, .nodes = &first },
		{ .whole = 1, .weight = 100, .scarcity = 1000 },
	};

	int64_t sums[66] = { 0 };
	const uint64_t none_beyond[] = { UINT64_MAX, 1 };
	const struct fgd_kind others = {
		.whole = 1, .weight = 100, .scarcity = 4000, .nodes = none_beyond
	};

	fgd_bar(kinds, 2, 2, sums);
	cr_expect_eq(sums[0], 0);
	cr_expect_eq(sums[1], 100 * 40);
	cr_expect_eq(sums[2], 0);
	fgd_bar(&others, 1, 66, sums);
	cr_expect_eq(sums[64], 0);
	cr_expect_eq(sums[65], 100 * 40);
}

Test(fgd, nothing_is_stranded_where_cpu_suffices)
{
	const struct fgd_kind kind = { .whole = 1, .cpu = 4000, .memory = 100, .weight = 1 };
	struct fgd_left l = { .cpu = 8000, .memory = 200, .whole = 2 };

	cr_expect(!fgd_may_strand(&kind, 1, &l));
	l.cpu = 7999;
	cr_expect(fgd_may_strand(&kind, 1, &l));
	l.cpu = GPUQ_UNLIMITED;
	l.memory = 199;
	cr_expect(fgd_may_strand(&kind, 1, &l));
	l.whole = 0;
	cr_expect(!fgd_may_strand(&kind, 1, &l), "nothing is left");
}

/* ---- what quotas count ---- */

Test(cost, profiles)
{
	static const struct {
		const char *profile;
		int64_t milli;
	} rows[] = {
		{ "1g.10gb", 143 },
		{ "1g.10gb+me", 143 },
		{ "1g.20gb", 143 },
		{ "2g.20gb", 286 },
		{ "3g.40gb", 429 },
		{ "4g.40gb", 572 },
		{ "7g.80gb", 1000 },
		{ "1c.3g.20gb", 143 },
		{ "1g.6gb", 250 },
		{ "4g.24gb", 1000 },
		{ "8g.1gb", 1000 },
		{ "", 1000 },
		{ "0g.5gb", 1000 },
		{ "gold", 1000 },
		/* A replica of an instance is its part, rounded down as those of devices are. */
		{ "1g.10gb.shared/4", 35 },
		{ "1g.10gb.shared:2", 71 },
		{ "1g.5gb+me.shared/4", 35 },
		{ "3g.40gb.shared/10", 42 },
		{ "7g.80gb.shared/3", 333 },
		{ "1g.6gb.shared/4", 62 },
		{ "1g.10gb.shared/1000", 1 },
		{ "1g.10gb.shared", 10 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(cost_of_profile(rows[i].profile), rows[i].milli, "%s",
			     rows[i].profile);
}

Test(cost, replicas_of_all_instances_are_the_card)
{
	cr_expect_eq(cost_exact("1g.10gb", 7), COST_EXACT);
	cr_expect_eq(cost_exact("1g.10gb.shared/4", 28), COST_EXACT);
	cr_expect_eq(cost_exact("1g.10gb.shared:1000", 7000), COST_EXACT);
	cr_expect_eq(cost_exact("1g.6gb.shared/3", 12), COST_EXACT);
	cr_expect_eq(cost_exact("3g.40gb.shared/2", 3), COST_EXACT * 9 / 14);
	cr_expect_eq(cost_instances("1g.10gb.shared/4", ""), 28);
	cr_expect_eq(cost_instances("1g.10gb.shared/4", "A100-SXM4-40GB"), 16);
	cr_expect_eq(cost_profile_mib("1g.10gb.shared/4"), 2560);
}

Test(cost, memory_is_rounded_up)
{
	const int64_t gib = INT64_C(1) << 30;

	cr_expect_eq(snap_memory_milli(1, 80 * gib), 1);
	cr_expect_eq(snap_memory_milli(10 * gib, 80 * gib), 125);
	cr_expect_eq(snap_memory_milli(10 * gib + 1, 80 * gib), 126);
	cr_expect_eq(snap_memory_milli(80 * gib, 80 * gib), 1000);
	cr_expect_eq(snap_memory_milli(INT64_MAX, INT64_MAX), 1000);
	/* Never less than the memory's share, so that memory holds when thousandths do. */
	for (int64_t m = 1; m < 5000; m += 3)
		cr_expect(snap_memory_milli(m, 4999) * INT64_C(4999) >= m * 1000);
}

/* ---- one pod after the other ---- */

struct kind {
	int64_t gpus_milli, memory_bytes, cpu;
	uint32_t count;
};

static struct snapshot *cluster(uint32_t nodes, uint32_t devices, int64_t devices_bytes,
				int64_t cpu, const struct kind *kinds, uint32_t n)
{
	struct snap_device device[16];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_config config;
	struct snap_queue q;
	struct snapshot *s;
	char name[16];

	snapshot_config_default(&config);
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	snapshot_user(s, "ann");
	snapshot_queue_default(&q);
	q.name = "q";
	snapshot_add_queue(s, &q);
	for (uint32_t d = 0; d < devices; d++)
		device[d] = (struct snap_device){ .healthy = true, .memory_bytes = devices_bytes };
	for (uint32_t i = 0; i < nodes; i++) {
		struct snap_node node;

		snapshot_node_default(&node);
		snprintf(name, sizeof(name), "n%03u", i);
		node.name = name;
		node.flavor = 0;
		node.cpu_milli = cpu;
		node.n_devices = devices;
		node.devices_in = device;
		snapshot_add_node(s, &node);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct snap_group g = { .name = "main",
					      .pods_min = 1,
					      .pods_max = 1,
					      .gpus_milli = kinds[i].gpus_milli,
					      .gpu_memory_bytes = kinds[i].memory_bytes,
					      .cpu_milli = kinds[i].cpu };
		const struct snap_request r = { .groups = &g, .n_groups = 1 };
		const struct snap_range range = { 0, (int32_t)kinds[i].count - 1, 1 };
		struct snap_job j;

		snapshot_job_default(&j);
		j.key = (struct snap_key){ i + 1, -1 };
		j.queue = 0;
		j.user = 0;
		j.request = snapshot_add_request(s, &r);
		j.ranges = &range;
		j.n_ranges = 1;
		snapshot_add_job(s, &j);
	}
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	return s;
}

static uint64_t state;

static uint32_t below(uint32_t n)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(state >> 33) % n;
}

/* Places pods of random kinds until nothing fits any more; checks that no device, cpu or
 * memory is given twice. Returns how many were placed. */
static uint32_t fill(const struct snapshot *s, enum packer_policy policy, int64_t devices_bytes,
		     int64_t cpu)
{
	int32_t used[64 * 16] = { 0 };
	int64_t bytes[64 * 16] = { 0 }, cpu_used[64] = { 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct packer *p;
	uint32_t placed = 0, refused = 0;

	cr_assert_eq(packer_new(s, policy, &p, &err), 0);
	while (refused < 50) {
		const uint32_t job = below(s->n_jobs);
		const struct snap_group *g = s->requests[s->jobs[job].request].groups;
		const uint32_t *devices;
		const struct plan_pod *pod;
		uint32_t n;
		const int rc = packer_place(p, job, &pod, &n, &devices, &err);

		cr_assert_geq(rc, 0);
		refused = rc ? 0 : refused + 1;
		placed += rc > 0;
		if (rc == 0)
			continue;
		cr_assert_eq(n, 1);
		cpu_used[pod->node] += g->cpu_milli;
		cr_assert_leq(cpu_used[pod->node], cpu);
		cr_assert_eq((int64_t)pod->n_devices,
			     g->gpus_milli < 1000 ? 1 : g->gpus_milli / 1000);
		for (uint32_t d = 0; d < pod->n_devices; d++) {
			const uint32_t at = pod->node * 16 + devices[pod->device_first + d];

			cr_assert(d == 0 || devices[pod->device_first + d] >
						    devices[pod->device_first + d - 1],
				  "devices of a pod differ, and ascend");
			used[at] += pod->milli;
			bytes[at] += g->gpu_memory_bytes;
			cr_assert_leq(used[at], 1000);
			cr_assert_leq(bytes[at], devices_bytes);
			if (g->gpu_memory_bytes == 0 && g->gpus_milli >= 1000)
				cr_assert_eq(used[at], 1000,
					     "a whole device is shared with nobody");
		}
	}
	packer_free(p);
	return placed;
}

Test(packer, never_more_than_there_is)
{
	const int64_t gib = INT64_C(1) << 30;

	for (uint32_t i = 0; i < 300; i++) {
		struct kind kinds[8];
		const uint32_t n = 1 + (state = i, below(8)), nodes = 1 + below(6);
		const uint32_t devices = 1 + below(8);
		struct snapshot *s;

		for (uint32_t k = 0; k < n; k++) {
			kinds[k] = (struct kind){ .cpu = below(5) * 1000, .count = 1 + below(9) };
			if (below(3) == 0)
				kinds[k].memory_bytes = (1 + below(39)) * gib;
			if (kinds[k].memory_bytes || below(2))
				kinds[k].gpus_milli = (1 + below(devices)) * 1000;
			else
				kinds[k].gpus_milli = 1 + below(999);
		}
		s = cluster(nodes, devices, 40 * gib, 20000, kinds, n);
		for (int policy = PACKER_DEFAULT; policy <= PACKER_BESTFIT; policy++)
			fill(s, (enum packer_policy)policy, 40 * gib, 20000);
		snapshot_free(s);
	}
}

/* The placement does not depend on the order in which nodes were added, nor does the number of
 * pods that fit on the order of arrival. */
Test(packer, equal_parts_fill_in_any_order)
{
	const struct kind kinds[] = { { .gpus_milli = 250, .cpu = 1000, .count = 9 } };
	struct snapshot *s = cluster(4, 4, 0, 64000, kinds, 1);

	state = 1;
	cr_expect_eq(fill(s, PACKER_DEFAULT, 0, 64000), 64);
	cr_expect_eq(fill(s, PACKER_FGD, 0, 64000), 64);
	cr_expect_eq(fill(s, PACKER_BESTFIT, 0, 64000), 64);
	snapshot_free(s);
}

Test(packer, refuses_what_is_not_sealed)
{
	struct snap_config config;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s;
	struct packer *p;

	snapshot_config_default(&config);
	s = snapshot_new(&config);
	cr_expect_eq(packer_new(s, PACKER_DEFAULT, &p, &err), GPUQ_EINVAL);
	snapshot_free(s);
}

/* ---- whole cycles over what is held ---- */

#define NODES_MAX 4
#define DEVICES_MAX 6
#define PROFILES 2

static const char *const profiles[PROFILES] = { "1g.10gb", "3g.40gb" };

/* Allocations of a cluster, counted by hand. */
struct tally {
	int32_t milli[NODES_MAX][DEVICES_MAX];
	int32_t instances[NODES_MAX][PROFILES];
	int64_t bytes[NODES_MAX][DEVICES_MAX];
	int64_t cpu[NODES_MAX];
};

struct shape {
	uint32_t nodes, devices[NODES_MAX], instances[NODES_MAX][PROFILES];
	int64_t bytes[NODES_MAX], cpu;
};

static uint32_t any_request(struct snapshot *s, const struct shape *shape)
{
	struct snap_group g = { .name = "main",
				.pods_min = 1 + below(2),
				.cpu_milli = below(3) * 1000,
				.gpus_milli = 1000 };
	const struct snap_request r = { .groups = &g, .n_groups = 1 };

	g.pods_max = g.pods_min;
	switch (below(6)) {
	case 0:
		g.mig = profiles[below(PROFILES)];
		break;
	case 1:
		g.gpu_memory_bytes = 1 + below((uint32_t)shape->bytes[0]);
		g.gpus_milli = (1 + below(2)) * 1000;
		break;
	case 2:
		g.gpus_milli = (1 + below(9)) * 100;
		break;
	case 4:
		g.gpu_memory_bytes = 1 + below((uint32_t)shape->bytes[0]);
		g.gpus_milli = (1 + below(9)) * 100;
		break;
	case 3:
		g.gpu_part_milli = (int32_t)(1 + below(9)) * 100;
		g.gpus_milli = (1 + below(3)) * 1000;
		break;
	default:
		g.gpus_milli = (1 + below(3)) * 1000;
	}
	return snapshot_add_request(s, &r);
}

static void check_tally(const struct shape *shape, const struct tally *t, uint32_t seed)
{
	for (uint32_t n = 0; n < shape->nodes; n++) {
		for (uint32_t d = 0; d < DEVICES_MAX; d++) {
			cr_assert_leq(t->milli[n][d], d < shape->devices[n] ? 1000 : 0, "seed %u",
				      seed);
			cr_assert_leq(t->bytes[n][d], shape->bytes[n], "seed %u", seed);
		}
		for (uint32_t p = 0; p < PROFILES; p++)
			cr_assert_leq(t->instances[n][p], (int32_t)shape->instances[n][p],
				      "seed %u: %s", seed, profiles[p]);
		cr_assert_leq(t->cpu[n], shape->cpu, "seed %u", seed);
	}
}

static void count_pod(struct tally *t, const struct shape *shape, const struct snap_group *g,
		      uint32_t node, const uint32_t *devices, uint32_t n_devices, int32_t milli)
{
	for (uint32_t d = 0; d < n_devices; d++) {
		t->milli[node][devices[d]] += milli;
		t->bytes[node][devices[d]] += g->gpu_memory_bytes
						      ? g->gpu_memory_bytes
						      : shape->bytes[node] * milli / 1000;
	}
	for (uint32_t p = 0; g->mig && p < PROFILES; p++)
		if (strcmp(g->mig, profiles[p]) == 0)
			t->instances[node][p] += (int32_t)(g->gpus_milli / 1000);
	t->cpu[node] += g->cpu_milli;
}

/* Pods that a cycle started run in the next snapshot; some of them end. */
struct held {
	uint32_t request_seed, n_pods;
	struct plan_pod pods[2];
	uint32_t devices[2][DEVICES_MAX];
};

static struct snapshot *snapshot_of(const struct shape *shape, const struct held *held,
				    uint32_t n_held, const uint64_t *requests, uint32_t n_waiting)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_config config;
	struct snap_queue q;
	struct snapshot *s;
	char name[16];

	snapshot_config_default(&config);
	config.now_us = 1000;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	snapshot_user(s, "ann");
	snapshot_queue_default(&q);
	q.name = "q";
	snapshot_add_queue(s, &q);
	for (uint32_t n = 0; n < shape->nodes; n++) {
		struct snap_device devices[DEVICES_MAX];
		struct snap_mig mig[PROFILES];
		struct snap_node node;

		snapshot_node_default(&node);
		snprintf(name, sizeof(name), "n%u", n);
		node.name = name;
		node.flavor = 0;
		node.cpu_milli = shape->cpu;
		node.n_devices = shape->devices[n];
		for (uint32_t d = 0; d < node.n_devices; d++)
			devices[d] = (struct snap_device){ .healthy = true,
							   .memory_bytes = shape->bytes[n] };
		node.devices_in = devices;
		for (uint32_t p = 0; p < PROFILES; p++)
			mig[p] = (struct snap_mig){ .profile = profiles[p],
						    .count = shape->instances[n][p] };
		node.mig = mig;
		node.n_mig = PROFILES;
		snapshot_add_node(s, &node);
	}
	for (uint32_t i = 0; i < n_held + n_waiting; i++) {
		const uint64_t kept = state;
		struct snap_job j;
		uint32_t handle;

		snapshot_job_default(&j);
		j.key.id = i + 1;
		j.queue = 0;
		j.user = 0;
		state = i < n_held ? held[i].request_seed : requests[i - n_held];
		j.request = any_request(s, shape);
		state = kept;
		if (i < n_held)
			j.state = SNAP_RUNNING;
		handle = snapshot_add_job(s, &j);
		for (uint32_t p = 0; i < n_held && p < held[i].n_pods; p++) {
			const struct plan_pod *pod = &held[i].pods[p];
			const struct snap_alloc a = { .job = handle,
						      .node = pod->node,
						      .index = p,
						      .devices = held[i].devices[p],
						      .n_devices = pod->n_devices,
						      .milli = pod->milli };

			snapshot_add_alloc(s, &a);
		}
	}
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	return s;
}

/* Start what can start, note it, and let some of it end. */
static uint32_t one_cycle(const struct shape *shape, struct held *held, uint32_t n_held,
			  uint32_t seed)
{
	uint64_t requests[12];
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct tally tally = { 0 };
	struct plan plan = { 0 };
	struct snapshot *s;
	uint32_t n = 0, before = n_held;

	for (uint32_t i = 0; i < 12; i++)
		requests[i] = below(100000);
	s = snapshot_of(shape, held, n_held, requests, 12);
	cr_assert_eq(sched_cycle(s, &mem, &plan, &err), 0);
	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_alloc *a = &s->allocs[i];

		count_pod(&tally, shape, &s->requests[s->jobs[a->job].request].groups[0], a->node,
			  a->devices, a->n_devices, a->milli);
	}
	for (uint32_t i = 0; i < plan.n_actions; i++) {
		const struct plan_action *a = &plan.actions[i];
		struct held *h = &held[n_held];

		if (a->kind != PLAN_PLACE)
			continue;
		*h = (struct held){ .request_seed = (uint32_t)requests[a->key.id - before - 1],
				    .n_pods = a->n_pods };
		for (uint32_t p = 0; p < a->n_pods; p++) {
			h->pods[p] = plan.pods[a->pod_first + p];
			memcpy(h->devices[p], &plan.devices[h->pods[p].device_first],
			       h->pods[p].n_devices * sizeof(uint32_t));
			count_pod(&tally, shape, &s->requests[s->jobs[a->job].request].groups[0],
				  h->pods[p].node, h->devices[p], h->pods[p].n_devices,
				  h->pods[p].milli);
		}
		n_held++;
	}
	check_tally(shape, &tally, seed);
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct plan_reason *why;

		for (uint32_t k = plan_reasons(s, &plan, i, &why); k-- > 0;)
			cr_assert_neq(why[k].code, GPUQ_R_NONE);
	}
	for (uint32_t i = 0; i < n_held; i++)
		if (below(3) && n < 40)
			held[n++] = held[i];
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return n;
}

Test(cycle, never_more_than_there_is_over_time)
{
	static struct held held[64];

	for (uint32_t seed = 0; seed < 400; seed++) {
		struct shape shape = { .cpu = 12000 };
		uint32_t n_held = 0;

		state = seed;
		shape.nodes = 1 + below(NODES_MAX);
		for (uint32_t n = 0; n < shape.nodes; n++) {
			shape.devices[n] = below(DEVICES_MAX + 1);
			shape.bytes[n] = 1000 + below(9000);
			for (uint32_t p = 0; p < PROFILES; p++)
				shape.instances[n][p] = below(4);
		}
		for (uint32_t round = 0; round < 5; round++)
			n_held = one_cycle(&shape, held, n_held, seed);
	}
}
