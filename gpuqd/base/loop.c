#include "gpuqd/base/loop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <event2/event.h>

#define HOOKS_MAX 8
#define SIGNALS_MAX 8

struct loop {
	struct event_base *base;
	struct event *kick;
	int64_t now_us, mono_us;
	bool fresh; /* the clocks were read in this turn */
	struct {
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
	bool stop;
	int code;
	struct loop_stats stats;
};

struct loop_timer {
	struct event *ev;
	loop_fn fn;
	void *arg;
};

static int64_t clock_us(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void new_turn(struct loop *l)
{
	l->now_us = clock_us(CLOCK_REALTIME);
	l->mono_us = clock_us(CLOCK_MONOTONIC);
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

	if (l && cfg) {
		event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER);
		event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK);
		l->base = event_base_new_with_config(cfg);
	}
	if (cfg)
		event_config_free(cfg);
	if (l && l->base)
		l->kick = event_new(l->base, -1, 0, on_kick, NULL);
	if (!l || !l->base || !l->kick) {
		loop_free(l);
		return gpuq_fail(err, GPUQ_ENOMEM, "cannot make an event loop");
	}
	new_turn(l);
	*out = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	for (int i = 0; i < l->n_signals; i++)
		event_free(l->signals[i].ev);
	if (l->kick)
		event_free(l->kick);
	if (l->base)
		event_base_free(l->base);
	free(l);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

int64_t loop_now_us(const struct loop *l)
{
	struct loop *m = (struct loop *)l;

	if (!m->fresh)
		new_turn(m);
	return m->now_us;
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

void loop_add_hook(struct loop *l, loop_fn fn, void *arg)
{
	if (l->n_hooks == HOOKS_MAX)
		abort(); /* our own bug: hooks are added at start by daemon.c alone */
	l->hooks[l->n_hooks].fn = fn;
	l->hooks[l->n_hooks++].arg = arg;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *t = arg;
	loop_fn fn = t->fn;
	void *fn_arg = t->arg;

	(void)fd, (void)what;
	event_free(t->ev);
	free(t);
	fn(fn_arg);
}

struct loop_timer *loop_after(struct loop *l, int64_t delay_us, loop_fn fn, void *arg)
{
	struct loop_timer *t = calloc(1, sizeof(*t));
	struct timeval tv;

	if (!t)
		abort(); /* a lost timer would be a silent stall; state is on disk */
	if (delay_us < 0)
		delay_us = 0;
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

void loop_stats(const struct loop *l, struct loop_stats *out)
{
	*out = l->stats;
}

static void note_turn(struct loop *l, int64_t took_us)
{
	struct loop_stats *s = &l->stats;

	s->turns++;
	s->over_10ms += took_us > 10000;
	s->over_50ms += took_us > 50000;
	if (took_us > 50000)
		s->last_slow_us = loop_now_us(l);
	if (took_us > s->longest_us)
		s->longest_us = took_us;
}

int loop_run(struct loop *l)
{
	int64_t worked_us = clock_us(CLOCK_THREAD_CPUTIME_ID), now_us;

	while (!l->stop) {
		if (event_base_loop(l->base, EVLOOP_ONCE) != 0 && !l->stop)
			return -1;
		for (int i = 0; i < l->n_hooks; i++)
			l->hooks[i].fn(l->hooks[i].arg);
		now_us = clock_us(CLOCK_THREAD_CPUTIME_ID);
		note_turn(l, now_us - worked_us);
		worked_us = now_us;
		l->fresh = false; /* the next turn's first reader takes the time after its wait */
	}
	l->stop = false; /* so that it may be run again */
	return l->code;
}

void loop_stop(struct loop *l, int code)
{
	l->stop = true;
	l->code = code;
	loop_kick(l);
}
