/* A pool with placement: spread spreads the jobs that may come to no other pool. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/yaml.h"
#include "tests/unit/model_rig.h"

static void site(struct model *m, const char *text)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct event ev = { .type = EV_SITE_APPLIED, .at_us = T0 };
	struct gpuq_val **docs;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&mem, "site", text, strlen(text), &docs, &n, &err), 0);
	gpuq_mp_write(&b, docs[0]);
	ev.site.bytes = b.data;
	ev.site.len = b.len;
	cr_assert_eq(model_apply(m, &ev, &err), 0, "%s", err.text);
	gpuq_buf_done(&b);
	gpuq_arena_done(&mem);
}

static const struct {
	const char *placement;
	bool spread;
} pools[] = { { "pack", false }, { "spread", true } };

Test(take_spread, a_job_of_a_pool_that_spreads)
{
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
		struct model *m = fresh(2, 4);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct snapshot *s = NULL;
		char text[200];

		snprintf(text, sizeof(text),
			 "{version: 1, queues: [{name: default}], pools: [{name: p, placement: "
			 "%s}]}",
			 pools[i].placement);
		site(m, text);
		cr_assert_null(submit_text(m, "{gpus: 1, command: [a]}", NULL));
		cr_assert_eq(snapshot_take(m, T0, &s, &err), 0, "%s", err.text);
		cr_expect_eq(s->jobs[0].spread, pools[i].spread, "%s", pools[i].placement);
		snapshot_free(s);
		s = NULL;
		cr_assert_eq(snapshot_take_few(m, T0, 4, NULL, &s, &err), 0, "%s", err.text);
		cr_expect_eq(s->jobs[0].spread, pools[i].spread, "%s", pools[i].placement);
		snapshot_free(s);
		model_free(m);
	}
}
