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
