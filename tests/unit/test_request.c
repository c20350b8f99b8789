/* A request keeps the scheduling half of a spec, in little memory. */
#include <criterion/criterion.h>

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/record/request.h"

#define N_MANY 2000u
#define BYTES_MOST 700u /* of each of many, their places in the tables included */

static struct request *decoded(const char *text)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_spec_opts opts = { .file = "test", .default_name = "test" };
	struct gpuq_buf bytes = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;
	struct request *r = NULL;

	cr_assert_eq(gpuq_specs_read(&a, &opts, text, strlen(text), &specs, NULL, &err), 0, "%s",
		     err.text);
	cr_assert_eq(request_encode(&specs.items[0], &bytes, &err), 0, "%s", err.text);
	cr_assert_eq(request_decode(bytes.data, bytes.len, &r, &err), 0, "%s", err.text);
	cr_assert_eq(r->len, bytes.len);
	cr_assert_eq(memcmp(r->bytes, bytes.data, bytes.len), 0);
	gpuq_buf_done(&bytes);
	gpuq_arena_done(&a);
	return r;
}

Test(request, a_borrowed_one_points_into_its_spec)
{
	struct gpuq_toleration any = { 0 };
	struct gpuq_group groups[] = {
		{ .pods_min = 2, .pods_max = 3, .gpus_milli = 500, .cpu_milli = 250 },
		{ .name = "b",
		  .pods_min = 1,
		  .pods_max = 1,
		  .tolerations = &any,
		  .n_tolerations = 1 },
	};
	const struct gpuq_spec spec = { .groups = groups, .n_groups = 2, .exclusive = true };
	struct requests all = { 0 };
	struct request *r = request_borrow(&spec, "xy", 2);

	cr_assert_not_null(r);
	request_add(&all, r);
	cr_expect_eq(request_find_bytes(&all, "xy", 2), r);
	cr_expect_null(request_find_bytes(&all, "xz", 2));
	cr_expect_eq(r->n_pods, 3);
	cr_expect_eq(r->gpus_milli, 1000);
	cr_expect_eq(r->spec.n_groups, 2);
	cr_expect_str_eq(r->spec.groups[0].name, "main");
	cr_expect_null(r->spec.groups[0].where, "nothing says where");
	cr_expect_eq(r->spec.groups[0].cpu_milli, 250);
	cr_expect_eq(r->spec.groups[1].where, &groups[1]);
	cr_expect(r->spec.exclusive);
	request_done(&all);
}

Test(request, amounts_flavors_and_licenses_are_kept)
{
	struct requests all = { 0 };
	struct request *r =
		decoded("{command: [a], gpus: 2, cpus: 1.5, memory: 3Gi, pods: {min: 2, max: 4}, "
			"flavor: [h100, a100], licenses: {matlab: 2}, exclusive: true}");
	struct gpuq_group g;

	request_add(&all, r);
	request_group_of(&r->spec.groups[0], &g);
	cr_expect_str_eq(g.name, "main");
	cr_expect_eq(g.gpus_milli, 2000);
	cr_expect_eq(g.cpu_milli, 1500);
	cr_expect_eq(g.memory_bytes, INT64_C(3) << 30);
	cr_expect_eq(g.pods_min, 2);
	cr_expect_eq(g.pods_max, 4);
	cr_expect_eq(r->n_pods, 2);
	cr_expect_eq(r->gpus_milli, 4000);
	cr_expect_eq(r->spec.flavors.n, 2);
	cr_expect_str_eq(r->spec.flavors.items[1], "a100");
	cr_expect_str_eq(r->spec.licenses.keys[0], "matlab");
	cr_expect_str_eq(r->spec.licenses.vals[0], "2");
	cr_expect(r->spec.exclusive);
	request_done(&all);
}

Test(request, several_groups_and_where_they_may_run_are_kept)
{
	struct requests all = { 0 };
	struct request *r =
		decoded("{groups: [{name: head, command: [a], cpus: 3, nodes: [n1, n2]}, "
			"{name: rest, command: [b], gpus: 1, pods: 2, topology: {required: rack}}, "
			"{name: part, command: [c], mig: 1g.10gb}]}");
	struct gpuq_group g;

	request_add(&all, r);
	cr_assert_eq(r->spec.n_groups, 3);
	request_group_of(&r->spec.groups[0], &g);
	cr_expect_str_eq(g.name, "head");
	cr_expect_eq(g.cpu_milli, 3000);
	cr_expect_eq(g.nodes.n, 2);
	cr_expect_str_eq(g.nodes.items[1], "n2");
	request_group_of(&r->spec.groups[1], &g);
	cr_expect_str_eq(g.topology_required, "rack");
	cr_expect_eq(g.gpus_milli, 1000);
	request_group_of(&r->spec.groups[2], &g);
	cr_expect_str_eq(g.name, "part");
	cr_expect_str_eq(g.mig, "1g.10gb");
	cr_expect_null(r->spec.groups[2].where);
	request_done(&all);
}

/* The spec that it was read from is freed: one block is left, which holds nothing else. */
Test(request, constraints_are_in_its_own_block)
{
	static const char text[] =
		"{command: [a], gpus: 1, nodes: [n1, n2], exclude: [n3], "
		"affinity: {required: [{match: [{key: rack, operator: In, values: [r1, r2]}, "
		"{key: disk, operator: Exists}]}, "
		"{match: [{key: zone, operator: In, values: [a]}]}], "
		"preferred: [{weight: 7, match: [{key: rack, operator: In, values: [r1]}]}]}, "
		"tolerations: [{key: slow, value: very, effect: NoSchedule}], "
		"topology: {required: rack}}";
	struct requests all = { 0 }, first = { 0 };
	struct request *r;
	struct gpuq_group g;
	size_t before;

	r = decoded(text);
	request_add(&all, r);
	before = mallinfo2().uordblks;
	for (int i = 0; i < 100; i++)
		request_add(&first, decoded(text));
	cr_expect_leq((mallinfo2().uordblks - before) / 100, malloc_usable_size(r) + 256);
	request_group_of(&r->spec.groups[0], &g);
	cr_assert_eq(g.n_required, 2);
	cr_assert_eq(g.required[0].n, 2);
	cr_expect_str_eq(g.required[0].all[0].key, "rack");
	cr_expect_str_eq(g.required[0].all[0].values.items[1], "r2");
	cr_expect_str_eq(g.required[1].all[0].key, "zone");
	cr_assert_eq(g.n_preferred, 1);
	cr_expect_eq(g.preferred[0].weight, 7);
	cr_expect_str_eq(g.preferred[0].all[0].values.items[0], "r1");
	cr_assert_eq(g.n_tolerations, 1);
	cr_expect_str_eq(g.tolerations[0].value, "very");
	cr_expect_str_eq(g.exclude.items[0], "n3");
	cr_expect_str_eq(g.topology_required, "rack");
	request_done(&first);
	request_done(&all);
}

static void encode(const char *text, struct gpuq_buf *out)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_spec_opts opts = { .file = "test", .default_name = "test" };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs;

	cr_assert_eq(gpuq_specs_read(&a, &opts, text, strlen(text), &specs, NULL, &err), 0,
		     "%s: %s", text, err.text);
	cr_assert_eq(request_encode(&specs.items[0], out, &err), 0);
	gpuq_arena_done(&a);
}

/* Groups without profiles and resources, as all here are. */
static bool same_amounts(const struct request_group *x, const struct request_group *y)
{
	return x->pods_min == y->pods_min && x->pods_max == y->pods_max &&
	       x->gpus_milli == y->gpus_milli && x->gpu_memory_bytes == y->gpu_memory_bytes &&
	       x->gpu_cores == y->gpu_cores && x->cpu_milli == y->cpu_milli &&
	       x->memory_bytes == y->memory_bytes && x->n_resources == 0 && y->n_resources == 0 &&
	       !x->mig_ok && !y->mig_ok && x->mig_more.n == 0 && y->mig_more.n == 0;
}

/* Each behind each other: what comes out never depends on the one before. */
Test(request, one_like_the_last_is_what_it_is_by_itself)
{
	static const char *const texts[] = {
		"{command: [a], gpus: 1, cpus: 0.1, memory: 64Mi}",
		"{command: [a], gpus: 1, cpus: 7, memory: 1Gi}",
		"{command: [a], gpus: 1, cpus: 200, memory: 1500k}",
		"{command: [a], gpus: 1, cpus: 0.0001, memory: 1}",
		"{command: [a], gpus: 1, cpus: 123456789.001, memory: 1Ei}",
		"{command: [a], gpus: 2, cpus: 0.1, memory: 64Mi}",
		"{command: [a], gpus: 0.5, cpus: 0.1, memory: 64Mi}",
		"{command: [a], cpus: 0.1, memory: 64Mi}",
		"{command: [a], gpus: 1, memory: 64Mi}",
		"{command: [a], gpus: 1, cpus: 3}",
		"{command: [a]}",
		"{command: [a], gpus: 1, cpus: 0.1, memory: 64Mi, flavor: [h100]}",
		"{command: [a], gpus: 1, cpus: 3, memory: 65Mi, flavor: [h100]}",
		"{command: [a], gpus: 1, cpus: 4, memory: 65Mi, flavor: [a100, h100], licenses: "
		"{x: 1}}",
		"{command: [a], gpus: 1, cpus: 5, memory: 65Mi, flavor: [a100, h100], licenses: "
		"{x: 1}}",
		"{command: [a], gpus: 1, cpus: 5, memory: 65Mi, exclusive: true}",
		"{command: [a], gpus: 1, cpus: 5, memory: 65Mi, isolation: mps}",
		"{command: [a], gpus: 1, cpus: 5, memory: 65Mi, pods: 3}",
		"{command: [a], gpus: 1, cpus: 6, memory: 66Mi, pods: 3}",
		"{command: [a], gpus: 1, cpus: 6, memory: 66Mi, nodes: [n1]}",
		"{command: [a], gpus: 1, cpus: 7, memory: 66Mi, nodes: [n1]}",
		"{command: [a], gpus: 1, gpu_memory: 4Gi, cpus: 7, memory: 66Mi}",
		"{command: [a], gpus: 1, gpu_memory: 5Gi, cpus: 8, memory: 67Mi}",
		"{groups: [{name: x, command: [a], cpus: 1}, {name: y, command: [a], cpus: 2}]}",
		"{groups: [{name: x, command: [a], cpus: 2}, {name: y, command: [a], cpus: 3}]}",
		"{groups: [{name: x, command: [a], cpus: 2, memory: 1Mi}]}",
		"{groups: [{name: x, command: [a], cpus: 3, memory: 2Mi}]}",
	};
	const size_t n = sizeof(texts) / sizeof(texts[0]);

	for (size_t i = 0; i < n * n; i++) {
		struct gpuq_buf bytes = GPUQ_BUF_INIT;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct requests all = { 0 }, alone = { 0 };
		struct request *like, *self;

		request_add(&all, decoded(texts[i / n]));
		encode(texts[i % n], &bytes);
		cr_assert_eq(request_decode_after(&all, bytes.data, bytes.len, &like, &err), 0);
		request_add(&all, like);
		cr_assert_eq(request_decode(bytes.data, bytes.len, &self, &err), 0);
		request_add(&alone, self);
		cr_expect_eq(like->n_pods, self->n_pods);
		cr_expect_eq(like->gpus_milli, self->gpus_milli);
		cr_expect_eq(like->len, self->len);
		cr_expect_eq(memcmp(like->bytes, self->bytes, self->len), 0);
		cr_assert_eq(like->spec.n_groups, self->spec.n_groups);
		cr_expect_eq(like->spec.exclusive, self->spec.exclusive);
		cr_expect_eq(like->spec.isolation, self->spec.isolation);
		cr_expect_eq(like->spec.licenses.n, self->spec.licenses.n);
		cr_assert_eq(like->spec.flavors.n, self->spec.flavors.n);
		for (size_t k = 0; k < self->spec.flavors.n; k++)
			cr_expect_str_eq(like->spec.flavors.items[k], self->spec.flavors.items[k]);
		for (size_t k = 0; k < self->spec.n_groups; k++) {
			const struct request_group *x = &like->spec.groups[k],
						   *y = &self->spec.groups[k];

			cr_expect_str_eq(x->name, y->name);
			cr_expect_eq(x->where == NULL, y->where == NULL);
			cr_expect(same_amounts(x, y), "%s behind %s", texts[i % n], texts[i / n]);
		}
		gpuq_buf_done(&bytes);
		request_done(&all);
		request_done(&alone);
	}
}

Test(request, those_that_differ_in_amounts_take_little_and_are_found)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	cr_skip_test("another allocator");
#endif
	struct requests all = { 0 };
	const size_t before = mallinfo2().uordblks;
	struct request *r;
	char text[128];

	for (uint32_t i = 0; i < N_MANY; i++) {
		snprintf(text, sizeof(text), "{command: [a], gpus: 1, cpus: 0.%04u, memory: %uMi}",
			 i + 1, i + 1);
		r = decoded(text);
		r->id = i + 1;
		request_add(&all, r);
	}
	cr_expect_lt(mallinfo2().uordblks - before, (size_t)N_MANY * BYTES_MOST);
	for (uint32_t i = 1; i <= N_MANY; i++) {
		r = request_find(&all, i);
		cr_assert_not_null(r);
		cr_expect_eq(request_find_bytes(&all, r->bytes, r->len), r);
	}
	cr_expect_null(request_find(&all, N_MANY + 1));
	while (all.list)
		request_remove(&all, all.list);
	cr_expect_eq(all.by_id.n, 0);
	request_done(&all);
}
