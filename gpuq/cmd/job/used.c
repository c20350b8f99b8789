#include "gpuq/cmd/job/used.h"

#include <inttypes.h>

#include "gpuq/lines.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

/* A request this many times what was used, by a job that ran for this long, is far off. */
#define FAR_OFF 4
#define RAN_US (60 * GPUQ_US_PER_S)
#define MIB INT64_C(1048576)

double used_percent(int64_t part, int64_t all)
{
	return part < 0 || all <= 0 ? -1 : 100.0 * (double)part / (double)all;
}

static double cpus_of(const struct gpuq_val *job)
{
	return view_number(gpuq_get(job, "cpus"), 0);
}

/* Return the milliseconds that its CPUs could have worked. */
static int64_t cpu_room_ms(const struct gpuq_val *job)
{
	return (int64_t)(cpus_of(job) * (double)(view_job_elapsed_us(job, 0) / 1000));
}

/* Return the memory of one of its pods. */
static int64_t memory_of_pod(const struct gpuq_val *job)
{
	const int64_t pods = gpuq_get_int(job, "pod_count", 1);

	return (int64_t)(view_number(gpuq_get(job, "memory_mib"), 0) * (double)MIB) /
	       (pods > 0 ? pods : 1);
}

static void add_percent(struct gpuq_buf *text, double percent, const char *of)
{
	if (percent >= 0)
		gpuq_buf_printf(text, ", %.0f %% of %s", percent, of);
}

void used_lines(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const int64_t cpu = view_used_cpu_ms(job), memory = view_used(job, "memory_bytes");
	const int64_t in = view_used(job, "read_bytes"), out = view_used(job, "written_bytes");
	const struct gpuq_val *gpu = gpuq_get(gpuq_get(job, "used"), "gpu_percent");
	const int64_t gpu_memory = view_used(job, "gpu_memory_bytes");

	if (cpu >= 0) {
		line_clock(text, cpu * 1000);
		if (view_used(job, "user_ms") >= 0 && view_used(job, "system_ms") >= 0)
			gpuq_buf_printf(text, " (user %.2f s, system %.2f s)",
					(double)view_used(job, "user_ms") / 1000,
					(double)view_used(job, "system_ms") / 1000);
		add_percent(text, used_percent(cpu, cpu_room_ms(job)), "its CPUs' time");
		line_print("Used CPU", text);
	}
	if (memory >= 0) {
		gpuq_buf_adds(text, "at most ");
		line_bytes(text, memory);
		add_percent(text, used_percent(memory, memory_of_pod(job)), "its memory");
		line_print("Used memory", text);
	}
	if (in >= 0 && out >= 0) {
		line_bytes(text, in);
		gpuq_buf_adds(text, " read, ");
		line_bytes(text, out);
		gpuq_buf_adds(text, " written");
		line_print("Used I/O", text);
	}
	if (line_says(gpu)) {
		gpuq_buf_printf(text, "busy for %.0f %% of the time measured", view_number(gpu, 0));
		line_print("Used GPUs", text);
	}
	if (gpu_memory >= 0) {
		gpuq_buf_adds(text, "at most ");
		line_bytes(text, gpu_memory);
		line_print("GPU memory", text);
	}
	used_hint(job, text);
	line_print("Hint", text);
}

void used_hint(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const int64_t cpu = view_used_cpu_ms(job), memory = view_used(job, "memory_bytes");
	const int64_t room = cpu_room_ms(job), asked = memory_of_pod(job);
	const struct gpuq_val *gpu = gpuq_get(gpuq_get(job, "used"), "gpu_percent");
	const char *sep = "";

	if (view_job_elapsed_us(job, 0) < RAN_US ||
	    !gpuq_get_bool(gpuq_get(job, "used"), "hint", true))
		return;
	if (cpu >= 0 && cpus_of(job) > 1 && room / FAR_OFF > cpu) {
		gpuq_buf_printf(text, "it requested %g CPUs and kept %.1f busy", cpus_of(job),
				cpus_of(job) * (double)cpu / (double)room);
		sep = "; ";
	}
	if (memory > 0 && asked >= 1024 * MIB && asked / FAR_OFF > memory) {
		gpuq_buf_printf(text, "%sit requested ", sep);
		line_bytes(text, asked);
		gpuq_buf_adds(text, " of memory a pod and used ");
		line_bytes(text, memory);
		sep = "; ";
	}
	if (line_says(gpu) && view_number(gpu, 100) < 100.0 / FAR_OFF)
		gpuq_buf_printf(text, "%sits GPUs were busy for %.0f %% of the time", sep,
				view_number(gpu, 0));
}
