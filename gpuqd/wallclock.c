#include "gpuqd/wallclock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/state/model.h"
#include "gpuqd/state/record/model_apply.h"
#include "libgpuq/units.h"

#define CHECK_US GPUQ_US_PER_S

static struct event clock_event(const struct loop *l)
{
	const struct clock *c = loop_clock(l);
	struct event ev = { .type = EV_CLOCK_SET, .at_us = c->now_us };

	ev.clock.boot = c->boot;
	ev.clock.base_us = c->base_us;
	ev.clock.ahead_us = c->ahead_us;
	return ev;
}

/* The wall clock was found elsewhere than it should be: from now on it is right. */
static void step_clock(struct loop *l)
{
	const int64_t off_us = clock_off_us(loop_clock(l));

	if (off_us == 0)
		return;
	loop_clock_step(l, off_us);
	if (llabs(off_us) > CLOCK_JUMP_US)
		log_warn("clock.jump",
			 "by_s=%" PRId64
			 ": the wall clock was set; limits and charges continue by the "
			 "boot clock",
			 off_us / GPUQ_US_PER_S);
	else
		log_info("clock.step", "by_ms=%" PRId64, off_us / 1000);
}

int wallclock_resume(struct loop *l, struct model *m, bool empty, struct gpuq_err *err)
{
	struct clock stored = { .base_us = m->clock_base_us, .ahead_us = m->ahead_us };
	struct event ev;

	memcpy(stored.boot, m->clock_boot, sizeof(stored.boot));
	if (!empty)
		loop_clock_resume(l, &stored, m->newest_us);
	step_clock(l);
	ev = clock_event(l);
	if (strcmp(ev.clock.boot, m->clock_boot) == 0 && ev.clock.base_us == m->clock_base_us &&
	    ev.clock.ahead_us == m->ahead_us)
		return 0;
	return model_apply(m, &ev, err);
}

/* At the end of each turn, before what it changed is stored. */
static void on_turn(void *arg)
{
	struct wallclock *w = arg;
	struct event ev;

	step_clock(w->loop);
	if (journal_model(w->journal)->ahead_us == loop_ahead_us(w->loop))
		return;
	ev = clock_event(w->loop);
	journal_apply(w->journal, &ev, NULL);
}

/* Timers stand still while the machine sleeps: let all that time alone decides be decided anew. */
static void on_check(void *arg)
{
	struct wallclock *w = arg;
	const int64_t asleep_us = loop_clock(w->loop)->asleep_us;

	if (asleep_us - w->asleep_us >= CLOCK_SLACK_US) {
		log_notice("clock.asleep", "for_s=%" PRId64,
			   (asleep_us - w->asleep_us) / GPUQ_US_PER_S);
		schedule_kick(w->schedule);
	}
	w->asleep_us = asleep_us;
	w->timer = loop_after(w->loop, CHECK_US, on_check, w);
}

void wallclock_hook(struct wallclock *w, struct loop *l)
{
	w->loop = l;
	loop_add_hook(l, on_turn, w);
}

void wallclock_set(struct wallclock *w, struct journal *j, struct schedule *s)
{
	w->journal = j;
	w->schedule = s;
}

void wallclock_start(struct wallclock *w)
{
	w->asleep_us = loop_clock(w->loop)->asleep_us;
	w->timer = loop_after(w->loop, CHECK_US, on_check, w);
}

void wallclock_stop(struct wallclock *w)
{
	loop_cancel(w->timer);
}
