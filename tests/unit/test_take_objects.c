/* Additions of the cluster to pods, and restrictions of their nodes, as a snapshot shows them. */
#include <stdio.h>
#include <string.h>

#include "gpuqd/sched/sched.h"
#include "tests/unit/objects_rig.h"

Test(take_objects, defaults_of_a_namespace_count_for_its_queues_alone)
{
	struct model *m = world();
	struct object_fact f = fact(OBJECT_LIMITS, "home", "l");
	struct snapshot *s;

	f.cpu_milli = 3000;
	f.memory_bytes = 1 << 20;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
	cr_expect_neq(tell(m, EV_OBJECT_SEEN, &f), 0, "the same again is no news");
	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	cr_assert_null(submit_text(m, "{gpus: 1, command: [a], queue: far}", NULL));
	cr_assert_null(submit_text(m, "{gpus: 1, cpus: 1, command: [a]}", NULL));
	s = look(m);
	cr_expect_eq(group(s, 0)->cpu_milli, 3000);
	cr_expect_eq(group(s, 0)->memory_bytes, 1 << 20);
	cr_expect_eq(group(s, 1)->cpu_milli, 0);
	cr_expect_eq(group(s, 2)->cpu_milli, 1000, "its own word counts");
	snapshot_free(s);
	cr_assert_eq(tell(m, EV_OBJECT_GONE, &f), 0);
	s = look(m);
	cr_expect_eq(group(s, 0)->cpu_milli, 0);
	snapshot_free(s);
	model_free(m);
}

Test(take_objects, countable_resources_have_defaults_and_overhead_as_well)
{
	static const struct gpuq_amount disk = { "ephemeral-storage", 400 };
	static const struct gpuq_amount other[] = { { "ephemeral-storage", 300 },
						    { "rdma/hca", 1 } };
	static const struct gpuq_amount more = { "ephemeral-storage", 10 };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_strlist names;
	struct model *m = world();
	struct object_fact f = fact(OBJECT_LIMITS, "home", "l");
	struct snapshot *s;

	f.amounts = &disk;
	f.n_amounts = 1;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
	cr_expect_neq(tell(m, EV_OBJECT_SEEN, &f), 0, "the same again is no news");
	f.name = "other";
	f.amounts = other;
	f.n_amounts = 2;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
	f = fact(OBJECT_RUNTIME, "", "kata");
	f.amounts = &more;
	f.n_amounts = 1;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
	cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
	cr_assert_null(submit_text(m, "{resources: {ephemeral-storage: 7}, command: [a]}", NULL));
	cr_assert_null(submit_text(m, "{runtime_class: kata, command: [a]}", NULL));
	cr_assert_null(submit_text(m, "{command: [a], queue: far}", NULL));
	s = look(m);
	cr_assert_eq(group(s, 0)->n_resources, 1, "rdma/hca is written as 0 in its pods");
	cr_expect_eq(group(s, 0)->resources[0].count, 400, "the larger of two");
	cr_expect_eq(group(s, 1)->resources[0].count, 7, "its own word counts");
	cr_expect_eq(group(s, 2)->resources[0].count, 410);
	cr_expect_eq(group(s, 3)->n_resources, 0);
	snapshot_free(s);
	cr_assert(objects_defaults(m->objects, "", &mem, &names));
	cr_assert_eq(names.n, 1);
	cr_expect_str_eq(names.items[0], "rdma/hca");
	cr_assert(objects_defaults(m->objects, "away", &mem, &names));
	cr_expect_eq(names.n, 0);
	gpuq_arena_done(&mem);
	model_free(m);
}

/* Its pods would take them from others, and none of them would be theirs. */
Test(take_objects, a_runtime_whose_overhead_is_a_device_keeps_jobs_waiting)
{
	static const struct gpuq_amount devices[] = { { "example.com/npu", 1 }, { "rdma/hca", 2 } };
	struct model *m = world();
	struct object_fact f = fact(OBJECT_RUNTIME, "", "kata");
	struct snapshot *s;

	f.amounts = devices;
	f.n_amounts = 2;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
	cr_assert_null(submit_text(m, "{gpus: 1, runtime_class: kata, command: [a]}", NULL));
	s = look(m);
	cr_expect_eq(s->jobs[0].gate, GPUQ_R_NONE, "both are counted by name");
	cr_assert_eq(group(s, 0)->n_resources, 2);
	cr_expect_eq(group(s, 0)->resources[1].count, 2);
	snapshot_free(s);
	rig_site(m, "{version: 1, queues: [{name: default}, {name: far, namespace: away}], "
		    "flavors: [{name: npu, resource: example.com/npu}]}");
	s = look(m);
	cr_expect_eq(s->jobs[0].gate, GPUQ_R_CLUSTER_REFUSED);
	cr_expect_str_eq(s->jobs[0].gate_object, "runtimeclass/kata");
	snapshot_free(s);
	model_free(m);
}

Test(take_objects, a_runtime_adds_its_overhead_its_nodes_and_tolerations)
{
	static const char *value[] = { "yes" };
	struct gpuq_require all = { "kata", GPUQ_OP_IN, { value, 1 } };
	const struct gpuq_term term = { .all = &all, .n = 1 };
	const struct gpuq_toleration taint = { "sandbox", false, "strong", "NoSchedule", -1 };
	struct model *m = world();
	struct object_fact f = fact(OBJECT_RUNTIME, "", "kata");
	struct snapshot *s;

	f.cpu_milli = 250;
	f.required = &term;
	f.n_required = 1;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
	f.tolerations = &taint;
	f.n_tolerations = 1;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0, "a toleration more is news");
	cr_expect_neq(tell(m, EV_OBJECT_SEEN, &f), 0, "the same again is none");
	cr_assert_null(
		submit_text(m,
			    "{gpus: 1, cpus: 1, runtime_class: kata, tolerations: [{key: own, "
			    "operator: Exists}], command: [a]}",
			    NULL));
	s = look(m);
	cr_expect_eq(group(s, 0)->cpu_milli, 1250);
	cr_assert_eq(group(s, 0)->n_required, 1);
	cr_expect_str_eq(group(s, 0)->required[0].all[0].key, "kata");
	cr_assert_eq(group(s, 0)->n_tolerations, 2);
	cr_expect_str_eq(group(s, 0)->tolerations[0].key, "own");
	cr_expect_str_eq(group(s, 0)->tolerations[1].key, "sandbox");
	cr_expect_str_eq(group(s, 0)->tolerations[1].value, "strong");
	snapshot_free(s);
	model_free(m);
}

static int amounts(struct model *m, struct job_key job, int64_t cpu_milli, int64_t memory_bytes)
{
	struct event ev = { .type = EV_POD_AMOUNTS, .at_us = T0, .pod = { job, 0, 0 } };

	ev.amounts.cpu_milli = cpu_milli;
	ev.amounts.memory_bytes = memory_bytes;
	return model_apply(m, &ev, NULL);
}

Test(take_objects, what_a_pod_was_given_is_charged_and_expected_of_the_next)
{
	struct model *m = world();
	const struct pod *p;
	struct snapshot *s;

	cr_assert_null(submit_text(m, "{gpus: 1, cpus: 2, command: [a]}", NULL));
	cr_assert_null(submit_text(m, "{gpus: 1, cpus: 1, command: [a]}", NULL));
	cr_assert_eq(place(m, J1, 1, "n0", 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, J1, 0, 0, T0, 0, POD_FAULT_NONE), 0);
	p = model_find_pod(m, (struct pod_key){ J1, 0, 0 });
	cr_expect_not(pod_amounts_differ(m, p, 2000, 0));
	cr_expect_not(pod_amounts_differ(m, p, 500, 0), "the larger counts");
	cr_assert(pod_amounts_differ(m, p, 2750, 0));
	cr_assert_eq(amounts(m, J1, 2750, 0), 0);
	cr_expect_eq(p->cpu_milli, 2750);
	cr_expect_not(pod_amounts_differ(m, p, 2750, 0));
	s = look(m);
	cr_expect_eq(group(s, 0)->cpu_milli, 2750, "what runs");
	cr_expect_eq(group(s, 1)->cpu_milli, 1750, "what is to come");
	snapshot_free(s);
	/* A pod of the same queue without the addition: the last one tells. */
	cr_assert_eq(place(m, (struct job_key){ 2, -1 }, 1, "n1", 0), 0);
	cr_assert_eq(pod_event(m, EV_POD_CREATED, (struct job_key){ 2, -1 }, 0, 0, T0, 0,
			       POD_FAULT_NONE),
		     0);
	cr_assert_eq(amounts(m, (struct job_key){ 2, -1 }, 1000, 0), 0);
	cr_assert_null(submit_text(m, "{gpus: 1, cpus: 1, command: [a]}", NULL));
	s = look(m);
	cr_expect_eq(group(s, 0)->cpu_milli, 2750);
	cr_expect_eq(group(s, 1)->cpu_milli, 1000);
	cr_expect_eq(group(s, 2)->cpu_milli, 1000);
	snapshot_free(s);
	model_free(m);
}

/* The effect of a claim on a job that mounts it. */
static const struct {
	const char *name;
	bool there;
	enum claim_state state;
	const char *class_, *volume;
	bool volume_there;
	enum gpuq_reason gate;
	uint32_t n_required;
} mounts[] = {
	{ "missing", false, CLAIM_PENDING, "", "", false, GPUQ_R_VOLUME_NOT_FOUND, 0 },
	{ "lost", true, CLAIM_LOST, "", "v", true, GPUQ_R_VOLUME_NOT_FOUND, 0 },
	{ "bound to nothing", true, CLAIM_BOUND, "", "w", false, GPUQ_R_VOLUME_NOT_FOUND, 0 },
	{ "being bound", true, CLAIM_PENDING, "now", "", false, GPUQ_R_VOLUME_PENDING, 0 },
	{ "of no class", true, CLAIM_PENDING, "", "", false, GPUQ_R_VOLUME_PENDING, 0 },
	{ "bound at its first pod", true, CLAIM_PENDING, "late", "", false, GPUQ_R_NONE, 0 },
	{ "bound to a node", true, CLAIM_BOUND, "late", "v", true, GPUQ_R_NONE, 2 },
};

static struct model *with_volume(void)
{
	static const char *value[] = { "n1" };
	static struct gpuq_require all = { "kubernetes.io/hostname", GPUQ_OP_IN, { value, 1 } };
	static const struct gpuq_term terms[] = { { .all = &all, .n = 1 },
						  { .all = &all, .n = 1 } };
	struct model *m = world();
	struct object_fact v = fact(OBJECT_VOLUME, "", "v"), late = fact(OBJECT_CLASS, "", "late"),
			   now = fact(OBJECT_CLASS, "", "now");

	v.required = terms;
	v.n_required = 2;
	late.waits = true;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &v), 0);
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &late), 0);
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &now), 0);
	return m;
}

#define MOUNTS "{gpus: 1, volumes: [{claim: data, path: /d}], command: [a]}"

Test(take_objects, claims_hold_a_job_back_or_tie_it_to_nodes)
{
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		struct model *m = with_volume();
		struct object_fact c = fact(OBJECT_CLAIM, "home", "data");
		struct snapshot *s;

		c.state = mounts[i].state;
		c.class_ = mounts[i].class_;
		c.volume = mounts[i].volume;
		if (mounts[i].there)
			cr_assert_eq(tell(m, EV_OBJECT_SEEN, &c), 0);
		cr_assert_null(submit_text(m, MOUNTS, NULL));
		s = look(m);
		cr_expect_eq(s->jobs[0].gate, mounts[i].gate, "%s: %d", mounts[i].name,
			     s->jobs[0].gate);
		if (mounts[i].gate != GPUQ_R_NONE)
			cr_expect_str_eq(s->jobs[0].gate_object, "data", "%s", mounts[i].name);
		cr_expect_eq(group(s, 0)->n_required, mounts[i].n_required, "%s", mounts[i].name);
		snapshot_free(s);
		model_free(m);
	}
}

/* Return the number of the claim's license in the snapshot; SNAP_NONE: it has none. */
static uint32_t license(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_licenses; i++)
		if (strcmp(s->licenses[i].name, name) == 0)
			return i;
	return SNAP_NONE;
}

/* Return how many of it a start of job i takes. */
static int64_t takes(const struct snapshot *s, uint32_t i, uint32_t license)
{
	const struct snap_request *r = &s->requests[s->jobs[i].request];

	for (uint32_t k = 0; k < r->n_licenses; k++)
		if (r->licenses[k].license == license)
			return r->licenses[k].count;
	return 0;
}

Test(take_objects, a_claim_for_one_pod_is_taken_by_one_start_at_a_time)
{
	static const struct {
		const char *namespace_, *name;
		unsigned modes;
	} claims[] = { { "home", "data", ACCESS_ONE_POD },
		       { "away", "data", ACCESS_ONE_POD },
		       { "home-2", "data", ACCESS_ONE_POD },
		       { "home", "common", ACCESS_WRITE_ONCE } };
	static const char *const jobs[] = {
		MOUNTS,
		MOUNTS,
		"{gpus: 1, volumes: [{claim: data, path: /d}, {claim: data, path: /e}], pods: "
		"{min: "
		"1, max: 3}, command: [a]}",
		"{gpus: 1, queue: far, volumes: [{claim: data, path: /d}], command: [a]}",
		"{gpus: 1, volumes: [{claim: common, path: /d}], command: [a]}",
	};
	static const int64_t wanted[] = { 1, 1, 3, 0, 0 };
	struct model *m = world();
	const struct plan_reason *why;
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s;
	struct plan p;
	uint32_t home;

	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		struct object_fact c = fact(OBJECT_CLAIM, claims[i].namespace_, claims[i].name);

		c.modes = claims[i].modes;
		c.state = CLAIM_BOUND;
		c.volume = "v";
		cr_assert_eq(tell(m, EV_OBJECT_SEEN, &c), 0);
	}
	known(m, OBJECT_VOLUME, false);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		cr_assert_null(submit_text(m, jobs[i], NULL));
	s = look(m);
	cr_assert_eq(s->n_licenses, 3);
	home = license(s, "home/data");
	cr_assert_neq(home, SNAP_NONE);
	for (uint32_t i = 0; i < 5; i++)
		cr_expect_eq(takes(s, i, home), wanted[i], "job %u", i);
	cr_expect_eq(takes(s, 3, license(s, "away/data")), 1);
	cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0, "%s", err.text);
	cr_assert_geq(plan_reasons(s, &p, 1, &why), 1);
	cr_expect_eq(why->code, GPUQ_R_VOLUME_IN_USE);
	cr_expect_str_eq(why->object, "data");
	cr_expect_eq(plan_reasons(s, &p, 3, &why), 0);
	gpuq_arena_done(&mem);
	snapshot_free(s);
	known(m, OBJECT_CLAIM, false);
	s = look(m);
	cr_expect_eq(s->n_licenses, 0, "what may not be read restricts nothing");
	snapshot_free(s);
	model_free(m);
}

Test(take_objects, what_may_not_be_read_restricts_nothing)
{
	struct model *m = with_volume();
	struct snapshot *s;

	known(m, OBJECT_CLAIM, false);
	cr_assert_null(submit_text(m, MOUNTS, NULL));
	s = look(m);
	cr_expect_eq(s->jobs[0].gate, GPUQ_R_NONE);
	snapshot_free(s);
	model_free(m);
}

Test(take_objects, a_claim_that_may_not_be_bound_is_waited_for)
{
	struct model *m = with_volume();
	struct object_fact c = fact(OBJECT_CLAIM, "home", "data");
	struct snapshot *s;

	c.class_ = "late";
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &c), 0);
	known(m, OBJECT_BINDING, false);
	cr_assert_null(submit_text(m, MOUNTS, NULL));
	s = look(m);
	cr_expect_eq(s->jobs[0].gate, GPUQ_R_VOLUME_PENDING);
	snapshot_free(s);
	model_free(m);
}

Test(take_objects, terms_of_the_job_and_of_its_volumes_hold_together)
{
	struct model *m = with_volume();
	struct object_fact c = fact(OBJECT_CLAIM, "home", "data");
	const struct snap_group *g;
	struct snapshot *s;

	c.state = CLAIM_BOUND;
	c.volume = "v";
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &c), 0);
	cr_assert_null(submit_text(m,
				   "{gpus: 1, node_selector: {disk: ssd}, volumes: [{claim: data, "
				   "path: /d}, {claim: data, path: /e}], command: [a]}",
				   NULL));
	s = look(m);
	g = group(s, 0);
	cr_assert_eq(g->n_required, 2);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(g->required[i].n, 2);
		cr_expect_str_eq(g->required[i].all[0].key, "disk");
		cr_expect_str_eq(g->required[i].all[1].key, "kubernetes.io/hostname");
	}
	cr_expect_str_eq(g->volume, "claim data");
	cr_expect_str_eq(g->volume_label, "kubernetes.io/hostname");
	snapshot_free(s);
	model_free(m);
}

/* Two jobs of the same request, but for the claim; one that has a node by its volume alone does not count. */
Test(take_objects, a_claim_whose_volume_no_node_reaches_is_named)
{
	static const char *value[] = { "nowhere" };
	static struct gpuq_require all = { "zone", GPUQ_OP_IN, { value, 1 } };
	static const struct gpuq_term term = { .all = &all, .n = 1 };
	static const struct {
		const char *job, *object;
	} rows[] = {
		{ "{gpus: 1, volumes: [{claim: data, path: /d}], command: [a]}", "claim data" },
		{ "{gpus: 1, volumes: [{claim: other, path: /d}], command: [a]}", "claim other" },
		{ "{gpus: 1, nodes: [none], volumes: [{claim: data, path: /d}], command: [a]}",
		  "nodes" },
		{ "{gpus: 1, node_selector: {zone: there}, command: [a]}", "nodes" },
	};
	const size_t n = sizeof(rows) / sizeof(rows[0]);
	struct model *m = with_volume();
	struct object_fact v = fact(OBJECT_VOLUME, "", "far");
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct plan_reason *why;
	struct snapshot *s;
	struct plan p;

	v.required = &term;
	v.n_required = 1;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &v), 0);
	for (int i = 0; i < 2; i++) {
		struct object_fact c = fact(OBJECT_CLAIM, "home", i ? "other" : "data");

		c.state = CLAIM_BOUND;
		c.volume = "far";
		cr_assert_eq(tell(m, EV_OBJECT_SEEN, &c), 0);
	}
	for (size_t i = 0; i < n; i++)
		cr_assert_null(submit_text(m, rows[i].job, NULL));
	s = look(m);
	cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0, "%s", err.text);
	for (uint32_t i = 0; i < n; i++) {
		cr_assert_geq(plan_reasons(s, &p, i, &why), 1);
		cr_expect_eq(why->code, GPUQ_R_UNSATISFIABLE);
		cr_expect_str_eq(why->object, rows[i].object, "%u: %s", i, why->object);
	}
	gpuq_arena_done(&mem);
	snapshot_free(s);
	model_free(m);
}

/* A volume of the class of local ones, on one node. */
static void local_volume(struct model *m, const char *name, const char *const *node, int64_t size,
			 bool unclaimed)
{
	struct gpuq_require host = { "kubernetes.io/hostname",
				     GPUQ_OP_IN,
				     { (const char **)(uintptr_t)node, 1 } };
	const struct gpuq_term term = { .all = &host, .n = 1 };
	struct object_fact v = fact(OBJECT_VOLUME, "", name);

	v.class_ = "local";
	v.size_bytes = size;
	v.modes = ACCESS_WRITE_ONCE;
	v.unclaimed = unclaimed;
	v.required = &term;
	v.n_required = 1;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &v), 0);
}

Test(take_objects, a_claim_of_local_volumes_goes_where_one_is_free)
{
	static const char *const nodes[] = { "n0", "n1", "n2", "n3", "n4" };
	struct model *m = with_volume();
	struct object_fact c = fact(OBJECT_CLAIM, "home", "data"),
			   local = fact(OBJECT_CLASS, "", "local");
	const struct snap_group *g;
	struct snapshot *s;

	local.waits = local.makes_none = true;
	c.class_ = "local";
	c.size_bytes = 10;
	c.modes = ACCESS_WRITE_ONCE;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &local), 0);
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &c), 0);
	cr_assert_null(submit_text(m, MOUNTS, NULL));
	s = look(m);
	cr_expect_eq(s->jobs[0].gate, GPUQ_R_VOLUME_PENDING, "there is none: no device is held");
	snapshot_free(s);

	local_volume(m, "small", &nodes[0], 9, true);
	local_volume(m, "taken", &nodes[1], 10, false);
	local_volume(m, "one", &nodes[2], 10, true);
	local_volume(m, "two", &nodes[3], 20, true);
	s = look(m);
	g = group(s, 0);
	cr_expect_eq(s->jobs[0].gate, GPUQ_R_NONE);
	cr_assert_eq(g->n_required, 1, "%u", g->n_required);
	cr_assert_eq(g->required[0].n, 1);
	cr_assert_eq(g->required[0].all[0].values.n, 2);
	for (int i = 2; i < 4; i++)
		cr_expect(gpuq_strlist_has(&g->required[0].all[0].values, nodes[i]), "%s",
			  nodes[i]);
	snapshot_free(s);

	/* Chosen: until it is bound the job is tied to it. */
	c.volume = "two";
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &c), 0);
	s = look(m);
	g = group(s, 0);
	cr_assert_eq(g->n_required, 1);
	cr_assert_eq(g->required[0].all[0].values.n, 1);
	cr_expect_str_eq(g->required[0].all[0].values.items[0], "n3");
	snapshot_free(s);
	model_free(m);
}

Test(take_objects, a_class_says_where_its_volumes_are_made)
{
	static const char *zone = "a";
	struct gpuq_require all = { "zone", GPUQ_OP_IN, { &zone, 1 } };
	const struct gpuq_term term = { .all = &all, .n = 1 };
	struct model *m = with_volume();
	struct object_fact c = fact(OBJECT_CLAIM, "home", "data"),
			   zoned = fact(OBJECT_CLASS, "", "zoned");
	struct snapshot *s;

	zoned.waits = true;
	zoned.required = &term;
	zoned.n_required = 1;
	c.class_ = "zoned";
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &zoned), 0);
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &c), 0);
	cr_assert_null(submit_text(m, MOUNTS, NULL));
	s = look(m);
	cr_assert_eq(group(s, 0)->n_required, 1);
	cr_expect_str_eq(group(s, 0)->required[0].all[0].key, "zone");
	snapshot_free(s);
	model_free(m);
}

Test(take_objects, a_copy_is_the_same)
{
	struct model *m = with_volume();
	struct object_fact c = fact(OBJECT_CLAIM, "home", "data");
	const struct object_fact *volume;
	struct objects *copy;

	c.state = CLAIM_BOUND;
	c.volume = "v";
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &c), 0);
	objects_learn(m->objects, "default", 100, 200);
	copy = objects_copy(m->objects);
	cr_assert_eq(objects_claim(copy, "", "data", &volume), OBJECTS_CLAIM_TIED);
	cr_expect(objects_adds(copy, "default", ""));
	cr_expect_not(objects_adds(copy, "far", "away"));
	objects_free(copy);
	model_free(m);
}

/* A claim of one device of n0, for a pod of that name; taken: gpuqd allocated it. */
static void claim(struct model *m, const char *version, const char *device, const char *pod,
		  bool taken)
{
	const char *uids[] = { "uid" }, *names[] = { pod };
	const struct dra_result r = { "r", "gpu.nvidia.com", "n0", device };
	const struct dra_claim c = { .namespace_ = "others",
				     .name = "c",
				     .uid = "u",
				     .version = version,
				     .owner = "",
				     .owner_name = "",
				     .pod_claim = "",
				     .taken = taken,
				     .allocated = true,
				     .node = "",
				     .spec = { .config = "", .odd = "" },
				     .results = &r,
				     .n_results = 1,
				     .reserved = { uids, 1 },
				     .consumers = { names, 1 } };
	struct object_fact f = fact(OBJECT_DEVICE_CLAIM, "others", "c");

	f.dra.claim = &c;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
}

static uint32_t foreign_on(const struct model *m, uint32_t device)
{
	const struct node *n = model_find_node(m, "n0");

	return device < n->n_devices ? n->foreign_on[device].milli : 0;
}

/* The devices of claims of others are counted on their node, and not again with the pods. */
Test(take_objects, devices_of_claims_of_others)
{
	struct model *m = fresh(2, 0);
	const struct dra_device devices[] = { { .name = "gpu-0" }, { .name = "gpu-1" } };
	const struct dra_slice s = { .name = "s",
				     .driver = "gpu.nvidia.com",
				     .pool = "n0",
				     .generation = 1,
				     .n_slices = 1,
				     .node = "n0",
				     .devices = devices,
				     .n_devices = 2 };
	const struct pod_fact p = { .name = "p",
				    .uid = "uid",
				    .node = "n0",
				    .token = "",
				    .gpus_milli = 1000,
				    .phase = POD_RUNNING };
	struct object_fact slice = fact(OBJECT_SLICE, "", "s"),
			   gone = fact(OBJECT_DEVICE_CLAIM, "others", "c");
	struct event pod = { .type = EV_FOREIGN_SEEN, .at_us = T0, .foreign = &p };

	for (int k = 0; k < N_OBJECT_KINDS; k++)
		known(m, (enum object_kind)k, true);
	slice.dra.slice = &s;
	claim(m, "1", "gpu-1", "p", false);
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &slice), 0);
	cr_assert_eq(model_find_node(m, "n0")->n_devices, 2);
	cr_expect_eq(foreign_on(m, 1), 1000, "the claim was there before the slice");
	cr_assert_eq(model_apply(m, &pod, NULL), 0);
	cr_expect_eq(model_find_node(m, "n0")->foreign_gpus_milli, 0);
	cr_expect_eq(foreign_on(m, 0), 0);
	claim(m, "2", "gpu-0", "p", false);
	cr_expect_eq(foreign_on(m, 0), 1000);
	cr_expect_eq(foreign_on(m, 1), 0);
	claim(m, "3", "gpu-0", "gpuq-" CLUSTER "-1-0-0", true);
	cr_expect_eq(foreign_on(m, 0), 0, "its pod is gpuq's");
	claim(m, "4", "gpu-0", "p", true);
	cr_expect_eq(foreign_on(m, 0), 1000, "gpuqd allocated it once, another did since");
	cr_assert_eq(tell(m, EV_OBJECT_GONE, &gone), 0);
	cr_expect_eq(foreign_on(m, 0), 0);
	claim(m, "5", "gpu-0", "p", false);
	known(m, OBJECT_DEVICE_CLAIM, false);
	cr_expect_eq(foreign_on(m, 0), 0, "claims can no longer be read");
	model_free(m);
}

Test(take_objects, what_claims_lack_is_said_in_the_words_of_the_cluster)
{
	struct event ev = { .type = EV_OBJECTS_KNOWN, .at_us = T0 };
	struct model *m = world();
	struct objects *copy;
	const char *words;

	cr_expect_null(objects_claims_lack(m->objects, &words));
	ev.objects.kind = OBJECT_ALLOCATING;
	ev.objects.why = "cannot patch";
	ev.objects.home = "home";
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
	copy = objects_copy(m->objects);
	cr_expect_str_eq(objects_claims_lack(copy, &words), "resourceclaims/status");
	cr_expect_str_eq(words, "cannot patch");
	objects_free(copy);
	ev.objects.kind = OBJECT_SLICE;
	ev.objects.why = "cannot list";
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
	cr_expect_str_eq(objects_claims_lack(m->objects, &words), "resource.k8s.io");
	cr_expect_str_eq(words, "cannot list");
	known(m, OBJECT_SLICE, true);
	known(m, OBJECT_ALLOCATING, true);
	cr_expect_null(objects_claims_lack(m->objects, &words));
	model_free(m);
}

/* ---- devices of a plugin, and others by claims ---- */

#define NIC "nic.example.com"

static void see_class(struct model *m)
{
	const struct dra_class c = { .name = NIC, .extended = "", .config = "", .odd = "" };
	struct object_fact f = fact(OBJECT_DEVICE_CLASS, "", NIC);

	f.dra.class_ = &c;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
}

/* One network card of a node. */
static void see_card(struct model *m, const char *node)
{
	const struct dra_device card = { .name = "nic-0" };
	const struct dra_slice s = { .name = node,
				     .driver = NIC,
				     .pool = node,
				     .generation = 1,
				     .n_slices = 1,
				     .node = node,
				     .devices = &card,
				     .n_devices = 1 };
	struct object_fact f = fact(OBJECT_SLICE, "", node);

	f.dra.slice = &s;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
}

/* Run a cycle; return the name of the node on which the job starts, "" = it does not. */
static const char *starts_on(struct model *m)
{
	static char node[64];
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = look(m);
	struct plan plan;

	*node = '\0';
	cr_assert_eq(sched_cycle(s, &mem, &plan, &err), 0, "%s", err.text);
	for (uint32_t i = 0; i < plan.n_actions; i++)
		if (plan.actions[i].kind == PLAN_PLACE) {
			const struct plan_pod *p = &plan.pods[plan.actions[i].pod_first];

			snprintf(node, sizeof(node), "%s/%u", s->nodes[p->node].name, p->n_devices);
		}
	gpuq_arena_done(&mem);
	snapshot_free(s);
	return node;
}

Test(take_objects, devices_of_a_plugin_beside_a_claim_of_others)
{
	struct model *m = world();

	see_class(m);
	cr_assert_null(submit_text(m,
				   "{gpus: 3, claims: [{name: nic, class: " NIC
				   "}], claims_beside: true, command: [a]}",
				   NULL));
	cr_expect_str_eq(starts_on(m), "", "no node has a card");
	see_card(m, "n1");
	cr_expect_str_eq(starts_on(m), "n1/3");
	model_free(m);

	/* The node with the card has no devices left. */
	m = world();
	see_class(m);
	see_card(m, "n0");
	cr_assert_null(submit_text(m, "{gpus: 1, pods: 2, command: [a]}", NULL));
	cr_assert_eq(place(m, J1, 2, "n0", 0), 0);
	cr_assert_null(submit_text(m,
				   "{gpus: 3, claims: [{name: nic, class: " NIC
				   "}], claims_beside: true, command: [a]}",
				   NULL));
	cr_expect_str_eq(starts_on(m), "");
	see_card(m, "n1");
	cr_expect_str_eq(starts_on(m), "n1/3");
	model_free(m);
}

/* Claims whose devices count by now, though they did not when the job was submitted: they would be counted twice. */
Test(take_objects, a_claim_beside_whose_devices_count_by_now_waits)
{
	struct model *m = world();
	struct snapshot *s;

	see_class(m);
	see_card(m, "n1");
	rig_site(m, "{version: 1, queues: [{name: default}, {name: far, namespace: away}], "
		    "flavors: [{name: card, "
		    "device_class: " NIC
		    "}], pools: [{name: p, flavor: card, selector: {no: node}}]}");
	cr_assert_null(submit_text(m,
				   "{gpus: 3, claims: [{name: nic, class: " NIC
				   "}], claims_beside: true, command: [a]}",
				   NULL));
	s = look(m);
	cr_expect_eq(s->jobs[0].gate, GPUQ_R_DEVICE_CLAIM);
	cr_expect(strstr(s->jobs[0].gate_object, "it was submitted with 0") != NULL, "%s",
		  s->jobs[0].gate_object);
	snapshot_free(s);
	model_free(m);
}

/* ---- alternatives of claims ---- */
