#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/core/cost.h"
#include "gpuqd/core/fgd.h"
#include "gpuqd/core/packer.h"
#include "gpuqd/core/sched.h"

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

	cr_expect_eq(fgd_barred(kinds, 2, 0), 0);
	cr_expect_eq(fgd_barred(kinds, 2, 1), 100 * 40);
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
		{ "1g.10gb", 143 },  { "1g.10gb+me", 143 }, { "1g.20gb", 143 },
		{ "2g.20gb", 286 },  { "3g.40gb", 429 },    { "4g.40gb", 572 },
		{ "7g.80gb", 1000 }, { "1c.3g.20gb", 143 }, { "1g.6gb", 250 },
		{ "4g.24gb", 1000 }, { "8g.1gb", 1000 },    { "", 1000 },
		{ "0g.5gb", 1000 },  { "gold", 1000 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(cost_of_profile(rows[i].profile), rows[i].milli, "%s",
			     rows[i].profile);
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

static struct snapshot *cluster(uint32_t nodes, uint32_t devices, int64_t device_bytes, int64_t cpu,
				const struct kind *kinds, uint32_t n)
{
	struct snap_device device[16];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_config config;
	struct snap_queue q;
	struct snapshot *s;
	char name[16];

	snap_config_default(&config);
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	snapshot_user(s, "ann");
	snap_queue_default(&q);
	q.name = "q";
	snapshot_add_queue(s, &q);
	for (uint32_t d = 0; d < devices; d++)
		device[d] = (struct snap_device){ .healthy = true, .memory_bytes = device_bytes };
	for (uint32_t i = 0; i < nodes; i++) {
		struct snap_node node;

		snap_node_default(&node);
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

		snap_job_default(&j);
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
static uint32_t fill(const struct snapshot *s, enum packer_policy policy, int64_t device_bytes,
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
			cr_assert_leq(bytes[at], device_bytes);
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

/* Thousandths that add up to 1000 lie on one device, in whatever order they come. */
Test(packer, any_split_of_a_device_fits_it)
{
	static const int32_t tenths[] = { 1, 2, 3, 5, 7 };

	for (uint32_t i = 0; i < 2000; i++) {
		struct kind kinds[5];
		uint32_t order[10], n = 0;
		int32_t rest = 10;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct snapshot *s;
		struct packer *p;

		state = i;
		for (uint32_t k = 0; k < 5; k++)
			kinds[k] = (struct kind){ .gpus_milli = tenths[k] * 100, .count = 1 };
		while (rest > 0) {
			const uint32_t k = below(5);

			if (tenths[k] > rest)
				continue;
			order[n++] = k;
			rest -= tenths[k];
		}
		s = cluster(1, 1, 0, GPUQ_UNLIMITED, kinds, 5);
		cr_assert_eq(packer_new(s, PACKER_DEFAULT, &p, &err), 0);
		for (uint32_t k = 0; k < n; k++) {
			const struct plan_pod *pod;
			const uint32_t *devices;
			uint32_t n_pods;

			cr_assert_eq(packer_place(p, order[k], &pod, &n_pods, &devices, &err), 1);
		}
		packer_free(p);
		snapshot_free(s);
	}
}

/* What is placed does not depend on the order in which nodes were added, nor does the
 * number of pods that fit on the order in which they come. */
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

	snap_config_default(&config);
	s = snapshot_new(&config);
	cr_expect_eq(packer_new(s, PACKER_DEFAULT, &p, &err), GPUQ_EINVAL);
	snapshot_free(s);
}
