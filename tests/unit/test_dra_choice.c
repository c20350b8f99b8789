/* Alternatives of claims: which combinations there are, in which order, and what each is charged. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/devices/dra/dra_choice.h"

static const struct gpuq_strlist none = { NULL, 0 };

/* A claim that gpuqd makes, of alternatives by class and count. */
static struct gpuq_claim claim_of(const char *name, struct gpuq_claim_option *first, size_t n)
{
	return (struct gpuq_claim){ .name = name, .first = first, .n_first = n };
}

static struct gpuq_claim_option option_of(const char *class_, int64_t count)
{
	return (struct gpuq_claim_option){ .class_ = (char *)(uintptr_t)class_, .count = count };
}

/* List the choices: "1:3 2:2 1-2:2". */
static const char *listed(const struct dra *d, const struct gpuq_claim *claims, size_t n,
			  bool mixes)
{
	static char text[512];
	struct dra_choice all[DRA_CHOICES_MAX];
	const uint32_t n_all = dra_choices(d, claims, n, "ns", &none, mixes, all);
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < n_all; i++) {
		const struct gpuq_alternatives is = all[i].is;
		char last[16] = "";

		if (is.last > is.first)
			snprintf(last, sizeof(last), "-%u", is.last);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u%s:%g", i ? " " : "",
					is.first, last, (double)all[i].milli / 1000);
	}
	return text;
}

Test(dra_choice, the_order_is_that_which_is_written)
{
	struct gpuq_claim_option first[] = { option_of("gpu.h100", 3), option_of("gpu.a100", 1),
					     option_of("gpu.l4", 2) };
	const struct gpuq_claim c = claim_of("a", first, 3);
	struct dra *d = dra_new();

	cr_expect_str_eq(listed(d, &c, 1, false), "1:3 2:1 3:2");
	cr_expect_str_eq(listed(d, &c, 1, true), "1:3 2:1 3:2", "pods have the same number");
	dra_free(d);
}

Test(dra_choice, pods_of_a_gang_may_mix_neighbours_of_the_same_number)
{
	struct gpuq_claim_option first[] = { option_of("gpu.h100", 2), option_of("gpu.a100", 2),
					     option_of("gpu.l4", 4), option_of("gpu.t4", 2) };
	const struct gpuq_claim c = claim_of("a", first, 4);
	struct dra *d = dra_new();

	cr_expect_str_eq(listed(d, &c, 1, false), "1:2 2:2 3:4 4:2");
	cr_expect_str_eq(listed(d, &c, 1, true), "1:2 2:2 1-2:2 3:4 4:2");
	dra_free(d);
}

Test(dra_choice, claims_are_combined_and_the_last_changes_first)
{
	struct gpuq_claim_option a[] = { option_of("gpu.h100", 4), option_of("gpu.a100", 2) };
	struct gpuq_claim_option b[] = { option_of("gpu.l4", 1), option_of("nic", 1) };
	struct gpuq_claim claims[] = { claim_of("a", a, 2),
				       { .name = "one", .class_ = "gpu.l4", .count = 1 },
				       claim_of("b", b, 2) };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct dra_spec specs[3], chosen[3];
	const struct dra_spec *list[3] = { &specs[0], &specs[1], &specs[2] };
	struct dra *d = dra_new();

	cr_expect_str_eq(listed(d, claims, 3, true), "1:6 2:5 3:4 4:3");
	a[0].count = 2;
	b[1].class_ = "gpu.t4";
	cr_expect_str_eq(listed(d, claims, 3, true), "1:4 2:4 3:4 4:4 0:4");
	cr_expect_str_eq(listed(d, claims, 3, false), "1:4 2:4 3:4 4:4");
	for (int i = 0; i < 3; i++)
		cr_assert(dra_spec_of(&mem, &claims[i], &specs[i]));
	cr_assert(dra_choose(list, 3, (struct gpuq_alternatives){ 3, 3 }, &mem, chosen));
	cr_expect_eq(chosen[0].requests[0].n_options, 1);
	cr_expect_str_eq(chosen[0].requests[0].options[0].name, "alt2");
	cr_expect_str_eq(chosen[1].requests[0].options[0].name, "");
	cr_expect_str_eq(chosen[2].requests[0].options[0].name, "alt1");
	cr_assert(dra_choose(list, 3, (struct gpuq_alternatives){ 0, 0 }, &mem, chosen));
	cr_expect_eq(chosen[0].requests[0].n_options, 2, "whichever");
	cr_expect_not(dra_choose(list, 3, (struct gpuq_alternatives){ 5, 5 }, &mem, chosen));
	cr_expect_not(dra_choose(list, 3, (struct gpuq_alternatives){ 1, 2 }, &mem, chosen));
	gpuq_arena_done(&mem);
	dra_free(d);
}

Test(dra_choice, what_cannot_be_decided_is_charged_as_the_largest)
{
	struct gpuq_claim_option some[] = { option_of("nic", 1), option_of("gpu.a100", 2) };
	struct gpuq_claim_option nics[] = { option_of("nic", 1), option_of("nic.fast", 2) };
	struct gpuq_claim_option all[] = { option_of("gpu.h100", 0), option_of("gpu.a100", 2) };
	struct gpuq_claim_option many[8];
	struct gpuq_claim c = claim_of("a", some, 2), three[3];
	struct dra *d = dra_new();

	cr_expect_str_eq(listed(d, &c, 1, false), "0:2", "with devices, or without any");
	c = claim_of("a", nics, 2);
	cr_expect_str_eq(listed(d, &c, 1, false), "", "none counts");
	all[0].all = true;
	c = claim_of("a", all, 2);
	cr_expect_str_eq(listed(d, &c, 1, false), "", "those of a node");
	for (int i = 0; i < 8; i++)
		many[i] = option_of("gpu.h100", 8 - i);
	for (int i = 0; i < 3; i++)
		three[i] = claim_of("a", many, 8);
	cr_expect_str_eq(listed(d, three, 2, false),
			 "1:16 2:15 3:14 4:13 5:12 6:11 7:10 8:9 9:15 10:14 11:13 12:12 13:11 "
			 "14:10 15:9 0:16");
	dra_free(d);
}

/* A claim of others with alternatives x and y, allocated to the one of that name. */
static void see_claim(struct dra *d, const char *got)
{
	const struct dra_option options[] = { { .name = "x", .class_ = "gpu.h100", .count = 3 },
					      { .name = "y", .class_ = "gpu.a100", .count = 2 } };
	const struct dra_request r = { "r", options, 2 };
	char name[32];
	const struct dra_result result = { name, "gpu", "n1", "gpu-0" };
	const struct dra_claim c = {
		.namespace_ = "ns",
		.name = "shared",
		.uid = "u",
		.version = got,
		.owner = "",
		.owner_name = "",
		.pod_claim = "",
		.node = "n1",
		.allocated = *got != '\0',
		.spec = { .requests = &r, .n_requests = 1, .config = "", .odd = "" },
		.results = &result,
		.n_results = *got != '\0'
	};

	snprintf(name, sizeof(name), "r/%s", got);
	cr_assert(dra_claim_seen(d, &c));
}

Test(dra_choice, a_claim_that_is_allocated_has_the_alternative_that_it_got)
{
	const struct gpuq_claim c = { .name = "a", .claim = "shared" };
	struct dra *d = dra_new();

	cr_expect_str_eq(listed(d, &c, 1, false), "", "it is not there");
	see_claim(d, "");
	cr_expect_str_eq(listed(d, &c, 1, false), "1:3 2:2");
	see_claim(d, "y");
	cr_expect_str_eq(listed(d, &c, 1, false), "2:2");
	dra_free(d);
}

/* ---- parts of a card ---- */

#define WORD(key, value)                                                                           \
	{                                                                                          \
		.name = "gpu.nvidia.com/" key, .text = value, .type = GPUQ_CEL_STRING              \
	}
#define INSTANCE(id, profile)                                                                      \
	{                                                                                          \
		.name = id, .n_words = 3, .words = (const struct dra_word[])                       \
		{                                                                                  \
			WORD("type", "mig"), WORD("parentUUID", "GPU-1"), WORD("profile", profile) \
		}                                                                                  \
	}

/* A card of which the driver lists the instances alone, beside a whole one. */
Test(dra_choice, instances_are_parts_of_one_card)
{
	const struct dra_device devices[] = { { .name = "gpu-0" },
					      INSTANCE("mig-0", "1g.10gb"),
					      INSTANCE("mig-1", "3g.40gb") };
	const struct dra_slice s = { .name = "s",
				     .driver = "gpu.nvidia.com",
				     .pool = "n",
				     .generation = 1,
				     .n_slices = 1,
				     .node = "n",
				     .devices = devices,
				     .n_devices = 3 };
	const struct dra_class c = { .name = "mig.x", .extended = "", .config = "", .odd = "" };
	const char *small[] = { "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'" };
	const char *any[] = { "device.attributes['gpu.nvidia.com'].type == 'mig'" };
	struct gpuq_claim claim = { .name = "a", .class_ = "mig.x", .selectors = { small, 1 } };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct dra *d = dra_new();
	struct dra_at *cards;
	const char *odd;

	cr_assert(dra_class_seen(d, &c));
	cr_expect_str_eq(listed(d, &claim, 1, false), "0:1",
			 "whole ones, as long as there is none");
	cr_assert(dra_slice_seen(d, &s));
	cr_expect_eq(dra_cards(d, "n", &none, &a, &cards, &odd), 2);
	cr_expect_str_eq(listed(d, &claim, 1, false), "0:0.142");
	claim.count = 2;
	cr_expect_str_eq(listed(d, &claim, 1, false), "0:0.284");
	claim.selectors.items = any;
	cr_expect_str_eq(listed(d, &claim, 1, false), "0:0.856", "the largest that does");
	claim.count = 3;
	cr_expect_str_eq(listed(d, &claim, 1, false), "0:3", "more than a card");
	claim.selectors.n = 0;
	claim.count = 1;
	cr_expect_str_eq(listed(d, &claim, 1, false), "0:1", "a whole one would do as well");
	dra_free(d);
	gpuq_arena_done(&a);
}
