/* Reservations and pools that grow which contradict themselves or others, in a file and in a stored site. */
#include <criterion/criterion.h>

#include "gpuqd/site/adoption.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"
#include "tests/unit/site_yaml.h"

/* Read it as a file; the error's text, "" = it is taken. */
static const char *refused(const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v = parse(text);
	struct site *s = NULL;
	int rc = site_read(v, "f", 0, &s, &err);

	if (rc == 0)
		rc = site_check_names(s, v, "f", &err);
	site_free(s);
	return rc ? gpuq_arena_strdup(&mem, err.text) : "";
}

static struct site *stored(const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct site *s = NULL;

	cr_assert_eq(site_read_stored(parse(text), 0, &s, &err), 0, "%s", err.text);
	return s;
}

/* ---- reservations ---- */

#define RESERVED(keys) "version: 1\nreservations: [{name: r, start: 2035-01-01, gpus: 1, " keys "}]"

static const struct {
	const char *text, *error;
} reservations[] = {
	{ RESERVED("duration: 25h, flags: [daily]"),
	  "f:2:64: reservations[r].duration: longer than a day, after which it repeats (daily)" },
	{ RESERVED("duration: 24h, flags: [daily]"), "" },
	{ RESERVED("duration: 8d, flags: [weekly]"),
	  "f:2:64: reservations[r].duration: longer than 7 days, after which it repeats (weekly)" },
	{ RESERVED("duration: 8d, flags: [recurring]"),
	  "f:2:64: reservations[r].duration: longer than 7 days, after which it repeats (weekly)" },
	{ RESERVED("duration: 7d, flags: [weekly]"), "" },
	{ RESERVED("duration: 8d, flags: [weekly], every: 9d"), "" },
	{ RESERVED("duration: 8d, every: 7d"),
	  "f:2:75: reservations[r].every: expected no less than its duration" },
	{ RESERVED("duration: 1h, flags: [daily, weekly]"),
	  "f:2:75: reservations[r].flags: expected either daily or weekly (also as recurring)" },
	{ RESERVED("duration: 1h, flags: [recurring, daily]"),
	  "f:2:75: reservations[r].flags: expected either daily or weekly (also as recurring)" },
	{ RESERVED("duration: 1h, release_after: 2h"),
	  "f:2:83: reservations[r].release_after: longer than its duration: nothing would be "
	  "released" },
	{ RESERVED("duration: 1h, release_after: 1h"), "" },
};

Test(site_rules, reservations_repeat_after_their_end_and_in_one_way)
{
	for (size_t i = 0; i < sizeof(reservations) / sizeof(reservations[0]); i++)
		cr_expect_str_eq(refused(reservations[i].text), reservations[i].error, "%s",
				 reservations[i].text);
	gpuq_arena_done(&mem);
}

Test(site_rules, stored_reservations_lose_what_had_no_effect)
{
	static const struct {
		const char *text;
		size_t flags; /* that stay */
		int64_t every_h, release_h;
	} cases[] = {
		{ RESERVED("duration: 25h, flags: [daily, maintenance], until: 2036-01-01"), 1, 0,
		  0 },
		{ RESERVED("duration: 1h, flags: [daily, weekly]"), 1, 24, 0 },
		{ RESERVED("duration: 8d, flags: [recurring]"), 0, 0, 0 },
		{ RESERVED("duration: 8d, flags: [weekly], every: 9d"), 1, 216, 0 },
		{ RESERVED("duration: 1h, flags: [weekly], release_after: 2h"), 1, 168, 1 },
	};
	const int64_t hour = 3600 * GPUQ_US_PER_S;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct site *s = stored(cases[i].text);
		const struct site_reservation *r = s->reservations.items;

		cr_expect_eq(r->flags.n, cases[i].flags, "%s", cases[i].text);
		cr_expect_eq(site_reservation_every_us(r), cases[i].every_h * hour, "%s",
			     cases[i].text);
		cr_expect_eq(r->release_after_us, cases[i].release_h * hour, "%s", cases[i].text);
		cr_expect_str_eq(refused(yaml(s->tree)), "");
		site_free(s);
	}
	gpuq_arena_done(&mem);
}

/* ---- pools that grow ---- */

#define POOL(name, selector, more, how, labels)                                                    \
	"- {name: " name ", selector: {" selector "}, flavor: default, " more                      \
	"provisioning: {kind: request, class: c.x, max_nodes: 2, " how                             \
	"machine: {gpus: 8, labels: {" labels "}}}}\n"
#define FIXED "- {name: first, selector: {a: b}}\n"
#define SITE "version: 1\npools:\n"

static const struct {
	const char *text, *error;
	bool dropped, evictable; /* of a stored site: its last pool */
} pools[] = {
	{ SITE FIXED POOL("p", "a: b, c: d", "", "", "a: b, c: d"),
	  "f:4:137: pools[p].provisioning.machine.labels: nodes with these labels belong to pool "
	  "first, whose selector they meet and which comes first: expected labels that it does not "
	  "select, or this pool before it",
	  true, false },
	{ SITE "- {name: all}\n" POOL("p", "c: d", "", "", "c: d"),
	  "f:4:131: pools[p].provisioning.machine.labels: nodes with these labels belong to pool "
	  "all, whose selector they meet and which comes first: expected labels that it does not "
	  "select, or this pool before it",
	  true, false },
	{ SITE POOL("p", "a: b, c: d", "", "", "a: b, c: d") FIXED, "", false, false },
	{ SITE FIXED POOL("p", "c: d", "", "", "c: d, a: x"), "", false, false },
	{ SITE POOL("p", "c: d", "evictable: true, ", "evictable: true, ", "c: d"),
	  "f:3:59: pools[p].evictable: said twice: its provisioning has it as well, expected one "
	  "of them",
	  false, true },
	{ SITE POOL("p", "c: d", "evictable: false, ", "evictable: true, ", "c: d"),
	  "f:3:59: pools[p].evictable: said twice: its provisioning has it as well, expected one "
	  "of them",
	  false, true },
	{ SITE POOL("p", "c: d", "evictable: true, ", "", "c: d"), "", false, true },
	{ SITE POOL("p", "c: d", "evictable: null, ", "evictable: true, ", "c: d"), "", false,
	  true },
	{ SITE POOL("p", "c: d", "", "", "c: d, nvidia.com/gpu.count: '4'"),
	  "f:3:160: pools[p].provisioning.machine.labels.nvidia.com/gpu.count: contradicts gpus, "
	  "which is 8",
	  true, false },
	{ SITE POOL("p", "c: d", "", "", "c: d, cloud.google.com/gke-accelerator-count: four"),
	  "f:3:178: "
	  "pools[p].provisioning.machine.labels.cloud.google.com/gke-accelerator-count: "
	  "contradicts gpus, which is 8",
	  true, false },
	{ SITE POOL("p", "c: d", "", "", "c: d, nvidia.com/gpu.count: '8'"), "", false, false },
	{ SITE POOL("p", "c: d", "", "",
		    "c: d, nvidia.com/gpu.count: '2', nvidia.com/gpu.replicas: '4'"),
	  "", false, false },
};

Test(site_rules, pools_that_grow_do_not_contradict_themselves_or_others)
{
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		cr_expect_str_eq(refused(pools[i].text), pools[i].error, "%s", pools[i].text);
	gpuq_arena_done(&mem);
}

/* Earlier versions took them. An export of what is stored can be applied. */
Test(site_rules, stored_pools_start)
{
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
		struct site *s = stored(pools[i].text);
		const struct site_pool *p = site_pool_find(s, "p");

		cr_expect_eq(p->provisioning->dropped, pools[i].dropped, "%s", pools[i].text);
		cr_expect_eq(site_pool_evictable(p), pools[i].evictable, "%s", pools[i].text);
		cr_expect_str_eq(refused(yaml(s->tree)), "");
		site_free(s);
	}
	gpuq_arena_done(&mem);
}

/* A node is in the first pool that selects it: an export in another order would mean another site. */
Test(site_rules, an_export_keeps_the_order_of_pools_and_flavors)
{
	struct site *s =
		stored("version: 1\nqueues: [{name: b}, {name: a}]\nflavors: [{name: y}, {name: "
		       "x}]\npools:\n" POOL("p", "a: b, c: d", "", "", "a: b, c: d") FIXED);
	const struct gpuq_val *v = site_sorted(&mem, s->tree);

	cr_expect_str_eq(gpuq_get_str(gpuq_get(v, "pools")->items[0], "name", ""), "p");
	cr_expect_str_eq(gpuq_get_str(gpuq_get(v, "flavors")->items[0], "name", ""), "y");
	cr_expect_str_eq(gpuq_get_str(gpuq_get(v, "queues")->items[0], "name", ""), "a");
	cr_expect_str_eq(refused(yaml(v)), "");
	site_free(s);
	gpuq_arena_done(&mem);
}

/* ---- device_class ---- */

Test(site_rules, a_device_class_is_a_name_of_kubernetes)
{
	static const char *const bad[] = {
		"version: 1\nflavors: [{name: a, device_class: 7}]",
		"version: 1\nflavors: [{name: a, device_class: A B}]",
		"version: 1\nflavors: [{name: a, device_class: gpu.}]",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct site *s = stored(bad[i]);

		cr_expect(strstr(refused(bad[i]),
				 "flavors[a].device_class: expected the name of a DeviceClass"),
			  "%s", refused(bad[i]));
		cr_expect_not_null(s->flavors.items);
		site_free(s);
	}
	cr_expect_str_eq(refused("version: 1\nflavors: [{name: a, device_class: gpu.nvidia.com}]"),
			 "");
	gpuq_arena_done(&mem);
}

/* ---- isolation ---- */

#define ISOLATION(word)                                                                            \
	"version: 1\nqueues: [{name: c, parent: b, isolation: " word "}, {name: b, parent: a}, "   \
	"{name: a, isolation: mig}]"

/* Less than a queue above it demands has no effect. */
Test(site_rules, isolation_of_a_queue_below)
{
	struct site *s = stored(ISOLATION("mps"));

	cr_expect(strstr(refused(ISOLATION("mps")),
			 "queues[c].isolation: expected at least mig, which the queue a above it "
			 "demands"),
		  "%s", refused(ISOLATION("mps")));
	cr_expect_str_eq(refused(ISOLATION("mig")), "");
	cr_expect_str_eq(refused(ISOLATION("exclusive")), "");
	cr_expect_str_eq(refused(ISOLATION("none")), "", "it says nothing");
	cr_expect_eq(site_queue_find(s, "c")->isolation, GPUQ_ISOLATION_MIG);
	cr_expect_str_eq(refused(yaml(s->tree)), "", "an export can be applied");
	site_free(s);
	gpuq_arena_done(&mem);
}

/* ---- gres ---- */

#define GRES "version: 1\ngres: {k: a.kubernetes.io/x}"

Test(site_rules, gres_of_names_that_pods_cannot_request)
{
	struct site *s = stored(GRES);

	cr_expect(strstr(refused(GRES), "gres.k: expected an extended resource"), "%s",
		  refused(GRES));
	cr_expect_str_eq(refused("version: 1\ngres: {k: acme.io/x}"), "");
	cr_expect_str_eq(gpuq_strmap_text(&s->gres, "k"), "a.kubernetes.io/x");
	site_free(s);
}

/* ---- adopt ---- */

#define ADOPT(queue, names)                                                                        \
	"version: 1\n"                                                                             \
	"queues: [{name: none}, {name: team" names                                                 \
	"}, {name: sub, parent: team}]\nadopt: {namespaces: [{name: team, queue: " queue "}]}"

Test(site_rules, pods_are_adopted_into_queues_of_their_namespace)
{
	struct site *s = stored(ADOPT("sub", ", namespace: other"));

	cr_expect_str_eq(refused(ADOPT("sub", ", namespace: team")), "");
	cr_expect_str_eq(refused(ADOPT("none", "")), "");
	cr_expect(strstr(refused(ADOPT("sub", ", namespace: other")),
			 "queue: expected a queue of namespace team: that of queue sub is other"),
		  "%s", refused(ADOPT("sub", ", namespace: other")));
	cr_expect_str_eq(adoption_of(s, "team")->queue, "sub");
	site_free(s);
}
