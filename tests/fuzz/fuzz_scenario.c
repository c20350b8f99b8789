/* Text of a scenario: refused with a place, or lived through. Whatever it says, the
 * scheduler gives no device twice and every job that waits a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sim/outcome.h"
#include "gpuqd/sim/scenario/scenario.h"
#include "gpuqd/sim/world.h"
#include "gpuqd/sim/world_cycle.h"
#include "gpuqd/sim/world_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Some inputs say `count: 99999`; what they would show, smaller ones show as well. */
static bool small(const struct sc_case *c)
{
	const struct sc_node *nodes = c->nodes.items;
	const struct sc_job *lists[] = { c->running.items, c->pending.items };
	const size_t counts[] = { c->running.n, c->pending.n };
	int64_t n = (int64_t)(c->running.n + c->pending.n + c->n_steps), devices = 0;

	for (size_t i = 0; i < c->nodes.n; i++) {
		n += nodes[i].count == SC_ABSENT ? 1 : nodes[i].count / 1000;
		devices += nodes[i].gpus / 1000;
	}
	for (int l = 0; l < 2; l++) {
		for (size_t i = 0; i < counts[l]; i++) {
			const struct sc_tasks *t = lists[l][i].tasks.items;
			const struct sc_array *a = lists[l][i].array;

			n += a ? (a->last - a->first) / a->step : 0;
			for (size_t k = 0; k < lists[l][i].tasks.n; k++)
				n += t[k].count / 1000;
		}
	}
	return n < 500 && devices < 5000;
}

static void check(struct world *w)
{
	for (uint32_t i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].state == SIM_PENDING && w->jobs[i].n_reasons == 0 &&
		    w->jobs[i].n_promises == 0)
			abort();
	for (uint32_t n = 0; n < w->n_nodes; n++) {
		int32_t used[SNAP_DEVICES_MAX] = { 0 };

		for (uint32_t i = 0; i < w->n_jobs; i++) {
			uint32_t n_tasks;
			const struct sim_task *tasks = world_places(&w->jobs[i], &n_tasks);

			for (uint32_t t = 0; t < n_tasks; t++)
				for (uint32_t d = 0; d < tasks[t].n_devices; d++)
					if (tasks[t].node == n)
						used[tasks[t].devices[d]] += tasks[t].milli;
		}
		for (uint32_t d = 0; d < SNAP_DEVICES_MAX; d++)
			if (used[d] > SNAP_MILLI)
				abort();
	}
}

static void live(const struct sc_case *c)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf wrong = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *out;
	struct world w;
	int rc = world_make(c, &w, &err);

	if (rc == 0)
		rc = world_rest(&w, 0, &err);
	if (rc == 0)
		check(&w);
	for (size_t i = 0; rc == 0 && i < c->n_steps; i++) {
		world_mark(&w);
		rc = world_step(&w, &c->steps[i], &err);
		if (rc == 0)
			check(&w);
	}
	if (rc < 0 && (err.code != rc || err.text[0] == '\0'))
		abort();
	if (rc == 0) {
		out = outcome_make(&a, &w);
		expect_judge(&w, c->expect, out, true, &wrong);
	}
	world_done(&w);
	gpuq_buf_done(&wrong);
	gpuq_arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gpuq_arena arena = GPUQ_ARENA_INIT(64 << 20);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct sc_result *results = NULL;
	size_t n_results = 0;
	int rc = scenario_read(&arena, "f", (const char *)data, n, &results, &n_results, &err);

	if (rc == GPUQ_EINVAL && strncmp(err.text, "f:", 2) != 0)
		abort();
	for (size_t i = 0; rc == 0 && i < n_results; i++) {
		if (!results[i].c && results[i].err.text[0] == '\0')
			abort();
		if (results[i].c && small(results[i].c))
			live(results[i].c);
	}
	gpuq_arena_done(&arena);
	return 0;
}
