#include "gpuqd/base/failpoint.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Made by the linker when the section is there; weak, because a program without a
 * single place has none. */
extern struct failpoint *const __start_gpuq_failpoints[] __attribute__((weak));
extern struct failpoint *const __stop_gpuq_failpoints[] __attribute__((weak));

void failpoint_each(void (*fn)(void *arg, const char *name), void *arg)
{
	if (!__start_gpuq_failpoints)
		return;
	for (struct failpoint *const *p = __start_gpuq_failpoints; p < __stop_gpuq_failpoints; p++)
		fn(arg, (*p)->name);
}

/* Does "name[:nth]=action" at p (up to n bytes) mean this passage? Returns the action
 * and its length, or NULL. */
static const char *armed(const char *p, size_t n, const struct failpoint *fp, size_t *len)
{
	const size_t name = strlen(fp->name);
	const char *eq = memchr(p, '=', n);
	const char *at = p + name;

	if (!eq || (size_t)(eq - p) < name || memcmp(p, fp->name, name) != 0)
		return NULL;
	if (*at == ':' && at[1] != '*') {
		char *end;
		unsigned long nth = strtoul(at + 1, &end, 10);

		if (end != eq || nth != fp->passed)
			return NULL;
	} else if (*at == ':') {
		if (at + 2 != eq)
			return NULL;
	} else if (at != eq || fp->passed != 1) {
		return NULL;
	}
	*len = n - (size_t)(eq + 1 - p);
	return eq + 1;
}

static bool act(const char *action, size_t n)
{
	if (n == 4 && memcmp(action, "kill", 4) == 0) {
		kill(getpid(), SIGKILL);
		for (;;) /* the signal is on its way; not one instruction of the caller more */
			pause();
	}
	if (n == 5 && memcmp(action, "abort", 5) == 0)
		abort();
	if (n > 6 && memcmp(action, "delay:", 6) == 0) {
		long ms = strtol(action + 6, NULL, 10);
		struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

		nanosleep(&ts, NULL);
		return false;
	}
	return n == 3 && memcmp(action, "eio", 3) == 0;
}

bool failpoint_pass(struct failpoint *fp)
{
	const char *p = getenv("GPUQ_FAILPOINT");

	fp->passed++;
	while (p && *p) {
		const size_t n = strcspn(p, ",");
		size_t len;
		const char *action = armed(p, n, fp, &len);

		if (action)
			return act(action, len);
		p += n + (p[n] == ',');
	}
	return false;
}
