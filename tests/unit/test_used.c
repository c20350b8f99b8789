/* The hint at the end of a job whose request was far off what it used. */
#include <criterion/criterion.h>

#include "gpuq/cmd/job/used.h"
#include "libgpuq/arena.h"

struct case_ {
	int64_t seconds;
	double cpus;
	int64_t memory_mib, cpu_ms, memory_bytes; /* below 0: not known */
	double gpu_percent;
	bool hint;
	const char *want;
};

#define GI INT64_C(1073741824)

/* Return what job.list has of such a job. */
static struct gpuq_val *job_of(struct gpuq_arena *a, const struct case_ *c)
{
	struct gpuq_val *job = gpuq_map(a), *used = gpuq_map(a);

	gpuq_put(a, job, "state", gpuq_str(a, "COMPLETED"));
	gpuq_put(a, job, "start_time", gpuq_int(a, INT64_C(1790000000000000)));
	gpuq_put(a, job, "end_time", gpuq_int(a, INT64_C(1790000000000000) + c->seconds * 1000000));
	gpuq_put(a, job, "cpus", gpuq_real(a, c->cpus));
	gpuq_put(a, job, "memory_mib", gpuq_int(a, c->memory_mib));
	gpuq_put(a, job, "pod_count", gpuq_int(a, 1));
	gpuq_put(a, used, "cpu_ms", c->cpu_ms < 0 ? gpuq_null(a) : gpuq_int(a, c->cpu_ms));
	gpuq_put(a, used, "memory_bytes",
		 c->memory_bytes < 0 ? gpuq_null(a) : gpuq_int(a, c->memory_bytes));
	gpuq_put(a, used, "gpu_percent",
		 c->gpu_percent < 0 ? gpuq_null(a) : gpuq_real(a, c->gpu_percent));
	gpuq_put(a, used, "hint", gpuq_bool(a, c->hint));
	gpuq_put(a, job, "used", used);
	return job;
}

Test(used, a_hint_where_the_request_was_far_off)
{
	static const struct case_ cases[] = {
		{ 100, 8, 0, 100000, -1, -1, true, "it requested 8 CPUs and kept 1.0 busy" },
		{ 100, 8, 0, 300000, -1, -1, true, "" }, /* more than a quarter of them */
		{ 59, 8, 0, 1000, -1, -1, true, "" }, /* too short to tell */
		{ 100, 1, 0, 0, -1, -1, true, "" }, /* none can be given back */
		{ 100, 8, 0, 100000, -1, -1, false, "" }, /* use_hints: false */
		{ 100, 1, 8192, 0, GI, -1, true,
		  "it requested 8.0 GiB of memory a pod and used 1.0 GiB" },
		{ 100, 1, 8192, 0, 3 * GI, -1, true, "" },
		{ 100, 1, 8192, 0, -1, -1, true, "" }, /* not known */
		{ 100, 4, 8192, -1, GI, 10, true,
		  "it requested 8.0 GiB of memory a pod and used 1.0 GiB; its GPUs were busy for "
		  "10 % "
		  "of the time" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_buf text = GPUQ_BUF_INIT;

		used_hint(job_of(&a, &cases[i]), &text);
		cr_expect_str_eq(gpuq_buf_str(&text), cases[i].want, "row %zu: %s", i,
				 gpuq_buf_str(&text));
		gpuq_buf_done(&text);
		gpuq_arena_done(&a);
	}
}
