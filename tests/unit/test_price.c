/* The price of a device and hour, and its notation. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/site/site.h"
#include "libgpuq/yaml.h"

static struct gpuq_arena mem;

static int read_site(const char *text, struct site **out, struct gpuq_err *err)
{
	struct gpuq_val **docs;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&mem, "site", text, strlen(text), &docs, &n, err), 0, "%s",
		     err->text);
	return site_read(docs[0], "site", 0, out, err);
}

static const char text[] = "version: 1\n"
			   "currency: EUR\n"
			   "flavors:\n"
			   "- {name: a100, price: {on_demand: 3.10, committed: 1.25}}\n"
			   "- {name: h100, price: 8}\n"
			   "- {name: old}\n"
			   "pools:\n"
			   "- {name: bought, billing: committed}\n"
			   "- {name: rented}\n"
			   "- {name: spot, spot: true, price: {on_demand: 0.8}}\n";

Test(price, of_pools_and_flavors)
{
	static const struct {
		const char *pool, *flavor;
		int64_t micro;
	} cases[] = {
		{ "rented", "a100", 3100000 },  { "bought", "a100", 1250000 },
		{ "bought", "h100", 8000000 },  { "spot", "h100", 800000 },
		{ "default", "h100", 8000000 }, { "rented", "old", 0 },
		{ "rented", "nobody", 0 },      { "spot", "nobody", 800000 },
		{ "rented", NULL, 0 },          { "spot", NULL, 800000 },
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct site *s;

	cr_assert_eq(read_site(text, &s, &err), 0, "%s", err.text);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(price_micro(s, cases[i].pool, cases[i].flavor), cases[i].micro,
			     "%s %s", cases[i].pool, cases[i].flavor);
	cr_expect_str_eq(s->currency, "EUR");
	site_free(s);
	gpuq_arena_done(&mem);
}

Test(price, is_refused_where_it_is_none)
{
	static const char *const wrong[] = {
		"{version: 1, flavors: [{name: a, price: -1}]}",
		"{version: 1, flavors: [{name: a, price: cheap}]}",
		"{version: 1, flavors: [{name: a, price: 1000001}]}",
		"{version: 1, flavors: [{name: a, price: {}}]}",
		"{version: 1, flavors: [{name: a, price: {spot: 1}}]}",
		"{version: 1, flavors: [{name: a, price: {committed: [1]}}]}",
		"{version: 1, pools: [{name: a, billing: maybe}]}",
		"{version: 1, currency: ''}",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct site *s = NULL;

		cr_expect_neq(read_site(wrong[i], &s, &err), 0, "%s", wrong[i]);
		cr_expect(strncmp(err.text, "site:1:", 7) == 0, "%s", err.text);
		site_free(s);
	}
	gpuq_arena_done(&mem);
}

Test(price, of_use_is_rounded_to_the_nearest_millionth)
{
	const int64_t hour = INT64_C(3600000000);

	cr_expect_eq(price_cost(3100000, 2 * hour), 6200000);
	cr_expect_eq(price_cost(1, hour / 2), 1);
	cr_expect_eq(price_cost(1, hour / 2 - 1), 0);
	cr_expect_eq(price_cost(0, hour), 0);
	cr_expect_eq(price_cost(5, 0), 0);
	cr_expect_eq(price_cost(INT64_C(1000000000000), INT64_MAX), INT64_MAX);
}

Test(price, is_written_as_it_is_read)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct price both = { true, { 3100000, 1250000 } }, none = { 0 };
	struct gpuq_val *v = price_custom.write(&mem, &both);
	struct gpuq_reader r = { .arena = &mem, .err = &err };
	struct price back = { 0 };

	cr_expect_null(price_custom.write(&mem, &none));
	cr_assert_eq(price_custom.read(&r, v, &back), 0, "%s", err.text);
	cr_expect(back.given);
	cr_expect_eq(back.micro[PRICE_ON_DEMAND], both.micro[PRICE_ON_DEMAND]);
	cr_expect_eq(back.micro[PRICE_COMMITTED], both.micro[PRICE_COMMITTED]);
	gpuq_arena_done(&mem);
}
