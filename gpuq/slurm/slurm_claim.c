#include "config.h"

#include "gpuq/slurm/slurm_claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "libgpuq/base/fnv.h"
#include "libgpuq/buf.h"

#define SCOPE "GPUQ_STEP_SCOPE"
#define NAMES_MAX 1024
#define LOOK_AGAIN_NS 50000000

/* ---- numbers ---- */

/* Read "gpu", "gpu:2", "gpu:a100:2", "a100:2" and "2": the last word, if it is a number. */
static long last_number(const char *word, size_t n, long dflt)
{
	char *end;
	long value;

	while (n > 0 && word[n - 1] != ':' && word[n - 1] != '/')
		n--;
	value = strtol(word + n, &end, 10);
	return end > word + n && (*end == '\0' || *end == ',') && value >= 0 ? value : dflt;
}

long claim_number(const char *text, bool gres)
{
	long sum = -1;

	if (gres && strcasecmp(text, "none") == 0)
		return 0;
	while (*text) {
		const size_t n = strcspn(text, ",");
		const char *word = strncmp(text, "gres/", 5) == 0 ? text + 5 : text;
		const bool gpu = strncmp(word, "gpu", 3) == 0 && strchr(":,/", word[3]);

		if (gpu || !gres) {
			const long k = last_number(text, n, gpu ? 1 : -1);

			if (k < 0)
				return -1;
			sum = (sum < 0 ? 0 : sum) + k;
		}
		text += n + (text[n] == ',');
	}
	return sum;
}

/* ---- names ---- */

struct held {
	int fds[NAMES_MAX];
	int n;
};

uint64_t claim_pod(void)
{
	static const char *const words[] = { "GPUQ_POD_UID", "GPUQ_JOB_ID", "GPUQ_ARRAY_TASK_ID",
					     "GPUQ_ATTEMPT", "GPUQ_POD_INDEX" };
	uint64_t h = GPUQ_FNV_START;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *value = getenv(words[i]);

		if (value)
			h = gpuq_fnv(h, value, strlen(value) + 1);
	}
	return h;
}

/* A step of a step divides what that has. */
static uint64_t scope(void)
{
	const char *outer = getenv(SCOPE);

	return outer ? gpuq_fnv(GPUQ_FNV_START, outer, strlen(outer)) : claim_pod();
}

/* Returns whether it is ours now; -1 = there are no such names here. */
static int have(struct held *h, uint64_t where, const char *kind, const char *name, size_t n)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int fd = h->n < NAMES_MAX ? socket(AF_UNIX, SOCK_DGRAM, 0) : -1;
	/* The first byte stays 0: it is no file. */
	const int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1,
				 "gpuq-step-%016" PRIx64 "-%s-%.*s", where, kind, (int)n, name);

	if (fd < 0 || len < 0 || (size_t)len >= sizeof(at.sun_path) - 1) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (bind(fd, (const struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) < 0) {
		const int why = errno;

		close(fd);
		return why == EADDRINUSE ? 0 : -1;
	}
	h->fds[h->n++] = fd;
	return 1;
}

static void give_back(struct held *h)
{
	while (h->n > 0)
		close(h->fds[--h->n]);
}

/* ---- devices, CPUs ---- */

/* Those that the pod sees; without a list they are numbered from 0, as in a container. */
static const char *visible(struct gpuq_arena *a)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES"), *n = getenv("GPUQ_GPUS");
	const long count = n ? strtol(n, NULL, 10) : 0;
	struct gpuq_buf all = GPUQ_BUF_INIT;

	if (list)
		return list;
	for (long i = 0; i < count && i < NAMES_MAX; i++)
		gpuq_buf_printf(&all, "%s%ld", i ? "," : "", i);
	list = gpuq_arena_strdup(a, gpuq_buf_str(&all));
	gpuq_buf_done(&all);
	return list ? list : "";
}

static long count_of(const char *list)
{
	long n = *list != '\0';

	for (; *list; list++)
		n += *list == ',';
	return n;
}

/* As many of the list as are wanted, into mine. */
static int take_devices(struct held *h, uint64_t where, const char *list, long wanted, bool shared,
			struct gpuq_buf *mine)
{
	for (; *list && wanted > 0;) {
		const size_t n = strcspn(list, ",");
		const int rc = shared ? 1 : have(h, where, "device", list, n);

		if (rc < 0)
			return -1;
		if (rc > 0) {
			gpuq_buf_printf(mine, "%s%.*s", mine->len ? "," : "", (int)n, list);
			wanted--;
		}
		list += n + (list[n] == ',');
	}
	return wanted == 0;
}

static int take_cpus(struct held *h, uint64_t where, long all, long wanted)
{
	char name[24];

	for (long i = 0; i < all && wanted > 0; i++) {
		const int n = snprintf(name, sizeof(name), "%ld", i);
		const int rc = have(h, where, "cpu", name, (size_t)n);

		if (rc < 0)
			return -1;
		wanted -= rc;
	}
	return wanted == 0;
}

/* CPUs of the pod: as many as its tasks have, where none are counted. */
static long cpus(void)
{
	const char *here = getenv("SLURM_CPUS_ON_NODE"), *tasks = getenv("GPUQ_NTASKS_PER_NODE"),
		   *each = getenv("GPUQ_CPUS_PER_TASK");
	const long n = here    ? strtol(here, NULL, 10)
		       : tasks ? strtol(tasks, NULL, 10) * (each ? strtol(each, NULL, 10) : 1)
			       : 1;

	return n < 1 ? 1 : n > NAMES_MAX / 2 ? NAMES_MAX / 2 : n;
}

int claim_take(struct gpuq_arena *a, const struct claim *c)
{
	static struct held held; /* until the process ends */
	const char *list = visible(a);
	const uint64_t where = scope();
	const long n_devices = c->devices < count_of(list) ? c->devices : count_of(list),
		   n_cpus = cpus();
	const long want_cpus = c->cpus < n_cpus ? c->cpus : n_cpus;
	struct gpuq_buf mine = GPUQ_BUF_INIT;
	char name[40];
	bool told = c->quiet;
	int rc = n_devices < 1 && want_cpus < 1;

	while (rc == 0) {
		struct held gate = { .n = 0 };

		/* One at a time takes: two that have a half each would wait for ever. */
		rc = have(&gate, where, "gate", "", 0);
		if (rc > 0)
			rc = take_devices(&held, where, list, n_devices > 0 ? n_devices : 0,
					  c->shared, &mine);
		if (rc > 0)
			rc = take_cpus(&held, where, n_cpus, want_cpus);
		if (rc <= 0) {
			const struct timespec pause = { 0, LOOK_AGAIN_NS };

			give_back(&held);
			give_back(&gate);
			gpuq_buf_clear(&mine);
			if (rc < 0)
				break;
			if (!told)
				cli_say("waiting: other steps have the %s",
					n_devices > 0 ? "devices" : "CPUs");
			told = true;
			nanosleep(&pause, NULL);
		}
		give_back(&gate);
	}
	if (rc < 0)
		cli_say("error: the steps of this pod cannot divide its devices: %s",
			strerror(errno));
	if (rc > 0 && c->devices >= 0) {
		setenv("CUDA_VISIBLE_DEVICES", gpuq_buf_str(&mine), 1);
		setenv("SLURM_STEP_GPUS", gpuq_buf_str(&mine), 1);
	}
	if (rc > 0 && held.n > 0) {
		snprintf(name, sizeof(name), "%016" PRIx64 "-%ld", where, (long)getpid());
		setenv(SCOPE, name, 1);
	}
	gpuq_buf_done(&mine);
	return rc > 0 ? 0 : -1;
}
