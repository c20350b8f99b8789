/* The relation of ledger time and wall time, and state that depends on the wall clock. */
#include "gpuqd/state/model_int.h"

#include <stdio.h>

#include "gpuqd/util/civil.h"
#include "gpuqd/util/walltime.h"

int64_t clock_day(const struct model *m, int64_t us)
{
	return civil_day(us + m->ahead_us);
}

int64_t clock_day_begins(const struct model *m, int64_t day)
{
	return day * CIVIL_DAY_US - m->ahead_us;
}

int64_t clock_job_begin_us(const struct model *m, const struct job *j)
{
	return walltime_to_ledger(j->wish->begin_us, m->ahead_us);
}

int64_t clock_job_deadline_us(const struct model *m, const struct job *j)
{
	return walltime_to_ledger(j->wish->deadline_us, m->ahead_us);
}

int64_t clock_job_eligible_from(const struct model *m, int64_t begin_us, int64_t now_us)
{
	const int64_t begin = walltime_to_ledger(begin_us, m->ahead_us);

	return begin > now_us ? begin : now_us;
}

int clock_apply(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	const bool moved = m->ahead_us != ev->clock.ahead_us;

	(void)err;
	snprintf(m->clock_boot, sizeof(m->clock_boot), "%s", ev->clock.boot);
	m->clock_base_us = ev->clock.base_us;
	m->ahead_us = ev->clock.ahead_us;
	m->meta_dirty = true;
	if (!moved)
		return 0;
	job_each_rw(m, j) {
		if (!j->wish->begin_us || j->eligible_us <= ev->at_us)
			continue;
		j->eligible_us = clock_job_eligible_from(m, j->wish->begin_us, j->submit_us);
		model_job_dirty(m, j);
	}
	return 0;
}

void clock_seen(struct model *m, int64_t us)
{
	if (us > m->newest_us && us != GPUQ_UNLIMITED)
		m->newest_us = us;
}
