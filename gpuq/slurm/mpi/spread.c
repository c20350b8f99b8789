#include "config.h"

#include "gpuq/slurm/mpi/spread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/file.h"
#include "gpuq/slurm/mpi/launch.h"
#include "libgpuq/buf.h"

extern char **environ;

static void add_quoted(struct gpuq_buf *out, const char *text)
{
	gpuq_buf_addc(out, ' ');
	gpuq_buf_quote(out, text);
}

/* True for a variable that another pod has for itself, or that leads to files of this one. */
static bool is_of_pod(const char *entry)
{
	static const char *const starts[] = {
		"GPUQ_",     "SLURM_",      "CUDA_",     "NVIDIA_", "PET_",  "KUBERNETES_",
		"OMPI_MCA_", "PRTE_MCA_",   "HYDRA_",    "PMI_",    "PMIX_", "JOB_COMPLETION_",
		"RANK=",     "LOCAL_RANK=", "HOSTNAME=", "HOME=",   "PWD=",  "OLDPWD=",
		"SHLVL=",    "_="
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(entry, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/* env needs a name before "="; functions that a shell exports have others. */
static bool is_plain(const char *entry)
{
	const size_t n = strspn(entry, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_");

	return n > 0 && entry[n] == '=' && strlen(entry) < 32768;
}

static int build(struct gpuq_buf *out, const char *step, char *const *words)
{
	char *cwd = getcwd(NULL, 0);

	gpuq_buf_adds(out, "cd");
	add_quoted(out, cwd ? cwd : "/");
	free(cwd);
	gpuq_buf_adds(out, " && exec env");
	for (char **e = environ; *e; e++)
		if (is_plain(*e) && !is_of_pod(*e))
			add_quoted(out, *e);
	gpuq_buf_printf(out, " " SPREAD_NAME "=%s ", step);
	if (launch_self(out) != 0)
		return -1;
	for (words++; *words; words++)
		add_quoted(out, *words);
	return out->failed ? -1 : 0;
}

pid_t *spread_start(const char *step, char *const *words, const long *parts, long n)
{
	const char *socket = getenv(LAUNCH_VARIABLE);
	struct gpuq_buf command = GPUQ_BUF_INIT;
	pid_t *pids = calloc((size_t)n + 1, sizeof(*pids));
	char host[24], *one[2] = { NULL, NULL };

	if (!pids || build(&command, step, words) < 0) {
		cli_say("error: out of memory");
		gpuq_buf_done(&command);
		free(pids);
		return NULL;
	}
	one[0] = (char *)(uintptr_t)gpuq_buf_str(&command);
	fflush(NULL);
	for (long i = 0; i < n; i++) {
		snprintf(host, sizeof(host), LAUNCH_PART "%ld", parts[i]);
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(launch_ask(socket, host, one));
	}
	gpuq_buf_done(&command);
	return pids;
}

static int code_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int spread_end(pid_t *pids, long n, bool hasten)
{
	int status, code = 0;

	for (long i = 0; i < n; i++)
		if (pids[i] > 0 && hasten)
			kill(pids[i], SIGTERM);
	for (long i = 0; i < n; i++) {
		pid_t done;

		if (pids[i] < 0) {
			code = 1;
			continue;
		}
		while ((done = waitpid(pids[i], &status, 0)) < 0 && errno == EINTR)
			if (cli_signals_seen())
				kill(pids[i], SIGTERM);
		if (done > 0 && !hasten && code_of(status) > code)
			code = code_of(status);
	}
	free(pids);
	return code;
}
