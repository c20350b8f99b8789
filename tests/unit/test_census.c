/* At every moment each device is exactly one of seven things. */
#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/state/view/census.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/yaml.h"
#include "model_rig.h"

static struct gpuq_arena mem;

/* Return the present counts, "allocated=2000 free=6000", and check that they add up. */
static const char *taken(const struct model *m, int64_t now_us)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct census c;
	int64_t sum = 0;
	const char *text;

	cr_assert(census_take(m, now_us, &mem, &c));
	for (int i = 0; i < N_CENSUS_KINDS; i++) {
		sum += c.milli[i];
		if (c.milli[i])
			gpuq_buf_printf(&b, "%s%s=%d", b.len ? " " : "", census_words[i],
					(int)c.milli[i]);
	}
	cr_expect_eq(sum, c.total_milli);
	text = gpuq_arena_strdup(&mem, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return text;
}

static void drain(struct model *m, const char *name, bool on)
{
	struct event ev = { .type = EV_NODE_DRAIN, .at_us = T0 };

	ev.drain.name = name;
	ev.drain.on = on;
	ev.drain.why = ev.drain.who = "";
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
}

Test(census, counts_every_device_once)
{
	struct model *m = fresh(2, 4);
	struct node *n0 = model_find_node(m, "n0");

	cr_expect_str_eq(taken(m, T0), "free=8000");
	submit_text(m, "{gpus: 1, pods: 2, command: [a]}", NULL);
	cr_assert_eq(place(m, J1, 2, "n0", 0), 0);
	cr_expect_str_eq(taken(m, T0), "allocated=2000 free=6000");
	drain(m, "n0", true);
	cr_expect_str_eq(taken(m, T0), "allocated=2000 free=4000 draining=2000");
	drain(m, "n0", false);
	n0->foreign_cpu_milli = n0->fact.cpu_milli;
	cr_expect_str_eq(taken(m, T0), "allocated=2000 free=4000 stranded=2000");
	cr_expect_str_eq(census_stranded(n0, T0), "cpu");
	n0->foreign_cpu_milli = 0;
	n0->backoff_until_us = T0 + 1;
	cr_expect_str_eq(census_stranded(n0, T0), "suspect");
	cr_expect_null(census_stranded(n0, T0 + 1));
	n0->backoff_until_us = 0;
	n0->devices[0].healthy = false;
	cr_expect_str_eq(taken(m, T0), "allocated=2000 free=6000", "one that a job has is no loss");
	n0->devices[0].healthy = true;
	n0->devices[3].healthy = false;
	cr_expect_str_eq(taken(m, T0), "allocated=2000 free=5000 lost=1000");
	n0->foreign_gpus_milli = 500;
	cr_expect_str_eq(taken(m, T0), "allocated=2000 free=5000 lost=1000",
			 "what others have is on the last one");
	n0->fact.ready = false;
	cr_expect_str_eq(taken(m, T0), "free=4000 lost=4000");
	model_free(m);
	gpuq_arena_done(&mem);
}

Test(census, reserved_by_the_calendar)
{
	struct model *m = fresh(2, 4);
	const int64_t day = INT64_C(86400) * GPUQ_US_PER_S;

	rig_site(m,
		 "{version: 1, queues: [{name: default, quota: unlimited, limit: unlimited}],"
		 " reservations: [{name: r, start: 2023-11-15T00:00Z, duration: 1d, nodes: [n1]},"
		 " {name: s, start: 2023-11-17T00:00Z, duration: 1d, gpus: 3, queue: default}]}");
	cr_expect_str_eq(taken(m, T0), "free=8000");
	cr_expect_str_eq(taken(m, T0 + day / 2), "reserved=4000 free=4000");
	submit_text(m, "{gpus: 1, pods: 2, command: [a]}", NULL);
	cr_assert_eq(place(m, J1, 2, "n0", 0), 0);
	cr_expect_str_eq(taken(m, T0 + 5 * day / 2), "allocated=2000 reserved=1000 free=5000",
			 "two of the three are in use");
	model_free(m);
	gpuq_arena_done(&mem);
}

Test(census, a_device_that_is_given_away_twice_is_found)
{
	const struct job_key two = { 2, -1 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct event ev = { .type = EV_NODE_FROZEN, .at_us = T0 };
	struct model *m = fresh(1, 4);
	struct node *n0 = model_find_node(m, "n0");

	submit_text(m, "{gpus: 1, pods: 2, command: [a]}", NULL);
	submit_text(m, "{gpus: 1, command: [a]}", NULL);
	cr_assert_eq(place(m, J1, 2, "n0", 0), 0);
	cr_expect_eq(census_check(n0, &err), 0);
	cr_assert_eq(place(m, two, 1, "n0", 1), 0);
	cr_expect_eq(census_check(n0, &err), GPUQ_ECORRUPT);
	cr_expect(strstr(err.text, "device 1 is given away more than once") != NULL, "%s",
		  err.text);
	ev.drain.name = "n0";
	ev.drain.on = true;
	ev.drain.why = err.text;
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
	cr_expect_eq(node_state(n0), GPUQ_NODE_SUSPECT);
	cr_expect_str_eq(census_stranded(n0, T0), "frozen");
	taken(m, T0); /* adds up all the same */
	n0->pods->devices[0] = 9;
	cr_expect_eq(census_check(n0, &err), GPUQ_ECORRUPT);
	n0->pods->devices[0] = 0;
	model_free(m);
	gpuq_arena_done(&mem);
}

/* ---- cores and memory are counted apart ---- */

/* Return a model with one node of HAMi's: one card of 15,360 MiB, shared by four pods at most. */
static struct model *with_card(struct device_fact *card, struct node_fact *f)
{
	struct model *m = fresh(1, 1);
	struct event ev = { .type = EV_NODE_SEEN, .at_us = T0, .node = f };

	*card = (struct device_fact){ "GPU-x", "NVIDIA-T4", 15360, true };
	*f = (struct node_fact){ .name = "n0",
				 .cpu_milli = 64000,
				 .memory_bytes = INT64_C(1) << 38,
				 .max_pods = 110,
				 .devices = card,
				 .n_devices = 1,
				 .slots = 4,
				 .ready = true,
				 .note = "" };
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
	return m;
}

/* Place a job on that card, charged so much. */
static void share(struct model *m, uint32_t id, const char *text, int64_t milli)
{
	uint16_t first = 0;
	struct placed_pod pod = {
		.node = "n0", .devices = &first, .n_devices = 1, .gpus_milli = milli
	};
	struct event ev = { .type = EV_JOB_PLACED, .at_us = T0, .job = { id, -1 } };
	const char *failed = submit_text(m, text, NULL);

	cr_assert_null(failed, "%s", failed);
	ev.placed.token = "0123456789abcdef0123456789abcdef";
	ev.placed.flavor = "default";
	ev.placed.pods = &pod;
	ev.placed.n_pods = 1;
	cr_assert_eq(model_apply(m, &ev, NULL), 0);
}

Test(census, memory_beside_cores_is_no_more_than_it_is)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct device_fact card;
	struct node_fact f;
	struct model *m = with_card(&card, &f);
	const struct node *n0 = model_find_node(m, "n0");

	share(m, 1, "{gpu_memory: 9728Mi, gpu_cores: 74, command: [a]}", 740);
	/* It is charged 4 of 15 GiB where other nodes give memory in GiB; 3,296 MiB are 214 thousandths, and a
	 * quarter is the least here. */
	share(m, 2, "{gpu_memory: 3296Mi, command: [a]}", 266);
	cr_expect_eq(model_pod_cores(model_find_job(m, (struct job_key){ 2, -1 })->pods), 250);
	cr_expect_eq(census_check(n0, &err), 0, "%s", err.text);
	/* Little memory, but more cores than there are left. */
	share(m, 3, "{gpu_memory: 256Mi, gpu_cores: 26, command: [a]}", 260);
	cr_expect_eq(census_check(n0, &err), GPUQ_ECORRUPT);
	cr_expect(strstr(err.text, "device 0 is given away more than once: 1250 thousandths"), "%s",
		  err.text);
	model_free(m);
}

Test(census, memory_that_is_given_away_twice_is_found)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct device_fact card;
	struct node_fact f;
	struct model *m = with_card(&card, &f);
	const struct node *n0 = model_find_node(m, "n0");

	share(m, 1, "{gpu_memory: 10Gi, gpu_cores: 25, command: [a]}", 666);
	share(m, 2, "{gpu_memory: 5Gi, gpu_cores: 25, command: [a]}", 333);
	cr_expect_eq(census_check(n0, &err), 0, "%s", err.text);
	share(m, 3, "{gpu_memory: 1536Ki, gpu_cores: 25, command: [a]}", 250);
	cr_expect_eq(census_check(n0, &err), GPUQ_ECORRUPT);
	cr_expect(strstr(err.text,
			 "the memory of device 0 is given away more than once: 15362 of 15360 MiB"),
		  "%s", err.text);
	model_free(m);
}
