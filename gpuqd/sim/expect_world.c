#include "gpuqd/sim/expect_int.h"

#include <stdlib.h>
#include <string.h>

/* Expectations of the cluster as a whole: losses of jobs, and that nothing is allocated twice. */

static int by_number(const void *x, const void *y)
{
	const double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* True if two lists of numbers are equal, whatever their order. got has n. */
static bool same_numbers(struct judge *j, const struct gpuq_val *want, double *got, uint32_t n)
{
	double *w;
	bool equal = true;

	if (want->type != GPUQ_LIST || want->n != n)
		return false;
	w = gpuq_arena_calloc(j->arena, n, sizeof(*w));
	for (uint32_t i = 0; w && i < n; i++)
		w[i] = judge_number(want->items[i]);
	if (!w)
		return false;
	qsort(w, n, sizeof(*w), by_number);
	qsort(got, n, sizeof(*got), by_number);
	for (uint32_t i = 0; i < n; i++)
		equal &= w[i] - got[i] < 0.0005 && got[i] - w[i] < 0.0005;
	return equal;
}

/* True if the queue is the job's own or above it. */
static bool below(const struct world *w, const char *queue, const char *ancestor)
{
	for (uint32_t guard = 0; queue && guard <= w->n_queues; guard++) {
		const char *up = NULL;

		if (strcmp(queue, ancestor) == 0)
			return true;
		for (uint32_t q = 0; q < w->n_queues; q++)
			if (strcmp(w->queues[q].name, queue) == 0)
				up = w->queues[q].parent;
		queue = up;
	}
	return false;
}

void judge_preempted_from(struct judge *j, const char *key, const struct gpuq_val *want)
{
	for (uint32_t i = 0; want->type == GPUQ_MAP && i < want->n; i++) {
		int64_t n = 0;

		for (uint32_t k = 0; k < j->w->n_jobs; k++)
			n += world_fate(&j->w->jobs[k]) == SIM_FATE_PREEMPTED &&
			     below(j->w, j->w->jobs[k].queue, want->pairs[i].key);
		if (judge_number(want->pairs[i].val) != (double)n)
			judge_differs(j, key, want, gpuq_int(j->arena, n));
	}
}

void judge_preempted_gpus(struct judge *j, const char *key, const struct gpuq_val *want)
{
	int64_t milli = 0;

	for (uint32_t i = j->w->marked_evictions; i < j->w->n_evictions; i++)
		if (strcmp(j->w->evictions[i].mode, "move") != 0)
			milli += j->w->evictions[i].milli;
	if ((double)milli / 1000 < judge_number(want))
		judge_differs(j, key, want, gpuq_real(j->arena, (double)milli / 1000));
}

/* Return the thousandths in use or nominated on every device, node by node. */
static int32_t *device_use(struct judge *j, uint32_t *n_devices)
{
	uint32_t n = 0, *first = gpuq_arena_calloc(j->arena, j->w->n_nodes, sizeof(*first));
	int32_t *used;

	for (uint32_t i = 0; first && i < j->w->n_nodes; i++) {
		first[i] = n;
		n += (uint32_t)(j->w->nodes[i].spec->gpus / 1000);
	}
	used = gpuq_arena_calloc(j->arena, n, sizeof(*used));
	if (!first || !used)
		return NULL;
	for (uint32_t i = 0; i < j->w->n_jobs; i++) {
		uint32_t n_tasks;
		const struct sim_task *tasks = world_places(&j->w->jobs[i], &n_tasks);

		for (uint32_t t = 0; t < n_tasks; t++)
			for (uint32_t d = 0; d < tasks[t].n_devices; d++)
				used[first[tasks[t].node] + tasks[t].devices[d]] += tasks[t].milli;
	}
	*n_devices = n;
	return used;
}

void judge_devices(struct judge *j, const char *key, const struct gpuq_val *want)
{
	const bool by_node = strcmp(key, "node_free_sorted") == 0;
	uint32_t n = 0, at = 0, rows;
	int32_t *used = device_use(j, &n);
	double *got;
	struct gpuq_val *list = gpuq_list(j->arena);

	got = gpuq_arena_calloc(j->arena, (size_t)n + j->w->n_nodes, sizeof(*got));
	if (!used || !got)
		return;
	rows = 0;
	for (uint32_t i = 0; i < j->w->n_nodes; i++) {
		const int64_t gpus = j->w->nodes[i].spec->gpus / 1000;

		if (!world_node_exists(&j->w->nodes[i])) {
			at += (uint32_t)gpus;
			continue;
		}
		for (int64_t d = 0; d < gpus; d++, at++) {
			if (by_node)
				got[rows] += (SNAP_MILLI - used[at]) / 1000.0;
			else
				got[rows++] = used[at] / 1000.0;
		}
		rows += by_node;
	}
	if (same_numbers(j, want, got, rows))
		return;
	for (uint32_t i = 0; i < rows; i++)
		gpuq_add(j->arena, list, gpuq_real(j->arena, got[i]));
	judge_differs(j, key, want, list);
}

void judge_pools(struct judge *j, const char *key, const struct gpuq_val *want)
{
	const struct gpuq_val *pools = gpuq_get(j->outcome, "pools");

	for (uint32_t i = 0; i < want->n; i++) {
		const struct gpuq_val *is = gpuq_get(gpuq_get(pools, want->pairs[i].key), key);

		if (judge_number(is) != judge_number(want->pairs[i].val))
			judge_differs(j, key, want, is);
	}
}

/* An allocation on one node: a task, or a nominated placement. */
struct stand {
	int64_t cpu, mem_mb, pods; /* thousandths, as in the file */
	int64_t milli[SNAP_DEVICES_MAX], gpu_mem_mb[SNAP_DEVICES_MAX];
};

static void stand_on(const struct world *w, uint32_t node, struct stand *out)
{
	memset(out, 0, sizeof(*out));
	for (uint32_t i = 0; i < w->n_jobs; i++) {
		const struct sim_template *t = world_template(w, &w->jobs[i]);
		uint32_t n;
		const struct sim_task *tasks = world_places(&w->jobs[i], &n);

		for (uint32_t k = 0; k < n; k++) {
			const struct sc_tasks *spec = t->groups[tasks[k].group].tasks;

			if (tasks[k].node != node)
				continue;
			out->cpu += spec->cpu;
			out->mem_mb += spec->mem_mb;
			out->pods += 1000;
			for (uint32_t d = 0; d < tasks[k].n_devices; d++) {
				out->milli[tasks[k].devices[d]] += tasks[k].milli;
				out->gpu_mem_mb[tasks[k].devices[d]] += spec->gpu_mem_mb;
			}
		}
	}
}

/* Check that no device, core, byte or pod slot is allocated or nominated twice. */
void judge_capacity(struct judge *j, const char *key, const struct gpuq_val *want)
{
	struct stand *on = gpuq_arena_calloc(j->arena, 1, sizeof(*on));
	bool safe = on != NULL;

	for (uint32_t i = 0; on && i < j->w->n_nodes; i++) {
		const struct sc_node *spec = j->w->nodes[i].spec;

		stand_on(j->w, i, on);
		safe &= (spec->cpu == SC_ABSENT || on->cpu <= spec->cpu) &&
			(spec->mem_mb == SC_ABSENT || on->mem_mb <= spec->mem_mb) &&
			(spec->max_pods == SC_ABSENT || on->pods <= spec->max_pods);
		for (int64_t d = 0; d < SNAP_DEVICES_MAX; d++)
			safe &= on->milli[d] <= (d < spec->gpus / 1000 ? SNAP_MILLI : 0) &&
				on->gpu_mem_mb[d] <= (d < spec->gpus / 1000 ? spec->gpu_mem_mb : 0);
	}
	if (want->type != GPUQ_BOOL || safe != want->b)
		judge_differs(j, key, want, gpuq_bool(j->arena, safe));
}
