/* Bytes of recorded cycles: refused, or decided, twice alike; and no device is given to
 * more than it has room for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/cycle_record.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A few changed bytes can request more than a target should wait for. */
static bool small(const struct snapshot *s)
{
	uint64_t n = s->n_nodes + s->n_devices + s->n_jobs + s->n_allocs + s->n_promises;

	for (uint32_t i = 0; i < s->n_requests; i++)
		for (uint32_t g = 0; g < s->requests[i].n_groups; g++)
			n += s->requests[i].groups[g].pods_max;
	for (uint32_t i = 0; i < s->n_jobs; i++)
		for (uint32_t r = 0; r < s->jobs[i].n_ranges; r++)
			n += (uint32_t)(s->jobs[i].ranges[r].last - s->jobs[i].ranges[r].first) /
			     (uint32_t)s->jobs[i].ranges[r].step;
	return n < 2000;
}

/* Devices that the plan starts jobs on have had that much free. */
static void check(const struct snapshot *s, const struct plan *p)
{
	int32_t *left = calloc(s->n_devices + 1, sizeof(*left));

	if (!left)
		abort();
	for (uint32_t d = 0; d < s->n_devices; d++)
		left[d] = s->devices[d].free_milli;
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];

		for (uint32_t k = 0; a->kind == PLAN_PLACE && k < a->n_pods; k++) {
			const struct plan_pod *pod = &p->pods[a->pod_first + k];

			for (uint32_t d = 0; d < pod->n_devices; d++) {
				uint32_t ix = s->nodes[pod->node].device_first +
					      p->devices[pod->device_first + d];

				left[ix] -= pod->milli;
				if (left[ix] < 0)
					abort();
			}
		}
	}
	free(left);
}

static void decide(const struct snapshot *s, struct gpuq_buf *text)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct plan plan;

	if (sched_cycle(s, &mem, &plan, &err) == 0) {
		check(s, &plan);
		cycle_text(s, &plan, text);
	}
	gpuq_arena_done(&mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct rec in = { data, data + n, false };
	struct cycle_record rec;
	struct gpuq_err err = GPUQ_ERR_INIT;

	while (in.p < in.end && cycle_record_read(&in, &rec, &err) == 0) {
		struct gpuq_buf first = GPUQ_BUF_INIT, again = GPUQ_BUF_INIT;

		rec.snapshot->config.max_steps = 100000;
		if (small(rec.snapshot) && snapshot_seal(rec.snapshot, &err) == 0) {
			decide(rec.snapshot, &first);
			decide(rec.snapshot, &again);
			if (first.len != again.len ||
			    (first.len && memcmp(first.data, again.data, first.len) != 0))
				abort();
		}
		gpuq_buf_done(&first);
		gpuq_buf_done(&again);
		snapshot_free(rec.snapshot);
	}
	return 0;
}
