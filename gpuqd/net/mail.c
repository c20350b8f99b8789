#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "gpuqd/net/mail.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/net/command.h"
#include "libgpuq/buf.h"

#define REAP_US INT64_C(20000)

struct mail_call {
	struct loop *loop;
	mail_fn fn;
	void *arg;
	pid_t pid;
	int fd; /* what it prints */
	bool late; /* it was killed for that */
	size_t n_said;
	char said[256];
	struct event *ev;
	struct loop_timer *limit, *reap;
};

static void free_call(struct mail_call *c)
{
	if (c->ev)
		event_free(c->ev);
	if (c->fd >= 0)
		close(c->fd);
	loop_cancel(c->limit);
	loop_cancel(c->reap);
	free(c);
}

static void finish(struct mail_call *c, int status)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const mail_fn fn = c->fn;
	void *const arg = c->arg;
	const int n = (int)strcspn(c->said, "\r\n");
	int rc = 0;

	if (c->late)
		rc = gpuq_fail(&err, GPUQ_ETIMEOUT, "the mail command took too long");
	else if (WIFSIGNALED(status))
		rc = gpuq_fail(&err, GPUQ_EIO, "the mail command was killed by signal %d",
			       WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		rc = gpuq_fail(&err, GPUQ_EIO, "the mail command: exit code %d%s%.*s",
			       WEXITSTATUS(status), n ? ": " : "", n, c->said);
	free_call(c);
	fn(arg, rc, &err);
}

static void on_reap(void *arg)
{
	struct mail_call *c = arg;
	int status = 0;

	c->reap = NULL;
	if (waitpid(c->pid, &status, WNOHANG) == 0) {
		c->reap = loop_after(c->loop, REAP_US, on_reap, c);
		return;
	}
	finish(c, status);
}

static void on_limit(void *arg)
{
	struct mail_call *c = arg;

	c->limit = NULL;
	c->late = true;
	kill(-c->pid, SIGKILL);
	/* Something it started elsewhere may hold the pipe open for ever. */
	event_del(c->ev);
	if (!c->reap)
		c->reap = loop_after(c->loop, 0, on_reap, c);
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
	struct mail_call *c = arg;
	char chunk[1024];
	ssize_t n = read(fd, chunk, sizeof(chunk));

	(void)what;
	if (n > 0) {
		const size_t room = sizeof(c->said) - 1 - c->n_said;
		const size_t take = (size_t)n < room ? (size_t)n : room;

		memcpy(c->said + c->n_said, chunk, take);
		c->n_said += take;
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	event_del(c->ev);
	if (!c->reap)
		c->reap = loop_after(c->loop, 0, on_reap, c);
}

static int start(struct mail_call *c, const struct gpuq_strlist *list, int in, int said)
{
	const char **argv = calloc(list->n + 1, sizeof(*argv));
	struct command run = { .argv = argv, .in = in, .out = -1 };
	int rc;

	if (!argv)
		return ENOMEM;
	memcpy(argv, list->items, list->n * sizeof(*argv));
	rc = command_start(&run, said, &c->pid);
	free(argv);
	return rc;
}

int mail_send(struct loop *l, const struct gpuq_strlist *argv, const char *text, size_t n,
	      int64_t limit_us, mail_fn fn, void *arg, struct mail_call **out, struct gpuq_err *err)
{
	int in[2] = { -1, -1 }, said[2] = { -1, -1 }, rc;
	struct mail_call *c;

	if (n > MAIL_BYTES_MAX)
		return gpuq_fail(err, GPUQ_ETOOBIG, "a mail of more than %u bytes", MAIL_BYTES_MAX);
	c = calloc(1, sizeof(*c));
	if (!c)
		return gpuq_no_memory(err);
	c->loop = l;
	c->fn = fn;
	c->arg = arg;
	c->fd = -1;
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(said, O_CLOEXEC) != 0) {
		rc = gpuq_fail(err, GPUQ_EIO, "no pipe: %s", strerror(errno));
		goto out;
	}
	/* The whole mail must fit into the pipe before a reader exists. */
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	if (write(in[1], text, n) != (ssize_t)n) {
		rc = gpuq_fail(err, GPUQ_EIO, "the pipe does not take the mail");
		goto out;
	}
	c->fd = said[0];
	said[0] = -1;
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	c->ev = event_new(loop_base(l), c->fd, EV_READ | EV_PERSIST, on_output, c);
	if (!c->ev || event_add(c->ev, NULL) != 0) {
		rc = gpuq_no_memory(err);
		goto out;
	}
	rc = start(c, argv, in[0], said[1]);
	if (rc != 0) {
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", argv->items[0], strerror(rc));
		goto out;
	}
	c->limit = loop_after(l, limit_us, on_limit, c);
	*out = c;
	c = NULL;
out:
	for (int i = 0; i < 2; i++) {
		if (in[i] >= 0)
			close(in[i]);
		if (said[i] >= 0)
			close(said[i]);
	}
	if (c)
		free_call(c);
	return rc;
}

void mail_cancel(struct mail_call *c)
{
	if (!c)
		return;
	kill(-c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	free_call(c);
}
