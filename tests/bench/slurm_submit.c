/* How fast Slurm's controller takes jobs: slurm_submit SECONDS | -N prints jobs per second.
 * Each submission is a call of its own, as libslurm makes them. tests/bench/slurm.sh compiles
 * this against libslurm; it is no part of gpuq. */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static char *env[] = { "PATH=/usr/bin:/bin", NULL };
	const double given = argc > 1 ? strtod(argv[1], NULL) : 5;
	const double seconds = given > 0 ? given : 1e9;
	const long most = given < 0 ? (long)-given : 1L << 40;
	double start, end;
	long n = 0;

	slurm_init(NULL);
	start = end = now_s();
	while (end < start + seconds && n < most) {
		submit_response_msg_t *answer = NULL;
		job_desc_msg_t job;

		slurm_init_job_desc_msg(&job);
		job.name = "bench";
		job.script = "#!/bin/sh\nsleep 1\n";
		job.environment = env;
		job.env_size = 1;
		job.work_dir = "/tmp";
		job.user_id = getuid();
		job.group_id = getgid();
		job.min_cpus = 1;
		job.time_limit = 60;
		if (slurm_submit_batch_job(&job, &answer) != SLURM_SUCCESS) {
			fprintf(stderr, "slurm_submit: %s\n", slurm_strerror(slurm_get_errno()));
			return 1;
		}
		slurm_free_submit_response_response_msg(answer);
		n++;
		end = now_s();
	}
	printf("%.0f\n", (double)n / (end - start));
	return 0;
}
