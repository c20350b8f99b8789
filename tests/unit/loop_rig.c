#include "tests/unit/loop_rig.h"

#include <stdlib.h>

struct loop_timer {
	struct loop_timer *next;
	int64_t at_us;
	loop_fn fn;
	void *arg;
};

int64_t rig_wall_us = INT64_C(1700000000) * RIG_S;
static int64_t mono_us = 12345678;
static struct loop_timer *timers;

int64_t loop_mono_us(const struct loop *l)
{
	(void)l;
	return mono_us;
}

int64_t loop_wall_us(const struct loop *l)
{
	(void)l;
	return rig_wall_us;
}

struct loop_timer *loop_after_as(struct loop *l, const char *name, int64_t delay_us, loop_fn fn,
				 void *arg)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	(void)l, (void)name;
	if (!t || delay_us < 0)
		abort();
	*t = (struct loop_timer){ timers, mono_us + delay_us, fn, arg };
	timers = t;
	return t;
}

void loop_cancel(struct loop_timer *t)
{
	struct loop_timer **at = &timers;

	while (t && *at && *at != t)
		at = &(*at)->next;
	if (!t)
		return;
	if (!*at)
		abort(); /* it has run, or was cancelled before */
	*at = t->next;
	free(t);
}

/* The first that is due until then. */
static struct loop_timer *due(int64_t until_us)
{
	struct loop_timer *first = NULL;

	for (struct loop_timer *t = timers; t; t = t->next)
		if (t->at_us <= until_us && (!first || t->at_us <= first->at_us))
			first = t;
	return first;
}

void rig_pass(int64_t us)
{
	const int64_t until_us = mono_us + us;
	struct loop_timer *t;

	while ((t = due(until_us)) != NULL) {
		const loop_fn fn = t->fn;
		void *const arg = t->arg;

		rig_wall_us += t->at_us - mono_us;
		mono_us = t->at_us;
		loop_cancel(t);
		fn(arg);
	}
	rig_wall_us += until_us - mono_us;
	mono_us = until_us;
}

unsigned rig_timers(void)
{
	unsigned n = 0;

	for (const struct loop_timer *t = timers; t; t = t->next)
		n++;
	return n;
}
