#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/sim/outcome.h"
#include "gpuqd/sim/world.h"
#include "gpuqd/sim/world_cycle.h"
#include "gpuqd/sim/world_happen.h"

/* Effects of plans on a world, whatever their source. */

/* A minute of the case, as an instant of the world. */
#define AT(minutes) (WORLD_BASE_US + (minutes)*60 * GPUQ_US_PER_S)

struct rig {
	struct gpuq_arena arena;
	struct world w;
	struct snapshot *s;
	struct plan_action actions[8];
	struct plan_pod pods[16];
	uint32_t devices[32];
	struct plan p;
	struct gpuq_err err;
};

/* Two nodes of four devices; a runs on all of n1, pairs of b wait. */
static const char two_nodes[] =
	"nodes: [{name: n1, gpus: 4}, {name: n2, gpus: 4}]\n"
	"queues: [{name: qa}, {name: qb}]\n"
	"config: {now: 100}\n"
	"running:\n"
	"- {job: a, queue: qa, start: 10, min_tasks: 2, last_checkpoint: 50,\n"
	"   tasks: [{gpus: 1, node: n1, count: 4}]}\n"
	"pending: [{job: b, queue: qb, tasks: [{gpus: 2, count: 2}]}]\n";

static void begin(struct rig *r, const char *text)
{
	struct sc_result *cases;
	size_t n;

	memset(r, 0, sizeof(*r));
	cr_assert_eq(scenario_read(&r->arena, "case", text, strlen(text), &cases, &n, &r->err), 0,
		     "%s", r->err.text);
	cr_assert(cases[0].c, "%s", cases[0].err.text);
	cr_assert_eq(world_make(cases[0].c, &r->w, &r->err), 0, "%s", r->err.text);
	r->s = world_snapshot(&r->w, &r->err);
	cr_assert(r->s, "%s", r->err.text);
	r->p = (struct plan){ .actions = r->actions, .pods = r->pods, .devices = r->devices };
}

static void end(struct rig *r)
{
	snapshot_free(r->s);
	world_done(&r->w);
	gpuq_arena_done(&r->arena);
}

/* The job's index in the snapshot: jobs are numbered as they are listed. */
static uint32_t at(struct rig *r, uint32_t id)
{
	const uint32_t job = snapshot_find_job(r->s, (struct snap_key){ id, -1 });

	cr_assert_neq(job, SNAP_NONE);
	return job;
}

static struct plan_action *act(struct rig *r, enum plan_kind kind, uint32_t id)
{
	struct plan_action *a = &r->actions[r->p.n_actions++];

	*a = (struct plan_action){ .kind = kind,
				   .job = at(r, id),
				   .key = { id, -1 },
				   .pod_first = r->p.n_pods,
				   .claimant = SNAP_NONE };
	return a;
}

static void pod(struct rig *r, struct plan_action *a, uint32_t index, uint32_t node, uint32_t first,
		uint32_t n_devices)
{
	r->pods[r->p.n_pods++] = (struct plan_pod){ .index = index,
						    .node = node,
						    .device_first = r->p.n_devices,
						    .n_devices = n_devices,
						    .milli = SNAP_MILLI };
	for (uint32_t d = 0; d < n_devices; d++)
		r->devices[r->p.n_devices++] = first + d;
	a->n_pods++;
}

/* Carry the plan out and begin another. */
static void apply(struct rig *r)
{
	cr_assert_eq(world_carry(&r->w, r->s, &r->p, &r->err), 0, "%s", r->err.text);
	snapshot_free(r->s);
	r->s = world_snapshot(&r->w, &r->err);
	cr_assert(r->s, "%s", r->err.text);
	r->p = (struct plan){ .actions = r->actions, .pods = r->pods, .devices = r->devices };
}

static void pods_leave(struct rig *r)
{
	bool any;

	cr_assert_eq(world_release(&r->w, &any, &r->err), 0, "%s", r->err.text);
	cr_assert(any);
	snapshot_free(r->s);
	r->s = world_snapshot(&r->w, &r->err);
	cr_assert(r->s, "%s", r->err.text);
}

static void refused(struct rig *r, const char *part)
{
	cr_assert_lt(world_carry(&r->w, r->s, &r->p, &r->err), 0);
	cr_assert(strstr(r->err.text, part), "%s", r->err.text);
}

static void holds(struct rig *r, const char *expect)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf wrong = GPUQ_BUF_INIT;
	struct sc_result *cases;
	char text[2048];
	size_t n;

	snprintf(text, sizeof(text), "expect: %s\n", expect);
	cr_assert_eq(scenario_read(&mem, "expect", text, strlen(text), &cases, &n, &r->err), 0,
		     "%s", r->err.text);
	cr_assert_eq(expect_judge(&r->w, cases[0].expect, outcome_make(&mem, &r->w), true, &wrong),
		     0, "%s", gpuq_buf_str(&wrong));
	gpuq_buf_done(&wrong);
	gpuq_arena_done(&mem);
}

static bool lists(struct rig *r, const char *json)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text = GPUQ_BUF_INIT;
	bool found;

	gpuq_json_write(&text, outcome_make(&mem, &r->w), 0);
	found = strstr(gpuq_buf_str(&text), json) != NULL;
	if (!found)
		fprintf(stderr, "%s\n", gpuq_buf_str(&text));
	gpuq_buf_done(&text);
	gpuq_arena_done(&mem);
	return found;
}

/* b is to have n1, and a leaves for it. */
static void claim(struct rig *r)
{
	struct plan_action *a = act(r, PLAN_NOMINATE, 2);

	pod(r, a, 0, 0, 0, 2);
	pod(r, a, 1, 0, 2, 2);
	a = act(r, PLAN_EVICT, 1);
	a->claimant = at(r, 2);
	a->cause = GPUQ_CAUSE_RECLAIM;
	a->rule = "reclaim-quota";
	cr_assert(world_changes(&r->p));
	apply(r);
}

Test(world, a_claim_is_started_on_places_that_others_leave)
{
	struct plan_action *a;
	struct rig r;

	begin(&r, two_nodes);
	cr_assert_eq(r.s->jobs[at(&r, 1)].checkpoint_us, AT(50));
	claim(&r);
	cr_assert_eq(r.s->jobs[at(&r, 1)].state, SNAP_LEAVING);
	cr_assert_eq(r.s->n_allocs, 4);
	cr_assert(r.s->allocs[3].releasing);
	cr_assert_eq(r.s->jobs[at(&r, 2)].n_promises, 2);
	cr_assert_eq(r.s->promises[1].devices[0], 2);

	pods_leave(&r);
	holds(&r, "{started: [b], preempted: [a], preempted_from: {qa: 1}, capacity_safe: true,"
		  " preempted_gpus_min: 4, node_free_sorted: [0, 4], detail: {b: {nodes: [n1]}}}");
	cr_assert(lists(&r, "\"evictions\":[{\"job\":\"a\",\"mode\":\"requeue\",\"cause\":"
			    "\"reclaim\",\"by\":\"b\",\"rule\":\"reclaim-quota\"}],\"moves\":[]"));
	cr_assert_eq(r.s->jobs[at(&r, 1)].state, SNAP_PENDING);
	cr_assert_eq(r.s->jobs[at(&r, 1)].attempt, 0, "the next begins with its next start");
	cr_assert_eq(r.s->jobs[at(&r, 1)].checkpoint_us, 0);
	cr_assert_eq(r.s->jobs[at(&r, 1)].n_evicted_day, 1);
	cr_assert_eq(r.s->jobs[at(&r, 1)].evicted_us, AT(100));
	cr_assert_str_eq(r.s->queues[r.s->jobs[at(&r, 1)].evicted_for].name, "qb");

	a = act(&r, PLAN_PLACE, 2);
	pod(&r, a, 0, 0, 0, 2);
	pod(&r, a, 1, 0, 2, 2);
	apply(&r);
	cr_assert_eq(r.s->n_promises, 0);
	cr_assert_eq(r.s->jobs[at(&r, 2)].state, SNAP_RUNNING);
	holds(&r, "{started: [b], preempted: [a], running: [], detail: {b: {tasks: 2}}}");
	world_mark(&r.w);
	holds(&r, "{started: [], running: [b], pending: [a], preempted: []}");
	cr_assert(lists(&r, "\"evictions\":[]"));
	end(&r);
}

Test(world, what_waits_for_the_leaving_is_promised_nothing)
{
	struct rig r;

	begin(&r, two_nodes);
	pod(&r, act(&r, PLAN_NOMINATE, 2), 0, 0, 0, 2);
	cr_assert_not(world_changes(&r.p));
	apply(&r);
	holds(&r, "{started: [b], running: [a]}");
	cr_assert_eq(r.s->n_promises, 0);
	apply(&r);
	holds(&r, "{pending: [b]}");
	end(&r);
}

Test(world, a_promise_can_be_given_up)
{
	struct rig r;

	begin(&r, two_nodes);
	claim(&r);
	pods_leave(&r);
	act(&r, PLAN_RELEASE, 2);
	apply(&r);
	cr_assert_eq(r.s->n_promises, 0);
	holds(&r, "{pending: [b], preempted: [a]}");
	end(&r);
}

Test(world, some_cannot_wait_again)
{
	struct rig r;

	begin(&r, "nodes: [{name: n1, gpus: 4}]\n"
		  "running: [{job: a, preempt_mode: cancel, tasks: [{gpus: 4, node: n1}]}]\n"
		  "pending: [{job: b, tasks: [{gpus: 2, count: 2}]}]\n");
	claim(&r);
	pods_leave(&r);
	holds(&r, "{started: [b], preempted: [a]}");
	cr_assert(lists(&r, "\"mode\":\"cancel\""));
	world_mark(&r.w);
	holds(&r, "{ended: {a: cancelled}}");
	end(&r);
}

Test(world, elastic_jobs_shrink_and_grow)
{
	struct plan_action *a;
	struct rig r;

	begin(&r, two_nodes);
	a = act(&r, PLAN_SHRINK, 1);
	pod(&r, a, 2, 0, 2, 1);
	pod(&r, a, 3, 0, 3, 1);
	a->cause = GPUQ_CAUSE_SHRINK;
	apply(&r);
	cr_assert_eq(r.s->jobs[at(&r, 1)].state, SNAP_RUNNING);
	cr_assert_eq(r.s->jobs[at(&r, 1)].n_allocs, 4);
	cr_assert_eq(r.s->jobs[at(&r, 1)].shrunk_us, AT(100));
	pods_leave(&r);
	cr_assert_eq(r.s->jobs[at(&r, 1)].n_allocs, 2);
	holds(&r, "{shrunk: [a], running: [], detail: {a: {tasks: 2}}, preempted: []}");
	cr_assert(lists(&r, "\"mode\":\"shrink\",\"cause\":\"shrink\",\"by\":null,\"rule\":null"));

	world_mark(&r.w);
	a = act(&r, PLAN_GROW, 1);
	pod(&r, a, 7, 1, 0, 1);
	apply(&r);
	holds(&r, "{grown: [a], detail: {a: {tasks: 3, nodes: [n1, n1, n2]}}}");
	a = act(&r, PLAN_GROW, 1);
	pod(&r, a, 7, 1, 1, 1);
	pod(&r, a, 8, 1, 2, 1);
	refused(&r, "has as many pods as it may");
	end(&r);
}

Test(world, an_elastic_job_starts_and_grows_at_once)
{
	struct plan_action *a;
	struct rig r;

	begin(&r, "nodes: [{name: n1, gpus: 4}]\n"
		  "pending: [{job: a, min_tasks: 1, tasks: [{gpus: 1, count: 3}]}]\n");
	cr_assert_eq(r.s->requests[0].groups[0].pods_min, 1);
	cr_assert_eq(r.s->requests[0].groups[0].pods_max, 3);
	pod(&r, act(&r, PLAN_PLACE, 1), 0, 0, 0, 1);
	a = act(&r, PLAN_GROW, 1);
	pod(&r, a, 1, 0, 1, 1);
	pod(&r, a, 2, 0, 2, 1);
	apply(&r);
	holds(&r, "{started: [a], grown: [], detail: {a: {tasks: 3}}}");
	end(&r);
}

Test(world, a_moved_job_goes_on_elsewhere)
{
	struct plan_action *a;
	struct rig r;

	begin(&r, two_nodes);
	a = act(&r, PLAN_MOVE, 1);
	for (uint32_t i = 0; i < 4; i++)
		pod(&r, a, i, 1, i, 1);
	a->cause = GPUQ_CAUSE_CONSOLIDATE;
	a->claimant = at(&r, 2);
	apply(&r);
	cr_assert_eq(r.s->jobs[at(&r, 1)].state, SNAP_LEAVING);
	cr_assert_eq(r.s->jobs[at(&r, 1)].n_promises, 4);
	pods_leave(&r);
	cr_assert_eq(r.s->jobs[at(&r, 1)].state, SNAP_PENDING);
	cr_assert_eq(r.s->jobs[at(&r, 1)].n_moved_day, 1);
	cr_assert_eq(r.s->jobs[at(&r, 1)].n_evicted_day, 0);
	cr_assert_eq(r.s->jobs[at(&r, 1)].evicted_us, 0);
	holds(&r, "{running: [a], moved_total: 1, preempted_total: 0, capacity_safe: true,"
		  " detail: {a: {moved: true, nodes: [n2]}}}");
	cr_assert(lists(&r, "\"moves\":[{\"job\":\"a\",\"cause\":\"consolidate\",\"by\":\"b\""));
	a = act(&r, PLAN_PLACE, 1);
	for (uint32_t i = 0; i < 4; i++)
		pod(&r, a, i, 1, i, 1);
	apply(&r);
	holds(&r, "{running: [a], detail: {a: {moved: true, nodes: [n2]}}}");
	world_mark(&r.w);
	holds(&r, "{running: [a], moved_total: 0, detail: {a: {moved: false}}}");
	end(&r);
}

Test(world, sub_groups_are_units)
{
	struct plan_action *a;
	struct rig r;

	begin(&r, "nodes: [{name: n1, gpus: 4}]\n"
		  "pending: [{job: a, min_groups: 1, tasks: [{gpus: 1, count: 2, group: x},\n"
		  "           {gpus: 1, count: 2, group: y}]}]\n");
	cr_assert_eq(r.s->requests[0].n_groups, 1);
	cr_assert_eq(r.s->requests[0].groups[0].unit_pods, 2);
	cr_assert_eq(r.s->requests[0].groups[0].pods_min, 2);
	cr_assert_eq(r.s->requests[0].groups[0].pods_max, 4);
	a = act(&r, PLAN_PLACE, 1);
	for (uint32_t i = 0; i < 4; i++)
		pod(&r, a, i, 0, i, 1);
	apply(&r);
	holds(&r, "{detail: {a: {groups_complete: 2}}}");
	a = act(&r, PLAN_SHRINK, 1);
	pod(&r, a, 2, 0, 2, 1);
	pod(&r, a, 3, 0, 3, 1);
	apply(&r);
	pods_leave(&r);
	holds(&r, "{detail: {a: {groups_complete: 1, tasks: 2}}}");
	cr_assert(lists(&r, "\"group\":\"x\""));
	end(&r);
}

Test(world, leaving_tasks_of_a_case_leave)
{
	struct rig r;

	begin(&r, "nodes: [{name: n1, gpus: 4}]\n"
		  "running: [{job: a, tasks: [{gpus: 1, node: n1, releasing: true}]},\n"
		  "  {job: b, min_tasks: 1, tasks: [{gpus: 1, node: n1},\n"
		  "   {gpus: 1, node: n1, releasing: true}]}]\n");
	cr_assert_eq(r.s->jobs[at(&r, 1)].state, SNAP_LEAVING);
	cr_assert_eq(r.s->jobs[at(&r, 2)].state, SNAP_RUNNING);
	cr_assert_eq(r.s->allocs[1].releasing + r.s->allocs[2].releasing, 1);
	pods_leave(&r);
	holds(&r, "{preempted: [a], running: [b], pending: []}");
	end(&r);
}

Test(world, ranks_number_tasks)
{
	struct rig r;

	begin(&r, "nodes: [{name: n1, gpus: 4}]\n"
		  "running: [{job: a, min_tasks: 1, tasks: [{gpus: 1, node: n1, rank: 2},\n"
		  "   {gpus: 1, node: n1, rank: 1}]}]\n");
	/* The second of the list came first, when the first device was taken. */
	cr_assert_eq(r.w.jobs[0].tasks[0].index, 0);
	cr_assert_eq(r.w.jobs[0].tasks[0].devices[0], 1);
	cr_assert_eq(r.w.jobs[0].tasks[1].index, 1);
	cr_assert_eq(r.w.jobs[0].tasks[1].devices[0], 0);
	end(&r);
}

Test(world, what_is_given_twice_is_noticed)
{
	struct rig r;

	begin(&r, two_nodes);
	holds(&r, "{capacity_safe: true}");
	pod(&r, act(&r, PLAN_PLACE, 2), 0, 0, 3, 2);
	apply(&r);
	holds(&r, "{capacity_safe: false}");
	end(&r);

	/* A promise is as good as a pod. */
	begin(&r, two_nodes);
	pod(&r, act(&r, PLAN_NOMINATE, 2), 0, 0, 0, 2);
	apply(&r);
	holds(&r, "{capacity_safe: false}");
	end(&r);

	/* And memory of a device counts like the device. */
	begin(&r, "nodes: [{name: n1, gpus: 1, gpu_mem_mb: 80}]\n"
		  "running: [{job: a, tasks: [{gpus: 0.3, gpu_mem_mb: 50, node: n1}]}]\n"
		  "pending: [{job: b, tasks: [{gpus: 0.3, gpu_mem_mb: 40}]}]\n");
	pod(&r, act(&r, PLAN_PLACE, 2), 0, 0, 0, 1);
	r.pods[0].milli = 300;
	apply(&r);
	holds(&r, "{capacity_safe: false}");
	end(&r);
}

Test(world, plans_about_another_world_are_refused)
{
	struct plan_action *a;
	struct rig r;

	begin(&r, two_nodes);
	pod(&r, act(&r, PLAN_PLACE, 1), 0, 1, 0, 1);
	refused(&r, "is not pending");
	r.p.n_actions = r.p.n_pods = 0;
	a = act(&r, PLAN_SHRINK, 1);
	pod(&r, a, 9, 0, 0, 1);
	refused(&r, "has no pod 9");
	end(&r);
}

/* The case has one job and an array of 4, 6 and 8. */
Test(world, keys_have_the_names_of_the_case)
{
	struct rig r;

	begin(&r, "nodes: [{name: n1, gpus: 1}]\n"
		  "pending:\n"
		  "- {job: one, tasks: [{gpus: 1}]}\n"
		  "- {job: x, array: {first: 4, last: 8, step: 2}, tasks: [{gpus: 1}]}\n");
	cr_assert_str_eq(world_key_name(&r.w, (struct snap_key){ 1, -1 }), "one");
	cr_assert_str_eq(world_key_name(&r.w, (struct snap_key){ 2, -1 }), "x");
	cr_assert_str_eq(world_key_name(&r.w, (struct snap_key){ 2, 6 }), "x[6]");
	cr_assert_null(world_key_name(&r.w, (struct snap_key){ 2, 10 }));
	cr_assert_null(world_key_name(&r.w, (struct snap_key){ 2, 2 }));
	cr_assert_null(world_key_name(&r.w, (struct snap_key){ 3, -1 }));
	cr_assert_null(world_key_name(&r.w, (struct snap_key){ 0, -1 }));
	end(&r);
}

Test(world, belts_are_off_unless_written)
{
	struct rig r;

	begin(&r, two_nodes);
	cr_assert_eq(r.s->config.cooldown_us, 0);
	cr_assert_eq(r.s->config.gang_repair_us, 0);
	cr_assert_eq(r.s->config.claims_per_hour, 0);
	end(&r);
	begin(&r, "config: {cooldown: 10, gang_repair: 2, claims_per_hour: 3, grow_delay: 4,\n"
		  "  moves_per_day: 5, preemption_delay: 9, min_runtime_method: queue, "
		  "reclaim_min_runtime: 6}\n"
		  "nodes: [{name: n1, gpus: 1}]\n"
		  "queues: [{name: q, own_preempt: strict, borrow_preempt_max_priority: 7,\n"
		  "  preempt_min_runtime: 8}]\n");
	cr_assert_eq(r.s->config.cooldown_us, 600 * GPUQ_US_PER_S);
	cr_assert_eq(r.s->config.gang_repair_us, 120 * GPUQ_US_PER_S);
	cr_assert_eq(r.s->config.claims_per_hour, 3);
	cr_assert_eq(r.s->config.grow_delay_us, 240 * GPUQ_US_PER_S);
	cr_assert_eq(r.s->config.moves_per_day, 5);
	cr_assert_eq(r.s->config.preemption_delay_us, 540 * GPUQ_US_PER_S);
	cr_assert_eq(r.s->config.min_runtime_method, SNAP_RUNTIME_QUEUE);
	cr_assert_eq(r.s->config.reclaim_min_runtime_us, 360 * GPUQ_US_PER_S);
	cr_assert(r.s->queues[0].own_preempt == POLICY_OWN_STRICT);
	cr_assert_eq(r.s->queues[0].borrow_preempt_max_priority, 7000);
	cr_assert_eq(r.s->queues[0].preempt_min_runtime_us, 480 * GPUQ_US_PER_S);
	cr_assert_eq(r.s->queues[0].reclaim_min_runtime_us, -1);
	end(&r);
}
