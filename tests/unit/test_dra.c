/* Devices that Kubernetes has as objects: which there are, which are in use, and which a claim gets. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/devices/dra/dra.h"

#define DRIVER "gpu.nvidia.com"
#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct gpuq_strlist one(const char **text)
{
	return (struct gpuq_strlist){ text, 1 };
}

/* A slice of n devices gpu-FIRST.. of a product, on node n1. */
static struct dra_slice slice_of(struct gpuq_arena *a, const char *name, int64_t generation,
				 int64_t n_slices, int first, uint32_t n, const char *product)
{
	struct dra_device *devices = gpuq_arena_calloc(a, n, sizeof(*devices));

	for (uint32_t i = 0; i < n; i++) {
		struct dra_word *words = gpuq_arena_calloc(a, 3, sizeof(*words));

		words[0] = (struct dra_word){ .name = DRIVER "/productName",
					      .text = product,
					      .type = GPUQ_CEL_STRING };
		words[1] = (struct dra_word){ .name = "resource.kubernetes.io/pcieRoot",
					      .text = i % 2 ? "pci1" : "pci0",
					      .type = GPUQ_CEL_STRING };
		words[2] = (struct dra_word){ .name = DRIVER "/memory",
					      .number = (INT64_C(40) << 30) * 1000,
					      .type = GPUQ_CEL_QUANTITY,
					      .capacity = true };
		devices[i] =
			(struct dra_device){ .name = gpuq_arena_printf(a, "gpu-%d", first + (int)i),
					     .words = words,
					     .n_words = 3 };
	}
	return (struct dra_slice){ .name = name,
				   .driver = DRIVER,
				   .pool = "n1",
				   .generation = generation,
				   .n_slices = n_slices,
				   .node = "n1",
				   .devices = devices,
				   .n_devices = n };
}

static struct dra *ledger(void)
{
	const struct dra_class c = { .name = "gpu", .extended = "", .config = "", .odd = "" };
	struct dra *d = dra_new();

	cr_assert(dra_class_seen(d, &c));
	cr_assert_not(dra_class_seen(d, &c));
	return d;
}

static struct dra_option option_of(const char *name, int64_t count, const char **selector)
{
	return (struct dra_option){ .name = name,
				    .class_ = "gpu",
				    .selectors = selector ? one(selector)
							  : (struct gpuq_strlist){ NULL, 0 },
				    .count = count };
}

static size_t devices_of(const struct dra *d, struct gpuq_arena *a, struct dra_at **at)
{
	const char *odd;

	return dra_node(d, "n1", a, at, &odd);
}

/* Match one claim, and list what it got: "r:gpu-0 r/b:gpu-1". */
static enum dra_fit got(const struct dra *d, const struct dra_request *requests, uint32_t n,
			const struct dra_constraint *constraint, char out[256])
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct dra_spec spec = { requests, constraint, n, constraint ? 1 : 0, "", "" };
	const struct dra_spec *specs[] = { &spec };
	struct dra_pick picks[DRA_RESULTS_MAX];
	struct dra_at *at;
	const size_t n_at = devices_of(d, &a, &at);
	size_t n_picks = 0, len = 0;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const enum dra_fit fit = dra_match(d, at, n_at, NULL, specs, 1, &a, picks, &n_picks, &err);

	out[0] = '\0';
	for (size_t i = 0; i < n_picks; i++)
		len += (size_t)snprintf(out + len, 256 - len, "%s%s%s%s:%s", i ? " " : "",
					picks[i].request->name, *picks[i].option->name ? "/" : "",
					picks[i].option->name, picks[i].device->name);
	if (fit == DRA_WAITS)
		snprintf(out, 256, "%.200s", err.text);
	gpuq_arena_done(&a);
	return fit;
}

static void allocate(struct dra *d, const char *name, const char *const *devices, uint32_t n)
{
	struct dra_result results[8];
	const struct dra_claim c = { .namespace_ = "ns",
				     .name = name,
				     .uid = name,
				     .version = "1",
				     .owner = "",
				     .owner_name = "",
				     .pod_claim = "",
				     .allocated = true,
				     .node = "n1",
				     .spec = { .config = "", .odd = "" },
				     .results = results,
				     .n_results = n };

	for (uint32_t i = 0; i < n; i++)
		results[i] = (struct dra_result){ "r", DRIVER, "n1", devices[i] };
	cr_assert(dra_claim_seen(d, &c));
}

/* AC-DRA-1: a pool has devices only when all slices of its newest generation are there. */
Test(dra, complete_generations_only)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra *d = ledger();
	struct dra_slice two = slice_of(&a, "two", 2, 1, 0, 8, "A100");
	struct dra_slice left = slice_of(&a, "left", 3, 2, 0, 4, "A100");
	struct dra_slice right = slice_of(&a, "right", 3, 2, 4, 4, "A100");
	struct dra_at *at;
	const char *odd;

	dra_slice_seen(d, &two);
	cr_expect_eq(dra_node(d, "n1", &a, &at, &odd), 8);
	cr_expect_null(odd);
	cr_expect(dra_slice_seen(d, &left));
	cr_expect_not(dra_slice_seen(d, &left), "no news");
	cr_expect_eq(dra_node(d, "n1", &a, &at, &odd), 0);
	cr_expect_not_null(odd);
	dra_slice_seen(d, &right);
	cr_expect_eq(dra_node(d, "n1", &a, &at, &odd), 8);
	cr_expect_str_eq(at[7].device->name, "gpu-7");
	cr_expect(dra_slice_gone(d, "two"));
	cr_expect_eq(dra_node(d, "n1", &a, &at, &odd), 8);
	cr_expect(dra_slice_gone(d, "left"));
	cr_expect_eq(dra_node(d, "n1", &a, &at, &odd), 0);
	cr_expect_eq(dra_node(d, "n2", &a, &at, &odd), 0);
	dra_free(d);
	gpuq_arena_done(&a);
}

/* A complete pool that names a device twice is invalid, and so is a node with more than can be true. */
Test(dra, pools_that_lie_are_left_out_and_it_is_told_why)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra *d = ledger();
	struct dra_slice left = slice_of(&a, "left", 3, 2, 0, 4, "A100");
	struct dra_slice right = slice_of(&a, "right", 3, 2, 3, 4, "A100");
	struct dra_at *at;
	const char *odd;
	char name[16];

	dra_slice_seen(d, &left);
	dra_slice_seen(d, &right);
	cr_expect_eq(dra_node(d, "n1", &a, &at, &odd), 0);
	cr_assert_not_null(odd);
	cr_expect_str_eq(odd, "pool n1 of its ResourceSlices has device gpu-3 twice");
	for (int i = 0; i < 9; i++) {
		struct dra_slice s;

		snprintf(name, sizeof(name), "s%d", i);
		s = slice_of(&a, gpuq_arena_strdup(&a, name), 4, 9, i * 128, 128, "A100");
		dra_slice_seen(d, &s);
	}
	cr_expect_eq(dra_node(d, "n1", &a, &at, &odd), 0);
	cr_assert_not_null(odd);
	cr_expect_str_eq(odd, "its ResourceSlices have 1152 devices: at most 1024 are credible");
	dra_free(d);
	gpuq_arena_done(&a);
}

/* The words that all devices of a slice have are kept once, which no reader notices. */
Test(dra, words_of_a_slice_are_kept_once)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra *one = ledger(), *many = ledger(), *copy;
	struct dra_slice s = slice_of(&a, "s", 1, 1, 0, 1, "A100");
	struct dra_slice t = slice_of(&a, "s", 1, 1, 0, 64, "A100");
	struct dra_at *at;
	size_t n;

	dra_slice_seen(one, &s);
	dra_slice_seen(many, &t);
	cr_expect_lt(dra_bytes(many), 64 * dra_bytes(one) / 2, "%zu bytes", dra_bytes(many));
	cr_expect_not(dra_slice_seen(many, &t), "no news");
	copy = dra_copy(many);
	cr_expect_eq(dra_bytes(copy), dra_bytes(many));
	cr_expect_not(dra_slice_seen(copy, &t), "no news either");
	n = devices_of(copy, &a, &at);
	cr_expect_eq(n, 64);
	for (size_t i = 0; i < n; i++) {
		const struct dra_device *d = at[i].device;

		cr_expect_eq(dra_count_words(d), 3);
		cr_expect_str_eq(dra_word(d, false, DRIVER "/productName")->text, "A100");
		cr_expect_str_eq(dra_word(d, false, "resource.kubernetes.io/pcieRoot")->text,
				 i % 2 ? "pci1" : "pci0");
		cr_expect_eq(dra_word(d, true, DRIVER "/memory")->number,
			     (INT64_C(40) << 30) * 1000);
	}
	((struct dra_word *)(uintptr_t)t.devices[63].words)[0].text = "H100";
	cr_expect(dra_slice_seen(many, &t), "one device has another product");
	cr_expect_str_eq(
		dra_word(&dra_slice(many, "s")->devices[63], false, DRIVER "/productName")->text,
		"H100");
	dra_free(one);
	dra_free(many);
	dra_free(copy);
	gpuq_arena_done(&a);
}

/* AC-DRA-2: what is allocated is never allocated again. */
Test(dra, two_of_a_product)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra *d = ledger(), *copy;
	struct dra_slice s = slice_of(&a, "s", 1, 2, 0, 3, "NVIDIA A100");
	struct dra_slice t = slice_of(&a, "t", 1, 2, 3, 2, "NVIDIA H100");
	const char *a100 = "device.attributes['gpu.nvidia.com'].productName.contains('A100')";
	const struct dra_option o = option_of("", 2, &a100);
	const struct dra_request r = { "r", &o, 1 };
	static const char *const first[] = { "gpu-0", "gpu-1" };
	char text[256];

	dra_slice_seen(d, &s);
	dra_slice_seen(d, &t);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FITS);
	cr_expect_str_eq(text, "r:gpu-0 r:gpu-1");
	allocate(d, "one", first, 2);
	copy = dra_copy(d);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FULL);
	cr_expect(dra_claim_gone(d, "ns", "one"));
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FITS);
	cr_expect_eq(got(copy, &r, 1, NULL, text), DRA_FULL, "a copy has what was allocated");
	dra_free(copy);
	dra_slice_gone(d, "t");
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_NEVER);
	dra_free(d);
	gpuq_arena_done(&a);
}

/* AC-DRA-3: the first alternative that can be had. */
Test(dra, first_available)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra *d = ledger();
	struct dra_slice s = slice_of(&a, "s", 1, 2, 0, 1, "H100");
	struct dra_slice t = slice_of(&a, "t", 1, 2, 1, 2, "A100");
	const char *h100 = "device.attributes['gpu.nvidia.com'].productName == 'H100'";
	const char *a100 = "device.attributes['gpu.nvidia.com'].productName == 'A100'";
	const struct dra_option o[] = { option_of("alt1", 1, &h100), option_of("alt2", 2, &a100) };
	const struct dra_request r = { "r", o, 2 };
	static const char *const busy[] = { "gpu-0" };
	char text[256];

	dra_slice_seen(d, &s);
	dra_slice_seen(d, &t);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FITS);
	cr_expect_str_eq(text, "r/alt1:gpu-0");
	allocate(d, "busy", busy, 1);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FITS);
	cr_expect_str_eq(text, "r/alt2:gpu-1 r/alt2:gpu-2");
	dra_free(d);
	gpuq_arena_done(&a);
}

/* AC-DRA-5: devices that share a counter are not allocated beyond it, whoever has the other. */
Test(dra, shared_counters)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra *d = ledger();
	static const struct dra_counter total[] = { { "gpu-0", "memory-slice-2", 1000 },
						    { "gpu-0", "memory-slice-3", 1000 } };
	static const struct dra_counter takes[] = { { "gpu-0", "memory-slice-2", 1000 },
						    { "gpu-0", "memory-slice-3", 1000 } };
	struct dra_slice counters = { .name = "counters",
				      .driver = DRIVER,
				      .pool = "n1",
				      .generation = 1,
				      .n_slices = 2,
				      .node = "n1",
				      .counters = total,
				      .n_counters = N(total) };
	struct dra_slice s = slice_of(&a, "s", 1, 2, 0, 3, "A100");
	struct dra_device *devices = (struct dra_device *)(uintptr_t)s.devices;
	const struct dra_option o = option_of("", 1, NULL), both = option_of("", 2, NULL);
	const struct dra_request r = { "r", &o, 1 }, two = { "r", &both, 1 };
	static const char *const first[] = { "gpu-0" };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const struct dra_spec spec = { &r, NULL, 1, 0, "", "" };
	const struct dra_spec *specs[] = { &spec };
	struct dra_at *at;
	char text[256];
	size_t n;

	/* The first two want one slice, the third another. */
	for (int i = 0; i < 3; i++) {
		devices[i].consumes = &takes[i == 2];
		devices[i].n_consumes = 1;
	}
	dra_slice_seen(d, &s);
	dra_slice_seen(d, &counters);
	cr_expect_eq(got(d, &two, 1, NULL, text), DRA_FITS);
	cr_expect_str_eq(text, "r:gpu-0 r:gpu-2");
	n = devices_of(d, &mem, &at);
	cr_expect_eq(dra_fits(d, at, n, specs, 1, 10), 2);
	allocate(d, "mig", first, 1);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FITS);
	cr_expect_str_eq(text, "r:gpu-2");
	cr_expect_eq(got(d, &two, 1, NULL, text), DRA_FULL);
	/* A counter that the pool does not have is one of which there is nothing. */
	dra_slice_gone(d, "counters");
	s.n_slices = 1;
	dra_slice_seen(d, &s);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_NEVER);
	dra_free(d);
	gpuq_arena_done(&mem);
	gpuq_arena_done(&a);
}

/* AC-NV-5: MIG instances have positions: beside a 1g at 2 there is room for the 3g at 4, not for that at 0. */
Test(dra, positions_of_instances)
{
	static const char *const names[] = { "gpu-0-mig-1g.5gb-19-2", "gpu-0-mig-3g.20gb-9-0",
					     "gpu-0-mig-3g.20gb-9-4" };
	static const char *const slices[] = { "memory-slice-0", "memory-slice-1", "memory-slice-2",
					      "memory-slice-3", "memory-slice-4", "memory-slice-5",
					      "memory-slice-6", "memory-slice-7" };
	static const char *large[] = {
		"device.attributes['gpu.nvidia.com'].productName == '3g.20gb'"
	};
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra_slice ones = slice_of(&a, "ones", 1, 3, 0, 1, "1g.5gb");
	struct dra_slice threes = slice_of(&a, "threes", 1, 3, 0, 2, "3g.20gb");
	struct dra_device *one_ = (struct dra_device *)(uintptr_t)ones.devices,
			  *three = (struct dra_device *)(uintptr_t)threes.devices;
	struct dra_counter all[N(slices)];
	struct dra_slice counters = { .name = "counters",
				      .driver = DRIVER,
				      .pool = "n1",
				      .generation = 1,
				      .n_slices = 3,
				      .node = "n1",
				      .counters = all,
				      .n_counters = N(all) };
	const struct dra_option o = option_of("", 1, large), both = option_of("", 2, large);
	const struct dra_request r = { "r", &o, 1 }, two = { "r", &both, 1 };
	struct dra *d = ledger();
	char text[256];

	for (size_t i = 0; i < N(slices); i++)
		all[i] = (struct dra_counter){ "gpu-0", slices[i], 1000 };
	one_[0].name = names[0];
	one_[0].consumes = &all[2];
	one_[0].n_consumes = 1;
	for (uint32_t i = 0; i < 2; i++) {
		three[i].name = names[1 + i];
		three[i].consumes = &all[4 * (size_t)i];
		three[i].n_consumes = 4;
	}
	dra_slice_seen(d, &ones);
	dra_slice_seen(d, &threes);
	dra_slice_seen(d, &counters);
	cr_expect_eq(got(d, &two, 1, NULL, text), DRA_FITS);
	allocate(d, "small", &names[0], 1);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FITS);
	cr_expect_str_eq(text, "r:gpu-0-mig-3g.20gb-9-4");
	cr_expect_eq(got(d, &two, 1, NULL, text), DRA_FULL);
	allocate(d, "large", &names[2], 1);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FULL);
	dra_free(d);
	gpuq_arena_done(&a);
}

Test(dra, all_constraints_taints)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra *d = ledger();
	struct dra_slice s = slice_of(&a, "s", 1, 1, 0, 4, "A100");
	struct dra_device *devices = (struct dra_device *)(uintptr_t)s.devices;
	static const struct dra_taint taint = { "ill", "xid", "NoSchedule" };
	static const struct gpuq_toleration anyway = { "ill", true, "", "", -1 };
	struct dra_option o = option_of("", 2, NULL), all = option_of("", 0, NULL);
	const struct dra_request r = { "r", &o, 1 }, whole = { "r", &all, 1 };
	const struct dra_request pair[] = { { "a", &o, 1 }, { "b", &o, 1 } };
	const struct dra_constraint root = { "resource.kubernetes.io/pcieRoot", { NULL, 0 } };
	static const char *const first[] = { "gpu-0" };
	char text[256];

	all.all = true;
	dra_slice_seen(d, &s);
	cr_expect_eq(got(d, &r, 1, &root, text), DRA_FITS);
	cr_expect_str_eq(text, "r:gpu-0 r:gpu-2");
	cr_expect_eq(got(d, pair, 2, NULL, text), DRA_FITS);
	cr_expect_eq(got(d, pair, 2, &root, text), DRA_NEVER);
	cr_expect_eq(got(d, &whole, 1, NULL, text), DRA_FITS);
	cr_expect_str_eq(text, "r:gpu-0 r:gpu-1 r:gpu-2 r:gpu-3");
	allocate(d, "x", first, 1);
	cr_expect_eq(got(d, &whole, 1, NULL, text), DRA_FULL);
	cr_expect_eq(got(d, &r, 1, &root, text), DRA_FITS);
	cr_expect_str_eq(text, "r:gpu-1 r:gpu-3");
	devices[1].taints = &taint;
	devices[1].n_taints = 1;
	devices[2].odd = "allowMultipleAllocations";
	dra_slice_seen(d, &s);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FULL);
	o.tolerations = &anyway;
	o.n_tolerations = 1;
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FITS);
	cr_expect_str_eq(text, "r:gpu-1 r:gpu-3");
	dra_free(d);
	gpuq_arena_done(&a);
}

/* A claim whose class is missing, or says what gpuqd does not know, waits, and says for which object. */
Test(dra, waits)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra *d = dra_new();
	struct dra_slice s = slice_of(&a, "s", 1, 1, 0, 4, "A100");
	const char *text_ = "device.driver.matches('x')";
	struct dra_class c = { .name = "gpu", .extended = "", .config = "", .odd = "" };
	const struct dra_option o = option_of("", 1, NULL);
	const struct dra_request r = { "r", &o, 1 };
	char text[256];

	dra_slice_seen(d, &s);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_WAITS);
	cr_expect_str_eq(text, "DeviceClass gpu does not exist");
	c.selectors = one(&text_);
	dra_class_seen(d, &c);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_WAITS);
	cr_expect(strstr(text, "selector 1 of DeviceClass gpu: column 15:"), "%s", text);
	c.selectors.n = 0;
	c.odd = "spec.x";
	dra_class_seen(d, &c);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_WAITS);
	cr_expect_str_eq(text, "DeviceClass gpu: spec.x is not served");
	c.odd = "";
	dra_class_seen(d, &c);
	cr_expect_eq(got(d, &r, 1, NULL, text), DRA_FITS);
	dra_free(d);
	gpuq_arena_done(&a);
}
