/* A pool with placement: spread spreads the jobs that may come to no other pool. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot_take.h"
#include "tests/unit/model_rig.h"

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
		rig_site(m, text);
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
