/* Which alternative of its claims a job is planned and charged with, and which cards of a node serve it. */
#include <stdio.h>
#include <string.h>

#include "gpuqd/sched/sched.h"
#include "tests/unit/objects_rig.h"

static void see_gpu_class(struct model *m, const char *name)
{
	const struct dra_class c = { .name = name, .extended = "", .config = "", .odd = "" };
	struct object_fact f = fact(OBJECT_DEVICE_CLASS, "", name);

	f.dra.class_ = &c;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
}

/* Devices of a node, of a driver whose name a selector requires. */
static void see_gpus(struct model *m, const char *node, const char *driver, uint32_t n)
{
	static const struct dra_device gpus[] = {
		{ .name = "gpu-0" }, { .name = "gpu-1" }, { .name = "gpu-2" }, { .name = "gpu-3" }
	};
	const struct dra_slice s = { .name = node,
				     .driver = driver,
				     .pool = node,
				     .generation = n,
				     .n_slices = 1,
				     .node = node,
				     .devices = gpus,
				     .n_devices = n };
	struct object_fact f = fact(OBJECT_SLICE, "", node);

	f.dra.slice = &s;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
}

#define ALTERNATIVE(count, driver)                                                                 \
	"{class: gpu.any, count: " #count ", selectors: [\"device.driver == '" driver "'\"]}"
#define FIRST "claims: [{name: a, first: [" ALTERNATIVE(3, "h100") ", " ALTERNATIVE(2, "a100") "]}]"

/* Run a cycle; return the choice of the job that starts, and its devices: "n1 2-2 2". */
static const char *chosen(struct model *m)
{
	static char text[128];
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s = look(m);
	struct plan plan;

	*text = '\0';
	cr_assert_eq(sched_cycle(s, &mem, &plan, &err), 0, "%s", err.text);
	for (uint32_t i = 0; i < plan.n_actions; i++) {
		const struct plan_action *a = &plan.actions[i];
		const struct plan_pod *p = &plan.pods[a->pod_first];
		const struct snap_group *g = &s->requests[a->request].groups[p->group];

		if (a->kind == PLAN_PLACE)
			snprintf(text, sizeof(text), "%s %u-%u %u", s->nodes[p->node].name,
				 g->choice.first, g->choice.last, p->n_devices);
	}
	gpuq_arena_done(&mem);
	snapshot_free(s);
	return text;
}

static struct model *gpu_world(void)
{
	struct model *m = world();

	see_gpu_class(m, "gpu.any");
	return m;
}

Test(take_choices, of_alternatives_the_first_that_can_be_had_is_planned)
{
	struct model *m = gpu_world();

	cr_assert_null(submit_text(m, "{gpus: 2, " FIRST ", command: [a]}", NULL));
	cr_expect_str_eq(chosen(m), "");
	see_gpus(m, "n0", "a100", 2);
	cr_expect_str_eq(chosen(m), "n0 2-2 2", "two are enough");
	see_gpus(m, "n1", "h100", 2);
	cr_expect_str_eq(chosen(m), "n0 2-2 2", "of these three would do");
	see_gpus(m, "n1", "h100", 3);
	cr_expect_str_eq(chosen(m), "n1 1-1 3", "in the order written");
	model_free(m);
}

/* Return which requests the cards of a node serve, a letter each: all, whole ones, parts. */
static const char *served(struct model *m)
{
	static char text[8];
	struct snapshot *s = look(m);

	cr_assert_lt(s->n_devices, sizeof(text));
	for (uint32_t i = 0; i < s->n_devices; i++)
		text[i] = "awp"[s->devices[i].serves];
	text[s->n_devices] = '\0';
	snapshot_free(s);
	return text;
}

#define WORD(key, value)                                                                           \
	{                                                                                          \
		.name = "gpu.nvidia.com/" key, .text = value, .type = GPUQ_CEL_STRING              \
	}
#define INSTANCE(id, card, profile)                                                                \
	{                                                                                          \
		.name = id, .n_words = 3, .words = (const struct dra_word[])                       \
		{                                                                                  \
			WORD("type", "mig"), WORD("parentUUID", card), WORD("profile", profile)    \
		}                                                                                  \
	}
#define CARD(id, uuid)                                                                             \
	{                                                                                          \
		.name = id, .n_words = 1, .words = (const struct dra_word[])                       \
		{                                                                                  \
			WORD("uuid", uuid)                                                         \
		}                                                                                  \
	}

/* Tell the first n of some devices: a card, one that is cut, one that could be, one that is an instance as a whole. */
static void see_cut(struct model *m, uint32_t n)
{
	const struct dra_device devices[] = {
		CARD("gpu-0", "GPU-0"),
		INSTANCE("gpu-1-mig-0", "GPU-1", "3g.40gb"),
		INSTANCE("gpu-1-mig-1", "GPU-1", "1g.10gb"),
		CARD("gpu-2", "GPU-2"),
		INSTANCE("gpu-2-mig-0", "GPU-2", "1g.10gb"),
		INSTANCE("gpu-3-mig-0", "GPU-3", "7g.80gb"),
	};
	const struct dra_slice s = { .name = "n0",
				     .driver = "gpu.nvidia.com",
				     .pool = "n0",
				     .generation = n,
				     .n_slices = 1,
				     .node = "n0",
				     .devices = devices,
				     .n_devices = n };
	struct object_fact f = fact(OBJECT_SLICE, "", "n0");

	f.dra.slice = &s;
	cr_assert_eq(tell(m, EV_OBJECT_SEEN, &f), 0);
}

Test(take_choices, a_card_that_is_cut_serves_parts_alone)
{
	struct model *m = world_of(0);

	see_gpu_class(m, "gpu.any");
	cr_assert_null(submit_text(
		m, "{gpus: 1, claims: [{name: a, class: gpu.any}], command: [a]}", NULL));
	see_cut(m, 1);
	cr_expect_str_eq(served(m), "a", "no part is known");
	see_cut(m, 3);
	cr_expect_str_eq(served(m), "wp");
	see_cut(m, 6);
	cr_expect_str_eq(served(m), "wapw", "in the order of their names");
	model_free(m);
}

/* Earlier versions counted the most. */
Test(take_choices, a_pending_job_of_before_is_decided_on_as_well)
{
	struct model *m = gpu_world();
	struct snapshot *s;

	cr_assert_null(submit_text(m, "{gpus: 3, " FIRST ", command: [a]}", NULL));
	see_gpus(m, "n0", "a100", 2);
	cr_expect_str_eq(chosen(m), "n0 2-2 2");
	model_free(m);

	m = gpu_world();
	see_gpus(m, "n0", "a100", 2);
	cr_assert_null(submit_text(m, "{gpus: 1, " FIRST ", command: [a]}", NULL));
	s = look(m);
	cr_expect_eq(s->jobs[0].gate, GPUQ_R_DEVICE_CLAIM);
	cr_expect(strstr(s->jobs[0].gate_object, "have 2 devices, it was submitted with 1") != NULL,
		  "%s", s->jobs[0].gate_object);
	snapshot_free(s);
	model_free(m);
}

/* Place the first job: one pod on n0, with n devices. */
static void placed_with(struct model *m, struct gpuq_alternatives choice, uint32_t n)
{
	static const uint16_t devices[] = { 0, 1, 2 };
	const struct placed_pod pod = { .node = "n0",
					.devices = devices,
					.n_devices = n,
					.gpus_milli = n * INT64_C(1000),
					.choice = choice };
	struct event ev = { .type = EV_JOB_PLACED, .at_us = T0 + 1, .job = J1 };

	ev.placed.token = "0123456789abcdef0123456789abcdef";
	ev.placed.flavor = "default";
	ev.placed.pods = (struct placed_pod *)(uintptr_t)&pod;
	ev.placed.n_pods = 1;
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
}

Test(take_choices, a_job_that_runs_keeps_its_alternative)
{
	struct model *m = gpu_world();
	struct snapshot *s;

	see_gpus(m, "n0", "h100", 3);
	cr_assert_null(submit_text(m, "{gpus: 2, " FIRST ", command: [a]}", NULL));
	placed_with(m, (struct gpuq_alternatives){ 1, 1 }, 3);
	s = look(m);
	cr_expect_eq(group(s, 0)->gpus_milli, 3000);
	cr_expect_eq(group(s, 0)->choice.first, 1);
	cr_expect_eq(s->requests[s->jobs[0].request].n_others, 0);
	snapshot_free(s);
	model_free(m);

	/* It was placed by a version that did not decide. */
	m = gpu_world();
	see_gpus(m, "n0", "h100", 3);
	cr_assert_null(submit_text(m, "{gpus: 3, " FIRST ", command: [a]}", NULL));
	placed_with(m, (struct gpuq_alternatives){ 0, 0 }, 3);
	s = look(m);
	cr_expect_eq(group(s, 0)->gpus_milli, 3000);
	cr_expect_eq(group(s, 0)->choice.first, 0);
	cr_expect_eq(s->requests[s->jobs[0].request].n_others, 0);
	snapshot_free(s);
	model_free(m);
}

/* Each group has alternatives, and all of them are decided on together. */
Test(take_choices, alternatives_of_several_groups)
{
	struct model *m = gpu_world();
	struct snapshot *s;
	const struct snap_request *r;

	see_gpus(m, "n0", "a100", 3);
	cr_assert_null(submit_text(m,
				   "{groups: [{name: x, gpus: 2, " FIRST
				   ", command: [a]}, {name: y, gpus: 1, claims: "
				   "[{name: a, first: [" ALTERNATIVE(1, "h100") ", " ALTERNATIVE(
					   1, "a100") "]}], "
						      "command: [a]}]}",
				   NULL));
	s = look(m);
	r = &s->requests[s->jobs[0].request];
	cr_assert_eq(r->n_others, 3);
	cr_expect(r->in_order);
	for (uint32_t i = 0; i < 4; i++) {
		const struct snap_request *one = i ? &s->requests[r->others[i - 1]] : r;

		cr_expect_eq(one->groups[0].choice.first, i / 2 + 1);
		cr_expect_eq(one->groups[0].gpus_milli, i / 2 ? 2000 : 3000);
		cr_expect_eq(one->groups[1].choice.first, i % 2 + 1);
		cr_expect_eq(one->groups[1].gpus_milli, 1000);
	}
	snapshot_free(s);
	cr_expect_str_eq(chosen(m), "n0 2-2 2");
	model_free(m);
}
