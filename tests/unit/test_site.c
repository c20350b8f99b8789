/* A site file on top of a site: merging, pruning, differences, names, round trips; and access
 * rights. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/site/health.h"
#include "gpuqd/site/quotas.h"
#include "gpuqd/site/site_merge.h"
#include "gpuqd/site/walls.h"
#include "tests/prop/prop.h"
#include "tests/unit/site_yaml.h"
#include "gpuqd/flow/admit/apply_access.h"
#include "gpuqd/state/model.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

static struct site *site_of(const struct gpuq_val *v)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct site *s = NULL;

	cr_assert_eq(site_read(v, "f", 0, &s, &err), 0, "%s", err.text);
	return s;
}

static const char *json(const struct gpuq_val *v)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *text;

	gpuq_json_write(&b, v, 0);
	text = gpuq_arena_strdup(&mem, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return text;
}

/* ---- merging ---- */

#define OLD                                                                                        \
	"version: 1\nflavors: [{name: h}, {name: a}]\n"                                            \
	"queues: [{name: x, quota: 4, weight: 2}, {name: y, parent: x, users: [ann, bob]}]\n"

static const struct {
	const char *name, *file;
	bool prune;
	const char *diff; /* from the old site to the merged one; NULL = refused */
} merges[] = {
	{ "the same", OLD, false, "[]" },
	{ "the same, as all there is", OLD, true, "[]" },
	{ "nothing said", "version: 1", false, "[]" },
	{ "an empty list changes nothing", "version: 1\nqueues: []\nflavors: null", false, "[]" },
	{ "another order changes nothing",
	  "version: 1\nqueues: [{name: y, parent: x, users: [ann, bob]}, {weight: 2, quota: 4, "
	  "name: "
	  "x}]\nflavors: [{name: a}, {name: h}]",
	  true, "[]" },
	{ "one key", "version: 1\nqueues: [{name: x, weight: 3}]", false,
	  "[{\"object\":\"queue/"
	  "x\",\"action\":\"changed\",\"old\":{\"weight\":2},\"new\":{\"weight\":"
	  "3}}]" },
	{ "null takes a key away", "version: 1\nqueues: [{name: x, weight: null}]", false,
	  "[{\"object\":\"queue/x\",\"action\":\"changed\",\"old\":{\"weight\":2},\"new\":{}}]" },
	{ "a default said is no key", "version: 1\nqueues: [{name: x, weight: 1}]", false,
	  "[{\"object\":\"queue/x\",\"action\":\"changed\",\"old\":{\"weight\":2},\"new\":{}}]" },
	{ "a list is taken as a whole", "version: 1\nqueues: [{name: y, users: [bob]}]", false,
	  "[{\"object\":\"queue/y\",\"action\":\"changed\",\"old\":{\"users\":[\"ann\",\"bob\"]},"
	  "\"new\":{\"users\":[\"bob\"]}}]" },
	{ "new objects",
	  "version: 1\nusers: [{name: ann, groups: [g]}]\nqueues: [{name: 7, parent: x}]", false,
	  "[{\"object\":\"queue/7\",\"action\":\"added\",\"new\":{\"parent\":\"x\"}},"
	  "{\"object\":\"user/ann\",\"action\":\"added\",\"new\":{\"groups\":[\"g\"]}}]" },
	{ "what is not mentioned goes",
	  "version: 1\nqueues: [{name: x, weight: 2}]\nflavors: [{name: h}]", true,
	  "[{\"object\":\"flavor/a\",\"action\":\"removed\",\"old\":{}},"
	  "{\"object\":\"queue/x\",\"action\":\"changed\",\"old\":{\"quota\":4},\"new\":{}},"
	  "{\"object\":\"queue/"
	  "y\",\"action\":\"removed\",\"old\":{\"parent\":\"x\",\"users\":[\"ann\","
	  "\"bob\"]}}]" },
	{ "keys at the top", "version: 1\ntopology: [rack]", false,
	  "[{\"object\":\"site/"
	  "site\",\"action\":\"changed\",\"old\":{},\"new\":{\"topology\":[\"rack\"]}}]" },
	{ "no version", "queues: [{name: x, weight: 3}]", false, NULL },
	{ "a name for the second time", "version: 1\nqueues: [{name: x}, {name: x}]", false, NULL },
	{ "no name", "version: 1\nqueues: [{weight: 3}]", false, NULL },
	{ "no map", "version: 1\nqueues: [x]", false, NULL },
	{ "no list", "version: 1\nqueues: 3", false, NULL },
	{ "an unknown key", "version: 1\nqueues: [{name: x, weihgt: 3}]", false, NULL },
	{ "an unknown list", "version: 1\nqueus: [{name: x}]", false, NULL },
	{ "a circle with what is there", "version: 1\nqueues: [{name: x, parent: y}]", false,
	  NULL },
	{ "a parent that goes", "version: 1\nqueues: [{name: y, parent: x}]", true, NULL },
	{ "not a map", "[1, 2]", false, NULL },
};

ParameterizedTestParameters(site, merges)
{
	static size_t ix[sizeof(merges) / sizeof(merges[0])];
	const size_t n = sizeof(ix) / sizeof(ix[0]);

	for (size_t i = 0; i < n; i++)
		ix[i] = i;
	return cr_make_param_array(size_t, ix, n);
}

ParameterizedTest(size_t *ix, site, merges)
{
	struct site *old = site_of(parse(OLD)), *s = NULL;
	const char *before = json(old->tree);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *merged = NULL;
	int rc = site_merge(&mem, old->tree, parse(merges[*ix].file), merges[*ix].prune, &merged,
			    &err);

	cr_assert_eq(rc, 0);
	rc = site_read(merged, "f", 0, &s, &err);
	cr_assert_eq(rc == 0, merges[*ix].diff != NULL, "%s: %s", merges[*ix].name, err.text);
	if (rc == 0)
		cr_expect_str_eq(json(site_diff(&mem, old->tree, s->tree)), merges[*ix].diff, "%s",
				 merges[*ix].name);
	else
		cr_expect_eq(strncmp(err.text, "f", 1), 0, "%s", err.text);
	cr_expect_str_eq(json(old->tree), before, "%s: the old tree is left alone",
			 merges[*ix].name);
	site_free(s);
	site_free(old);
	gpuq_arena_done(&mem);
}

Test(site, refusals_have_the_place_in_the_file)
{
	struct site *old = site_of(parse(OLD)), *s = NULL;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *merged;

	cr_assert_eq(site_merge(&mem, old->tree,
				parse("version: 1\nqueues:\n- {name: x,\n   weihgt: 3}"), false,
				&merged, &err),
		     0);
	cr_assert_eq(site_read(merged, "f", 0, &s, &err), GPUQ_EINVAL);
	cr_expect(strncmp(err.text, "f:4:4: ", 7) == 0 && strstr(err.text, "weight"), "%s",
		  err.text);
	site_free(old);
	gpuq_arena_done(&mem);
}

Test(site, objects_are_removed_from_a_tree_of_their_own)
{
	struct site *old = site_of(parse(OLD)), *s;
	const char *before = json(old->tree);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *merged;

	cr_assert_eq(site_merge(&mem, old->tree, parse("version: 1"), false, &merged, &err), 0);
	cr_expect_eq(site_remove(merged, "queue/z", &err), GPUQ_ENOENT);
	cr_expect_eq(site_remove(merged, "flavour/h", &err), GPUQ_EINVAL);
	cr_expect_eq(site_remove(merged, "queue", &err), GPUQ_EINVAL);
	cr_expect_eq(site_remove(merged, "license/l", &err), GPUQ_ENOENT);
	cr_expect_eq(site_remove(merged, "queue/y", &err), 0);
	cr_expect_eq(site_remove(merged, "flavor/h", &err), 0);
	s = site_of(merged);
	cr_expect_eq(s->queues.n, 1);
	cr_expect_eq(s->flavors.n, 1);
	cr_expect_str_eq(json(old->tree), before);
	site_free(s);
	site_free(old);
	gpuq_arena_done(&mem);
}

/* A list that is not known as one would be taken as a whole: what a file does not mention of
 * it would go. Entries of health, inventory and volumes have no names: such a list is one setting. */
Test(site, every_list_is_keyed_by_name)
{
	for (const struct gpuq_field *f = site_schema.fields; f->key; f++) {
		const struct site_kind *k = site_kinds;

		while (k->list && strcmp(k->list, f->key) != 0)
			k++;
		cr_expect_eq(f->kind == GPUQ_K_OBJECTS && strcmp(f->key, "health") != 0 &&
				     strcmp(f->key, "inventory") != 0 &&
				     strcmp(f->key, "volumes") != 0,
			     k->list != NULL, "%s", f->key);
	}
}

/* ---- names ---- */

static const struct {
	const char *text, *says; /* NULL = fine */
} named[] = {
	{ "version: 1\nflavors: [{name: h}]\nqueues: [{name: q, quota: {h: 1, default: 2}, "
	  "flavors: [h]}]",
	  NULL },
	{ "version: 1\nflavors: [{name: h100}]\nqueues: [{name: q, quota: {h10: 1}}]",
	  "f:3:33: queues[q].quota.h10: no flavor is named h10 (did you mean h100?)" },
	{ "version: 1\nqueues: [{name: q, limit: {x: 1}}]", "limit" },
	{ "version: 1\nqueues: [{name: q, lend: {x: 1}}]", "lend" },
	{ "version: 1\nqueues: [{name: q, flavors: [x]}]", "flavors" },
	{ "version: 1\nusers: [{name: u, default_queue: q}]", "users[u].default_queue" },
	{ "version: 1\nreservations: [{name: r, start: now, duration: 1h, gpus: 1, queue: q}]",
	  "queue" },
	{ "version: 1\nreservations: [{name: r, start: now, duration: 1h, pool: p}]", "pool" },
	{ "version: 1\nreservations: [{name: r, start: now, duration: 1h, gpus: 1, flavor: p}]",
	  "flavor" },
	{ "version: 1\nreservations: [{name: r, start: now, duration: 1h, gpus: 1, flags: "
	  "[dialy]}]",
	  "flags" },
	{ "version: 1\nreservations: [{name: r, start: now, duration: 1h, gpus: 1, flags: "
	  "[daily]}]",
	  NULL },
	{ "version: 1\nreservations: [{name: r, start: now, duration: 1h}]", "gpus" },
	{ "version: 1\nreservations: [{name: r, start: now, duration: 0, gpus: 1}]", "duration" },
	{ "version: 1\nqueues: [{name: q}]\nusers: [{name: u, default_queue: q}]", NULL },
	{ "version: 1\nreservations: [{name: r, start: now, duration: 1h, gpus: 1, nodes: [n]}]",
	  "gpus" },
};

Test(site, names_of_what_is_not_there)
{
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_val *v = parse(named[i].text);
		struct site *s = site_of(v);
		int rc = site_check_names(s, v, "f", &err);

		cr_expect_eq(rc, named[i].says ? GPUQ_EINVAL : 0, "%s", named[i].text);
		cr_expect(!named[i].says || strstr(err.text, named[i].says), "%s", err.text);
		site_free(s);
	}
	gpuq_arena_done(&mem);
}

Test(site, reservations_recur)
{
	const int64_t day = 86400 * GPUQ_US_PER_S, hour = 3600 * GPUQ_US_PER_S;
	const char *daily = "daily", *weekly = "weekly";
	struct site_reservation r = { .start_us = 10 * day, .duration_us = hour };

	cr_expect_eq(site_reservation_start(&r, 12 * day), 10 * day);
	r.flags = (struct gpuq_strlist){ &daily, 1 };
	cr_expect_eq(site_reservation_start(&r, 5 * day), 10 * day);
	cr_expect_eq(site_reservation_start(&r, 10 * day + hour - 1), 10 * day);
	cr_expect_eq(site_reservation_start(&r, 10 * day + hour), 11 * day);
	cr_expect_eq(site_reservation_start(&r, 12 * day), 12 * day);
	cr_expect_eq(site_reservation_start(&r, 12 * day + 2 * hour), 13 * day);
	r.flags.items = &weekly;
	cr_expect_eq(site_reservation_start(&r, 12 * day), 17 * day);
}

/* ---- what is exported and applied changes nothing ---- */

static uint32_t seed;

static uint32_t draw(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void add(struct gpuq_buf *b, const char *key, const char *const *values, uint32_t n)
{
	if (draw(3) == 0)
		gpuq_buf_printf(b, ", %s: %s", key, values[draw(n)]);
}

#define ADD(key_, ...)                                                                             \
	do {                                                                                       \
		static const char *const values[] = { __VA_ARGS__ };                               \
		add(b, key_, values, sizeof(values) / sizeof(values[0]));                          \
	} while (0)

static void random_queue(struct gpuq_buf *b, uint32_t i)
{
	gpuq_buf_printf(b, "- {name: q%u", 90 - i);
	if (i && draw(2))
		gpuq_buf_printf(b, ", parent: q%u", 90 - draw(i));
	ADD("quota", "4", "0", "2.5", "unlimited", "{f0: 3}", "{f0: unlimited, default: 0.125}");
	ADD("limit", "8", "unlimited", "{f0: 7.75}");
	ADD("lend", "0", "{f0: 1}");
	ADD("weight", "1", "0", "2.5", "100");
	ADD("rank", "-3", "0", "7");
	ADD("reclaim", "any", "never", "lower");
	ADD("preempt", "lower", "lower_or_newer", "never");
	ADD("reclaim_min_runtime", "10m", "0", "1d12h", "90");
	ADD("budget", "{gpu_minutes: 100}", "{gpu_minutes: 0, period: month, mode: hard}",
	    "{gpu_minutes: 5, half_life: 7d}");
	ADD("namespace", "vision", "'123'");
	ADD("image", "registry.example/base:1", "'yes'", "\"a b: c\"", "'1.0'");
	ADD("users", "[ann]", "[ann, 'null', '7']", "[]");
	ADD("managers", "[eve]");
	ADD("qos", "[normal]", "[z, normal]");
	ADD("flavors", "[f0, default]");
	ADD("default_time", "1h", "30");
	ADD("max_time", "7d", "unlimited");
	ADD("max_running", "20", "{user: 20}", "{user: unlimited, queue: 0}");
	ADD("max_gpus", "{job: 8}", "7");
	ADD("node_loss", "strict", "available", "{mode: available, after: 90s}");
	ADD("stopped", "true", "false");
	ADD("pod_policy", "restricted");
	ADD("secrets", "any", "owner", "[team-*, x]");
	ADD("config_maps", "owner");
	ADD("volume_claims", "[data]");
	ADD("service_account_token", "true");
	ADD("accounting_finalizer", "true");
	gpuq_buf_adds(b, "}\n");
}

static void random_site(struct gpuq_buf *b)
{
	gpuq_buf_adds(b, "version: 1\n");
	if (draw(2))
		gpuq_buf_adds(b, "topology: [block, rack]\n");
	gpuq_buf_adds(b, "flavors:\n");
	for (uint32_t i = 0; i < 3; i++) {
		gpuq_buf_printf(b, "- {name: f%u", i);
		ADD("match", "{product: 'A*'}", "{memory: 10Gi}", "{product: '1', memory: 1.5Gi}",
		    "{}");
		ADD("rate", "1", "0.5", "0", "3");
		gpuq_buf_adds(b, "}\n");
	}
	gpuq_buf_adds(b, "pools:\n");
	for (uint32_t i = 0; i < 2; i++) {
		gpuq_buf_printf(b, "- {name: p%u", 5 - i);
		ADD("selector", "{a/b: c}", "{x: '1', y: 'true'}", "{}");
		ADD("flavor", "f1");
		ADD("sharing", "auto", "whole", "mig", "mps", "gpu-manager");
		ADD("placement", "pack", "spread");
		ADD("spot", "true", "false");
		ADD("provisioning", "{kind: none}", "{}");
		gpuq_buf_adds(b, "}\n");
	}
	gpuq_buf_adds(b, "qos:\n- {name: z");
	ADD("priority", "5", "-1000000000");
	ADD("preemptible", "true", "false");
	ADD("max_time", "8h", "unlimited");
	ADD("usage_factor", "0", "1", "1.5");
	ADD("max_gpus", "{user: 3}");
	gpuq_buf_adds(b, "}\nqueues:\n");
	for (uint32_t i = 0, n = 1 + draw(8); i < n; i++)
		random_queue(b, i);
	gpuq_buf_adds(b, "users:\n- {name: ann");
	ADD("groups", "[ml, x]");
	ADD("default_queue", "q90");
	ADD("max_gpus", "3", "unlimited");
	gpuq_buf_adds(b, "}\ngroups:\n- {name: ml");
	ADD("max_running", "3", "unlimited", "0");
	gpuq_buf_adds(b, "}\nlicenses:\n- {name: l, count: 0}\nreservations:\n"
			 "- {name: r, start: 2026-12-01T09:00:00.000123Z, duration: 4h");
	ADD("gpus", "16", "0.5");
	ADD("nodes", "[n1, '2']");
	ADD("queue", "q90");
	ADD("flags", "[maintenance, weekly]");
	ADD("every", "1d", "0");
	ADD("release_after", "20");
	gpuq_buf_adds(b, "}\n");
}

Test(site, what_is_exported_changes_nothing_when_applied)
{
	for (uint32_t i = 1; i <= 400; i++) {
		struct gpuq_buf text = GPUQ_BUF_INIT;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_val *merged, *exported;
		struct site *s, *again;

		seed = i;
		random_site(&text);
		s = site_of(parse(gpuq_buf_str(&text)));
		exported = site_sorted(&mem, s->tree);
		cr_assert_str_eq(yaml(site_sorted(&mem, exported)), yaml(exported));
		for (int prune = 0; prune < 2; prune++) {
			cr_assert_eq(site_merge(&mem, s->tree, parse(yaml(exported)), prune,
						&merged, &err),
				     0);
			again = site_of(merged);
			cr_assert_str_eq(json(site_diff(&mem, s->tree, again->tree)), "[]",
					 "seed %u:\n%s", i, gpuq_buf_str(&text));
			cr_assert_str_eq(json(again->tree), json(s->tree), "seed %u", i);
			site_free(again);
		}
		/* Nor does the first text, which says defaults too and other forms of the same. */
		cr_assert_eq(
			site_merge(&mem, s->tree, parse(gpuq_buf_str(&text)), true, &merged, &err),
			0);
		again = site_of(merged);
		cr_assert_str_eq(json(site_diff(&mem, s->tree, again->tree)), "[]", "seed %u", i);
		site_free(again);
		site_free(s);
		gpuq_buf_done(&text);
		gpuq_arena_done(&mem);
	}
}

/* ---- pools that grow ---- */

#define POOL(text) "version: 1\npools: [{name: p, selector: {a: b}, flavor: default, " text "}]"
#define GROWS(text) POOL("provisioning: {kind: request, class: c.x, max_nodes: 2, " text "}")
#define SHAPE "machine: {gpus: 8, labels: {a: b}}"

static const struct {
	const char *text, *error; /* NULL = it is read */
} pools_that_grow[] = {
	{ POOL("provisioning: {kind: none}"), NULL },
	{ POOL("provisioning: null"), NULL },
	{ POOL("provisioning: {class: x, max_nodes: 3, parameters: {a: 1}}"),
	  "f:2:76: pools[p].provisioning.class: has no effect with kind none, which is the "
	  "default" },
	{ POOL("provisioning: {kind: nona}"),
	  "f:2:75: pools[p].provisioning.kind: 'nona' is not known; did you mean 'none'?" },
	{ POOL("provisioning: {kind: request, max_nodes: 1, " SHAPE "}"),
	  "f:2:68: pools[p].provisioning.class: missing; kind request needs it, for example "
	  "queued-provisioning.gke.io" },
	{ POOL("provisioning: {kind: autoscaler, class: x, max_nodes: 1, " SHAPE "}"),
	  "f:2:94: pools[p].provisioning.class: has no effect with kind autoscaler" },
	{ POOL("provisioning: {kind: autoscaler, max_nodes: 1}"),
	  "f:2:68: pools[p].provisioning.machine: missing; a pool that grows needs it, {gpus: N} "
	  "at least" },
	{ POOL("provisioning: {kind: autoscaler, " SHAPE "}"),
	  "f:2:68: pools[p].provisioning.max_nodes: missing; a pool that grows needs it" },
	{ POOL("provisioning: {kind: request, class: c, max_nodes: 0, " SHAPE "}"),
	  "f:2:105: pools[p].provisioning.max_nodes: expected 1 to 5000, found 0" },
	{ GROWS("machine: {labels: {a: b}}"),
	  "f:2:119: pools[p].provisioning.machine.gpus: missing; a machine needs it (an integer)" },
	{ GROWS("machine: {gpus: 0}"),
	  "f:2:126: pools[p].provisioning.machine.gpus: expected 1 to 1024, found 0" },
	{ GROWS("machine: {gpus: 8, gpu: 1}"),
	  "f:2:129: pools[p].provisioning.machine.gpu: unknown key; did you mean 'gpus'?" },
	{ GROWS("machine: {gpus: 8, labels: {a: c}}"),
	  "f:2:137: pools[p].provisioning.machine.labels: expected a: b as well, which the pool's "
	  "selector asks for" },
	{ GROWS("machine: {gpus: 8, resources: {nvidia.com/gpu: 1}}"),
	  "f:2:157: pools[p].provisioning.machine.resources.nvidia.com/gpu: expected a resource "
	  "that is counted, such as rdma/hca or hugepages-2Mi; devices, cpus and memory have keys "
	  "of their own" },
	{ GROWS("machine: {gpus: 8, resources: {rdma/hca: x}}"),
	  "f:2:151: pools[p].provisioning.machine.resources.rdma/hca: expected an amount above 0" },
	{ GROWS("machine: {gpus: 8, taints: [{key: k, effect: Never}]}"),
	  "f:2:155: pools[p].provisioning.machine.taints[].effect: expected NoSchedule, NoExecute "
	  "or PreferNoSchedule, found 'Never'" },
	{ GROWS("max_run: 8d, " SHAPE), "f:2:119: pools[p].provisioning.max_run: expected 7d at "
					"most, and more than 0" },
	{ GROWS("max_run: 5m, " SHAPE), NULL },
	{ POOL("provisioning: {kind: request, class: queued-provisioning.gke.io, max_nodes: 2, "
	       "max_run: 10m, " SHAPE "}"),
	  "f:2:142: pools[p].provisioning.max_run: expected more than 10m, in which a node may "
	  "boot: "
	  "nodes of this class are taken away after that time" },
	{ GROWS("booking: 0, " SHAPE), "f:2:119: pools[p].provisioning.booking: expected more than "
				       "0" },
	{ GROWS("retry_base: 1h, " SHAPE), "f:2:68: pools[p].provisioning.retry_max: less than "
					   "retry_base" },
	{ GROWS("placeholders: false, " SHAPE),
	  "f:2:124: pools[p].provisioning.placeholders: has no effect with kind request" },
	{ GROWS("parameters: {maxRunDurationSeconds: 60}, " SHAPE),
	  "f:2:146: pools[p].provisioning.parameters.maxRunDurationSeconds: is set by gpuqd, from "
	  "the time limit of the job and max_run" },
	{ POOL("provisioning: {kind: request, class: c x, max_nodes: 1, " SHAPE "}"),
	  "f:2:91: pools[p].provisioning.class: expected a name of a-z, 0-9, '-' and '.', such as "
	  "queued-provisioning.gke.io" },
	{ GROWS("machine: {gpus: 8, labels: {a: b, c d: e}}"),
	  "f:2:149: pools[p].provisioning.machine.labels.c d: expected a label's key, such as team "
	  "or example.com/team" },
	{ GROWS("machine: {gpus: 8, labels: {a: b, c: d e}}"),
	  "f:2:147: pools[p].provisioning.machine.labels.c: expected a label's value: at most 63 "
	  "of "
	  "A-Z a-z 0-9 . _ -, letters or digits at both ends" },
	{ GROWS("machine: {gpus: 8, labels: {a: b}, taints: [{key: a b, effect: NoSchedule}]}"),
	  "f:2:160: pools[p].provisioning.machine.taints[].key: expected a label's key, such as "
	  "team or example.com/team" },
	{ GROWS("node_selector_from: {a b: Zone}, " SHAPE),
	  "f:2:136: pools[p].provisioning.node_selector_from.a b: expected a label's key, such as "
	  "team or example.com/team" },
	{ GROWS("maxnodes: 3, " SHAPE), "f:2:110: pools[p].provisioning.maxnodes: unknown key; did "
					"you mean 'max_nodes'?" },
	{ "version: 1\npools: [{name: p, selector: {a: b}, provisioning: {kind: request, class: c, "
	  "max_nodes: 1, " SHAPE "}}]",
	  "f:2:9: pools[p].flavor: missing; a pool that grows needs it" },
	{ "version: 1\npools: [{name: p, flavor: default, provisioning: {kind: request, class: c, "
	  "max_nodes: 1, " SHAPE "}}]",
	  "f:2:9: pools[p].selector: missing; a pool that grows needs it, to know its nodes" },
	{ GROWS(SHAPE), NULL },
	{ GROWS("min_nodes: 1, " SHAPE),
	  "f:2:121: pools[p].provisioning.min_nodes: has no effect with kind request" },
	{ POOL("provisioning: {kind: autoscaler, max_nodes: 2, min_nodes: 1, min_idle: 5m, "
	       "placeholders: false, " SHAPE "}"),
	  NULL },
	{ POOL("provisioning: {kind: autoscaler, max_nodes: 2, max_run: 1d, " SHAPE "}"),
	  "f:2:110: pools[p].provisioning.max_run: has no effect with kind autoscaler" },
	{ POOL("provisioning: {kind: autoscaler, max_nodes: 2, min_nodes: 3, " SHAPE "}"),
	  "f:2:112: pools[p].provisioning.min_nodes: more than max_nodes" },
	{ GROWS("placeholders: false, " SHAPE),
	  "f:2:124: pools[p].provisioning.placeholders: has no effect with kind request" },
	{ POOL("evictable: true, provisioning: {kind: autoscaler, max_nodes: 2, " SHAPE "}"),
	  "f:2:65: pools[p].evictable: has an effect on nodes that are requested: expected "
	  "provisioning of kind request" },
	{ POOL("evictable: true"),
	  "f:2:65: pools[p].evictable: has an effect on nodes that are requested: expected "
	  "provisioning of kind request" },
};

Test(site, a_pool_says_that_jobs_on_requested_nodes_may_be_preempted)
{
#define REQUESTS POOL("%s provisioning: {kind: request, class: c.x, max_nodes: 2, " SHAPE "}")
	static const char *const forms[] = { "evictable: true,", "evictable: false,", "" };

	for (size_t i = 0; i < 3; i++) {
		struct site *s;
		char text[1024];

		snprintf(text, sizeof(text), REQUESTS, forms[i]);
		s = site_of(parse(text));
		site_each(site_pool, s->pools, p)
			cr_expect_eq(site_pool_evictable(p), i == 0, "%s", text);
		site_free(s);
		gpuq_arena_done(&mem);
	}
}

Test(site, pools_that_grow_are_complete_or_refused)
{
	for (size_t i = 0; i < sizeof(pools_that_grow) / sizeof(pools_that_grow[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct site *s = NULL;
		const int rc = site_read(parse(pools_that_grow[i].text), "f", 0, &s, &err);

		if (pools_that_grow[i].error)
			cr_expect_str_eq(err.text, pools_that_grow[i].error, "%s",
					 pools_that_grow[i].text);
		cr_expect_eq(rc == 0, !pools_that_grow[i].error, "%s: %s", pools_that_grow[i].text,
			     err.text);
		site_free(s);
	}
	gpuq_arena_done(&mem);
}

/* It is said of replicas; what is stored is read as before. */
Test(site, replicas_are_whole_devices_only_where_there_are_replicas)
{
	static const struct {
		const char *text;
		int rc;
	} cases[] = {
		{ POOL("replicas_as_gpus: true"), 0 },
		{ POOL("sharing: time-slicing, replicas_as_gpus: true"), 0 },
		{ POOL("sharing: mps, replicas_as_gpus: true"), 0 },
		{ POOL("sharing: mig, replicas_as_gpus: false"), 0 },
		{ POOL("sharing: mig, replicas_as_gpus: true"), GPUQ_EINVAL },
		{ POOL("sharing: whole, replicas_as_gpus: true"), GPUQ_EINVAL },
		{ POOL("sharing: hami, replicas_as_gpus: true"), GPUQ_EINVAL },
		{ POOL("sharing: dra, replicas_as_gpus: true"), GPUQ_EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct site *s = NULL;

		cr_expect_eq(site_read(parse(cases[i].text), "f", 0, &s, &err), cases[i].rc,
			     "%s: %s", cases[i].text, err.text);
		if (s)
			site_free(s);
		s = NULL;
		cr_expect_eq(site_read_stored(parse(cases[i].text), 0, &s, &err), 0, "%s",
			     err.text);
		site_free(s);
	}
	gpuq_arena_done(&mem);
}

/* Earlier versions took any keys there. */
Test(site, stored_provisioning_without_effect_is_left_out)
{
	static const char *const texts[] = {
		POOL("provisioning: {class: x, max_nodes: 3, parameters: {a: [1, 2.5, null]}}"),
		POOL("provisioning: {kind: request, what: [ever]}"), POOL("provisioning: 7"),
		POOL("provisioning: {kind: autoscaler, max_nodes: 2}")
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct site *s = NULL;
		const struct site_pool *p;

		cr_assert_eq(site_read_stored(parse(texts[i]), 0, &s, &err), 0, "%s", err.text);
		p = s->pools.items;
		cr_expect(p->provisioning && p->provisioning->dropped, "%s", texts[i]);
		cr_expect_eq(p->provisioning->kind, PROVISION_NONE);
		/* An export of it can be applied. */
		cr_expect_null(strstr(yaml(s->tree), "provisioning"), "%s", yaml(s->tree));
		site_free(site_of(parse(yaml(s->tree))));
		site_free(s);
	}
	gpuq_arena_done(&mem);
}

/* ---- access rights ---- */

static int allowed(struct site *old, const struct site *new_, const struct gpuq_val *changes,
		   const char *who, struct gpuq_err *err)
{
	const struct model m = { .site = old };

	return apply_allowed(&m, new_, changes, who, 0, err);
}

#define REALM                                                                                      \
	"version: 1\nqueues:\n- {name: top}\n- {name: mine, parent: top, quota: 8, managers: "     \
	"[eve]}\n"                                                                                 \
	"- {name: a, parent: mine, quota: 4}\n- {name: b, parent: mine}\n- {name: a1, parent: "    \
	"a}\n"                                                                                     \
	"- {name: other, parent: top, quota: 8}\n- {name: poor, parent: top, managers: [eve]}\n"   \
	"- {name: p1, parent: poor}\n- {name: far, namespace: z, managers: [eve]}\n"

static const struct {
	const char *file; /* on top of REALM */
	bool allowed; /* for eve */
} acts[] = {
	{ "queues: [{name: a, quota: 6, weight: 2, max_gpus: 3}, {name: b, stopped: true}]", true },
	{ "queues: [{name: a1, quota: 2}, {name: a2, parent: a, users: [x]}]", true },
	{ "queues: [{name: mine, users: [x], closed: true, default_time: 1h}]", true },
	{ "queues: [{name: far, users: [eve, x]}]", true },
	/* Secrets of the namespace would be any. */
	{ "queues: [{name: far, users: [eve]}]", false },
	{ "queues: [{name: near, parent: far, users: [eve]}]", false },
	{ "queues: [{name: mine, image: i}]", false }, /* it would run in pods of others */
	{ "queues: [{name: a1, parent: b}]", true },
	{ "queues: [{name: mine, quota: 9}]", false },
	{ "queues: [{name: mine, weight: 9}]", false },
	{ "queues: [{name: mine, managers: [eve, x]}]", false },
	{ "queues: [{name: other, users: [x]}]", false },
	{ "queues: [{name: a, parent: other}]", false },
	{ "queues: [{name: a, parent: null}]", false },
	{ "queues: [{name: mine, parent: other}]", false },
	{ "queues: [{name: other, parent: mine}]", false },
	{ "queues: [{name: new}]", false },
	{ "queues: [{name: new, managers: [eve]}]", false },
	{ "queues: [{name: new, parent: other, managers: [eve]}]", false },
	{ "queues: [{name: a, namespace: kube-system}]", false },
	{ "queues: [{name: a, pod_policy: privileged}]", false },
	{ "queues: [{name: a, service_account: admin}]", false },
	{ "queues: [{name: a, reclaim_min_runtime: 1d}]", false },
	{ "queues: [{name: b2, parent: b, priority_class: high}]", false },
	{ "queues: [{name: p1, quota: 3}]", false },
	{ "queues: [{name: p1, weight: 3}]", true },
	{ "qos: [{name: q}]", false },
	{ "users: [{name: eve}]", false },
	{ "topology: [rack]", false },
	{ "reservations: [{name: r, start: now, duration: 1h, gpus: 1}]", false },
};

Test(site, a_manager_divides_what_he_has)
{
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		struct site *old = site_of(parse(REALM)), *s;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_val *merged, *changes;
		int rc;

		site_merge(&mem, old->tree,
			   parse(gpuq_arena_printf(&mem, "version: 1\n%s", acts[i].file)), false,
			   &merged, &err);
		s = site_of(merged);
		changes = site_diff(&mem, old->tree, s->tree);
		cr_assert_neq(changes->n, 0);
		rc = allowed(old, s, changes, "eve", &err);
		cr_expect_eq(rc, acts[i].allowed ? 0 : GPUQ_EPERM, "%s: %s", acts[i].file,
			     err.text);
		cr_expect_eq(allowed(old, s, changes, "ann", &err), GPUQ_EPERM);
		site_free(s);
		site_free(old);
		gpuq_arena_done(&mem);
	}
}

Test(site, a_manager_removes_what_is_below)
{
	static const struct {
		const char *object;
		bool allowed;
	} rows[] = { { "queue/a1", true }, { "queue/b", true }, { "queue/other", false } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct site *old = site_of(parse(REALM)), *s;
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_val *merged;

		site_merge(&mem, old->tree, parse("version: 1"), false, &merged, &err);
		cr_assert_eq(site_remove(merged, rows[i].object, &err), 0);
		s = site_of(merged);
		cr_expect_eq(allowed(old, s, site_diff(&mem, old->tree, s->tree), "eve", &err),
			     rows[i].allowed ? 0 : GPUQ_EPERM, "%s", rows[i].object);
		site_free(s);
		site_free(old);
		gpuq_arena_done(&mem);
	}
}

Test(site, what_running_jobs_do_not_feel)
{
	static const struct {
		const char *changes;
		bool may;
	} rows[] = {
		{ "[]", false },
		{ "[{object: queue/a, new: {users: [x], closed: true}}]", false },
		{ "[{object: user/ann, action: added}, {object: group/g, action: added}]", false },
		{ "[{object: queue/a, new: {users: [x]}, old: {quota: 3}}]", true },
		{ "[{object: queue/a, new: {weight: 2}}]", true },
		{ "[{object: queue/a, new: {a_key_to_come: 2}}]", true },
		{ "[{object: pool/a, new: {}}]", true },
		{ "[{object: reservation/a, new: {}}]", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(apply_may_evict(parse(rows[i].changes)), rows[i].may, "%s",
			     rows[i].changes);
	gpuq_arena_done(&mem);
}

/* ---- what pods may mount ---- */

static struct site_walls walls_of(const char *queues, const char *queue)
{
	char text[1024];
	struct site_walls w;
	struct site *s;

	snprintf(text, sizeof(text), "{version: 1, pod_policy: restricted, queues: [%s]}", queues);
	s = site_of(parse(text));
	walls_of_queue(s, queue, &w);
	w.secrets.globs.n = w.config_maps.globs.n = w.volume_claims.globs.n = 0;
	cr_expect_str_eq(w.pod_policy, "restricted");
	w.pod_policy = "";
	site_free(s);
	return w;
}

Test(walls, secrets_are_owner_where_a_namespace_has_several_users)
{
	static const char one[] = "{name: a, users: [ann], namespace: x}";
	static const char two[] = "{name: a, users: [ann], namespace: x}, {name: b, users: [bob], "
				  "namespace: x}";
	static const char apart[] = "{name: a, users: [ann], namespace: x}, {name: b, users: "
				    "[bob], namespace: y}";
	static const char same[] = "{name: t, users: [ann], namespace: x}, {name: a, parent: t}, "
				   "{name: b, parent: t}";

	cr_expect_eq(walls_of(one, "a").secrets.kind, WALL_ANY);
	cr_expect_eq(walls_of(two, "a").secrets.kind, WALL_OWNER);
	cr_expect_eq(walls_of(apart, "a").secrets.kind, WALL_ANY);
	cr_expect_eq(walls_of(same, "b").secrets.kind, WALL_ANY);
	cr_expect_eq(walls_of("{name: a}", "a").secrets.kind, WALL_OWNER);
	cr_expect_eq(walls_of("{name: a, groups: [ml]}", "a").secrets.kind, WALL_OWNER);
	cr_expect_eq(walls_of("{name: a}", "a").config_maps.kind, WALL_ANY);
	cr_expect_eq(walls_of("{name: a}", "a").volume_claims.kind, WALL_ANY);
	cr_expect_not(walls_of("{name: a}", "a").tokens);
}

/* Return what a queue has of itself or of the first above it that says so. */
static const struct site_queue *first_with(const struct site *s, const struct site_queue *q,
					   bool users)
{
	while (q && !(users ? q->users.n || q->groups.n : q->namespace_ != NULL))
		q = q->parent ? site_queue_find(s, q->parent) : NULL;
	return q;
}

static const char *user_of(const struct site *s, const struct site_queue *q)
{
	const struct site_queue *said = first_with(s, q, true);

	return said && said->users.n == 1 && !said->groups.n ? said->users.items[0] : "";
}

static const char *namespace_of(const struct site *s, const struct site_queue *q)
{
	const struct site_queue *said = first_with(s, q, false);

	return said ? said->namespace_ : "";
}

/* Queue by queue, against each other queue. */
static bool lets_in_one(const struct site *s, const struct site_queue *q)
{
	const char *user = user_of(s, q);

	site_each(site_queue, s->queues, other) {
		bool leaf = true;

		site_each(site_queue, s->queues, child)
			leaf &= !child->parent || strcmp(child->parent, other->name) != 0;
		if (leaf && strcmp(namespace_of(s, other), namespace_of(s, q)) == 0 &&
		    strcmp(user_of(s, other), user) != 0)
			return false;
	}
	return *user != 0;
}

Test(walls, one_user_is_that_of_all_queues_of_the_namespace)
{
	uint32_t n_one = 0, n_queues = 0;

	for (uint64_t k = 1; k <= 2000; k++) {
		static const char *const users[] = { "",
						     ", users: [ann]",
						     ", users: [ann]",
						     ", users: [bob]",
						     ", users: [ann, bob]",
						     ", groups: [ml]" };
		static const char *const spaces[] = { "", "", ", namespace: x", ", namespace: y" };
		char text[2048] = "{version: 1, queues: [";
		uint64_t r = k;
		struct site *s;

		for (uint64_t i = 0, n = prop_random(&r) % 8 + 1; i < n; i++) {
			const uint64_t up = prop_random(&r) % (i + 1);
			const size_t len = strlen(text);
			char parent[32] = "";

			if (up < i)
				snprintf(parent, sizeof(parent), ", parent: q%d", (int)up);
			snprintf(text + len, sizeof(text) - len, "{name: q%d%s%s%s}, ", (int)i,
				 parent, users[prop_random(&r) % 6], spaces[prop_random(&r) % 4]);
		}
		strcat(text, "]}");
		s = site_of(parse(text));
		site_each(site_queue, s->queues, q) {
			n_queues++;
			n_one += q->one_user;
			cr_assert_eq(q->one_user, lets_in_one(s, q), "seed %d: %s of %s", (int)seed,
				     q->name, text);
		}
		site_free(s);
	}
	cr_expect(n_one > 200 && n_queues - n_one > 200, "%u of %u", n_one, n_queues);
}

Test(walls, keys_are_those_of_the_queue_above)
{
	static const char tree[] = "{name: t, secrets: [a, b], service_account_token: true}, "
				   "{name: a, parent: t}, {name: b, parent: t, secrets: any}";

	cr_expect_eq(walls_of(tree, "a").secrets.kind, WALL_LIST);
	cr_expect(walls_of(tree, "a").tokens);
	cr_expect_eq(walls_of(tree, "b").secrets.kind, WALL_ANY);
}

Test(walls, wrong_forms_are_refused)
{
	static const char *const wrong[] = {
		"{version: 1, pod_policy: tight}",
		"{version: 1, queues: [{name: a, secrets: []}]}",
		"{version: 1, queues: [{name: a, secrets: [any, x]}]}",
		"{version: 1, queues: [{name: a, config_maps: [A]}]}",
		"{version: 1, queues: [{name: a, volume_claims: ['']}]}",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct site *s = NULL;

		cr_expect_eq(site_read(parse(wrong[i]), "f", 0, &s, &err), GPUQ_EINVAL, "%s",
			     wrong[i]);
		site_free(s);
	}
}

/* ---- the quota of `default` ---- */

static const struct {
	const char *queues;
	bool free, some_end;
	const char *upgraded; /* the quota of default in a database from before; NULL = as it was */
} defaults[] = {
	{ "[{name: default}]", true, false, "0" },
	{ "[{name: default, quota: unlimited}]", true, false, "" },
	{ "[{name: default}, {name: a}]", true, false, "0" },
	{ "[{name: default}, {name: a, quota: 0}]", true, false, "0" },
	{ "[{name: default}, {name: a, quota: 4}]", false, true, NULL },
	{ "[{name: default, quota: unlimited}, {name: a, quota: {x: 0, default: 2}}]", false, true,
	  "" },
	{ "[{name: default, quota: 3}, {name: a, shared_quota: 4}]", false, true, NULL },
	{ "[{name: default}, {name: a, quota: unlimited}]", false, false, NULL },
	{ "[{name: a, quota: 4}]", false, true, NULL },
};

Test(quotas, default_has_all_until_another_queue_has_a_quota)
{
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct site *s = site_of(parse(gpuq_arena_printf(
			&a, "version: 1\nflavors: [{name: x}]\nqueues: %s\n", defaults[i].queues)));
		const struct gpuq_val *v = quotas_upgrade(&a, s);
		const struct gpuq_val *q = v ? site_member(v, "queues", "default") : NULL;

		cr_expect_eq(quotas_default_is_free(s), defaults[i].free, "%s", defaults[i].queues);
		cr_expect_eq(quotas_some_end(s), defaults[i].some_end, "%s", defaults[i].queues);
		cr_expect_eq(v != NULL, defaults[i].upgraded != NULL, "%s", defaults[i].queues);
		if (q && *defaults[i].upgraded)
			cr_expect_eq(gpuq_get_int(q, "quota", -1), 0, "%s", defaults[i].queues);
		else if (q)
			cr_expect_null(gpuq_get(q, "quota"), "%s", defaults[i].queues);
		site_free(s);
		gpuq_arena_done(&a);
	}
}

/* ---- health of nodes ---- */

Test(health, knows_the_usual_conditions_and_taints)
{
	struct site *s = site_default();

	cr_expect_str_eq(health_of_condition(s, "GpuXidError", true),
			 "a GPU reported an Xid error");
	cr_expect_null(health_of_condition(s, "GpuXidError", false));
	cr_expect_not_null(health_of_condition(s, "KernelDeadlock", true));
	cr_expect_null(health_of_condition(s, "AcceleratedHardwareReady", true));
	cr_expect_not_null(health_of_condition(s, "AcceleratedHardwareReady", false));
	cr_expect_null(health_of_condition(s, "SomethingElse", true));
	cr_expect_not_null(health_of_taint(s, "node.kubernetes.io/not-ready"));
	cr_expect_null(health_of_taint(s, "nvidia.com/gpu"));
	cr_expect_null(health_of_taint(s, "gpuq.io/reserved"));
	site_free(s);
}

Test(health, a_site_adds_to_them_and_turns_them_off)
{
	struct site *s = site_of(parse("version: 1\n"
				       "health:\n"
				       "- {condition: 'Rack*', reason: the rack is hot}\n"
				       "- {condition: '!FansOk'}\n"
				       "- {condition: '!KernelDeadlock'}\n"
				       "- {taint: example.org/broken}\n"));

	cr_expect_str_eq(health_of_condition(s, "RackHot", true), "the rack is hot");
	cr_expect_str_eq(health_of_condition(s, "FansOk", false), "FansOk");
	cr_expect_null(health_of_condition(s, "FansOk", true));
	cr_expect_null(health_of_condition(s, "KernelDeadlock", true));
	cr_expect_str_eq(health_of_taint(s, "example.org/broken"), "example.org/broken");
	site_free(s);
}

Test(health, an_entry_has_one_of_the_two)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct site *s = NULL;

	cr_expect_lt(site_read(parse("version: 1\nhealth:\n- {reason: x}\n"), "f", 0, &s, &err), 0);
	cr_expect(strstr(err.text, "f:3:3") && strstr(err.text, "condition"), "%s", err.text);
}
