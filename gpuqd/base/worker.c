#include "gpuqd/base/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/loop.h"

struct worker {
	pthread_t thread;
	bool busy;
	worker_fn work, done;
	void *arg;
	int fd;
	struct event *ev;
};

static void *run(void *arg)
{
	struct worker *w = arg;
	const uint64_t one = 1;

	w->work(w->arg);
	/* A counter of its own never overflows; else the loop would wait for ever. */
	if (write(w->fd, &one, sizeof(one)) != sizeof(one))
		abort();
	return NULL;
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) != sizeof(n))
		return;
	pthread_join(w->thread, NULL);
	w->busy = false;
	w->done(w->arg);
}

int worker_new(struct loop *l, struct worker **out, struct gpuq_err *err)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd >= 0)
		w->ev = event_new(loop_base(l), w->fd, EV_READ | EV_PERSIST, on_done, w);
	if (!w->ev || event_add(w->ev, NULL) != 0) {
		worker_free(w);
		return gpuq_fail(err, GPUQ_ENOMEM, "cannot watch a thread");
	}
	*out = w;
	return 0;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	if (w->busy)
		pthread_join(w->thread, NULL);
	if (w->ev)
		event_free(w->ev);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

int worker_run(struct worker *w, worker_fn work, worker_fn done, void *arg, struct gpuq_err *err)
{
	sigset_t all, before;
	int rc;

	if (w->busy)
		return gpuq_fail(err, GPUQ_EBUSY, "a thread is at work already");
	w->work = work;
	w->done = done;
	w->arg = arg;
	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return gpuq_fail(err, GPUQ_ENOMEM, "cannot start a thread");
	w->busy = true;
	return 0;
}

bool worker_is_busy(const struct worker *w)
{
	return w->busy;
}
