/* Devices of running jobs that do nothing, and jobs that are stopped for it. */
#include <string.h>

#include "gpuqd/site/policy.h"
#include "gpuqd/sim/world_int.h"

static struct idle_clock clock_of(const struct world *w, const struct sim_job *j)
{
	const int64_t window = w->c->config.idle_window;

	return (struct idle_clock){ j->start_us, window == SC_ABSENT || window <= 0
							 ? policy_default().idle_window_us
							 : world_us(w, window) };
}

static void tighten(const struct world *w, int64_t *limit_us, int64_t by)
{
	const int64_t by_us = by == SC_ABSENT || by <= 0 ? GPUQ_UNLIMITED : world_us(w, by);

	*limit_us = by_us < *limit_us ? by_us : *limit_us;
}

/* The shortest of its own and those of its queue and above. */
static int64_t limit_of(const struct world *w, const struct sim_job *j)
{
	const char *name = j->queue;
	int64_t limit_us = GPUQ_UNLIMITED;

	tighten(w, &limit_us, world_template(w, j)->spec->idle_limit);
	/* A circle is refused when the snapshot is sealed, which comes later. */
	for (uint32_t depth = 0; name && depth < w->n_queues; depth++) {
		uint32_t q = 0;

		while (q < w->n_queues && strcmp(w->queues[q].name, name) != 0)
			q++;
		if (q == w->n_queues)
			break;
		tighten(w, &limit_us, w->queues[q].idle_limit);
		name = w->queues[q].parent;
	}
	return limit_us;
}

static bool has_devices(const struct sim_job *j)
{
	for (uint32_t t = 0; t < j->n_tasks; t++)
		if (j->tasks[t].milli > 0)
			return true;
	return false;
}

void world_idle_pass(struct world *w, int64_t to_us)
{
	for (uint32_t i = 0; i < w->n_jobs; i++) {
		struct sim_job *j = &w->jobs[i];
		const struct idle_clock c = clock_of(w, j);

		if (j->state == SIM_RUNNING && j->use >= 0 && has_devices(j))
			idle_steady(&j->idle, &c, w->now_us, to_us,
				    j->use > 0 ? IDLE_BUSY : IDLE_NOTHING);
	}
}

int64_t world_idle_due_us(const struct world *w, const struct sim_job *j)
{
	const struct idle_clock c = clock_of(w, j);
	const int64_t limit_us = limit_of(w, j);
	struct idle idle = j->idle;

	if (j->state != SIM_RUNNING || limit_us == GPUQ_UNLIMITED || j->use != 0 || !has_devices(j))
		return GPUQ_UNLIMITED;
	idle_measured(&idle, &c, w->now_us, IDLE_NOTHING);
	return idle_due_us(&idle, &c, limit_us);
}

bool world_idle_is_due(const struct world *w, const struct sim_job *j)
{
	const struct idle_clock c = clock_of(w, j);
	const int64_t limit_us = limit_of(w, j);

	return j->state == SIM_RUNNING && limit_us != GPUQ_UNLIMITED &&
	       idle_for_us(&j->idle, &c, w->now_us) >= limit_us;
}
