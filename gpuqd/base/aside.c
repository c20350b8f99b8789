#include "gpuqd/base/aside.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/loop.h"

struct piece {
	struct piece *next;
	struct aside *a;
	pthread_t thread;
	aside_fn work, done;
	void *arg;
	atomic_bool over;
};

struct aside {
	struct event *ev;
	int fd;
	unsigned most, busy;
	struct piece *pieces;
	atomic_bool ends;
};

static void *thread_main(void *arg)
{
	struct piece *p = arg;
	const uint64_t one = 1;

	p->work(p->arg);
	atomic_store(&p->over, true);
	/* A full counter wakes the loop as well. */
	if (write(p->a->fd, &one, sizeof(one)) < 0)
		return NULL;
	return NULL;
}

/* done may ask for more work: the list is read anew after each. */
static struct piece *take(struct aside *a, bool all)
{
	for (struct piece **at = &a->pieces; *at; at = &(*at)->next) {
		struct piece *p = *at;

		if (!all && !atomic_load(&p->over))
			continue;
		*at = p->next;
		return p;
	}
	return NULL;
}

static void finish(struct aside *a, bool all)
{
	struct piece *p;

	while ((p = take(a, all)) != NULL) {
		pthread_join(p->thread, NULL);
		a->busy--;
		p->done(p->arg);
		free(p);
	}
}

static void on_over(evutil_socket_t fd, short what, void *arg)
{
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) < 0)
		return;
	finish(arg, false);
}

int aside_new(struct loop *l, unsigned most, struct aside **out, struct gpuq_err *err)
{
	struct aside *a = calloc(1, sizeof(*a));

	if (!a)
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	a->most = most;
	a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->fd >= 0)
		a->ev = event_new(loop_base(l), a->fd, EV_READ | EV_PERSIST, on_over, a);
	if (!a->ev || event_add(a->ev, NULL) != 0) {
		aside_free(a);
		return gpuq_fail(err, GPUQ_ENOMEM, "cannot wait for threads");
	}
	*out = a;
	return 0;
}

void aside_free(struct aside *a)
{
	if (!a)
		return;
	atomic_store(&a->ends, true);
	finish(a, true);
	if (a->ev)
		event_free(a->ev);
	if (a->fd >= 0)
		close(a->fd);
	free(a);
}

int aside_run(struct aside *a, aside_fn work, aside_fn done, void *arg, struct gpuq_err *err)
{
	struct piece *p;
	sigset_t all, old;
	int rc;

	if (a->busy >= a->most)
		return gpuq_fail(err, GPUQ_EBUSY,
				 "the daemon is busy with %u such questions: ask again", a->busy);
	p = calloc(1, sizeof(*p));
	if (!p)
		return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
	p->a = a;
	p->work = work;
	p->done = done;
	p->arg = arg;
	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&p->thread, NULL, thread_main, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		free(p);
		return gpuq_fail(err, GPUQ_ENOMEM, "cannot start a thread");
	}
	p->next = a->pieces;
	a->pieces = p;
	a->busy++;
	return 0;
}

bool aside_ends(const struct aside *a)
{
	return atomic_load(&a->ends);
}

unsigned aside_busy(const struct aside *a)
{
	return a->busy;
}
