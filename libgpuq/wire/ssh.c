#define _GNU_SOURCE /* memfd_create, pipe2's flags */
#include "libgpuq/wire/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST_BYTES 256
#define SAID_BYTES 4096 /* of what ssh said, the end */
#define END_TRIES 200 /* of END_MS, for ssh to end by itself */
#define END_MS 5
#define SSH_FAILED 255 /* of ssh itself, else the status of the command there */
#define NO_COMMAND 127
#define NOT_RUN 126

extern char **environ;

/* user@host as ssh takes it, and the port apart. */
struct place {
	char host[HOST_BYTES];
	char port[8]; /* "" = ssh's own choice */
};

static int bad_address(const char *addr, const char *why, struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_EINVAL,
			 "'%s' is not a server address: %s; expected ssh://[user@]host[:port]",
			 addr, why);
}

static bool is_port(const char *s)
{
	const size_t n = strspn(s, "0123456789");
	const long port = n > 0 && n <= 5 && !s[n] ? strtol(s, NULL, 10) : 0;

	return port > 0 && port < 65536;
}

/* The host's own characters: those of names, of addresses, and of an IPv6 address and its zone. */
static bool is_host(const char *s, size_t n, bool brackets)
{
	for (size_t i = 0; i < n; i++) {
		const char c = s[i];
		const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				   (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';

		if (!plain && !(brackets && (c == ':' || c == '%')))
			return false;
	}
	return n > 0 && s[0] != '-';
}

static int parse(const char *addr, struct place *out, struct gpuq_err *err)
{
	const char *p = addr + strlen("ssh://"), *at = strrchr(p, '@');
	const char *host = at ? at + 1 : p, *end, *port = NULL;
	const size_t n_user = at ? (size_t)(at - p) : 0;
	const bool brackets = *host == '[';
	size_t n;

	if (at && (n_user == 0 || *p == '-' || strcspn(p, "@:/ \t\r\n'\"\\$`") < n_user))
		return bad_address(addr, "the user name is not valid", err);
	if (brackets) {
		host++;
		end = strchr(host, ']');
		if (!end)
			return bad_address(addr, "a ] is missing", err);
		n = (size_t)(end - host);
		end++;
	} else {
		n = strcspn(host, ":");
		end = host + n;
	}
	if (*host == '-')
		return bad_address(addr, "a host does not begin with -", err);
	if (!is_host(host, n, brackets))
		return bad_address(addr, "the host name is not valid", err);
	if (*end == ':')
		port = end + 1;
	else if (*end)
		return bad_address(addr, "unexpected text after the host", err);
	if (port && !is_port(port))
		return bad_address(addr, "the port is not a number from 1 to 65535", err);
	if (n_user + n + 2 > sizeof(out->host))
		return bad_address(addr, "it is too long", err);
	snprintf(out->host, sizeof(out->host), "%.*s%s%.*s", (int)n_user, p, at ? "@" : "", (int)n,
		 host);
	snprintf(out->port, sizeof(out->port), "%s", port ? port : "");
	return 0;
}

/* The signals as a program expects them, whatever the caller made of them. */
static int spawn(const struct place *to, int fd, int errs, pid_t *pid)
{
	const char *argv[12] = { "ssh", "-T", "-o", "BatchMode=yes" };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	size_t n = 4;
	int rc;

	if (*to->port) {
		argv[n++] = "-p";
		argv[n++] = to->port;
	}
	argv[n++] = "--";
	argv[n++] = to->host;
	argv[n++] = "gpuq";
	argv[n++] = "proxy";
	argv[n] = NULL;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETPGROUP);
	rc = posix_spawn_file_actions_adddup2(&files, fd, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&files, fd, 1);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&files, errs, 2);
	if (rc == 0)
		rc = posix_spawnp(pid, "ssh", &files, &attr, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

int gpuq_ssh_open(struct gpuq_ssh *s, const char *addr, int *fd, struct gpuq_err *err)
{
	int pair[2] = { -1, -1 }, errs = -1, error = 0;
	struct place to;
	pid_t pid = 0;
	int rc = parse(addr, &to, err);

	if (rc < 0)
		return rc;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		error = errno;
	if (!error && (errs = memfd_create("gpuq-ssh", MFD_CLOEXEC)) < 0)
		error = errno;
	if (!error && fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0)
		error = errno;
	if (!error)
		error = spawn(&to, pair[1], errs, &pid);
	if (pair[1] >= 0)
		close(pair[1]);
	if (!error) {
		*s = (struct gpuq_ssh){ .pid = pid, .errs = errs };
		*fd = pair[0];
		return 0;
	}
	if (pair[0] >= 0)
		close(pair[0]);
	if (errs >= 0)
		close(errs);
	if (error == ENOENT)
		return gpuq_fail(err, GPUQ_EUNREACH,
				 "%s: ssh is not installed: install the package openssh-client",
				 addr);
	return gpuq_fail(err, GPUQ_EIO, "%s: ssh cannot be started: %s", addr, strerror(error));
}

/* Its exit status: 128 + n for a signal. It is ended where it does not end by itself. */
static int reap(struct gpuq_ssh *s)
{
	int status = 0, tries = 0;
	pid_t got;

	while ((got = waitpid(s->pid, &status, WNOHANG)) == 0 && tries++ < END_TRIES)
		poll(NULL, 0, END_MS);
	if (got == 0) {
		kill(s->pid, SIGTERM);
		while ((got = waitpid(s->pid, &status, 0)) < 0 && errno == EINTR)
			;
	}
	s->pid = 0;
	if (got < 0)
		return SSH_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void forget(struct gpuq_ssh *s)
{
	if (s->errs >= 0)
		close(s->errs);
	s->errs = -1;
}

void gpuq_ssh_close(struct gpuq_ssh *s)
{
	if (s->pid <= 0)
		return;
	reap(s);
	forget(s);
}

/* The last line with something in it, without control characters. */
static char *last_line(char *text)
{
	char *last = text, *line;

	for (char *rest = text; (line = strsep(&rest, "\r\n")) != NULL;)
		if (line[strspn(line, " \t")])
			last = line;
	last += strspn(last, " \t");
	for (char *p = last; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
	return last;
}

void gpuq_ssh_explain(struct gpuq_ssh *s, const char *addr, struct gpuq_err *err)
{
	char text[SAID_BYTES];
	const char *why;
	off_t size;
	ssize_t n;
	int status;

	if (s->pid <= 0)
		return;
	status = reap(s);
	size = lseek(s->errs, 0, SEEK_END);
	n = pread(s->errs, text, sizeof(text) - 1,
		  size > (off_t)sizeof(text) - 1 ? size - (off_t)(sizeof(text) - 1) : 0);
	text[n > 0 ? n : 0] = '\0';
	forget(s);
	why = last_line(text);
	if (status == NO_COMMAND || status == NOT_RUN)
		gpuq_fail(err, GPUQ_EUNREACH,
			  "%s: ssh finds no gpuq there (%s): install it there, in the PATH "
			  "of "
			  "commands that ssh runs",
			  addr, *why ? why : "command not found");
	else if (strncmp(why, "gpuq: ", 6) == 0)
		gpuq_fail(err, GPUQ_EUNREACH, "%s: %s", addr, why + 6);
	else if (*why)
		gpuq_fail(err, GPUQ_EUNREACH, "%s: ssh: %s", addr, why);
	else if (status != 0)
		gpuq_fail(err, GPUQ_EUNREACH, "%s: ssh ended with status %d", addr, status);
}
