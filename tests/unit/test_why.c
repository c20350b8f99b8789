/* Changes that would start a pending job: tried on copies of a small cluster. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot_pack.h"
#include "gpuqd/flow/advise/why.h"
#include "libgpuq/units.h"

#define NOW (INT64_C(1700000000) * GPUQ_US_PER_S)
#define MIN (60 * GPUQ_US_PER_S)

/* Two nodes of 4 a100, one of 2 h100; queues lab and other. */
struct cluster {
	struct snapshot *s;
	uint32_t lab, other, user;
	struct gpuq_arena mem;
};

static uint32_t add_queue(struct snapshot *s, const char *name, int64_t limit_milli)
{
	struct snap_share shares[4];
	struct snap_queue q;

	snapshot_queue_default(&q);
	for (int i = 0; i < 4; i++)
		snapshot_share_default(&shares[i]);
	shares[0].limit = limit_milli;
	q.name = name;
	q.shares = shares;
	return snapshot_add_queue(s, &q);
}

static void add_node(struct snapshot *s, const char *name, uint32_t flavor, uint32_t n)
{
	struct snap_node node;

	snapshot_node_default(&node);
	node.name = name;
	node.pool = "default";
	node.flavor = flavor;
	node.cpu_milli = node.memory_bytes = node.pods = GPUQ_UNLIMITED;
	node.n_devices = n;
	snapshot_add_node(s, &node);
}

static struct cluster setup(int64_t lab_limit_milli)
{
	struct cluster c = { .mem = GPUQ_ARENA_INIT(0) };
	struct snap_config config;

	snapshot_config_default(&config);
	config.now_us = NOW;
	c.s = snapshot_new(&config);
	snapshot_add_flavor(c.s, "a100", 0);
	snapshot_add_flavor(c.s, "h100", 1);
	c.lab = add_queue(c.s, "lab", lab_limit_milli);
	c.other = add_queue(c.s, "other", GPUQ_UNLIMITED);
	add_node(c.s, "n0", 0, 4);
	add_node(c.s, "n1", 0, 4);
	add_node(c.s, "n2", 1, 2);
	c.user = snapshot_user(c.s, "ann");
	return c;
}

/* A job of one pod on a100, or of any flavor. */
static uint32_t add_job(struct cluster *c, uint32_t id, uint32_t queue, int gpus, int64_t wall_us,
			const char *flavor)
{
	struct snap_group g = { .name = "main", .pods_min = 1, .pods_max = 1 };
	struct snap_request r = { .groups = &g, .n_groups = 1 };
	struct snap_job j;

	g.gpus_milli = gpus * 1000;
	r.flavors = &flavor;
	r.n_flavors = flavor ? 1 : 0;
	snapshot_job_default(&j);
	j.key = (struct snap_key){ id, -1 };
	j.queue = queue;
	j.user = c->user;
	j.request = snapshot_add_request(c->s, &r);
	j.submit_us = NOW - 1000 * MIN + id;
	j.walltime_us = wall_us;
	return snapshot_add_job(c->s, &j);
}

/* It runs there since an hour, on the devices from `first` on. */
static void run(struct cluster *c, uint32_t job, uint32_t node, uint32_t first, uint32_t n)
{
	uint32_t devices[8];
	struct snap_alloc a = {
		.job = job, .node = node, .devices = devices, .n_devices = n, .milli = 1000
	};

	for (uint32_t i = 0; i < n; i++)
		devices[i] = first + i;
	c->s->jobs[job].state = SNAP_RUNNING;
	c->s->jobs[job].start_us = NOW - 60 * MIN;
	snapshot_add_alloc(c->s, &a);
}

static int explain(struct cluster *c, uint32_t id, struct gpuq_val **v)
{
	struct gpuq_buf packed = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct why_question q = { .packed = &packed, .key = { id, -1 } };
	int rc;

	snapshot_pack(c->s, &packed);
	rc = why_explain(&q, &c->mem, v, &err);
	gpuq_buf_done(&packed);
	return rc;
}

/* The change of that kind, as JSON; "" for none. */
static const char *change(const struct gpuq_val *v, const char *kind)
{
	static char text[1024];
	const struct gpuq_val *list = gpuq_get(v, "changes");
	struct gpuq_buf b = GPUQ_BUF_INIT;

	text[0] = '\0';
	for (uint32_t i = 0; i < list->n; i++) {
		if (strcmp(gpuq_get_str(list->items[i], "change", ""), kind) != 0)
			continue;
		gpuq_json_write(&b, list->items[i], 0);
		snprintf(text, sizeof(text), "%s", gpuq_buf_str(&b));
		break;
	}
	gpuq_buf_done(&b);
	return text;
}

static void done(struct cluster *c)
{
	snapshot_free(c->s);
	gpuq_arena_done(&c->mem);
}

#define HAS(text, part) cr_expect(strstr(text, part), "%s lacks %s", text, part)

/* Both nodes are half full; a job of four asks for a100s. */
static struct cluster half_full(int64_t limit, int64_t wall_us)
{
	struct cluster c = setup(limit);

	run(&c, add_job(&c, 1, c.other, 2, 90 * MIN, "a100"), 0, 0, 2);
	run(&c, add_job(&c, 2, c.other, 2, 70 * MIN, "a100"), 1, 0, 2);
	add_job(&c, 9, c.lab, 4, wall_us, "a100");
	return c;
}

/* A job of one GPU whose pod requests more of something than the only node has. */
static const char *amount_that_helps(const struct snap_group *asked)
{
	static const struct snap_resource nic = { .name = "example.com/nic", .count = 1 };
	static const struct snap_device card = { .healthy = true,
						 .memory_bytes = INT64_C(40) << 30 };
	static char text[1024];
	struct snap_request r = { .groups = asked, .n_groups = 1 };
	struct cluster c = { .mem = GPUQ_ARENA_INIT(0) };
	struct snap_config config;
	struct snap_node node;
	struct gpuq_val *v;

	snapshot_config_default(&config);
	config.now_us = NOW;
	c.s = snapshot_new(&config);
	snapshot_add_flavor(c.s, "a100", 0);
	c.lab = add_queue(c.s, "lab", GPUQ_UNLIMITED);
	c.user = snapshot_user(c.s, "ann");
	snapshot_node_default(&node);
	node.name = "n0";
	node.pool = "default";
	node.cpu_milli = 64500;
	node.memory_bytes = (INT64_C(512) << 30) + 1;
	node.pods = GPUQ_UNLIMITED;
	node.n_devices = 1;
	node.flavor = 0;
	node.devices_in = &card;
	node.resources = &nic;
	node.n_resources = 1;
	snapshot_add_node(c.s, &node);
	add_job(&c, 9, c.lab, 1, GPUQ_UNLIMITED, NULL);
	c.s->jobs[0].request = snapshot_add_request(c.s, &r);
	cr_assert_eq(explain(&c, 9, &v), 0);
	snprintf(text, sizeof(text), "%s", change(v, "amount"));
	done(&c);
	return text;
}

Test(why, finds_the_amount_that_a_node_has)
{
	const struct gpuq_amount nics = { .name = "example.com/nic", .count = 2 };
	struct snap_group g = { .name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = 1000 };

	cr_expect_str_eq(amount_that_helps(&g), "", "it starts as it is");
	g.cpu_milli = 200000;
	HAS(amount_that_helps(&g), "\"object\":\"cpu\",\"unit\":\"cores\",\"from\":200,\"to\":64");
	g.cpu_milli = 0;
	g.memory_bytes = INT64_C(1) << 40;
	HAS(amount_that_helps(&g),
	    "\"object\":\"memory\",\"unit\":\"bytes\",\"from\":1099511627776,\"to\":549755813888");
	g.cpu_milli = 200000;
	cr_expect_str_eq(amount_that_helps(&g), "", "one change alone does not help");
	g.cpu_milli = g.memory_bytes = 0;
	g.resources = &nics;
	g.n_resources = 1;
	HAS(amount_that_helps(&g),
	    "\"object\":\"example.com/nic\",\"unit\":\"count\",\"from\":2,\"to\":1");
	g.n_resources = 0;
	g.gpu_memory_bytes = INT64_C(100) << 30;
	HAS(amount_that_helps(&g), "\"object\":\"gpu_memory\",\"unit\":\"bytes\",\"from\":"
				   "107374182400,\"to\":42949672960");
}

Test(why, finds_a_smaller_size_another_flavor_and_whose_end_would_do)
{
	struct cluster c = setup(GPUQ_UNLIMITED);
	struct gpuq_val *v;

	run(&c, add_job(&c, 1, c.other, 4, 90 * MIN, "a100"), 0, 0, 4);
	run(&c, add_job(&c, 2, c.other, 2, 70 * MIN, "a100"), 1, 0, 2);
	run(&c, add_job(&c, 3, c.other, 1, 65 * MIN, "a100"), 1, 2, 1);
	for (uint32_t i = 0; i < c.s->n_jobs; i++)
		c.s->jobs[i].preemptible = false;
	add_job(&c, 9, c.lab, 2, GPUQ_UNLIMITED, "a100");
	cr_assert_eq(explain(&c, 9, &v), 0);
	cr_expect_str_eq(gpuq_get_str(v, "next", ""), "wait");
	HAS(change(v, "gpus"), "\"from\":2,\"to\":1");
	HAS(change(v, "flavor"), "\"to\":\"h100\"");
	/* The one that ends first is enough. */
	HAS(change(v, "end"), "\"job\":\"3\"");
	cr_expect_null(strstr(change(v, "end"), "\"job\":\"2\""));
	cr_expect_str_eq(change(v, "lift"), "");
	done(&c);
}

Test(why, several_have_to_end_and_no_more_than_that)
{
	struct cluster c = setup(GPUQ_UNLIMITED);
	struct gpuq_val *v;
	const struct gpuq_val *end;

	/* Both devices of the second node; the first job ends in between. */
	run(&c, add_job(&c, 1, c.other, 4, 70 * MIN, "a100"), 1, 0, 4);
	run(&c, add_job(&c, 2, c.other, 2, 65 * MIN, "a100"), 0, 0, 2);
	run(&c, add_job(&c, 3, c.other, 2, 75 * MIN, "a100"), 0, 2, 2);
	for (uint32_t i = 0; i < c.s->n_jobs; i++)
		c.s->jobs[i].preemptible = false;
	add_job(&c, 9, c.lab, 4, GPUQ_UNLIMITED, "a100");
	c.s->jobs[3].exclude = (uint32_t[]){ 1 };
	c.s->jobs[3].n_exclude = 1;
	cr_assert_eq(explain(&c, 9, &v), 0);
	end = gpuq_get(v, "changes");
	HAS(change(v, "end"), "\"job\":\"2\"");
	HAS(change(v, "end"), "\"job\":\"3\"");
	cr_expect_null(strstr(change(v, "end"), "\"job\":\"1\""), "%s", change(v, "end"));
	cr_expect(end->n > 0);
	done(&c);
}

Test(why, finds_a_job_that_could_move)
{
	struct cluster c = half_full(GPUQ_UNLIMITED, GPUQ_UNLIMITED);
	struct gpuq_val *v;

	/* The scheduler would relocate a job itself; here it may not. */
	c.s->config.consolidation = c.s->config.reclaim = false;
	cr_assert_eq(explain(&c, 9, &v), 0);
	cr_expect_str_eq(gpuq_get_str(v, "next", ""), "wait");
	HAS(change(v, "move"), "\"change\":\"move\",\"how\":\"now\"");
	HAS(change(v, "end"), "\"job\":\"2\"");
	done(&c);
}

Test(why, a_limit_is_named_and_who_may_lift_it)
{
	struct cluster c = setup(1000);
	struct gpuq_val *v;

	add_job(&c, 9, c.lab, 2, GPUQ_UNLIMITED, "a100");
	cr_assert_eq(explain(&c, 9, &v), 0);
	HAS(change(v, "lift"), "\"code\":\"LimitQueue\",\"object\":\"lab\",\"who\":\"manager\"");
	/* Where that is enough, nothing else is looked for. */
	cr_expect_str_eq(change(v, "gpus"), "");
	done(&c);
}

Test(why, a_hold_is_lifted_by_its_owner)
{
	struct cluster c = setup(GPUQ_UNLIMITED);
	struct gpuq_val *v;
	uint32_t job = add_job(&c, 9, c.lab, 2, GPUQ_UNLIMITED, "a100");

	c.s->jobs[job].held = SNAP_HELD_USER;
	cr_assert_eq(explain(&c, 9, &v), 0);
	HAS(change(v, "lift"), "\"code\":\"HeldUser\"");
	HAS(change(v, "lift"), "\"who\":\"user\"");
	done(&c);
}

Test(why, a_short_job_fits_before_a_planned_start)
{
	struct cluster c = setup(GPUQ_UNLIMITED);
	struct gpuq_val *v;

	/* The first in line waits for a whole node until job 1 ends in half an hour; what is
	 * left of the nodes may be used until then. */
	run(&c, add_job(&c, 1, c.other, 2, 90 * MIN, "a100"), 0, 0, 2);
	run(&c, add_job(&c, 2, c.other, 4, GPUQ_UNLIMITED, "a100"), 1, 0, 4);
	for (uint32_t i = 0; i < c.s->n_jobs; i++)
		c.s->jobs[i].preemptible = false;
	add_job(&c, 5, c.lab, 4, 60 * MIN, "a100");
	add_job(&c, 9, c.lab, 2, 600 * MIN, "a100");
	cr_assert_eq(explain(&c, 9, &v), 0);
	cr_expect_str_eq(gpuq_get_str(v, "next", ""), "wait");
	HAS(change(v, "time"), "\"to_s\":900");
	done(&c);
}

Test(why, says_when_it_would_start_anyway)
{
	struct cluster c = setup(GPUQ_UNLIMITED);
	struct gpuq_val *v;

	add_job(&c, 9, c.lab, 2, GPUQ_UNLIMITED, NULL);
	cr_assert_eq(explain(&c, 9, &v), 0);
	cr_expect_str_eq(gpuq_get_str(v, "next", ""), "start");
	cr_expect_eq(gpuq_get(v, "changes")->n, 0);
	done(&c);
}

Test(why, tells_of_the_bound_that_left_it_without_a_planned_start)
{
	struct cluster c = half_full(GPUQ_UNLIMITED, GPUQ_UNLIMITED);
	struct gpuq_val *v;

	c.s->config.max_job_test = 1;
	for (uint32_t i = 0; i < c.s->n_jobs; i++)
		c.s->jobs[i].preemptible = i > 1;
	c.s->jobs[add_job(&c, 10, c.lab, 3, 60 * MIN, "a100")].submit_us = NOW - MIN;
	c.s->jobs[2].priority = 5; /* before the other */
	cr_assert_eq(explain(&c, 9, &v), 0);
	cr_expect_eq(gpuq_get(v, "bounds")->n, 0, "it has one");
	cr_assert_eq(explain(&c, 10, &v), 0);
	cr_assert_eq(gpuq_get(v, "bounds")->n, 1);
	cr_expect_str_eq(gpuq_get_str(gpuq_get(v, "bounds")->items[0], "bound", ""),
			 "max_job_test");
	cr_expect_eq(gpuq_get_int(gpuq_get(v, "bounds")->items[0], "most", 0), 1);
	done(&c);
}

Test(why, is_about_jobs_that_wait)
{
	struct cluster c = half_full(GPUQ_UNLIMITED, GPUQ_UNLIMITED);
	struct gpuq_val *v = NULL;

	cr_expect_eq(explain(&c, 1, &v), GPUQ_ENOENT);
	cr_expect_eq(explain(&c, 77, &v), GPUQ_ENOENT);
	cr_expect_null(v);
	done(&c);
}

static bool at_once(void *arg)
{
	(void)arg;
	return true;
}

Test(why, stops_when_nobody_waits_for_it)
{
	struct cluster c = half_full(GPUQ_UNLIMITED, GPUQ_UNLIMITED);
	struct gpuq_buf packed = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct why_question q = { .packed = &packed, .key = { 9, -1 }, .stop = at_once };
	struct gpuq_val *v;

	c.s->config.consolidation = c.s->config.reclaim = false;
	snapshot_pack(c.s, &packed);
	cr_assert_eq(why_explain(&q, &c.mem, &v, &err), 0);
	cr_expect_eq(gpuq_get_int(v, "tries", -1), 0);
	cr_expect(gpuq_get_bool(v, "cut_short", false));
	gpuq_buf_done(&packed);
	done(&c);
}

/* ---- long lines ---- */

/* Add n pending jobs to that queue, no two with the same time limit. */
static void add_line(struct cluster *c, uint32_t first_id, uint32_t n, uint32_t queue, int gpus)
{
	for (uint32_t i = 0; i < n; i++)
		add_job(c, first_id + i, queue, gpus, (100 + i) * MIN, "a100");
}

Test(why, a_long_line_of_different_jobs_changes_nothing_in_front_of_it)
{
	struct cluster c = setup(GPUQ_UNLIMITED);
	struct gpuq_val *v;
	const struct gpuq_val *queues;

	run(&c, add_job(&c, 1, c.other, 4, 90 * MIN, "a100"), 0, 0, 4);
	run(&c, add_job(&c, 2, c.other, 2, 70 * MIN, "a100"), 1, 0, 2);
	run(&c, add_job(&c, 3, c.other, 1, 65 * MIN, "a100"), 1, 2, 1);
	for (uint32_t i = 0; i < c.s->n_jobs; i++)
		c.s->jobs[i].preemptible = false;
	add_job(&c, 9, c.lab, 2, 90 * MIN, "a100");
	add_line(&c, 100, 800, c.lab, 4);
	add_line(&c, 2000, 800, c.other, 1);
	cr_assert_eq(explain(&c, 9, &v), 0);
	cr_expect_str_eq(gpuq_get_str(v, "next", ""), "wait");
	HAS(change(v, "gpus"), "\"from\":2,\"to\":1");
	HAS(change(v, "flavor"), "\"to\":\"h100\"");
	HAS(change(v, "end"), "\"job\":\"3\"");
	/* All of them are counted, whatever was tried on. */
	queues = gpuq_get(v, "queues");
	cr_expect_eq(queues->n, 2);
	for (uint32_t i = 0; i < queues->n; i++)
		cr_expect_geq(gpuq_get_int(queues->items[i], "waiting", 0), 800);
	done(&c);
}

/* Behind 200 that are too large stand 500 that would take what becomes free: in front of it
 * all the same. */
Test(why, what_holds_for_the_front_of_a_line_alone_is_not_told)
{
	struct cluster c = setup(GPUQ_UNLIMITED);
	struct gpuq_val *v;

	run(&c, add_job(&c, 1, c.other, 1, 300 * MIN, "a100"), 0, 0, 1);
	run(&c, add_job(&c, 2, c.other, 3, 300 * MIN, "a100"), 0, 1, 3);
	run(&c, add_job(&c, 3, c.other, 4, 300 * MIN, "a100"), 1, 0, 4);
	for (uint32_t i = 0; i < c.s->n_jobs; i++)
		c.s->jobs[i].preemptible = false;
	add_line(&c, 100, 200, c.lab, 3);
	for (uint32_t i = 3; i < c.s->n_jobs; i++)
		c.s->jobs[i].walltime_us = 5 * MIN + i * GPUQ_US_PER_S;
	add_line(&c, 1000, 500, c.lab, 1);
	for (uint32_t i = 203; i < c.s->n_jobs; i++)
		c.s->jobs[i].walltime_us = 100 * MIN + i * GPUQ_US_PER_S;
	add_job(&c, 5000, c.lab, 1, 200 * MIN, "a100");
	cr_assert_eq(explain(&c, 5000, &v), 0);
	cr_expect_str_eq(gpuq_get_str(v, "next", ""), "wait");
	cr_expect_str_eq(change(v, "end"), "");
	done(&c);
}
