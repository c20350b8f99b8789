/* The daemon's end of a log_reader.h. The daemon never touches the file itself: what its owner
 * has put there may never answer. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/local/local_own.h"
#include "gpuqd/cluster/local/local_launch.h"
#include "gpuqd/cluster/local/shepherd/log_reader.h"

struct local_own {
	struct local *l;
	pid_t pid;
	int fd;
	bool last;
	struct event *ev;
	void (*ready)(void *arg);
	void *arg;
	struct local_own *next; /* in local.ended */
};

static void on_bytes(evutil_socket_t fd, short what, void *arg)
{
	const struct local_own *o = arg;

	(void)fd, (void)what;
	o->ready(o->arg);
}

/* A socket that was just made takes all of a request. */
static bool ask(int fd, const struct log_request *r)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	bool ok;

	log_request_write(&b, r);
	ok = !b.failed && send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)b.len;
	gpuq_buf_done(&b);
	return ok;
}

struct local_own *local_own_open(struct local *l, const struct log_request *r, bool follow,
				 void (*ready)(void *arg), void *arg)
{
	const char *argv[] = { l->shepherd, "--shepherd", LOG_READER_FLAG, NULL };
	struct local_own *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	*o = (struct local_own){ .l = l, .ready = ready, .arg = arg };
	o->pid = local_spawn_pair(l, argv, &o->fd);
	if (o->pid < 0) {
		log_warn("local.reader_failed", "why=%s", LOGS(strerror(errno)));
		free(o);
		return NULL;
	}
	o->ev = event_new(loop_base(l->loop), o->fd, EV_READ, on_bytes, o);
	if (!o->ev)
		abort(); /* as loop_after */
	if (!ask(o->fd, r)) {
		local_own_free(o);
		return NULL;
	}
	if (!follow)
		local_own_last(o);
	return o;
}

ssize_t local_own_read(struct local_own *o, char *out, size_t room)
{
	const ssize_t n = recv(o->fd, out, room, MSG_DONTWAIT);

	if (n >= 0)
		return n;
	if (errno != EAGAIN && errno != EINTR)
		return 0;
	if (event_add(o->ev, NULL) != 0)
		abort(); /* as loop_after */
	return -1;
}

void local_own_last(struct local_own *o)
{
	if (!o->last)
		shutdown(o->fd, SHUT_WR);
	o->last = true;
}

/* It may hang in a file system of its user's, where not even KILL is heard at once. */
void local_own_free(struct local_own *o)
{
	struct local *l = o->l;

	event_free(o->ev);
	close(o->fd);
	kill(o->pid, SIGKILL);
	o->next = l->ended;
	l->ended = o;
	local_own_reap(l, false);
}

void local_own_reap(struct local *l, bool forget)
{
	for (struct local_own **at = &l->ended; *at;) {
		struct local_own *o = *at;

		if (waitpid(o->pid, NULL, WNOHANG) == 0 && !forget) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		free(o);
	}
}
