#include "gpuq/slurm/slurm_steps.h"
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpuq/slurm/slurm_claim.h"
#include "libgpuq/base/write.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

enum step { STEP_NONE, STEP_SCRIPT, STEP_UNKNOWN };

/* Read the n bytes that follow the first dot of a word. */
static enum step step_of(const char *dot, size_t n)
{
	static const char script[] = "batch", other[] = "extern";

	if (n == sizeof(script) - 1 && strncmp(dot, script, n) == 0)
		return STEP_SCRIPT;
	if (n == sizeof(other) - 1 && strncmp(dot, other, n) == 0)
		return STEP_UNKNOWN;
	return n > 0 && strspn(dot, "0123456789") >= n ? STEP_UNKNOWN : STEP_NONE;
}

int steps_read(struct gpuq_arena *a, const char *list, struct steps_list *out)
{
	struct gpuq_buf kept = GPUQ_BUF_INIT;
	bool whole = false;

	while (*list) {
		const size_t n = strcspn(list, ",");
		const char *dot = memchr(list, '.', n);
		const size_t id = dot ? (size_t)(dot - list) : n;
		const enum step s = dot ? step_of(dot + 1, n - id - 1) : STEP_NONE;

		if (s != STEP_UNKNOWN)
			gpuq_buf_printf(&kept, "%s%.*s", kept.len ? "," : "",
					(int)(s == STEP_SCRIPT ? id : n), list);
		whole |= s == STEP_NONE;
		list += n + (list[n] == ',');
	}
	*out = (struct steps_list){ gpuq_arena_strdup(a, gpuq_buf_str(&kept)),
				    kept.len > 0 && !whole };
	gpuq_buf_done(&kept);
	return out->jobs ? 0 : GPUQ_ENOMEM;
}

/* ---- numbers ---- */

void steps_begin(void)
{
	const int fd = memfd_create("gpuq-steps", MFD_CLOEXEC);
	char path[64];

	unsetenv(STEPS_COUNTER); /* that of a job around this one */
	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)getpid(), fd);
	setenv(STEPS_COUNTER, path, 1);
}

/* Open the count of the pod; in a container it goes with the pod. */
static int open_counter(void)
{
	const char *path = getenv(STEPS_COUNTER), *dir = getenv("TMPDIR");
	char own[4096];

	if (path)
		return open(path, O_RDWR | O_CLOEXEC);
	if (!getenv("KUBERNETES_SERVICE_HOST"))
		return -1;
	snprintf(own, sizeof(own), "%s/.gpuq-steps-%016" PRIx64, dir && *dir ? dir : "/tmp",
		 claim_pod());
	return open(own, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

long steps_next(void)
{
	char text[24] = "";
	const int fd = open_counter();
	long n = -1;

	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
		;
	if (pread(fd, text, sizeof(text) - 1, 0) >= 0) {
		char *end;

		n = strtol(text, &end, 10);
		if (n < 0)
			n = 0;
		snprintf(text, sizeof(text), "%ld\n", n + 1);
		if (lseek(fd, 0, SEEK_SET) < 0 || gpuq_write_all(fd, text, strlen(text)) < 0)
			n = -1;
	}
	close(fd);
	return n;
}
