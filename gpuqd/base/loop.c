#include "gpuqd/base/loop_int.h"
#include "gpuqd/base/loop_work.h"
#include "gpuqd/base/loop_parts.h"

#include <stdlib.h>
#include <time.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"

#define HOOKS_MAX 8
#define SIGNALS_MAX 8
#define LATE_US 20000
#define SLOW_US 50000 /* a turn that delays every client noticeably */
#define SAY_AGAIN_US 1000000
#define READING_MAX_US 1000
#define READING_TRIES 8

struct loop {
	struct event_base *base;
	struct event *kick;
	struct clock clock;
	int64_t mono_us;
	bool fresh; /* the clocks were read in this turn */
	struct {
		const char *name;
		loop_fn fn;
		void *arg;
	} hooks[HOOKS_MAX];
	int n_hooks;
	struct {
		struct event *ev;
		loop_fn fn;
		void *arg;
	} signals[SIGNALS_MAX];
	int n_signals;
	bool stop, runs;
	int code;
	struct loop_stats stats;
	struct parts *parts;
	struct works *works;
	int64_t logged_us; /* monotonic: when a slow turn was last logged */
};

struct loop_timer {
	struct loop *l;
	struct event *ev;
	const char *name;
	loop_fn fn;
	void *arg;
};

/* The clocks are read one after the other. A process that is suspended between two of them would
 * see a step of the wall clock that never happened, so such a reading is repeated. */
static struct clock_reading read_clocks(void)
{
	struct clock_reading r;
	int64_t before_us;
	int tries = 0;

	do {
		before_us = clock_us(CLOCK_BOOTTIME);
		r = (struct clock_reading){ .wall_us = clock_us(CLOCK_REALTIME),
					    .mono_us = clock_us(CLOCK_MONOTONIC),
					    .boot_us = clock_us(CLOCK_BOOTTIME) };
	} while (r.boot_us - before_us > READING_MAX_US && ++tries < READING_TRIES);
	return r;
}

static void new_turn(struct loop *l)
{
	const struct clock_reading r = read_clocks();

	clock_read(&l->clock, &r);
	l->mono_us = r.mono_us;
	l->fresh = true;
}

static void on_kick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

int loop_new(struct loop **out, struct gpuq_err *err)
{
	struct loop *l = calloc(1, sizeof(*l));
	struct event_config *cfg = event_config_new();
	struct clock_reading r;
	char boot[40];

	if (l && cfg) {
		event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER);
		event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK);
		l->base = event_base_new_with_config(cfg);
	}
	if (cfg)
		event_config_free(cfg);
	if (l && l->base)
		l->kick = event_new(l->base, -1, 0, on_kick, NULL);
	if (l) {
		l->parts = parts_new();
		l->works = works_new(l);
		l->stats.longest_part = "";
	}
	if (!l || !l->base || !l->kick || !l->parts || !l->works) {
		loop_free(l);
		return gpuq_fail(err, GPUQ_ENOMEM, "cannot make an event loop");
	}
	r = read_clocks();
	clock_boot_id(boot);
	clock_init(&l->clock, boot, &r);
	new_turn(l);
	*out = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	works_free(l->works);
	for (int i = 0; i < l->n_signals; i++)
		event_free(l->signals[i].ev);
	if (l->kick)
		event_free(l->kick);
	if (l->base)
		event_base_free(l->base);
	parts_free(l->parts);
	free(l);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

const struct clock *loop_clock(const struct loop *l)
{
	struct loop *m = (struct loop *)l;

	if (!m->fresh)
		new_turn(m);
	return &m->clock;
}

void loop_clock_resume(struct loop *l, const struct clock *stored, int64_t newest_us)
{
	const struct clock_reading r = read_clocks();
	char boot[40];

	clock_boot_id(boot);
	clock_resume(&l->clock, stored, newest_us, boot, &r);
}

void loop_clock_step(struct loop *l, int64_t by_us)
{
	clock_step(&l->clock, by_us);
}

int64_t loop_now_us(const struct loop *l)
{
	return loop_clock(l)->now_us;
}

int64_t loop_wall_us(const struct loop *l)
{
	return loop_now_us(l) + l->clock.ahead_us;
}

int64_t loop_ahead_us(const struct loop *l)
{
	return l->clock.ahead_us;
}

int64_t loop_clock_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

int64_t loop_mono_us(const struct loop *l)
{
	struct loop *m = (struct loop *)l;

	if (!m->fresh)
		new_turn(m);
	return m->mono_us;
}

bool loop_is_late(const struct loop *l)
{
	return l->runs && clock_us(CLOCK_MONOTONIC) - loop_mono_us(l) > LATE_US;
}

void loop_add_hook_as(struct loop *l, const char *name, loop_fn fn, void *arg)
{
	if (l->n_hooks == HOOKS_MAX)
		abort(); /* our own bug: hooks are added at start by daemon.c alone */
	l->hooks[l->n_hooks].name = name;
	l->hooks[l->n_hooks].fn = fn;
	l->hooks[l->n_hooks++].arg = arg;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	const struct loop_timer t = *(struct loop_timer *)arg;
	const char *before = loop_enter(t.l, t.name);

	(void)fd, (void)what;
	event_free(t.ev);
	free(arg);
	t.fn(t.arg);
	loop_leave(t.l, before);
}

struct loop_timer *loop_after_as(struct loop *l, const char *name, int64_t delay_us, loop_fn fn,
				 void *arg)
{
	struct loop_timer *t = calloc(1, sizeof(*t));
	struct timeval tv;

	if (!t)
		abort(); /* a lost timer would be a silent stall; state is on disk */
	if (delay_us < 0)
		delay_us = 0;
	t->l = l;
	t->name = name;
	t->fn = fn;
	t->arg = arg;
	t->ev = event_new(l->base, -1, 0, on_timer, t);
	tv.tv_sec = delay_us / 1000000;
	tv.tv_usec = delay_us % 1000000;
	if (!t->ev || event_add(t->ev, &tv) != 0)
		abort();
	return t;
}

void loop_cancel(struct loop_timer *t)
{
	if (!t)
		return;
	event_free(t->ev);
	free(t);
}

static void on_signal(evutil_socket_t signo, short what, void *arg)
{
	struct loop *l = arg;

	(void)what;
	for (int i = 0; i < l->n_signals; i++)
		if (event_get_signal(l->signals[i].ev) == (int)signo)
			l->signals[i].fn(l->signals[i].arg);
}

int loop_on_signal(struct loop *l, int signo, loop_fn fn, void *arg, struct gpuq_err *err)
{
	struct event *ev;

	if (l->n_signals == SIGNALS_MAX)
		abort(); /* our own bug, as for hooks */
	ev = evsignal_new(l->base, signo, on_signal, l);
	if (!ev || event_add(ev, NULL) != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "cannot wait for signal %d", signo);
	l->signals[l->n_signals].ev = ev;
	l->signals[l->n_signals].fn = fn;
	l->signals[l->n_signals++].arg = arg;
	return 0;
}

void loop_kick(struct loop *l)
{
	event_active(l->kick, 0, 0);
}

const char *loop_enter(struct loop *l, const char *name)
{
	return parts_enter(l->parts, name);
}

void loop_leave(struct loop *l, const char *before)
{
	parts_enter(l->parts, before);
}

struct works *loop_works(struct loop *l)
{
	return l->works;
}

size_t loop_parts(const struct loop *l, struct loop_part *out, size_t room)
{
	return parts_list(l->parts, out, room);
}

void loop_stats(const struct loop *l, struct loop_stats *out)
{
	*out = l->stats;
}

void loop_reset_stats(struct loop *l)
{
	l->stats = (struct loop_stats){ .longest_part = "" };
	parts_reset(l->parts);
}

/* At most once a second: where one turn is long, others often are. */
static void tell_slow(struct loop *l, int64_t took_us, const char *part, int64_t part_us)
{
	const int64_t now_us = loop_mono_us(l);

	if (l->logged_us && now_us - l->logged_us < SAY_AGAIN_US)
		return;
	l->logged_us = now_us;
	log_notice("loop.slow", "took_ms=%.1f part=%s part_ms=%.1f", (double)took_us / 1000, part,
		   (double)part_us / 1000);
}

static void note_turn(struct loop *l, int64_t took_us)
{
	struct loop_stats *s = &l->stats;
	int64_t part_us;
	const char *part = parts_turn(l->parts, took_us, &part_us);

	s->turns++;
	s->over_10ms += took_us > 10000;
	s->over_50ms += took_us > SLOW_US;
	if (took_us > SLOW_US) {
		s->last_slow_us = loop_now_us(l);
		tell_slow(l, took_us, part, part_us);
	}
	if (took_us > s->longest_us) {
		s->longest_us = took_us;
		s->longest_part = part;
		s->longest_part_us = part_us;
	}
}

int loop_run(struct loop *l)
{
	int64_t worked_us = clock_us(CLOCK_THREAD_CPUTIME_ID), now_us;

	parts_begin(l->parts);
	l->runs = true;
	while (!l->stop) {
		if (event_base_loop(l->base, EVLOOP_ONCE) != 0 && !l->stop)
			return -1;
		for (int i = 0; i < l->n_hooks; i++) {
			const char *before = loop_enter(l, l->hooks[i].name);

			l->hooks[i].fn(l->hooks[i].arg);
			loop_leave(l, before);
		}
		now_us = clock_us(CLOCK_THREAD_CPUTIME_ID);
		note_turn(l, now_us - worked_us);
		worked_us = now_us;
		l->fresh = false; /* the next turn's first reader takes the time after its wait */
	}
	l->stop = l->runs = false; /* so that it may be run again */
	return l->code;
}

void loop_stop(struct loop *l, int code)
{
	l->stop = true;
	l->code = code;
	loop_kick(l);
}
