#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/local/local_use.h"
#include "gpuqd/cluster/local/local_launch.h"

#define USE_BYTES_MAX 65536
#define DEVICES_MAX 512
#define AGAIN_US (60 * INT64_C(1000000))

/* A process of gpuqd that polls the driver for utilization; see devices.h. It ends when its
 * output is no longer read. */
struct local_use {
	struct local *l;
	pid_t pid; /* 0 = there is none */
	int fd;
	struct event *ev;
	struct loop_timer *timer; /* until it must have said something, or until the next try */
	struct gpuq_buf text; /* of a round that has not come to its end */
};

static void begin(void *arg);

static void tell(struct local *l, const struct use_fact *items, size_t n, const char *source,
		 const char *why)
{
	const struct use_round r = { .items = items, .n = n, .source = source, .why = why };

	l->sink.measured(l->sink.arg, &r);
}

static void end_process(struct local_use *u)
{
	if (u->pid == 0)
		return;
	event_free(u->ev);
	close(u->fd);
	kill(u->pid, SIGKILL);
	waitpid(u->pid, NULL, WNOHANG); /* stuck in the driver it is init's when we end */
	u->pid = 0;
	gpuq_buf_clear(&u->text);
}

static void give_up(struct local_use *u, const char *why)
{
	struct local *l = u->l;

	end_process(u);
	loop_cancel(u->timer);
	u->timer = loop_after(l->loop, AGAIN_US, begin, u);
	tell(l, NULL, 0, "nvml", why);
}

static void on_silence(void *arg)
{
	struct local_use *u = arg;

	u->timer = NULL;
	give_up(u, "the NVIDIA driver does not answer");
}

/* "GPU-1234\t350\t1048576\n..." */
static void take_round(struct local_use *u, char *text)
{
	struct use_fact facts[DEVICES_MAX];
	size_t n = 0;

	for (char *save, *line = strtok_r(text, "\n", &save); line && n < DEVICES_MAX;
	     line = strtok_r(NULL, "\n", &save)) {
		char *tab = strchr(line, '\t'), *end = NULL;
		int32_t milli;

		if (!tab)
			continue;
		*tab = '\0';
		milli = (int32_t)strtol(tab + 1, &end, 10);
		facts[n++] = (struct use_fact){ .pod = "",
						.node = u->l->node.name,
						.uuid = line,
						.index = -1,
						.milli = milli,
						.memory_bytes =
							*end == '\t' ? strtoll(end, NULL, 10) : 0 };
	}
	tell(u->l, facts, n, "nvml", n ? "" : "no device answers");
}

static void take_text(struct local_use *u)
{
	const char *text = gpuq_buf_str(&u->text), *end;

	/* A round ends with an empty line; one alone is a round of no device. */
	while ((end = *text == '\n' ? text : strstr(text, "\n\n")) != NULL) {
		const size_t n = (size_t)(end - text) + (*text == '\n' ? 1 : 2);
		char *round = strndup(text, n - 1);

		if (round)
			take_round(u, round);
		free(round);
		gpuq_buf_drop(&u->text, n);
		text = gpuq_buf_str(&u->text);
	}
}

static void on_text(evutil_socket_t fd, short what, void *arg)
{
	struct local_use *u = arg;
	char chunk[4096];
	const ssize_t n = read(fd, chunk, sizeof(chunk));

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || gpuq_buf_add(&u->text, chunk, (size_t)n) != 0) {
		give_up(u,
			"the library of the NVIDIA driver (libnvidia-ml.so.1) does not report it");
		return;
	}
	loop_cancel(u->timer);
	u->timer = loop_after(u->l->loop, u->l->measure_every_us + LOCAL_PROBE_US, on_silence, u);
	take_text(u);
}

static void begin(void *arg)
{
	struct local_use *u = arg;
	struct local *l = u->l;
	char ms[32];
	const char *argv[] = { l->shepherd, "--shepherd", "--use", ms, NULL };

	snprintf(ms, sizeof(ms), "%" PRId64, l->measure_every_us / 1000);
	u->pid = local_spawn(l, argv, &u->fd);
	if (u->pid < 0) {
		u->pid = 0;
		give_up(u, strerror(errno));
		return;
	}
	u->ev = event_new(loop_base(l->loop), u->fd, EV_READ | EV_PERSIST, on_text, u);
	if (!u->ev || event_add(u->ev, NULL) != 0)
		abort(); /* as loop_after */
	u->timer = loop_after(l->loop, l->measure_every_us + LOCAL_PROBE_US, on_silence, u);
}

void local_use_begin(struct local *l)
{
	if (!l->sink.measured || l->use)
		return;
	if (l->gpus >= 0 || l->measure_every_us < 1000) {
		tell(l, NULL, 0, "",
		     l->gpus >= 0 ? "devices that are declared (gpus) are not measured"
				  : "gpuqd.yaml says so (metrics_interval)");
		return;
	}
	l->use = calloc(1, sizeof(*l->use));
	if (!l->use)
		abort(); /* as loop_after */
	l->use->l = l;
	l->use->text.max_bytes = USE_BYTES_MAX;
	begin(l->use);
}

void local_use_free(struct local *l)
{
	struct local_use *u = l->use;

	if (!u)
		return;
	end_process(u);
	loop_cancel(u->timer);
	gpuq_buf_done(&u->text);
	free(u);
	l->use = NULL;
}
