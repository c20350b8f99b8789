#include <criterion/criterion.h>

#include <stdio.h>

#include "gpuqd/sched/sched.h"

/* A snapshot with one flavor, one user and a request of one device. */
static struct snapshot *begin(uint32_t *request)
{
	const struct snap_group g = {
		.name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = 1000
	};
	const struct snap_request r = { .groups = &g, .n_groups = 1 };
	struct snap_config config;
	struct snapshot *s;

	snapshot_config_default(&config);
	config.now_us = 1000;
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "gpu", 0);
	snapshot_user(s, "ann");
	*request = snapshot_add_request(s, &r);
	cr_assert_eq(snapshot_add_request(s, &r), *request, "equal requests are one");
	return s;
}

static uint32_t queue(struct snapshot *s, const char *name, const char *parent)
{
	struct snap_queue q;

	snapshot_queue_default(&q);
	q.name = name;
	q.parent_name = parent;
	return snapshot_add_queue(s, &q);
}

static uint32_t node(struct snapshot *s, const char *name, uint32_t devices)
{
	struct snap_node n;

	snapshot_node_default(&n);
	n.name = name;
	n.flavor = 0;
	n.n_devices = devices;
	return snapshot_add_node(s, &n);
}

static uint32_t job(struct snapshot *s, uint32_t id, uint32_t q, uint32_t request)
{
	struct snap_job j;

	snapshot_job_default(&j);
	j.key.id = id;
	j.queue = q;
	j.request = request;
	j.user = 0;
	return snapshot_add_job(s, &j);
}

static void refused(struct snapshot *s, const char *part)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_expect_eq(snapshot_seal(s, &err), GPUQ_EINVAL);
	cr_expect(strstr(err.text, part), "'%s' does not say '%s'", err.text, part);
	snapshot_free(s);
}

Test(snapshot, sorts_and_derives)
{
	uint32_t request, held[] = { 1 };
	struct snapshot *s = begin(&request);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_alloc a = { .devices = held, .n_devices = 1, .milli = 1000 };
	struct snap_job running;
	uint32_t q, child, n2;

	child = queue(s, "child", "top");
	q = queue(s, "top", NULL);
	n2 = node(s, "n2", 4);
	node(s, "n1", 8);
	job(s, 7, child, request);
	snapshot_job_default(&running);
	running.key.id = 3;
	running.queue = child;
	running.request = request;
	running.user = 0;
	running.state = SNAP_RUNNING;
	a.job = snapshot_add_job(s, &running);
	a.node = n2;
	snapshot_add_alloc(s, &a);
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	(void)q;

	cr_expect_str_eq(s->nodes[0].name, "n1");
	cr_expect_str_eq(s->queues[0].name, "top");
	cr_expect_eq(s->queues[1].parent, 0);
	cr_expect_eq(s->queues[0].n_children, 1);
	cr_expect_eq(s->jobs[0].key.id, 3);
	cr_expect_eq(s->jobs[0].n_allocs, 1);
	cr_expect_eq(s->allocs[0].node, 1, "allocs follow their node");
	cr_expect_eq(s->devices[s->nodes[1].device_first + 1].free_milli, 0);
	cr_expect_eq(s->devices[s->nodes[1].device_first].free_milli, 1000);
	cr_expect_eq(s->capacity[0], 12000);
	cr_expect_eq(snapshot_find_node(s, "n2"), 1);
	cr_expect_eq(snapshot_find_node(s, "n3"), SNAP_NONE);
	cr_expect_eq(snapshot_find_job(s, (struct snap_key){ 7, -1 }), 1);
	snapshot_free(s);
}

/* 0 ran and waits again, 1 runs, 2 to 4 never ran. */
Test(snapshot, elements_of_an_array_stand_in_their_order)
{
	static const struct snap_range rest = { 2, 4, 1 };
	struct snap_job j;
	uint32_t request;
	struct snapshot *s = begin(&request);
	const uint32_t q = queue(s, "a", NULL);

	node(s, "n1", 4);
	snapshot_job_default(&j);
	j.queue = q;
	j.request = request;
	j.user = 0;
	j.key = (struct snap_key){ 3, -1 };
	j.ranges = &rest;
	j.n_ranges = 1;
	snapshot_add_job(s, &j);
	j.ranges = NULL;
	j.n_ranges = 0;
	for (int32_t k = 1; k >= 0; k--) {
		j.key.index = k;
		snapshot_add_job(s, &j);
	}
	job(s, 4, q, request);
	cr_assert_eq(snapshot_seal(s, NULL), 0);
	cr_expect_eq(snapshot_find_job(s, (struct snap_key){ 3, 0 }), 0);
	cr_expect_eq(snapshot_find_job(s, (struct snap_key){ 3, 1 }), 1);
	cr_expect_eq(snapshot_find_job(s, (struct snap_key){ 3, -1 }), 2, "what never ran");
	cr_expect_eq(snapshot_find_job(s, (struct snap_key){ 4, -1 }), 3);
	cr_expect_eq(snapshot_find_job(s, (struct snap_key){ 3, 2 }), SNAP_NONE);
	cr_expect_eq(snapshot_find_job(s, (struct snap_key){ 5, -1 }), SNAP_NONE);
	snapshot_free(s);
}

Test(snapshot, refuses_what_makes_no_sense)
{
	uint32_t r, q;
	struct snapshot *s = begin(&r);

	queue(s, "a", "b");
	queue(s, "b", "a");
	refused(s, "is its own ancestor");

	s = begin(&r);
	queue(s, "a", "nobody");
	refused(s, "no parent nobody");

	s = begin(&r);
	queue(s, "a", NULL);
	queue(s, "a", NULL);
	refused(s, "two queues are named a");

	s = begin(&r);
	node(s, "n", 1);
	node(s, "n", 1);
	refused(s, "two nodes are named n");

	s = begin(&r);
	q = queue(s, "a", NULL);
	job(s, 1, q, r);
	job(s, 1, q, r);
	refused(s, "two jobs are numbered 1");

	s = begin(&r);
	job(s, 1, SNAP_NONE, r);
	refused(s, "has no queue");
}

Test(snapshot, what_nobody_knows_the_place_of_is_the_highest_devices)
{
	uint32_t r;
	struct snapshot *s = begin(&r);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct snap_device devices[] = { { .healthy = true },
					       { .healthy = false },
					       { .healthy = true, .foreign_milli = 400 },
					       { .healthy = true },
					       { .healthy = true } };
	struct snap_node n;

	snapshot_node_default(&n);
	n.name = "n";
	n.flavor = 0;
	n.n_devices = 5;
	n.devices_in = devices;
	n.foreign_gpus = 1;
	snapshot_add_node(s, &n);
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	cr_expect_eq(s->devices[0].free_milli, 1000);
	cr_expect_eq(s->devices[1].free_milli, 0, "not healthy");
	cr_expect_eq(s->devices[2].free_milli, 600);
	cr_expect_eq(s->devices[3].free_milli, 1000);
	cr_expect_eq(s->devices[4].free_milli, 0, "foreign, place unknown");
	cr_expect_eq(s->capacity[0], 2600);
	snapshot_free(s);
}

Test(snapshot, a_device_that_went_away_holds_nothing)
{
	uint32_t r, q, held[] = { 5 };
	struct snapshot *s = begin(&r);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_alloc a = { .devices = held, .n_devices = 1, .milli = 1000 };
	struct snap_job j;

	q = queue(s, "a", NULL);
	node(s, "n", 2);
	snapshot_job_default(&j);
	j.key.id = 1;
	j.queue = q;
	j.request = r;
	j.user = 0;
	j.state = SNAP_RUNNING;
	a.job = snapshot_add_job(s, &j);
	snapshot_add_alloc(s, &a);
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	cr_expect_eq(s->devices[0].free_milli + s->devices[1].free_milli, 2000);
	snapshot_free(s);
}

/* A site file may put queues below one that has jobs: they wait until they are moved. */
Test(sched, a_job_whose_queue_got_children_waits)
{
	uint32_t r, q;
	struct snapshot *s = begin(&r);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct plan p;

	q = queue(s, "a", NULL);
	queue(s, "b", "a");
	node(s, "n", 4);
	job(s, 1, q, r);
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0);
	plan_print(s, &p, &text);
	cr_expect_str_eq(gpuq_buf_str(&text), "wait 1 QueueStopped a\n");
	gpuq_buf_done(&text);
	gpuq_arena_done(&mem);
	snapshot_free(s);
}

Test(sched, wants_a_sealed_snapshot)
{
	uint32_t r;
	struct snapshot *s = begin(&r);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct plan p = { .n_actions = 77 };

	cr_expect_eq(sched_cycle(s, &mem, &p, &err), GPUQ_EINVAL);
	cr_expect_eq(p.n_actions, 77, "untouched");
	snapshot_free(s);
	gpuq_arena_done(&mem);
}

/* Whatever moment memory runs out at, the cycle says so and leaves the plan alone. */
Test(sched, survives_the_end_of_memory)
{
	uint32_t r, q;
	struct snapshot *s = begin(&r);
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool done = false;

	q = queue(s, "a", NULL);
	node(s, "n", 4);
	for (uint32_t i = 1; i <= 6; i++)
		job(s, i, q, r);
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	for (size_t bytes = 16; !done && bytes < 1u << 20; bytes += 16) {
		struct gpuq_arena mem = GPUQ_ARENA_INIT(bytes);
		struct plan p = { .n_actions = 77 };
		int rc = sched_cycle(s, &mem, &p, &err);

		cr_assert(rc == 0 || rc == GPUQ_ENOMEM, "%d", rc);
		cr_assert_eq(p.n_actions, rc == 0 ? 4 : 77);
		done = rc == 0;
		gpuq_arena_done(&mem);
	}
	cr_expect(done);
	snapshot_free(s);
}

Test(sched, stops_when_it_has_done_enough)
{
	uint32_t r, q;
	struct snapshot *s = begin(&r);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct plan p;

	q = queue(s, "a", NULL);
	node(s, "n", 4);
	job(s, 1, q, r);
	job(s, 2, q, r);
	s->config.max_steps = 2;
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0);
	cr_expect(p.cut_short);
	plan_print(s, &p, &text);
	cr_expect_str_eq(gpuq_buf_str(&text), "place 1 on n[0]\nwait 2 NotEvaluated\n");
	gpuq_buf_done(&text);
	gpuq_arena_done(&mem);
	snapshot_free(s);
}

Test(sched, tells_when_time_alone_changes_the_answer)
{
	uint32_t r, q;
	struct snapshot *s = begin(&r);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snap_job j;
	struct plan p;

	q = queue(s, "a", NULL);
	node(s, "n", 4);
	snapshot_job_default(&j);
	j.key.id = 1;
	j.queue = q;
	j.request = r;
	j.user = 0;
	j.begin_us = 5000;
	snapshot_add_job(s, &j);
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0);
	cr_expect_eq(p.wake_us, 5000);
	gpuq_arena_done(&mem);
	snapshot_free(s);
}

/* Thousandths of the device are free at once, its memory only when the other has left. */
Test(sched, a_promise_waits_for_the_memory_of_its_device)
{
	const struct snap_device device = { .healthy = true, .memory_bytes = 80 };
	const struct snap_group more = { .name = "main",
					 .pods_min = 1,
					 .pods_max = 1,
					 .gpus_milli = 500,
					 .gpu_part_milli = 500,
					 .gpu_memory_bytes = 60 },
				less = { .name = "main",
					 .pods_min = 1,
					 .pods_max = 1,
					 .gpus_milli = 400,
					 .gpu_part_milli = 400,
					 .gpu_memory_bytes = 50 };
	const char *const plans[] = { "place 2 on n[0]x400m\n",
				      "wait 2 Victims 1 have=0 need=1\n" };

	for (int leaving = 0; leaving < 2; leaving++) {
		uint32_t r, q, held = 0;
		struct snapshot *s = begin(&r);
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_buf text = GPUQ_BUF_INIT;
		struct snap_alloc a = { .releasing = true,
					.devices = &held,
					.n_devices = 1,
					.milli = 500,
					.device_memory_bytes = 60 };
		struct snap_job j;
		struct snap_node n;
		struct plan p;

		q = queue(s, "a", NULL);
		snapshot_node_default(&n);
		n.name = "n";
		n.flavor = 0;
		n.n_devices = 1;
		n.devices_in = &device;
		snapshot_add_node(s, &n);
		snapshot_job_default(&j);
		j.key.id = 1;
		j.queue = q;
		j.request = snapshot_add_request(
			s, &(struct snap_request){ .groups = &more, .n_groups = 1 });
		j.user = 0;
		j.state = SNAP_LEAVING;
		if (leaving) {
			a.job = snapshot_add_job(s, &j);
			snapshot_add_alloc(s, &a);
		}
		a.job = job(s, 2, q,
			    snapshot_add_request(
				    s, &(struct snap_request){ .groups = &less, .n_groups = 1 }));
		a.milli = 400;
		a.device_memory_bytes = 50;
		a.releasing = false;
		snapshot_add_promise(s, &a);
		cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
		cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0);
		plan_print(s, &p, &text);
		cr_expect_str_eq(gpuq_buf_str(&text), plans[leaving]);
		gpuq_buf_done(&text);
		gpuq_arena_done(&mem);
		snapshot_free(s);
	}
}

static void serving_node(struct snapshot *s, const char *name, const uint8_t *serves, uint32_t n)
{
	struct snap_device devices[4];
	struct snap_node node;

	for (uint32_t i = 0; i < n; i++)
		devices[i] = (struct snap_device){ .healthy = true, .serves = serves[i] };
	snapshot_node_default(&node);
	node.name = name;
	node.flavor = 0;
	node.n_devices = n;
	node.devices_in = devices;
	snapshot_add_node(s, &node);
}

/* Decide on jobs 1..n of one pod each, of so many thousandths. Node m has a whole card; node n another, two that are cut
 * into parts, and one of either kind. */
static void serves(const int64_t *milli, uint32_t n, bool both, const char *plan)
{
	static const uint8_t kinds[] = { SNAP_SERVES_WHOLE, SNAP_SERVES_PARTS, SNAP_SERVES_PARTS,
					 SNAP_SERVES_ALL };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	uint32_t r, q;
	struct snapshot *s = begin(&r);
	struct plan p;

	q = queue(s, "a", NULL);
	if (both)
		serving_node(s, "m", kinds, 1);
	serving_node(s, "n", kinds, both ? 4 : 3);
	for (uint32_t i = 0; i < n; i++) {
		const struct snap_group g = {
			.name = "main", .pods_min = 1, .pods_max = 1, .gpus_milli = milli[i]
		};

		job(s, i + 1, q,
		    snapshot_add_request(s, &(struct snap_request){ .groups = &g, .n_groups = 1 }));
	}
	cr_assert_eq(snapshot_seal(s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0);
	plan_print(s, &p, &text);
	cr_expect_str_eq(gpuq_buf_str(&text), plan);
	gpuq_buf_done(&text);
	gpuq_arena_done(&mem);
	snapshot_free(s);
}

Test(sched, whole_and_part_requests_have_the_cards_that_serve_them)
{
	serves((const int64_t[]){ 142, 428, 1000, 571, 1000 }, 5, false,
	       "place 1 on n[1]x142m\nplace 2 on n[1]x428m\nplace 3 on n[0]\n"
	       "place 4 on n[2]x571m\nwait 5 Resources gpus have=0 need=1000\n");
	serves((const int64_t[]){ 2000, 571, 571, 571 }, 4, false,
	       "place 2 on n[1]x571m\nplace 3 on n[2]x571m\n"
	       "wait 1 Unsatisfiable gpus have=1000 need=2000\n"
	       "wait 4 Fragmented gpus have=429 need=571\n");
	/* A card of either kind is opened once those of parts are full, and no card of the first node is. */
	serves((const int64_t[]){ 571, 571, 571, 1000, 571 }, 5, true,
	       "place 1 on n[1]x571m\nplace 2 on n[2]x571m\nplace 3 on n[3]x571m\n"
	       "place 4 on m[0]\nwait 5 Fragmented gpus have=429 need=571\n");
	serves((const int64_t[]){ 1000, 1000, 428, 1000, 1000 }, 5, true,
	       "place 1 on m[0]\nplace 2 on n[0]\nplace 3 on n[1]x428m\nplace 4 on n[3]\n"
	       "wait 5 Resources gpus have=0 need=1000\n");
}
