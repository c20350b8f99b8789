#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/cluster/local/local_launch.h"
#include "gpuqd/cluster/local/local_pod.h"

/* One shepherd between its spawn and its reply. */
struct local_launch {
	struct local *l;
	struct local_pod *p; /* NULL: not wanted any more */
	pid_t pid;
	int fd;
	struct event *ev;
	char text[400];
	size_t n;
	struct local_launch *next;
};

/* Start the shepherd program with these as its standard input and output; -1 = /dev/null. */
static pid_t spawn(const struct local *l, const char *const *argv, int in, int out)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none, all;
	pid_t pid = -1;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	for (int fd = 0; fd < 3; fd++) {
		const int ours = fd == STDIN_FILENO ? in : fd == STDOUT_FILENO ? out : -1;

		if (ours >= 0)
			posix_spawn_file_actions_adddup2(&fa, ours, fd);
		else
			posix_spawn_file_actions_addopen(&fa, fd, "/dev/null", O_RDWR, 0);
	}
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawn(&pid, l->shepherd, &fa, &attr, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	errno = rc;
	return rc == 0 ? pid : -1;
}

/* Take ours from the pair once the child has its own. */
static pid_t keep_end(pid_t pid, const int pair[2], int *out_fd)
{
	const int why = errno;

	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		errno = why;
		return -1;
	}
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	*out_fd = pair[0];
	return pid;
}

pid_t local_spawn(const struct local *l, const char *const *argv, int *out_fd)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) != 0)
		return -1;
	return keep_end(spawn(l, argv, -1, p[1]), p, out_fd);
}

pid_t local_spawn_pair(const struct local *l, const char *const *argv, int *fd)
{
	int p[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) != 0)
		return -1;
	return keep_end(spawn(l, argv, p[1], -1), p, fd);
}

static void unlink_launch(struct local_launch *la)
{
	struct local_launch **at = &la->l->launches;

	while (*at != la)
		at = &(*at)->next;
	*at = la->next;
	la->l->n_launches--;
	if (la->p)
		la->p->launch = NULL;
	event_free(la->ev);
	close(la->fd);
	free(la);
}

static void back_off(struct local *l, struct local_pod *p)
{
	p->backoff_us = p->backoff_us ? 2 * p->backoff_us : LOCAL_BACKOFF_MIN_US;
	if (p->backoff_us > LOCAL_BACKOFF_MAX_US)
		p->backoff_us = LOCAL_BACKOFF_MAX_US;
	p->retry_at_us = loop_mono_us(l->loop) + p->backoff_us;
}

static void failed(struct local *l, struct local_pod *p, const char *why)
{
	log_line(p->told_retry ? LOG_L_DEBUG : LOG_L_WARN, "local.shepherd_failed",
		 "pod=%s why=%s retry_ms=%lld", p->name, LOGS(why),
		 (long long)p->backoff_us / 1000);
	local_pod_trouble(l, p, why);
}

/* The answer is complete at the end of the pipe; the process has exited or is just
 * doing so, its successor that tends the pod has closed the pipe. */
static void answered(struct local_launch *la)
{
	struct local *l = la->l;
	struct local_pod *p = la->p;
	char text[sizeof(la->text)];
	pid_t pid = la->pid;

	snprintf(text, sizeof(text), "%.*s", (int)la->n, la->text);
	text[strcspn(text, "\n")] = '\0';
	unlink_launch(la);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (!p)
		return;
	if (strcmp(text, "ok") != 0 && strcmp(text, "busy") != 0 && strcmp(text, "done") != 0) {
		failed(l, p, *text ? text : "the shepherd ended without a reply");
		return;
	}
	/* A short pod may have ended before its shepherd's answer is read: then the message
	 * says how. */
	if (p->state.how == HOW_NOT)
		p->message[0] = '\0';
	if (p->owes_created) {
		p->owes_created = false;
		local_answer_created(l, p, ASK_OK, "");
	}
	local_pod_advance(l, p);
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct local_launch *la = arg;
	char rest[256];
	ssize_t n;

	(void)what;
	for (;;) {
		const size_t room = sizeof(la->text) - la->n;

		n = read(fd, room ? la->text + la->n : rest, room ? room : sizeof(rest));
		if (n > 0 && room)
			la->n += (size_t)n;
		if (n == 0 || (n < 0 && errno != EINTR))
			break;
	}
	if (n < 0 && errno == EAGAIN)
		return;
	answered(la);
}

void local_launch(struct local *l, struct local_pod *p)
{
	char path[4096];
	const char *argv[] = { l->shepherd, "--shepherd", path, NULL };
	struct local_launch *la;

	if (l->n_launches >= LOCAL_LAUNCHES_MAX)
		return; /* its turn comes with the next tick */
	la = calloc(1, sizeof(*la));
	if (!la)
		return;
	snprintf(path, sizeof(path), "%s/local/%s", l->dir, p->name);
	(void)FAILPOINT("local.launch.before");
	/* Also a shepherd that answers "ok" may die before it began: never in a hot loop. */
	back_off(l, p);
	la->pid = local_spawn(l, argv, &la->fd);
	if (la->pid < 0) {
		char why[300];

		snprintf(why, sizeof(why), "cannot start a shepherd (%s): %s", l->shepherd,
			 strerror(errno));
		free(la);
		failed(l, p, why);
		return;
	}
	(void)FAILPOINT("local.launch.spawned");
	la->ev = event_new(loop_base(l->loop), la->fd, EV_READ | EV_PERSIST, on_answer, la);
	if (!la->ev || event_add(la->ev, NULL) != 0)
		abort(); /* as loop_after: a lost wait would be a silent stall; state is on disk */
	la->l = l;
	la->p = p;
	la->next = l->launches;
	l->launches = la;
	l->n_launches++;
	p->launch = la;
}

void local_launch_forget(struct local *l, struct local_pod *p)
{
	(void)l;
	if (p->launch)
		p->launch->p = NULL;
	p->launch = NULL;
}

void local_launch_free_all(struct local *l)
{
	while (l->launches)
		unlink_launch(l->launches);
}
