/* seff: how much of what an ended job requested it used. */
#include <inttypes.h>
#include <stdio.h>

#include "gpuq/cmd/job/used.h"
#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"

#define GB (1024.0 * 1024 * 1024)

/* "1.20 GB", as seff has it. */
static void size(struct gpuq_buf *out, double bytes)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
	size_t i = 0;

	for (; bytes >= 1024 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
		bytes /= 1024;
	gpuq_buf_printf(out, "%.2f %s", bytes, units[i]);
}

static void cpu_lines(const struct gpuq_val *job, double cpus, struct gpuq_buf *out)
{
	const int64_t us = view_job_elapsed_us(job, cli_now_us()), cpu_ms = view_used_cpu_ms(job);
	const int64_t room_us = (int64_t)(cpus * (double)us);
	const double percent = used_percent(cpu_ms < 0 ? -1 : cpu_ms * 1000, room_us);

	gpuq_buf_adds(out, "CPU Utilized: ");
	if (cpu_ms < 0)
		gpuq_buf_adds(out, "Unknown");
	else
		slurm_elapsed(out, cpu_ms * 1000);
	gpuq_buf_adds(out, "\nCPU Efficiency: ");
	if (percent < 0)
		gpuq_buf_adds(out, "Unknown");
	else
		gpuq_buf_printf(out, "%.2f%%", percent);
	gpuq_buf_adds(out, " of ");
	slurm_elapsed(out, room_us);
	gpuq_buf_adds(out, " core-walltime\nJob Wall-clock time: ");
	slurm_elapsed(out, us);
}

static void memory_lines(const struct gpuq_val *job, int64_t pods, struct gpuq_buf *out)
{
	const int64_t peak = view_used(job, "memory_bytes");
	const double all = view_number(gpuq_get(job, "memory_mib"), 0) * 1024 * 1024;

	gpuq_buf_adds(out, "\nMemory Utilized: ");
	if (peak < 0)
		gpuq_buf_adds(out, "Unknown");
	else
		size(out, (double)peak);
	if (all <= 0)
		return;
	gpuq_buf_adds(out, "\nMemory Efficiency: ");
	if (peak < 0)
		gpuq_buf_adds(out, "Unknown");
	else
		gpuq_buf_printf(out, "%.2f%%", 100 * (double)peak * (double)pods / all);
	gpuq_buf_printf(out, " of %.2f GB (%.2f GB/node)", all / GB, all / GB / (double)pods);
}

static int print(void *arg, const struct gpuq_val *job)
{
	struct gpuq_buf *out = arg;
	const int state = view_job_state(job);
	const int64_t pods = gpuq_get_int(job, "pod_count", 1);
	const struct gpuq_val *gpu = gpuq_get(gpuq_get(job, "used"), "gpu_percent");
	double cpus = view_number(gpuq_get(job, "cpus"), 0);

	cpus = cpus > 0 ? cpus : (double)pods;
	gpuq_buf_printf(out, "Job ID: %" PRId64 "\n", slurm_number(job));
	if (gpuq_get_int(job, "array_index", -1) >= 0)
		gpuq_buf_printf(out, "Array Job ID: %" PRId64 "_%" PRId64 "\n",
				gpuq_get_int(job, "id", 0), gpuq_get_int(job, "array_index", 0));
	gpuq_buf_printf(out, "Cluster: gpuq\nUser/Group: %s/%s\nState: %s",
			gpuq_get_str(job, "user", "?"), gpuq_get_str(job, "user", "?"),
			slurm_state(job, false));
	if (view_job_ended(job))
		gpuq_buf_printf(out, " (exit code %" PRId64 ")", gpuq_get_int(job, "exit_code", 0));
	gpuq_buf_addc(out, '\n');
	if (!view_job_started(job)) {
		gpuq_buf_printf(out, "Efficiency not available for jobs in the %s state.\n",
				state < 0 ? "?" : slurm_state(job, false));
		return 0;
	}
	gpuq_buf_printf(out, "Nodes: %" PRId64 "\nCores per node: %g\n", pods, cpus / (double)pods);
	cpu_lines(job, cpus, out);
	memory_lines(job, pods, out);
	if (gpu && gpu->type != GPUQ_NULL)
		gpuq_buf_printf(out, "\nGPU Utilization: %.2f%%", view_number(gpu, 0));
	else if (view_number(gpuq_get(job, "gpus"), 0) > 0)
		gpuq_buf_adds(out, "\nGPU Utilization: Unknown");
	gpuq_buf_addc(out, '\n');
	if (!view_job_ended(job))
		gpuq_buf_adds(out, "WARNING: Efficiency statistics can only be obtained after the "
				   "job has ended.\n");
	return 0;
}

int slurm_seff(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	for (int i = 0; i < c->args.n_rest; i++) {
		struct gpuq_buf out = GPUQ_BUF_INIT;
		int64_t id, index;

		if (filter_id(c->args.rest[i], &id, &index, &err) < 0)
			return slurm_fail(&err);
		if (job_for_each(c, id, index, print, &out, &err) < 0) {
			gpuq_buf_done(&out);
			return slurm_fail_job(&err);
		}
		fputs(gpuq_buf_str(&out), stdout);
		gpuq_buf_done(&out);
	}
	return EXIT_DONE;
}
