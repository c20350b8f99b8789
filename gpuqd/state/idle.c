#include "gpuqd/state/idle.h"

#include "gpuqd/util/amount.h"
#include "libgpuq/units.h"

/* Return when the window began that an instant belongs to: idle time is counted in whole windows.
 */
static int64_t window_of(const struct idle_clock *c, int64_t at_us)
{
	const int64_t since = at_us > c->start_us ? at_us - c->start_us : 0;

	return c->start_us + since / c->window_us * c->window_us;
}

/* Make the window of at_us the open one. */
static void roll(struct idle *i, const struct idle_clock *c, int64_t at_us)
{
	const int64_t now = window_of(c, at_us);
	const bool was_idle = i->nothing && !i->busy;

	if (now <= i->open_us)
		return;
	/* Windows without any measurement end the sequence, as a busy one does. */
	if (was_idle && now - i->open_us == c->window_us) {
		i->since_us = i->idle ? i->since_us : i->open_us;
		i->idle = true;
	} else {
		i->idle = false;
	}
	i->open_us = now;
	i->nothing = i->busy = i->partial = false;
}

void idle_measured(struct idle *i, const struct idle_clock *c, int64_t at_us, enum idle_use use)
{
	if (!i->any) {
		*i = (struct idle){ .any = true, .open_us = window_of(c, at_us) };
		i->partial = i->open_us != c->start_us;
	}
	roll(i, c, at_us);
	i->nothing |= use == IDLE_NOTHING && !i->partial;
	i->busy |= use == IDLE_BUSY;
}

void idle_steady(struct idle *i, const struct idle_clock *c, int64_t from_us, int64_t to_us,
		 enum idle_use use)
{
	int64_t last;

	if (to_us <= from_us)
		return;
	idle_measured(i, c, from_us, use);
	last = window_of(c, to_us - 1);
	if (last <= i->open_us)
		return;
	/* The open window may have had another use before; those after it are all alike. */
	idle_measured(i, c, i->open_us + c->window_us, use);
	if (last > i->open_us && use == IDLE_NOTHING && !i->idle) {
		i->idle = true;
		i->since_us = i->open_us;
	} else if (last > i->open_us && use != IDLE_NOTHING) {
		i->idle = false;
	}
	i->open_us = last;
}

int64_t idle_for_us(const struct idle *i, const struct idle_clock *c, int64_t now_us)
{
	struct idle now = *i;

	if (!i->any)
		return 0;
	roll(&now, c, now_us);
	return now.idle ? now.open_us - now.since_us : 0;
}

int64_t idle_due_us(const struct idle *i, const struct idle_clock *c, int64_t limit_us)
{
	const int64_t windows = limit_us / c->window_us + (limit_us % c->window_us != 0);
	int64_t from;

	if (!i->any)
		return GPUQ_UNLIMITED;
	from = i->busy || i->partial ? amount_sum(i->open_us, c->window_us)
	       : i->idle             ? i->since_us
				     : i->open_us;
	return amount_sum(from, windows * c->window_us);
}
