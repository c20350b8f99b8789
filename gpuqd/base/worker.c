#include "gpuqd/base/worker.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/clock.h"

/* Idle for so long, a worker releases what its work took. */
#define REST_US 200000

struct task {
	struct task *next;
	const char *name;
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

struct worker {
	struct loop *l;
	pthread_t thread;
	bool running;
	bool over; /* the thread examines nothing any more */
	enum {
		END_NOT,
		END_DONE,
		END_NOW
	} end; /* when to end: END_DONE, once nothing is left to do */
	pthread_mutex_t mu;
	pthread_cond_t wake;
	bool gives_back;
	struct task *todo, **todo_end, *finished, **finished_end;
	int fd;
	struct event *ev;
};

/* Memory of a thread's that was freed stays with the process, as much as its largest task ever
 * took: a copy of all jobs, mostly. */
static void give_back(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

/* Wait for a task for a moment, with the lock. Returns whether none came. */
static bool is_left_idle(struct worker *w)
{
	const int64_t until_us = clock_us(CLOCK_MONOTONIC) + REST_US;
	const struct timespec until = { .tv_sec = until_us / 1000000,
					.tv_nsec = until_us % 1000000 * 1000 };

	return pthread_cond_timedwait(&w->wake, &w->mu, &until) == ETIMEDOUT;
}

/* Wait for a task, with the lock. used: something was done since memory was released. */
static void await(struct worker *w, bool *used)
{
	while (!w->todo && w->end == END_NOT) {
		if (!*used || !w->gives_back) {
			pthread_cond_wait(&w->wake, &w->mu);
		} else if (is_left_idle(w)) {
			*used = false;
			pthread_mutex_unlock(&w->mu);
			give_back();
			pthread_mutex_lock(&w->mu);
		}
	}
}

static void *run(void *arg)
{
	struct worker *w = arg;
	struct task *t;
	bool used = false;
	uint64_t one = 1;

	pthread_mutex_lock(&w->mu);
	for (;;) {
		await(w, &used);
		if (w->end == END_NOW || !w->todo)
			break;
		t = w->todo;
		w->todo = t->next;
		if (!w->todo)
			w->todo_end = &w->todo;
		pthread_mutex_unlock(&w->mu);
		t->work(t->arg);
		used = true;
		pthread_mutex_lock(&w->mu);
		t->next = NULL;
		*w->finished_end = t;
		w->finished_end = &t->next;
		if (write(w->fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
			break;
	}
	w->over = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->mu);
	return NULL;
}

static void on_finished(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;
	struct task *t, *next;
	const char *before;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) < 0)
		return; /* EAGAIN: reported already */
	pthread_mutex_lock(&w->mu);
	t = w->finished;
	w->finished = NULL;
	w->finished_end = &w->finished;
	pthread_mutex_unlock(&w->mu);
	for (; t; t = next) {
		next = t->next;
		before = loop_enter(w->l, t->name);
		t->done(t->arg);
		loop_leave(w->l, before);
		free(t);
	}
}

void worker_give_back(struct worker *w)
{
	w->gives_back = true;
}

int worker_new(struct loop *l, struct worker **out, struct gpuq_err *err)
{
	struct worker *w = calloc(1, sizeof(*w));
	pthread_condattr_t monotonic;

	if (!w)
		return gpuq_no_memory(err);
	w->l = l;
	w->todo_end = &w->todo;
	w->finished_end = &w->finished;
	pthread_mutex_init(&w->mu, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd >= 0)
		w->ev = event_new(loop_base(l), w->fd, EV_READ | EV_PERSIST, on_finished, w);
	if (!w->ev || event_add(w->ev, NULL) != 0) {
		worker_free(w, NULL);
		return gpuq_fail(err, GPUQ_ENOMEM, "cannot watch the worker");
	}
	*out = w;
	return 0;
}

int worker_start(struct worker *w, struct gpuq_err *err)
{
	if (!w->running && pthread_create(&w->thread, NULL, run, w) != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "cannot start a thread");
	w->running = true;
	return 0;
}

int worker_run_as(struct worker *w, const char *name, void (*work)(void *arg),
		  void (*done)(void *arg), void *arg, struct gpuq_err *err)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		return gpuq_no_memory(err);
	*t = (struct task){ NULL, name, work, done, arg };
	if (w->end == END_NOT && worker_start(w, err) < 0) {
		free(t);
		return GPUQ_ENOMEM;
	}
	pthread_mutex_lock(&w->mu);
	*w->todo_end = t;
	w->todo_end = &t->next;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->mu);
	return 0;
}

static void drop(struct task *t, void (*dropped)(void *arg))
{
	struct task *next;

	for (; t; t = next) {
		next = t->next;
		if (dropped)
			dropped(t->arg);
		free(t);
	}
}

static void end(struct worker *w, int when)
{
	pthread_mutex_lock(&w->mu);
	w->end = when;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->mu);
	if (w->running)
		pthread_join(w->thread, NULL);
	w->running = false;
}

void worker_finish(struct worker *w)
{
	if (w)
		end(w, END_DONE);
}

bool worker_end_within(struct worker *w, int64_t us)
{
	const int64_t until_us = clock_us(CLOCK_MONOTONIC) + us;
	const struct timespec until = { .tv_sec = until_us / 1000000,
					.tv_nsec = until_us % 1000000 * 1000 };
	bool over;

	if (!w || !w->running)
		return true;
	pthread_mutex_lock(&w->mu);
	w->end = END_NOW;
	pthread_cond_broadcast(&w->wake);
	while (!w->over && pthread_cond_timedwait(&w->wake, &w->mu, &until) != ETIMEDOUT)
		continue;
	over = w->over;
	pthread_mutex_unlock(&w->mu);
	return over;
}

void worker_free(struct worker *w, void (*dropped)(void *arg))
{
	if (!w)
		return;
	end(w, END_NOW);
	drop(w->finished, dropped);
	drop(w->todo, dropped);
	if (w->ev)
		event_free(w->ev);
	if (w->fd >= 0)
		close(w->fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->mu);
	free(w);
}
