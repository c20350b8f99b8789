#include "gpuq/slurm/slurm_steps.h"
#include "config.h"

#include <string.h>

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
