#include "config.h"

#include "gpuq/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "gpuq/command.h"
#include "gpuq/server.h"
#include "gpuq/term.h"

#define BUSY_US INT64_C(10000000)
#define BUSY_PAUSE_MS 500

static const char *speaker = PACKAGE_NAME;

void cli_say_as(const char *name)
{
	speaker = name;
}

static void vsay(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

static void vsay(const char *fmt, va_list ap)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT;
	char text[2048];

	vsnprintf(text, sizeof(text), fmt, ap);
	gpuq_buf_printf(&clean, "%s: ", speaker);
	term_clean_str(&clean, text);
	gpuq_buf_addc(&clean, '\n');
	fflush(stdout); /* in the order of events when both go to one place */
	fputs(gpuq_buf_str(&clean), stderr);
	gpuq_buf_done(&clean);
}

void cli_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsay(fmt, ap);
	va_end(ap);
}

int cli_usage(const struct cli *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cli_say("%s: %s; see %s%s --help", c->cmd->slurm ? "error" : c->cmd->name, text,
		c->cmd->slurm ? "" : "gpuq ", c->cmd->name);
	return c->cmd->waits || opt_given(&c->args, OPT_WAIT) ? EXIT_SERVER : EXIT_USAGE;
}

int cli_exit_code(const struct gpuq_err *err, bool job_missing)
{
	switch (err->code) {
	case GPUQ_EUNREACH:
	case GPUQ_EUNKNOWN:
	case GPUQ_EPROTO:
	case GPUQ_EVERSION:
	case GPUQ_ETIMEOUT:
	case GPUQ_ENOMETHOD:
	case GPUQ_EAUTH:
		return EXIT_SERVER;
	case GPUQ_ENOENT:
		return job_missing ? EXIT_NO_JOB : EXIT_REFUSED;
	default:
		return EXIT_REFUSED;
	}
}

int cli_fail(const struct gpuq_err *err, bool job_missing)
{
	/* Commands of Slurm say what is an error. */
	cli_say("%s%s", strcmp(speaker, PACKAGE_NAME) ? "error: " : "",
		err->text[0] ? err->text : gpuq_err_text(err->code));
	return cli_exit_code(err, job_missing);
}

/* Can be read from a signal on, so that no silent server keeps us waiting; -1 = there is none. */
static int stop_fd = -1;

/* As long as the server says, at most; false: a signal came. */
static bool busy_pause(const struct gpuq_err *err)
{
	const int64_t ms =
		err->retry_ms > 0 && err->retry_ms < BUSY_PAUSE_MS ? err->retry_ms : BUSY_PAUSE_MS;
	const struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
	return !cli_signals_seen();
}

int cli_connect(struct cli *c, struct gpuq_err *err)
{
	struct server_places places;
	int rc;

	if (c->conn)
		return 0;
	rc = server_find(&c->arena, c->args.val[OPT_SERVER], &places, err);
	if (stop_fd < 0)
		stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (const int64_t until_us = cli_mono_us() + BUSY_US; rc == 0;) {
		rc = server_connect(&c->arena, &places, stop_fd, &c->conn, err);
		c->busy = rc == GPUQ_EBUSY;
		if (!c->busy || cli_mono_us() >= until_us || !busy_pause(err))
			break;
		rc = 0;
	}
	/* Whatever stood in the way, a wrong address too: there is no server, and the
	 * exit code says so. */
	if (rc < 0 && rc != GPUQ_ECANCELED && cli_exit_code(err, false) != EXIT_SERVER)
		rc = err->code = GPUQ_EUNREACH;
	/* Programs around Slurm's commands look for these words. */
	if (rc < 0 && c->cmd->slurm)
		gpuq_err_prefix(err, "Unable to contact slurm controller (connect failure)");
	return rc;
}

void cli_disconnect(struct cli *c)
{
	gpuq_close(c->conn);
	c->conn = NULL;
}

bool cli_broken(int code)
{
	return code == GPUQ_EUNREACH || code == GPUQ_EUNKNOWN || code == GPUQ_EPROTO;
}

int cli_call(struct cli *c, const char *method, const struct gpuq_val *params, const char *key,
	     struct gpuq_val **reply, struct gpuq_err *err)
{
	char drawn[33];
	int rc;

	if (!key) {
		cli_key(drawn);
		key = drawn;
	}
	for (int tries = 0;; tries++) {
		rc = cli_connect(c, err);
		if (rc < 0)
			return rc;
		rc = gpuq_call(c->conn, method, params, *key ? key : NULL, 0, &c->arena, reply,
			       err);
		/* A server that says why it closes has closed all the same. */
		if ((!cli_broken(rc) && rc != GPUQ_EBUSY && rc != GPUQ_EGONE) || tries > 0)
			return rc;
		cli_disconnect(c);
	}
}

void cli_key(char out[33])
{
	unsigned char raw[16];
	size_t got = 0;

	while (got < sizeof(raw)) {
		ssize_t n = getrandom(raw + got, sizeof(raw) - got, 0);

		if (n > 0)
			got += (size_t)n;
	}
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

const char *cli_user(const struct cli *c)
{
	return c->conn ? gpuq_get_str(gpuq_server_info(c->conn), "user", NULL) : NULL;
}

static int64_t clock_us(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t cli_now_us(void)
{
	return clock_us(CLOCK_REALTIME);
}

int64_t cli_mono_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

static volatile sig_atomic_t last_signal;

static void on_signal(int signo)
{
	const int saved = errno;

	last_signal = signo;
	if (stop_fd >= 0)
		(void)eventfd_write(stop_fd, 1);
	errno = saved;
}

void cli_signals_catch(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

int cli_signals_seen(void)
{
	return last_signal;
}

int cli_signals_take(void)
{
	const int signo = last_signal;
	eventfd_t n;

	last_signal = 0;
	if (stop_fd >= 0)
		(void)eventfd_read(stop_fd, &n);
	return signo;
}

pid_t cli_fork(void (*interrupt)(int signo))
{
	sigset_t ours, before;
	pid_t pid;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &before);
	pid = fork();
	if (pid == 0) {
		signal(SIGINT, interrupt);
		signal(SIGTERM, SIG_DFL);
		last_signal = 0;
		if (stop_fd >= 0)
			close(stop_fd);
		stop_fd = -1;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}
