/* The variables of sbatch(1): from amounts, tasks and pods. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/flow/env/slurm_env.h"
#include "libgpuq/units.h"

static const struct {
	const char *tasks, *per_pod, *index; /* of gpuq's variables */
	uint32_t n_pods, n_devices;
	int64_t cpu_milli, memory_bytes, cpus_per_task;
	const char *want; /* NAME=VALUE NAME=VALUE; "NAME" alone: not set */
	const char *memory_per;
} rows[] = {
	{ "1", "1", "0", 1, 0, 0, 0, 0,
	  "TASKS_PER_NODE=1 GTIDS=0 PROCID=0 CPUS_ON_NODE=1 JOB_CPUS_PER_NODE=1 GPUS "
	  "MEM_PER_NODE JOB_GPUS GPUS_ON_NODE",
	  NULL },
	{ "4", "2", "1", 2, 0, 0, 0, 3,
	  "TASKS_PER_NODE=2(x2) GTIDS=2,3 PROCID=2 CPUS_ON_NODE=6 JOB_CPUS_PER_NODE=6(x2)", NULL },
	{ "5", "3", "1", 2, 0, 0, 0, 0, "TASKS_PER_NODE=3,2 GTIDS=3,4 PROCID=3", NULL },
	{ "7", "3", "2", 3, 0, 0, 0, 0, "TASKS_PER_NODE=3(x2),1 GTIDS=6 PROCID=6", NULL },
	{ "1", "1", "0", 1, 0, 2500, INT64_C(4) << 30, 0,
	  "CPUS_ON_NODE=3 MEM_PER_NODE=4096 MEM_PER_CPU MEM_PER_GPU", NULL },
	{ "1", "1", "0", 1, 0, 2500, INT64_C(6) << 30, 0,
	  "CPUS_ON_NODE=3 MEM_PER_NODE MEM_PER_CPU=2048 MEM_PER_GPU", "cpu" },
	{ "1", "1", "0", 1, 0, 0, INT64_C(4) << 30, 0, "MEM_PER_NODE=4096 MEM_PER_CPU MEM_PER_GPU",
	  "cpu" },
	{ "2", "1", "0", 2, 4, 8000, INT64_C(64) << 30, 0,
	  "GPUS=8 GPUS_PER_NODE=4 JOB_GPUS=0,1,2,3 GPUS_ON_NODE=4 MEM_PER_GPU CPUS_PER_GPU=2 "
	  "MEM_PER_CPU MEM_PER_NODE=65536",
	  NULL },
	{ "2", "1", "0", 2, 4, 8000, INT64_C(64) << 30, 0,
	  "MEM_PER_GPU=16384 MEM_PER_CPU MEM_PER_NODE", "gpu" },
	{ "1", "1", "0", 1, 0, 1000, INT64_C(2) << 30, 0,
	  "MEM_PER_GPU MEM_PER_CPU MEM_PER_NODE=2048", "gpu" },
};

static void check(const struct pod_env *e, size_t row)
{
	char want[512], *save = NULL;

	snprintf(want, sizeof(want), "%s", rows[row].want);
	for (char *word = strtok_r(want, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char name[64], *eq = strchr(word, '=');
		const char *got;

		snprintf(name, sizeof(name), "SLURM_%.*s", (int)strcspn(word, "="), word);
		got = pod_env_get(e, name);
		if (!eq)
			cr_expect_null(got, "row %zu: %s is %s", row, name, got);
		else
			cr_expect(got && strcmp(got, eq + 1) == 0, "row %zu: %s is %s, not %s", row,
				  name, got ? got : "not set", eq + 1);
	}
}

Test(slurm_env, amounts_and_tasks)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
		const char *keys[POD_ENV_MAX], *vals[POD_ENV_MAX];
		struct gpuq_strmap map = { keys, vals, 0 };
		struct pod_env e = { &mem, &map };
		struct gpuq_spec spec = { .cpus_per_task = rows[i].cpus_per_task,
					  .memory_per = rows[i].memory_per };
		const struct gpuq_group group = { .cpu_milli = rows[i].cpu_milli,
						  .memory_bytes = rows[i].memory_bytes };

		pod_env_set(&e, "GPUQ_NTASKS", rows[i].tasks);
		pod_env_set(&e, "GPUQ_NTASKS_PER_NODE", rows[i].per_pod);
		pod_env_set(&e, "GPUQ_POD_INDEX", rows[i].index);
		pod_env_set(&e, "GPUQ_GPUS", rows[i].n_devices ? "4" : "0");
		pod_env_set(&e, "GPUQ_DEVICES", rows[i].n_devices ? "0,1,2,3" : "");
		slurm_env_fill(&e, &(struct slurm_env_job){ .spec = &spec,
							    .group = &group,
							    .number = 77,
							    .n_pods = rows[i].n_pods,
							    .n_devices = rows[i].n_devices,
							    .start_us = 5000000,
							    .limit_us = GPUQ_UNLIMITED });
		check(&e, i);
		cr_expect_str_eq(pod_env_get(&e, "SLURM_JOB_ID"), "77");
		cr_expect_str_eq(pod_env_get(&e, "SLURM_JOB_START_TIME"), "5");
		cr_expect_null(pod_env_get(&e, "SLURM_JOB_END_TIME"), "without a limit");
		gpuq_arena_done(&mem);
	}
}

Test(slurm_env, more_than_there_is_room_for_is_dropped)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const char *keys[POD_ENV_MAX], *vals[POD_ENV_MAX];
	struct gpuq_strmap map = { keys, vals, 0 };
	struct pod_env e = { &mem, &map };

	for (int i = 0; i < POD_ENV_MAX + 10; i++)
		pod_env_set_int(&e, "X", i);
	cr_expect_eq(map.n, (size_t)POD_ENV_MAX);
	gpuq_arena_done(&mem);
}
