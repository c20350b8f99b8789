/* Idle nodes that get another layout of MIG instances: what a cycle decides (sched/cut.c). */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/sched/sched.h"

#define CARDS 2u

static const struct snap_layout layouts[] = { { "all-1g.10gb", "1g.10gb", 7 * CARDS, 0 },
					      { "all-2g.20gb", "2g.20gb", 3 * CARDS, 0 },
					      { "all-3g.40gb", "3g.40gb", 2 * CARDS, 0 } };

struct world {
	struct gpuq_arena mem;
	struct snapshot *s;
	struct plan plan;
	uint32_t flavor, queue, user, n_jobs;
};

static struct world begin(void)
{
	struct world w = { .mem = GPUQ_ARENA_INIT(0) };
	struct snap_config config;
	struct snap_queue queue;

	snapshot_config_default(&config);
	config.now_us = GPUQ_US_PER_S;
	w.s = snapshot_new(&config);
	w.flavor = snapshot_add_flavor(w.s, "a100", 0);
	w.user = snapshot_user(w.s, "ann");
	snapshot_queue_default(&queue);
	queue.name = "q";
	w.queue = snapshot_add_queue(w.s, &queue);
	return w;
}

/* n: of the layouts, from the first on. mig: instances that it has already; NULL = whole cards. */
static uint32_t node(struct world *w, const char *name, const char *pool, uint32_t from, uint32_t n,
		     const struct snap_mig *mig)
{
	struct snap_node node;

	snapshot_node_default(&node);
	node.name = name;
	node.pool = pool;
	node.flavor = w->flavor;
	node.n_devices = mig ? 0 : CARDS;
	node.mig = mig;
	node.n_mig = mig != NULL;
	node.isolation_whole = GPUQ_ISOLATION_EXCLUSIVE;
	node.layouts = layouts + from;
	node.n_layouts = n;
	return snapshot_add_node(w->s, &node);
}

static uint32_t request(struct world *w, const char *profile, uint32_t instances,
			const uint32_t *others, uint32_t n_others)
{
	const struct snap_group group = { .name = "main",
					  .pods_min = 1,
					  .pods_max = 1,
					  .gpus_milli = instances * INT64_C(1000),
					  .mig = profile };
	const struct snap_request r = {
		.groups = &group, .n_groups = 1, .others = others, .n_others = n_others
	};

	return snapshot_add_request(w->s, &r);
}

static void job(struct world *w, uint32_t request)
{
	struct snap_job j;

	snapshot_job_default(&j);
	j.key.id = ++w->n_jobs;
	j.queue = w->queue;
	j.user = w->user;
	j.request = request;
	snapshot_add_job(w->s, &j);
}

/* Return the layout that the plan gives the node; "" = none. */
static const char *cut_of(struct world *w, const char *name)
{
	const uint32_t n = snapshot_find_node(w->s, name);

	for (uint32_t i = 0; i < w->plan.n_cuts; i++)
		if (w->plan.cuts[i].node == n)
			return w->s->nodes[n].layouts[w->plan.cuts[i].layout].name;
	return "";
}

static void decide(struct world *w)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(snapshot_seal(w->s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(w->s, &w->mem, &w->plan, &err), 0, "%s", err.text);
}

static void end(struct world *w)
{
	snapshot_free(w->s);
	gpuq_arena_done(&w->mem);
}

Test(cut, one_idle_node_of_a_pool_for_a_profile_that_none_has)
{
	struct world w = begin();
	const struct plan_reason *why;

	node(&w, "n0", "p", 0, 3, NULL);
	node(&w, "n1", "p", 0, 3, NULL);
	job(&w, request(&w, "2g.20gb", 1, NULL, 0));
	job(&w, request(&w, "3g.40gb", 1, NULL, 0));
	decide(&w);
	cr_expect_eq(w.plan.n_cuts, 1u, "a pool has one node that is cut at a time");
	cr_expect_str_eq(cut_of(&w, "n0"), "all-2g.20gb");
	cr_assert_gt(plan_reasons(w.s, &w.plan, 0, &why), 0u);
	cr_expect_eq(why->code, GPUQ_R_MIG_LAYOUT);
	cr_expect_str_eq(why->object, "n0");
	end(&w);
}

Test(cut, not_the_one_that_was_given_the_layout_not_long_ago)
{
	struct snap_layout again[] = { layouts[0], layouts[1], layouts[2] };
	struct world w = begin();
	const struct plan_reason *why;

	again[1].again_us = 9 * GPUQ_US_PER_S;
	node(&w, "n0", "p", 0, 0, NULL);
	w.s->nodes[0].layouts = again;
	w.s->nodes[0].n_layouts = 3;
	job(&w, request(&w, "2g.20gb", 1, NULL, 0));
	decide(&w);
	cr_expect_eq(w.plan.n_cuts, 0u);
	cr_assert_gt(plan_reasons(w.s, &w.plan, 0, &why), 0u);
	cr_expect_eq(why->code, GPUQ_R_MIG_LAYOUT);
	cr_expect_str_eq(why->object, "n0");
	cr_expect_eq(why->unit, PLAN_TIME);
	cr_expect_eq(why->need, 9 * GPUQ_US_PER_S, "it is told when");
	end(&w);

	w = begin();
	node(&w, "n0", "p", 0, 0, NULL);
	node(&w, "n1", "p", 0, 3, NULL);
	w.s->nodes[0].layouts = again;
	w.s->nodes[0].n_layouts = 3;
	job(&w, request(&w, "2g.20gb", 1, NULL, 0));
	decide(&w);
	cr_expect_str_eq(cut_of(&w, "n0"), "");
	cr_expect_str_eq(cut_of(&w, "n1"), "all-2g.20gb", "another is");
	end(&w);
}

Test(cut, none_while_nodes_have_the_profile_though_all_are_taken)
{
	static const struct snap_mig has = { "2g.20gb", 1, 1, 0 };
	struct world w = begin();

	node(&w, "n0", "p", 0, 3, NULL);
	node(&w, "n1", "q", 0, 0, &has);
	job(&w, request(&w, "2g.20gb", 1, NULL, 0));
	decide(&w);
	cr_expect_eq(w.plan.n_cuts, 0u, "it waits for the one that is there");
	end(&w);
}

Test(cut, for_the_smallest_of_several_that_a_layout_gives)
{
	struct world w = begin();
	uint32_t others[2];

	node(&w, "n0", "p", 1, 2, NULL);
	others[0] = request(&w, "3g.40gb", 1, NULL, 0);
	others[1] = request(&w, "2g.20gb", 1, NULL, 0);
	job(&w, request(&w, "1g.10gb", 1, others, 2));
	decide(&w);
	cr_expect_str_eq(cut_of(&w, "n0"), "all-2g.20gb", "no layout of it gives the first");
	end(&w);
}

/* One job that takes 1g.10gb or 3g.40gb, and a node with one of the latter. */
static struct world with_a_choice(const struct snap_mig *has)
{
	struct world w = begin();
	uint32_t other;

	node(&w, "n0", "p", 0, 3, NULL);
	node(&w, "n1", "q", 0, 0, has);
	other = request(&w, "3g.40gb", 1, NULL, 0);
	job(&w, request(&w, "1g.10gb", 1, &other, 1));
	decide(&w);
	return w;
}

Test(cut, none_for_a_job_that_another_of_its_profiles_serves)
{
	static const struct snap_mig has = { "3g.40gb", 1, 0, 0 };
	struct world w = with_a_choice(&has);

	cr_expect_eq(w.plan.n_cuts, 0u);
	cr_assert_eq(w.plan.n_actions, 1u);
	cr_expect_eq(w.plan.actions[0].kind, PLAN_PLACE);
	cr_expect_str_eq(w.s->requests[w.plan.actions[0].request].groups[0].mig, "3g.40gb");
	end(&w);
}

Test(cut, none_for_a_job_that_another_of_its_profiles_would_serve)
{
	static const struct snap_mig has = { "3g.40gb", 1, 1, 0 };
	struct world w = with_a_choice(&has);

	cr_expect_eq(w.plan.n_cuts, 0u, "it waits for the instance that is taken");
	end(&w);
}

Test(cut, none_for_a_pod_that_no_layout_could_hold)
{
	struct world w = begin();

	node(&w, "n0", "p", 2, 1, NULL);
	job(&w, request(&w, "3g.40gb", 2 * CARDS + 1, NULL, 0));
	decide(&w);
	cr_expect_eq(w.plan.n_cuts, 0u);
	end(&w);
}
