#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "gpuqd/net/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuqd/base/loop.h"
#include "libgpuq/units.h"

#define STEP_MS 50
#define NICE 10

extern char **environ;

static char **environment(const char *const *added)
{
	size_t n = 0, n_added = 0;
	char **env;

	while (environ[n])
		n++;
	while (added && added[n_added])
		n_added++;
	env = calloc(n + n_added + 1, sizeof(*env));
	if (!env)
		return NULL;
	/* Those that are added stand first: the first of a name counts. */
	for (size_t i = 0; i < n_added; i++)
		env[i] = (char *)added[i];
	memcpy(env + n_added, environ, n * sizeof(*env));
	return env;
}

int command_start(const struct command *c, int said, pid_t *pid)
{
	char **env = environment(c->env);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t set;
	int rc;

	if (!env)
		return ENOMEM;
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(&attr, &set);
	sigaddset(&set, SIGPIPE);
	posix_spawnattr_setsigdefault(&attr, &set);
	if (c->in >= 0)
		posix_spawn_file_actions_adddup2(&files, c->in, 0);
	else
		posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, c->out >= 0 ? c->out : said, 1);
	posix_spawn_file_actions_adddup2(&files, said, 2);
	rc = posix_spawnp(pid, c->argv[0], &files, &attr, (char *const *)c->argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	free(env);
	return rc;
}

struct hearing {
	int fd;
	size_t n;
	char text[COMMAND_SAID_BYTES];
};

/* Read what there is, within a step; false: there is no more. */
static bool hear(struct hearing *h)
{
	struct pollfd p = { .fd = h->fd, .events = POLLIN };
	char chunk[1024];
	ssize_t n;

	if (poll(&p, 1, STEP_MS) <= 0)
		return true;
	n = read(h->fd, chunk, sizeof(chunk));
	if (n > 0) {
		const size_t room = sizeof(h->text) - 1 - h->n;
		const size_t take = (size_t)n < room ? (size_t)n : room;

		memcpy(h->text + h->n, chunk, take);
		h->n += take;
		return true;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* It is over when the child is, whoever else holds the pipe. */
static int wait_for(const struct command *c, pid_t pid, struct hearing *h, int *status,
		    struct gpuq_err *err)
{
	const int64_t until_us = loop_clock_us() + c->limit_us;
	bool talks = true;

	for (;;) {
		if (waitpid(pid, status, WNOHANG) != 0)
			break;
		if (c->stop && atomic_load(c->stop))
			return gpuq_fail(err, GPUQ_ECANCELED, "%s: the daemon stops", c->argv[0]);
		if (loop_clock_us() > until_us)
			return gpuq_fail(err, GPUQ_ETIMEOUT, "%s: not done after %lld s",
					 c->argv[0], (long long)(c->limit_us / GPUQ_US_PER_S));
		if (talks)
			talks = hear(h);
		else
			poll(NULL, 0, STEP_MS);
	}
	fcntl(h->fd, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < COMMAND_SAID_BYTES && talks; i++) {
		struct pollfd p = { .fd = h->fd, .events = POLLIN };

		talks = poll(&p, 1, 0) > 0 && hear(h);
	}
	return 0;
}

int command_run(const struct command *c, int *exit_code, char said[COMMAND_SAID_BYTES],
		struct gpuq_err *err)
{
	struct hearing h = { .n = 0 };
	int pipe_[2], status = 0, rc;
	pid_t pid = -1;

	if (pipe2(pipe_, O_CLOEXEC) != 0)
		return gpuq_fail(err, GPUQ_EIO, "no pipe: %s", strerror(errno));
	rc = command_start(c, pipe_[1], &pid);
	close(pipe_[1]);
	if (rc != 0) {
		close(pipe_[0]);
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", c->argv[0], strerror(rc));
	}
	if (c->nice)
		setpriority(PRIO_PROCESS, (id_t)pid, NICE);
	h.fd = pipe_[0];
	rc = wait_for(c, pid, &h, &status, err);
	if (rc < 0) {
		kill(-pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	close(pipe_[0]);
	h.text[strcspn(h.text, "\r\n")] = '\0';
	memcpy(said, h.text, sizeof(h.text));
	*exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return rc;
}
